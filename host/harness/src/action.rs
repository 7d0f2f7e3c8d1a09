//! The check of an action in three stages, before anything runs: structure (does it parse),
//! schema (does it fit the skill's JSON Schema), semantics (is it allowed in this state).
//!
//! All that is wrong at one stage is told at once; a later stage is not reached.

use checkrein_contract::event::ComponentCard;
use checkrein_contract::id::{SubgoalId, covers};
use checkrein_contract::interface::Severity;
use checkrein_contract::manifest::Effects;
use checkrein_contract::problem::{Problem, Stage};
use checkrein_contract::task::Mode;
use checkrein_contract::{Digest, digest as form, document};
use serde_json::{Map, Value, json};

use crate::reference;
use crate::schema as bounded;
use crate::state::{Lock, State};

/// What a planner may propose.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Call a skill.
    Call {
        /// Its name.
        skill: String,
        /// The arguments.
        args: Map<String, Value>,
    },
    /// Ask a person.
    Ask {
        /// The question.
        question: String,
    },
    /// Stop trying.
    GiveUp {
        /// Why.
        reason: String,
    },
}

impl Action {
    /// The action as a planner writes it.
    pub fn to_json(&self) -> Value {
        match self {
            Action::Call { skill, args } => json!({ "action": "call", "skill": skill, "args": args }),
            Action::Ask { question } => json!({ "action": "ask", "question": question }),
            Action::GiveUp { reason } => json!({ "action": "give-up", "reason": reason }),
        }
    }
}

/// What tells a call from another: the same digest is the same call.
pub fn digest(skill: &str, args: &Map<String, Value>) -> Digest {
    Digest::of_json(&json!({ "skill": skill, "args": args }))
}

/// Checks an action as it came from a planner.
///
/// # Errors
///
/// All that is wrong with it at the first stage that it does not pass.
pub fn check(state: &State, subgoal: &SubgoalId, raw: &Value) -> Result<Action, Vec<Problem>> {
    let action = parse(raw)?;
    if let Action::Call { skill, args } = &action {
        let card = known_skill(state, skill)?;
        check_schema(card, args)?;
        check_semantics(state, subgoal, card, args)?;
    }
    Ok(action)
}

fn problem(
    stage: Stage,
    rule: &str,
    skill: &str,
    message: String,
    expected: Value,
    actual: Value,
) -> Problem {
    Problem {
        stage,
        rule: rule.to_owned(),
        skill: skill.to_owned(),
        severity: Severity::Error,
        message,
        expected,
        actual,
        location: None,
        suggestion: None,
    }
}

fn parse(raw: &Value) -> Result<Action, Vec<Problem>> {
    let wrong = |rule: &str, message: &str, expected: Value, actual: Value| {
        vec![problem(Stage::Structure, rule, "planner", message.to_owned(), expected, actual)]
    };
    let Some(object) = raw.as_object() else {
        return Err(wrong("object", "an action is a JSON object", json!("an object"), raw.clone()));
    };
    let text = |key: &str| match object.get(key).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => {
            let actual = object.get(key).cloned().unwrap_or(json!("nothing"));
            Err(wrong(
                "field",
                &format!("the action lacks the text `{key}`"),
                json!(format!("a text `{key}`")),
                actual,
            ))
        }
    };
    match object.get("action").and_then(Value::as_str) {
        Some("call") => {
            let skill = text("skill")?;
            if form::depth(raw) > form::DEPTH_MAX {
                let expected = json!(format!("at most {} levels", form::DEPTH_MAX));
                return Err(wrong(
                    "depth",
                    "the arguments are nested too deep",
                    expected,
                    json!(form::depth(raw)),
                ));
            }
            match object.get("args") {
                Some(Value::Object(args)) => Ok(Action::Call { skill, args: args.clone() }),
                other => {
                    let actual = other.cloned().unwrap_or(json!("nothing"));
                    Err(wrong("field", "`args` of a call is an object", json!("an object `args`"), actual))
                }
            }
        }
        Some("ask") => Ok(Action::Ask { question: text("question")? }),
        Some("give-up") => Ok(Action::GiveUp { reason: text("reason")? }),
        _ => {
            let actual = object.get("action").cloned().unwrap_or(json!("nothing"));
            Err(wrong("action", "there is no such action", json!(["call", "ask", "give-up"]), actual))
        }
    }
}

