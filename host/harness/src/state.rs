//! What is known of a run: folded from its events, and from nothing else.
//!
//! The state knows ids, subjects, digests and verdicts. Contents of facts and files stay in blobs.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Assessed, ComponentCard, CriterionState, Ended, Event, FactEntry, Judge, Judgement, Reason, Setup,
    StoredArtifact,
};
use checkrein_contract::event::{Closing, RunStatus};
use checkrein_contract::id::{CallId, FactId, SubgoalId, Timestamp};
use checkrein_contract::interface::Remedy;
use checkrein_contract::limits::Used;
use checkrein_contract::record::Record;
use checkrein_contract::task::{Stage, SubgoalSpec};
use serde_json::{Map, Value};

use crate::observation::{About, Observation, observe};
use crate::reference;

/// Where a subgoal stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its stage has not come, or a subgoal before it is not met yet.
    Waiting,
    /// Its triggers are being asked.
    Assessing,
    /// The planner is being asked.
    Planning,
    /// This action is to be checked.
    Checking(Value),
    /// This call is being made.
    Calling(CallId),
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

/// A subgoal, as far as it has come.
#[derive(Clone, Debug)]
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
    /// Attempts used up by failures, limits and rejections.
    pub attempts: u32,
    /// Refusals since the last action that was not refused.
    pub refusals: u32,
    /// What the planner was told, oldest first.
    pub observations: Vec<Observation>,
    /// Skills that were proposed, whether they were called or refused.
    pub proposed: BTreeSet<String>,
    /// Actions that are not to be taken again: rejected ones, and those already accepted.
    pub closed_actions: BTreeMap<Digest, &'static str>,
    /// The reasons of the last rejection, if the last call was rejected.
    pub last_reasons: Option<Vec<Reason>>,
    /// The last remedy, until an action follows it.
    pub remedy: Option<Remedy>,
    /// The criteria, as last evaluated.
    pub criteria: Vec<CriterionState>,
}

/// A call, as far as it has come.
#[derive(Clone, Debug)]
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
    /// Fuel that it may use.
    pub fuel: u64,
    /// Wall time that it may use, in milliseconds.
    pub wall_ms: u64,
    /// How it ended.
    pub ended: Option<Ended>,
    /// What it did at its walls.
    pub record: Record,
    /// The verdicts on its submission, in order.
    pub verdicts: Vec<(Judge, Judgement)>,
    /// Whether its submission was let through.
    pub accepted: bool,
    /// Its facts, once accepted.
    pub facts: Vec<FactId>,
    /// Its artifacts, once accepted.
    pub artifacts: Vec<StoredArtifact>,
    /// Contradictions that were found in its submission: subject, and the fact it contradicts.
    pub contradictions: BTreeSet<(String, FactId)>,
}

impl CallState {
    fn new(
        subgoal: &SubgoalId,
        skill: &str,
        component: Digest,
        args: &Map<String, Value>,
        attempt: u32,
        seed: u64,
    ) -> Self {
        CallState {
            subgoal: subgoal.clone(),
            skill: skill.to_owned(),
            component,
            args: args.clone(),
            attempt,
            seed,
            fuel: 0,
            wall_ms: 0,
            ended: None,
            record: Record::default(),
            verdicts: Vec::new(),
            accepted: false,
            facts: Vec::new(),
            artifacts: Vec::new(),
            contradictions: BTreeSet::new(),
        }
    }

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
#[derive(Clone, Debug)]
pub struct PoolFact {
    /// The fact.
    pub entry: FactEntry,
    /// The call that it came out of.
    pub call: CallId,
    /// The blob of that call's outcome, in which its content is.
    pub outcome: Digest,
}

/// What was used up and set aside, of a run, a stage or a subgoal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Calls intended.
    pub calls: u64,
    /// Fuel used by calls that have ended.
    pub fuel: u64,
    /// Fuel set aside for calls that have not.
    pub reserved: u64,
}

