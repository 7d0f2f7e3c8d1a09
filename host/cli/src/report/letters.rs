//! Questions, answers, letters and amendments in words, as plain text, not yet escaped.

use checkrein_contract::ask::{Amendment, Answer, Message};
use checkrein_contract::event::Stop;
use serde_json::Value;

use super::escape::json;
use super::words;

/// The most characters of a value or of a list of arguments.
const VALUE_MAX: usize = 300;

/// Why a run stopped.
pub fn stop(because: Stop) -> &'static str {
    match because {
        Stop::Person => "it waits for a person",
        Stop::Cancelled => "it was cancelled",
        Stop::Interrupted => "its process was asked to end",
    }
}

/// What a person said to an ask.
pub fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Approved { until: None } => "approved".to_owned(),
        Answer::Approved { until: Some(until) } => format!("approved until {}", words::time(*until)),
        Answer::Denied { reason } => format!("denied: {reason}"),
        Answer::Said { text } => format!("said: {text}"),
        Answer::Args { args } => {
            format!("to be called with {}", json(&Value::Object(args.clone()), VALUE_MAX))
        }
        Answer::Retry => "try again".to_owned(),
        Answer::GiveUp { reason } => format!("give up: {reason}"),
        Answer::Happened { outcome: None } => "it happened; what came out of it is not known".to_owned(),
        Answer::Happened { outcome: Some(attested) } => format!(
            "it happened, with outcome {} and {}",
            attested.outcome.short(),
            words::many(attested.drafts.len(), "fact")
        ),
        Answer::NotHappened => "it did not happen".to_owned(),
    }
}

/// What another process told.
pub fn message(message: &Message) -> String {
    match message {
        Message::Answer { ask, answer } => format!("ask {ask}: {}", self::answer(answer)),
        Message::Cancel => "the run is to stop".to_owned(),
        Message::Unreadable { why } => format!("unreadable: {why}"),
        Message::Amend { amendment } => format!("the task is to be changed: {}", self::amendment(amendment)),
    }
}

/// What is changed about a task.
pub fn amendment(amendment: &Amendment) -> String {
    let goal = amendment.goal.iter().map(|goal| format!("goal: {goal}"));
    let set = amendment.set.iter().map(|(key, value)| format!("`{key}` becomes {}", json(value, VALUE_MAX)));
    let criteria = amendment.criteria.iter().map(|(id, criterion)| {
        let text =
            if criterion.text == criterion.check { String::new() } else { format!("{}, ", criterion.text) };
        format!("`{id}` must also hold: {text}{}", criterion.check)
    });
    goal.chain(set).chain(criteria).collect::<Vec<_>>().join("; ")
}
