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
    Ended(CallId),
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
pub struct Goal {
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
    /// Actions that are not to be taken again: rejected ones, and those already accepted.
    pub spent: BTreeMap<Digest, &'static str>,
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
    /// The verdicts on its submission, in order.
    pub verdicts: Vec<(Judge, Judgement)>,
    /// Whether its submission was let through.
    pub accepted: bool,
    /// Its artifacts, once accepted.
    pub artifacts: Vec<StoredArtifact>,
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
    /// Fuel used, and reserved by calls that have not ended.
    pub fuel: u64,
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
    /// Whether its restore point was set.
    pub restore_point: bool,
    /// All subgoals.
    pub goals: BTreeMap<SubgoalId, Goal>,
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
    /// Parameters that a met subgoal used, with the subgoal.
    pub locked: BTreeMap<String, SubgoalId>,
    /// What the run used up.
    pub spent: Spent,
    /// What each stage used up.
    pub stage_spent: BTreeMap<usize, Spent>,
    /// What each subgoal used up.
    pub goal_spent: BTreeMap<SubgoalId, Spent>,
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
    pub fn goal(&self, id: &SubgoalId) -> &Goal {
        &self.goals[id]
    }

    /// The specification of a subgoal.
    pub fn spec(&self, id: &SubgoalId) -> &SubgoalSpec {
        let (stage, index) = self.goals[id].at;
        &self.stages()[stage].subgoals[index]
    }

    /// The index of a subgoal's stage.
    pub fn stage_of(&self, id: &SubgoalId) -> usize {
        self.goals[id].at.0
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
        self.goals.get(id).is_some_and(|goal| goal.phase == Phase::Closed(Closing::Met))
    }

    /// The accepted calls of a subgoal.
    pub fn accepted(&self, id: &SubgoalId) -> impl Iterator<Item = (&CallId, &CallState)> {
        let calls = self.goals[id].calls.iter().map(|call| (call, &self.calls[call]));
        calls.filter(|(_, call)| call.accepted)
    }

    /// The facts that came out of a subgoal and count for it: those of its level or above.
    pub fn counted(&self, id: &SubgoalId) -> impl Iterator<Item = &PoolFact> {
        let level = self.spec(id).level;
        self.facts
            .values()
            .filter(move |fact| self.calls[&fact.call].subgoal == *id && fact.entry.level >= level)
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

    /// The scope of a subgoal if it opened now: current facts, and calls with artifacts.
    pub fn scope(&self, id: &SubgoalId) -> (Vec<FactId>, Vec<CallId>) {
        let before = self.before(id);
        let facts =
            self.current.values().filter(|fact| before.contains(&self.calls[&self.facts[fact].call].subgoal));
        let calls = before.iter().flat_map(|subgoal| self.accepted(subgoal));
        let with_artifacts = calls.filter(|(_, call)| !call.artifacts.is_empty());
        (facts.cloned().collect(), with_artifacts.map(|(id, _)| id.clone()).collect())
    }

    /// The artifacts that a subgoal's calls can read, as `<subgoal>/<path>`. Where two calls of a
    /// subgoal wrote the same path, the later one stands.
    pub fn artifacts_in_scope(&self, goal: &Goal) -> BTreeMap<String, Digest> {
        let calls = goal.artifacts.iter().map(|id| &self.calls[id]);
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
            self.goal_mut(&subgoal).observations.push(observation);
        }
        match event {
            Event::RunStarted { setup } => self.start(at, setup),
            Event::RestorePointSet { .. } => self.restore_point = true,
            Event::StageEntered { .. } => self.enter(),
            Event::SubgoalOpened { subgoal, scope, artifacts, args } => {
                self.ready.remove(subgoal);
                self.open.insert(subgoal.clone());
                let goal = self.goal_mut(subgoal);
                goal.scope.clone_from(scope);
                goal.artifacts.clone_from(artifacts);
                goal.args.clone_from(args);
                goal.phase = Phase::Assessing;
            }
            Event::SkillsAssessed { subgoal, assessed } => {
                let goal = self.goal_mut(subgoal);
                goal.assessed.clone_from(assessed);
                goal.phase = Phase::Planning;
            }
            Event::ActionProposed { subgoal, action } => {
                self.goal_mut(subgoal).phase = Phase::Checking(action.clone());
            }
            Event::ActionRefused { subgoal, .. } => {
                let goal = self.goal_mut(subgoal);
                goal.refusals += 1;
                goal.phase = Phase::Planning;
            }
            Event::BudgetReserved { .. } | Event::CallIntended { .. } => self.intend(event),
            Event::CallEnded { call, ended, .. } => self.end_call(call, ended),
            Event::BudgetSettled { call, used } => self.settle(call, used),
            Event::VerdictGiven { call, judge, judgement, .. } => {
                self.call_mut(call).verdicts.push((judge.clone(), judgement.clone()));
                self.goal_of_mut(call).phase = Phase::Verifying(call.clone());
            }
            Event::OutcomeAccepted { call, facts, artifacts } => self.accept(call, facts, artifacts),
            Event::OutcomeRejected { call, reasons } => self.reject(call, reasons),
            Event::ContradictionFound { .. } | Event::AskOpened { .. } => {}
            Event::CriteriaEvaluated { subgoal, criteria } => {
                let goal = self.goal_mut(subgoal);
                goal.criteria.clone_from(criteria);
                goal.phase = Phase::Evaluated;
            }
            Event::RemedyGiven { call, remedy, .. } => {
                let goal = self.goal_of_mut(call);
                goal.remedy.clone_from(remedy);
                goal.phase = Phase::Advised(call.clone());
            }
            Event::TimerSet { subgoal, until } => self.goal_mut(subgoal).phase = Phase::Sleeping(*until),
            Event::TimerReached { subgoal } => self.goal_mut(subgoal).phase = Phase::Planning,
            Event::SubgoalClosed { subgoal, closing } => self.close(subgoal, closing),
            Event::StageEvaluated { .. } => {
                self.stage += 1;
                self.entered = false;
                self.restore_point = false;
            }
            Event::RunEnded { status, .. } => self.ended = Some(*status),
        }
    }