/// The state of a run.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// What it started from.
    pub setup: Option<Box<Setup>>,
    /// When it started.
    pub started: Timestamp,
    /// The time of the last event.
    pub now: Timestamp,
    /// The current stage, and whether it was entered.
    pub stage: usize,
    /// Whether the current stage was entered.
    pub entered: bool,
    /// All subgoals.
    pub subgoals: BTreeMap<SubgoalId, SubgoalState>,
    /// Subgoals of the current stage that are open: opened and not closed.
    pub open: BTreeSet<SubgoalId>,
    /// Subgoals of the current stage that wait, and have nothing left to wait for.
    pub ready: BTreeSet<SubgoalId>,
    /// All calls.
    pub calls: BTreeMap<CallId, CallState>,
    /// Every fact.
    pub facts: BTreeMap<FactId, PoolFact>,
    /// The current fact of each subject.
    pub current: BTreeMap<String, FactId>,
    /// Arguments that lock, by skill and JSON Pointer, with the value that a met subgoal used.
    pub locked: BTreeMap<(String, String), (Value, SubgoalId)>,
    /// What the run used up.
    pub spent: Spent,
    /// What each stage used up.
    pub stage_spent: BTreeMap<usize, Spent>,
    /// What each subgoal used up.
    pub subgoal_spent: BTreeMap<SubgoalId, Spent>,
    /// How it ended.
    pub ended: Option<RunStatus>,
    /// For each subgoal, those that come after it.
    dependents: BTreeMap<SubgoalId, Vec<SubgoalId>>,
}

