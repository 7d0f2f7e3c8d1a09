//! Hostile guests, each a complete skill with one part replaced, and the wall that stops it.

mod answers;
mod clock;
mod cost;
mod growth;
mod isolation;
mod reach;
mod storage;
mod time;

use checkrein_contract::interface::{Body, Call, Cause, FailureKind, LimitHit, Mishap, Subgoal, Submission};
use checkrein_contract::port::Guests as _;
use serde_json::json;

use super::*;
use crate::sandbox::Sandbox;
use crate::testing::{Guest, ready, sandbox};

const LOOP: &str = "(loop $again (br $again)) unreachable";

pub(crate) fn subgoal() -> Subgoal {
    Subgoal { id: "s".into(), goal: "g".into(), args: json!({}), evidence: Vec::new(), criteria: Vec::new() }
}

fn call() -> Call {
    Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) }
}

pub(crate) fn submission() -> Submission {
    let outcome = Outcome { content: json!({ "n": 1 }), facts: Vec::new(), artifacts: Vec::new() };
    Submission {
        skill: "test".into(),
        version: "1.0.0".into(),
        subgoal: subgoal(),
        body: Body::Performed { call: call(), outcome },
        inputs: Vec::new(),
        settings: json!({}),
    }
}

pub(crate) fn mishap() -> Mishap {
    Mishap { subgoal: subgoal(), call: call(), cause: Cause::Other("o".into()), earlier: Vec::new() }
}

fn hit<T: std::fmt::Debug>(ran: &Ran<T>) -> LimitHit {
    match &ran.end {
        End::Limited(hit) => hit.clone(),
        end => panic!("{end:?}"),
    }
}

/// Executes the guest with one limit changed.
async fn executed(guest: &Guest, key: LimitKey, value: u64) -> Ran<Execution> {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, guest);
    setting.limits = setting.limits.with(key, value);
    sandbox.execute(setting, call()).await
}

fn executing(body: &str) -> Guest {
    Guest { execute: body.to_owned(), ..Guest::default() }
}

async fn assert_nothing_left(sandbox: &Sandbox) {
    let left: Vec<_> = std::fs::read_dir(&sandbox.0.scratch).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn an_honest_skill_answers_in_every_part() {
    let (sandbox, _folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    let End::Returned(assessment) = sandbox.assess(setting.clone(), subgoal()).await.end else { panic!() };
    assert_eq!((assessment.score, assessment.reason.as_str()), (50, "because"));
    let ran = sandbox.execute(setting.clone(), call()).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.result.unwrap().content, json!({ "n": 1 }));
    assert!(ran.used.fuel > 0 && ran.used.memory_bytes == 4 << 16);
    let ran = sandbox.verify(setting.clone(), submission()).await;
    let End::Returned(Ok(verdict)) = ran.end else { panic!("{ran:?}") };
    assert!(!verdict.rejects());
    let ran = sandbox.recover(setting, mishap()).await;
    let End::Returned(advice) = ran.end else { panic!("{ran:?}") };
    assert_eq!(advice.diagnosis, "d");
    assert_nothing_left(&sandbox).await;
}

fn sleeper(nanos: u64) -> Guest {
    let mut guest = executing(&format!("(call $block (call $subscribe (i64.const {nanos}))) unreachable"));
    guest.imports = r#"
        (import "wasi:io/poll@0.2.0" (instance $poll
          (export "pollable" (type $pollable (sub resource)))
          (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
          (export "now" (func (result u64)))
          (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
        (core func $block (canon lower (func $poll "[method]pollable.block")))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core func $now (canon lower (func $clock "now")))
        (core instance $time
          (export "block" (func $block)) (export "subscribe" (func $subscribe)) (export "now" (func $now)))"#
        .to_owned();
    guest.with = r#"(with "time" (instance $time))"#.to_owned();
    guest.core = r#"(import "time" "block" (func $block (param i32)))
        (import "time" "subscribe" (func $subscribe (param i64) (result i32)))
        (import "time" "now" (func $now (result i64)))"#
        .to_owned();
    guest
}
