//! The task file, `task.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use checkrein_contract::document::{Document, Section};
use checkrein_contract::id::{StageId, SubgoalId, is_relative_path, is_segment};
use checkrein_contract::interface::Level;
use checkrein_contract::task::{
    ATTEMPTS, ATTEMPTS_MAX, Budget, Criterion, Mode, ReportSpec, Stage, SubgoalSpec, Task,
};
use checkrein_contract::units;
use checkrein_harness::reference::{self, Reference};
use serde_json::{Map, Value};

use crate::error::CliError;

mod dry;
#[cfg(test)]
mod tests;

pub use dry::DryAnswer;

/// The `schema` that a task of this version states.
pub const SCHEMA: &str = "checkrein/task@1";

/// Calls of a subgoal that states no budget: an end for one that goes on without getting there.
const CALLS_PER_SUBGOAL: u64 = 20;

/// The largest input.
const INPUT_MAX: u64 = 4 << 30;

/// A task as its file states it, before its inputs are copied.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskFile {
    /// The task; its inputs are still empty.
    pub task: Task,
    /// The inputs, by name.
    pub inputs: Vec<(String, PathBuf)>,
    /// What executors answer in a dry run: for each subgoal its calls in order, the last again.
    pub dry: BTreeMap<SubgoalId, Vec<DryAnswer>>,
}

impl TaskFile {
    /// Reads a task file.
    ///
    /// # Errors
    ///
    /// All mistakes in it at once.
    pub fn read(file: &Path, set: &[String]) -> Result<Self, CliError> {
        let text = crate::config::read_text(file)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        let document = Document::parse(&file.display().to_string(), &text);
        let root = document.root();
        let task = read(&root, folder, set);
        root.close();
        document.finish(task).map_err(CliError::Input)
    }
}

fn read(root: &Section<'_>, folder: &Path, set: &[String]) -> Option<TaskFile> {
    root.need_exactly("schema", SCHEMA);
    let name = root.need::<String>("name").filter(|name| named(root, "name", name));
    let goal = root.need::<String>("goal");
    let level = read_level(root, Level::Independent);
    let mode = root.parsed("mode", "\"read-only\" or \"read-write\"", |word| match word {
        "read-only" => Some(Mode::ReadOnly),
        "read-write" => Some(Mode::ReadWrite),
        _ => None,
    });
    let inputs = read_inputs(root, folder);
    let mut parameters: Map<String, Value> = root.map::<Value>("parameters").into_iter().collect();
    override_parameters(root, &mut parameters, set);
    let goal_text = goal.clone().unwrap_or_default();
    let mut stages: Vec<Stage> =
        root.sections("stage").into_iter().filter_map(|stage| read_stage(stage, level)).collect();
    if stages.is_empty() && !root.has("stage") {
        stages = vec![only_stage(&goal_text, level)];
    }
    let task = Task {
        name: name.unwrap_or_default(),
        goal: goal_text,
        mode: mode.unwrap_or(Mode::ReadOnly),
        seed: root.get("seed").unwrap_or(0),
        inputs: Vec::new(),
        parameters,
        budget: read_budget(root),
        stages,
        report: read_report(root, folder),
        level,
        allow_contradictions: root.get("allow-contradictions").unwrap_or(false),
    };
    check_names(root, &task);
    check_order(root, &task);
    check_references(root, &task, &inputs);
    let dry = dry::read(root, folder, &task);
    goal.map(|_| TaskFile { task, inputs, dry })
}

fn named(section: &Section<'_>, key: &str, name: &str) -> bool {
    let good = is_segment(name) && name.len() <= 64;
    if !good {
        section.fault(key, "letters, digits, `.`, `_`, `-`, at most 64", &format!("{name:?}"), "");
    }
    good
}

fn read_level(section: &Section<'_>, default: Level) -> Level {
    let level =
        section.parsed("level", "\"self-checked\", \"independent\" or \"attested\"", |word| match word {
            "self-checked" => Some(Level::SelfChecked),
            "independent" => Some(Level::Independent),
            _ => None,
        });
    level.unwrap_or(default)
}

fn read_inputs(root: &Section<'_>, folder: &Path) -> Vec<(String, PathBuf)> {
    let mut files = BTreeMap::<String, String>::new();
    let mut inputs = Vec::new();
    for (name, path) in root.map::<String>("inputs") {
        let full = folder.join(&path);
        let file = full.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        match std::fs::metadata(&full) {
            Ok(metadata) if metadata.len() > INPUT_MAX => {
                let expected = format!("at most {} for `{name}`", units::show_bytes(INPUT_MAX));
                root.fault(
                    "inputs",
                    &expected,
                    &format!("{path:?} with {}", units::show_bytes(metadata.len())),
                    "",
                );
            }
            Ok(metadata) if metadata.is_file() && !is_of_the_system(&full) => {}
            Ok(metadata) => {
                let what = if metadata.is_dir() { "a folder" } else { "no ordinary file" };
                root.fault("inputs", &format!("a file for `{name}`"), &format!("{what}, {path:?}"), "");
            }
            Err(error) => {
                root.fault("inputs", &format!("a file for `{name}`"), &format!("{path:?}: {error}"), "")
            }
        }
        if !is_relative_path(&file) {
            root.fault("inputs", "a file name without control characters", &format!("{file:?}"), "");
        }
        if let Some(other) = files.insert(file.clone(), name.clone()) {
            let found = format!("`{other}` and `{name}` are both /in/{file}");
            root.fault("inputs", "file names that differ", &found, "rename one");
        }
        inputs.push((name, full));
    }
    inputs
}

