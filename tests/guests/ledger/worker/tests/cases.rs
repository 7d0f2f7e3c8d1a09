//! The embedded cases, what it does at each attempt, and what its recovery advises.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, mishap, run_cases, submission};
use checkrein_skill::{Cause, Failure, Outcome, Remedy, Skill};
use serde_json::{Value, json};
use worker::{Args, Worker};

#[test]
fn cases_run_and_changes_are_caught() {
    let caught = run_cases::<Worker>(include_str!("../cases.toml"));
    assert!(caught > 0.9, "{caught}");
}

fn args(more: Value) -> Args {
    let mut args = json!({ "n": 4, "from": "/in/n.txt" });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(args).unwrap()
}

fn at(attempt: u32, more: Value) -> Result<Outcome, Failure> {
    let _world = World::new().with("/in/n.txt", "1\n");
    let mut call = call(args(more));
    call.attempt = attempt;
    Worker::execute(call)
}

#[test]
fn it_fails_at_the_attempts_that_it_is_told() {
    for (fail, works) in [("never", 1), ("first", 2), ("twice", 3), ("always", 6)] {
        for attempt in 1..6 {
            let worked = at(attempt, json!({ "fail": fail })).is_ok();
            assert_eq!(worked, attempt >= works, "{fail}, attempt {attempt}");
        }
    }
}

#[test]
fn what_it_was_asked_to_get_wrong_is_rejected_and_put_right() {
    let outcome = at(1, json!({ "reject": true })).unwrap();
    let verdict =
        Worker::verify(&submission("worker", args(json!({ "reject": true })), outcome)).unwrap();
    assert!(verdict.rejects());
    let asked = json!({ "n": 4, "from": "/in/n.txt", "reject": true });
    let remedy = Worker::recover(&mishap(asked, Cause::Rejected(verdict.findings))).remedy;
    let right = json!({ "n": 4, "from": "/in/n.txt", "reject": false });
    assert_eq!(remedy, Remedy::RetryWith(right));
}
