//! What is known of a run: folded from its events, and from nothing else.
//!
//! The state knows ids, subjects, digests and verdicts. Contents of facts and files stay in blobs.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_contract::Digest;
use checkrein_contract::ask::{Answer, Asked};
use checkrein_contract::event::{
    Assessed, Closing, ComponentCard, CriterionState, Ended, Event, FactEntry, Judge, Judgement, Reason,
    RunStatus, Setup, Stop, StoredArtifact,
};
use checkrein_contract::id::{AskId, CallId, FactId, SubgoalId, Timestamp};
use checkrein_contract::interface::Remedy;
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;
use checkrein_contract::task::{ATTEMPTS_MAX, Stage, SubgoalSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::observation::Observation;

mod fold;
mod snapshot;
mod spent;

pub use fold::Unfoldable;
pub use spent::{Short, Spent};

/// Where a subgoal stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Its stage has not come, or a subgoal before it is not met yet.
    Waiting,
    /// Its triggers are being asked.
    Assessing,
    /// The planner is being asked.
    Planning,
    /// This action is to be checked.
    Checking(Value),
    /// A person is being asked.
    Asking(AskId),
    /// This call is being made.
    Calling(CallId),
    /// The host ended while this call was made: it is repeated, or a person is asked.
    Unknown(CallId),
    /// This call has ended with an outcome, now in quarantine.
    Quarantined(CallId),
    /// The judges of this call's submission are being asked.
    Verifying(CallId),
    /// The recovery is being asked about this call.
    Recovering(CallId),
    /// The recovery has answered; then the planner is asked.
    Advised(CallId),
    /// The criteria are being evaluated.
    Evaluating,
    /// They have been: it is met, or the recovery is asked.
    Evaluated,
    /// It waits for a time.
    Sleeping(Timestamp),
    /// It is over.
    Closed(Closing),
}

/// An approval that was given and not used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The ask that was answered.
    pub ask: AskId,
    /// The action that it is for.
    pub action: Digest,
    /// Until when it holds; `None` is without end.
    pub until: Option<Timestamp>,
}

/// A subgoal, as far as it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubgoalState {
    /// Where its specification is: stage and index.
    at: (usize, usize),
    /// Where it stands.
    pub phase: Phase,
    /// The facts that it and its calls can read.
    pub scope: Vec<FactId>,
    /// The calls whose artifacts its calls can read.
    pub artifacts: Vec<CallId>,
    /// Its arguments, resolved.
    pub args: Map<String, Value>,
    /// What the triggers said, best first.
    pub assessed: Vec<Assessed>,
    /// Its calls, in order.
    pub calls: Vec<CallId>,
    /// Calls that were made before it was opened again.
    pub calls_before: u32,
    /// Attempts used up by failures, limits and rejections.
    pub attempts: u32,
    /// Attempts that a person gave it beyond those of the task.
    pub more_attempts: u32,
    /// Whether an attempt is set aside for the call in hand.
    pub attempt_reserved: bool,
    /// Tokens that are set aside for the proposal in hand.
    pub tokens_reserved: u64,
    /// Refusals since the last action that was not refused.
    pub refusals: u32,
    /// What the planner was told, oldest first. Forgotten when it closes.
    pub observations: Vec<Observation>,
    /// Skills that were proposed, whether they were called or refused.
    pub proposed: BTreeSet<String>,
    /// Actions that are not to be taken again, and why: rejected, accepted, denied, done.
    pub closed_actions: BTreeMap<Digest, String>,
    /// The reasons of the last rejection, if the last call was rejected.
    pub last_reasons: Option<Vec<Reason>>,
    /// The last remedy, until an action follows it.
    pub remedy: Option<Remedy>,
    /// What a person answered last, until an action follows it.
    pub answer: Option<Answer>,
    /// The approval that its next call may use.
    pub approval: Option<Approval>,
    /// The criteria, as last evaluated.
    pub criteria: Vec<CriterionState>,
    /// Where its criteria are evaluated again after it was closed: how many calls it had by then.
    pub evaluated_again: Option<usize>,
    /// Wall time that it has used, in milliseconds, up to `since`.
    wall_ms: u64,
    /// The run's driven time from which more of it is used; `None` while it is not open, or waits
    /// for a person.
    since: Option<u64>,
}

