//! What is judged, and what each fact is held against.

use std::collections::{HashMap, HashSet};

use checkrein_skill::prelude::*;
use regex::{Regex, RegexBuilder};

use crate::{cell, table};

/// As many findings as a person would read.
const MOST_FINDINGS: usize = 20;

/// The compiled size that a pattern may have, in bytes.
const PATTERN_SIZE: usize = 4 << 20;

/// What the judged call was asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) documents: Vec<String>,
    pub(crate) fields: Vec<Field>,
}

/// A column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) pattern: String,
}

/// The documents and patterns, read anew.
pub(crate) struct Sources {
    pub(crate) texts: HashMap<String, String>,
    pub(crate) patterns: HashMap<String, Regex>,
}

/// The verifier `quote-check`. It has no settings.
pub struct QuoteCheck;

impl Verifier for QuoteCheck {
    fn verify(submission: &Submission<Value>) -> Result<Verdict, Failure> {
        let performed = submission.performed()?;
        let outcome = &performed.outcome;
        let other = outcome.facts.iter().find(|fact| !fact.subject.starts_with("documents/"));
        if let Some(other) = other {
            return Err(Failure::unsupported(format!(
                "`{}` is not under `documents/`",
                other.subject
            )));
        }
        let request = Request::deserialize(&performed.call.args).map_err(|error| {
            Failure::unsupported(format!("not the arguments of such a call: {error}"))
        })?;
        let sources = Sources::read(&request)?;
        let mut verdict = Verdict::new();
        judge_cells(&sources, outcome, &mut verdict);
        judge_completeness(&request, outcome, &mut verdict);
        judge_counts(&request, outcome, &mut verdict);
        table::judge(&request, outcome, &mut verdict)?;
        verdict.cap_findings(MOST_FINDINGS);
        Ok(verdict)
    }
}

impl Sources {
    fn read(request: &Request) -> Result<Self, Failure> {
        let texts =
            request.documents.iter().map(|file| Ok((file.clone(), files::read_text(file)?)));
        let patterns = request.fields.iter().map(|field| {
            let regex =
                RegexBuilder::new(&field.pattern).multi_line(true).size_limit(PATTERN_SIZE).build();
            let regex = regex.map_err(|error| {
                Failure::invalid_args(format!("field `{}`: {error}", field.name))
            })?;
            Ok((field.name.clone(), regex))
        });
        Ok(Self {
            texts: texts.collect::<Result<_, Failure>>()?,
            patterns: patterns.collect::<Result<_, Failure>>()?,
        })
    }
}

fn judge_cells(sources: &Sources, outcome: &Outcome, verdict: &mut Verdict) {
    let (mut quotes, mut absences) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for (n, fact) in outcome.facts.iter().enumerate() {
        let before = verdict.findings.len();
        let length = cell::judge(sources, n, fact, verdict);
        if verdict.findings.len() > before {
            continue;
        }
        match length {
            Some(length) => {
                bytes += length;
                quotes.push(fact.subject.clone());
            }
            None => absences.push(fact.subject.clone()),
        }
    }
    let note = format!("{} spans read again, {bytes} bytes, each the same", quotes.len());
    verdict.check("quote", quotes, note);
    let note = format!("{} searched again, none found", absences.len());
    verdict.check("absence", absences, note);
}

/// Each field of each document has one fact: nothing left out, nothing twice.
fn judge_completeness(request: &Request, outcome: &Outcome, verdict: &mut Verdict) {
    let mut wanted: HashSet<(&str, &str)> = HashSet::new();
    for file in &request.documents {
        wanted.extend(request.fields.iter().map(|field| (file.as_str(), field.name.as_str())));
    }
    let mut subjects = HashSet::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let file = fact.content["file"].as_str().unwrap_or_default();
        let again = !wanted.remove(&(file, cell::field(fact)));
        if !subjects.insert(fact.subject.as_str()) || again {
            let message = format!("`{}` is no cell of the table, or is there again", fact.subject);
            let finding =
                Finding::error("cell-invented", message, "one fact a cell", &fact.content);
            verdict.finding(finding.at(format!("/facts/{n}")));
        }
    }
    let mut missing: Vec<(&str, &str)> = wanted.into_iter().collect();
    missing.sort_unstable();
    for (file, field) in missing {
        let message = format!("field `{field}` of `{file}` has no fact");
        let finding = Finding::error(
            "cell-missing",
            message,
            json!({ "file": file, "field": field }),
            "no fact",
        );
        verdict.finding(finding.at("/facts"));
    }
}

/// The outcome's content counts documents, fields, quotations and absences, and nothing else.
fn judge_counts(request: &Request, outcome: &Outcome, verdict: &mut Verdict) {
    let of_kind = |kind| outcome.facts.iter().filter(|fact| fact.kind == kind).count();
    let counts = [
        ("documents", request.documents.len()),
        ("fields", request.fields.len()),
        ("found", of_kind("quotation")),
        ("missing", of_kind("absence")),
    ];
    for (key, count) in counts {
        let message = format!("`{key}` is counted otherwise");
        let found = &outcome.content[key];
        verdict.equal("count", message, &json!(count), found, format!("/content/{key}"));
    }
    let known = |key: &str| counts.iter().any(|(name, _)| *name == key);
    let keys = outcome.content.as_object().into_iter().flat_map(|content| content.keys());
    for key in keys.filter(|key| !known(key)) {
        let message = format!("`{key}` is not counted here");
        let finding = Finding::error("count", message, "no such key", &outcome.content[key]);
        verdict.finding(finding.at(format!("/content/{key}")));
    }
}

export_verifier!(QuoteCheck);
