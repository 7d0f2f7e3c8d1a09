//! The operator's own file, `operator.toml`: where secrets come from, how far a grant may raise a
//! limit, and whether the gateway stands behind its own wall.
//!
//! It is kept apart from the configuration of a project, which may come from a stranger and can
//! only refer to secrets by name.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use checkrein_contract::document::{Document, Section};
use checkrein_contract::id::is_segment;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::problem::{Fault, Faults};
use checkrein_sandbox::{SECRET_MAX, check_secret};
use serde_json::Value;

use crate::config::{read_changed_limits, read_text};
use crate::error::{CliError, fault};

/// The `schema` that the file may state.
const SCHEMA: &str = "checkrein/operator@1";

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A variable of the environment.
    Env(String),
    /// A file that holds the value alone.
    File(PathBuf),
}

impl Source {
    /// Where that is, for people.
    pub fn describe(&self) -> String {
        match self {
            Source::Env(name) => format!("the variable {name} of the environment"),
            Source::File(path) => format!("the file {}", path.display()),
        }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// Why there is none, in words that follow the source. They never hold a part of the value.
    pub fn value(&self) -> Result<String, String> {
        let value = match self {
            Source::Env(name) => match std::env::var(name) {
                Ok(value) => value,
                Err(std::env::VarError::NotPresent) => return Err("is not set".to_owned()),
                Err(std::env::VarError::NotUnicode(_)) => return Err("is no text".to_owned()),
            },
            Source::File(path) => read_secret(path)?,
        };
        check_value(&value)?;
        Ok(value)
    }
}

fn read_secret(path: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    // What is no file may never end, and a value fits a header.
    if !metadata.is_file() || metadata.len() > SECRET_MAX as u64 + 2 {
        return Err("is no ordinary file of a value's size".to_owned());
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn check_value(value: &str) -> Result<(), String> {
    check_secret(value).map_err(|fault| format!("gives a value that cannot be kept secret: {fault}"))?;
    // A header may hold other bytes, and spaces around it would be cut off: what is sent would not be
    // what is searched for.
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || value.trim() != value {
        return Err("gives a value that no header can carry: it has other characters than printable ASCII, or spaces around it".to_owned());
    }
    Ok(())
}

/// What stands in the operator's own file, or holds without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Where it is looked for; `None` if the environment names no home.
    pub place: Option<PathBuf>,
    /// Secrets by name.
    pub secrets: BTreeMap<String, Source>,
    /// The most that a grant can give.
    pub ceiling: Limits,
    /// Whether verifications run in a process of their own.
    pub process: bool,
}

impl Default for Operator {
    fn default() -> Self {
        let most = |limits: Limits, key: &LimitKey| limits.with(*key, key.default_ceiling());
        Operator {
            file: None,
            place: None,
            secrets: BTreeMap::new(),
            ceiling: LimitKey::ALL.iter().fold(Limits::default(), most),
            process: true,
        }
    }
}

impl Operator {
    /// The operator's file: the one that is named, else the one in the operator's own folder, else
    /// what holds without one. `project` is the folder of the configuration in force, if there is one.
    ///
    /// # Errors
    ///
    /// All mistakes in it at once; or if somebody else could have written it.
    pub fn find(named: Option<&Path>, project: Option<&Path>) -> Result<Self, CliError> {
        if let Some(file) = named {
            return Self::read(file);
        }
        let place = own_folder().map(|folder| folder.join("checkrein/operator.toml"));
        match place {
            Some(file) if file.exists() => {
                project.map_or(Ok(()), |project| check_apart(&file, project))?;
                Ok(Operator { place: Some(file.clone()), ..Self::read(&file)? })
            }
            place => Ok(Operator { place, ..Operator::default() }),
        }
    }

    fn read(file: &Path) -> Result<Self, CliError> {
        check_mode(file)?;
        let document = Document::parse(&file.display().to_string(), &read_text(file)?);
        let root = document.root();
        let mut operator = Operator { file: Some(file.to_owned()), ..Operator::default() };
        if root.has("schema") {
            root.need_exactly("schema", SCHEMA);
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        for (name, section) in root.named_sections("secrets") {
            if !is_segment(&name) {
                root.fault("secrets", "names of letters, digits, `.`, `_`, `-`", &format!("{name:?}"), "");
            }
            operator.secrets.extend(read_source(section, folder).map(|source| (name, source)));
        }
        if let Some(ceiling) = root.section("ceiling") {
            operator.ceiling = read_ceiling(ceiling, operator.ceiling);
        }
        if let Some(gateway) = root.section("gateway") {
            operator.process = gateway.get("process").unwrap_or(true);
            gateway.close();
        }
        root.close();
        document.finish(Some(operator)).map_err(CliError::Input)
    }

    /// The name of the file, or of where it would be.
    pub fn describe(&self) -> String {
        match (&self.file, &self.place) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(place)) => format!("{} (which is not there)", place.display()),
            (None, None) => "the operator's file (name one with --operator FILE)".to_owned(),
        }
    }

    /// What the ceiling of a limit is called in messages.
    pub fn ceiling_of(&self, key: LimitKey) -> String {
        let value = key.show(self.ceiling.get(key));
        if key.most() == Some(self.ceiling.get(key)) {
            return format!("{value}, for which the engine is laid out");
        }
        format!("{value}, the ceiling of {}", self.describe())
    }

    /// The value of the secret of this name.
    ///
    /// # Errors
    ///
    /// As a fault of the file that refers to it: what is missing, and where to say it.
    pub fn secret(&self, name: &str, file: &str, place: &str) -> Result<String, Box<Fault>> {
        let wrong = |expected: &str, found: &str, mend: &str| {
            Box::new(Fault { place: place.to_owned(), ..fault(file, "secrets", expected, found, mend) })
        };
        let Some(source) = self.secrets.get(name) else {
            let expected = format!("a secret `{name}` in {}", self.describe());
            let mend =
                format!("state there where it comes from: [secrets.{name}] env = \"…\", or file = \"…\"");
            return Err(wrong(&expected, "none of this name", &mend));
        };
        source.value().map_err(|why| {
            let found = format!("{} {why}", source.describe());
            wrong(&format!("a value for the secret `{name}`"), &found, "set it, or mend its source")
        })
    }
}

/// `$XDG_CONFIG_HOME`, else `~/.config`; a relative one is ignored, as its standard asks.
fn own_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
}

