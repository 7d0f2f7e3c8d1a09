//! A task that is changed while it runs: what is open again, and why a change is not taken.

use std::collections::BTreeSet;

use checkrein_contract::ask::{Amendment, Asked};
use checkrein_contract::event::{Ended, Event};
use checkrein_contract::id::{AskId, CallId, SubgoalId};
use checkrein_contract::limits::Used;
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;
use serde_json::Value;

use crate::state::{Phase, State};
use crate::{criteria, reference};

/// What follows from an amendment for the subgoals that had begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reopened {
    /// Open again: what depended on what was changed, and all that could read what came out of it.
    pub reopened: Vec<SubgoalId>,
    /// Their criteria are evaluated again, over the facts that stand.
    pub evaluated: Vec<SubgoalId>,
}

/// What of the task depended on what is changed.
pub fn reopened(state: &State, amendment: &Amendment) -> Reopened {
    let Some(setup) = &state.setup else { return Reopened::default() };
    let changed: Vec<&String> = changed(state, amendment).collect();
    let reads = |check: &str| changed.iter().any(|name| criteria::reads_parameter(check, name));
    let other_goal = amendment.goal.as_ref().is_some_and(|goal| *goal != setup.task.goal);
    let (mut again, mut evaluated) = (BTreeSet::new(), BTreeSet::new());
    for (_, spec) in setup.task.subgoals() {
        let used = reference::parameters(&spec.args);
        let same_words = other_goal && spec.goal == setup.task.goal;
        if same_words || used.iter().any(|name| changed.contains(&name)) {
            again.insert(spec.id.clone());
        } else if spec.criteria.iter().any(|criterion| reads(&criterion.check))
            || amendment.criteria.iter().any(|(id, _)| *id == spec.id)
        {
            evaluated.insert(spec.id.clone());
        }
    }
    // A criterion is judged over calls; where none was made there is nothing to evaluate.
    let (evaluated, without): (BTreeSet<SubgoalId>, BTreeSet<SubgoalId>) =
        evaluated.into_iter().partition(|id| !state.subgoal(id).calls.is_empty());
    again.extend(without);
    again.extend(state.after(&again));
    let began = |id: &&SubgoalId| state.subgoal(id).phase != Phase::Waiting;
    let all = setup.task.subgoals().map(|(_, spec)| &spec.id);
    let reopened = all.filter(began).filter(|id| again.contains(*id)).cloned().collect();
    let evaluated = evaluated.into_iter().filter(|id| began(&id) && !again.contains(id)).collect();
    Reopened { reopened, evaluated }
}

/// What is open again once a subgoal, whose criteria were evaluated again, is met.
pub(crate) fn reopened_after(state: &State, id: &SubgoalId, before: usize) -> Vec<SubgoalId> {
    let goal = state.subgoal(id);
    let by_others = goal.calls[before.min(goal.calls.len())..].iter().any(|call| state.calls[call].accepted);
    let again = if by_others { state.after(&BTreeSet::from([id.clone()])) } else { state.blocked_by(id) };
    again.into_iter().filter(|id| state.subgoal(id).phase != Phase::Waiting).collect()
}

fn changed<'a>(state: &'a State, amendment: &'a Amendment) -> impl Iterator<Item = &'a String> {
    let parameters = state.setup.as_ref().map(|setup| &setup.task.parameters);
    let set = amendment.set.iter();
    set.filter(move |(key, value)| parameters.and_then(|all| all.get(*key)) != Some(value))
        .map(|(key, _)| key)
}

