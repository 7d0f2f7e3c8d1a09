//! The embedded cases, and the real counts.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::Skill;
use checkrein_skill::testing::{World, call, run_cases, submission};
use serde_json::json;
use table_profile::{Args, TableProfile};

#[test]
fn cases_run_and_changes_are_caught() {
    let caught = run_cases::<TableProfile>(include_str!("../cases.toml"));
    assert!(caught > 0.95, "{caught}");
}

#[test]
fn the_pasilla_counts() {
    const COUNTS: &str = include_str!("../../../tests/tasks/pasilla/pasilla_gene_counts.tsv");
    let _world = World::new().with("/in/pasilla_gene_counts.tsv", COUNTS);
    let args: Args =
        serde_json::from_value(json!({ "table": "/in/pasilla_gene_counts.tsv" })).unwrap();
    let outcome = TableProfile::execute(call(args.clone())).unwrap();
    let content = |subject: &str| &outcome.find(subject).unwrap().1.content;
    let table = content("profile/pasilla_gene_counts");
    assert_eq!((&table["rows"], &table["columns"]), (&json!(14_599), &json!(8)));
    assert_eq!((&table["missing"], &table["duplicate_keys"]), (&json!(0), &json!(0)));
    let column = content("profile/pasilla_gene_counts/untreated1");
    assert_eq!((&column["type"], &column["sum"]), (&json!("integer"), &json!(13_972_512)));
    let verdict =
        TableProfile::verify(&submission("table-profile", args, outcome.clone())).unwrap();
    assert!(verdict.findings.is_empty(), "{:#?}", verdict.findings);
}
