//! The planner `triggers`: no model, a plain rule over what the triggers and recoveries said.
//!
//! It calls the skill with the best score; after that a remedy is the plan.

use checkrein_contract::ask::Answer;
use checkrein_contract::event::Assessed;
use checkrein_contract::id::SubgoalId;
use checkrein_contract::interface::Remedy;
use serde_json::{Map, Value};

use crate::action::{self, Action};
use crate::observation::Observation;
use crate::state::{CallState, State, SubgoalState};

/// The next action for a subgoal.
pub fn propose(state: &State, subgoal: &SubgoalId) -> Action {
    let goal = state.subgoal(subgoal);
    if goal.refusals > 0 {
        return after_refusal(goal);
    }
    let last = goal.calls.last().map(|call| &state.calls[call]);
    if let Some(answer) = &goal.answer {
        return after_answer(goal, last, answer);
    }
    let Some(last) = last else { return next_skill(goal, "no skill applies") };
    match &goal.remedy {
        Some(Remedy::RetryWith(Value::Object(args))) => {
            Action::Call { skill: last.skill.clone(), args: args.clone() }
        }
        Some(Remedy::RetryWith(_)) => give_up("the remedy's arguments are not an object"),
        // The wait is over: a timer stands between the remedy and this.
        Some(Remedy::RetryAfter(_)) => Action::Call { skill: last.skill.clone(), args: last.args.clone() },
        Some(Remedy::UseSkill(name)) => use_skill(goal, name),
        Some(Remedy::Replan(hint)) => next_skill(goal, hint),
        Some(Remedy::AskPerson(question)) => Action::Ask { question: question.clone() },
        Some(Remedy::GiveUp(reason)) => give_up(reason),
        None => next_skill(goal, "its recovery had no advice"),
    }
}

/// What a person answered is the plan, as far as a plain rule can follow it.
fn after_answer(goal: &SubgoalState, last: Option<&CallState>, answer: &Answer) -> Action {
    let skill = || {
        let best = goal.assessed.iter().find(|assessed| assessed.score > 0);
        last.map(|call| call.skill.clone()).or_else(|| best.map(|assessed| assessed.skill.clone()))
    };
    match (answer, last, skill()) {
        (Answer::Args { args }, _, Some(skill)) => Action::Call { skill, args: args.clone() },
        (Answer::Retry, Some(last), _) if !is_closed(goal, &last.skill, &last.args) => {
            Action::Call { skill: last.skill.clone(), args: last.args.clone() }
        }
        (Answer::Retry, Some(last), _) => match &goal.remedy {
            Some(Remedy::RetryWith(Value::Object(args))) if !is_closed(goal, &last.skill, args) => {
                Action::Call { skill: last.skill.clone(), args: args.clone() }
            }
            _ => next_skill(goal, "a person said to try again, and nothing else is left to try"),
        },
        (Answer::Said { text }, _, _) => {
            next_skill(goal, &format!("a person said `{text}`, which no rule can follow"))
        }
        (Answer::Denied { reason }, _, _) => next_skill(goal, &format!("a person denied it: {reason}")),
        (answer, _, _) => next_skill(goal, &format!("a person answered `{}`", answer.as_str())),
    }
}

fn is_closed(goal: &SubgoalState, skill: &str, args: &Map<String, Value>) -> bool {
    goal.closed_actions.contains_key(&action::digest(skill, args))
}

/// A refused action is not proposed again: another skill, or the end.
fn after_refusal(goal: &SubgoalState) -> Action {
    let why = match goal.observations.last() {
        Some(Observation::Refused(problems)) => {
            problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
        }
        Some(Observation::Answered(_, Answer::Denied { reason })) => format!("a person denied it: {reason}"),
        _ => "the action was refused".to_owned(),
    };
    next_skill(goal, &why)
}

fn use_skill(goal: &SubgoalState, name: &str) -> Action {
    match goal.assessed.iter().find(|assessed| assessed.skill == name && assessed.score > 0) {
        Some(assessed) => call(goal, assessed),
        None => next_skill(goal, &format!("the remedy names `{name}`, which does not apply here")),
    }
}

fn next_skill(goal: &SubgoalState, why: &str) -> Action {
    match untried(goal).next() {
        Some(assessed) => call(goal, assessed),
        None => give_up(why),
    }
}

fn untried(goal: &SubgoalState) -> impl Iterator<Item = &Assessed> {
    goal.assessed.iter().filter(|assessed| assessed.score > 0 && !goal.proposed.contains(&assessed.skill))
}

/// A call of the skill with the subgoal's arguments; those that its trigger drew fill absent keys.
fn call(goal: &SubgoalState, assessed: &Assessed) -> Action {
    let mut args: Map<String, Value> = goal.args.clone();
    for (key, value) in assessed.args.iter().flatten() {
        args.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Action::Call { skill: assessed.skill.clone(), args }
}

fn give_up(reason: &str) -> Action {
    Action::GiveUp { reason: reason.to_owned() }
}