/// Why an amendment is not taken.
pub(crate) fn refusal(state: &State, amendment: &Amendment) -> Option<String> {
    let setup = state.setup.as_ref()?;
    let mut faults = Vec::new();
    let known: Vec<&str> = setup.task.parameters.keys().map(String::as_str).collect();
    for key in amendment.set.keys().filter(|key| !setup.task.parameters.contains_key(*key)) {
        faults.push(format!("the task has no parameter `{key}`; there are: {}", known.join(", ")));
    }
    for (id, criterion) in &amendment.criteria {
        if !state.subgoals.contains_key(id) {
            let known: Vec<&str> = state.subgoals.keys().map(SubgoalId::as_str).collect();
            faults.push(format!("the task has no subgoal `{id}`; there are: {}", known.join(", ")));
        }
        if let Err(why) = criteria::check(&criterion.check) {
            faults.push(format!("`{}` is no criterion: {why}", criterion.check));
        }
    }
    if !faults.is_empty() {
        return Some(faults.join("; "));
    }
    let same_goal = amendment.goal.as_ref().is_none_or(|goal| *goal == setup.task.goal);
    if same_goal && amendment.criteria.is_empty() && changed(state, amendment).next().is_none() {
        return Some("it changes nothing".to_owned());
    }
    // What cannot be taken back is not left hanging.
    let task = task_amended(state, amendment);
    left_behind(state, &task).into_iter().find_map(|hanging| match hanging {
        Hanging::Call(call) if state.calls.get(call)?.effects == Effects::None => None,
        Hanging::Call(call) => Some(format!("`{call}` is being made, and has effects; cancel the run first")),
        Hanging::Ask(ask) => Some(format!("it is not known whether a call happened; answer ask {ask} first")),
    })
}

/// What an amendment would leave without anybody who waits for it.
enum Hanging<'s> {
    /// A call in hand.
    Call(&'s CallId),
    /// The ask whether a call happened.
    Ask(&'s AskId),
}

/// What hangs on subgoals that are open again, or that wait for such.
fn left_behind<'s>(state: &'s State, amended: &Event) -> Vec<Hanging<'s>> {
    let Event::TaskAmended { reopened, .. } = amended else { return Vec::new() };
    let mut after = state.clone();
    // An event that we make follows from the state.
    if after.apply(state.now, amended).is_err() {
        return Vec::new();
    }
    let left = |id: &&SubgoalId| reopened.contains(id) || !after.open.contains(*id);
    let hanging = |id: &'s SubgoalId| match &state.subgoal(id).phase {
        Phase::Calling(call) | Phase::Unknown(call) => Some(Hanging::Call(call)),
        Phase::Asking(ask) => {
            let about = &state.asks.get(ask)?.about;
            (reopened.contains(id) && matches!(about, Asked::CallUnknown { .. })).then_some(Hanging::Ask(ask))
        }
        _ => None,
    };
    state.subgoals.keys().filter(left).filter_map(hanging).collect()
}

fn task_amended(state: &State, amendment: &Amendment) -> Event {
    let Reopened { reopened, evaluated } = reopened(state, amendment);
    Event::TaskAmended { amendment: amendment.clone(), version: state.version + 1, reopened, evaluated }
}

/// The events of an amendment that is not refused. Calls in hand that nobody waits for any more are
/// given up.
pub(crate) fn amended(state: &State, amendment: &Amendment) -> Vec<Event> {
    let task = task_amended(state, amendment);
    let calls = left_behind(state, &task).into_iter().filter_map(|hanging| match hanging {
        Hanging::Call(call) => Some(given_up(state, call)),
        Hanging::Ask(_) => None,
    });
    calls.flatten().collect::<Vec<_>>().into_iter().chain([task]).collect()
}

/// A call that nobody waits for any more: what it used is not known, so all that was set aside is
/// charged.
pub(crate) fn given_up(state: &State, id: &CallId) -> [Event; 2] {
    let ended = Event::CallEnded {
        call: id.clone(),
        ended: Ended::Cancelled,
        log: None,
        record: Record::default(),
        attested: false,
    };
    [ended, charged_whole(state, id)]
}

/// All that was set aside for a call is charged.
pub(crate) fn charged_whole(state: &State, id: &CallId) -> Event {
    let fuel = state.calls.get(id).map_or(0, |call| call.fuel);
    Event::BudgetSettled { call: id.clone(), used: Used { fuel, ..Used::default() } }
}

/// The values of parameters that an amendment changes, as `name: before -> after`.
pub fn differences(state: &State, amendment: &Amendment) -> Vec<String> {
    let before = |key: &String| {
        let parameters = state.setup.as_ref().map(|setup| &setup.task.parameters);
        parameters.and_then(|all| all.get(key)).cloned().unwrap_or(Value::Null)
    };
    changed(state, amendment)
        .filter_map(|key| Some(format!("{key}: {} -> {}", before(key), amendment.set.get(key)?)))
        .collect()
}
