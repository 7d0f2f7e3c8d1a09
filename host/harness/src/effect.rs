//! What goes into the core, and what the outside world owes it.

use checkrein_contract::Digest;
use checkrein_contract::ask::Letter;
use checkrein_contract::event::{Assessed, CriterionState, Ended, InForce, Judge, Judgement, Setup, Stop};
use checkrein_contract::id::{CallId, FactId, SubgoalId, Timestamp};
use checkrein_contract::interface::Remedy;
use checkrein_contract::limits::Used;
use checkrein_contract::problem::Problem;
use checkrein_contract::record::Record;
use serde_json::{Map, Value};

/// Something that happened outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// A run is to start.
    Start {
        /// From this.
        setup: Box<Setup>,
        /// Which right to drive it was taken, from 1.
        epoch: u64,
        /// By whom.
        holder: String,
    },
    /// A run is to go on.
    Resume {
        /// Which right to drive it was taken.
        epoch: u64,
        /// By whom.
        holder: String,
        /// The engine and its version.
        engine: String,
        /// What its components may do, where that is another thing than before.
        in_force: Option<Box<InForce>>,
    },
    /// A letter of the inbox.
    Letter(Box<Letter>),
    /// The run is to stop: nothing that was under way will come to an end.
    Stop(Stop),
    /// The references in a subgoal's arguments were resolved, or not.
    Resolved {
        /// Of which subgoal.
        subgoal: SubgoalId,
        /// The facts that they were resolved over.
        scope: Vec<FactId>,
        /// The calls whose artifacts they were resolved over.
        artifacts: Vec<CallId>,
        /// The arguments, or all that is wrong with them.
        args: Result<Map<String, Value>, Vec<Problem>>,
    },
    /// The triggers have answered.
    Assessed {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// What each said.
        assessed: Vec<Assessed>,
    },
    /// The planner proposes.
    Proposed {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// As it came.
        action: Value,
        /// Tokens that the planner used.
        tokens: u64,
    },
    /// A call has ended.
    Executed {
        /// Which.
        call: CallId,
        /// How.
        ended: Ended,
        /// What it used.
        used: Used,
        /// Its log, if it wrote any.
        log: Option<Digest>,
        /// What it did at its walls.
        record: Record,
    },
    /// A judge has spoken.
    Judged {
        /// On which call's submission.
        call: CallId,
        /// Who.
        judge: Judge,
        /// What.
        judgement: Judgement,
        /// What judging used.
        used: Used,
        /// What it did at its walls.
        record: Record,
    },
    /// The criteria were evaluated.
    Evaluated {
        /// Of which subgoal.
        subgoal: SubgoalId,
        /// Each of them.
        criteria: Vec<CriterionState>,
    },
    /// The recovery has answered.
    Recovered {
        /// About which call.
        call: CallId,
        /// In a few stable words.
        diagnosis: String,
        /// What it advises; none if it could not say.
        remedy: Option<Remedy>,
        /// What it did at its walls.
        record: Record,
    },
    /// The time has come.
    TimerReached {
        /// For which subgoal.
        subgoal: SubgoalId,
    },
    /// Nothing new happened: what follows from the state by itself?
    Proceed,
}

/// Something that the outside world owes. Two equal effects are the same one: the driver never
/// performs one that it is performing already.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Resolve the references in a subgoal's arguments over its scope.
    Resolve {
        /// Of which subgoal.
        subgoal: SubgoalId,
    },
    /// Ask these triggers.
    Assess {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// The skills to ask.
        skills: Vec<String>,
    },
    /// Ask the planner.
    Propose {
        /// For which subgoal.
        subgoal: SubgoalId,
    },
    /// Make the call, as it stands in the log.
    Execute {
        /// Which.
        call: CallId,
    },
    /// Ask a judge.
    Verify {
        /// On which call's submission.
        call: CallId,
        /// Whom.
        judge: Judge,
        /// How many verdicts on it there were before.
        again: usize,
    },
    /// Ask the recovery of the call's skill.
    Recover {
        /// About which call.
        call: CallId,
    },
    /// Evaluate the criteria.
    Evaluate {
        /// Of which subgoal.
        subgoal: SubgoalId,
    },
    /// Say when the time has come.
    WaitUntil {
        /// For which subgoal.
        subgoal: SubgoalId,
        /// When.
        until: Timestamp,
    },
}
