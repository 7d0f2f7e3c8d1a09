//! Hostile guests, each a complete skill with one part replaced, and the wall that stops it.

mod answers;
mod clock;
mod cost;
mod costs;
mod growth;
mod isolation;
mod reach;
mod replay;
mod storage;
mod time;

use checkrein_contract::interface::{FailureKind, LimitHit};
use checkrein_contract::port::Guests as _;
use serde_json::json;

use super::*;
use crate::attack::guest::LOOP;
use crate::attack::time::sleeper;
pub(crate) use crate::attack::{call, mishap, subgoal, submission};
use crate::sandbox::Sandbox;
use crate::testing::{Guest, ready, sandbox};

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
