//! The footnotes of a report: for each fact that it names, the path back to what was read.
//!
//! Facts that share call, level and checks share a footnote, so that a table of a hundred rows
//! does not end in a hundred notes that say the same.

use std::collections::HashMap;
use std::fmt::Write as _;

use checkrein_contract::event::ComponentCard;
use checkrein_contract::id::CallId;
use checkrein_contract::record::{Exchange, Record};

use super::escape;
use super::view::{ArtifactView, FactView, RunView, VerifiedBy};
use super::words::many;

/// The most facts that a footnote names; more are counted.
const NAMED: usize = 12;

/// The footnotes so far.
pub struct Notes<'v> {
    view: &'v RunView,
    notes: Vec<Note<'v>>,
    by_key: HashMap<String, usize>,
}

struct Note<'v> {
    /// What it stands for: ids of facts, or an artifact.
    about: Vec<String>,
    level: Option<&'static str>,
    verified_by: &'v [VerifiedBy],
    call: &'v CallId,
    sources: Vec<&'v str>,
}

impl<'v> Notes<'v> {
    /// None yet.
    pub fn new(view: &'v RunView) -> Self {
        Notes { view, notes: Vec::new(), by_key: HashMap::new() }
    }

    /// The marker for a fact, in Markdown.
    pub fn fact(&mut self, fact: &'v FactView) -> String {
        let level = Some(fact.entry.level.as_str());
        let at = self.note("fact", level, &fact.verified_by, &fact.call);
        let note = &mut self.notes[at];
        let id = escape::code(fact.entry.id.as_str());
        if !note.about.contains(&id) {
            note.about.push(id);
        }
        if !note.sources.contains(&fact.entry.source.as_str()) {
            note.sources.push(&fact.entry.source);
        }
        marker(at)
    }

    /// The marker for an artifact, in Markdown.
    pub fn artifact(&mut self, artifact: &'v ArtifactView) -> String {
        let at = self.note(&artifact.place(), None, &artifact.verified_by, &artifact.call);
        let note = &mut self.notes[at];
        if note.about.is_empty() {
            let digest = escape::code(&artifact.file.digest.to_string());
            note.about.push(format!("{}, {digest}", escape::code(&artifact.place())));
        }
        marker(at)
    }

    fn note(
        &mut self,
        what: &str,
        level: Option<&'static str>,
        verified_by: &'v [VerifiedBy],
        call: &'v CallId,
    ) -> usize {
        let key = format!("{what}\n{level:?}\n{call}\n{verified_by:?}");
        let notes = &mut self.notes;
        *self.by_key.entry(key).or_insert_with(|| {
            notes.push(Note { about: Vec::new(), level, verified_by, call, sources: Vec::new() });
            notes.len() - 1
        })
    }

    /// The definitions of all footnotes, in Markdown.
    pub fn definitions(&self) -> String {
        let mut out = String::new();
        for (at, note) in self.notes.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}: {}\n", marker(at), self.define(note));
        }
        out
    }

    fn define(&self, note: &Note<'_>) -> String {
        let mut text = match note.level {
            Some(level) => format!("{} · **{level}**.", about(&note.about)),
            None => format!("Artifact {}.", about(&note.about)),
        };
        for judge in note.verified_by {
            let _ = write!(text, " {}", self.judge(judge));
        }
        if note.verified_by.is_empty() {
            text.push_str(" No check names it.");
        }
        let _ = write!(text, " {}", self.call(note.call));
        if !note.sources.is_empty() {
            let sources: Vec<String> =
                note.sources.iter().take(NAMED).map(|source| escape::code(source)).collect();
            let _ = write!(text, " Source: {}{}.", sources.join(", "), more(note.sources.len()));
        }
        text
    }

    fn judge(&self, judge: &VerifiedBy) -> String {
        let checks: Vec<String> = judge
            .checks
            .iter()
            .map(|check| match check.note.is_empty() {
                true => escape::markdown(&check.rule),
                false => format!("{} ({})", escape::markdown(&check.rule), escape::markdown(&check.note)),
            })
            .collect();
        let name = escape::markdown(&judge.verifier);
        match judge.component {
            None => format!("Checked by the {name}: {}.", checks.join("; ")),
            Some(component) => {
                let version = self.view.version_of(&component).unwrap_or_default();
                let digest = escape::code(&component.short());
                format!("Checked by {name} {} {digest}: {}.", escape::markdown(version), checks.join("; "))
            }
        }
    }

    fn call(&self, id: &CallId) -> String {
        let Some(call) = self.view.call(id) else { return String::new() };
        let read: Vec<String> = self
            .view
            .files_of(call)
            .iter()
            .map(|file| format!("{} {}", escape::code(&file.place), escape::code(&file.digest.short())))
            .collect();
        let read = if read.is_empty() { "no file".to_owned() } else { read.join(", ") };
        let attested = if call.attested { " What came out of it is what a person says." } else { "" };
        format!(
            "From call {}: {} {} {}, attempt {}, over {read}.{}{attested}",
            escape::code(id.as_str()),
            escape::markdown(&call.skill),
            escape::markdown(&call.version),
            escape::code(&call.component.short()),
            call.attempt,
            fetched(&call.record)
        )
    }
}

/// Which URLs a call was answered from, with what came back.
fn fetched(record: &Record) -> String {
    let each: Vec<String> = record.exchanges.iter().take(NAMED).map(exchange).collect();
    match each.is_empty() {
        true => String::new(),
        false => format!(" It asked {}{}.", each.join(", "), more(record.exchanges.len())),
    }
}

fn exchange(exchange: &Exchange) -> String {
    let url = format!("{} {}", exchange.method, exchange.url);
    let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let body = exchange.body.map_or_else(String::new, |body| format!(" {}", escape::code(&body.short())));
    format!("{} ({status}{body})", escape::code(&url))
}

fn marker(at: usize) -> String {
    format!("[^e{}]", at + 1)
}

fn about(names: &[String]) -> String {
    match names {
        [one] => format!("Fact {one}").replacen("Fact `", "`", 1),
        names => {
            let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            format!("{}: {}{}", many(names.len(), "fact"), shown.join(", "), more(names.len()))
        }
    }
}

fn more(count: usize) -> String {
    if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() }
}

/// A component in one line: name, version, digest.
pub fn component(card: &ComponentCard) -> String {
    format!(
        "{} {} {}",
        escape::markdown(card.name()),
        escape::markdown(&card.manifest.version),
        escape::code(&card.component.to_string())
    )
}
