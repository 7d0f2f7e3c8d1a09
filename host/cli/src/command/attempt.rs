//! `try`: a stranger's component, run once with nothing granted, under recording. Everything is
//! in a folder for temporary files, and nothing is kept.

mod portrait;
mod tell;

use std::path::PathBuf;
use std::sync::Arc;

use checkrein_contract::cases::{self, Case, Expect};
use checkrein_contract::grant::{Access, Folder, Granted};
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{Assessment, Body, Call, Failure, Outcome, Subgoal, Submission, Verdict};
use checkrein_contract::manifest::Kind;
use checkrein_contract::network::Rule;
use checkrein_contract::port::{
    Blobs, End, Execution, Guests, NoFacts, NoObserver, Ran, Setting, StorageError, Tree,
};
use checkrein_contract::problem::Faults;
use checkrein_contract::section;
use checkrein_contract::task::Mode;
use checkrein_harness::action::unfit;
use checkrein_harness::driver::Clock;
use checkrein_sandbox::{LoadReport, Loaded, Protected, Sandbox, Secrets, check_folder};
use checkrein_store::State;
use serde_json::{Map, Value, json};

use super::call::{check_inputs, read_input};
use crate::args::{Global, TryArgs};
use crate::components;
use crate::config::{Config, Grant};
use crate::error::{CliError, exit};
use crate::grants::{Effective, effective};
use crate::operator::Operator;
use crate::standing;
use crate::world::{self, SystemClock};
use portrait::Portrait;

/// What was asked of a component that loads.
struct Attempt {
    assessed: Option<Ran<Assessment>>,
    /// Where the arguments come from, or why there are none.
    args: Result<Prepared, String>,
    executed: Option<Ran<Execution>>,
    verified: Option<Ran<Result<Verdict, Failure>>>,
}

/// What a call is made with.
struct Prepared {
    args: Map<String, Value>,
    settings: Value,
    goal: String,
    /// Where they come from, in a few words.
    from: String,
    /// Files below `/in` and `/artifacts`, as `in/<name>`: place and content.
    files: Vec<(String, Content)>,
}

enum Content {
    Text(String),
    File(PathBuf),
}

/// Everything that is told.
struct Told<'t> {
    portrait: &'t Portrait,
    report: &'t LoadReport,
    loaded: Option<&'t Loaded>,
    gets: Option<&'t Effective>,
    once: &'t Granted,
    attempt: Option<&'t Attempt>,
}

pub(super) async fn attempt(global: &Global, args: &TryArgs) -> Result<u8, CliError> {
    let asked = Asked::read(args)?;
    let once = asked.once.clone();
    let operator = standing::operator(global)?;
    let folder = tempfile::Builder::new().prefix("checkrein-try-").tempdir();
    let folder = folder.map_err(|error| StorageError::of_io(&std::env::temp_dir(), &error))?;
    let state = State::open(&folder.path().join("state"))?;
    check_once(&once, &operator, &state)?;
    let sandbox = world::sandbox(&state, &operator, Secrets::default()).await?;
    let report = components::check(&sandbox, args.file.as_path()).await;
    let portrait = Portrait::of(&args.file);
    let told =
        Told { portrait: &portrait, report: &report, loaded: None, gets: None, once: &once, attempt: None };
    if !report.faults().is_empty() {
        tell::tell(global, &told);
        return Ok(exit::LOAD);
    }
    let loaded = sandbox.load(args.file.as_path()).await.map_err(|faults| CliError::Load(Faults(faults)))?;
    let gets = gets(&operator, &loaded);
    let trial = Trial { sandbox, blobs: Arc::new(state.blobs()), loaded: &loaded, gets: &gets, asked };
    let attempt = trial.run(SystemClock::new().now()).await?;
    let told = Told { loaded: Some(&loaded), gets: Some(&gets), attempt: Some(&attempt), ..told };
    tell::tell(global, &told);
    Ok(if attempt.went_wrong() { exit::DIFFERENCE } else { exit::DONE })
}

/// Limits as they would be without any grant.
fn gets(operator: &Operator, loaded: &Loaded) -> Effective {
    effective(&Config::default(), operator, &Grant::default(), &loaded.manifest, Mode::ReadWrite)
}

