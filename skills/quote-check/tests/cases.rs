//! The embedded cases, and real outcomes of `document-table`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, run_verifier_cases, submission};
use checkrein_skill::{Skill, Verifier};
use document_table::{Args, DocumentTable};
use quote_check::QuoteCheck;
use serde_json::json;

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
