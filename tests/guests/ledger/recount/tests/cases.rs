//! The embedded cases, and real outcomes of the skills.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, run_verifier_cases, submission};
use checkrein_skill::{Outcome, Skill, Verifier};
use ledger::Ledger;
use recount::Recount;
use serde_json::{Value, json};
use worker::Worker;

#[test]
fn cases_run_and_changes_are_caught() {
    let caught = run_verifier_cases::<Recount>(include_str!("../cases.toml"));
    assert!(caught > 0.9, "{caught}");
}

fn outcome_of<T: Skill>(args: &Value) -> Outcome {
    let _world = World::new().with("/in/n.txt", "1\n");
    T::execute(call(serde_json::from_value(args.clone()).unwrap())).unwrap()
}

#[test]
fn honest_outcomes_are_accepted_and_named() {
    let args = json!({ "n": 7, "from": "/in/n.txt" });
    for outcome in [outcome_of::<Worker>(&args), outcome_of::<Ledger>(&args)] {
        let subject = outcome.facts[0].subject.clone();
        let verdict = Recount::verify(&submission("any", args.clone(), outcome)).unwrap();
        assert!(verdict.findings.is_empty(), "{verdict:#?}");
        assert_eq!(verdict.checks[0].about, [subject]);
    }
}
