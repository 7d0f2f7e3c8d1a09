//! The event log: an append-only, hash-chained record of a run. What is not an event did not
//! happen. Events are decisions, not observations of them, so a newer binary folds an old log.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ask::{Amendment, Answer, Asked, Message};
use crate::digest::Digest;
use crate::grant::Granted;
use crate::id::{AskId, CallId, FactId, RunId, StageId, SubgoalId, Timestamp};
use crate::interface::{Check, Failure, Finding, Level, LimitHit, Remedy};
use crate::limits::{Limits, Used};
use crate::manifest::{Effects, Manifest};
use crate::problem::Problem;
use crate::record::Record;
use crate::task::Task;

/// A component that a run may use, as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentCard {
    /// The digest of its file.
    pub component: Digest,
    /// Its manifest.
    pub manifest: Manifest,
    /// The limits in force for its calls.
    pub limits: Limits,
    /// The subjects it may write: those of the manifest, narrowed by the grant.
    pub facts: Vec<String>,
    /// The operator's settings.
    pub settings: Value,
    /// What it may reach: asked for and granted, both.
    #[serde(default)]
    pub granted: Granted,
    /// What a call changes outside: the stronger of what its manifest says and what its grants
    /// allow, unless the operator says that it is idempotent.
    pub effects: Effects,
    /// The largest score that its trigger may give.
    pub max_score: u8,
}

impl ComponentCard {
    /// The name of the component.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }
}

/// A verifier that the operator bound to skills or subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The name of the verifier.
    pub verifier: String,
    /// Skills whose submissions it judges; `*` is all.
    pub on: Vec<String>,
    /// Patterns of subjects: a submission with a draft fact on one of them is judged.
    pub on_facts: Vec<String>,
    /// The operator's settings for it here.
    pub settings: Value,
}

/// What of a run may wait for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Person {
    /// Nothing: what would be asked ends its subgoal.
    Never,
    /// Calls that cannot be taken back, and questions of planner and recoveries; a subgoal that does
    /// not get on is closed.
    Approvals,
    /// That, and a subgoal that does not get on by itself.
    #[default]
    Always,
}

/// Everything that a run starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The run.
    pub run: RunId,
    /// The task.
    pub task: Task,
    /// The skills.
    pub skills: Vec<ComponentCard>,
    /// The verifiers.
    pub verifiers: Vec<ComponentCard>,
    /// Which verifiers judge what, in the order of the configuration.
    pub bindings: Vec<Binding>,
    /// The planner, such as `triggers`.
    pub planner: String,
    /// The engine and its version: fuel depends on it.
    pub engine: String,
    /// The wall clock that guests see.
    pub clock: Timestamp,
    /// Whether verifications ran in a process of their own, behind the gateway's own wall.
    #[serde(default)]
    pub apart: bool,
    /// What may wait for a person.
    #[serde(default)]
    pub person: Person,
    /// Whether nothing leaves: executors do not run, and their answers are stated or recorded ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry: bool,
    /// Tokens that one proposal of the planner may use at most; 0 for one that uses none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proposal_tokens: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The components of a run and what they may do, as they are in force from some point on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InForce {
    /// The skills.
    pub skills: Vec<ComponentCard>,
    /// The verifiers.
    pub verifiers: Vec<ComponentCard>,
    /// Which verifiers judge what.
    pub bindings: Vec<Binding>,
}

/// Why a run stopped without having ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Nothing is left to do until a person answers.
    Person,
    /// It was cancelled.
    Cancelled,
    /// Its process was asked to end.
    Interrupted,
}

impl Stop {
    /// The word that every output uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Stop::Person => "waiting",
            Stop::Cancelled => "cancelled",
            Stop::Interrupted => "interrupted",
        }
    }
}

/// One trigger's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessed {
    /// The skill.
    pub skill: String,
    /// 0 to 100, capped by the grant.
    pub score: u8,
    /// Why; or why it could not say.
    pub reason: String,
    /// Arguments that it drew from the subgoal.
    pub args: Option<Map<String, Value>>,
    /// What it did at its walls.
    #[serde(default, skip_serializing_if = "Record::is_empty")]
    pub record: Record,
}

