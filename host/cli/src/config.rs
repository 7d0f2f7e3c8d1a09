//! The configuration, `checkrein.toml`: which components, what they are granted, who verifies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_contract::document::{Document, Section};
use checkrein_contract::event::Person;
use checkrein_contract::grant::{Granted, SecretUse};
use checkrein_contract::id::{is_segment, is_subject_pattern};
use checkrein_contract::limits::{LimitChanges, LimitKey};
use checkrein_contract::manifest::{
    Effects, read_clock, read_folders, read_limits, read_rules, read_secret_at,
};
use serde_json::{Value, json};

use crate::args::Global;
use crate::error::CliError;

/// The name of the configuration file.
pub const FILE: &str = "checkrein.toml";
/// The name of the state folder.
pub const STATE: &str = ".checkrein";

/// What is told of a key that only the operator's own file may hold.
const OPERATORS: &str = "it belongs in the operator's own file, `~/.config/checkrein/operator.toml` or --operator FILE: a project may come from a stranger";

/// What the operator allows a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// Network, folders, secrets and clock.
    pub reach: Granted,
    /// What a call changes outside, in the operator's own judgement.
    pub effects: Option<Effects>,
    /// Other limits.
    pub limits: LimitChanges,
    /// The subjects it may write, narrower than its manifest's.
    pub facts: Option<Vec<String>>,
    /// The largest score its trigger may give.
    pub max_score: u8,
    /// Its settings.
    pub settings: Value,
}

impl Default for Grant {
    fn default() -> Self {
        Grant {
            reach: Granted::default(),
            effects: None,
            limits: LimitChanges::default(),
            facts: None,
            max_score: 100,
            settings: json!({}),
        }
    }
}

/// `[[verifier]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifierEntry {
    /// The verifier's name.
    pub name: String,
    /// The skills whose submissions it judges.
    pub on: Vec<String>,
    /// The subjects whose submissions it judges.
    pub on_facts: Vec<String>,
    /// Its settings here.
    pub settings: Value,
}

/// The configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Patterns of component files, as they are written.
    pub load: Vec<String>,
    /// Grants by name.
    pub grants: BTreeMap<String, Grant>,
    /// Bindings of verifiers.
    pub verifiers: Vec<VerifierEntry>,
    /// Limits of every component.
    pub limits: LimitChanges,
    /// What of a run may wait for a person.
    pub person: Person,
}

