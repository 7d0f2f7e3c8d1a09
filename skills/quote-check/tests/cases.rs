//! The embedded cases, and real outcomes of `document-table`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, run_verifier_cases, submission};
use checkrein_skill::{Outcome, Skill, Verifier};
use document_table::{Args, DocumentTable};
use quote_check::QuoteCheck;
use serde_json::{Value, json};

#[test]
fn cases_run_and_changes_are_caught() {
    let caught = run_verifier_cases::<QuoteCheck>(include_str!("../cases.toml"));
    assert!(caught > 0.95, "{caught}");
}

#[test]
fn an_honest_table_is_accepted_and_all_of_it_is_named() {
    let world = World::new()
        .with("/in/A letter.md", "\u{feff}Größe: 12 m, \"breit\"\r\nZeile 2\r\n")
        .with("/in/b.txt", "nothing of the kind\n");
    let args = json!({
        "documents": ["/in/A letter.md", "/in/b.txt"],
        "fields": [
            { "name": "size", "pattern": "Größe:\\s*(.*)$" },
            { "name": "line", "pattern": "^Zeile \\d" },
        ],
    });
    let typed: Args = serde_json::from_value(args.clone()).unwrap();
    let outcome = DocumentTable::execute(call(typed.clone())).unwrap();
    let verdict = QuoteCheck::verify(&submission("document-table", args, outcome.clone())).unwrap();
    assert!(verdict.findings.is_empty(), "{:#?}", verdict.findings);
    let named: Vec<&String> = verdict.checks.iter().flat_map(|check| &check.about).collect();
    assert!(outcome.facts.iter().all(|fact| named.contains(&&fact.subject)));
    assert!(named.iter().any(|name| *name == "table.csv"));
    assert!(world.read("/work/table.csv").contains("\"12 m, \"\"breit\"\"\""));
}

#[test]
fn every_count_of_the_content_is_held_against_the_facts() {
    let _world = World::new().with("/in/a.txt", "since 1999\n");
    let args = json!({
        "documents": ["/in/a.txt"],
        "fields": [{ "name": "year", "pattern": "\\d{4}" }, { "name": "x", "pattern": "xyz" }],
    });
    let typed: Args = serde_json::from_value(args.clone()).unwrap();
    let honest = DocumentTable::execute(call(typed)).unwrap();
    let places = |content: Value| {
        let outcome = Outcome { content, ..honest.clone() };
        let verdict = QuoteCheck::verify(&submission("document-table", args.clone(), outcome));
        let findings = verdict.unwrap().findings;
        findings.into_iter().filter_map(|finding| finding.location).collect::<Vec<String>>()
    };
    assert!(places(honest.content.clone()).is_empty());
    for key in ["documents", "fields", "found", "missing"] {
        let place = [format!("/content/{key}")];
        let mut negated = honest.content.clone();
        negated[key] = json!(-negated[key].as_i64().unwrap());
        assert_eq!(places(negated), place);
        let mut left_out = honest.content.clone();
        left_out.as_object_mut().unwrap().remove(key);
        assert_eq!(places(left_out), place);
    }
    let mut more = honest.content.clone();
    more["pages"] = json!(3);
    assert_eq!(places(more), ["/content/pages"]);
}
