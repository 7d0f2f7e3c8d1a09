//! The facts, held against `de.csv`.

use std::collections::HashMap;

use checkrein_skill::prelude::*;

use crate::model::{Gene, Prior};
use crate::report::{self, GeneContent, PriorContent, Summary};
use crate::{Args, report::subject};

pub(super) fn check(
    genes: &[Gene],
    prior: Prior,
    args: &Args,
    outcome: &Outcome,
    verdict: &mut Verdict,
) {
    let mut expected: HashMap<String, Value> = genes
        .iter()
        .filter(|gene| gene.q < args.alpha)
        .map(|gene| (subject(&gene.id), json!(GeneContent::from(gene))))
        .collect();
    expected.insert("de/summary".into(), json!(Summary::of(genes, args.alpha)));
    expected.insert("de/prior".into(), json!(PriorContent::from(prior)));
    let mut holding = Vec::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let before = verdict.findings.len();
        check_frame(n, fact, args, verdict);
        check_content(n, fact, expected.remove(&fact.subject), verdict);
        if verdict.findings.len() == before {
            holding.push(fact.subject.clone());
        }
    }
    check_missing(expected.into_keys().collect(), verdict);
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
    let message = format!("`{}` is not what {} and the counts say", fact.subject, report::TABLE);
    verdict.equal("fact", message, &expected, &fact.content, format!("/facts/{n}/content"));
}

fn check_missing(mut missing: Vec<String>, verdict: &mut Verdict) {
    missing.sort();
    for subject in missing {
        let message = format!("`{subject}` has no fact");
        verdict.finding(Finding::error("left-out", message, &subject, "no such fact").at("/facts"));
    }
}
