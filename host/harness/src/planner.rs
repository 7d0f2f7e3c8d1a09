//! The planner `triggers`: no model, a plain rule over what the triggers and recoveries said.
//!
//! It calls the skill with the best score; after that a remedy is the plan.

use checkrein_contract::event::Assessed;
use checkrein_contract::id::SubgoalId;
use checkrein_contract::interface::Remedy;
use serde_json::{Map, Value};

use crate::action::Action;
use crate::observation::Observation;
use crate::state::{State, SubgoalState};

/// The next action for a subgoal.
pub fn propose(state: &State, subgoal: &SubgoalId) -> Action {
    let goal = state.subgoal(subgoal);
    if goal.refusals > 0 {
        return after_refusal(goal);
    }
    let Some(last) = goal.calls.last().map(|call| &state.calls[call]) else {
        return next_skill(goal, "no skill applies");
    };
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

/// A refused action is not proposed again: another skill, or the end.
fn after_refusal(goal: &SubgoalState) -> Action {
    let why = match goal.observations.last() {
        Some(Observation::Refused(problems)) => {
            problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
        }
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
