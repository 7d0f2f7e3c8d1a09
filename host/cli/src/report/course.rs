//! What befell a run beside its stages, as sections of the report: questions and who answered them,
//! calls that a person answers for, changes of the task, and the file that it was exported to.

use checkrein_contract::ask::Asked;
use checkrein_contract::event::Ended;
use checkrein_contract::id::SubgoalId;
use serde_json::Value;

use super::escape::{code, json, markdown, prose, shell};
use super::letters;
use super::view::{AmendmentView, AskView, CallView, RunView};
use super::words::{self, many};

/// What stands on the face of a report whose run executed nothing.
pub(super) const DRY: &str =
    "This was a dry run: nothing was executed and nothing left. Its numbers are stated or recorded ones.";

/// The most characters of the arguments that were approved.
const ARGUMENTS_MAX: usize = 300;

/// Every question to a person, with who answered it and when; empty without one.
pub(super) fn questions(view: &RunView) -> String {
    let asks = view.asks.iter().map(|ask| question(view, ask));
    let refused = view.refused.iter().map(|letter| {
        format!(
            "Letter {} of {}, {}: {}. Nothing followed: {}.",
            letter.letter,
            markdown(&letter.by),
            words::time(letter.at),
            prose(&letters::message(&letter.said)),
            prose(&letter.why)
        )
    });
    section("Questions and answers", asks.chain(refused))
}

fn question(view: &RunView, ask: &AskView) -> String {
    let answer = match &ask.answer {
        Some(given) => format!(
            "{}, {}: {}",
            markdown(&given.by),
            words::time(given.at),
            prose(&letters::answer(&given.answer))
        ),
        None if view.status.is_none() && ask.is_open() => "not answered yet".to_owned(),
        None => "not answered".to_owned(),
    };
    format!(
        "Ask {} of {}, {}, {}: {}{} – {answer}.{}",
        markdown(ask.ask.as_str()),
        code(ask.subgoal.as_str()),
        ask.about.as_str(),
        words::time(ask.opened),
        prose(&ask.question),
        what(&ask.about),
        used(view, ask)
    )
}

/// What an approval is for.
fn what(about: &Asked) -> String {
    let Asked::Approval { action, skill, args, .. } = about else { return String::new() };
    let args = json(&Value::Object(args.clone()), ARGUMENTS_MAX);
    format!(" {} with {}, action {}", markdown(skill), code(&args), code(&action.short()))
}

/// Which calls an approval was used up by: one at most.
fn used(view: &RunView, ask: &AskView) -> String {
    let calls = view.calls().chain(&view.history.calls).filter(|call| call.ask.as_ref() == Some(&ask.ask));
    calls.map(|call| format!(" Used by call {}.", code(call.id.as_str()))).collect()
}

/// Calls during which the host ended, and calls whose outcome a person states; empty without one.
pub(super) fn unsure_calls(view: &RunView) -> String {
    let calls = view.calls().filter(|call| call.unknown || call.attested);
    section("Calls that a person answers for, or that the host did not see end", calls.map(unsure))
}

fn unsure(call: &CallView) -> String {
    let seen = if call.unknown { "the host ended while it was made; " } else { "" };
    let then = match (&call.ended, call.attested) {
        (_, true) => "its outcome is what a person says of it",
        (Some(Ended::Happened), false) => {
            "a person says that it happened, and what came out of it is not known"
        }
        (Some(_), false) => "it was made again",
        (None, false) => "whether it happened is not known",
    };
    format!("Call {} of {}: {seen}{then}.", code(call.id.as_str()), markdown(&call.skill))
}

/// How the task was changed while it ran; empty if it was not.
pub(super) fn amendments(view: &RunView) -> String {
    section("How the task was changed", view.amendments.iter().map(amended))
}

fn amended(one: &AmendmentView) -> String {
    let by = one.by.iter().map(|by| format!(", by {}", markdown(by))).collect::<String>();
    let what = prose(&letters::amendment(&one.amendment));
    let lost = match (one.facts, one.artifacts) {
        (0, 0) => String::new(),
        (facts, files) => format!(" {} and {} abandoned.", many(facts, "fact"), many(files, "file")),
    };
    format!(
        "Version {}, {}{by}: {what}.{}{}{lost}",
        one.version,
        words::time(one.at),
        ids("Open again", &one.reopened),
        ids("Criteria evaluated again", &one.evaluated)
    )
}

fn ids(what: &str, ids: &[SubgoalId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| code(id.as_str())).collect();
    if ids.is_empty() { String::new() } else { format!(" {what}: {}.", ids.join(", ")) }
}

/// The file that holds the whole run, and the command that executes it again; empty without one.
pub(super) fn export(view: &RunView) -> String {
    let Some(export) = &view.export else { return String::new() };
    // A mark of ours in a block of code would be taken for one.
    let file = shell(&export.file).replace(['⟦', '⟧'], "?");
    format!(
        "The whole run, with components, inputs, log and grants, is one file, {}, with the digest {}. This \
         executes every call in it again and compares the outcomes:\n\n```text\ncheckrein replay {file}\n```\n\n",
        code(&export.file),
        code(&export.digest.to_string())
    )
}

fn section(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("- {item}\n")).collect();
    if items.is_empty() { items } else { format!("## {title}\n\n{items}\n") }
}
