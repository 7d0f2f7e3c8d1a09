//! The components of a configuration: found, loaded, and joined with what they are granted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use checkrein_contract::event::{Binding, ComponentCard};
use checkrein_contract::grant::Granted;
use checkrein_contract::id::{covers, overlap};
use checkrein_contract::limits::Limits;
use checkrein_contract::manifest::Kind;
use checkrein_contract::problem::{Fault, Faults};
use checkrein_sandbox::{Loaded, Sandbox};

use crate::config::{Config, Grant};
use crate::error::{CliError, fault};
use crate::output;

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
    pub async fn load(sandbox: &Sandbox, config: &Config) -> Result<Self, CliError> {
        let files = patiently(load_files(sandbox, find(config)?)).await?;
        check_names(&files)?;
        check_schemas(&files)?;
        let file = config.file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
        let mut faults = Vec::new();
        let mut components = Components::default();
        for (path, loaded) in &files {
            let grant = config.grants.get(&loaded.manifest.name).cloned().unwrap_or_default();
            match card(&file, config, &grant, loaded) {
                Ok(card) if loaded.manifest.kind == Kind::Skill => components.skills.push(card),
                Ok(card) => components.verifiers.push(card),
                Err(fault) => faults.push(*fault),
            }
            components.files.push((path.clone(), loaded.clone()));
        }
        check_grants(&file, config, &files, &mut faults);
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
    let (mut loaded, mut faults) = (Vec::new(), Vec::new());
    let tasks: Vec<_> = files
        .into_iter()
        .map(|path| {
            let (sandbox, file) = (sandbox.clone(), path.clone());
            (path, tokio::spawn(async move { sandbox.load(file.as_path()).await }))
        })
        .collect();
    for (path, task) in tasks {
        match task.await.map_err(|error| CliError::Ours(error.to_string()))? {
            Ok(component) => loaded.push((path, component)),
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
    let skills = files.iter().filter(|(_, loaded)| loaded.manifest.kind == Kind::Skill);
    let faults = skills.filter_map(|(path, loaded)| {
        let found = match &loaded.manifest.args {
            None => "neither `[args]` nor the export `checkrein:skill/schema`".to_owned(),
            Some(schema) => checkrein_harness::action::schema_fault(schema)?,
        };
        let expected = "a JSON Schema of its arguments";
        Some(fault(
            &path.display().to_string(),
            "schema",
            expected,
            &found,
            "state it in skill.toml as [args]",
        ))
    });
    let faults: Vec<Fault> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(CliError::Load(Faults(faults))) }
}

fn card(file: &str, config: &Config, grant: &Grant, loaded: &Loaded) -> Result<ComponentCard, Box<Fault>> {
    let manifest = &loaded.manifest;
    let facts = match &grant.facts {
        None => manifest.facts.clone(),
        Some(granted) => {
            let wider = granted.iter().find(|pattern| !manifest.facts.iter().any(|own| covers(own, pattern)));
            if let Some(wider) = wider {
                let place = format!("grant.{}.facts", manifest.name);
                let expected = format!("subjects within its manifest's ({})", manifest.facts.join(", "));
                let found = format!("{wider:?}");
                return Err(Box::new(Fault { place, ..fault(file, "semantics", &expected, &found, "") }));
            }
            granted.clone()
        }
    };
    Ok(ComponentCard {
        component: loaded.digest,
        limits: limits(config, grant, loaded),
        facts,
        settings: grant.settings.clone(),
        granted: Granted::default(),
        effects: manifest.effects,
        max_score: grant.max_score,
        manifest: manifest.clone(),
    })
}

/// Default limits, those of the configuration, and those of the grant; a component that asks for
/// less than it would get is held to what it asks for.
fn limits(config: &Config, grant: &Grant, loaded: &Loaded) -> Limits {
    let mut limits = Limits::default().overlay(&config.limits);
    for (key, asked) in &loaded.manifest.capabilities.limits.0 {
        if *asked < limits.get(*key) {
            limits = limits.with(*key, *asked);
        }
    }
    limits.overlay(&grant.limits)
}

fn check_grants(file: &str, config: &Config, files: &[(PathBuf, Loaded)], faults: &mut Vec<Fault>) {
    let known: Vec<&str> = files.iter().map(|(_, loaded)| loaded.manifest.name.as_str()).collect();
    for name in config.grants.keys().filter(|name| !known.contains(&name.as_str())) {
        faults.push(unknown(file, &format!("grant.{name}"), "component", name, &known));
    }
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
