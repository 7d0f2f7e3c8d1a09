//! The plot of the real data. With `VOLCANO=FILE` it is written there, to be looked at.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::Skill;
use checkrein_skill::testing::{World, call, run_cases, submission};
use serde_json::json;
use volcano_plot::{Args, VolcanoPlot};

const COUNTS: &str = include_str!("../../../tests/tasks/pasilla/pasilla_gene_counts.tsv");
const ANNOTATION: &str = include_str!("../../../tests/tasks/pasilla/pasilla_sample_annotation.csv");

#[test]
fn the_plot_is_small_says_what_the_table_says_and_is_accepted() {
    let world = World::new().with("/in/counts.tsv", COUNTS).with("/in/annotation.csv", ANNOTATION);
    let args = json!({ "counts": "/in/counts.tsv", "annotation": "/in/annotation.csv", "strip_suffix": "fb" });
    differential_expression::DifferentialExpression::execute(call(
        serde_json::from_value(args).unwrap(),
    ))
    .unwrap();
    world.write("/artifacts/de/de.csv", world.read("/work/de.csv"));
    let args: Args = serde_json::from_value(
        json!({ "table": "/artifacts/de/de.csv", "title": "Genes that respond to knocking down pasilla" }),
    )
    .unwrap();
    let outcome = VolcanoPlot::execute(call(args.clone())).unwrap();
    let svg = world.read("/work/volcano.svg");
    if let Ok(file) = std::env::var("VOLCANO") {
        std::fs::write(file, &svg).unwrap();
    }
    assert!(svg.len() < 700_000, "{} bytes", svg.len());
    assert_eq!(outcome.content["points"], json!(7908));
    assert_eq!(outcome.content["labelled"][0], json!("FBgn0039155"));
    let verdict = VolcanoPlot::verify(&submission("volcano-plot", args, outcome)).unwrap();
    assert!(verdict.findings.is_empty(), "{:#?}", verdict.findings);
}

#[test]
fn cases_run_and_changes_are_caught() {
    let caught = run_cases::<VolcanoPlot>(include_str!("../cases.toml"));
    assert!(caught > 0.95, "{caught}");
}