/// A draft fact in quarantine: all but its content, which is in the outcome's blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// What it is about.
    pub subject: String,
    /// Which kind of evidence it is.
    pub kind: String,
    /// The digest of its content.
    pub content: Digest,
    /// Where it comes from.
    pub source: String,
    /// The fact that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
}

/// A file that came out of a call, by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredArtifact {
    /// Relative to `/work`.
    pub path: String,
    /// For people.
    pub title: String,
    /// Such as `text/csv`.
    pub media_type: String,
    /// Its content.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Ended {
    /// With an outcome, now in quarantine.
    Outcome {
        /// The outcome as canonical JSON; its digest is what replays compare.
        outcome: Digest,
        /// Its draft facts.
        drafts: Vec<Draft>,
        /// Its files.
        artifacts: Vec<StoredArtifact>,
    },
    /// With a failure of the executor.
    Failed {
        /// What it says.
        failure: Failure,
    },
    /// A limit fired.
    Limited {
        /// Which.
        hit: LimitHit,
    },
    /// The component trapped.
    Trapped {
        /// What the engine says.
        message: String,
    },
    /// What it returned is not what the interface allows.
    Invalid {
        /// What is wrong.
        problem: Problem,
    },
    /// The run was stopped while it was made. It changed nothing outside, and is made again.
    Cancelled,
    /// A person says that it happened; what came out of it is not known.
    Happened,
}

/// Who judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "kebab-case")]
pub enum Judge {
    /// The gateway's own checks.
    Gateway,
    /// The skill's own verification.
    Own {
        /// The skill.
        name: String,
        /// Its component.
        component: Digest,
    },
    /// A bound verifier.
    Verifier {
        /// The verifier.
        name: String,
        /// Its component.
        component: Digest,
        /// Which binding: the same verifier may be bound twice, with other settings.
        binding: usize,
    },
}

impl Judge {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Judge::Gateway => "gateway",
            Judge::Own { name, .. } | Judge::Verifier { name, .. } => name,
        }
    }

    /// Its component, if it is one.
    pub fn component(&self) -> Option<Digest> {
        match self {
            Judge::Gateway => None,
            Judge::Own { component, .. } | Judge::Verifier { component, .. } => Some(*component),
        }
    }
}

/// What a judge says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Judgement {
    /// Nothing rejects it.
    Accepted {
        /// What was looked at and holds.
        checks: Vec<Check>,
        /// Warnings.
        findings: Vec<Finding>,
    },
    /// At least one finding rejects it.
    Rejected {
        /// What was looked at and holds.
        checks: Vec<Check>,
        /// What does not.
        findings: Vec<Finding>,
    },
    /// It could not judge: never a pass.
    Unavailable {
        /// Why not.
        reason: String,
    },
}

impl Judgement {
    /// The checks, if it judged.
    pub fn checks(&self) -> &[Check] {
        match self {
            Judgement::Accepted { checks, .. } | Judgement::Rejected { checks, .. } => checks,
            Judgement::Unavailable { .. } => &[],
        }
    }

    /// The findings, if it judged.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Judgement::Accepted { findings, .. } | Judgement::Rejected { findings, .. } => findings,
            Judgement::Unavailable { .. } => &[],
        }
    }
}

/// A fact of the pool: all but its content, which is item `index` of the outcome's facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactEntry {
    /// `<subject>@<version>`.
    pub id: FactId,
    /// What it is about.
    pub subject: String,
    /// Counted up from 1 for each subject.
    pub version: u32,
    /// Which kind of evidence it is.
    pub kind: String,
    /// Where it comes from.
    pub source: String,
    /// Who stands for it.
    pub level: Level,
    /// The digest of its content.
    pub content: Digest,
    /// Where its content is: this item of the outcome's facts.
    pub index: u32,
}

impl FactEntry {
    /// Whether it takes the place of another on the same subject: it is newer, and does not merely
    /// state the same with less to stand on.
    pub fn replaces(&self, other: &FactEntry) -> bool {
        let weaker = self.content == other.content && self.level < other.level;
        self.version > other.version && !weaker
    }
}

/// The state of a criterion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionState {
    /// In words.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// What it came to, or why it could not be evaluated.
    pub note: String,
}

/// Why a submission was rejected: two rejections with the same reason say the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reason {
    /// Who found it.
    pub verifier: String,
    /// The rule.
    pub rule: String,
    /// The place.
    pub place: String,
}

