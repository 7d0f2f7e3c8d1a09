//! The endings of calls, subgoals and runs in words, as plain text, not yet escaped.

use checkrein_contract::event::{Closing, Ended, Reason, RunStatus};
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{Finding, Remedy, Severity};
use checkrein_contract::limits::{LimitKey, Unit, Used};
use checkrein_contract::problem::Problem;
use checkrein_contract::units::{show_bytes, show_count, show_millis};
use serde_json::Value;

use super::escape;

/// The most characters of a JSON value in a message.
const VALUE_MAX: usize = 300;

/// A time in RFC 3339, UTC.
pub fn time(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => format!("{time:.3}"),
        // Past the year 9999: only a tampered log has it.
        Err(_) => format!("{} ms", at.0),
    }
}

/// How a run stands.
pub fn status(status: Option<RunStatus>) -> &'static str {
    match status {
        Some(status) => status.as_str(),
        None => "not ended",
    }
}

/// Why a subgoal was closed.
pub fn closing(closing: &Closing) -> String {
    match closing {
        Closing::Met => "met".to_owned(),
        Closing::Unresolved { problems } => {
            let all: Vec<String> = problems.iter().map(problem).collect();
            format!("a reference in its arguments does not resolve: {}", all.join("; "))
        }
        Closing::NoSkill { detail } => format!("no skill applies to it: {detail}"),
        Closing::AttemptsUsed { attempts } => format!("its {attempts} attempts are used up"),
        Closing::Refused { refusals } => format!("{refusals} actions in a row were refused"),
        Closing::SameReason { reasons } => {
            format!("rejected twice in a row for the same reason: {}", reasons_text(reasons))
        }
        Closing::Unverified { verifier, reason } => format!("`{verifier}` could not judge it: {reason}"),
        Closing::NeedsPerson { question } => format!("a person must answer: {question}"),
        Closing::GaveUp { reason } => format!("given up: {reason}"),
        Closing::BudgetUsed { budget } => format!("the budget is used up: {budget}"),
        Closing::Blocked { by } => format!("`{by}`, which comes before it, was not met"),
    }
}

/// Why a submission was rejected, one after the other.
pub fn reasons_text(reasons: &[Reason]) -> String {
    let each = reasons.iter().map(|reason| {
        let place = if reason.place.is_empty() { String::new() } else { format!(" at {}", reason.place) };
        format!("{} ({}){place}", reason.rule, reason.verifier)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// How a call ended, in a few words.
pub fn ended(ended: Option<&Ended>) -> String {
    match ended {
        None => "has not ended".to_owned(),
        Some(Ended::Outcome { drafts, artifacts, .. }) => {
            format!("outcome with {} and {}", many(drafts.len(), "fact"), many(artifacts.len(), "file"))
        }
        Some(Ended::Failed { failure }) => format!("failed ({}): {}", failure.kind.as_str(), failure.message),
        Some(Ended::Limited { hit }) => {
            let (allowed, used) = (limit_value(&hit.limit, hit.allowed), limit_value(&hit.limit, hit.used));
            format!("ran into the limit `{}`: {allowed} allowed, {used} used", hit.limit)
        }
        Some(Ended::Trapped { message }) => format!("trapped: {message}"),
        Some(Ended::Invalid { problem: wrong }) => {
            format!("returned what the interface does not allow: {}", problem(wrong))
        }
    }
}

fn limit_value(key: &str, value: u64) -> String {
    match LimitKey::parse(key).map(LimitKey::unit) {
        Some(Unit::Bytes) => show_bytes(value),
        Some(Unit::Millis) => show_millis(value),
        Some(Unit::Count) | None => show_count(value),
    }
}

/// What a recovery advises.
pub fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::RetryWith(args) => format!("try again with {}", escape::json(args, VALUE_MAX)),
        Remedy::RetryAfter(millis) => format!("try again after {}", show_millis(u64::from(*millis))),
        Remedy::UseSkill(skill) => format!("use the skill `{skill}`"),
        Remedy::Replan(hint) => format!("plan anew: {hint}"),
        Remedy::AskPerson(question) => format!("ask a person: {question}"),
        Remedy::GiveUp(reason) => format!("give up: {reason}"),
    }
}

/// What is wrong with an action or a result.
pub fn problem(problem: &Problem) -> String {
    let mut text = format!("{}: {}", problem.rule, problem.message);
    if let Some(place) = &problem.location {
        text.push_str(&format!(" at {place}"));
    }
    text + &compared(&problem.expected, &problem.actual)
}

/// What a verification found.
pub fn finding(finding: &Finding) -> String {
    let weight = match finding.severity {
        Severity::Error => "",
        Severity::Warning => "warning, ",
    };
    let mut text = format!("{weight}{}: {}", finding.rule, finding.message);
    if let Some(place) = &finding.location {
        text.push_str(&format!(" at {place}"));
    }
    text.push_str(&compared(&finding.expected, &finding.actual));
    if let Some(suggestion) = &finding.suggestion {
        text.push_str(&format!("; {suggestion}"));
    }
    text
}

fn compared(expected: &Value, actual: &Value) -> String {
    match (expected, actual) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, actual) => format!("; found {}", escape::json(actual, VALUE_MAX)),
        (expected, actual) => {
            format!(
                "; expected {}, found {}",
                escape::json(expected, VALUE_MAX),
                escape::json(actual, VALUE_MAX)
            )
        }
    }
}

/// What a call used.
pub fn used(used: &Used) -> String {
    format!(
        "{}, cpu {}, {}, fuel {}",
        show_millis(used.wall_ms),
        show_millis(used.cpu_ms),
        show_bytes(used.memory_bytes),
        show_count(used.fuel)
    )
}

/// `1 fact`, `2 facts`.
pub fn many(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", show_count(count as u64))
}
