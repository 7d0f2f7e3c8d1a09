//! The records of the WIT package `checkrein:skill`, as Rust types. `wit/` is the authority on
//! what they mean; JSON documents are parsed here, so that nothing past the sandbox handles text
//! that may not be JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the strategy layer asks the task loop to achieve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subgoal {
    /// Its id, unique in the task.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Unique in the world, and the same when the call is repeated after a crash.
    pub id: String,
    /// Conforms to the skill's argument schema.
    pub args: Value,
    /// The attempt at the subgoal that this call belongs to, from 1.
    pub attempt: u32,
    /// Seeds everything random.
    pub seed: u64,
    /// The operator's settings for this skill.
    pub settings: Value,
}

/// When a skill applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// 0 does not apply, 100 made for it.
    pub score: u8,
    /// Why.
    pub reason: String,
    /// Arguments that the skill can draw from the subgoal by itself; they fill only absent keys.
    pub args: Option<Value>,
}

/// Something an executor found out, on its way to quarantine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DraftFact {
    /// What it is about.
    pub subject: String,
    /// Which kind of evidence it is.
    pub kind: String,
    /// The finding itself.
    pub content: Value,
    /// A path under `/in` or `/artifacts`, a URL that this call fetched, or a fact id.
    pub source: String,
    /// The id of the fact that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
}

/// Who stands for a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The skill's own verification alone.
    SelfChecked,
    /// At least one verifier that is not part of the skill.
    Independent,
    /// A person.
    Attested,
}

impl Level {
    /// The word that the WIT and every output use.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::SelfChecked => "self-checked",
            Level::Independent => "independent",
            Level::Attested => "attested",
        }
    }
}

/// A verified, immutable entry of the fact pool, with its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// `<subject>@<version>`.
    pub id: String,
    /// 1 for the first fact on a subject, then counted up.
    pub version: u32,
    /// What it is about.
    pub subject: String,
    /// Which kind of evidence it is.
    pub kind: String,
    /// The finding itself.
    pub content: Value,
    /// Where it comes from.
    pub source: String,
    /// Who stands for it.
    pub level: Level,
}

/// A file that an executor wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Relative to `/work`.
    pub path: String,
    /// For people.
    pub title: String,
    /// Such as `text/csv`.
    pub media_type: String,
}

/// What an executor achieved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The result as a whole.
    pub content: Value,
    /// What was found out, each its own draft.
    pub facts: Vec<DraftFact>,
    /// Files that it wrote.
    pub artifacts: Vec<Artifact>,
}

/// Why something was not achieved, in kinds that a planner can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The arguments make no sense to this skill: change them.
    InvalidArgs,
    /// What was asked for does not exist.
    NotFound,
    /// Something outside is down or busy.
    Unavailable,
    /// The host refused a capability.
    Denied,
    /// The skill cannot do this at all.
    Unsupported,
    /// A fault of the skill's own.
    Internal,
}

impl FailureKind {
    /// The word that the WIT and every output use.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::InvalidArgs => "invalid-args",
            FailureKind::NotFound => "not-found",
            FailureKind::Unavailable => "unavailable",
            FailureKind::Denied => "denied",
            FailureKind::Unsupported => "unsupported",
            FailureKind::Internal => "internal",
        }
    }
}

/// Why something was not achieved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind.
    pub kind: FailureKind,
    /// For people and planners.
    pub message: String,
    /// What was seen: a status, a line, a row.
    pub evidence: Value,
}

/// Something the planner states, resting on facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Unique in its submission.
    pub id: String,
    /// In words.
    pub text: String,
    /// In a form that can be checked, where the planner gave one.
    pub value: Option<Value>,
    /// Ids of the facts that it rests on.
    pub rests_on: Vec<String>,
}

/// What a submission submits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one is made for each submission")]
pub enum Body {
    /// A call and what came out of it.
    Performed {
        /// The call.
        call: Call,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Statements of the planner.
    Statements(Vec<Statement>),
}

/// What a verification judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The skill whose outcome it is, or `planner`.
    pub skill: String,
    /// The skill's version.
    pub version: String,
    /// The subgoal that it is meant for.
    pub subgoal: Subgoal,
    /// What is judged.
    pub body: Body,
    /// The verified facts that the arguments or statements name.
    pub inputs: Vec<Fact>,
    /// The operator's settings for this verifier.
    pub settings: Value,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Rejects the submission.
    Error,
    /// Is shown, and rejects nothing.
    Warning,
}

/// One thing held against a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable word for the rule that does not hold.
    pub rule: String,
    /// Whether it rejects.
    pub severity: Severity,
    /// For people and planners.
    pub message: String,
    /// What should have been there.
    pub expected: Value,
    /// What was there.
    pub actual: Value,
    /// A JSON Pointer into the outcome, a statement's id, or a file of `/work`.
    pub location: Option<String>,
    /// How to mend it.
    pub suggestion: Option<String>,
}

/// One thing that was looked at and holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// A stable word for the rule that holds.
    pub rule: String,
    /// Subjects of draft facts, paths of artifacts, or ids of statements.
    pub about: Vec<String>,
    /// What was compared and how close it was.
    pub note: String,
}

/// What a verification says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was looked at and holds.
    pub checks: Vec<Check>,
    /// What does not.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether a finding of it rejects the submission.
    pub fn rejects(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// A limit that a call ran into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    /// Its configuration key.
    pub limit: String,
    /// The value in force.
    pub allowed: u64,
    /// What was used, or would have been.
    pub used: u64,
}

/// Why a call did not lead to a met subgoal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The executor gave up.
    Failed(Failure),
    /// Verification found these.
    Rejected(Vec<Finding>),
    /// The call ran into a limit.
    Limited(LimitHit),
    /// The component trapped.
    Trapped(String),
    /// Accepted, but these criteria do not hold yet.
    Unmet(Vec<String>),
    /// Anything else.
    Other(String),
}

/// What a recovery is asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mishap {
    /// The subgoal.
    pub subgoal: Subgoal,
    /// The call that did not lead to it.
    pub call: Call,
    /// Why.
    pub cause: Cause,
    /// Causes of the earlier attempts, oldest first.
    pub earlier: Vec<Cause>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Call again with other arguments.
    RetryWith(Value),
    /// Call again unchanged after so many milliseconds.
    RetryAfter(u32),
    /// Try another skill, by name.
    UseSkill(String),
    /// Ask the planner for a new plan, with a hint.
    Replan(String),
    /// Hand over to a person, with the question.
    AskPerson(String),
    /// Stop trying, with the reason.
    GiveUp(String),
}

/// What a recovery advises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Why it went wrong, in a few stable words.
    pub diagnosis: String,
    /// What to do.
    pub remedy: Remedy,
}
