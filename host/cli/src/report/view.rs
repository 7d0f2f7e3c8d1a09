//! The read model of a run.

use std::collections::BTreeMap;

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Closing, ComponentCard, CriterionState, Ended, FactEntry, Judge, Judgement, Person, Reason, RunStatus,
    Stop, StoredArtifact,
};
use checkrein_contract::id::{AskId, CallId, FactId, RunId, StageId, SubgoalId, Timestamp};
use checkrein_contract::interface::Remedy;
use checkrein_contract::limits::Used;
use checkrein_contract::problem::Problem;
use checkrein_contract::record::Record;
use checkrein_contract::task::Task;
use serde_json::{Map, Value};

mod course;
mod lookup;

pub use course::{AmendmentView, AnswerView, AskView, Export, RefusedLetter, ResumeView};
pub use lookup::ReadFile;

/// A run, as far as its events go.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run.
    pub run: RunId,
    /// Its task, as it was amended last.
    pub task: Task,
    /// The digest of that task's JSON.
    pub task_digest: Digest,
    /// The digest of the task that it started with, as it stands in the log.
    pub first_task: Digest,
    /// The planner.
    pub planner: String,
    /// The engine and its version; after a resume, the one that it went on with.
    pub engine: String,
    /// Every engine that it was driven with, in the order in which they came.
    pub engines: Vec<String>,
    /// Whether verifications ran in a process of their own.
    pub apart: bool,
    /// Whether nothing was executed and nothing left.
    pub dry: bool,
    /// What of it may wait for a person.
    pub person: Person,
    /// The skills and verifiers that are in force, skills first.
    pub components: Vec<ComponentCard>,
    /// Components that were in force before, and are not any more.
    pub replaced: Vec<ComponentCard>,
    /// When it started.
    pub started: Timestamp,
    /// When its last event was appended.
    pub last: Timestamp,
    /// How it ended; `None` while it has not.
    pub status: Option<RunStatus>,
    /// Why it ended so, in words.
    pub reason: String,
    /// Why it stopped, if it did and was not resumed since.
    pub stopped: Option<Stop>,
    /// Which process drives it now, if one does: the log does not say.
    pub driver: Option<String>,
    /// The digest of its last event.
    pub head: Digest,
    /// How many events it has.
    pub events: u64,
    /// Its stages, in the order of the task.
    pub stages: Vec<StageView>,
    /// Every fact that was accepted and not abandoned, in the order of acceptance.
    pub facts: Vec<FactView>,
    /// For each subject, the places in `facts` of its versions, oldest first.
    pub by_subject: BTreeMap<String, Vec<usize>>,
    /// Every artifact of an accepted call that was not abandoned, in the order of acceptance.
    pub artifacts: Vec<ArtifactView>,
    /// Other content on subjects that had a fact.
    pub contradictions: Vec<ContradictionView>,
    /// Every question to a person, in the order in which they were opened.
    pub asks: Vec<AskView>,
    /// Every change of the task, in order.
    pub amendments: Vec<AmendmentView>,
    /// How often it went on after it stopped or its process ended, each time for itself.
    pub resumes: Vec<ResumeView>,
    /// Letters from which nothing followed.
    pub refused: Vec<RefusedLetter>,
    /// Tokens that the planner used.
    pub tokens: u64,
    /// The file that holds the whole run, if one was made.
    pub export: Option<Export>,
    /// What amendments abandoned: no table, no count and no number of a report has it.
    pub history: History,
}

/// What came out of subgoals that were opened again.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The calls, in the order of their abandoning.
    pub calls: Vec<CallView>,
    /// The facts.
    pub facts: Vec<FactView>,
    /// The artifacts.
    pub artifacts: Vec<ArtifactView>,
}

/// A stage.
#[derive(Clone, Debug)]
pub struct StageView {
    /// Its id.
    pub id: StageId,
    /// Its title, or its id.
    pub title: String,
    /// Whether the run came to it.
    pub entered: bool,
    /// Whether it was met; `None` while it is not evaluated.
    pub met: Option<bool>,
    /// Its subgoals, in the order of the task.
    pub subgoals: Vec<SubgoalView>,
}

/// A subgoal.
#[derive(Clone, Debug)]
pub struct SubgoalView {
    /// Its id.
    pub id: SubgoalId,
    /// In words.
    pub goal: String,
    /// When it was opened; `None` if it never was.
    pub opened: Option<Timestamp>,
    /// When it was closed.
    pub closed: Option<Timestamp>,
    /// Why it was closed.
    pub closing: Option<Closing>,
    /// Its arguments, resolved.
    pub args: Map<String, Value>,
    /// The facts that it could read.
    pub scope: Vec<FactId>,
    /// The triggers that did something at their walls.
    pub triggers: Vec<TriggerView>,
    /// Its calls, in order.
    pub calls: Vec<CallView>,
    /// Actions that were turned down before any call.
    pub refusals: Vec<RefusalView>,
    /// Its criteria, as they were evaluated last.
    pub criteria: Vec<CriterionState>,
}