impl Config {
    /// The configuration that holds for these flags.
    ///
    /// # Errors
    ///
    /// All mistakes in it at once.
    pub fn find(global: &Global) -> Result<Self, CliError> {
        match &global.config {
            Some(file) => Self::read(file),
            None => match current_folder()?.ancestors().map(|dir| dir.join(FILE)).find(|file| file.is_file())
            {
                Some(file) => Self::read(&file),
                None => Ok(Self::default()),
            },
        }
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// All mistakes in it at once.
    pub fn read(file: &Path) -> Result<Self, CliError> {
        let text = read_text(file)?;
        let document = Document::parse(&file.display().to_string(), &text);
        let root = document.root();
        let mut config = Config { file: Some(file.to_owned()), ..Config::default() };
        if let Some(skills) = root.section("skills") {
            config.load = skills.get("load").unwrap_or_default();
            skills.close();
        }
        refuse_what_is_the_operators(&root);
        if let Some(limits) = root.section("limits") {
            config.limits = limits.section("default").map(read_changed_limits).unwrap_or_default();
            if limits.get::<Value>("ceiling").is_some() {
                limits.fault("ceiling", "no ceiling", "`ceiling`", OPERATORS);
            }
            limits.close();
        }
        if let Some(run) = root.section("run") {
            config.person = read_person(&run);
            run.close();
        }
        config.grants =
            root.named_sections("grant").into_iter().map(|(name, grant)| (name, read_grant(grant))).collect();
        config.verifiers = root.sections("verifier").into_iter().filter_map(read_verifier).collect();
        root.close();
        document.finish(Some(config)).map_err(CliError::Input)
    }

    /// The file as faults name it.
    pub fn place(&self) -> String {
        self.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default()
    }

    /// The folder that relative paths in the configuration are relative to.
    ///
    /// # Errors
    ///
    /// If there is no current folder.
    pub fn folder(&self) -> Result<PathBuf, CliError> {
        match self.file.as_deref().and_then(Path::parent) {
            Some(parent) if parent.as_os_str().is_empty() => Ok(PathBuf::from(".")),
            Some(parent) => Ok(parent.to_owned()),
            None => current_folder(),
        }
    }
}

/// The largest file of text that is read whole: task, configuration, report.
const TEXT_MAX: u64 = 1 << 20;

/// The text of an ordinary file of a size that a person may have written.
///
/// # Errors
///
/// If it is no such file, or no text.
pub fn read_text(file: &Path) -> Result<String, CliError> {
    let unreadable = |error: std::io::Error| CliError::unreadable(file, &error);
    let metadata = std::fs::metadata(file).map_err(unreadable)?;
    // What is no file may never end: a pipe, a device.
    if !metadata.is_file() || metadata.len() > TEXT_MAX {
        let why = if metadata.is_file() { "larger than 1 MiB" } else { "no ordinary file" };
        return Err(unreadable(std::io::Error::other(why)));
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

/// The state folder that holds for these flags.
///
/// # Errors
///
/// If there is no current folder, or the configuration cannot be found.
pub fn state_folder(global: &Global) -> Result<PathBuf, CliError> {
    if let Some(state) = &global.state {
        return Ok(state.clone());
    }
    let config = match &global.config {
        Some(file) => Some(file.clone()),
        None => current_folder()?.ancestors().map(|dir| dir.join(FILE)).find(|file| file.is_file()),
    };
    let beside = config.as_deref().and_then(Path::parent).map(Path::to_owned);
    Ok(beside.map_or_else(current_folder, Ok)?.join(STATE))
}

/// The folder of the configuration that would be found from the current folder, if there is one.
///
/// # Errors
///
/// If there is no current folder.
pub fn project_folder() -> Result<Option<PathBuf>, CliError> {
    let here = current_folder()?;
    Ok(here.ancestors().find(|dir| dir.join(FILE).is_file()).map(Path::to_owned))
}

/// The current folder.
///
/// # Errors
///
/// If it is gone.
pub fn current_folder() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| CliError::unreadable(Path::new("."), &error))
}

/// Where secrets come from, ceilings, and the gateway's own wall.
fn refuse_what_is_the_operators(root: &Section<'_>) {
    for (key, expected) in
        [("secrets", "no source of a secret"), ("secret", "no source of a secret"), ("ceiling", "no ceiling")]
    {
        if root.get::<Value>(key).is_some() {
            root.fault(key, expected, &format!("`{key}`"), OPERATORS);
        }
    }
    let Some(gateway) = root.section("gateway") else { return };
    if gateway.get::<bool>("process") == Some(false) {
        gateway.fault("process", "true, or nothing", "false, which lowers a wall", OPERATORS);
    }
    gateway.close();
}

/// Runs wait for a person, unless the operator says that there is none.
fn read_person(section: &Section<'_>) -> Person {
    match section.get::<bool>("person") {
        Some(false) => Person::Never,
        Some(true) | None => Person::Always,
    }
}

fn read_grant(section: Section<'_>) -> Grant {
    let max_score = section.get::<u64>("max-score").unwrap_or(100);
    if max_score > 100 {
        section.fault("max-score", "0 to 100", &max_score.to_string(), "");
    }
    let facts: Option<Vec<String>> = section.get("facts");
    check_patterns(&section, "facts", facts.as_deref().unwrap_or_default());
    let grant = Grant {
        reach: Granted {
            network: read_rules(&section),
            files: read_folders(&section),
            secrets: read_secrets(&section),
            clock: read_clock(&section),
        },
        effects: read_effects(&section),
        limits: section.section("limits").map(read_changed_limits).unwrap_or_default(),
        facts,
        max_score: max_score.min(100) as u8,
        settings: read_settings(&section),
    };
    section.close();
    grant
}

/// A grant can say that what it allows is safe to repeat, or that it is not; never that it is nothing.
fn read_effects(section: &Section<'_>) -> Option<Effects> {
    let expected = "\"idempotent\" or \"irreversible\"";
    section
        .parsed("effects", expected, |word| Effects::parse(word).filter(|effects| *effects != Effects::None))
}

fn read_secrets(section: &Section<'_>) -> Vec<SecretUse> {
    let uses: Vec<SecretUse> = section.sections("secrets").into_iter().filter_map(read_secret).collect();
    for (at, one) in uses.iter().enumerate() {
        if uses[..at].iter().any(|before| before.at == one.at) {
            let found = format!("two for the header `{}` of {}", one.at.header, one.at.host);
            section.fault("secrets", "one secret for a header", &found, "remove one of them");
        }
    }
    uses
}

fn read_secret(section: Section<'_>) -> Option<SecretUse> {
    for key in ["env", "file", "value", "command"] {
        if section.get::<Value>(key).is_some() {
            section.fault(key, "no source of a secret", &format!("`{key}`"), OPERATORS);
        }
    }
    let name = section.need::<String>("name");
    let at = read_secret_at(&section);
    if let Some(name) = name.as_ref().filter(|name| !is_segment(name)) {
        section.fault("name", "the name of a secret in the operator's file", &format!("{name:?}"), "");
    }
    section.close();
    Some(SecretUse { name: name?, at: at? })
}

/// Limits of the operator; those that this version holds for all calls alike cannot be changed.
pub(crate) fn read_changed_limits(section: Section<'_>) -> LimitChanges {
    for key in LimitKey::ALL.iter().filter(|key| key.is_fixed() && section.has(key.as_str())) {
        let found = format!("`{key}`");
        let mend = format!("it is {} for every component; remove it", key.show(key.default_value()));
        section.fault(key.as_str(), "a limit that can be changed", &found, &mend);
    }
    read_limits(section)
}

fn read_verifier(section: Section<'_>) -> Option<VerifierEntry> {
    let name = section.need::<String>("use");
    let on: Vec<String> = section.get("on").unwrap_or_default();
    let on_facts: Vec<String> = section.get("on-facts").unwrap_or_default();
    check_patterns(&section, "on-facts", &on_facts);
    if on.is_empty() && on_facts.is_empty() {
        section.fault("on", "skills in `on`, or subjects in `on-facts`", "neither", "say what it verifies");
    }
    let settings = read_settings(&section);
    section.close();
    Some(VerifierEntry { name: name?, on, on_facts, settings })
}

fn read_settings(section: &Section<'_>) -> Value {
    section.section("settings").map_or_else(|| json!({}), |settings| settings.to_json())
}

fn check_patterns(section: &Section<'_>, key: &str, patterns: &[String]) {
    for pattern in patterns.iter().filter(|pattern| !is_subject_pattern(pattern)) {
        section.fault(key, "a subject, or a subject and `/*`", &format!("{pattern:?}"), "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, text).unwrap();
        Config::read(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn runs_wait_for_a_person_unless_the_operator_says_otherwise() {
        for (text, person) in [
            ("", Person::Always),
            ("[run]\n", Person::Always),
            ("[run]\nperson = true\n", Person::Always),
            ("[run]\nperson = false\n", Person::Never),
        ] {
            assert_eq!(read(text).unwrap().person, person, "{text}");
        }
        assert!(read("[run]\nperson = \"never\"\n").unwrap_err().contains("expected true or false"));
        assert!(read("[run]\npersons = false\n").unwrap_err().contains("did you mean `person`?"));
    }
}