impl Attempt {
    /// Whether a part of it broke, ran into a limit, or its own verification turns its outcome
    /// down. A failure that says why is an answer, and so is a refusal.
    fn went_wrong(&self) -> bool {
        let assessed = self.assessed.as_ref().is_some_and(|ran| !matches!(ran.end, End::Returned(_)));
        let executed = self.executed.as_ref().is_some_and(|ran| !matches!(ran.end, End::Returned(_)));
        let verified = self.verified.as_ref().is_some_and(|ran| match &ran.end {
            End::Returned(Ok(verdict)) => verdict.rejects(),
            End::Returned(Err(_)) => false,
            _ => true,
        });
        assessed || executed || verified
    }
}

/// What the person says, checked.
struct Asked {
    args: Option<Map<String, Value>>,
    inputs: Vec<(String, PathBuf)>,
    once: Granted,
}

impl Asked {
    fn read(args: &TryArgs) -> Result<Self, CliError> {
        let object = |text: &String| {
            serde_json::from_str(text).map_err(|error| {
                CliError::usage(
                    format!("the arguments are not a JSON object: {error}"),
                    "write them as --args '{\"key\": \"value\"}'",
                )
            })
        };
        let inputs = args.inputs.iter().map(|input| read_input(input)).collect::<Result<Vec<_>, _>>()?;
        check_inputs(&inputs)?;
        let mut once = Granted::default();
        for text in &args.grant_once {
            grant_once(&mut once, text)?;
        }
        Ok(Asked { args: args.args.as_ref().map(object).transpose()?, inputs, once })
    }
}

fn grant_once(once: &mut Granted, text: &str) -> Result<(), CliError> {
    let wrong = |why: &str, hint: &str| CliError::usage(format!("--grant-once {text:?}: {why}"), hint);
    if text.starts_with("ro ") || text.starts_with("rw ") || text.starts_with('/') {
        let folder = Folder::parse(text).map_err(|why| wrong(&why, "write --grant-once \"ro /folder\""))?;
        if folder.access == Access::ReadWrite {
            return Err(wrong("a component that is tried writes nowhere", "write `ro` in place of `rw`"));
        }
        once.files.push(folder);
        return Ok(());
    }
    let rule = Rule::parse(text).map_err(|fault| {
        wrong(&format!("expected {}, found {}", fault.expected, fault.found), &fault.mend)
    })?;
    once.network.push(rule);
    Ok(())
}

/// The folders that are granted once are held against this machine, as those of a grant are.
fn check_once(once: &Granted, operator: &Operator, state: &State) -> Result<(), CliError> {
    let mut protected = standing::of_operator(operator);
    protected.push(Protected::Folder(state.dir().to_owned()));
    for folder in &once.files {
        check_folder(folder, &protected).map_err(|why| {
            let message = format!("--grant-once \"{folder}\": that folder {why}");
            CliError::usage(message, "name a folder that can be given")
        })?;
    }
    Ok(())
}

/// One component under trial.
struct Trial<'t> {
    sandbox: Sandbox,
    blobs: Arc<dyn Blobs>,
    loaded: &'t Loaded,
    gets: &'t Effective,
    asked: Asked,
}

