//! What the outside world owes a run.

use checkrein_contract::event::{Judge, Judgement};
use checkrein_contract::id::SubgoalId;

use crate::effect::Effect;
use crate::gateway;
use crate::state::{CallState, Phase, State};

/// Subgoals with something due at once: more are not opened, so that a step of a run with thousands
/// that could begin costs as much as one of a run with few.
const OPEN_MAX: usize = 64;

/// Every effect that is due, in a stable order. Computed from the state alone: after a restart
/// the same effects are due again.
pub fn due(state: &State) -> Vec<Effect> {
    if state.ended.is_some() || state.stopped.is_some() {
        return Vec::new();
    }
    let mut effects: Vec<Effect> = state.open.iter().filter_map(|id| effect_of(state, id)).collect();
    let opening = state.ready.iter().map(|id| Effect::Resolve { subgoal: id.clone() });
    // What is open goes on before more is opened; what waits for a person keeps nobody waiting.
    effects.extend(opening.take(OPEN_MAX.saturating_sub(effects.len())));
    effects
}

fn effect_of(state: &State, id: &SubgoalId) -> Option<Effect> {
    let subgoal = id.clone();
    match &state.subgoal(id).phase {
        Phase::Assessing => Some(Effect::Assess { subgoal, skills: candidates(state, id) }),
        Phase::Planning | Phase::Advised(_) if !reserves_tokens(state, id) => {
            Some(Effect::Propose { subgoal })
        }
        Phase::Calling(call) => Some(Effect::Execute { call: call.clone() }),
        Phase::Verifying(call) => next_judge(state, &state.calls[call]).map(|judge| {
            let again = state.calls[call].verdicts.len();
            Effect::Verify { call: call.clone(), judge, again }
        }),
        Phase::Recovering(call) => Some(Effect::Recover { call: call.clone() }),
        // Accepted, but not met.
        Phase::Evaluated => state.subgoal(id).calls.last().map(|call| Effect::Recover { call: call.clone() }),
        Phase::Evaluating => Some(Effect::Evaluate { subgoal }),
        Phase::Sleeping(until) => Some(Effect::WaitUntil { subgoal, until: *until }),
        // What follows from these is decided by the core itself.
        Phase::Planning
        | Phase::Advised(_)
        | Phase::Waiting
        | Phase::Asking(_)
        | Phase::Checking(_)
        | Phase::Unknown(_)
        | Phase::Quarantined(_)
        | Phase::Closed(_) => None,
    }
}

/// Whether tokens are to be set aside before the planner is asked, and were not.
pub fn reserves_tokens(state: &State, id: &SubgoalId) -> bool {
    let most = state.setup.as_ref().map_or(0, |setup| setup.proposal_tokens);
    most > 0 && state.subgoal(id).tokens_reserved == 0
}

/// The skills whose triggers are asked: the one that the task names, else those of whose terms
/// one occurs in the goal.
fn candidates(state: &State, id: &SubgoalId) -> Vec<String> {
    let spec = state.spec(id);
    let skills = state.setup.iter().flat_map(|setup| &setup.skills);
    let applying = skills.filter(|card| match &spec.skill {
        Some(name) => name == card.name(),
        None => card.manifest.applies_to(&spec.goal),
    });
    applying.map(|card| card.name().to_owned()).collect()
}

/// The first judge that has not judged yet.
pub fn next_judge(state: &State, call: &CallState) -> Option<Judge> {
    let judged = |judge: &Judge| {
        call.verdicts.iter().any(|(who, what)| who == judge && !matches!(what, Judgement::Unavailable { .. }))
    };
    gateway::judges(state, call).into_iter().find(|judge| !judged(judge))
}
