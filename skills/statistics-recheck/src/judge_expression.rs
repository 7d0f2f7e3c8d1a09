//! Everything under `de/*`, held against what was computed anew.

mod gene;
mod overview;
mod table;

use std::collections::HashMap;

use checkrein_skill::prelude::*;

use crate::closeness::Closeness;
use crate::expression::{Expected, Gene, Input, Request, compute};

use gene::{Found, Judge};

pub(crate) fn judge(
    args: &Value,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let request = Request::deserialize(args).map_err(|error| {
        Failure::unsupported(format!("not the arguments of such a call: {error}"))
    })?;
    let input = Input::read(&request)?;
    let expected = compute(&input)?;
    let mut judge = Judge { closeness: Closeness::new(tolerance), verdict };
    judge_genes(&request, &expected, outcome, tolerance, &mut judge);
    overview::judge(&request, &input, &expected, outcome, tolerance, verdict);
    table::judge(&expected, outcome, tolerance, verdict)
}

/// Each gene's fact, and each significant gene that has none.
fn judge_genes(
    request: &Request,
    expected: &Expected,
    outcome: &Outcome,
    tolerance: f64,
    judge: &mut Judge<'_>,
) {
    // A q as close to alpha as the tolerance may fall on either side.
    let margin = request.alpha * tolerance;
    let rows: HashMap<&str, &Gene> =
        expected.genes.iter().map(|gene| (gene.id.as_str(), gene)).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut holding = Vec::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let Some(id) = fact.subject.strip_prefix("de/gene/") else {
            continue;
        };
        let place = format!("/facts/{n}/content");
        if let Some(first) = seen.insert(id, n) {
            let message = format!("gene `{id}` has a second fact");
            judge.verdict.finding(
                Finding::error("gene-doubled", message, first, n).at(format!("/facts/{n}")),
            );
        }
        match rows.get(id) {
            Some(gene) if gene.moderated.q < request.alpha + margin => {
                if judge_fact(request, gene, fact, &place, judge) {
                    holding.push(fact.subject.clone());
                }
            }
            other => invented(request, id, other.copied(), fact, &place, judge),
        }
    }
    for gene in expected.genes.iter().filter(|gene| gene.moderated.q < request.alpha - margin) {
        if !seen.contains_key(gene.id.as_str()) {
            missing(gene, judge);
        }
    }
    let note = judge.closeness.note(holding.len(), "genes");
    judge.verdict.check("gene-statistics", holding, note);
}

fn missing(gene: &Gene, judge: &mut Judge<'_>) {
    let message = format!("gene `{}` is significant and has no fact", gene.id);
    let right = json!({ "gene": gene.id, "q": gene.moderated.q });
    judge.verdict.finding(Finding::error("gene-missing", message, right, "no fact").at("/facts"));
}

fn judge_fact(
    request: &Request,
    gene: &Gene,
    fact: &DraftFact,
    place: &str,
    judge: &mut Judge<'_>,
) -> bool {
    let before = judge.verdict.findings.len();
    match fact.content::<Found>() {
        Ok(found) => {
            judge.gene(gene, &found, &|pointer| format!("{place}/{pointer}"));
        }
        Err(failure) => {
            let expected = "log2_fold_change, mean, t, p, q and welch with t, df, p and q";
            let finding = Finding::error("content-shape", failure.message, expected, &fact.content);
            judge.verdict.finding(finding.at(place));
        }
    }
    overview::frame(request, fact, place, judge.verdict);
    judge.verdict.findings.len() == before
}

fn invented(
    request: &Request,
    id: &str,
    gene: Option<&Gene>,
    fact: &DraftFact,
    place: &str,
    judge: &mut Judge<'_>,
) {
    let (message, right) = match gene {
        Some(gene) => (
            format!("gene `{id}` is not significant: its q is {}", gene.moderated.q),
            json!({ "q": gene.moderated.q, "alpha": request.alpha }),
        ),
        None => (format!("gene `{id}` is not among the tested genes"), json!("no such gene")),
    };
    judge.verdict.finding(Finding::error("gene-invented", message, right, &fact.content).at(place));
}
