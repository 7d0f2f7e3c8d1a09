//! What the planner is told. Every limit, refusal, finding and failure becomes an observation
//! here and nowhere else; an observation is data, never an instruction. What strangers wrote in it is
//! made visible and cut here, so that no planner is steered by what no person sees.

use checkrein_contract::ask::Answer;
use checkrein_contract::event::{CriterionState, Ended, Event, Judge, Judgement};
use checkrein_contract::id::{AskId, CallId, SubgoalId};
use checkrein_contract::interface::{Failure, Finding, LimitHit, Remedy};
use checkrein_contract::problem::Problem;
use checkrein_contract::record::Denial;
use checkrein_contract::text::{told, told_json};
use serde::{Deserialize, Serialize};

/// Characters of one text, or of one JSON value, that a planner is told.
const TOLD_MAX: usize = 2_000;

/// Something told back to the planner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Observation {
    /// An action was turned down before any call.
    Refused(Vec<Problem>),
    /// The executor failed, after it was refused these things.
    Failed(CallId, Failure, Vec<Denial>),
    /// A limit fired, after it was refused these things.
    Limited(CallId, LimitHit, Vec<Denial>),
    /// The component trapped, after it was refused these things: most languages do so where an error
    /// is not expected.
    Trapped(CallId, String, Vec<Denial>),
    /// It returned what the interface does not allow, after it was refused these things.
    Invalid(CallId, Problem, Vec<Denial>),
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
    /// The host ended while the call was made; whether it happened is not known.
    Unknown(CallId),
    /// What a person says.
    Answered(AskId, Answer),
}

