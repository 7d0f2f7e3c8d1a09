//! What is told of a replay.

use std::collections::BTreeMap;

use checkrein_contract::Digest;
use checkrein_contract::event::Ended;
use checkrein_contract::id::RunId;
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::units::show_count;
use checkrein_harness::replay::{Difference, NotRepeated, Repeated, Replayed};
use serde_json::{Value, json};

use super::diff::{Change, changes};
use crate::error::{CliError, exit};
use crate::output::{self, one_line};
use crate::report::words::{self, many};

/// The most places at which outcomes differ that are listed.
const CHANGES_MAX: usize = 20;
/// The most calls that a line lists.
const LISTED: usize = 8;
/// The most characters of a line.
const WIDTH: usize = 400;

/// Everything that is told.
pub(super) struct Told<'t> {
    pub(super) run: &'t RunId,
    /// The digest of the last event of the log.
    pub(super) head: Digest,
    /// This engine.
    pub(super) engine: &'t str,
    pub(super) replayed: &'t Replayed,
    pub(super) blobs: &'t dyn Blobs,
}

/// The first call that ended otherwise, with what came out of it then and now.
struct First<'t> {
    call: &'t Repeated,
    difference: &'t Difference,
    contents: Option<(Value, Value)>,
}

impl Told<'_> {
    /// Prints it, and gives the exit code.
    pub(super) fn tell(&self, json: bool) -> Result<u8, CliError> {
        let first = self.first()?;
        if json {
            output::json(&self.json(first.as_ref()));
            return Ok(if first.is_none() { exit::DONE } else { exit::DIFFERENCE });
        }
        for line in self.lines(first.as_ref()) {
            output::line(&one_line(&line, WIDTH));
        }
        if first.is_none() { Ok(exit::DONE) } else { Err(CliError::Difference(self.summary())) }
    }

    fn first(&self) -> Result<Option<First<'_>>, CliError> {
        let Some((call, difference)) = self.replayed.differences().next() else { return Ok(None) };
        let (expected, found) =
            (content(&difference.expected, self.blobs)?, content(&difference.found, self.blobs)?);
        // What differs between an outcome and a failure is said in words.
        let alike = std::mem::discriminant(&difference.expected) == std::mem::discriminant(&difference.found);
        Ok(Some(First { call, difference, contents: alike.then_some((expected, found)) }))
    }

    /// How many agree, in one line.
    fn summary(&self) -> String {
        let (facts, calls) = (self.replayed.facts, self.replayed.calls.len());
        let differ = self.replayed.differences().count();
        let number = |count: usize| show_count(count as u64);
        let calls = format!("{} of {} executed again", number(self.replayed.executed()), many(calls, "call"));
        let facts =
            format!("{} of {}, same digests", show_count(facts.agree), many(facts.of as usize, "fact"));
        match differ {
            0 => format!("{facts}; {calls}"),
            differ => format!("{facts}; {calls}, {} ended otherwise", number(differ)),
        }
    }

    fn lines(&self, first: Option<&First<'_>>) -> Vec<String> {
        let mut lines = match first {
            None => vec![self.summary()],
            Some(first) => self.difference(first),
        };
        lines.extend(self.apart());
        lines.push(format!("head    {}", self.head.hex()));
        lines.push(format!("engine  {}", self.engines()));
        lines
    }

    fn difference(&self, first: &First<'_>) -> Vec<String> {
        let First { call, difference, contents } = first;
        let mut lines = vec![
            format!("call {} of {} ended otherwise", call.call, call.skill),
            format!("expected  {}", words::ended(Some(&difference.expected))),
            format!("found     {}", words::ended(Some(&difference.found))),
        ];
        if let Some((expected, found)) = contents {
            let changes = changes(expected, found);
            lines.extend(changes.iter().take(CHANGES_MAX).map(Change::line));
            if changes.len() > CHANGES_MAX {
                let more = show_count((changes.len() - CHANGES_MAX) as u64);
                lines.push(format!("and in {more} more places"));
            }
        }
        let suspect =
            difference.suspects.iter().map(|one| format!("suspect   {}: {}", one.suspect.as_str(), one.why));
        lines.extend(suspect);
        let others: Vec<String> =
            self.replayed.differences().skip(1).map(|(call, _)| call.call.to_string()).collect();
        if !others.is_empty() {
            lines.push(format!(
                "{} ended otherwise too: {}",
                many(others.len(), "more call"),
                listed(&others)
            ));
        }
        lines
    }

    /// Calls that were not executed again, and the facts that came out of them.
    fn apart(&self) -> Vec<String> {
        let mut calls = BTreeMap::<&NotRepeated, Vec<String>>::new();
        for (call, why) in self.replayed.not_repeated() {
            calls.entry(why).or_default().push(call.call.to_string());
        }
        let line = |(why, calls): (&NotRepeated, Vec<String>)| {
            let count = many(calls.len(), "call");
            format!("{count} not executed again, because {}: {}", why.why(), listed(&calls))
        };
        let mut lines: Vec<String> = calls.into_iter().map(line).collect();
        if self.replayed.facts.apart > 0 {
            let facts = many(self.replayed.facts.apart as usize, "fact");
            lines.push(format!("{facts} of such calls not compared"));
        }
        lines
    }

    fn engines(&self) -> String {
        let others = self.replayed.engines.iter().filter(|engine| *engine != self.engine);
        let others: Vec<&str> = others.map(String::as_str).collect();
        match others.is_empty() {
            true => format!("{}, as in the log", self.engine),
            false => format!("{}; in the log {}", self.engine, others.join(", ")),
        }
    }

    fn json(&self, first: Option<&First<'_>>) -> Value {
        let replayed = self.replayed;
        let not_executed =
            replayed.not_repeated().map(|(call, why)| json!({ "call": call.call, "why": why.why() }));
        json!({
            "schema": "checkrein/replay@1",
            "run": self.run,
            "head": self.head,
            "agrees": replayed.agrees(),
            "engine": { "here": self.engine, "log": replayed.engines },
            "facts": {
                "of": replayed.facts.of,
                "same": replayed.facts.agree,
                "not_compared": replayed.facts.apart,
            },
            "calls": {
                "of": replayed.calls.len(),
                "executed": replayed.executed(),
                "different": replayed.differences().map(|(call, _)| &call.call).collect::<Vec<_>>(),
                "not_executed": not_executed.collect::<Vec<_>>(),
            },
            "first": first.map(First::json),
        })
    }
}