impl Trial<'_> {
    async fn run(&self, now: Timestamp) -> Result<Attempt, CliError> {
        let args = self.prepare();
        let mut attempt = Attempt { assessed: None, args, executed: None, verified: None };
        if self.loaded.manifest.kind == Kind::Verifier {
            return Ok(attempt);
        }
        let mut setting = self.setting(now);
        let subgoal = self.subgoal(attempt.args.as_ref().ok());
        attempt.assessed = Some(sound(self.sandbox.assess(setting.clone(), subgoal.clone()).await)?);
        let Ok(prepared) = &attempt.args else { return Ok(attempt) };
        let [input, artifacts] = self.place(prepared)?;
        setting.input = Some(input.path().to_owned());
        setting.artifacts = Some(artifacts.path().to_owned());
        let call = Call {
            id: "try".to_owned(),
            args: Value::Object(prepared.args.clone()),
            attempt: 1,
            seed: 0,
            settings: prepared.settings.clone(),
        };
        let executed = sound(self.sandbox.execute(setting.clone(), call.clone()).await)?;
        if let End::Returned(Execution { result: Ok(outcome), artifacts }) = &executed.end {
            let files: Vec<_> = artifacts.iter().map(|file| (file.path.clone(), file.digest)).collect();
            let work = self.blobs.tree(&files)?;
            setting.work = Some(work.path().to_owned());
            // A verification sees no folder of the host, and no network that was granted to its skill.
            setting.granted = Granted::default();
            let submission = self.submission(call, outcome.clone(), subgoal, prepared);
            attempt.verified = Some(sound(self.sandbox.verify(setting, submission).await)?);
        }
        attempt.executed = Some(executed);
        Ok(attempt)
    }

    fn setting(&self, now: Timestamp) -> Setting {
        Setting {
            component: self.loaded.digest,
            limits: self.gets.limits.clone(),
            input: None,
            artifacts: None,
            work: None,
            granted: self.asked.once.clone(),
            facts: Arc::new(NoFacts),
            observer: Arc::new(NoObserver),
            clock: now,
            seed: 0,
            recorded: None,
        }
    }

    fn subgoal(&self, prepared: Option<&Prepared>) -> Subgoal {
        let manifest = &self.loaded.manifest;
        let goal = prepared.map(|prepared| prepared.goal.clone()).filter(|goal| !goal.is_empty());
        Subgoal {
            id: "try".to_owned(),
            goal: goal.unwrap_or_else(|| manifest.terms.join(", ")),
            args: prepared.map_or_else(|| json!({}), |prepared| Value::Object(prepared.args.clone())),
            evidence: manifest.evidence.clone(),
            criteria: Vec::new(),
        }
    }

    fn submission(&self, call: Call, outcome: Outcome, subgoal: Subgoal, prepared: &Prepared) -> Submission {
        Submission {
            skill: self.loaded.manifest.name.clone(),
            version: self.loaded.manifest.version.clone(),
            subgoal,
            body: Body::Performed { call, outcome },
            inputs: Vec::new(),
            settings: prepared.settings.clone(),
        }
    }

    /// The arguments: those that were given, those of its own first case, or what its schema says.
    fn prepare(&self) -> Result<Prepared, String> {
        let files: Vec<(String, Content)> = self
            .asked
            .inputs
            .iter()
            .filter_map(|(_, path)| {
                let name = path.file_name()?.to_string_lossy().into_owned();
                Some((format!("in/{name}"), Content::File(path.clone())))
            })
            .collect();
        let own = |from: &str, args: Map<String, Value>, files| Prepared {
            args,
            settings: json!({}),
            goal: String::new(),
            from: from.to_owned(),
            files,
        };
        let prepared = match (&self.asked.args, self.case()) {
            (Some(args), _) => own("given", args.clone(), files),
            (None, Some(case)) => of_case(case, files),
            (None, None) => own("of its schema", of_schema(self.loaded.manifest.args.as_ref()), files),
        };
        let schema = self.loaded.manifest.args.clone().unwrap_or_else(|| json!({}));
        let wrong = unfit(&schema, &prepared.args);
        if wrong.is_empty() {
            return Ok(prepared);
        }
        Err(format!(
            "its schema does not let the arguments through ({}): {}",
            prepared.from,
            wrong.join("; ")
        ))
    }

    /// Its first case that ends in an outcome, or else its first one that calls at all.
    fn case(&self) -> Option<Case> {
        let cases = cases::parse(section::CASES, &self.loaded.cases).ok()?;
        let mut calls: Vec<Case> = cases.into_iter().filter(|case| case.given.is_none()).collect();
        let at = calls.iter().position(|case| case.expect == Expect::Outcome).unwrap_or(0);
        (at < calls.len()).then(|| calls.swap_remove(at))
    }

    /// The files that the call sees at `/in` and `/artifacts`, as those of a run are: in folders
    /// that a worker can read, for as long as the trees live.
    fn place(&self, prepared: &Prepared) -> Result<[Box<dyn Tree>; 2], CliError> {
        let mut files = [Vec::new(), Vec::new()];
        for (place, content) in &prepared.files {
            let digest = match content {
                Content::Text(text) => self.blobs.put(text.as_bytes())?,
                Content::File(from) => {
                    let mut file =
                        std::fs::File::open(from).map_err(|error| CliError::unreadable(from, &error))?;
                    self.blobs.put_from(&mut file)?.0
                }
            };
            match (place.strip_prefix("in/"), place.strip_prefix("artifacts/")) {
                (Some(path), _) => files[0].push((path.to_owned(), digest)),
                (None, path) => files[1].push((path.unwrap_or(place).to_owned(), digest)),
            }
        }
        Ok([self.blobs.tree(&files[0])?, self.blobs.tree(&files[1])?])
    }
}

