//! What comes in: calls, submissions and mishaps.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::facts::Fact;
use crate::{Failure, Finding, Outcome};

/// What the strategy layer asks the task loop to achieve.
#[derive(Clone, Debug, PartialEq)]
pub struct Subgoal {
    /// Its id in the task.
    pub id: String,
    /// The goal in words.
    pub goal: String,
    /// Inputs, with every reference resolved.
    pub args: Value,
    /// The kinds of facts that must come out of it.
    pub evidence: Vec<String>,
    /// What must hold before it is met, in words.
    pub criteria: Vec<String>,
}

/// One request to a skill's executor.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<A = Value> {
    /// Unique in the world, and the same when the call is repeated: the idempotency key of any
    /// outside effect.
    pub id: String,
    /// The arguments; they conform to the skill's schema.
    pub args: A,
    /// The attempt at the subgoal, from 1.
    pub attempt: u32,
    /// Seeds everything random.
    pub seed: u64,
    /// The operator's settings for this skill; an empty object if none. See [`settings`].
    pub settings: Value,
}

/// A call and what came out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Performed<A = Value> {
    /// The call.
    pub call: Call<A>,
    /// What its executor returned.
    pub outcome: Outcome,
}

/// Something the planner states, resting on facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Its id in the submission.
    pub id: String,
    /// The statement in words.
    pub text: String,
    /// The same in a form that can be checked, where the planner gave one.
    pub value: Option<Value>,
    /// Ids of the facts that it rests on.
    pub rests_on: Vec<String>,
}

/// What waits for a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<A = Value> {
    /// The outcome of a call.
    Performed(Box<Performed<A>>),
    /// Statements of the planner.
    Statements(Vec<Statement>),
}

/// What a verification judges. Its artifacts lie read-only under `/work`.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission<A = Value> {
    /// The skill whose outcome it is, or `planner`.
    pub skill: String,
    /// That skill's version.
    pub version: String,
    /// What it was made for.
    pub subgoal: Subgoal,
    /// What is judged.
    pub body: Body<A>,
    /// The verified facts that the arguments or statements name.
    pub inputs: Vec<Fact>,
    /// The operator's settings for the one that judges. See [`settings`].
    pub settings: Value,
}

impl<A> Submission<A> {
    /// The call and its outcome.
    ///
    /// # Errors
    ///
    /// [`Failure::unsupported`] if these are statements of the planner.
    pub fn performed(&self) -> Result<&Performed<A>, Failure> {
        match &self.body {
            Body::Performed(performed) => Ok(performed),
            Body::Statements(statements) => Err(Failure::unsupported(
                "only outcomes of calls can be judged here, not statements",
            )
            .with_evidence(serde_json::json!({ "statements": statements.len() }))),
        }
    }
}

/// A limit that a call ran into.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitHit {
    /// Its configuration key, such as `memory`.
    pub limit: String,
    /// What the limit allows, in its own unit.
    pub allowed: u64,
    /// What was used when it fired.
    pub used: u64,
}

/// Why a call did not lead to a met subgoal.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The executor returned a failure.
    Failed(Failure),
    /// A verification found errors.
    Rejected(Vec<Finding>),
    /// A limit fired.
    Limited(LimitHit),
    /// The executor trapped: the message of the trap.
    Trapped(String),
    /// Accepted, but these criteria do not hold yet.
    Unmet(Vec<String>),
    /// Something else.
    Other(String),
}

/// A call that did not lead to a met subgoal, and what went before.
#[derive(Clone, Debug, PartialEq)]
pub struct Mishap {
    /// What was to be achieved.
    pub subgoal: Subgoal,
    /// The call, its arguments as they were sent.
    pub call: Call<Value>,
    /// What went wrong.
    pub cause: Cause,
    /// Causes of the earlier attempts, oldest first.
    pub earlier: Vec<Cause>,
}

/// The operator's settings as a type; give it `#[serde(default)]` for settings that may be absent.
///
/// # Errors
///
/// [`Failure::invalid_args`] naming the place, if they do not fit. Settings are the operator's: a
/// wrong one must stop the call, not be passed over.
pub fn settings<T: DeserializeOwned>(settings: &Value) -> Result<T, Failure> {
    parse(&settings.to_string(), "settings")
}

/// Parses JSON and says where it does not fit.
pub(crate) fn parse<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, Failure> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        Failure::invalid_args(format!("{what} at `{path}`: {}", error.inner()))
            .with_evidence(serde_json::json!({ "path": path }))
    })?;
    reader.end().map_err(|error| Failure::invalid_args(format!("{what}: {error}")))?;
    Ok(value)
}