/// A call, as far as it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallState {
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// The skill.
    pub skill: String,
    /// Its component.
    pub component: Digest,
    /// The arguments.
    pub args: Map<String, Value>,
    /// From 1.
    pub attempt: u32,
    /// Its seed.
    pub seed: u64,
    /// What it changes outside, as it was when it was intended.
    pub effects: Effects,
    /// Fuel that it may use.
    pub fuel: u64,
    /// Wall time that it may use, in milliseconds.
    pub wall_ms: u64,
    /// Whether a person said that it did not happen, and so may be repeated.
    pub repeats: bool,
    /// How often the process ended while it was made, without having stopped the run.
    pub interrupted: u32,
    /// How it ended.
    pub ended: Option<Ended>,
    /// Whether its outcome is what a person says of it.
    pub attested: bool,
    /// What it did at its walls.
    pub record: Record,
    /// The verdicts on its submission, in order.
    pub verdicts: Vec<(Judge, Judgement)>,
    /// Whether its submission was let through, and stands.
    pub accepted: bool,
    /// Its facts, once accepted.
    pub facts: Vec<FactId>,
    /// Its artifacts, once accepted.
    pub artifacts: Vec<StoredArtifact>,
    /// Contradictions that were found in its submission: subject, and the fact it contradicts.
    pub contradictions: BTreeSet<(String, FactId)>,
}

impl CallState {
    /// How often this judge could not judge the submission.
    pub fn unavailable(&self, judge: &Judge) -> u32 {
        let by = self
            .verdicts
            .iter()
            .filter(|(who, what)| who == judge && matches!(what, Judgement::Unavailable { .. }));
        by.count() as u32
    }
}

/// A fact of the pool, without its content.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolFact {
    /// The fact.
    pub entry: FactEntry,
    /// The call that it came out of.
    pub call: CallId,
    /// The blob of that call's outcome, in which its content is.
    pub outcome: Digest,
    /// Whether its subgoal was opened again: it is in no scope and no context from then on.
    pub abandoned: bool,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskState {
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// What is asked.
    pub about: Asked,
    /// In words.
    pub question: String,
    /// The answer, once there is one.
    pub answer: Option<Answer>,
}

/// An argument that locks: its value, and the met subgoal that used it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The skill.
    pub skill: String,
    /// A JSON Pointer into its arguments.
    pub pointer: String,
    /// The value that the met subgoal used.
    pub value: Value,
    /// That subgoal.
    pub by: SubgoalId,
}

/// The state of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// What it started from, as it is in force.
    pub setup: Option<Box<Setup>>,
    /// When it started.
    pub started: Timestamp,
    /// The time of the last event.
    pub now: Timestamp,
    /// How long it was driven, in milliseconds: its wall time, without what it lay still.
    pub driven_ms: u64,
    /// Which right to drive it was taken last.
    pub epoch: u64,
    /// The last letter of the inbox that was taken.
    pub letters: u64,
    /// The version of the goal card, from 1.
    pub version: u32,
    /// The current stage.
    pub stage: usize,
    /// Whether the current stage was entered.
    pub entered: bool,
    /// Subgoals of the current stage that are not closed.
    pub unclosed: usize,
    /// All subgoals.
    pub subgoals: BTreeMap<SubgoalId, SubgoalState>,
    /// Subgoals of the current stage that are open: opened and not closed.
    pub open: BTreeSet<SubgoalId>,
    /// Subgoals of the current stage that wait, and have nothing left to wait for.
    pub ready: BTreeSet<SubgoalId>,
    /// Subgoals of the current stage that wait for one that was not met.
    pub blocked: BTreeSet<SubgoalId>,
    /// All calls.
    pub calls: BTreeMap<CallId, CallState>,
    /// Every fact.
    pub facts: BTreeMap<FactId, PoolFact>,
    /// The current fact of each subject.
    pub current: BTreeMap<String, FactId>,
    /// Every ask.
    pub asks: BTreeMap<AskId, AskState>,
    /// Arguments that lock.
    pub locked: Vec<Lock>,
    /// What the run used up.
    pub spent: Spent,
    /// What each stage used up.
    pub stage_spent: BTreeMap<usize, Spent>,
    /// What each subgoal used up.
    pub subgoal_spent: BTreeMap<SubgoalId, Spent>,
    /// Why it stopped; none while it is driven.
    pub stopped: Option<Stop>,
    /// How it ended.
    pub ended: Option<RunStatus>,
    /// For each subgoal, those that come after it.
    dependents: BTreeMap<SubgoalId, Vec<SubgoalId>>,
}