impl State {
    /// Folds events into the state that they lead to.
    pub fn fold<'e>(events: impl IntoIterator<Item = (Timestamp, &'e Event)>) -> Self {
        let mut state = State::default();
        for (at, event) in events {
            state.apply(at, event);
        }
        state
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

    /// Folds one event. Every event has this one place where it is folded.
    pub fn apply(&mut self, at: Timestamp, event: &Event) {
        self.now = self.now.max(at);
        if let Some((about, observation)) = observe(event) {
            let subgoal = match about {
                About::Subgoal(subgoal) => subgoal.clone(),
                About::Call(call) => self.calls[call].subgoal.clone(),
            };
            self.subgoal_mut(&subgoal).observations.push(observation);
        }
        match event {
            Event::RunStarted { setup } => self.start(at, setup),
            Event::RestorePointSet { .. } => {}
            Event::StageEntered { .. } => self.enter(),
            Event::SubgoalOpened { subgoal, scope, artifacts, args } => {
                self.ready.remove(subgoal);
                self.open.insert(subgoal.clone());
                let goal = self.subgoal_mut(subgoal);
                goal.scope.clone_from(scope);
                goal.artifacts.clone_from(artifacts);
                goal.args.clone_from(args);
                goal.phase = Phase::Assessing;
            }
            Event::SkillsAssessed { subgoal, assessed } => {
                let goal = self.subgoal_mut(subgoal);
                goal.assessed.clone_from(assessed);
                goal.phase = Phase::Planning;
            }
            Event::ActionProposed { subgoal, action } => {
                let goal = self.subgoal_mut(subgoal);
                goal.proposed.extend(action.get("skill").and_then(Value::as_str).map(str::to_owned));
                goal.phase = Phase::Checking(action.clone());
            }
            Event::ActionRefused { subgoal, .. } => {
                let goal = self.subgoal_mut(subgoal);
                goal.refusals += 1;
                goal.phase = Phase::Planning;
            }
            Event::CallIntended { call, subgoal, skill, component, args, attempt, seed, .. } => {
                let state = CallState::new(subgoal, skill, *component, args, *attempt, *seed);
                self.intend(call, state);
            }
            Event::BudgetReserved { call, fuel, wall_ms } => self.reserve(call, *fuel, *wall_ms),
            Event::CallEnded { call, ended, record, .. } => {
                self.call_mut(call).record = record.clone();
                self.end_call(call, ended);
            }
            Event::BudgetSettled { call, used } => self.settle(call, used),
            Event::VerdictGiven { call, judge, judgement, .. } => {
                self.call_mut(call).verdicts.push((judge.clone(), judgement.clone()));
                self.subgoal_of_mut(call).phase = Phase::Verifying(call.clone());
            }
            Event::OutcomeAccepted { call, facts, artifacts } => self.accept(call, facts, artifacts),
            Event::OutcomeRejected { call, reasons } => self.reject(call, reasons),
            Event::ContradictionFound { call, subject, current, .. } => {
                self.call_mut(call).contradictions.insert((subject.clone(), current.clone()));
            }
            Event::AskOpened { .. } => {}
            Event::CriteriaEvaluated { subgoal, criteria } => {
                let goal = self.subgoal_mut(subgoal);
                goal.criteria.clone_from(criteria);
                goal.phase = Phase::Evaluated;
            }
            Event::RemedyGiven { call, remedy, .. } => {
                let goal = self.subgoal_of_mut(call);
                goal.remedy.clone_from(remedy);
                goal.phase = Phase::Advised(call.clone());
            }
            Event::TimerSet { subgoal, until } => self.subgoal_mut(subgoal).phase = Phase::Sleeping(*until),
            Event::TimerReached { subgoal } => self.subgoal_mut(subgoal).phase = Phase::Planning,
            Event::SubgoalClosed { subgoal, closing } => self.close(subgoal, closing),
            Event::StageEvaluated { .. } => {
                self.stage += 1;
                self.entered = false;
            }
            Event::RunEnded { status, .. } => self.ended = Some(*status),
        }
    }

    fn subgoal_mut(&mut self, id: &SubgoalId) -> &mut SubgoalState {
        self.subgoals.get_mut(id).unwrap_or_else(|| panic!("the log names the unknown subgoal `{id}`"))
    }

    fn call_mut(&mut self, id: &CallId) -> &mut CallState {
        self.calls.get_mut(id).unwrap_or_else(|| panic!("the log names the unknown call `{id}`"))
    }

    fn subgoal_of_mut(&mut self, call: &CallId) -> &mut SubgoalState {
        let subgoal = self.calls[call].subgoal.clone();
        self.subgoal_mut(&subgoal)
    }

    fn start(&mut self, at: Timestamp, setup: &Setup) {
        self.started = at;
        for (stage, of) in setup.task.stages.iter().enumerate() {
            for (index, spec) in of.subgoals.iter().enumerate() {
                self.subgoals.insert(spec.id.clone(), SubgoalState::new((stage, index)));
                for before in &spec.after {
                    self.dependents.entry(before.clone()).or_default().push(spec.id.clone());
                }
            }
        }
        self.setup = Some(Box::new(setup.clone()));
    }

    fn enter(&mut self) {
        self.entered = true;
        let subgoals = &self.stages()[self.stage].subgoals;
        self.ready =
            subgoals.iter().filter(|spec| spec.after.is_empty()).map(|spec| spec.id.clone()).collect();
    }

    fn intend(&mut self, call: &CallId, state: CallState) {
        let goal = self.subgoal_mut(&state.subgoal);
        goal.calls.push(call.clone());
        goal.refusals = 0;
        goal.remedy = None;
        goal.phase = Phase::Calling(call.clone());
        self.calls.insert(call.clone(), state);
    }

    fn reserve(&mut self, call: &CallId, fuel: u64, wall_ms: u64) {
        let state = self.call_mut(call);
        state.fuel = fuel;
        state.wall_ms = wall_ms;
        self.spend(call, |spent| {
            spent.calls += 1;
            spent.reserved += fuel;
        });
    }

    fn spend(&mut self, call: &CallId, change: impl Fn(&mut Spent)) {
        let subgoal = self.calls[call].subgoal.clone();
        let stage = self.stage_of(&subgoal);
        change(&mut self.spent);
        change(self.stage_spent.entry(stage).or_default());
        change(self.subgoal_spent.entry(subgoal).or_default());
    }

    fn settle(&mut self, call: &CallId, used: &Used) {
        let reserved = self.calls[call].fuel;
        self.spend(call, |spent| {
            spent.reserved = spent.reserved.saturating_sub(reserved);
            spent.fuel += used.fuel;
        });
    }

    fn end_call(&mut self, call: &CallId, ended: &Ended) {
        self.call_mut(call).ended = Some(ended.clone());
        let goal = self.subgoal_of_mut(call);
        if matches!(ended, Ended::Outcome { .. }) {
            goal.phase = Phase::Quarantined(call.clone());
        } else {
            goal.attempts += 1;
            goal.last_reasons = None;
            goal.phase = Phase::Recovering(call.clone());
        }
    }

    fn accept(&mut self, id: &CallId, facts: &[FactEntry], artifacts: &[StoredArtifact]) {
        let call = self.call_mut(id);
        call.accepted = true;
        call.facts = facts.iter().map(|fact| fact.id.clone()).collect();
        call.artifacts = artifacts.to_vec();
        let outcome = match &call.ended {
            Some(Ended::Outcome { outcome, .. }) => *outcome,
            _ => Digest::ZERO,
        };
        let action = crate::action::digest(&call.skill, &call.args);
        for entry in facts {
            let before = self.current.get(&entry.subject).map(|id| &self.facts[id].entry);
            if before.is_none_or(|before| entry.replaces(before)) {
                self.current.insert(entry.subject.clone(), entry.id.clone());
            }
            self.facts.insert(entry.id.clone(), PoolFact { entry: entry.clone(), call: id.clone(), outcome });
        }
        let goal = self.subgoal_of_mut(id);
        goal.closed_actions.insert(action, "accepted");
        goal.last_reasons = None;
        goal.phase = Phase::Evaluating;
    }

    fn reject(&mut self, id: &CallId, reasons: &[Reason]) {
        let call = &self.calls[id];
        let action = crate::action::digest(&call.skill, &call.args);
        let goal = self.subgoal_of_mut(id);
        goal.attempts += 1;
        goal.closed_actions.insert(action, "rejected");
        goal.last_reasons = Some(reasons.to_vec());
        goal.phase = Phase::Recovering(id.clone());
    }

    /// Arguments that lock keep the value that a met subgoal used.
    fn lock(&mut self, id: &SubgoalId) {
        let accepted = self.accepted(id).map(|(_, call)| call);
        let locks = accepted.flat_map(|call| {
            let pointers =
                self.skill(&call.skill).map(|card| card.manifest.locks.as_slice()).unwrap_or_default();
            let value = |pointer: &String| reference::at(&call.args, pointer).cloned().unwrap_or(Value::Null);
            pointers.iter().map(move |pointer| ((call.skill.clone(), pointer.clone()), value(pointer)))
        });
        for (place, value) in locks.collect::<Vec<_>>() {
            self.locked.entry(place).or_insert_with(|| (value, id.clone()));
        }
    }

    fn close(&mut self, id: &SubgoalId, closing: &Closing) {
        self.open.remove(id);
        self.ready.remove(id);
        self.subgoal_mut(id).phase = Phase::Closed(closing.clone());
        if *closing == Closing::Met {
            self.lock(id);
        }
        for next in self.dependents.get(id).cloned().unwrap_or_default() {
            let goal = &self.subgoals[&next];
            let waits = goal.phase == Phase::Waiting && goal.at.0 == self.stage;
            // Ready to open if all are met; ready to be closed as blocked if this one is not.
            if waits
                && (*closing != Closing::Met
                    || self.spec(&next).after.iter().all(|before| self.is_met(before)))
            {
                self.ready.insert(next);
            }
        }
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
            attempts: 0,
            refusals: 0,
            observations: Vec::new(),
            proposed: BTreeSet::new(),
            closed_actions: BTreeMap::new(),
            last_reasons: None,
            remedy: None,
            criteria: Vec::new(),
        }
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed(_))
    }
}