/// What the person hands over lies beside the files of the case, and in place of one of that name.
fn of_case(case: Case, given: Vec<(String, Content)>) -> Prepared {
    let below = |folder: &'static str, files: Vec<(String, String)>| {
        files.into_iter().map(move |(name, text)| (format!("{folder}/{name}"), Content::Text(text)))
    };
    let mut files: Vec<(String, Content)> =
        below("in", case.input).chain(below("artifacts", case.artifacts)).collect();
    files.retain(|(name, _)| !given.iter().any(|(other, _)| other == name));
    files.extend(given);
    let args = match case.args {
        Value::Object(args) => args,
        _ => Map::new(),
    };
    Prepared {
        args,
        settings: case.settings,
        goal: case.goal,
        from: format!("of its case `{}`", case.name),
        files,
    }
}

/// Defaults and examples of a schema, for what it requires and for what has one.
fn of_schema(schema: Option<&Value>) -> Map<String, Value> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let value = |property: &Value| {
        let first =
            |key: &str| property.get(key).and_then(Value::as_array).and_then(|list| list.first().cloned());
        property
            .get("default")
            .cloned()
            .or_else(|| first("examples"))
            .or_else(|| property.get("const").cloned())
            .or_else(|| first("enum"))
    };
    let each = properties.into_iter().flatten();
    each.filter_map(|(key, property)| Some((key.clone(), value(property)?))).collect()
}

/// A fault of the disk or of ours is no answer of the component's.
fn sound<T>(ran: Ran<T>) -> Result<Ran<T>, CliError> {
    match ran.end {
        End::Storage(error) => Err(error.into()),
        End::Fault(message) => Err(CliError::Ours(message)),
        End::Returned(_) | End::Limited(_) | End::Trapped(_) | End::Invalid(_) => Ok(ran),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_says_what_to_try() {
        let schema = json!({ "properties": {
            "a": { "default": 1 }, "b": { "examples": ["x", "y"] }, "c": { "enum": [true] }, "d": { "type": "string" },
        }});
        assert_eq!(Value::Object(of_schema(Some(&schema))), json!({ "a": 1, "b": "x", "c": true }));
        assert!(of_schema(None).is_empty() && of_schema(Some(&json!(false))).is_empty());
    }

    #[test]
    fn what_is_granted_once_is_one_rule_or_one_folder_to_read() {
        let mut once = Granted::default();
        grant_once(&mut once, "https://a.example/*").unwrap();
        grant_once(&mut once, "ro /tmp").unwrap();
        assert_eq!((once.network.len(), once.files.len()), (1, 1));
        for bad in ["rw /tmp", "/tmp", "a.example", "*", ""] {
            assert!(grant_once(&mut once, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_folder_that_is_granted_once_is_held_against_what_is_the_operators() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for name in ["own", "data"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        std::os::unix::fs::symlink(path("data"), path("link")).unwrap();
        let state = State::open(&path("state")).unwrap();
        let operator = Operator { file: Some(path("own/operator.toml")), ..Operator::default() };
        let check = |name: &str| {
            let mut once = Granted::default();
            grant_once(&mut once, &format!("ro {}", path(name).display())).unwrap();
            check_once(&once, &operator, &state).map_err(|error| error.to_string())
        };
        assert_eq!(check("data"), Ok(()));
        for (name, why) in [
            ("own", "which no component may read"),
            ("link", "or a link"),
            ("none", "is not there"),
            ("state/blobs", "where the sandbox keeps its own files"),
        ] {
            let told = check(name).unwrap_err();
            assert!(told.contains("--grant-once") && told.contains(why), "{name}: {told}");
        }
    }
}
