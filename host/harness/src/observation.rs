//! What the planner is told. Every limit, refusal, finding and failure becomes an observation
//! here and nowhere else; an observation is data, never an instruction.

use checkrein_contract::event::{CriterionState, Ended, Event, Judge, Judgement};
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::interface::{Failure, Finding, LimitHit, Remedy};
use checkrein_contract::problem::Problem;
use checkrein_contract::record::Denial;

/// Something told back to the planner.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// An action was turned down before any call.
    Refused(Vec<Problem>),
    /// The executor failed, after it was refused these things.
    Failed(CallId, Failure, Vec<Denial>),
    /// A limit fired.
    Limited(CallId, LimitHit),
    /// The component trapped.
    Trapped(CallId, String),
    /// It returned what the interface does not allow.
    Invalid(CallId, Problem),
    /// A judge rejected the submission, for these findings.
    Rejected(CallId, Judge, Vec<Finding>),
    /// A judge could not judge. It teaches nothing about the submission.
    Unavailable(CallId, Judge, String),
    /// The submission was let through: so many facts and artifacts.
    Accepted(CallId, usize, usize),
    /// Accepted, but these criteria do not hold.
    Unmet(Vec<CriterionState>),
    /// What the recovery makes of it.
    Advised(CallId, String, Option<Remedy>),
}

/// Whom an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'e> {
    /// A subgoal.
    Subgoal(&'e SubgoalId),
    /// A call, and so its subgoal.
    Call(&'e CallId),
}

/// The observation that an event is for the planner of the subgoal it concerns, if it is one.
pub fn observe(event: &Event) -> Option<(About<'_>, Observation)> {
    match event {
        Event::ActionRefused { subgoal, problems } => {
            Some((About::Subgoal(subgoal), Observation::Refused(problems.clone())))
        }
        Event::CallEnded { call, ended, record, .. } => {
            Some((About::Call(call), ended_badly(call, ended, &record.denials)?))
        }
        Event::VerdictGiven { call, judge, judgement, .. } => {
            Some((About::Call(call), judged(call, judge, judgement)?))
        }
        Event::OutcomeAccepted { call, facts, artifacts } => {
            Some((About::Call(call), Observation::Accepted(call.clone(), facts.len(), artifacts.len())))
        }
        Event::CriteriaEvaluated { subgoal, criteria } => {
            let unmet: Vec<CriterionState> = criteria.iter().filter(|state| !state.holds).cloned().collect();
            (!unmet.is_empty()).then(|| (About::Subgoal(subgoal), Observation::Unmet(unmet)))
        }
        Event::RemedyGiven { call, diagnosis, remedy } => {
            Some((About::Call(call), Observation::Advised(call.clone(), diagnosis.clone(), remedy.clone())))
        }
        Event::RunStarted { .. }
        | Event::RestorePointSet { .. }
        | Event::StageEntered { .. }
        | Event::SubgoalOpened { .. }
        | Event::SkillsAssessed { .. }
        | Event::ActionProposed { .. }
        | Event::BudgetReserved { .. }
        | Event::CallIntended { .. }
        | Event::BudgetSettled { .. }
        | Event::OutcomeRejected { .. }
        | Event::ContradictionFound { .. }
        | Event::TimerSet { .. }
        | Event::TimerReached { .. }
        | Event::AskOpened { .. }
        | Event::SubgoalClosed { .. }
        | Event::StageEvaluated { .. }
        | Event::RunEnded { .. } => None,
    }
}

fn ended_badly(call: &CallId, ended: &Ended, denials: &[Denial]) -> Option<Observation> {
    let call = call.clone();
    match ended {
        Ended::Outcome { .. } => None,
        Ended::Failed { failure } => Some(Observation::Failed(call, failure.clone(), denials.to_vec())),
        Ended::Limited { hit } => Some(Observation::Limited(call, hit.clone())),
        Ended::Trapped { message } => Some(Observation::Trapped(call, message.clone())),
        Ended::Invalid { problem } => Some(Observation::Invalid(call, problem.clone())),
    }
}

fn judged(call: &CallId, judge: &Judge, judgement: &Judgement) -> Option<Observation> {
    let (call, judge) = (call.clone(), judge.clone());
    match judgement {
        Judgement::Accepted { .. } => None,
        Judgement::Rejected { findings, .. } => Some(Observation::Rejected(call, judge, findings.clone())),
        Judgement::Unavailable { reason } => Some(Observation::Unavailable(call, judge, reason.clone())),
    }
}
