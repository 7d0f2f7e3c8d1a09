//! `call`: a run of one subgoal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use checkrein_contract::event::Person;
use checkrein_contract::id::is_relative_path;
use checkrein_contract::interface::Level;
use checkrein_contract::task::{ATTEMPTS, Budget, Mode, ReportSpec, Stage, SubgoalSpec, Task};
use serde_json::{Map, Value, json};

use super::ending::finish;
use super::run;
use crate::args::Global;
use crate::components::Components;
use crate::error::CliError;
use crate::output;
use crate::report::json as report_json;
use crate::standing::Standing;
use crate::task_file::TaskFile;
use crate::world;

pub(super) async fn call(
    global: &Global,
    skill: &str,
    args: &str,
    inputs: &[String],
) -> Result<u8, CliError> {
    let args: Map<String, Value> = serde_json::from_str(args).map_err(|error| {
        CliError::usage(
            format!("the arguments are not a JSON object: {error}"),
            "write them as '{\"key\": \"value\"}'",
        )
    })?;
    let inputs = inputs.iter().map(|input| read_input(input)).collect::<Result<Vec<_>, _>>()?;
    check_inputs(&inputs)?;
    let standing = Standing::find(global)?;
    let state = world::open_state(global)?;
    let sandbox = world::sandbox_of(&state, &standing).await?;
    let components = Components::load(&sandbox, &standing, Mode::ReadWrite).await?;
    if !components.skills.iter().any(|card| card.name() == skill) {
        let known: Vec<&str> = components.skills.iter().map(|card| card.name()).collect();
        let hint = checkrein_contract::document::nearest(skill, &known)
            .map(|near| format!("did you mean `{near}`?"));
        let message = format!("no skill `{skill}` is loaded; there are: {}", known.join(", "));
        return Err(CliError::usage(message, hint.unwrap_or_default()));
    }
    let file = TaskFile { task: task(skill, args), inputs, dry: BTreeMap::new() };
    // Whoever calls sees at once that it does not get on; what cannot be taken back waits.
    let person = standing.config.person.min(Person::Approvals);
    let apart = standing.operator.process;
    let how = run::How { planner: "triggers".to_owned(), person, apart, dry: false, id: None };
    let run = run::start(&state, sandbox, file, components, how).await?;
    let view = run::view_of(&state, &run)?;
    if !global.json {
        for fact in view.current_facts() {
            output::json(&report_json::fact_json(fact));
        }
        for artifact in &view.artifacts {
            output::json(&report_json::artifact_json(artifact));
        }
    }
    finish(global, &state, &run)
}

pub(super) fn read_input(input: &str) -> Result<(String, PathBuf), CliError> {
    let wrong = |why: &str| CliError::usage(format!("--in {input}: {why}"), "write --in NAME=FILE");
    let (name, path) = input.split_once('=').ok_or_else(|| wrong("it has no `=`"))?;
    let path = PathBuf::from(path);
    if !path.is_file() {
        return Err(wrong("there is no such file"));
    }
    let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_relative_path(&file) {
        return Err(wrong("the file name has control characters"));
    }
    Ok((name.to_owned(), path))
}

/// Each file has a place of its own under `/in`, and a name.
pub(super) fn check_inputs(inputs: &[(String, PathBuf)]) -> Result<(), CliError> {
    for (at, (name, path)) in inputs.iter().enumerate() {
        let both = |(other, before): &(String, PathBuf)| {
            format!("--in {other}={} and --in {name}={}", before.display(), path.display())
        };
        let before = &inputs[..at];
        if let Some(same) = before.iter().find(|(other, _)| other == name) {
            return Err(CliError::usage(format!("{} have one name", both(same)), "give each its own"));
        }
        if let Some(same) = before.iter().find(|(_, before)| before.file_name() == path.file_name()) {
            let file = path.file_name().unwrap_or_default().display();
            let message = format!("{} would both be /in/{file}", both(same));
            return Err(CliError::usage(message, "rename one of the files"));
        }
    }
    Ok(())
}

/// A task of one subgoal, which is met when the outcome is accepted.
fn task(skill: &str, args: Map<String, Value>) -> Task {
    let goal = format!("call {skill} with {}", json!(args));
    let subgoal = SubgoalSpec {
        id: "call".into(),
        goal: goal.clone(),
        skill: Some(skill.to_owned()),
        after: Vec::new(),
        args,
        evidence: Vec::new(),
        criteria: Vec::new(),
        attempts: ATTEMPTS,
        // One call shows what there is; the level of each fact is shown with it.
        level: Level::SelfChecked,
        budget: Budget { calls: Some(20), ..Budget::default() },
    };
    Task {
        name: format!("call-{skill}"),
        goal,
        mode: Mode::ReadWrite,
        seed: 0,
        inputs: Vec::new(),
        parameters: Map::new(),
        budget: Budget::default(),
        stages: vec![Stage {
            id: "call".into(),
            title: None,
            budget: Budget::default(),
            subgoals: vec![subgoal],
        }],
        report: ReportSpec { title: format!("A call of {skill}"), text: None },
        level: Level::SelfChecked,
        allow_contradictions: false,
    }
}