/// Why a text that should be an argument schema is none, or one that takes too long to hold
/// arguments against; `None` if it is one.
pub fn schema_fault(schema: &Value) -> Option<String> {
    bounded::fault(schema)
}

/// What is wrong with arguments that this schema is held against; empty if they fit.
pub fn unfit(schema: &Value, args: &Map<String, Value>) -> Vec<String> {
    let misfits = bounded::misfits(schema, args, |error| {
        let place = error.instance_path().as_str().to_owned();
        let message = bounded::quoted(error.to_string());
        if place.is_empty() { message } else { format!("{message} at {}", bounded::quoted(place)) }
    });
    misfits.unwrap_or_else(|why| vec![format!("they cannot be held against the argument schema: {why}")])
}

fn known_skill<'s>(state: &'s State, name: &str) -> Result<&'s ComponentCard, Vec<Problem>> {
    state.skill(name).ok_or_else(|| {
        let known: Vec<&str> =
            state.setup.iter().flat_map(|setup| &setup.skills).map(ComponentCard::name).collect();
        let message = format!("there is no skill `{name}`");
        let mut problem = problem(Stage::Schema, "skill", name, message, json!(known), json!(name));
        problem.suggestion = document::nearest(name, &known).map(|near| format!("did you mean `{near}`?"));
        vec![problem]
    })
}

