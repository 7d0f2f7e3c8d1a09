//! What the parts of a component are asked, and what came of it.

use std::sync::Arc;

use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Granted;
use checkrein_contract::interface::{Body, Call, Cause, LimitHit, Mishap, Outcome, Subgoal, Submission};
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::port::{BoxFuture, End, Guests as _, Observer, Ran, Setting};
use checkrein_contract::record::Record;
use serde_json::{Value, json};

use crate::load::trial_setting;
use crate::sandbox::Sandbox;

/// The part that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Assess,
    Execute,
    Verify,
    Recover,
}

/// What came of it, whatever was asked.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) end: Ended,
    /// The content of an executor's outcome.
    pub(super) content: Option<Value>,
    pub(super) used: Used,
    pub(super) log: String,
    pub(super) record: Record,
}

#[derive(Debug)]
pub(super) enum Ended {
    Returned,
    /// It returned a failure, which is an answer.
    Failed,
    Limit(LimitHit),
    Trap(String),
    /// Refused by this rule.
    Answer(String),
    /// The fault of nobody's component.
    Host(String),
}

/// Asks one part.
pub(super) async fn ask(sandbox: &Sandbox, asked: Asked, setting: Setting) -> Seen {
    match asked {
        Asked::Assess => seen(sandbox.assess(setting, subgoal()).await, |_| false),
        Asked::Execute => {
            let ran = sandbox.execute(setting, call()).await;
            let content = match &ran.end {
                End::Returned(execution) => {
                    execution.result.as_ref().ok().map(|outcome| outcome.content.clone())
                }
                _ => None,
            };
            Seen { content, ..seen(ran, |ran| ran.result.is_err()) }
        }
        Asked::Verify => seen(sandbox.verify(setting, submission()).await, Result::is_err),
        Asked::Recover => seen(sandbox.recover(setting, mishap()).await, |_| false),
    }
}

fn seen<T>(ran: Ran<T>, failed: impl FnOnce(&T) -> bool) -> Seen {
    let end = match ran.end {
        End::Returned(answer) if failed(&answer) => Ended::Failed,
        End::Returned(_) => Ended::Returned,
        End::Limited(hit) => Ended::Limit(hit),
        End::Trapped(message) => Ended::Trap(message),
        End::Invalid(problem) => Ended::Answer(problem.rule),
        End::Storage(error) => Ended::Host(error.to_string()),
        End::Fault(why) => Ended::Host(why),
    };
    Seen { end, content: None, used: ran.used, log: ran.log, record: ran.record }
}

/// A setting in which progress is never answered: a host call that does not return.
pub(super) fn setting(component: Digest, limits: Limits, granted: Granted) -> Setting {
    Setting { granted, observer: Arc::new(Unanswering), ..trial_setting(component, limits) }
}

struct Unanswering;

impl Observer for Unanswering {
    fn log(&self, _: &str, _: &str) {}

    fn progress(&self, _: u32, _: u32, _: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

pub(crate) fn subgoal() -> Subgoal {
    Subgoal { id: "s".into(), goal: "g".into(), args: json!({}), evidence: Vec::new(), criteria: Vec::new() }
}

pub(crate) fn call() -> Call {
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