/// A project that brings the operator's file along would grant itself what it likes.
fn check_apart(file: &Path, project: &Path) -> Result<(), CliError> {
    let real = |path: &Path| path.canonicalize().map_err(|error| CliError::unreadable(path, &error));
    let (file, project) = (real(file)?, real(project)?);
    if !file.starts_with(&project) {
        return Ok(());
    }
    let found = format!("it lies inside the project {}", project.display());
    let mend = "move one of them, or name it: --operator FILE";
    Err(one_fault(&file, "a file of the operator's own, outside of the project", &found, mend))
}

/// Nobody else may be able to write the file, or put another in its place: on the way to it, as it
/// is named and as it is once links are followed, all belongs to this user or to root.
fn check_mode(file: &Path) -> Result<(), CliError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| CliError::unreadable(&path, &error)
    };
    let written = std::path::absolute(file).map_err(unreadable(file))?;
    let real = file.canonicalize().map_err(unreadable(file))?;
    let user = rustix::process::geteuid().as_raw();
    for path in real.ancestors().chain(written.ancestors()) {
        // A link is looked at itself, and then what it leads to.
        for metadata in [std::fs::metadata(path), std::fs::symlink_metadata(path)] {
            let metadata = metadata.map_err(unreadable(path))?;
            let Some((why, mend)) = in_other_hands(&metadata, user) else { continue };
            let found = format!("{} {why}", path.display());
            let mend = format!("{mend} {}", path.display());
            return Err(one_fault(file, "a file that the operator alone can write", &found, &mend));
        }
    }
    Ok(())
}

/// Why what this is about can be changed by others than this user and root, and what would mend it.
fn in_other_hands(metadata: &Metadata, user: u32) -> Option<(String, &'static str)> {
    changed_by_others(metadata.uid(), metadata.mode(), metadata.is_dir(), metadata.is_symlink(), user)
}

