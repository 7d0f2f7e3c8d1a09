//! What is told of a replay.

use std::collections::BTreeMap;
use std::mem::discriminant;

use checkrein_contract::Digest;
use checkrein_contract::event::Ended;
use checkrein_contract::id::{CallId, RunId};
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::units::show_count;
use checkrein_harness::replay::{Admission, Difference, Differs, NotRepeated, Repeated, Replayed};
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
const OTHER_FACTS: &str = "other facts than the log says";

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

/// The first call of which something is other than the log says, with both, as values that compare.
struct First<'t> {
    call: &'t Repeated,
    difference: &'t Difference,
    contents: Option<(Value, Value)>,
}

impl Told<'_> {
    /// Prints it, and gives the exit code.
    pub(super) fn tell(&self, json: bool) -> Result<u8, CliError> {
        let first = self.first()?;
        let agrees = self.replayed.agrees();
        if json {
            output::json(&self.json(first.as_ref()));
            return Ok(if agrees { exit::DONE } else { exit::DIFFERENCE });
        }
        for line in self.lines(first.as_ref()) {
            output::line(&one_line(&line, WIDTH));
        }
        if agrees { Ok(exit::DONE) } else { Err(CliError::Difference(self.summary())) }
    }

    fn first(&self) -> Result<Option<First<'_>>, CliError> {
        let Some((call, difference)) = self.replayed.differences().next() else { return Ok(None) };
        let contents = contents(&difference.differs, self.blobs)?;
        Ok(Some(First { call, difference, contents }))
    }

    /// How many agree, in one line.
    fn summary(&self) -> String {
        let (facts, calls) = (self.replayed.facts, self.replayed.calls.len());
        let executed = self.replayed.executed();
        let calls = format!("{} of {} executed again", show_count(executed as u64), many(calls, "call"));
        let facts = match (self.replayed.compares_nothing(), executed) {
            (false, _) => {
                format!("{} of {}, same digests", show_count(facts.agree), many(facts.of as usize, "fact"))
            }
            (true, 0) if self.replayed.facts.attested == 0 => "nothing could be executed again".to_owned(),
            (true, 0) => format!("nothing could be executed again: {}", self.attested()),
            (true, _) => format!("nothing with a fact could be executed again: {}", self.attested()),
        };
        let ended = self.differing(is_ended).len() as u64;
        let admitted = self.differing(is_admission).len() as u64;
        let ended = (ended > 0).then(|| format!(", {} ended otherwise", show_count(ended)));
        let admitted = (admitted > 0).then(|| format!(", {} with {OTHER_FACTS}", show_count(admitted)));
        [format!("{facts}; {calls}")].into_iter().chain(ended).chain(admitted).collect()
    }

    /// The calls that differ in this.
    fn differing(&self, what: impl Fn(&Differs) -> bool) -> Vec<String> {
        let found = self.replayed.differences().filter(|(_, difference)| what(&difference.differs));
        found.map(|(call, _)| call.call.to_string()).collect()
    }

    /// How many facts were not compared, and why.
    fn attested(&self) -> String {
        let count = self.replayed.facts.attested as usize;
        let (are, were) = if count == 1 { ("is", "was") } else { ("are", "were") };
        format!("{} {are} attested and {were} not executed", many(count, "fact"))
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
        let what = match &difference.differs {
            Differs::Ended { .. } => "ended otherwise".to_owned(),
            Differs::Admission { .. } => format!("has {OTHER_FACTS}"),
        };
        let (expected, found) = words_of(&difference.differs);
        let mut lines = vec![
            format!("call {} of {} {what}", call.call, call.skill),
            format!("expected  {expected}"),
            format!("found     {found}"),
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
        // Each kind is told for itself, without the one that is told above.
        let rest = |what: fn(&Differs) -> bool| {
            self.differing(what).split_off(usize::from(what(&difference.differs)))
        };
        let (ended, admitted) = (rest(is_ended), rest(is_admission));
        if !ended.is_empty() {
            let count = many(ended.len(), "more call");
            lines.push(format!("{count} ended otherwise too: {}", listed(&ended)));
        }
        if !admitted.is_empty() {
            let count = many(admitted.len(), "more call");
            lines.push(format!("{count} with {OTHER_FACTS}: {}", listed(&admitted)));
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
        // Where that is all, it stands in the first line.
        if self.replayed.facts.attested > 0 && !self.replayed.compares_nothing() {
            lines.push(self.attested());
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
        let mut different: Vec<&CallId> = replayed.differences().map(|(call, _)| &call.call).collect();
        different.dedup();
        json!({
            "schema": "checkrein/replay@1",
            "run": self.run,
            "head": self.head,
            "agrees": replayed.agrees(),
            "engine": { "here": self.engine, "log": replayed.engines },
            "facts": {
                "of": replayed.facts.of,
                "same": replayed.facts.agree,
                "not_compared": replayed.facts.attested,
            },
            "calls": {
                "of": replayed.calls.len(),
                "executed": replayed.executed(),
                "different": different,
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
        let (expected, found) = words_of(&difference.differs);
        json!({
            "call": call.call,
            "subgoal": call.subgoal,
            "skill": call.skill,
            "what": if is_ended(&difference.differs) { "end" } else { "facts" },
            "expected": expected,
            "found": found,
            "changes": changes.iter().take(CHANGES_MAX).map(change).collect::<Vec<_>>(),
            "more_changes": changes.len().saturating_sub(CHANGES_MAX),
            "suspects": suspects.collect::<Vec<_>>(),
        })
    }
}

fn is_ended(differs: &Differs) -> bool {
    matches!(differs, Differs::Ended { .. })
}

fn is_admission(differs: &Differs) -> bool {
    matches!(differs, Differs::Admission { .. })
}

/// What the log says, and what was found, in words.
fn words_of(differs: &Differs) -> (String, String) {
    match differs {
        Differs::Ended { expected, found } => (words::ended(Some(expected)), words::ended(Some(found))),
        Differs::Admission { expected, found } => (admission(expected), admission(found)),
    }
}

fn admission(made: &Admission) -> String {
    match made {
        Admission::Accepted { facts, artifacts } => {
            format!("let in, with {} and {}", many(facts.len(), "fact"), many(artifacts.len(), "file"))
        }
        Admission::Rejected { findings } => {
            let first = findings.first().map(|finding| format!(": {}", finding.message));
            format!("not let in{}", first.unwrap_or_default())
        }
    }
}

/// Both as values, if they are of one kind: what differs between an outcome and a failure is said in
/// words. Of the same outcome what the log says beside it is compared, of others their content.
fn contents(differs: &Differs, blobs: &dyn Blobs) -> Result<Option<(Value, Value)>, CliError> {
    let alike = match differs {
        Differs::Ended { expected, found } => discriminant(expected) == discriminant(found),
        Differs::Admission { expected, found } => discriminant(expected) == discriminant(found),
    };
    Ok(match differs {
        _ if !alike => None,
        Differs::Ended {
            expected: Ended::Outcome { outcome: one, .. },
            found: Ended::Outcome { outcome: two, .. },
        } if one != two => Some((outcome(one, blobs)?, outcome(two, blobs)?)),
        Differs::Ended { expected, found } => Some((json!(expected), json!(found))),
        Differs::Admission { expected, found } => Some((json!(expected), json!(found))),
    })
}

fn outcome(digest: &Digest, blobs: &dyn Blobs) -> Result<Value, CliError> {
    serde_json::from_slice(&blobs.get(digest)?).map_err(|error| {
        StorageError::Damaged { place: format!("blob {digest}"), detail: error.to_string() }.into()
    })
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let text = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

#[cfg(test)]
mod tests;
