//! The ways on from an ask: commands, and what follows from each.

use checkrein_contract::ask::Asked;
use checkrein_contract::event::Closing;
use checkrein_contract::task::ATTEMPTS_MAX;
use checkrein_harness::reference;
use serde_json::{Map, Value};

use super::{Way, evidence, follows_words};
use crate::report::escape::{json, json_word, shell};
use crate::report::view::{AskView, RunView, SubgoalView};
use crate::report::words::many;

/// The most characters of arguments that are shown as an example.
const EXAMPLE_MAX: usize = 2_000;
/// The most characters of a value that is told.
const VALUE_MAX: usize = 80;

/// Every way on; there is at least one.
pub(super) fn ways(view: &RunView, ask: &AskView) -> Vec<Way> {
    match &ask.about {
        Asked::Approval { .. } => approval(view, ask),
        Asked::CallUnknown { .. } => unknown(view, ask),
        Asked::Question | Asked::HandOver { .. } => going_on(view, ask),
    }
}

fn way(view: &RunView, ask: &AskView, verb: &str, rest: &str, means: impl Into<String>) -> Way {
    let (run, ask) = (shell(view.run.as_str()), shell(ask.ask.as_str()));
    Way { command: format!("checkrein {verb} {run} {ask}{rest}"), means: means.into() }
}

fn approval(view: &RunView, ask: &AskView) -> Vec<Way> {
    let once = "the call is made, once, as it stands here; with `--for 1h` the approval holds for an hour";
    let not = "the call is not made; `--reason TEXT` says why";
    vec![way(view, ask, "approve", "", once), way(view, ask, "deny", "", not)]
}

fn unknown(view: &RunView, ask: &AskView) -> Vec<Way> {
    let answers = [
        (" yes", "it happened; what came out of it is not known, and no fact is made of it"),
        (
            " yes --outcome FILE",
            "it happened, and FILE says what came out of it, a JSON object with `content` and `facts`: it is \
             verified like any other outcome, and its facts are `attested`",
        ),
        (" no", "it did not happen: it is made again, with the same call id"),
        (" give-up", "the subgoal is closed as not met, and nothing is said of the call"),
    ];
    answers.map(|(rest, means)| way(view, ask, "answer", rest, means)).into()
}

fn going_on(view: &RunView, ask: &AskView) -> Vec<Way> {
    let subgoal = view.subgoal(&ask.subgoal);
    let left = ATTEMPTS_MAX.saturating_sub(subgoal.map_or(0, evidence::attempts));
    let mut ways = Vec::new();
    if is_unverified(ask) {
        ways.push(way(view, ask, "answer", " retry", "whoever could not judge is asked once more"));
    } else if is_interrupted(ask) {
        ways.push(way(view, ask, "answer", " retry", "the call is made once more, with the same call id"));
    } else if left > 0 {
        let means =
            format!("tries again; {} left, of {ATTEMPTS_MAX} at most", many(left as usize, "attempt"));
        ways.push(way(view, ask, "answer", " retry", means));
    }
    if left > 0 {
        ways.extend(with_attempts(view, ask, subgoal));
    }
    ways.extend(amending(view, ask));
    let means = "the subgoal is closed as not met, and the run goes on without it";
    ways.push(way(view, ask, "answer", " give-up", means));
    ways
}

fn is_unverified(ask: &AskView) -> bool {
    matches!(&ask.about, Asked::HandOver { because } if matches!(**because, Closing::Unverified { .. }))
}

fn is_interrupted(ask: &AskView) -> bool {
    matches!(&ask.about, Asked::HandOver { because } if matches!(**because, Closing::Interrupted { .. }))
}

/// What leads to another call, and so is only offered while an attempt is left for it.
fn with_attempts(view: &RunView, ask: &AskView, subgoal: Option<&SubgoalView>) -> Vec<Way> {
    let mut ways = vec![with_arguments(view, ask, subgoal)];
    if follows_words(&view.planner) {
        ways.push(way(view, ask, "answer", " 'TEXT'", "the planner is told this, and plans anew"));
    }
    if subgoal.is_some_and(|subgoal| evidence::can_be_granted(view, subgoal)) {
        let run = shell(view.run.as_str());
        let rest = format!(" retry && checkrein resume {run} --accept-config");
        let means = "tries again with the grants above, once they stand in the configuration";
        ways.push(way(view, ask, "answer", &rest, means));
    }
    ways
}

fn with_arguments(view: &RunView, ask: &AskView, subgoal: Option<&SubgoalView>) -> Way {
    let last = subgoal.and_then(|subgoal| subgoal.calls.last());
    let args: Map<String, Value> = last
        .map(|call| &call.args)
        .or_else(|| subgoal.map(|subgoal| &subgoal.args))
        .cloned()
        .unwrap_or_default();
    let example = json_word(&Value::Object(args));
    let whole = example.chars().count() <= EXAMPLE_MAX;
    let rest = if whole { format!(" {example}") } else { " '{…}'".to_owned() };
    let means = match last {
        Some(call) => {
            format!("`{}` is called with these arguments, which are those of its last call", call.skill)
        }
        None => "the skill is called with these arguments".to_owned(),
    };
    way(view, ask, "answer", &rest, means)
}

/// Other values for the parameters that the subgoal uses.
fn amending(view: &RunView, ask: &AskView) -> Vec<Way> {
    let mut names = view.spec(&ask.subgoal).map(|spec| reference::parameters(&spec.args)).unwrap_or_default();
    names.sort();
    names.dedup();
    let run = shell(view.run.as_str());
    let named = names.into_iter().filter_map(|name| Some((view.task.parameters.get(&name)?, name)));
    let amend = named.map(|(value, name)| Way {
        command: format!("checkrein amend {run} --set {}", setting(&name, value)),
        means: format!(
            "another value of `{name}` in place of {}; all that depends on it is open again",
            json(value, VALUE_MAX)
        ),
    });
    amend.collect()
}

/// `NAME=VALUE`, as `--set` reads it back.
fn setting(name: &str, value: &Value) -> String {
    match value {
        // A text that would be read as JSON is written as JSON.
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => {
            shell(&format!("{name}={text}"))
        }
        other => format!("{}={}", shell(name), json_word(other)),
    }
}