/// A trigger that did something at its walls.
#[derive(Clone, Debug)]
pub struct TriggerView {
    /// Of which skill.
    pub skill: String,
    /// What it did.
    pub record: Record,
}

/// An action that was turned down.
#[derive(Clone, Debug)]
pub struct RefusalView {
    /// When.
    pub at: Timestamp,
    /// All that was wrong with it.
    pub problems: Vec<Problem>,
}

/// A call.
#[derive(Clone, Debug)]
pub struct CallView {
    /// Its id.
    pub id: CallId,
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// The skill.
    pub skill: String,
    /// Its version.
    pub version: String,
    /// Its component.
    pub component: Digest,
    /// The arguments.
    pub args: Map<String, Value>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its seed.
    pub seed: u64,
    /// When it was intended.
    pub at: Timestamp,
    /// The approval that it used up.
    pub ask: Option<AskId>,
    /// Whether the host ended while it was made.
    pub unknown: bool,
    /// How it ended; `None` while it runs, or after a crash.
    pub ended: Option<Ended>,
    /// Whether its outcome is what a person says of it.
    pub attested: bool,
    /// What it used.
    pub used: Option<Used>,
    /// The digest of its log.
    pub log: Option<Digest>,
    /// What it did at its walls.
    pub record: Record,
    /// What was said of its submission, in order.
    pub verdicts: Vec<VerdictView>,
    /// Whether its submission was let through; `None` without a decision.
    pub accepted: Option<bool>,
    /// Why it was not.
    pub reasons: Vec<Reason>,
    /// What the recovery says.
    pub advice: Option<AdviceView>,
}

/// What a judge said.
#[derive(Clone, Debug)]
pub struct VerdictView {
    /// Who.
    pub judge: Judge,
    /// What.
    pub judgement: Judgement,
    /// What judging used.
    pub used: Used,
    /// What it did at its walls.
    pub record: Record,
}

/// What a recovery said.
#[derive(Clone, Debug)]
pub struct AdviceView {
    /// In a few stable words.
    pub diagnosis: String,
    /// What it advises.
    pub remedy: Option<Remedy>,
    /// What it did at its walls.
    pub record: Record,
}

/// A fact, with its content and who stands for it.
#[derive(Clone, Debug)]
pub struct FactView {
    /// The entry of the pool.
    pub entry: FactEntry,
    /// The finding itself.
    pub content: Value,
    /// The skill that found it out.
    pub skill: String,
    /// The component of that skill.
    pub component: Digest,
    /// The call that it came out of.
    pub call: CallId,
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// Who checked it.
    pub verified_by: Vec<VerifiedBy>,
}

/// One judge of a fact or an artifact, with the checks that name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedBy {
    /// Its name.
    pub verifier: String,
    /// Its component; `None` is the gateway.
    pub component: Option<Digest>,
    /// Its checks.
    pub checks: Vec<CheckNote>,
}

/// A check without the list of what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckNote {
    /// The rule that holds.
    pub rule: String,
    /// What was compared and how close it was.
    pub note: String,
}

/// An artifact of an accepted call.
#[derive(Clone, Debug)]
pub struct ArtifactView {
    /// The file.
    pub file: StoredArtifact,
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// The call that it came out of.
    pub call: CallId,
    /// Who checked it.
    pub verified_by: Vec<VerifiedBy>,
    /// Its bytes as a page can show them, if it is a figure; else why not.
    pub figure: Result<Vec<u8>, String>,
}

/// Other content on a subject that had a fact.
#[derive(Clone, Debug)]
pub struct ContradictionView {
    /// In which call's submission.
    pub call: CallId,
    /// On which subject.
    pub subject: String,
    /// The fact.
    pub current: FactId,
    /// The digest of the other content.
    pub other: Digest,
}

impl FactView {
    /// The value at a JSON Pointer; the empty one is the whole content.
    pub fn value(&self, pointer: &str) -> Option<&Value> {
        self.content.pointer(pointer)
    }
}

impl ArtifactView {
    /// `<subgoal>/<path>`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.subgoal, self.file.path)
    }
}

impl SubgoalView {
    /// One that was not opened yet.
    pub fn new(id: SubgoalId, goal: String) -> Self {
        SubgoalView {
            id,
            goal,
            opened: None,
            closed: None,
            closing: None,
            args: Map::new(),
            scope: Vec::new(),
            triggers: Vec::new(),
            calls: Vec::new(),
            refusals: Vec::new(),
            criteria: Vec::new(),
        }
    }

    /// Whether its criteria hold over its accepted facts.
    pub fn is_met(&self) -> bool {
        self.closing == Some(Closing::Met)
    }
}

impl CallView {
    /// Whether it failed or was turned down: what uses up an attempt. A call that was stopped with
    /// the run is made again, and one that happened after all did not go wrong.
    pub fn went_wrong(&self) -> bool {
        match self.ended {
            None | Some(Ended::Cancelled | Ended::Happened) => false,
            Some(Ended::Outcome { .. }) => self.accepted == Some(false),
            Some(
                Ended::Failed { .. } | Ended::Limited { .. } | Ended::Trapped { .. } | Ended::Invalid { .. },
            ) => true,
        }
    }
}
