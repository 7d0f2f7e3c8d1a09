//! What was used up and set aside, and what is left of the budgets.
//!
//! What an action may use is set aside before it and settled after it, at three levels: its subgoal,
//! its stage, the run. What is set aside counts as used for everybody else, so calls that run side by
//! side cannot pass a budget together.

use checkrein_contract::id::SubgoalId;
use checkrein_contract::task::Budget;
use serde::{Deserialize, Serialize};

use super::State;

/// What was used up and set aside, of a run, a stage or a subgoal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Attempts used up.
    pub attempts: u64,
    /// Attempts set aside for calls that are not decided.
    pub attempts_reserved: u64,
    /// Calls intended.
    pub calls: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Tokens set aside for proposals that have not come.
    pub tokens_reserved: u64,
    /// Fuel used by calls that have ended.
    pub fuel: u64,
    /// Fuel set aside for calls that have not.
    pub reserved: u64,
    /// Wall time of a stage, in milliseconds; of run and subgoals it is kept by the clock itself.
    pub wall_ms: u64,
}

/// Why nothing can be set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Short {
    /// What is left is set aside for others, who may give it back.
    Reserved,
    /// Nothing is left of this budget.
    Used(String),
}

impl State {
    /// The budgets that bind a subgoal, from the run's down to its own, with what was used of each.
    fn budgets(&self, id: &SubgoalId) -> [(&'static str, Budget, Spent); 3] {
        let stage = self.stage_of(id);
        let task = self.setup.as_ref().map(|setup| setup.task.budget).unwrap_or_default();
        let stage_budget = self.stages().get(stage).map(|stage| stage.budget).unwrap_or_default();
        [
            ("run", task, self.spent),
            ("stage", stage_budget, self.stage_spent.get(&stage).copied().unwrap_or_default()),
            ("subgoal", self.spec(id).budget, self.subgoal_spent.get(id).copied().unwrap_or_default()),
        ]
    }

    /// Fuel and wall time for one more call: what its limits allow, or what the budgets have left.
    ///
    /// # Errors
    ///
    /// If one of them has nothing left, or less than that which is not set aside.
    pub fn for_call(
        &self,
        id: &SubgoalId,
        again: bool,
        fuel: u64,
        wall_ms: u64,
    ) -> Result<(u64, u64), Short> {
        let mut least = fuel;
        let mut reserved = false;
        for (of, budget, spent) in self.budgets(id) {
            if let Some(calls) = budget.calls.filter(|calls| !again && spent.calls >= *calls) {
                return Err(Short::Used(format!("{of}: {} calls of {calls}", spent.calls)));
            }
            if let Some(attempts) = budget.attempts.filter(|_| !again) {
                if spent.attempts >= attempts {
                    return Err(Short::Used(format!("{of}: {} attempts of {attempts}", spent.attempts)));
                }
                reserved |= spent.attempts + spent.attempts_reserved >= attempts;
            }
            if let Some(allowed) = budget.fuel {
                let left = allowed.saturating_sub(spent.fuel);
                if left == 0 {
                    return Err(Short::Used(format!("{of}: {allowed} units of fuel")));
                }
                // What others give back later is waited for: what a call gets does not depend on who is
                // first.
                reserved |= left.saturating_sub(spent.reserved) < fuel.min(left);
                least = least.min(left);
            }
        }
        if reserved {
            return Err(Short::Reserved);
        }
        match self.wall_left(id) {
            Some((of, 0)) => Err(Short::Used(format!("{of}: wall time"))),
            left => Ok((least, left.map_or(wall_ms, |(_, left)| wall_ms.min(left)))),
        }
    }

    /// Tokens for one proposal: what it may use at most, or what the budgets have left.
    ///
    /// # Errors
    ///
    /// If one of them has nothing left, or less than that which is not set aside.
    pub fn for_proposal(&self, id: &SubgoalId, most: u64) -> Result<u64, Short> {
        let (mut least, mut reserved) = (most, false);
        for (of, budget, spent) in self.budgets(id) {
            let Some(allowed) = budget.tokens else { continue };
            let left = allowed.saturating_sub(spent.tokens);
            if left == 0 {
                return Err(Short::Used(format!("{of}: {allowed} tokens")));
            }
            reserved |= left.saturating_sub(spent.tokens_reserved) < most.min(left);
            least = least.min(left);
        }
        if reserved { Err(Short::Reserved) } else { Ok(least) }
    }

    /// Milliseconds that a subgoal has left, and which budget says so; `None` if none does.
    pub fn wall_left(&self, id: &SubgoalId) -> Option<(&'static str, u64)> {
        let run = self.setup.as_ref().and_then(|setup| setup.task.budget.wall_ms);
        let stage = self.stage_of(id);
        let of_stage = self.stages().get(stage).and_then(|stage| stage.budget.wall_ms);
        let own = self.spec(id).budget.wall_ms;
        // Asked for every open subgoal after every event: what was used is looked up where it is bound.
        let left = [
            run.map(|allowed| ("run", allowed.saturating_sub(self.driven_ms))),
            of_stage.map(|allowed| {
                let used = self.stage_spent.get(&stage).map_or(0, |spent| spent.wall_ms);
                ("stage", allowed.saturating_sub(used))
            }),
            own.map(|allowed| {
                let goal = self.subgoal(id);
                let open = goal.since.map_or(0, |since| self.driven_ms.saturating_sub(since));
                ("subgoal", allowed.saturating_sub(goal.wall_ms + open))
            }),
        ];
        left.into_iter().flatten().min_by_key(|(_, left)| *left)
    }

    /// Changes what was spent by a subgoal, its stage and the run.
    pub(super) fn spend(&mut self, id: &SubgoalId, change: impl Fn(&mut Spent)) {
        let Some(stage) = self.subgoals.get(id).map(|goal| goal.at.0) else { return };
        change(&mut self.spent);
        change(self.stage_spent.entry(stage).or_default());
        change(self.subgoal_spent.entry(id.clone()).or_default());
    }
}
