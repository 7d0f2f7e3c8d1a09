//! The facts, held against `de.csv`.

use std::collections::HashMap;

use checkrein_skill::prelude::*;

use crate::model::Gene;
use crate::report::{self, GeneContent, PriorContent, Summary};
use crate::{Args, report::subject};

pub(super) fn check(genes: &[Gene], args: &Args, outcome: &Outcome, verdict: &mut Verdict) {
    let mut expected: HashMap<String, Value> = genes
        .iter()
        .filter(|gene| gene.q < args.alpha)
        .map(|gene| (subject(&gene.id), json!(GeneContent::from(gene))))
        .collect();
    let summary = Summary::of(genes, args.alpha);
    expected.insert("de/summary".into(), json!(summary));
    let mut holding = Vec::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let before = verdict.findings.len();
        check_frame(n, fact, args, verdict);
        if fact.subject == "de/prior" {
            check_prior(n, fact, outcome, verdict);
        } else {
            check_content(n, fact, expected.remove(&fact.subject), verdict);
        }
        if verdict.findings.len() == before {
            holding.push(fact.subject.clone());
        }
    }
    check_missing(expected.into_keys().collect(), outcome, verdict);
    check_summary(&summary, outcome, verdict);
    let note = format!(
        "each fact equals its row of {}, and each q below {} has one",
        report::TABLE,
        args.alpha
    );
    verdict.check("facts", holding, note);
}

fn check_frame(n: usize, fact: &DraftFact, args: &Args, verdict: &mut Verdict) {
    verdict.equal(
        "kind",
        "another kind",
        &"statistic",
        &fact.kind.as_str(),
        format!("/facts/{n}/kind"),
    );
    verdict.equal(
        "source",
        "not the counts",
        &args.counts,
        &fact.source,
        format!("/facts/{n}/source"),
    );
}

fn check_content(n: usize, fact: &DraftFact, expected: Option<Value>, verdict: &mut Verdict) {
    let Some(expected) = expected else {
        let message =
            format!("`{}` has no row with q below alpha, or is there twice", fact.subject);
        let actual = &fact.content;
        verdict.finding(
            Finding::error("invented", message, "no such fact", actual).at(format!("/facts/{n}")),
        );
        return;
    };
    let message = format!("`{}` is not what {} says", fact.subject, report::TABLE);
    verdict.equal("fact", message, &expected, &fact.content, format!("/facts/{n}/content"));
}

/// The prior's degrees of freedom and the residual ones make up those of the test.
fn check_prior(n: usize, fact: &DraftFact, outcome: &Outcome, verdict: &mut Verdict) {
    let place = format!("/facts/{n}/content");
    let Ok(prior) = fact.content::<PriorContent>() else {
        let expected = "an object of df and variance";
        verdict.finding(Finding::error("prior", "not a prior", expected, &fact.content).at(place));
        return;
    };
    if prior.df.is_some_and(|df| df <= 0.0) || prior.variance <= 0.0 {
        verdict.finding(
            Finding::error("range", "a prior is positive", "over 0", &fact.content).at(&place),
        );
    }
    let count = |key: &str| outcome.content[key].as_f64().unwrap_or(f64::NAN);
    let residual = count("treated_samples") + count("control_samples") - 2.0;
    let most = residual * outcome.content["summary"]["kept"].as_f64().unwrap_or(f64::NAN);
    let expected = (residual + prior.df.unwrap_or(f64::INFINITY)).min(most);
    let actual = count("total_df");
    if !Comparison::within(super::TOLERANCE).agree(expected, actual) {
        let message = "prior and residual degrees of freedom do not make up those of the test";
        verdict.finding(Finding::error("prior", message, expected, actual).at(place));
    }
}

fn check_missing(mut missing: Vec<String>, outcome: &Outcome, verdict: &mut Verdict) {
    missing.sort();
    if outcome.find("de/prior").is_none() {
        missing.push("de/prior".into());
    }
    for subject in missing {
        let message = format!("`{subject}` has no fact");
        verdict.finding(Finding::error("left-out", message, &subject, "no such fact").at("/facts"));
    }
}

fn check_summary(summary: &Summary, outcome: &Outcome, verdict: &mut Verdict) {
    let actual = outcome.content["summary"].clone();
    let message = "the content's summary is not what the table says";
    verdict.equal("summary", message, &json!(summary), &actual, "/content/summary");
}
