//! What stands before anything runs: the configuration, the operator's own file, and the secrets
//! that the grants name; checked together, so that all mistakes are told at once.

use std::path::{Path, PathBuf};

use checkrein_contract::limits::{LimitChanges, LimitKey};
use checkrein_contract::problem::{Fault, Faults};
use checkrein_sandbox::{Protected, Secrets};

use crate::args::Global;
use crate::config::{Config, project_folder, state_folder};
use crate::error::{CliError, both, fault};
use crate::operator::{Operator, Source};

/// What stands before anything runs.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The configuration.
    pub config: Config,
    /// The operator's file.
    pub operator: Operator,
    /// The values of the secrets that the grants name.
    pub secrets: Secrets,
    /// What no granted folder may reach.
    pub protected: Vec<Protected>,
    /// Whether nothing may leave.
    pub dry: bool,
}

impl Standing {
    /// What stands for these flags.
    ///
    /// # Errors
    ///
    /// All mistakes in both files; a limit above its ceiling; a secret that is not there.
    pub fn find(global: &Global) -> Result<Self, CliError> {
        Self::of(global, false)
    }

    /// What stands for a dry run, or for another: nothing leaves a dry one, so no secret is looked
    /// up for it.
    ///
    /// # Errors
    ///
    /// As for [`Standing::find`].
    pub fn of(global: &Global, dry: bool) -> Result<Self, CliError> {
        let (config, operator) = files(global)?;
        let mut faults = above_ceiling(&config, &operator);
        let secrets = if dry { Secrets::default() } else { resolve(&config, &operator, &mut faults) };
        if faults.is_empty() {
            let protected = protected(global, &config, &operator)?;
            Ok(Standing { config, operator, secrets, protected, dry })
        } else {
            Err(CliError::Input(Faults(faults)))
        }
    }
}

/// Configuration and operator's file, without a look at the values of secrets.
///
/// # Errors
///
/// All mistakes in both.
pub fn files(global: &Global) -> Result<(Config, Operator), CliError> {
    let config = Config::find(global);
    let folder = folder_of(global)?;
    both(config, Operator::find(global.operator.as_deref(), folder.as_deref()))
}

/// The operator's file alone, for what needs no configuration.
///
/// # Errors
///
/// All mistakes in it.
pub fn operator(global: &Global) -> Result<Operator, CliError> {
    Operator::find(global.operator.as_deref(), folder_of(global)?.as_deref())
}

/// What no granted folder may reach, whatever the grant says: the state, what says who gets what,
/// and what runs.
///
/// # Errors
///
/// If there is no current folder.
pub fn protected(global: &Global, config: &Config, operator: &Operator) -> Result<Vec<Protected>, CliError> {
    let mut all = of_operator(operator);
    all.push(Protected::Folder(state_folder(global)?));
    all.extend(config.file.clone().map(Protected::Unwritten));
    // Who replaces a component gets what is granted to it.
    let folder = config.folder()?;
    let mut seen: Vec<PathBuf> = Vec::new();
    for pattern in &config.load {
        // A pattern that is none is told where components are loaded.
        let Ok(found) = glob::glob(&folder.join(pattern).to_string_lossy()) else { continue };
        for file in found.filter_map(Result::ok) {
            // All files of a folder are on the same way, but for links.
            let above = file.parent().map(Path::to_owned).unwrap_or_default();
            if file.is_symlink() || !seen.contains(&above) {
                seen.push(above);
                all.push(Protected::Unwritten(file));
            }
        }
    }
    Ok(all)
}

/// Of that, what holds without any configuration: the operator's file, the files of secrets, and
/// this program, which is started anew for each worker.
pub fn of_operator(operator: &Operator) -> Vec<Protected> {
    let mut all = Vec::new();
    // Where there is no file yet, whoever writes the folder could make one.
    all.extend(operator.place.clone().map(Protected::Unwritten));
    all.extend(operator.file.clone().map(Protected::Unread));
    all.extend(operator.secrets.values().filter_map(|source| match source {
        Source::File(path) => Some(Protected::Unread(path.clone())),
        Source::Env(_) => None,
    }));
    all.extend(std::env::current_exe().ok().map(Protected::Unwritten));
    all
}

/// The folder of the configuration in force, whether that can be read or not; `None` without one.
fn folder_of(global: &Global) -> Result<Option<PathBuf>, CliError> {
    let Some(file) = &global.config else { return project_folder() };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(Some(parent.unwrap_or(Path::new(".")).to_owned()))
}

/// Every limit that the configuration raises above its ceiling.
pub fn above_ceiling(config: &Config, operator: &Operator) -> Vec<Fault> {
    let file = config.place();
    let default = [("limits.default".to_owned(), &config.limits)];
    let grants = config.grants.iter().map(|(name, grant)| (format!("grant.{name}.limits"), &grant.limits));
    let above = |(place, changes): (String, &LimitChanges)| {
        let over = changes.0.iter().filter(|(key, value)| **value > operator.ceiling.get(**key));
        over.map(|(key, value)| above(&file, &place, *key, *value, operator)).collect::<Vec<_>>()
    };
    default.into_iter().chain(grants).flat_map(above).collect()
}

fn above(file: &str, place: &str, key: LimitKey, value: u64, operator: &Operator) -> Fault {
    let expected = format!("at most {}", operator.ceiling_of(key));
    let mend = match key.most() == Some(operator.ceiling.get(key)) {
        true => "ask for less".to_owned(),
        false => format!("ask for less, or raise it there: [ceiling] {key} = {}", key.write(value)),
    };
    Fault { place: format!("{place}.{key}"), ..fault(file, "semantics", &expected, &key.show(value), &mend) }
}

fn resolve(config: &Config, operator: &Operator, faults: &mut Vec<Fault>) -> Secrets {
    let file = config.place();
    let mut values: Vec<(String, String)> = Vec::new();
    for (grant, granted) in &config.grants {
        for (index, secret) in granted.reach.secrets.iter().enumerate() {
            if values.iter().any(|(known, _)| *known == secret.name) {
                continue;
            }
            match operator.secret(&secret.name, &file, &format!("grant.{grant}.secrets[{index}]")) {
                Ok(value) => values.push((secret.name.clone(), value)),
                Err(fault) => faults.push(*fault),
            }
        }
    }
    Secrets::new(values)
}
