//! The read model of a run.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Closing, ComponentCard, CriterionState, Ended, FactEntry, Judge, Judgement, Reason, RunStatus,
    StoredArtifact,
};
use checkrein_contract::id::{CallId, FactId, RunId, StageId, SubgoalId, Timestamp};
use checkrein_contract::interface::Remedy;
use checkrein_contract::limits::Used;
use checkrein_contract::problem::Problem;
use checkrein_contract::record::Record;
use checkrein_contract::task::Task;
use serde_json::{Map, Value};

/// A run, as far as its events go.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run.
    pub run: RunId,
    /// Its task.
    pub task: Task,
    /// The digest of the task's JSON, as it stands in the log.
    pub task_digest: Digest,
    /// The planner.
    pub planner: String,
    /// The engine and its version.
    pub engine: String,
    /// Whether verifications ran in a process of their own.
    pub apart: bool,
    /// The skills and verifiers that it started with, skills first.
    pub components: Vec<ComponentCard>,
    /// When it started.
    pub started: Timestamp,
    /// When its last event was appended.
    pub last: Timestamp,
    /// How it ended; `None` while it has not.
    pub status: Option<RunStatus>,
    /// Why it ended so, in words.
    pub reason: String,
    /// The digest of its last event.
    pub head: Digest,
    /// How many events it has.
    pub events: u64,
    /// Its stages, in the order of the task.
    pub stages: Vec<StageView>,
    /// Every fact that was accepted, in the order of acceptance.
    pub facts: Vec<FactView>,
    /// For each subject, the places in `facts` of its versions, oldest first.
    pub by_subject: BTreeMap<String, Vec<usize>>,
    /// Every artifact of an accepted call, in the order of acceptance.
    pub artifacts: Vec<ArtifactView>,
    /// Other content on subjects that had a fact.
    pub contradictions: Vec<ContradictionView>,
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
    /// Questions to a person.
    pub asks: Vec<String>,
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
    /// How it ended; `None` while it runs, or after a crash.
    pub ended: Option<Ended>,
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

/// Something that a call read, named in its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// As the call saw it: a path under `/in` or `/artifacts`.
    pub place: String,
    /// Its content.
    pub digest: Digest,
}

impl RunView {
    /// The current fact on a subject: the newest, unless it merely restates one with more to stand on.
    pub fn fact(&self, subject: &str) -> Option<&FactView> {
        self.current(self.by_subject.get(subject)?)
    }

    /// The current facts, in the order of subjects.
    pub fn current_facts(&self) -> impl Iterator<Item = &FactView> {
        self.by_subject.values().filter_map(|versions| self.current(versions))
    }

    fn current(&self, versions: &[usize]) -> Option<&FactView> {
        let facts = versions.iter().filter_map(|at| self.facts.get(*at));
        facts.reduce(|before, fact| if fact.entry.replaces(&before.entry) { fact } else { before })
    }

    /// Whether the report counts this fact: its level is the task's, or higher.
    pub fn counts(&self, fact: &FactView) -> bool {
        fact.entry.level >= self.task.level
    }

    /// The artifact at `<subgoal>/<path>`; of several, the last that was accepted.
    pub fn artifact(&self, place: &str) -> Option<(usize, &ArtifactView)> {
        self.artifacts.iter().enumerate().rev().find(|(_, artifact)| artifact.place() == place)
    }

    /// Every subgoal, in the order of the task.
    pub fn subgoals(&self) -> impl Iterator<Item = &SubgoalView> {
        self.stages.iter().flat_map(|stage| &stage.subgoals)
    }

    /// Every call, in the order of the task.
    pub fn calls(&self) -> impl Iterator<Item = &CallView> {
        self.subgoals().flat_map(|subgoal| &subgoal.calls)
    }

    /// The call with this id.
    pub fn call(&self, id: &CallId) -> Option<&CallView> {
        self.calls().find(|call| call.id == *id)
    }

    /// The version of a component of the run.
    pub fn version_of(&self, component: &Digest) -> Option<&str> {
        let card = self.components.iter().find(|card| card.component == *component)?;
        Some(&card.manifest.version)
    }

    /// The files that a call's arguments name; all inputs of the task if they name none.
    pub fn files_of(&self, call: &CallView) -> Vec<ReadFile> {
        let mut named = BTreeSet::new();
        texts(&call.args, &mut named);
        let inputs: Vec<ReadFile> = self
            .task
            .inputs
            .iter()
            .map(|input| ReadFile { place: format!("/in/{}", input.file), digest: input.digest })
            .collect();
        let artifacts = self.artifacts.iter().map(|artifact| ReadFile {
            place: format!("/artifacts/{}", artifact.place()),
            digest: artifact.file.digest,
        });
        let found: Vec<ReadFile> = inputs
            .iter()
            .cloned()
            .chain(artifacts)
            .filter(|file| named.contains(file.place.as_str()))
            .collect();
        if found.is_empty() { inputs } else { found }
    }
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
    /// Whether its criteria hold over its accepted facts.
    pub fn is_met(&self) -> bool {
        self.closing == Some(Closing::Met)
    }
}

impl CallView {
    /// Whether it did not lead to an accepted outcome.
    pub fn went_wrong(&self) -> bool {
        match self.ended {
            None => false,
            Some(Ended::Outcome { .. }) => self.accepted == Some(false),
            Some(
                Ended::Failed { .. } | Ended::Limited { .. } | Ended::Trapped { .. } | Ended::Invalid { .. },
            ) => true,
        }
    }
}

/// Every text in the values of `map`, at any depth.
fn texts<'v>(map: &'v Map<String, Value>, found: &mut BTreeSet<&'v str>) {
    let mut left: Vec<&Value> = map.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => {
                found.insert(text);
            }
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
