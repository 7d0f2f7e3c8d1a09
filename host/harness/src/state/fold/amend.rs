//! A task that was changed: its new words, and what is open again.

use std::collections::BTreeSet;

use checkrein_contract::Digest;
use checkrein_contract::ask::Amendment;
use checkrein_contract::event::FactEntry;
use checkrein_contract::id::{FactId, SubgoalId};

use super::{Folded, State};
use crate::state::{Phase, SubgoalState};

impl State {
    pub(super) fn amend(
        &mut self,
        amendment: &Amendment,
        reopened: &[SubgoalId],
        evaluated: &[SubgoalId],
    ) -> Folded {
        for id in reopened.iter().chain(evaluated) {
            self.goal(id)?;
        }
        self.restate(amendment);
        self.reopen(reopened)?;
        for id in evaluated {
            self.evaluate_again(id)?;
        }
        let again = reopened.iter().chain(evaluated).map(|id| self.stage_of(id));
        if let Some(first) = again.min().filter(|first| *first <= self.stage) {
            // Where the run had not come yet, it comes by itself.
            self.stage = first;
            self.enter();
            self.ended = None;
        }
        Ok(())
    }

    fn restate(&mut self, amendment: &Amendment) {
        let places: Vec<(SubgoalId, (usize, usize))> =
            self.subgoals.iter().map(|(id, goal)| (id.clone(), goal.at)).collect();
        let Some(setup) = &mut self.setup else { return };
        for (key, value) in &amendment.set {
            setup.task.parameters.insert(key.clone(), value.clone());
        }
        let before = setup.task.goal.clone();
        if let Some(goal) = &amendment.goal {
            setup.task.goal.clone_from(goal);
        }
        for (id, (stage, index)) in places {
            let Some(spec) = setup.task.stages.get_mut(stage).and_then(|stage| stage.subgoals.get_mut(index))
            else {
                continue;
            };
            if let Some(goal) = amendment.goal.as_ref().filter(|_| spec.goal == before) {
                spec.goal.clone_from(goal);
            }
            let more = amendment.criteria.iter().filter(|(of, _)| *of == id);
            spec.criteria.extend(more.map(|(_, criterion)| criterion.clone()));
        }
    }

    /// The criteria of a closed subgoal are evaluated again; what is taken up again with it is what it
    /// forgot when it closed.
    fn evaluate_again(&mut self, id: &SubgoalId) -> Folded {
        let accepted: Vec<Digest> =
            self.accepted(id).map(|(_, call)| crate::action::digest(&call.skill, &call.args)).collect();
        let goal = self.goal(id)?;
        if goal.is_closed() {
            goal.phase = Phase::Evaluating;
            goal.evaluated_again = Some(goal.calls.len());
            goal.closed_actions.extend(accepted.into_iter().map(|action| (action, "accepted".to_owned())));
        }
        Ok(())
    }

    /// What comes after a subgoal that was evaluated again is open again.
    pub(super) fn reopen_dependents(&mut self, reopened: &[SubgoalId]) -> Folded {
        self.reopen(reopened)?;
        self.enter();
        Ok(())
    }

    /// These subgoals are open again, and what came out of them is abandoned.
    fn reopen(&mut self, ids: &[SubgoalId]) -> Folded {
        for id in ids {
            self.reopen_one(id)?;
        }
        let stands = |current: &FactId| self.facts.get(current).is_some_and(|fact| !fact.abandoned);
        let gone: BTreeSet<String> =
            self.current.iter().filter(|(_, id)| !stands(id)).map(|(subject, _)| subject.clone()).collect();
        self.current.retain(|subject, _| !gone.contains(subject));
        let left = self.facts.values().filter(|fact| !fact.abandoned && gone.contains(&fact.entry.subject));
        let left: Vec<FactEntry> = left.map(|fact| fact.entry.clone()).collect();
        left.iter().for_each(|entry| self.make_current(entry));
        Ok(())
    }

    /// The subgoal is as if it had never been opened, but for what it used up. What came out of it is
    /// abandoned.
    fn reopen_one(&mut self, id: &SubgoalId) -> Folded {
        self.charge_proposal(id);
        self.decide_attempt(id, false)?;
        let driven = self.driven_ms;
        let goal = self.goal(id)?;
        let used = goal.wall_ms + goal.since.map_or(0, |since| driven.saturating_sub(since));
        let calls = std::mem::take(&mut goal.calls);
        let made = goal.calls_before + calls.len() as u32;
        *goal = SubgoalState { calls_before: made, wall_ms: used, ..SubgoalState::new(goal.at) };
        for call in calls {
            let call = self.call_mut(&call)?;
            call.accepted = false;
            for fact in std::mem::take(&mut call.facts) {
                if let Some(fact) = self.facts.get_mut(&fact) {
                    fact.abandoned = true;
                }
            }
        }
        self.locked.retain(|lock| lock.by != *id);
        Ok(())
    }
}
