//! Questions to a person, their answers, and the inbox through which answers come from other
//! processes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::event::{Closing, Draft};
use crate::id::{AskId, CallId, SubgoalId, Timestamp};
use crate::task::Criterion;

/// What a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Asked {
    /// What a planner or a recovery wants to know.
    #[default]
    Question,
    /// May this call be made? It cannot be taken back.
    Approval {
        /// What the approval binds to: see [`action_digest`].
        action: Digest,
        /// The skill.
        skill: String,
        /// Its component.
        component: Digest,
        /// The arguments.
        args: Map<String, Value>,
    },
    /// The host ended while this call was made, and it cannot simply be repeated: did it happen?
    CallUnknown {
        /// The call.
        call: CallId,
    },
    /// The subgoal does not get on by itself: how is it to go on?
    HandOver {
        /// Why it would be closed otherwise.
        because: Box<Closing>,
    },
}

/// What a person says to an ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The call may be made, once.
    Approved {
        /// Until then; `None` is without end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The call may not be made.
    Denied {
        /// Why not.
        reason: String,
    },
    /// In words, for the planner: data, never an instruction to the host.
    Said {
        /// The words.
        text: String,
    },
    /// The skill is to be called with these arguments.
    Args {
        /// The arguments.
        args: Map<String, Value>,
    },
    /// Try again.
    Retry,
    /// Do not try any more: the subgoal is closed.
    GiveUp {
        /// Why.
        reason: String,
    },
    /// The call did happen.
    Happened {
        /// What came out of it, as the person says; it waits in quarantine like any other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Attested>,
    },
    /// The call did not happen: it is repeated.
    NotHappened,
}

impl Answer {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Answer::Approved { .. } => "approved",
            Answer::Denied { .. } => "denied",
            Answer::Said { .. } => "said",
            Answer::Args { .. } => "args",
            Answer::Retry => "retry",
            Answer::GiveUp { .. } => "give-up",
            Answer::Happened { .. } => "happened",
            Answer::NotHappened => "not-happened",
        }
    }
}

impl Answer {
    /// The blobs that it names.
    pub fn blobs(&self) -> Vec<Digest> {
        match self {
            Answer::Happened { outcome: Some(attested) } => vec![attested.outcome],
            _ => Vec::new(),
        }
    }
}

impl Asked {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Asked::Question => "question",
            Asked::Approval { .. } => "approval",
            Asked::CallUnknown { .. } => "call-unknown",
            Asked::HandOver { .. } => "hand-over",
        }
    }

    /// Whether this answers it at all.
    pub fn takes(&self, answer: &Answer) -> bool {
        match self {
            Asked::Question => {
                matches!(
                    answer,
                    Answer::Said { .. } | Answer::Args { .. } | Answer::Retry | Answer::GiveUp { .. }
                )
            }
            Asked::Approval { .. } => matches!(answer, Answer::Approved { .. } | Answer::Denied { .. }),
            Asked::CallUnknown { .. } => {
                matches!(answer, Answer::Happened { .. } | Answer::NotHappened | Answer::GiveUp { .. })
            }
            Asked::HandOver { .. } => {
                matches!(
                    answer,
                    Answer::Said { .. } | Answer::Args { .. } | Answer::Retry | Answer::GiveUp { .. }
                )
            }
        }
    }
}

/// An outcome that a person stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attested {
    /// The outcome as canonical JSON, in a blob.
    pub outcome: Digest,
    /// Its draft facts.
    pub drafts: Vec<Draft>,
}

/// What the digest of an action is over: the skill, its component, the arguments, and the inputs
/// that it sees. An approval holds for this and for nothing else.
pub fn action_digest(
    skill: &str,
    component: &Digest,
    args: &Map<String, Value>,
    inputs: &[(String, Digest)],
) -> Digest {
    Digest::of_json(&serde_json::json!({
        "skill": skill, "component": component, "args": args, "inputs": inputs,
    }))
}

/// What is changed about a task while it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amendment {
    /// The goal, in other words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Parameters with other values.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Criteria that are added to subgoals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<(SubgoalId, Criterion)>,
}

/// What another process tells whoever drives the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Message {
    /// An ask is answered.
    Answer {
        /// Which.
        ask: AskId,
        /// How.
        #[serde(rename = "with")]
        answer: Answer,
    },
    /// The run is to stop, with its log whole, so that it can be resumed.
    Cancel,
    /// The task is changed.
    Amend {
        /// How.
        amendment: Amendment,
    },
    /// A letter that this version cannot read. Nobody writes one; it is what a reader makes of it.
    Unreadable {
        /// Why not.
        why: String,
    },
}

/// A message in the inbox of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    /// Its place in the inbox of all runs; later letters have larger ones.
    pub id: u64,
    /// Who put it there: the name of a user of this machine.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// What it says.
    pub message: Message,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_read_back() {
        let args = json!({ "x": 1 }).as_object().unwrap().clone();
        let answers = [
            Answer::Approved { until: Some(Timestamp(5)) },
            Answer::Denied { reason: "no".into() },
            Answer::Args { args },
            Answer::Happened { outcome: None },
            Answer::NotHappened,
        ];
        for answer in answers {
            let message = Message::Answer { ask: "1".into(), answer };
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message, "{text}");
        }
    }

    #[test]
    fn an_approval_holds_for_one_action() {
        let args = |x: i64| json!({ "x": x }).as_object().unwrap().clone();
        let inputs = [("in/a".to_owned(), Digest::of("a"))];
        let one = action_digest("s", &Digest::of("c"), &args(1), &inputs);
        for other in [
            action_digest("t", &Digest::of("c"), &args(1), &inputs),
            action_digest("s", &Digest::of("d"), &args(1), &inputs),
            action_digest("s", &Digest::of("c"), &args(2), &inputs),
            action_digest("s", &Digest::of("c"), &args(1), &[]),
        ] {
            assert_ne!(one, other);
        }
    }
}