/// Whether it is one of the files by which the system tells of itself: of environment and devices.
fn is_of_the_system(path: &Path) -> bool {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    ["/proc", "/sys", "/dev"].iter().any(|root| full.starts_with(root))
}

fn override_parameters(root: &Section<'_>, parameters: &mut Map<String, Value>, set: &[String]) {
    for item in set {
        let Some((key, text)) = item.split_once('=') else {
            root.fault("parameters", "--set KEY=VALUE", &format!("--set {item}"), "");
            continue;
        };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        match parameters.get_mut(key) {
            Some(parameter) if kind(parameter) != kind(&value) => {
                let expected = format!("{} for `{key}`", kind(parameter));
                root.fault("parameters", &expected, &format!("{}, --set {item}", kind(&value)), "");
            }
            Some(parameter) => *parameter = value,
            None => {
                let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
                root.fault(
                    "parameters",
                    &format!("a parameter of the task ({})", known.join(", ")),
                    &format!("--set {item}"),
                    "",
                );
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

fn only_stage(goal: &str, level: Level) -> Stage {
    let subgoal = SubgoalSpec {
        id: "main".into(),
        goal: goal.to_owned(),
        skill: None,
        after: Vec::new(),
        args: Map::new(),
        evidence: Vec::new(),
        criteria: Vec::new(),
        attempts: ATTEMPTS,
        level,
        budget: Budget { calls: Some(CALLS_PER_SUBGOAL), ..Budget::default() },
    };
    Stage { id: "main".into(), title: None, budget: Budget::default(), subgoals: vec![subgoal] }
}

fn read_stage(section: Section<'_>, level: Level) -> Option<Stage> {
    let id = section.need::<String>("id").filter(|id| named(&section, "id", id));
    let title = section.get("title");
    let budget = read_budget(&section);
    let subgoals = section.sections("subgoal");
    if subgoals.is_empty() {
        section.fault("subgoal", "at least one `[[stage.subgoal]]`", "none", "");
    }
    let subgoals = subgoals.into_iter().filter_map(|subgoal| read_subgoal(subgoal, level)).collect();
    section.close();
    Some(Stage { id: StageId(id?), title, budget, subgoals })
}

fn read_subgoal(section: Section<'_>, level: Level) -> Option<SubgoalSpec> {
    let id = section.need::<String>("id").filter(|id| named(&section, "id", id));
    let goal = section.need::<String>("goal");
    let attempts = section.get::<u64>("attempts").unwrap_or(u64::from(ATTEMPTS));
    if !(1..=u64::from(ATTEMPTS_MAX)).contains(&attempts) {
        section.fault("attempts", "1 to 5", &attempts.to_string(), "");
    }
    let mut budget = read_budget(&section);
    budget.calls.get_or_insert(CALLS_PER_SUBGOAL);
    let criteria = section.sections("criterion").into_iter().filter_map(read_criterion).collect();
    let after: Vec<String> = section.get("after").unwrap_or_default();
    let args: Map<String, Value> = section.map::<Value>("args").into_iter().collect();
    for (place, why) in reference::find(&args).1 {
        section.fault("args", "a reference", &format!("at {place}: {why}"), "");
    }
    let spec = SubgoalSpec {
        id: SubgoalId(id.clone().unwrap_or_default()),
        goal: goal.clone().unwrap_or_default(),
        skill: section.get("skill"),
        after: after.into_iter().map(SubgoalId).collect(),
        args,
        evidence: section.get("evidence").unwrap_or_default(),
        criteria,
        attempts: attempts.clamp(1, u64::from(ATTEMPTS_MAX)) as u32,
        level: read_level(&section, level),
        budget,
    };
    section.close();
    id.zip(goal).map(|_| spec)
}

fn read_criterion(section: Section<'_>) -> Option<Criterion> {
    let text = section.need::<String>("text");
    let check = section.need::<String>("check");
    if let Some(why) = check.as_deref().and_then(|check| checkrein_harness::criteria::check(check).err()) {
        section.fault("check", "CEL over facts, such as 'fact(\"de/summary\").significant > 0'", &why, "");
    }
    section.close();
    Some(Criterion { text: text?, check: check? })
}

/// The budget of the run, of a stage, or of a subgoal.
fn read_budget(section: &Section<'_>) -> Budget {
    let Some(budget) = section.section("budget") else { return Budget::default() };
    let count = |key: &str| budget.parsed(key, "a count such as 100 or \"5e12\"", units::count);
    let read = Budget {
        attempts: count("attempts"),
        calls: count("calls"),
        tokens: count("tokens"),
        fuel: count("fuel"),
        wall_ms: budget.parsed("wall", "a time such as \"10 min\"", units::millis),
    };
    budget.close();
    read
}

fn read_report(root: &Section<'_>, folder: &Path) -> ReportSpec {
    let name = root.get::<String>("name").unwrap_or_default();
    let Some(section) = root.section("report") else { return ReportSpec { title: name, text: None } };
    let title = section.get("title").unwrap_or(name);
    let text = section.get::<String>("text").and_then(|path| {
        let file = folder.join(&path);
        let read = crate::config::read_text(&file);
        read.inspect_err(|error| {
            section.fault("text", "a file with the report's text", &error.to_string(), "")
        })
        .ok()
    });
    for (offset, why) in text.as_deref().map(crate::report::check_template).unwrap_or_default() {
        section.fault(
            "text",
            "placeholders such as {{fact:de/summary#/kept}}",
            &format!("at byte {offset}: {why}"),
            "",
        );
    }
    section.close();
    ReportSpec { title, text }
}

fn check_names(root: &Section<'_>, task: &Task) {
    let mut stages = BTreeSet::new();
    for stage in task.stages.iter().filter(|stage| !stages.insert(&stage.id)) {
        root.fault("stage", "ids that differ", &format!("two stages `{}`", stage.id), "");
    }
    let mut subgoals = BTreeSet::new();
    for (_, subgoal) in task.subgoals().filter(|(_, subgoal)| !subgoals.insert(&subgoal.id)) {
        root.fault("stage", "ids that differ", &format!("two subgoals `{}`", subgoal.id), "");
    }
}

/// `after` names subgoals of the same stage, without a cycle.
fn check_order(root: &Section<'_>, task: &Task) {
    for stage in &task.stages {
        let ids: BTreeSet<&SubgoalId> = stage.subgoals.iter().map(|subgoal| &subgoal.id).collect();
        for subgoal in &stage.subgoals {
            for before in subgoal.after.iter().filter(|before| !ids.contains(before)) {
                let found = format!("`{}` comes after `{before}`", subgoal.id);
                root.fault(
                    "stage",
                    &format!("a subgoal of the stage `{}`", stage.id),
                    &found,
                    "earlier stages come before anyway",
                );
            }
        }
        if let Some(id) = on_a_cycle(stage) {
            root.fault("stage", "an order", &format!("`{id}` comes after itself"), "remove one `after`");
        }
    }
}

fn on_a_cycle(stage: &Stage) -> Option<&SubgoalId> {
    let mut left: Vec<&SubgoalSpec> = stage.subgoals.iter().collect();
    loop {
        let ids: BTreeSet<&SubgoalId> = left.iter().map(|subgoal| &subgoal.id).collect();
        let before = left.len();
        left.retain(|subgoal| subgoal.after.iter().any(|after| ids.contains(after)));
        if left.len() == before {
            return left.first().map(|subgoal| &subgoal.id);
        }
    }
}

/// What references name is there, as far as the task alone can tell.
fn check_references(root: &Section<'_>, task: &Task, inputs: &[(String, PathBuf)]) {
    for (index, stage) in task.stages.iter().enumerate() {
        for subgoal in &stage.subgoals {
            for (place, reference) in reference::find(&subgoal.args).0 {
                let wrong = match &reference {
                    Reference::In(name) if !inputs.iter().any(|(known, _)| known == name) => {
                        Some(("an input of the task", name))
                    }
                    Reference::Param(name) if !task.parameters.contains_key(name) => {
                        Some(("a parameter of the task", name))
                    }
                    Reference::Artifact(path) if !comes_before(task, index, subgoal, path) => {
                        Some(("an artifact of a subgoal before this one, as \"<subgoal>/<path>\"", path))
                    }
                    Reference::In(_) | Reference::Param(_) | Reference::Artifact(_) | Reference::Fact(..) => {
                        None
                    }
                };
                if let Some((expected, name)) = wrong {
                    root.fault("stage", expected, &format!("`{name}` in `{}` at {place}", subgoal.id), "");
                }
            }
        }
    }
}

fn comes_before(task: &Task, stage: usize, subgoal: &SubgoalSpec, path: &str) -> bool {
    let Some((of, _)) = path.split_once('/') else { return false };
    let earlier =
        task.stages[..stage].iter().flat_map(|stage| &stage.subgoals).any(|before| before.id.as_str() == of);
    let mut todo: Vec<&SubgoalId> = subgoal.after.iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(next) = todo.pop() {
        if next.as_str() == of {
            return true;
        }
        if seen.insert(next) {
            let spec = task.stages[stage].subgoals.iter().find(|spec| spec.id == *next);
            todo.extend(spec.iter().flat_map(|spec| &spec.after));
        }
    }
    earlier
}
