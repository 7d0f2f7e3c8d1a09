//! The components of a configuration: found, loaded, and joined with what they are granted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use checkrein_contract::Digest;
use checkrein_contract::event::{Binding, ComponentCard};
use checkrein_contract::id::overlap;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::manifest::{Kind, Manifest};
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::problem::{Fault, Faults};
use checkrein_contract::section;
use checkrein_contract::task::Mode;
use checkrein_sandbox::{LoadReport, Loaded, Protected, Sandbox, Source, Step, StepResult};

use crate::config::{Config, Grant};
use crate::error::{CliError, fault};
use crate::grants;
use crate::output;
use crate::standing::Standing;

/// What a run may use.
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// The skills.
    pub skills: Vec<ComponentCard>,
    /// The verifiers.
    pub verifiers: Vec<ComponentCard>,
    /// Which verifiers judge what.
    pub bindings: Vec<Binding>,
    /// Each component with its file.
    pub files: Vec<(PathBuf, Loaded)>,
}

impl Components {
    /// Loads every component of the configuration.
    ///
    /// # Errors
    ///
    /// All that do not load, or all that the configuration says of components that are not there.
    pub async fn load(sandbox: &Sandbox, standing: &Standing, mode: Mode) -> Result<Self, CliError> {
        let config = &standing.config;
        let files = patiently(load_files(sandbox, find(config)?)).await?;
        check_names(&files)?;
        check_schemas(&files)?;
        let file = config.place();
        let mut components = Components::default();
        for (path, loaded) in &files {
            let card = card(standing, loaded, mode);
            match loaded.manifest.kind {
                Kind::Skill => components.skills.push(card),
                Kind::Verifier => components.verifiers.push(card),
            }
            components.files.push((path.clone(), loaded.clone()));
        }
        let manifests: Vec<&Manifest> = files.iter().map(|(_, loaded)| &loaded.manifest).collect();
        let mut faults = grant_faults(config, &manifests, &standing.protected);
        components.bindings = bind(&file, config, &components, &mut faults);
        if faults.is_empty() { Ok(components) } else { Err(CliError::Input(Faults(faults))) }
    }

    /// The component of this name, with its file.
    pub fn named(&self, name: &str) -> Option<&(PathBuf, Loaded)> {
        self.files.iter().find(|(_, loaded)| loaded.manifest.name == name)
    }
}

/// Says why nothing is seen, if it takes long: compiling and the trial of a new component do.
async fn patiently<T>(loading: impl Future<Output = T>) -> T {
    tokio::pin!(loading);
    tokio::select! {
        loaded = &mut loading => return loaded,
        () = tokio::time::sleep(Duration::from_millis(700)) => {
            output::message("compiling and trying the components; what passes is remembered");
        }
    }
    loading.await
}

/// The manifests of the components of a configuration, each with its file; nothing is run.
///
/// # Errors
///
/// All files that hold none, or one that does not parse.
pub fn manifests(config: &Config) -> Result<Vec<(PathBuf, Manifest)>, CliError> {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for path in find(config)? {
        match manifest_of(&path) {
            Ok(manifest) => found.push((path, manifest)),
            Err(Faults(mut more)) => faults.append(&mut more),
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(CliError::Load(Faults(faults))) }
}

fn manifest_of(path: &Path) -> Result<Manifest, Faults> {
    let shown = path.display().to_string();
    let one = |stage: &str, expected: &str, found: &str, mend: &str| {
        Faults(vec![fault(&shown, stage, expected, found, mend)])
    };
    let most = LimitKey::Component.default_value();
    let metadata = std::fs::metadata(path);
    let metadata =
        metadata.map_err(|error| one("file", "a file that can be read", &error.to_string(), ""))?;
    if metadata.len() > most {
        let expected = format!("at most {}", LimitKey::Component.show(most));
        return Err(one("size", &expected, &LimitKey::Component.show(metadata.len()), ""));
    }
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| one("file", "a file that can be read", &error.to_string(), ""))?;
    let section = section::find(&bytes, section::MANIFEST);
    let section = section.map_err(|error| one("format", "a component", &error.to_string(), ""))?;
    let Some(text) = section else {
        let mend = "`checkrein skill build` embeds one";
        return Err(one("manifest", "a manifest", "none", mend));
    };
    Manifest::parse(&format!("{shown}#{}", section::MANIFEST), &String::from_utf8_lossy(text))
}