impl State {
    /// Folds events into the state that they lead to.
    ///
    /// # Errors
    ///
    /// At the first event that does not follow from those before it.
    pub fn fold<'e>(events: impl IntoIterator<Item = (Timestamp, &'e Event)>) -> Result<Self, Unfoldable> {
        let mut state = State::default();
        for (at, event) in events {
            state.apply(at, event)?;
        }
        Ok(state)
    }

    /// The stages of the task.
    pub fn stages(&self) -> &[Stage] {
        self.setup.as_ref().map_or(&[], |setup| &setup.task.stages)
    }

    /// A subgoal, as far as it has come. Ids in events are those of the task.
    pub fn subgoal(&self, id: &SubgoalId) -> &SubgoalState {
        &self.subgoals[id]
    }

    /// The specification of a subgoal.
    pub fn spec(&self, id: &SubgoalId) -> &SubgoalSpec {
        let (stage, index) = self.subgoals[id].at;
        &self.stages()[stage].subgoals[index]
    }

    /// The index of a subgoal's stage.
    pub fn stage_of(&self, id: &SubgoalId) -> usize {
        self.subgoals[id].at.0
    }

    /// The skill with this name.
    pub fn skill(&self, name: &str) -> Option<&ComponentCard> {
        self.setup.as_ref()?.skills.iter().find(|card| card.name() == name)
    }

    /// The verifier with this name.
    pub fn verifier(&self, name: &str) -> Option<&ComponentCard> {
        self.setup.as_ref()?.verifiers.iter().find(|card| card.name() == name)
    }

    /// Whether a subgoal is closed as met.
    pub fn is_met(&self, id: &SubgoalId) -> bool {
        self.subgoals.get(id).is_some_and(|goal| goal.phase == Phase::Closed(Closing::Met))
    }

    /// The accepted calls of a subgoal.
    pub fn accepted(&self, id: &SubgoalId) -> impl Iterator<Item = (&CallId, &CallState)> {
        let calls = self.subgoals[id].calls.iter().map(|call| (call, &self.calls[call]));
        calls.filter(|(_, call)| call.accepted)
    }

    /// The facts that came out of a subgoal, the newest of each subject.
    pub fn own_facts(&self, id: &SubgoalId) -> impl Iterator<Item = &PoolFact> {
        self.newest(self.accepted(id).flat_map(|(_, call)| &call.facts)).into_values()
    }

    /// Those of them that count for it: of its level or above.
    pub fn counted(&self, id: &SubgoalId) -> impl Iterator<Item = &PoolFact> {
        let level = self.spec(id).level;
        self.own_facts(id).filter(move |fact| fact.entry.level >= level)
    }

    /// Of each subject the newest of these facts.
    fn newest<'s>(&'s self, ids: impl Iterator<Item = &'s FactId>) -> BTreeMap<&'s str, &'s PoolFact> {
        let mut newest = BTreeMap::<&str, &PoolFact>::new();
        for fact in ids.map(|id| &self.facts[id]) {
            let other = newest.entry(&fact.entry.subject).or_insert(fact);
            if fact.entry.replaces(&other.entry) {
                *other = fact;
            }
        }
        newest
    }

    /// The subgoals whose facts and artifacts a subgoal can read: those of earlier stages, and
    /// those that it comes after, directly or not.
    pub fn before(&self, id: &SubgoalId) -> BTreeSet<SubgoalId> {
        let stage = self.stage_of(id);
        let earlier = self.stages()[..stage].iter().flat_map(|stage| &stage.subgoals);
        let mut before: BTreeSet<SubgoalId> = earlier.map(|spec| spec.id.clone()).collect();
        let mut todo = self.spec(id).after.clone();
        while let Some(next) = todo.pop() {
            if before.insert(next.clone()) {
                todo.extend(self.spec(&next).after.iter().cloned());
            }
        }
        before
    }

    /// The subgoals that can read what comes out of these: those that come after one of them, directly
    /// or not, and those of later stages.
    pub fn after(&self, ids: &BTreeSet<SubgoalId>) -> BTreeSet<SubgoalId> {
        let Some(first) = ids.iter().map(|id| self.stage_of(id)).min() else { return BTreeSet::new() };
        let later = self.stages().iter().skip(first + 1).flat_map(|stage| &stage.subgoals);
        let mut after: BTreeSet<SubgoalId> = later.map(|spec| spec.id.clone()).collect();
        let mut todo: Vec<&SubgoalId> = ids.iter().collect();
        while let Some(id) = todo.pop() {
            for next in self.dependents.get(id).into_iter().flatten() {
                if after.insert(next.clone()) {
                    todo.push(next);
                }
            }
        }
        after
    }

    /// Of the subgoals that come after one that is met at last, those that were closed because it was
    /// not.
    pub fn blocked_by(&self, id: &SubgoalId) -> BTreeSet<SubgoalId> {
        let (mut blocked, mut todo) = (BTreeSet::new(), vec![id]);
        while let Some(id) = todo.pop() {
            for next in self.dependents.get(id).into_iter().flatten() {
                let by = |closing: &Closing| matches!(closing, Closing::Blocked { by } if by == id);
                if matches!(&self.subgoal(next).phase, Phase::Closed(closing) if by(closing))
                    && blocked.insert(next.clone())
                {
                    todo.push(next);
                }
            }
        }
        blocked
    }

    /// The scope of a subgoal: of each subject the newest fact, and calls with artifacts, of the
    /// subgoals before it. Those are over when it opens, so whatever runs beside it, its scope is
    /// the same.
    pub fn scope(&self, id: &SubgoalId) -> (Vec<FactId>, Vec<CallId>) {
        let before = self.before(id);
        let calls: Vec<(&CallId, &CallState)> =
            before.iter().flat_map(|subgoal| self.accepted(subgoal)).collect();
        let facts = self.newest(calls.iter().flat_map(|(_, call)| &call.facts));
        let with_artifacts = calls.iter().filter(|(_, call)| !call.artifacts.is_empty());
        (
            facts.into_values().map(|fact| fact.entry.id.clone()).collect(),
            with_artifacts.map(|(id, _)| (*id).clone()).collect(),
        )
    }

    /// The artifacts that a subgoal's calls can read, as `<subgoal>/<path>`. Where two calls of a
    /// subgoal wrote the same path, the later one stands.
    pub fn artifacts_in_scope(&self, goal: &SubgoalState) -> BTreeMap<String, Digest> {
        self.artifacts_of(&goal.artifacts)
    }

    /// The artifacts of these calls, as `<subgoal>/<path>`.
    pub fn artifacts_of(&self, calls: &[CallId]) -> BTreeMap<String, Digest> {
        let calls = calls.iter().map(|id| &self.calls[id]);
        let files = calls.flat_map(|call| {
            call.artifacts.iter().map(move |file| (format!("{}/{}", call.subgoal, file.path), file.digest))
        });
        files.collect()
    }

    /// The asks that a person has not answered, and that still matter.
    pub fn open_asks(&self) -> impl Iterator<Item = (&AskId, &AskState)> {
        self.open.iter().filter_map(|id| match &self.subgoals.get(id)?.phase {
            Phase::Asking(ask) => self.asks.get_key_value(ask),
            _ => None,
        })
    }

    /// Whether nothing is left to do until a person answers.
    pub fn waits(&self) -> bool {
        self.ended.is_none()
            && self.stopped.is_none()
            && self.open_asks().next().is_some()
            && crate::due(self).is_empty()
    }

    /// Attempts that a subgoal may use up in all: those of the task, and those that a person gave.
    pub fn attempts(&self, id: &SubgoalId) -> u32 {
        (self.spec(id).attempts + self.subgoal(id).more_attempts).min(ATTEMPTS_MAX)
    }
}

impl SubgoalState {
    fn new(at: (usize, usize)) -> Self {
        SubgoalState {
            at,
            phase: Phase::Waiting,
            scope: Vec::new(),
            artifacts: Vec::new(),
            args: Map::new(),
            assessed: Vec::new(),
            calls: Vec::new(),
            calls_before: 0,
            attempts: 0,
            more_attempts: 0,
            attempt_reserved: false,
            tokens_reserved: 0,
            refusals: 0,
            observations: Vec::new(),
            proposed: BTreeSet::new(),
            closed_actions: BTreeMap::new(),
            last_reasons: None,
            remedy: None,
            answer: None,
            approval: None,
            criteria: Vec::new(),
            evaluated_again: None,
            wall_ms: 0,
            since: None,
        }
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed(_))
    }

    /// The number of its next call, from 1, over all its openings.
    pub fn next_call(&self) -> u32 {
        self.calls_before + self.calls.len() as u32 + 1
    }
}