/// Whom an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'e> {
    /// A subgoal.
    Subgoal(&'e SubgoalId),
    /// A call, and so its subgoal.
    Call(&'e CallId),
    /// An ask, and so its subgoal.
    Ask(&'e AskId),
}

/// The observation that an event is for the planner of the subgoal it concerns, if it is one.
pub fn observe(event: &Event) -> Option<(About<'_>, Observation)> {
    match event {
        Event::ActionRefused { subgoal, problems } => {
            Some((About::Subgoal(subgoal), Observation::Refused(problems.iter().map(problem).collect())))
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
        Event::RemedyGiven { call, diagnosis, remedy, .. } => Some((
            About::Call(call),
            Observation::Advised(call.clone(), short(diagnosis), remedy.as_ref().map(advice)),
        )),
        Event::CallUnknown { call } => Some((About::Call(call), Observation::Unknown(call.clone()))),
        Event::AskAnswered { ask, answer, .. } => {
            Some((About::Ask(ask), Observation::Answered(ask.clone(), answered(answer))))
        }
        Event::RunStarted { .. }
        | Event::LeaseTaken { .. }
        | Event::RunResumed { .. }
        | Event::RunStopped { .. }
        | Event::LetterTaken { .. }
        | Event::TaskAmended { .. }
        | Event::DependentsReopened { .. }
        | Event::TokensReserved { .. }
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
    // However it ended, what it was refused may be why.
    let denials = denials.iter().map(denial).collect();
    match ended {
        Ended::Outcome { .. } | Ended::Cancelled | Ended::Happened => None,
        Ended::Failed { failure } => Some(Observation::Failed(call, self::failure(failure), denials)),
        Ended::Limited { hit } => Some(Observation::Limited(call, hit.clone(), denials)),
        Ended::Trapped { message } => Some(Observation::Trapped(call, short(message), denials)),
        Ended::Invalid { problem } => Some(Observation::Invalid(call, self::problem(problem), denials)),
    }
}

fn judged(call: &CallId, judge: &Judge, judgement: &Judgement) -> Option<Observation> {
    let (call, judge) = (call.clone(), judge.clone());
    match judgement {
        Judgement::Accepted { .. } => None,
        Judgement::Rejected { findings, .. } => {
            Some(Observation::Rejected(call, judge, findings.iter().map(finding).collect()))
        }
        Judgement::Unavailable { reason } => Some(Observation::Unavailable(call, judge, short(reason))),
    }
}

/// A person's words come through a terminal, and may have been pasted from anywhere.
fn answered(answer: &Answer) -> Answer {
    match answer {
        Answer::Denied { reason } => Answer::Denied { reason: short(reason) },
        Answer::Said { text } => Answer::Said { text: short(text) },
        Answer::GiveUp { reason } => Answer::GiveUp { reason: short(reason) },
        Answer::Approved { .. }
        | Answer::Args { .. }
        | Answer::Retry
        | Answer::Happened { .. }
        | Answer::NotHappened => answer.clone(),
    }
}

fn short(text: &str) -> String {
    told(text, TOLD_MAX)
}

fn denial(denial: &Denial) -> Denial {
    let Denial { wall, what, grant, count } = denial;
    Denial { wall: *wall, what: short(what), grant: grant.as_deref().map(short), count: *count }
}

fn failure(failure: &Failure) -> Failure {
    Failure {
        kind: failure.kind,
        message: short(&failure.message),
        evidence: told_json(&failure.evidence, TOLD_MAX),
    }
}

fn problem(problem: &Problem) -> Problem {
    Problem {
        message: short(&problem.message),
        expected: told_json(&problem.expected, TOLD_MAX),
        actual: told_json(&problem.actual, TOLD_MAX),
        location: problem.location.as_deref().map(short),
        suggestion: problem.suggestion.as_deref().map(short),
        ..problem.clone()
    }
}

fn finding(finding: &Finding) -> Finding {
    Finding {
        rule: short(&finding.rule),
        message: short(&finding.message),
        expected: told_json(&finding.expected, TOLD_MAX),
        actual: told_json(&finding.actual, TOLD_MAX),
        location: finding.location.as_deref().map(short),
        suggestion: finding.suggestion.as_deref().map(short),
        severity: finding.severity,
    }
}

/// Arguments stay as they are: they are data that is called with, checked by its schema.
fn advice(remedy: &Remedy) -> Remedy {
    match remedy {
        Remedy::RetryWith(_) | Remedy::RetryAfter(_) => remedy.clone(),
        Remedy::UseSkill(text) => Remedy::UseSkill(short(text)),
        Remedy::Replan(text) => Remedy::Replan(short(text)),
        Remedy::AskPerson(text) => Remedy::AskPerson(short(text)),
        Remedy::GiveUp(text) => Remedy::GiveUp(short(text)),
    }
}

#[cfg(test)]
mod tests {
    use checkrein_contract::Digest;
    use checkrein_contract::id::RunId;
    use checkrein_contract::interface::{FailureKind, Severity};
    use checkrein_contract::record::Wall;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_ends_badly_tells_what_it_was_refused() {
        let call = CallId::new(&RunId("20261130-abcdef".into()), &SubgoalId("a".into()), 1);
        let grant = "network = [\"GET https://a.test/x\"]";
        let denial = Denial {
            wall: Wall::Network,
            what: "GET https://a.test/x: nothing is granted".into(),
            grant: Some(grant.into()),
            count: 1,
        };
        let failure = Failure { kind: FailureKind::Denied, message: "m".into(), evidence: json!(null) };
        let hit = LimitHit { limit: "fuel".into(), allowed: 1, used: 2 };
        for ended in
            [Ended::Failed { failure }, Ended::Limited { hit }, Ended::Trapped { message: "m".into() }]
        {
            let told = match ended_badly(&call, &ended, std::slice::from_ref(&denial)).unwrap() {
                Observation::Failed(_, _, denials)
                | Observation::Limited(_, _, denials)
                | Observation::Trapped(_, _, denials) => denials,
                other => panic!("{other:?}"),
            };
            assert_eq!(told[0].grant.as_deref(), Some(grant), "{ended:?}");
        }
    }

    #[test]
    fn what_strangers_wrote_is_seen_and_short() {
        let hidden = format!("done\u{202e}\u{1b}[2J{}", "x".repeat(1 << 16));
        let call = CallId::new(&RunId("20261130-abcdef".into()), &SubgoalId("a".into()), 1);
        let finding = Finding {
            rule: hidden.clone(),
            severity: Severity::Error,
            message: hidden.clone(),
            expected: json!({ hidden.clone(): hidden.clone() }),
            actual: json!([hidden.clone()]),
            location: Some(hidden.clone()),
            suggestion: Some(hidden.clone()),
        };
        let judge = Judge::Own { name: "s".into(), component: Digest::ZERO };
        let failure =
            Failure { kind: FailureKind::Internal, message: hidden.clone(), evidence: json!(hidden.clone()) };
        let denial =
            Denial { wall: Wall::Network, what: hidden.clone(), grant: Some(hidden.clone()), count: 1 };
        let observations = [
            judged(&call, &judge, &Judgement::Rejected { checks: Vec::new(), findings: vec![finding] }),
            judged(&call, &judge, &Judgement::Unavailable { reason: hidden.clone() }),
            ended_badly(&call, &Ended::Failed { failure }, &[denial]),
            ended_badly(&call, &Ended::Trapped { message: hidden }, &[]),
        ];
        for observation in observations {
            // Debug escapes what is hidden, and so would hide that it is there.
            let text = format!("{observation:?}");
            assert!(text.contains("done\\\\u{202e}") && !text.contains("done\\u{202e}"), "{text:.300}");
            assert!(text.len() < 20_000, "{}", text.len());
        }
    }
}