fn check_schema(card: &ComponentCard, args: &Map<String, Value>) -> Result<(), Vec<Problem>> {
    // Without a schema nothing is known to fit; the loader lets no such skill in.
    let schema = card.manifest.args.as_ref().unwrap_or(&Value::Bool(false));
    let wrong = |message: String, expected: Value, actual: Value| {
        problem(Stage::Schema, "args", card.name(), message, expected, actual)
    };
    let misfits = bounded::misfits(schema, args, |error| {
        let keyword = error.schema_path().as_str().to_owned();
        let expected = schema.pointer(&keyword).map_or_else(|| json!(keyword), bounded::quoted_value);
        let actual = bounded::quoted_value(error.instance());
        let mut problem = wrong(bounded::quoted(error.to_string()), expected, actual);
        problem.location = Some(error.instance_path().as_str().to_owned());
        problem
    });
    // The schema was checked when the component was loaded; if it is not one, no argument fits it.
    let problems = misfits.map_err(|why| {
        let message = format!("the arguments cannot be held against their schema: {why}");
        vec![wrong(message, json!("a JSON Schema and arguments that are held in bounded time"), json!(why))]
    })?;
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn check_semantics(
    state: &State,
    subgoal: &SubgoalId,
    card: &ComponentCard,
    args: &Map<String, Value>,
) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let name = card.name();
    let mut hold = |rule: &str, message: String, expected: Value, actual: Value, location: Option<String>| {
        let mut problem = problem(Stage::Semantics, rule, name, message, expected, actual);
        problem.location = location;
        problems.push(problem);
    };
    check_mode(state, card, &mut hold);
    check_spent(state, subgoal, card, args, &mut hold);
    check_required(state, subgoal, card, &mut hold);
    check_locked(state, subgoal, card, args, &mut hold);
    check_paths(state, subgoal, args, &mut hold);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

type Hold<'h> = dyn FnMut(&str, String, Value, Value, Option<String>) + 'h;

/// Whether the task changes nothing outside.
pub fn read_only(state: &State) -> bool {
    state.setup.as_ref().is_some_and(|setup| setup.task.mode == Mode::ReadOnly)
}

/// What a call of it changes outside. A skill that says `none` and may send or write is not
/// believed; in a task that only reads, it may not.
pub fn effects(state: &State, card: &ComponentCard) -> Effects {
    if card.effects == Effects::None && card.granted.changes() && !read_only(state) {
        return Effects::Irreversible;
    }
    card.effects
}

fn check_mode(state: &State, card: &ComponentCard, hold: &mut Hold<'_>) {
    if read_only(state) && card.effects != Effects::None {
        let message = format!("`{}` has effects, and the task is read-only", card.name());
        hold("mode", message, json!("none"), json!(card.effects), None);
    }
}

fn check_spent(
    state: &State,
    subgoal: &SubgoalId,
    card: &ComponentCard,
    args: &Map<String, Value>,
    hold: &mut Hold<'_>,
) {
    if let Some(how) = state.subgoal(subgoal).closed_actions.get(&digest(card.name(), args)) {
        let message = format!("the same call was already {how} in this subgoal");
        hold("repeated", message, json!("another skill or other arguments"), json!(args), None);
    }
}

fn check_required(state: &State, subgoal: &SubgoalId, card: &ComponentCard, hold: &mut Hold<'_>) {
    let scope = &state.subgoal(subgoal).scope;
    for required in &card.manifest.requires {
        if !scope.iter().any(|fact| covers(required, &state.facts[fact].entry.subject)) {
            let message = format!("`{}` needs a fact on `{required}`, and none is in scope", card.name());
            hold("requires", message, json!(required), json!("no such fact"), None);
        }
    }
}

/// Parameters are the user's: no planner and no remedy changes one. Arguments that lock keep the
/// value that a met subgoal used.
fn check_locked(
    state: &State,
    subgoal: &SubgoalId,
    card: &ComponentCard,
    args: &Map<String, Value>,
    hold: &mut Hold<'_>,
) {
    let parameters = state.setup.as_ref().map(|setup| &setup.task.parameters);
    for (pointer, parameter) in reference::parameter_places(&state.spec(subgoal).args) {
        let stated = parameters.and_then(|all| all.get(&parameter)).cloned().unwrap_or(Value::Null);
        let actual = reference::at(args, &pointer).cloned().unwrap_or(Value::Null);
        if actual != stated {
            let message = format!("the parameter `{parameter}` is the user's to change");
            hold("parameter", message, stated, actual, Some(pointer));
        }
    }
    for pointer in &card.manifest.locks {
        let known = |lock: &&Lock| lock.skill == card.name() && lock.pointer == *pointer;
        let Some(Lock { value: locked, by, .. }) = state.locked.iter().find(known) else { continue };
        let actual = reference::at(args, pointer).cloned().unwrap_or(Value::Null);
        if actual != *locked {
            let message = format!("the argument `{pointer}` is locked since `{by}` was met with it");
            hold("locked", message, locked.clone(), actual, Some(pointer.clone()));
        }
    }
}

/// Paths under `/in` and `/artifacts` that the arguments name must be there.
fn check_paths(state: &State, subgoal: &SubgoalId, args: &Map<String, Value>, hold: &mut Hold<'_>) {
    let inputs = state.setup.as_ref().map(|setup| &setup.task.inputs);
    let artifacts = state.artifacts_in_scope(state.subgoal(subgoal));
    for (pointer, text) in reference::texts(args) {
        let there = if let Some(file) = text.strip_prefix("/in/") {
            inputs.is_some_and(|inputs| inputs.iter().any(|input| input.file == file))
        } else if let Some(path) = text.strip_prefix("/artifacts/") {
            artifacts.contains_key(path)
        } else {
            true
        };
        if !there {
            let mut known: Vec<String> =
                inputs.into_iter().flatten().map(|input| format!("/in/{}", input.file)).collect();
            known.extend(artifacts.keys().map(|path| format!("/artifacts/{path}")));
            hold("path", format!("`{text}` is not in scope"), json!(known), json!(text), Some(pointer));
        }
    }
}