/// The files that the patterns stand for, sorted, each once.
fn find(config: &Config) -> Result<BTreeSet<PathBuf>, CliError> {
    let folder = config.folder()?;
    let place = config.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
    let (mut files, mut faults) = (BTreeSet::new(), Vec::new());
    for pattern in &config.load {
        let full = folder.join(pattern);
        let matched: Vec<PathBuf> = match glob::glob(&full.to_string_lossy()) {
            Ok(paths) => paths.filter_map(Result::ok).filter(|path| path.is_file()).collect(),
            Err(error) => {
                faults.push(load_fault(&place, "a pattern of files", &format!("{pattern:?}: {error}"), ""));
                continue;
            }
        };
        if matched.is_empty() {
            let mend = "build it with `checkrein skill build DIR`, or mend the pattern";
            faults.push(load_fault(&place, "at least one component", &format!("none for {pattern:?}"), mend));
        }
        files.extend(matched);
    }
    if faults.is_empty() { Ok(files) } else { Err(CliError::Load(Faults(faults))) }
}

fn load_fault(file: &str, expected: &str, found: &str, mend: &str) -> Fault {
    Fault { place: "skills.load".to_owned(), ..fault(file, "file", expected, found, mend) }
}

async fn load_files(sandbox: &Sandbox, files: BTreeSet<PathBuf>) -> Result<Vec<(PathBuf, Loaded)>, CliError> {
    let sources = files.iter().map(|path| path.as_path().into()).collect();
    let loaded = load_each(sandbox, sources).await?;
    Ok(files.into_iter().zip(loaded).collect())
}

/// Loads the components that a run began with, whatever has become of their files: out of the blobs,
/// each by its digest.
///
/// # Errors
///
/// All that are lost or that do not load.
pub async fn load_pinned(
    sandbox: &Sandbox,
    blobs: &dyn Blobs,
    pinned: &BTreeMap<Digest, String>,
) -> Result<Vec<Loaded>, CliError> {
    let (mut sources, mut faults) = (Vec::new(), Vec::new());
    for (digest, component) in pinned {
        let name = format!("{component} ({})", digest.short());
        match blobs.get(digest) {
            Ok(bytes) => sources.push(Source::Bytes { name, bytes }),
            Err(StorageError::Missing { place }) => {
                let expected = format!("the component {digest} that the run began with");
                let found = format!("none: {place} is not there");
                let mend = "without it no call of it can be made or executed again; bring the file back";
                faults.push(fault(&name, "file", &expected, &found, mend));
            }
            Err(error) => return Err(error.into()),
        }
    }
    match patiently(load_each(sandbox, sources)).await {
        Ok(loaded) if faults.is_empty() => Ok(loaded),
        Ok(_) => Err(CliError::load(faults)),
        Err(CliError::Load(Faults(more))) => Err(CliError::load(faults.into_iter().chain(more).collect())),
        Err(other) => Err(other),
    }
}

/// Loads each, side by side.
async fn load_each(sandbox: &Sandbox, sources: Vec<Source>) -> Result<Vec<Loaded>, CliError> {
    let start = |source| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.load(source).await })
    };
    let loads: Vec<_> = sources.into_iter().map(start).collect();
    let (mut loaded, mut faults) = (Vec::new(), Vec::new());
    for load in loads {
        match load.await.map_err(|error| CliError::Ours(error.to_string()))? {
            Ok(component) => loaded.push(component),
            Err(mut more) => faults.append(&mut more),
        }
    }
    if faults.is_empty() { Ok(loaded) } else { Err(CliError::load(faults)) }
}

fn check_names(files: &[(PathBuf, Loaded)]) -> Result<(), CliError> {
    let mut faults = Vec::new();
    for (index, (path, loaded)) in files.iter().enumerate() {
        let name = &loaded.manifest.name;
        if let Some((other, _)) = files[..index].iter().find(|(_, before)| before.manifest.name == *name) {
            let found = format!("`{name}` is also the name of {}", other.display());
            faults.push(fault(
                &path.display().to_string(),
                "name",
                "a name of its own",
                &found,
                "load one of them",
            ));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(CliError::Load(Faults(faults))) }
}

/// Every skill says what arguments it takes, in a schema that is one.
fn check_schemas(files: &[(PathBuf, Loaded)]) -> Result<(), CliError> {
    let faults = files.iter().filter_map(|(path, loaded)| schema_fault(&path.display().to_string(), loaded));
    let faults: Vec<Fault> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(CliError::Load(Faults(faults))) }
}

fn schema_fault(file: &str, loaded: &Loaded) -> Option<Fault> {
    if loaded.manifest.kind != Kind::Skill {
        return None;
    }
    let found = match &loaded.manifest.args {
        None => "neither `[args]` nor the export `checkrein:skill/schema`".to_owned(),
        Some(schema) => checkrein_harness::action::schema_fault(schema)?,
    };
    let mend = "state one in skill.toml as [args], with a bounded cost for each value";
    Some(fault(file, "schema", "a JSON Schema of its arguments", &found, mend))
}