fn changed_by_others(
    owner: u32,
    mode: u32,
    is_folder: bool,
    is_link: bool,
    user: u32,
) -> Option<(String, &'static str)> {
    if owner != user && owner != 0 {
        return Some((format!("belongs to another user (number {owner})"), "chown root"));
    }
    // In a sticky folder only the owner of a file puts another in its place. A link has no mode.
    let sticky = is_folder && mode & 0o1000 != 0;
    let open = mode & 0o022 != 0 && !sticky && !is_link;
    open.then(|| (format!("can be written by others (mode {:o})", mode & 0o7777), "chmod go-w"))
}

fn one_fault(file: &Path, expected: &str, found: &str, mend: &str) -> CliError {
    CliError::Input(Faults(vec![fault(&file.display().to_string(), "file", expected, found, mend)]))
}

fn read_source(section: Section<'_>, folder: &Path) -> Option<Source> {
    let env: Option<String> = section.get("env");
    let file: Option<String> = section.get("file");
    if section.get::<Value>("value").is_some() {
        section.fault(
            "value",
            "where it comes from",
            "a value",
            "put it in a file, and name that: file = \"…\"",
        );
    }
    let source = match (env, file) {
        (Some(name), None) if !name.is_empty() && !name.contains(['=', '\0']) => Some(Source::Env(name)),
        (None, Some(path)) if !path.is_empty() => Some(Source::File(folder.join(path))),
        (Some(_), None) | (None, Some(_)) => {
            section.fault("env", "a name", "a text that is none", "");
            None
        }
        (Some(_), Some(_)) => {
            section.fault("file", "one source", "two, `env` and `file`", "remove one of them");
            None
        }
        (None, None) => {
            // What is there and of another type was told already.
            if !section.has("env") && !section.has("file") && !section.has("value") {
                section.fault("env", "one source, `env` or `file`", "none", "such as env = \"API_KEY\"");
            }
            None
        }
    };
    section.close();
    source
}