impl First<'_> {
    fn json(&self) -> Value {
        let First { call, difference, contents } = self;
        let changes = contents.as_ref().map(|(expected, found)| changes(expected, found)).unwrap_or_default();
        // Nothing there is no key; `null` is a value.
        let change = |change: &Change<'_>| {
            let mut object = json!({ "path": change.path });
            if let Some(expected) = change.expected {
                object["expected"] = expected.clone();
            }
            if let Some(found) = change.found {
                object["found"] = found.clone();
            }
            object
        };
        let suspects =
            difference.suspects.iter().map(|one| json!({ "suspect": one.suspect.as_str(), "why": one.why }));
        json!({
            "call": call.call,
            "subgoal": call.subgoal,
            "skill": call.skill,
            "expected": words::ended(Some(&difference.expected)),
            "found": words::ended(Some(&difference.found)),
            "changes": changes.iter().take(CHANGES_MAX).map(change).collect::<Vec<_>>(),
            "more_changes": changes.len().saturating_sub(CHANGES_MAX),
            "suspects": suspects.collect::<Vec<_>>(),
        })
    }
}

/// What came of a call as one value: an outcome with its content, anything else as it is.
fn content(ended: &Ended, blobs: &dyn Blobs) -> Result<Value, CliError> {
    let Ended::Outcome { outcome, .. } = ended else { return Ok(json!(ended)) };
    let bytes = blobs.get(outcome)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        StorageError::Damaged { place: format!("blob {outcome}"), detail: error.to_string() }.into()
    })
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let text = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

#[cfg(test)]
mod tests;