/// Runs the steps of loading, with the one that the sandbox cannot know: whether the schema of the
/// arguments can be used. What passes them all is loaded by a configuration.
pub async fn check(sandbox: &Sandbox, file: &Path) -> LoadReport {
    let mut report = sandbox.check(file).await;
    if let Some(loaded) = &report.loaded {
        let result = match schema_fault(&report.file, loaded) {
            None => StepResult::Passed("arguments can be held against it".to_owned()),
            Some(fault) => StepResult::Failed(vec![fault]),
        };
        if matches!(result, StepResult::Failed(_)) {
            report.loaded = None;
        }
        report.steps.push(Step { name: "arguments", result });
    }
    report
}

/// The card of a component that a run began with, as the configuration has it now.
pub fn again(standing: &Standing, before: &ComponentCard, mode: Mode) -> ComponentCard {
    let Standing { config, operator, .. } = standing;
    let grant = config.grants.get(before.name()).cloned().unwrap_or_default();
    let gets = grants::effective(config, operator, &grant, &before.manifest, mode);
    ComponentCard {
        limits: gets.limits,
        facts: gets.facts,
        settings: grant.settings,
        granted: gets.reach,
        effects: gets.effects,
        max_score: grant.max_score,
        ..before.clone()
    }
}

/// Which verifiers judge what, as the configuration says.
pub fn bound(config: &Config) -> Vec<Binding> {
    let entries = config.verifiers.iter();
    entries
        .map(|entry| Binding {
            verifier: entry.name.clone(),
            on: entry.on.clone(),
            on_facts: entry.on_facts.clone(),
            settings: entry.settings.clone(),
        })
        .collect()
}

fn card(standing: &Standing, loaded: &Loaded, mode: Mode) -> ComponentCard {
    let Standing { config, operator, .. } = standing;
    let manifest = &loaded.manifest;
    let grant = config.grants.get(&manifest.name).cloned().unwrap_or_default();
    let gets = grants::effective(config, operator, &grant, manifest, mode);
    ComponentCard {
        component: loaded.digest,
        limits: gets.limits,
        facts: gets.facts,
        settings: grant.settings,
        granted: gets.reach,
        effects: gets.effects,
        max_score: grant.max_score,
        manifest: manifest.clone(),
    }
}

/// Everything that the grants say and that can never match these components, or that no call is
/// given.
pub fn grant_faults(config: &Config, manifests: &[&Manifest], protected: &[Protected]) -> Vec<Fault> {
    let file = config.place();
    let known: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    let of = |(name, grant): (&String, &Grant)| match manifests.iter().find(|one| one.name == *name) {
        Some(manifest) => grants::faults(&file, grant, manifest, protected),
        None => vec![unknown(&file, &format!("grant.{name}"), "component", name, &known)],
    };
    config.grants.iter().flat_map(of).collect()
}

fn unknown(file: &str, place: &str, what: &str, name: &str, known: &[&str]) -> Fault {
    let mend =
        checkrein_contract::document::nearest(name, known).map(|near| format!("did you mean `{near}`?"));
    let expected = format!("a {what} that is loaded ({})", known.join(", "));
    Fault {
        place: place.to_owned(),
        ..fault(
            file,
            "semantics",
            &expected,
            &format!("`{name}`"),
            &mend.unwrap_or_else(|| "load it, or remove this".to_owned()),
        )
    }
}

fn bind(file: &str, config: &Config, components: &Components, faults: &mut Vec<Fault>) -> Vec<Binding> {
    let verifiers: Vec<&str> = components.verifiers.iter().map(ComponentCard::name).collect();
    let skills: Vec<&str> = components.skills.iter().map(ComponentCard::name).collect();
    for (index, entry) in config.verifiers.iter().enumerate() {
        if !verifiers.contains(&entry.name.as_str()) {
            faults.push(unknown(
                file,
                &format!("verifier[{index}].use"),
                "verifier",
                &entry.name,
                &verifiers,
            ));
        }
        for name in entry.on.iter().filter(|name| *name != "*" && !skills.contains(&name.as_str())) {
            faults.push(unknown(file, &format!("verifier[{index}].on"), "skill", name, &skills));
        }
        let written = |pattern: &String| {
            components.skills.iter().any(|card| card.facts.iter().any(|own| overlap(own, pattern)))
        };
        for pattern in entry.on_facts.iter().filter(|pattern| !written(pattern)) {
            let expected = "subjects that a loaded skill writes";
            let place = format!("verifier[{index}].on-facts");
            faults.push(Fault {
                place,
                ..fault(
                    file,
                    "semantics",
                    expected,
                    &format!("{pattern:?}"),
                    "it can never match; mend or remove it",
                )
            });
        }
    }
    bound(config)
}
