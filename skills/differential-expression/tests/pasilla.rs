//! The numbers of limma 3.54.1 on the real data, within 1 × 10⁻⁶ relative.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, mishap, submission};
use checkrein_skill::{Cause, Outcome, Remedy, Skill};
use differential_expression::DifferentialExpression as Skilled;
use differential_expression::{Args, report, table::Counts};
use serde_json::{Value, json};

const COUNTS: &str = include_str!("../../../tests/tasks/pasilla/pasilla_gene_counts.tsv");
const ANNOTATION: &str = include_str!("../../../tests/tasks/pasilla/pasilla_sample_annotation.csv");

fn world() -> World {
    World::new().with("/in/counts.tsv", COUNTS).with("/in/annotation.csv", ANNOTATION)
}

fn args(changes: Value) -> Value {
    let mut args = json!({ "counts": "/in/counts.tsv", "annotation": "/in/annotation.csv" });
    args.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    args
}

fn typed(args: &Value) -> Args {
    serde_json::from_value(args.clone()).unwrap()
}

fn outcome() -> Outcome {
    Skilled::execute(call(typed(&args(json!({ "strip_suffix": "fb" }))))).unwrap()
}

fn close(what: &str, actual: &Value, expected: f64) {
    let actual = actual.as_f64().unwrap_or_else(|| panic!("{what}: {actual}"));
    let difference = ((actual - expected) / expected).abs();
    assert!(difference < 1e-6, "{what}: {actual} is not {expected}, {difference:e}");
}

#[test]
fn libraries_are_the_column_sums() {
    let counts = Counts::read("/in/counts.tsv", COUNTS.as_bytes()).unwrap();
    let expected =
        [13972512.0, 21911438.0, 8358426.0, 9841335.0, 18670279.0, 9571826.0, 10343856.0];
    assert_eq!(counts.libraries(), expected);
    assert_eq!(counts.genes.len(), 14_599);
}

#[test]
fn summary_prior_and_genes_are_limmas() {
    let _world = world();
    let outcome = outcome();
    let content = |subject: &str| &outcome.find(subject).unwrap().1.content;
    let summary = json!({ "kept": 7908, "significant": 623, "up": 371, "down": 252, "significant_welch": 183 });
    assert_eq!(content("de/summary"), &summary);
    close("prior df", &content("de/prior")["df"], 2.573136989);
    close("prior variance", &content("de/prior")["variance"], 0.0292817285);
    let genes: [(&str, [f64; 7]); 4] = [
        (
            "FBgn0039155",
            [
                -4.5283090,
                -34.271869,
                1.3921458e-09,
                1.0618633e-05,
                -31.230755,
                2.9968651,
                7.2706687e-05,
            ],
        ),
        (
            "FBgn0025111",
            [
                2.9452952,
                31.406632,
                2.6855419e-09,
                1.0618633e-05,
                40.783789,
                3.2523659,
                1.6101026e-05,
            ],
        ),
        (
            "FBgn0034736",
            [
                -3.4091678,
                -29.035419,
                4.8452729e-09,
                1.2772139e-05,
                -33.677351,
                4.8522927,
                6.1096609e-07,
            ],
        ),
        (
            "FBgn0035085",
            [
                -2.4915424,
                -26.733252,
                9.0086640e-09,
                1.7810129e-05,
                -39.059016,
                4.9078084,
                2.6007656e-07,
            ],
        ),
    ];
    let pointers = ["/log2_fold_change", "/t", "/p", "/q", "/welch/t", "/welch/df", "/welch/p"];
    for (id, expected) in genes {
        for (pointer, expected) in pointers.iter().zip(expected) {
            let actual = content(&report::subject(id)).pointer(pointer).unwrap();
            close(&format!("{id}{pointer}"), actual, expected);
        }
    }
}

#[test]
fn the_outcome_is_small_enough_and_the_same_every_time() {
    let world = world();
    let first = outcome();
    let table = world.read("/work/de.csv");
    assert_eq!(first, outcome());
    assert_eq!(table, world.read("/work/de.csv"));
    assert_eq!(table.lines().count(), 7_909);
    assert_eq!(first.facts.len(), 625);
    let bytes: usize =
        first.facts.iter().map(|fact| fact.content.to_string().len() + fact.subject.len()).sum();
    assert!(bytes < 1 << 20, "{bytes}");
}

#[test]
fn names_that_do_not_join_are_mended_by_the_recovery() {
    let _world = world();
    let failure = Skilled::execute(call(typed(&args(json!({}))))).unwrap_err();
    assert_eq!(failure.kind.name(), "invalid-args");
    assert_eq!(failure.evidence["missing"].as_array().unwrap().len(), 7);
    let advice = Skilled::recover(&mishap(args(json!({})), Cause::Failed(failure)));
    assert_eq!(advice.diagnosis, "sample names differ by a suffix");
    assert_eq!(advice.remedy, Remedy::RetryWith(args(json!({ "strip_suffix": "fb" }))));
}

#[test]
fn an_honest_outcome_is_accepted_and_all_of_it_is_named() {
    let _world = world();
    let outcome = outcome();
    let args = typed(&args(json!({ "strip_suffix": "fb" })));
    let verdict =
        Skilled::verify(&submission("differential-expression", args, outcome.clone())).unwrap();
    assert!(verdict.findings.is_empty(), "{:#?}", verdict.findings);
    let named: Vec<&String> = verdict.checks.iter().flat_map(|check| &check.about).collect();
    assert!(outcome.facts.iter().all(|fact| named.contains(&&fact.subject)));
    assert!(named.iter().any(|name| *name == "de.csv"));
}
