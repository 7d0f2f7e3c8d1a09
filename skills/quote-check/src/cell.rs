//! One fact against its document.

use checkrein_skill::prelude::*;

use crate::verifier::Sources;

/// A quotation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quotation {
    value: String,
    quote: String,
    file: String,
    start: usize,
    end: usize,
}

/// The statement that nothing was found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Absence {
    missing: bool,
    pattern: String,
    file: String,
}

/// The field that a fact is about.
pub(crate) fn field(fact: &DraftFact) -> &str {
    fact.subject.rsplit('/').next().unwrap_or_default()
}

/// Judges one fact, and gives the bytes of its quotation.
pub(crate) fn judge(
    sources: &Sources,
    n: usize,
    fact: &DraftFact,
    verdict: &mut Verdict,
) -> Option<usize> {
    let place = format!("/facts/{n}/content");
    match fact.kind.as_str() {
        "quotation" => match fact.content::<Quotation>() {
            Ok(quotation) => {
                judge_quotation(sources, n, fact, &quotation, &place, verdict);
                return Some(quotation.quote.len());
            }
            Err(failure) => shape(failure, "value, quote, file, start, end", fact, &place, verdict),
        },
        "absence" => match fact.content::<Absence>() {
            Ok(absence) => judge_absence(sources, n, fact, &absence, &place, verdict),
            Err(failure) => shape(failure, "missing, pattern, file", fact, &place, verdict),
        },
        other => {
            let message = format!("`{}` is neither a quotation nor an absence", fact.subject);
            let finding = Finding::error("kind", message, "quotation or absence", other);
            verdict.finding(finding.at(format!("/facts/{n}/kind")));
        }
    }
    None
}

fn shape(failure: Failure, expected: &str, fact: &DraftFact, place: &str, verdict: &mut Verdict) {
    verdict.finding(
        Finding::error("content-shape", failure.message, expected, &fact.content).at(place),
    );
}

/// The document and the subject that both kinds of fact have.
fn judge_frame<'a>(
    sources: &'a Sources,
    n: usize,
    fact: &DraftFact,
    file: &str,
    verdict: &mut Verdict,
) -> Option<&'a str> {
    let subject = &fact.subject;
    let message = format!("`{subject}` quotes another file than its source");
    verdict.equal("source", message, &file, &fact.source.as_str(), format!("/facts/{n}/source"));
    if subject.split('/').count() != 3 || !is_named_after(subject, file) {
        let message = format!("`{subject}` is not called after `{file}`");
        let finding = Finding::error("subject", message, "documents/<document>/<field>", subject);
        verdict.finding(finding.at(format!("/facts/{n}/subject")));
    }
    let text = sources.texts.get(file);
    if text.is_none() {
        let message = format!("`{file}` is none of the documents");
        let mut known: Vec<&String> = sources.texts.keys().collect();
        known.sort_unstable();
        verdict.finding(
            Finding::error("file", message, known, file).at(format!("/facts/{n}/content/file")),
        );
    }
    text.map(String::as_str)
}

/// Letters and digits of the document's segment are those of the file's name, maybe with a number.
fn is_named_after(subject: &str, file: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .take(60)
            .collect()
    };
    let name = file.rsplit('/').next().unwrap_or_default();
    let wanted = plain(name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    let found = plain(subject.split('/').nth(1).unwrap_or_default());
    let rest = found.strip_prefix(if wanted.is_empty() { "document" } else { &wanted });
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
}

fn judge_quotation(
    sources: &Sources,
    n: usize,
    fact: &DraftFact,
    found: &Quotation,
    place: &str,
    verdict: &mut Verdict,
) {
    let Some(text) = judge_frame(sources, n, fact, &found.file, verdict) else {
        return;
    };
    let subject = &fact.subject;
    // `get` is none past the end, backwards, and inside of a character.
    let Some(span) = text.get(found.start..found.end) else {
        let message = format!(
            "`{subject}`: bytes {} to {} are no text of `{}`",
            found.start, found.end, found.file
        );
        let actual = json!([found.start, found.end]);
        verdict.finding(Finding::error("span", message, json!([0, text.len()]), actual).at(place));
        return;
    };
    let message = format!("`{subject}`: the document says something else there");
    verdict.equal("quote", message, &span, &found.quote.as_str(), format!("{place}/quote"));
    if found.value.is_empty() || !span.contains(found.value.as_str()) {
        let message = format!("`{subject}`: the value is not in the quotation");
        verdict.finding(
            Finding::error("value", message, span, &found.value).at(format!("{place}/value")),
        );
        return;
    }
    judge_match(sources, text, fact, found, place, verdict);
}

/// The span has to be the first that the field's pattern finds, and the value its group.
fn judge_match(
    sources: &Sources,
    text: &str,
    fact: &DraftFact,
    found: &Quotation,
    place: &str,
    verdict: &mut Verdict,
) {
    let Some(pattern) = sources.patterns.get(field(fact)) else {
        return;
    };
    let first = pattern.captures_iter(text).find(|captures| !value(captures).is_empty());
    let Some(captures) = first else {
        let message = format!("`{}`: the pattern is not found in the document", fact.subject);
        verdict.finding(Finding::error("match", message, "no quotation", &found.quote).at(place));
        return;
    };
    let at = captures.get(0).map_or((0, 0), |whole| (whole.start(), whole.end()));
    let message = format!("`{}`: the first match is elsewhere", fact.subject);
    verdict.equal("match", message, &at, &(found.start, found.end), place);
    let value = value(&captures);
    let message = format!("`{}`: the pattern picks another value", fact.subject);
    verdict.equal("value", message, &value, &found.value.as_str(), format!("{place}/value"));
}

fn judge_absence(
    sources: &Sources,
    n: usize,
    fact: &DraftFact,
    found: &Absence,
    place: &str,
    verdict: &mut Verdict,
) {
    let Some(text) = judge_frame(sources, n, fact, &found.file, verdict) else {
        return;
    };
    let message = format!("`{}`: an absence is missing", fact.subject);
    verdict.equal("missing", message, &true, &found.missing, format!("{place}/missing"));
    let Some(pattern) = sources.patterns.get(field(fact)) else {
        return;
    };
    let message = format!("`{}`: the field has another pattern", fact.subject);
    verdict.equal(
        "pattern",
        message,
        &pattern.as_str(),
        &found.pattern.as_str(),
        format!("{place}/pattern"),
    );
    if let Some(there) = pattern.captures_iter(text).find(|captures| !value(captures).is_empty()) {
        let message = format!("`{}`: it is not missing, the document says so", fact.subject);
        verdict.finding(Finding::error("absence", message, &there[0], "missing").at(place));
    }
}

/// Group 1 of a match, or all of it.
fn value<'a>(captures: &regex::Captures<'a>) -> &'a str {
    let value = captures.get(1).or_else(|| captures.get(0));
    value.map_or("", |value| value.as_str().trim())
}
