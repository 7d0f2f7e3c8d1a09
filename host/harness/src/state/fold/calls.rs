//! Calls: intended, repeated, ended, judged; and what they set aside and use up.

use std::collections::BTreeSet;

use checkrein_contract::Digest;
use checkrein_contract::event::{Ended, Event, FactEntry, Judge, Judgement, Reason, StoredArtifact};
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::limits::Used;
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;

use super::{Folded, State};
use crate::state::{CallState, Phase, PoolFact};

impl State {
    pub(super) fn intend(&mut self, event: &Event) -> Folded {
        let Event::CallIntended { call, subgoal, skill, component, args, attempt, seed, ask, .. } = event
        else {
            return Ok(());
        };
        // Of a skill that is not there nothing is known, and the worst is held.
        let card = self.skill(skill);
        let effects = card.map_or(Effects::Irreversible, |card| crate::action::effects(self, card));
        let state = CallState {
            subgoal: subgoal.clone(),
            skill: skill.clone(),
            component: *component,
            args: args.clone(),
            attempt: *attempt,
            seed: *seed,
            effects,
            fuel: 0,
            wall_ms: 0,
            repeats: false,
            interrupted: 0,
            ended: None,
            attested: false,
            record: Record::default(),
            verdicts: Vec::new(),
            accepted: false,
            facts: Vec::new(),
            artifacts: Vec::new(),
            contradictions: BTreeSet::new(),
        };
        let goal = self.goal(subgoal)?;
        goal.calls.push(call.clone());
        goal.refusals = 0;
        (goal.remedy, goal.answer) = (None, None);
        if ask.is_some() {
            goal.approval = None;
        }
        goal.phase = Phase::Calling(call.clone());
        self.calls.insert(call.clone(), state);
        Ok(())
    }

    /// Calls that are in hand when the run goes on were interrupted: a run that stops leaves none.
    pub(super) fn interrupt(&mut self) {
        let calls = self.open.iter().filter_map(|id| match &self.subgoals.get(id)?.phase {
            Phase::Calling(call) => Some(call.clone()),
            _ => None,
        });
        for call in calls.collect::<Vec<_>>() {
            if let Some(call) = self.calls.get_mut(&call) {
                call.interrupted += 1;
            }
        }
    }

    /// What a call may use is set aside; again for one that is repeated.
    pub(super) fn reserve(&mut self, id: &CallId, fuel: u64, wall_ms: u64) -> Folded {
        let goal = self.goal_of(id)?;
        let again = matches!(goal.phase, Phase::Unknown(_));
        let attempts = u64::from(!std::mem::replace(&mut goal.attempt_reserved, true));
        goal.phase = Phase::Calling(id.clone());
        let call = self.call_mut(id)?;
        (call.fuel, call.wall_ms) = (fuel, wall_ms);
        // A person's word is for one time: if the host ends again, it is asked again.
        call.repeats = false;
        let subgoal = call.subgoal.clone();
        self.spend(&subgoal, |spent| {
            spent.calls = spent.calls.saturating_add(u64::from(!again));
            spent.attempts_reserved = spent.attempts_reserved.saturating_add(attempts);
            spent.reserved = spent.reserved.saturating_add(fuel);
        });
        Ok(())
    }

    pub(super) fn settle(&mut self, id: &CallId, used: &Used) -> Folded {
        let call = self.call_mut(id)?;
        let reserved = std::mem::take(&mut call.fuel);
        let subgoal = call.subgoal.clone();
        self.spend(&subgoal, |spent| {
            spent.reserved = spent.reserved.saturating_sub(reserved);
            spent.fuel = spent.fuel.saturating_add(used.fuel);
        });
        Ok(())
    }

    /// The attempt that was set aside for a call is used up, or not.
    pub(super) fn give_attempt_back(&mut self, call: &CallId, used_up: bool) -> Folded {
        let subgoal = self.call_mut(call)?.subgoal.clone();
        self.decide_attempt(&subgoal, used_up)
    }