/// Why a subgoal was closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "kebab-case")]
pub enum Closing {
    /// Its criteria hold over its accepted facts.
    Met,
    /// A reference in its arguments does not resolve.
    Unresolved {
        /// Each that does not.
        problems: Vec<Problem>,
    },
    /// No skill applies to it.
    NoSkill {
        /// What was found out.
        detail: String,
    },
    /// Its attempts are used up.
    AttemptsUsed {
        /// How many there were.
        attempts: u32,
    },
    /// Too many refusals in a row.
    Refused {
        /// How many there were.
        refusals: u32,
    },
    /// The same reason twice in a row.
    SameReason {
        /// The reason.
        reasons: Vec<Reason>,
    },
    /// A verification could not judge, twice.
    Unverified {
        /// Whose.
        verifier: String,
        /// Why.
        reason: String,
    },
    /// The host ended again and again while the same call was made: it may be the call that ends it.
    Interrupted {
        /// The call.
        call: CallId,
        /// How often.
        times: u32,
    },
    /// A person must answer, and the run waits for none.
    NeedsPerson {
        /// The question.
        question: String,
    },
    /// The planner, or a remedy, gave up.
    GaveUp {
        /// Why.
        reason: String,
    },
    /// A budget is used up.
    BudgetUsed {
        /// Which: `run`, a stage or a subgoal, and what.
        budget: String,
    },
    /// A subgoal that it comes after was not met.
    Blocked {
        /// Which.
        by: SubgoalId,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// Every stage was met.
    Done,
    /// A stage was not.
    NotReached,
    /// A person must answer: how runs of earlier versions ended, which waited for none.
    NeedsPerson,
}

impl RunStatus {
    /// The word that every output uses.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::NotReached => "not-reached",
            RunStatus::NeedsPerson => "needs-person",
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A run starts from this.
    RunStarted {
        /// From what.
        setup: Box<Setup>,
    },
    /// A position in the log to which the strategy can go back.
    RestorePointSet {
        /// Its name.
        name: String,
    },
    /// The stage begins.
    StageEntered {
        /// Which.
        stage: StageId,
    },
    /// The subgoal begins.
    SubgoalOpened {
        /// Which.
        subgoal: SubgoalId,
        /// The facts that it and its calls can read; fixed from here on.
        scope: Vec<FactId>,
        /// The artifacts that its calls can read: calls whose artifacts are in scope.
        artifacts: Vec<CallId>,
        /// Its arguments, with every reference resolved.
        args: Map<String, Value>,
    },
    /// The triggers have answered.
    SkillsAssessed {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// What each said, best first.
        assessed: Vec<Assessed>,
    },
    /// The planner proposes.
    ActionProposed {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// As it came, unchecked.
        action: Value,
        /// Tokens that the planner used.
        #[serde(default, skip_serializing_if = "is_zero")]
        tokens: u64,
    },
    /// What a proposal may use is set aside.
    TokensReserved {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// Tokens.
        tokens: u64,
    },
    /// The action was turned down before anything ran.
    ActionRefused {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// All that is wrong with it.
        problems: Vec<Problem>,
    },
    /// What a call may use is set aside.
    BudgetReserved {
        /// For which call.
        call: CallId,
        /// Fuel.
        fuel: u64,
        /// Wall time, in milliseconds.
        wall_ms: u64,
    },
    /// A call will be made. On disk before it is.
    CallIntended {
        /// The call.
        call: CallId,
        /// For which subgoal.
        subgoal: SubgoalId,
        /// The skill.
        skill: String,
        /// Its version.
        version: String,
        /// Its component.
        component: Digest,
        /// The arguments.
        args: Map<String, Value>,
        /// Which attempt at the subgoal it belongs to, from 1.
        attempt: u32,
        /// Its seed.
        seed: u64,
        /// The approval that it uses up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<AskId>,
    },
    /// The host ended while the call was made: whether it happened is not known.
    CallUnknown {
        /// The call.
        call: CallId,
    },
    /// A call has ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// How.
        ended: Ended,
        /// The digest of its log, if it wrote any.
        log: Option<Digest>,
        /// What it did at its walls.
        #[serde(default, skip_serializing_if = "Record::is_empty")]
        record: Record,
        /// Whether its outcome is what a person says of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        attested: bool,
    },
    /// What the call used is charged, the rest given back.
    BudgetSettled {
        /// For which call.
        call: CallId,
        /// What it used.
        used: Used,
    },
    /// A judge has spoken on a call's submission.
    VerdictGiven {
        /// On which call.
        call: CallId,
        /// Who.
        judge: Judge,
        /// What.
        judgement: Judgement,
        /// What judging used.
        used: Used,
        /// What it did at its walls.
        #[serde(default, skip_serializing_if = "Record::is_empty")]
        record: Record,
    },
    /// The submission was let through: here, and only here, facts are made.
    OutcomeAccepted {
        /// Of which call.
        call: CallId,
        /// The facts.
        facts: Vec<FactEntry>,
        /// The files.
        artifacts: Vec<StoredArtifact>,
    },
    /// The submission was turned down.
    OutcomeRejected {
        /// Of which call.
        call: CallId,
        /// Why.
        reasons: Vec<Reason>,
    },
    /// Other content on a subject that has a current fact.
    ContradictionFound {
        /// In which call's submission.
        call: CallId,
        /// On which subject.
        subject: String,
        /// The current fact.
        current: FactId,
        /// The digest of the other content.
        other: Digest,
    },
    /// The criteria were evaluated.
    CriteriaEvaluated {
        /// Of which subgoal.
        subgoal: SubgoalId,
        /// Each of them.
        criteria: Vec<CriterionState>,
    },
    /// The recovery's diagnosis and remedy.
    RemedyGiven {
        /// For which call.
        call: CallId,
        /// In a few stable words.
        diagnosis: String,
        /// What it advises; none if it could not say.
        remedy: Option<Remedy>,
        /// What the recovery did at its walls.
        #[serde(default, skip_serializing_if = "Record::is_empty")]
        record: Record,
    },
    /// The subgoal waits.
    TimerSet {
        /// Which.
        subgoal: SubgoalId,
        /// Until then.
        until: Timestamp,
    },
    /// It has waited.
    TimerReached {
        /// Which.
        subgoal: SubgoalId,
    },
    /// A question to a person.
    AskOpened {
        /// Which.
        #[serde(default = "no_ask")]
        ask: AskId,
        /// For which subgoal.
        subgoal: SubgoalId,
        /// What is asked.
        #[serde(default)]
        about: Asked,
        /// The question, in words.
        question: String,
    },
    /// A person has answered.
    AskAnswered {
        /// Which ask.
        ask: AskId,
        /// How.
        answer: Answer,
        /// Who.
        by: String,
    },
    /// Another process told something; what follows from it stands in the events after it.
    LetterTaken {
        /// Its place in the inbox.
        letter: u64,
        /// Who put it there.
        by: String,
        /// What it says.
        said: Message,
        /// Why nothing follows from it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// The task is another from here on.
    TaskAmended {
        /// What was changed.
        amendment: Amendment,
        /// The version of the goal card, from 2.
        version: u32,
        /// Subgoals that are open again. Their facts and artifacts are abandoned.
        reopened: Vec<SubgoalId>,
        /// Subgoals whose criteria are evaluated again. Their facts stand.
        evaluated: Vec<SubgoalId>,
    },
    /// A subgoal whose criteria were evaluated again is met, and what comes after it is open again:
    /// what was closed since it was not met, and all if it is met by other facts than before.
    DependentsReopened {
        /// The subgoal.
        by: SubgoalId,
        /// Those that come after it. Their facts and artifacts are abandoned.
        reopened: Vec<SubgoalId>,
    },
    /// The subgoal is over.
    SubgoalClosed {
        /// Which.
        subgoal: SubgoalId,
        /// Why.
        closing: Closing,
    },
    /// The stage is over.
    StageEvaluated {
        /// Which.
        stage: StageId,
        /// Whether all of its subgoals were met.
        met: bool,
    },
    /// Who drives the run from here on; appends of whoever did before are refused.
    LeaseTaken {
        /// Counted up by one each time.
        epoch: u64,
        /// Which process.
        holder: String,
    },
    /// The run goes on after it stopped, or after its process ended.
    RunResumed {
        /// The engine and its version.
        engine: String,
        /// The components, where what they may do is no longer what it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_force: Option<Box<InForce>>,
    },
    /// The run stops without having ended. It can be resumed.
    RunStopped {
        /// Why.
        because: Stop,
    },
    /// The run is over.
    RunEnded {
        /// How.
        status: RunStatus,
        /// In words.
        reason: String,
    },
}

fn no_ask() -> AskId {
    AskId("0".to_owned())
}

impl Event {
    /// The word for it, as in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted { .. } => "run-started",
            Event::RestorePointSet { .. } => "restore-point-set",
            Event::StageEntered { .. } => "stage-entered",
            Event::SubgoalOpened { .. } => "subgoal-opened",
            Event::SkillsAssessed { .. } => "skills-assessed",
            Event::ActionProposed { .. } => "action-proposed",
            Event::ActionRefused { .. } => "action-refused",
            Event::BudgetReserved { .. } => "budget-reserved",
            Event::CallIntended { .. } => "call-intended",
            Event::TokensReserved { .. } => "tokens-reserved",
            Event::CallUnknown { .. } => "call-unknown",
            Event::CallEnded { .. } => "call-ended",
            Event::BudgetSettled { .. } => "budget-settled",
            Event::VerdictGiven { .. } => "verdict-given",
            Event::OutcomeAccepted { .. } => "outcome-accepted",
            Event::OutcomeRejected { .. } => "outcome-rejected",
            Event::ContradictionFound { .. } => "contradiction-found",
            Event::CriteriaEvaluated { .. } => "criteria-evaluated",
            Event::RemedyGiven { .. } => "remedy-given",
            Event::TimerSet { .. } => "timer-set",
            Event::TimerReached { .. } => "timer-reached",
            Event::AskOpened { .. } => "ask-opened",
            Event::AskAnswered { .. } => "ask-answered",
            Event::LetterTaken { .. } => "letter-taken",
            Event::TaskAmended { .. } => "task-amended",
            Event::DependentsReopened { .. } => "dependents-reopened",
            Event::LeaseTaken { .. } => "lease-taken",
            Event::RunResumed { .. } => "run-resumed",
            Event::RunStopped { .. } => "run-stopped",
            Event::SubgoalClosed { .. } => "subgoal-closed",
            Event::StageEvaluated { .. } => "stage-evaluated",
            Event::RunEnded { .. } => "run-ended",
        }
    }

    /// The digests of the blobs that the event names.
    pub fn blobs(&self) -> Vec<Digest> {
        match self {
            Event::RunStarted { setup } => {
                let inputs = setup.task.inputs.iter().map(|input| input.digest);
                let components = setup.skills.iter().chain(&setup.verifiers).map(|card| card.component);
                inputs.chain(components).collect()
            }
            Event::VerdictGiven { record, .. } | Event::RemedyGiven { record, .. } => {
                record.blobs().collect()
            }
            Event::RunResumed { in_force: Some(now), .. } => {
                now.skills.iter().chain(&now.verifiers).map(|card| card.component).collect()
            }
            Event::AskAnswered { answer, .. }
            | Event::LetterTaken { said: Message::Answer { answer, .. }, .. } => answer.blobs(),
            Event::SkillsAssessed { assessed, .. } => {
                assessed.iter().flat_map(|one| one.record.blobs()).collect()
            }
            Event::CallEnded { ended, log, record, .. } => {
                let mut blobs: Vec<Digest> = log.iter().copied().chain(record.blobs()).collect();
                if let Ended::Outcome { outcome, artifacts, .. } = ended {
                    blobs.push(*outcome);
                    blobs.extend(artifacts.iter().map(|artifact| artifact.digest));
                }
                blobs
            }
            _ => Vec::new(),
        }
    }
}

/// An event as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Its position, from 1.
    pub seq: u64,
    /// When it was appended.
    pub at: Timestamp,
    /// The digest of the one before, [`Digest::ZERO`] for the first.
    pub prev: Digest,
    /// Its own digest: over run, position, time, the digest before, and the payload.
    pub digest: Digest,
    /// What happened.
    pub event: Event,
}

/// The digest of an event: of the canonical JSON array of run, position, time, digest before and
/// payload, so that none of them can be changed without changing it.
pub fn chain(run: &RunId, seq: u64, at: Timestamp, prev: &Digest, payload: &str) -> Digest {
    let head = serde_json::json!([run, seq, at, prev]);
    Digest::of(format!("{head}\n{payload}"))
}
