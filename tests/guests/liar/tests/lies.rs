//! The lazy verification passes every lie, and each is told consistently.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::Skill;
use checkrein_skill::testing::{World, call, load_cases, run_cases, submission};
use liar::Liar;
use serde_json::json;

const CASES: &str = include_str!("../cases.toml");

#[test]
fn honest_cases_run_and_some_changes_are_caught() {
    let caught = run_cases::<Liar>(CASES);
    assert!(caught > 0.0 && caught < 0.9, "{caught}");
}

#[test]
fn every_lie_changes_the_outcome_and_passes_the_lazy_verification() {
    let case = load_cases(CASES).remove(0);
    let mut world = World::new();
    for (name, text) in &case.inputs {
        world = world.with(&format!("/in/{name}"), text);
    }
    let args = || serde_json::from_value(case.args.clone()).unwrap();
    let honest = Liar::execute(call(args())).unwrap();
    let table = world.read("/work/de.csv");
    for lie in ["p-value", "standard-error", "sign", "left-out", "invented"] {
        let mut call = call(args());
        call.settings = json!({ "lie": lie });
        let outcome = Liar::execute(call).unwrap();
        assert_ne!(outcome.facts, honest.facts, "{lie}");
        assert_ne!(world.read("/work/de.csv"), table, "{lie}");
        let verdict =
            Liar::verify(&submission("differential-expression", args(), outcome)).unwrap();
        assert!(verdict.findings.is_empty(), "{lie}: {:?}", verdict.findings);
    }
}
