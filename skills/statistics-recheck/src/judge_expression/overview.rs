//! `de/summary`, `de/prior`, the outcome's content, and what every fact has.

use checkrein_skill::prelude::*;

use crate::closeness::Closeness;
use crate::expression::{Expected, Input, Request};

pub(super) fn judge(
    request: &Request,
    input: &Input,
    expected: &Expected,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) {
    let summary = summary(request, expected);
    judge_summary(request, &summary, outcome, verdict);
    judge_prior(request, expected, outcome, tolerance, verdict);
    judge_others(outcome, verdict);
    judge_content(input, expected, &summary, outcome, tolerance, verdict);
}

/// Kind and source of a fact.
pub(super) fn frame(request: &Request, fact: &DraftFact, place: &str, verdict: &mut Verdict) {
    let message = format!("`{}` is another kind of evidence", fact.subject);
    verdict.equal("kind", message, &"statistic", &fact.kind.as_str(), place);
    let message = format!("`{}` comes from the counts", fact.subject);
    verdict.equal("source", message, &request.counts, &fact.source, place);
}

fn summary(request: &Request, expected: &Expected) -> Value {
    let (mut up, mut down, mut welch) = (0, 0, 0);
    for gene in &expected.genes {
        let significant = gene.moderated.q < request.alpha;
        up += usize::from(significant && gene.change > 0.0);
        down += usize::from(significant && gene.change < 0.0);
        welch += usize::from(gene.welch.is_some_and(|test| test.q < request.alpha));
    }
    let significant = expected.genes.iter().filter(|gene| gene.moderated.q < request.alpha).count();
    json!({
        "kept": expected.genes.len(), "significant": significant, "up": up, "down": down,
        "significant_welch": welch,
    })
}

/// The one fact on a subject, or a finding.
fn only<'a>(
    subject: &str,
    outcome: &'a Outcome,
    verdict: &mut Verdict,
) -> Option<(usize, &'a DraftFact)> {
    let times = outcome.facts.iter().filter(|fact| fact.subject == subject).count();
    verdict.equal("once", format!("`{subject}` has to have one fact"), &1, &times, "/facts");
    outcome.find(subject)
}

fn judge_summary(request: &Request, right: &Value, outcome: &Outcome, verdict: &mut Verdict) {
    let before = verdict.findings.len();
    let Some((n, fact)) = only("de/summary", outcome, verdict) else {
        return;
    };
    frame(request, fact, &format!("/facts/{n}"), verdict);
    differences("summary", right, &fact.content, &format!("/facts/{n}/content"), verdict);
    if verdict.findings.len() == before {
        verdict.check("summary", ["de/summary"], format!("counted again: {right}"));
    }
}

/// One finding a key that differs, is missing or is one too many.
fn differences(rule: &str, right: &Value, found: &Value, place: &str, verdict: &mut Verdict) {
    let empty = serde_json::Map::new();
    let (right, found) = (right.as_object().unwrap_or(&empty), found.as_object().unwrap_or(&empty));
    for (key, value) in right {
        let actual = found.get(key).unwrap_or(&Value::Null);
        verdict.equal(rule, format!("`{key}` differs"), value, actual, format!("{place}/{key}"));
    }
    for key in found.keys().filter(|key| !right.contains_key(*key)) {
        let finding = Finding::error(rule, format!("`{key}` is unknown"), "no such key", key);
        verdict.finding(finding.at(format!("{place}/{key}")));
    }
}

fn judge_prior(
    request: &Request,
    expected: &Expected,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) {
    let before = verdict.findings.len();
    let Some((n, fact)) = only("de/prior", outcome, verdict) else {
        return;
    };
    frame(request, fact, &format!("/facts/{n}"), verdict);
    let place = format!("/facts/{n}/content");
    judge_shape(fact, &place, verdict);
    let mut closeness = Closeness::new(tolerance);
    judge_numbers(expected, fact, &place, &mut closeness, verdict);
    if verdict.findings.len() == before {
        verdict.check("prior", ["de/prior"], closeness.note(1, "prior"));
    }
}

fn judge_shape(fact: &DraftFact, place: &str, verdict: &mut Verdict) {
    let keys: Vec<&String> =
        fact.content.as_object().map(|map| map.keys().collect()).unwrap_or_default();
    let right = vec!["df", "variance"];
    verdict.equal("prior", "a prior has two keys", &right, &sorted(&keys), place);
}

fn judge_numbers(
    expected: &Expected,
    fact: &DraftFact,
    place: &str,
    closeness: &mut Closeness,
    verdict: &mut Verdict,
) {
    let of = |key: &str| &fact.content[key];
    // An infinite prior is written as null.
    let df = if of("df").is_null() { Some(f64::INFINITY) } else { of("df").as_f64() };
    let numbers = [
        ("prior-df", "df", expected.prior_df, df),
        ("prior-variance", "variance", expected.prior_variance, of("variance").as_f64()),
    ];
    for (rule, key, right, found) in numbers {
        let both_infinite = right.is_infinite() && found == Some(f64::INFINITY);
        if !both_infinite && !found.is_some_and(|found| closeness.close(right, found, 0.0)) {
            let right = if right.is_infinite() { json!("null: infinite") } else { json!(right) };
            let finding = Finding::error(rule, "the prior differs", right, of(key));
            verdict.finding(finding.at(format!("{place}/{key}")));
        }
    }
}

fn sorted<'a>(keys: &[&'a String]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = keys.iter().map(|key| key.as_str()).collect();
    keys.sort_unstable();
    keys
}

/// Facts under `de/` that are none of ours are said by nobody to hold: name them.
fn judge_others(outcome: &Outcome, verdict: &mut Verdict) {
    for (n, fact) in outcome.facts.iter().enumerate() {
        let known = fact.subject.starts_with("de/gene/")
            || ["de/summary", "de/prior"].contains(&&*fact.subject);
        if !known {
            let message = format!("`{}` is not among what can be recomputed", fact.subject);
            let finding = Finding::error("unknown-subject", message, "no such fact", &fact.subject);
            verdict.finding(finding.at(format!("/facts/{n}")));
        }
    }
}

/// The outcome's content says some of it again; all of that has to be there and to hold too.
fn judge_content(
    input: &Input,
    expected: &Expected,
    summary: &Value,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) {
    let mut right = json!({
        "tested": input.tested,
        "treated_samples": input.treated.len(),
        "control_samples": input.control.len(),
        "total_df": expected.total_df,
        "summary": summary,
    });
    // What is as close as the tolerance has it may stand as it is.
    let found = &outcome.content["total_df"];
    let close = |df| Closeness::new(tolerance).close(expected.total_df, df, 0.0);
    if found.as_f64().is_some_and(close) {
        right["total_df"] = found.clone();
    }
    differences("content", &right, &outcome.content, "/content", verdict);
}
