//! How each event changes the state. Every event is folded here, and in one place.

use checkrein_contract::ask::{Answer, Asked};
use checkrein_contract::event::{Closing, Ended, Event, Judge, Judgement, Setup};
use checkrein_contract::id::{AskId, CallId, FactId, SubgoalId, Timestamp};
use checkrein_contract::record::Record;
use serde_json::Value;

use super::{Approval, AskState, CallState, Lock, Phase, State, SubgoalState};
use crate::observation::{About, observe};
use crate::reference;

mod amend;
mod calls;

/// An event that does not follow from those before it: the log is not one of this program, or not
/// whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{kind}` names {what}, which no event before it made; `checkrein trace verify` says whether the log was altered"
)]
pub struct Unfoldable {
    /// The kind of the event.
    pub kind: &'static str,
    /// What it names.
    pub what: String,
}

/// What an event names that is not there.
struct Unknown(String);

type Folded<T = ()> = Result<T, Unknown>;

impl State {
    /// Folds one event.
    ///
    /// # Errors
    ///
    /// If it names what no event before it made. The state is then not to be used.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Result<(), Unfoldable> {
        self.tick(at, event);
        self.tell(event)
            .and_then(|()| self.change(at, event))
            .map_err(|Unknown(what)| Unfoldable { kind: event.kind(), what })
    }

    /// Time goes on while the run is driven; what lies before a new driver's first event does not
    /// count.
    fn tick(&mut self, at: Timestamp, event: &Event) {
        let gap = at.0.saturating_sub(self.now.0);
        self.now = self.now.max(at);
        let begins = matches!(event, Event::RunStarted { .. } | Event::LeaseTaken { .. });
        if !begins && self.stopped.is_none() && self.ended.is_none() {
            self.driven_ms = self.driven_ms.saturating_add(gap);
            let spent = self.stage_spent.entry(self.stage).or_default();
            spent.wall_ms = spent.wall_ms.saturating_add(gap);
        }
    }

    /// What the event tells the planner of the subgoal that it concerns.
    fn tell(&mut self, event: &Event) -> Folded {
        let Some((about, observation)) = observe(event) else { return Ok(()) };
        let subgoal = match about {
            About::Subgoal(subgoal) => subgoal.clone(),
            About::Call(call) => self.call_mut(call)?.subgoal.clone(),
            About::Ask(ask) => self.ask_mut(ask)?.subgoal.clone(),
        };
        self.goal(&subgoal)?.observations.push(observation);
        Ok(())
    }

    fn change(&mut self, at: Timestamp, event: &Event) -> Folded {
        match event {
            Event::RunStarted { setup } => self.start(at, setup)?,
            Event::LeaseTaken { epoch, .. } => self.epoch = *epoch,
            Event::RunResumed { in_force, .. } => {
                self.stopped = None;
                self.charge_proposals();
                self.interrupt();
                if let (Some(setup), Some(now)) = (&mut self.setup, in_force) {
                    setup.skills.clone_from(&now.skills);
                    setup.verifiers.clone_from(&now.verifiers);
                    setup.bindings.clone_from(&now.bindings);
                }
            }
            Event::RunStopped { because } => {
                self.stopped = Some(*because);
                self.charge_proposals();
            }
            Event::LetterTaken { letter, .. } => self.letters = self.letters.max(*letter),
            Event::TaskAmended { amendment, version, reopened, evaluated } => {
                self.version = *version;
                self.amend(amendment, reopened, evaluated)?;
            }
            Event::DependentsReopened { reopened, .. } => self.reopen_dependents(reopened)?,
            Event::RestorePointSet { .. } => {}
            Event::StageEntered { .. } => self.enter(),
            Event::SubgoalOpened { subgoal, scope, artifacts, args } => {
                self.in_scope(scope, artifacts)?;
                self.ready.remove(subgoal);
                let goal = self.goal(subgoal)?;
                goal.scope.clone_from(scope);
                goal.artifacts.clone_from(artifacts);
                goal.args.clone_from(args);
                goal.phase = Phase::Assessing;
                self.take_up(subgoal);
            }
            Event::SkillsAssessed { subgoal, assessed } => {
                let goal = self.goal(subgoal)?;
                goal.assessed.clone_from(assessed);
                goal.phase = Phase::Planning;
            }
            Event::TokensReserved { subgoal, tokens } => {
                let goal = self.goal(subgoal)?;
                goal.tokens_reserved = goal.tokens_reserved.saturating_add(*tokens);
                self.spend(subgoal, |spent| {
                    spent.tokens_reserved = spent.tokens_reserved.saturating_add(*tokens);
                });
            }
            Event::ActionProposed { subgoal, action, tokens } => self.proposed(subgoal, action, *tokens)?,
            Event::ActionRefused { subgoal, .. } => {
                let goal = self.goal(subgoal)?;
                goal.refusals += 1;
                goal.phase = Phase::Planning;
            }
            Event::CallIntended { .. } => self.intend(event)?,
            Event::BudgetReserved { call, fuel, wall_ms } => self.reserve(call, *fuel, *wall_ms)?,
            // Its attempt stays set aside: it may yet be used up.
            Event::CallUnknown { call } => self.goal_of(call)?.phase = Phase::Unknown(call.clone()),
            Event::CallEnded { call, ended, record, attested, .. } => {
                self.end_call(call, ended, record, *attested)?;
            }
            Event::BudgetSettled { call, used } => self.settle(call, used)?,
            Event::VerdictGiven { call, judge, judgement, .. } => self.judged(call, judge, judgement)?,
            Event::OutcomeAccepted { call, facts, artifacts } => self.accept(call, facts, artifacts)?,
            Event::OutcomeRejected { call, reasons } => self.reject(call, reasons)?,
            Event::ContradictionFound { call, subject, current, .. } => {
                self.call_mut(call)?.contradictions.insert((subject.clone(), current.clone()));
            }
            Event::AskOpened { ask, subgoal, about, question } => {
                self.ask(ask, subgoal, about, question)?;
            }
            Event::AskAnswered { ask, answer, .. } => self.answer(ask, answer)?,
            Event::CriteriaEvaluated { subgoal, criteria } => {
                let goal = self.goal(subgoal)?;
                goal.criteria.clone_from(criteria);
                // One that was closed has forgotten who could serve it.
                let forgot = goal.assessed.is_empty() && criteria.iter().any(|criterion| !criterion.holds);
                goal.phase = if forgot { Phase::Assessing } else { Phase::Evaluated };
            }
            Event::RemedyGiven { call, remedy, .. } => {
                let goal = self.goal_of(call)?;
                goal.remedy.clone_from(remedy);
                goal.phase = Phase::Advised(call.clone());
            }
            Event::TimerSet { subgoal, until } => self.goal(subgoal)?.phase = Phase::Sleeping(*until),
            Event::TimerReached { subgoal } => self.goal(subgoal)?.phase = Phase::Planning,
            Event::SubgoalClosed { subgoal, closing } => self.close(subgoal, closing)?,
            Event::StageEvaluated { .. } => {
                self.stage += 1;
                self.entered = false;
            }
            Event::RunEnded { status, .. } => self.ended = Some(*status),
        }
        Ok(())
    }

    fn goal(&mut self, id: &SubgoalId) -> Folded<&mut SubgoalState> {
        self.subgoals.get_mut(id).ok_or_else(|| Unknown(format!("the subgoal `{id}`")))
    }

    fn call_mut(&mut self, id: &CallId) -> Folded<&mut CallState> {
        self.calls.get_mut(id).ok_or_else(|| Unknown(format!("the call `{id}`")))
    }

    fn ask_mut(&mut self, id: &AskId) -> Folded<&mut AskState> {
        self.asks.get_mut(id).ok_or_else(|| Unknown(format!("the ask `{id}`")))
    }

    fn goal_of(&mut self, call: &CallId) -> Folded<&mut SubgoalState> {
        let subgoal = self.call_mut(call)?.subgoal.clone();
        self.goal(&subgoal)
    }

    /// A run starts once, from a task whose subgoals have ids of their own and come after others of
    /// their stage that are there.
    fn start(&mut self, at: Timestamp, setup: &Setup) -> Folded {
        if self.setup.is_some() {
            return Err(Unknown("a run that had begun already, as one".to_owned()));
        }
        (self.started, self.version) = (at, 1);
        for (stage, of) in setup.task.stages.iter().enumerate() {
            for (index, spec) in of.subgoals.iter().enumerate() {
                if self.subgoals.insert(spec.id.clone(), SubgoalState::new((stage, index))).is_some() {
                    return Err(Unknown(format!("the subgoal `{}` as two", spec.id)));
                }
            }
        }
        for (stage, of) in setup.task.stages.iter().enumerate() {
            for spec in &of.subgoals {
                for before in &spec.after {
                    if self.subgoals.get(before).is_none_or(|goal| goal.at.0 != stage) {
                        return Err(Unknown(format!("the subgoal `{before}` of the same stage")));
                    }
                    self.dependents.entry(before.clone()).or_default().push(spec.id.clone());
                }
            }
        }
        self.setup = Some(Box::new(setup.clone()));
        Ok(())
    }

    /// The current stage begins, or goes on after the task was amended.
    fn enter(&mut self) {
        self.entered = true;
        self.ready.clear();
        self.blocked.clear();
        self.unclosed = 0;
        for id in std::mem::take(&mut self.open) {
            self.suspend(&id);
        }
        let Some(stage) = self.stages().get(self.stage) else { return };
        let ids: Vec<SubgoalId> = stage.subgoals.iter().map(|spec| spec.id.clone()).collect();
        for id in ids {
            if !self.subgoal(&id).is_closed() {
                self.unclosed += 1;
                self.may_go_on(&id);
            }
        }
    }

    /// Everything that a scope names was made before.
    fn in_scope(&self, facts: &[FactId], calls: &[CallId]) -> Folded {
        if let Some(fact) = facts.iter().find(|fact| !self.facts.contains_key(*fact)) {
            return Err(Unknown(format!("the fact `{fact}`")));
        }
        match calls.iter().find(|call| !self.calls.contains_key(*call)) {
            Some(call) => Err(Unknown(format!("the call `{call}`"))),
            None => Ok(()),
        }
    }

    /// A subgoal may begin, or go on, if all before it are met; it is blocked if one was not.
    fn may_go_on(&mut self, id: &SubgoalId) {
        let after = &self.spec(id).after;
        if after.iter().all(|before| self.is_met(before)) {
            if self.subgoal(id).phase == Phase::Waiting {
                self.ready.insert(id.clone());
            } else {
                self.take_up(id);
            }
        } else if after.iter().any(|before| self.subgoal(before).is_closed() && !self.is_met(before)) {
            self.blocked.insert(id.clone());
        }
    }

    /// The time of a subgoal that is not open is not its own.
    fn suspend(&mut self, id: &SubgoalId) {
        let driven = self.driven_ms;
        if let Some(goal) = self.subgoals.get_mut(id)
            && let Some(since) = goal.since.take()
        {
            goal.wall_ms += driven.saturating_sub(since);
        }
    }

    fn take_up(&mut self, id: &SubgoalId) {
        self.open.insert(id.clone());
        let driven = self.driven_ms;
        if let Some(goal) = self.subgoals.get_mut(id)
            && !matches!(goal.phase, Phase::Asking(_))
        {
            goal.since.get_or_insert(driven);
        }
    }

    fn proposed(&mut self, id: &SubgoalId, action: &Value, tokens: u64) -> Folded {
        let goal = self.goal(id)?;
        let reserved = std::mem::take(&mut goal.tokens_reserved);
        goal.proposed.extend(action.get("skill").and_then(Value::as_str).map(str::to_owned));
        goal.phase = Phase::Checking(action.clone());
        self.spend(id, |spent| {
            spent.tokens_reserved = spent.tokens_reserved.saturating_sub(reserved);
            spent.tokens = spent.tokens.saturating_add(tokens);
        });
        Ok(())
    }

    /// A proposal that was under way when the process ended is charged whole: what it used is not
    /// known.
    fn charge_proposals(&mut self) {
        let open: Vec<SubgoalId> = self.open.iter().cloned().collect();
        open.iter().for_each(|id| self.charge_proposal(id));
    }

    fn charge_proposal(&mut self, id: &SubgoalId) {
        let Some(goal) = self.subgoals.get_mut(id) else { return };
        let reserved = std::mem::take(&mut goal.tokens_reserved);
        self.spend(id, |spent| {
            spent.tokens_reserved = spent.tokens_reserved.saturating_sub(reserved);
            spent.tokens = spent.tokens.saturating_add(reserved);
        });
    }

    fn ask(&mut self, id: &AskId, subgoal: &SubgoalId, about: &Asked, question: &str) -> Folded {
        // A person's time is not the subgoal's.
        self.suspend(subgoal);
        self.goal(subgoal)?.phase = Phase::Asking(id.clone());
        let (subgoal, about, question) = (subgoal.clone(), about.clone(), question.to_owned());
        self.asks.insert(id.clone(), AskState { subgoal, about, question, answer: None });
        Ok(())
    }

    fn answer(&mut self, id: &AskId, answer: &Answer) -> Folded {
        let ask = self.ask_mut(id)?;
        ask.answer = Some(answer.clone());
        let (subgoal, about) = (ask.subgoal.clone(), ask.about.clone());
        let driven = self.driven_ms;
        let attempts = self.attempts(&subgoal);
        let goal = self.goal(&subgoal)?;
        goal.since = Some(driven);
        goal.answer = Some(answer.clone());
        goal.phase = match (&about, answer) {
            (Asked::Approval { action, skill, args, .. }, Answer::Approved { until }) => {
                goal.approval = Some(Approval { ask: id.clone(), action: *action, until: *until });
                Phase::Checking(serde_json::json!({ "action": "call", "skill": skill, "args": args }))
            }
            (Asked::Approval { skill, args, .. }, _) => {
                goal.closed_actions.insert(crate::action::digest(skill, args), "denied".to_owned());
                goal.refusals += 1;
                Phase::Planning
            }
            // A call that did happen ends with the event after this one.
            (Asked::CallUnknown { call }, _) => Phase::Unknown(call.clone()),
            (Asked::HandOver { because }, _) => {
                goal.more_attempts += u32::from(goal.attempts >= attempts);
                match (&**because, answer, goal.calls.last().cloned()) {
                    (Closing::Unverified { .. }, Answer::Retry, Some(call)) => Phase::Verifying(call),
                    (Closing::Interrupted { call, .. }, Answer::Retry, _) => Phase::Unknown(call.clone()),
                    _ => Phase::Planning,
                }
            }
            (Asked::Question, _) => Phase::Planning,
        };
        let verifying = match &goal.phase {
            Phase::Verifying(call) => Some(call.clone()),
            _ => None,
        };
        // Another action follows, and the submission that nobody could judge stays undecided.
        if goal.phase == Phase::Planning {
            self.decide_attempt(&subgoal, false)?;
        }
        if let Phase::Unknown(call) = &self.goal(&subgoal)?.phase {
            let call = call.clone();
            self.call_mut(&call)?.interrupted = 0;
        }
        if let (Asked::CallUnknown { call }, Answer::NotHappened) = (&about, answer) {
            self.call_mut(call)?.repeats = true;
        }
        // Whoever could not judge is asked anew.
        if let Some(call) = verifying {
            let judged =
                |(_, judgement): &(Judge, Judgement)| !matches!(judgement, Judgement::Unavailable { .. });
            self.call_mut(&call)?.verdicts.retain(judged);
        }
        Ok(())
    }

    /// Arguments that lock keep the value that a met subgoal used.
    fn lock(&mut self, id: &SubgoalId) {
        let mut locks = Vec::new();
        for (_, call) in self.accepted(id) {
            let pointers =
                self.skill(&call.skill).map(|card| card.manifest.locks.as_slice()).unwrap_or_default();
            locks.extend(pointers.iter().map(|pointer| Lock {
                skill: call.skill.clone(),
                pointer: pointer.clone(),
                value: reference::at(&call.args, pointer).cloned().unwrap_or(Value::Null),
                by: id.clone(),
            }));
        }
        for lock in locks {
            let known = |other: &Lock| other.skill == lock.skill && other.pointer == lock.pointer;
            if !self.locked.iter().any(known) {
                self.locked.push(lock);
            }
        }
    }

    fn close(&mut self, id: &SubgoalId, closing: &Closing) -> Folded {
        self.open.remove(id);
        self.ready.remove(id);
        self.blocked.remove(id);
        self.unclosed = self.unclosed.saturating_sub(1);
        self.charge_proposal(id);
        self.decide_attempt(id, false)?;
        self.suspend(id);
        let goal = self.goal(id)?;
        goal.phase = Phase::Closed(closing.clone());
        goal.evaluated_again = None;
        if *closing == Closing::Met {
            self.lock(id);
        }
        self.forget(id)?;
        for next in self.dependents.get(id).cloned().unwrap_or_default() {
            let goal = self.subgoal(&next);
            if !goal.is_closed() && goal.at.0 == self.stage {
                self.may_go_on(&next);
            }
        }
        Ok(())
    }

    /// What no decision after its closing needs is not kept, so that a long run stays small.
    fn forget(&mut self, id: &SubgoalId) -> Folded {
        let goal = self.goal(id)?;
        (goal.observations, goal.assessed, goal.criteria) = Default::default();
        (goal.closed_actions, goal.proposed) = Default::default();
        (goal.last_reasons, goal.remedy, goal.answer, goal.approval) = Default::default();
        for call in goal.calls.clone() {
            let call = self.call_mut(&call)?;
            call.record = Record::default();
            call.verdicts = Vec::new();
            if let Some(Ended::Outcome { drafts, artifacts, .. }) = &mut call.ended {
                (*drafts, *artifacts) = Default::default();
            }
        }
        Ok(())
    }
}