    fn goal_mut(&mut self, id: &SubgoalId) -> &mut Goal {
        self.goals.get_mut(id).unwrap_or_else(|| panic!("the log names the unknown subgoal `{id}`"))
    }

    fn call_mut(&mut self, id: &CallId) -> &mut CallState {
        self.calls.get_mut(id).unwrap_or_else(|| panic!("the log names the unknown call `{id}`"))
    }

    fn goal_of_mut(&mut self, call: &CallId) -> &mut Goal {
        let subgoal = self.calls[call].subgoal.clone();
        self.goal_mut(&subgoal)
    }

    fn start(&mut self, at: Timestamp, setup: &Setup) {
        self.started = at;
        for (stage, of) in setup.task.stages.iter().enumerate() {
            for (index, spec) in of.subgoals.iter().enumerate() {
                self.goals.insert(spec.id.clone(), Goal::new((stage, index)));
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

    fn intend(&mut self, event: &Event) {
        match event {
            Event::CallIntended { call, subgoal, skill, component, args, attempt, seed, .. } => {
                let state = CallState {
                    subgoal: subgoal.clone(),
                    skill: skill.clone(),
                    component: *component,
                    args: args.clone(),
                    attempt: *attempt,
                    seed: *seed,
                    fuel: 0,
                    wall_ms: 0,
                    ended: None,
                    verdicts: Vec::new(),
                    accepted: false,
                    artifacts: Vec::new(),
                };
                self.calls.insert(call.clone(), state);
                let goal = self.goal_mut(subgoal);
                goal.calls.push(call.clone());
                goal.refusals = 0;
                goal.remedy = None;
                goal.phase = Phase::Calling(call.clone());
            }
            Event::BudgetReserved { call, fuel, wall_ms } => {
                let state = self.call_mut(call);
                state.fuel = *fuel;
                state.wall_ms = *wall_ms;
                self.spend(call, |spent| {
                    spent.calls += 1;
                    spent.fuel += fuel;
                });
            }
            _ => {}
        }
    }

    fn spend(&mut self, call: &CallId, change: impl Fn(&mut Spent)) {
        let subgoal = self.calls[call].subgoal.clone();
        let stage = self.stage_of(&subgoal);
        change(&mut self.spent);
        change(self.stage_spent.entry(stage).or_default());
        change(self.goal_spent.entry(subgoal).or_default());
    }

    fn settle(&mut self, call: &CallId, used: &Used) {
        let reserved = self.calls[call].fuel;
        self.spend(call, |spent| spent.fuel = spent.fuel.saturating_sub(reserved) + used.fuel);
    }

    fn end_call(&mut self, call: &CallId, ended: &Ended) {
        self.call_mut(call).ended = Some(ended.clone());
        let goal = self.goal_of_mut(call);
        if matches!(ended, Ended::Outcome { .. }) {
            goal.phase = Phase::Ended(call.clone());
        } else {
            goal.attempts += 1;
            goal.last_reasons = None;
            goal.phase = Phase::Recovering(call.clone());
        }
    }

    fn accept(&mut self, id: &CallId, facts: &[FactEntry], artifacts: &[StoredArtifact]) {
        let call = self.call_mut(id);
        call.accepted = true;
        call.artifacts = artifacts.to_vec();
        let outcome = match &call.ended {
            Some(Ended::Outcome { outcome, .. }) => *outcome,
            _ => Digest::ZERO,
        };
        let action = crate::action::digest(&call.skill, &call.args);
        for entry in facts {
            self.current.insert(entry.subject.clone(), entry.id.clone());
            self.facts.insert(entry.id.clone(), PoolFact { entry: entry.clone(), call: id.clone(), outcome });
        }
        let goal = self.goal_of_mut(id);
        goal.spent.insert(action, "accepted");
        goal.last_reasons = None;
        goal.phase = Phase::Evaluating;
    }

    fn reject(&mut self, id: &CallId, reasons: &[Reason]) {
        let call = &self.calls[id];
        let action = crate::action::digest(&call.skill, &call.args);
        let goal = self.goal_of_mut(id);
        goal.attempts += 1;
        goal.spent.insert(action, "rejected");
        goal.last_reasons = Some(reasons.to_vec());
        goal.phase = Phase::Recovering(id.clone());
    }

    fn close(&mut self, id: &SubgoalId, closing: &Closing) {
        self.open.remove(id);
        self.ready.remove(id);
        self.goal_mut(id).phase = Phase::Closed(closing.clone());
        if *closing == Closing::Met {
            for parameter in reference::parameters(&self.spec(id).args) {
                self.locked.entry(parameter).or_insert_with(|| id.clone());
            }
        }
        for next in self.dependents.get(id).cloned().unwrap_or_default() {
            let goal = &self.goals[&next];
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

impl Goal {
    fn new(at: (usize, usize)) -> Self {
        Goal {
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
            spent: BTreeMap::new(),
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