    pub(super) fn decide_attempt(&mut self, id: &SubgoalId, used_up: bool) -> Folded {
        let goal = self.goal(id)?;
        let reserved = std::mem::take(&mut goal.attempt_reserved);
        goal.attempts += u32::from(used_up);
        self.spend(id, |spent| {
            spent.attempts_reserved = spent.attempts_reserved.saturating_sub(u64::from(reserved));
            spent.attempts += u64::from(used_up);
        });
        Ok(())
    }

    pub(super) fn end_call(&mut self, id: &CallId, ended: &Ended, record: &Record, attested: bool) -> Folded {
        let call = self.call_mut(id)?;
        call.record = record.clone();
        call.ended = Some(ended.clone());
        call.attested = attested;
        let again = serde_json::json!({ "action": "call", "skill": call.skill, "args": call.args });
        let action = crate::action::digest(&call.skill, &call.args);
        let failed = !matches!(ended, Ended::Outcome { .. } | Ended::Cancelled | Ended::Happened);
        if !matches!(ended, Ended::Outcome { .. }) {
            self.give_attempt_back(id, failed)?;
        }
        let goal = self.goal_of(id)?;
        goal.phase = match ended {
            Ended::Outcome { .. } => Phase::Quarantined(id.clone()),
            Ended::Cancelled => Phase::Checking(again),
            Ended::Happened => {
                goal.closed_actions.insert(action, "done, as a person says,".to_owned());
                Phase::Evaluating
            }
            Ended::Failed { .. } | Ended::Limited { .. } | Ended::Trapped { .. } | Ended::Invalid { .. } => {
                goal.last_reasons = None;
                Phase::Recovering(id.clone())
            }
        };
        Ok(())
    }

    pub(super) fn judged(&mut self, id: &CallId, judge: &Judge, judgement: &Judgement) -> Folded {
        self.call_mut(id)?.verdicts.push((judge.clone(), judgement.clone()));
        self.goal_of(id)?.phase = Phase::Verifying(id.clone());
        Ok(())
    }

    pub(super) fn accept(
        &mut self,
        id: &CallId,
        facts: &[FactEntry],
        artifacts: &[StoredArtifact],
    ) -> Folded {
        let call = self.call_mut(id)?;
        call.accepted = true;
        call.facts = facts.iter().map(|fact| fact.id.clone()).collect();
        call.artifacts = artifacts.to_vec();
        let outcome = match &call.ended {
            Some(Ended::Outcome { outcome, .. }) => *outcome,
            _ => Digest::ZERO,
        };
        let action = crate::action::digest(&call.skill, &call.args);
        for entry in facts {
            let fact = PoolFact { entry: entry.clone(), call: id.clone(), outcome, abandoned: false };
            self.facts.insert(entry.id.clone(), fact);
            self.make_current(entry);
        }
        self.give_attempt_back(id, false)?;
        let goal = self.goal_of(id)?;
        goal.closed_actions.insert(action, "accepted".to_owned());
        goal.last_reasons = None;
        goal.phase = Phase::Evaluating;
        Ok(())
    }

    pub(super) fn make_current(&mut self, entry: &FactEntry) {
        let before = self.current.get(&entry.subject).and_then(|id| self.facts.get(id));
        if before.is_none_or(|before| entry.replaces(&before.entry)) {
            self.current.insert(entry.subject.clone(), entry.id.clone());
        }
    }

    pub(super) fn reject(&mut self, id: &CallId, reasons: &[Reason]) -> Folded {
        let call = self.call_mut(id)?;
        let action = crate::action::digest(&call.skill, &call.args);
        self.give_attempt_back(id, true)?;
        let goal = self.goal_of(id)?;
        goal.closed_actions.insert(action, "rejected".to_owned());
        goal.last_reasons = Some(reasons.to_vec());
        goal.phase = Phase::Recovering(id.clone());
        Ok(())
    }
}
