//! The endings of calls, subgoals and runs in words, as plain text, not yet escaped.

use checkrein_contract::event::{Closing, Ended, Reason, RunStatus, Stop};
use checkrein_contract::grant::Clock;
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{Finding, LimitHit, Remedy, Severity};
use checkrein_contract::limits::{LimitKey, Unit, Used};
use checkrein_contract::problem::Problem;
use checkrein_contract::record::{Denial, Exchange, Record};
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

/// The word for how a run stands: how it ended, why it stopped, or whether it is driven. A log that
/// goes on without an end while nobody drives it was interrupted.
pub fn state(status: Option<RunStatus>, stopped: Option<Stop>, driven: bool) -> &'static str {
    match (status, stopped) {
        (Some(status), _) => status.as_str(),
        (None, Some(stop)) => stop.as_str(),
        (None, None) if driven => "running",
        (None, None) => "interrupted",
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
        Closing::Interrupted { call, times } => {
            format!("the host ended {times} times while the call {call} was made, and may end by it")
        }
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
            format!("ran into the limit {}", limit_hit(hit))
        }
        Some(Ended::Trapped { message }) => format!("trapped: {message}"),
        Some(Ended::Invalid { problem: wrong }) => {
            format!("returned what the interface does not allow: {}", problem(wrong))
        }
        Some(Ended::Cancelled) => "cancelled: the run was stopped while it was made".to_owned(),
        Some(Ended::Happened) => "happened, as a person says; what came out of it is not known".to_owned(),
    }
}

/// A limit that fired.
pub fn limit_hit(hit: &LimitHit) -> String {
    let (allowed, used) = (limit_value(&hit.limit, hit.allowed), limit_value(&hit.limit, hit.used));
    format!("`{}`: {allowed} allowed, {used} used", hit.limit)
}

/// Which time a component sees.
pub fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "virtual",
        Clock::Real => "real",
    }
}

/// Each thing that was refused, in a line.
pub fn denials(record: &Record) -> Vec<String> {
    let mut lines: Vec<String> = record.denials.iter().map(denial).collect();
    if record.more_denials > 0 {
        lines.push(format!("and {} more", show_count(record.more_denials)));
    }
    lines
}

/// What was refused, by which wall and how often.
pub fn denial(denial: &Denial) -> String {
    let times =
        if denial.count > 1 { format!(" ({} times)", show_count(denial.count)) } else { String::new() };
    format!("{}: {}{times}", denial.wall.as_str(), denial.what)
}

/// An exchange over the network.
pub fn exchange(exchange: &Exchange) -> String {
    let Exchange { method, url, sent_bytes, body_bytes, .. } = exchange;
    let status = exchange.status.map_or("no answer".to_owned(), |status| status.to_string());
    let sent = if *sent_bytes > 0 { format!("{} sent, ", show_bytes(*sent_bytes)) } else { String::new() };
    let whole = if exchange.body.is_some() { "" } else { ", not read to its end" };
    let whole = if exchange.status.is_some() { whole } else { "" };
    let error = exchange.error.as_ref().map_or_else(String::new, |error| format!(", {error}"));
    format!("{method} {url}: {status}, {sent}{}{whole}{error}", show_bytes(*body_bytes))
}

/// What a call did at its walls, in a few words; empty if nothing.
pub fn record(record: &Record) -> String {
    let mut parts = Vec::new();
    match record.exchanges.as_slice() {
        [] => {}
        [one] => parts.push(exchange(one)),
        [first, rest @ ..] => {
            parts.push(format!("{}, and {}", exchange(first), many(rest.len(), "more exchange")))
        }
    }
    if !record.denials.is_empty() {
        parts.push(format!("refused: {}", denials(record).join("; ")));
    }
    parts.join("; ")
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