fn read_ceiling(section: Section<'_>, mut ceiling: Limits) -> Limits {
    for key in LimitKey::ALL.iter().copied().filter(|key| !key.is_fixed()) {
        let Some(most) = key.most() else { continue };
        let raised = section.parsed(key.as_str(), key.expected(), |text| key.parse_value(text));
        if let Some(value) = raised.filter(|value| *value > most) {
            let expected = format!("at most {}, for which the engine is laid out", key.show(most));
            section.fault(key.as_str(), &expected, &key.show(value), "state that, or less");
        }
    }
    for (key, value) in read_changed_limits(section).0 {
        ceiling = ceiling.with(key, value);
    }
    ceiling
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(text: &str) -> Result<Operator, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operator.toml");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        Operator::find(Some(&file), None).map_err(|error| error.to_string())
    }

    #[test]
    fn sources_ceilings_and_the_gateway() {
        let operator = read(
            "schema = \"checkrein/operator@1\"\n[secrets.a]\nenv = \"A\"\n[secrets.b]\nfile = \"/b\"\n\
             [ceiling]\nmemory = \"1 GiB\"\n[gateway]\nprocess = false\n",
        )
        .unwrap();
        assert_eq!(operator.secrets["a"], Source::Env("A".to_owned()));
        assert_eq!(operator.secrets["b"], Source::File("/b".into()));
        assert_eq!(operator.ceiling.get(LimitKey::Memory), 1 << 30);
        assert_eq!(operator.ceiling.get(LimitKey::Wall), LimitKey::Wall.default_ceiling());
        assert!(!operator.process && Operator::default().process);
    }

    #[test]
    fn every_mistake_is_named() {
        let told = read(
            "[secrets.a]\n[secrets.b]\nenv = \"B\"\nfile = \"b\"\n[secrets.c]\nvalue = \"hush-hush\"\n\
             [ceiling]\ntables = 100\nstack = \"8 MiB\"\nmemroy = \"1 GiB\"\n[gateway]\nproces = false\n",
        )
        .unwrap_err();
        for what in [
            "one source, `env` or `file`",
            "two, `env` and `file`",
            "put it in a file",
            "at most 32, for which the engine is laid out",
            "a limit that can be changed",
            "did you mean `memory`?",
            "did you mean `process`?",
        ] {
            assert!(told.contains(what), "`{what}` is not in\n{told}");
        }
        assert!(!told.contains("hush-hush"), "{told}");
    }

    #[test]
    fn a_value_that_cannot_be_kept_secret_is_refused_without_being_told() {
        for value in ["hushy", "", "two\nlines", " padded ", "\u{e9}clair", &"x".repeat(SECRET_MAX + 1)] {
            let why = check_value(value).unwrap_err();
            assert!(value.trim().is_empty() || !why.contains(value.trim()), "{why}");
        }
        assert_eq!(check_value("Bearer abc"), Ok(()));
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operator.toml");
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&file, 0o620);
        let told = Operator::find(Some(&file), None).unwrap_err().to_string();
        assert!(told.contains("mode 620") && told.contains("chmod go-w"), "{told}");
        mode(&file, 0o600);
        mode(folder.path(), 0o777);
        assert!(Operator::find(Some(&file), None).is_err());
        mode(folder.path(), 0o700);
        assert!(Operator::find(Some(&file), None).is_ok());
    }

    #[test]
    fn a_folder_further_up_that_others_can_write_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let middle = top.path().join("middle");
        let file = middle.join("own/operator.toml");
        std::fs::create_dir_all(middle.join("own")).unwrap();
        std::fs::write(&file, "").unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&file, 0o600);
        mode(&middle.join("own"), 0o700);
        // The file and its folder are in order, and both could be replaced.
        mode(&middle, 0o777);
        let told = Operator::find(Some(&file), None).unwrap_err().to_string();
        assert!(told.contains("middle can be written by others (mode 777)"), "{told}");
        // So could a link on the way to it.
        let real = top.path().join("real");
        std::fs::create_dir(&real).unwrap();
        mode(&real, 0o700);
        std::fs::write(real.join("operator.toml"), "").unwrap();
        mode(&real.join("operator.toml"), 0o600);
        std::os::unix::fs::symlink(&real, middle.join("link")).unwrap();
        let told = Operator::find(Some(&middle.join("link/operator.toml")), None).unwrap_err().to_string();
        assert!(told.contains("middle can be written by others"), "{told}");
        mode(&middle, 0o755);
        assert!(Operator::find(Some(&middle.join("link/operator.toml")), None).is_ok());
        assert!(Operator::find(Some(&file), None).is_ok());
    }

    #[test]
    fn what_belongs_to_another_user_is_in_other_hands() {
        let told = |owner, mode, is_folder| changed_by_others(owner, mode, is_folder, false, 1000);
        for owner in [0, 1000] {
            assert_eq!(told(owner, 0o644, false), None);
            assert_eq!(told(owner, 0o1777, true), None);
            assert!(told(owner, 0o775, true).is_some() && told(owner, 0o1666, false).is_some());
        }
        let (why, _) = told(1001, 0o600, false).unwrap();
        assert!(why.contains("belongs to another user (number 1001)"), "{why}");
        assert!(told(1001, 0o1777, true).is_some());
        assert!(changed_by_others(1001, 0o777, false, true, 1000).is_some());
        assert_eq!(changed_by_others(1000, 0o777, false, true, 1000), None);
    }

    #[test]
    fn a_ceiling_of_tables_is_held_to_what_the_engine_is_laid_out_for() {
        let told = read("[ceiling]\ntable-elements = 1000000\n").unwrap_err();
        assert!(told.contains("for which the engine is laid out"), "{told}");
        let operator = read("[ceiling]\ntable-elements = 100000\n").unwrap();
        assert_eq!(operator.ceiling.get(LimitKey::TableElements), 100_000);
    }

    #[test]
    fn the_bounds_of_a_secret_are_the_sandboxs() {
        let longest = "x".repeat(SECRET_MAX);
        assert_eq!((check_value(&longest), check_value("sixsix")), (Ok(()), Ok(())));
        for value in [format!("{longest}x"), "five5".to_owned()] {
            assert!(check_secret(&value).is_err() && check_value(&value).is_err());
        }
    }

    #[test]
    fn a_file_inside_the_project_must_be_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".config/operator.toml");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        assert!(check_apart(&file, folder.path()).is_err());
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(check_apart(&file, elsewhere.path()).is_ok());
    }
}
