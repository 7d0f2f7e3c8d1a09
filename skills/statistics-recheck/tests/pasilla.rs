//! The real data: honest outcomes pass, each kind of lie is found.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, submission};
use checkrein_skill::{Outcome, Skill, Verdict, Verifier};
use differential_expression::{Args, DifferentialExpression};
use serde_json::{Value, json};
use statistics_recheck::StatisticsRecheck;

const COUNTS: &str = include_str!("../../../tests/tasks/pasilla/pasilla_gene_counts.tsv");
const ANNOTATION: &str = include_str!("../../../tests/tasks/pasilla/pasilla_sample_annotation.csv");

fn args() -> Value {
    json!({ "counts": "/in/counts.tsv", "annotation": "/in/annotation.csv", "strip_suffix": "fb" })
}

fn run() -> (World, Outcome) {
    let world = World::new().with("/in/counts.tsv", COUNTS).with("/in/annotation.csv", ANNOTATION);
    let typed: Args = serde_json::from_value(args()).unwrap();
    let outcome = DifferentialExpression::execute(call(typed)).unwrap();
    (world, outcome)
}

fn judge(outcome: &Outcome) -> Verdict {
    StatisticsRecheck::verify(&submission("differential-expression", args(), outcome.clone()))
        .unwrap()
}

fn rules(verdict: &Verdict) -> Vec<&str> {
    verdict.findings.iter().map(|finding| finding.rule.as_str()).collect()
}

#[test]
fn an_honest_outcome_holds_to_a_billionth() {
    let (_world, outcome) = run();
    let verdict = judge(&outcome);
    assert!(verdict.findings.is_empty(), "{:#?}", verdict.findings);
    let named: Vec<&String> = verdict.checks.iter().flat_map(|check| &check.about).collect();
    assert!(outcome.facts.iter().all(|fact| named.contains(&&fact.subject)));
    assert!(named.iter().any(|name| *name == "de.csv"));
    for check in &verdict.checks {
        println!("{}: {}", check.rule, check.note);
    }
    let mut submission = submission("differential-expression", args(), outcome);
    submission.settings = json!({ "tolerance": 1e-9 });
    assert!(StatisticsRecheck::verify(&submission).unwrap().findings.is_empty());
}

#[test]
fn each_lie_is_found_with_its_gene_and_place() {
    let (_world, honest) = run();
    let (at, fact) = honest.find("de/gene/FBgn0025111").unwrap();
    let lie = |pointer: &str, factor: f64| {
        let mut outcome = honest.clone();
        let number = outcome.facts[at].content.pointer_mut(pointer).unwrap();
        *number = json!(number.as_f64().unwrap() * factor);
        judge(&outcome)
    };
    for (pointer, factor, rule) in [
        ("/p", 1.1, "p-value"),
        ("/q", 0.9, "q-value"),
        ("/log2_fold_change", -1.0, "fold-change-sign"),
        ("/log2_fold_change", 1.01, "fold-change"),
        ("/t", 7_f64.sqrt(), "standard-error"),
        ("/mean", 1.001, "mean"),
        ("/welch/t", 1.001, "welch-standard-error"),
        ("/welch/df", 1.001, "welch-df"),
        ("/welch/p", 1.001, "welch-p-value"),
        ("/welch/q", 1.001, "welch-q-value"),
    ] {
        let verdict = lie(pointer, factor);
        assert_eq!(rules(&verdict), [rule]);
        let finding = &verdict.findings[0];
        assert!(finding.message.contains("FBgn0025111"), "{finding:?}");
        assert_eq!(
            finding.location.as_deref(),
            Some(format!("/facts/{at}/content{pointer}").as_str())
        );
        assert_eq!(Some(&finding.expected.as_f64().is_some()), Some(&true));
        assert_ne!(finding.expected, finding.actual);
    }
    let mut left_out = honest.clone();
    left_out.facts.remove(at);
    assert_eq!(rules(&judge(&left_out)), ["gene-missing"]);
    let mut invented = honest.clone();
    let mut twin = fact.clone();
    twin.subject = "de/gene/FBgn9999999".into();
    invented.facts.push(twin);
    assert_eq!(rules(&judge(&invented)), ["gene-invented"]);
}

#[test]
fn the_table_is_read_row_by_row() {
    let (world, honest) = run();
    let table = world.read("/work/de.csv");
    let lines: Vec<&str> = table.lines().collect();
    let without = [&lines[..4000], &lines[4001..]].concat().join("\n");
    world.write("/work/de.csv", without);
    assert_eq!(rules(&judge(&honest)), ["gene-missing"]);
    world.write("/work/de.csv", table.replacen("FBgn0039155", "FBgn9999999", 1));
    assert_eq!(rules(&judge(&honest)), ["gene-invented", "gene-missing"]);
    let mut swapped = lines.clone();
    swapped.swap(100, 101);
    world.write("/work/de.csv", swapped.join("\n"));
    assert_eq!(rules(&judge(&honest)), ["order"]);
}

#[test]
fn many_findings_are_capped_with_a_count() {
    let (_world, mut outcome) = run();
    for fact in &mut outcome.facts {
        if let Some(p) = fact.content.pointer_mut("/p") {
            *p = json!(p.as_f64().unwrap() * 1.5);
        }
    }
    let verdict = judge(&outcome);
    assert_eq!(verdict.findings.len(), 21);
    assert_eq!(verdict.findings[20].message, "603 more findings are left out");
}

#[test]
fn what_it_does_not_know_is_unsupported_and_no_pass() {
    let outcome = Outcome::new(json!({}));
    let failure = StatisticsRecheck::verify(&submission("x", json!({}), outcome)).unwrap_err();
    assert_eq!(failure.kind.name(), "unsupported");
    let (_world, mut outcome) = run();
    outcome.facts[0].subject = "other/thing".into();
    let failure = StatisticsRecheck::verify(&submission("x", args(), outcome)).unwrap_err();
    assert_eq!(failure.kind.name(), "unsupported");
}
