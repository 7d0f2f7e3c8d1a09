//! What follows from an input: the decisions of both loops, as a pure function.

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Assessed, Closing, CriterionState, Ended, Event, Judge, Judgement, RunStatus,
};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp};
use checkrein_contract::interface::{Finding, Level, Remedy};
use checkrein_contract::limits::{LimitKey, Used};
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;
use checkrein_contract::task::{Budget, REFUSALS_MAX};
use serde_json::{Map, Value, json};

use crate::action::{self, Action};
use crate::due::{may_open, next_judge};
use crate::effect::Input;
use crate::gateway;
use crate::state::{Phase, Spent, State, SubgoalState};

/// Decides, folds, and goes on deciding until nothing follows by itself: the events to append.
pub fn advance(state: &mut State, input: &Input, at: Timestamp) -> Vec<Event> {
    let mut all = Vec::new();
    let mut events = step(state, input);
    while !events.is_empty() {
        for event in &events {
            state.apply(at, event);
        }
        all.append(&mut events);
        events = step(state, &Input::Proceed);
    }
    all
}

/// What follows from an input in this state. An input that the state does not wait for is stale,
/// and nothing follows from it.
pub fn step(state: &State, input: &Input) -> Vec<Event> {
    if state.ended.is_some() {
        return Vec::new();
    }
    match input {
        Input::Start(setup) if state.setup.is_none() => vec![Event::RunStarted { setup: setup.clone() }],
        Input::Start(_) => Vec::new(),
        Input::Resolved { subgoal, scope, artifacts, args } => match args {
            _ if !state.ready.contains(subgoal) || !may_open(state, subgoal) => Vec::new(),
            Err(problems) => vec![close(subgoal, Closing::Unresolved { problems: problems.clone() })],
            Ok(args) => vec![Event::SubgoalOpened {
                subgoal: subgoal.clone(),
                scope: scope.clone(),
                artifacts: artifacts.clone(),
                args: args.clone(),
            }],
        },
        Input::Assessed { subgoal, assessed } if state.subgoal(subgoal).phase == Phase::Assessing => {
            let mut assessed = assessed.clone();
            assessed.sort_by(|one, two| two.score.cmp(&one.score).then_with(|| one.skill.cmp(&two.skill)));
            let none = assessed.iter().all(|skill| skill.score == 0);
            let closing = none.then(|| close(subgoal, no_skill(state, subgoal, &assessed)));
            let event = Event::SkillsAssessed { subgoal: subgoal.clone(), assessed };
            std::iter::once(event).chain(closing).collect()
        }
        Input::Proposed { subgoal, action } if is_planning(&state.subgoal(subgoal).phase) => {
            vec![Event::ActionProposed { subgoal: subgoal.clone(), action: action.clone() }]
        }
        Input::Executed { call, ended, used, log, record }
            if *phase_of(state, call) == Phase::Calling(call.clone()) =>
        {
            executed(call, ended, used, *log, record)
        }
        Input::Judged { call, judge, judgement, used, record }
            if *phase_of(state, call) == Phase::Verifying(call.clone())
                && next_judge(state, &state.calls[call]).as_ref() == Some(judge) =>
        {
            vec![Event::VerdictGiven {
                call: call.clone(),
                judge: judge.clone(),
                judgement: judgement.clone(),
                used: *used,
                record: record.clone(),
            }]
        }
        Input::Evaluated { subgoal, criteria } if state.subgoal(subgoal).phase == Phase::Evaluating => {
            let criteria = evidence(state, subgoal).into_iter().chain(criteria.clone()).collect();
            vec![Event::CriteriaEvaluated { subgoal: subgoal.clone(), criteria }]
        }
        Input::Recovered { call, diagnosis, remedy, record }
            if matches!(phase_of(state, call), Phase::Recovering(of) if of == call)
                || *phase_of(state, call) == Phase::Evaluated =>
        {
            vec![Event::RemedyGiven {
                call: call.clone(),
                diagnosis: diagnosis.clone(),
                remedy: remedy.clone(),
                record: record.clone(),
            }]
        }
        Input::TimerReached { subgoal } if matches!(state.subgoal(subgoal).phase, Phase::Sleeping(_)) => {
            vec![Event::TimerReached { subgoal: subgoal.clone() }]
        }
        Input::Proceed => proceed(state),
        Input::Assessed { .. }
        | Input::Proposed { .. }
        | Input::Executed { .. }
        | Input::Judged { .. }
        | Input::Evaluated { .. }
        | Input::Recovered { .. }
        | Input::TimerReached { .. } => Vec::new(),
    }
}

fn phase_of<'s>(state: &'s State, call: &CallId) -> &'s Phase {
    &state.subgoal(&state.calls[call].subgoal).phase
}

fn is_planning(phase: &Phase) -> bool {
    matches!(phase, Phase::Planning | Phase::Advised(_))
}

/// Each kind of evidence that the subgoal asks for, as a criterion over the facts that count.
fn evidence(state: &State, subgoal: &SubgoalId) -> Vec<CriterionState> {
    let spec = state.spec(subgoal);
    let level = spec.level.as_str();
    let kinds = spec.evidence.iter().map(|kind| {
        let count = state.counted(subgoal).filter(|fact| fact.entry.kind == *kind).count();
        let text = format!("evidence of kind `{kind}`, {level} or above");
        CriterionState { text, holds: count > 0, note: format!("{count} facts") }
    });
    let mut criteria: Vec<CriterionState> = kinds.collect();
    if criteria.is_empty() && spec.criteria.is_empty() {
        // A subgoal that asks for nothing is met by something, not by nothing.
        let count = state.counted(subgoal).count();
        let files: usize = state.accepted(subgoal).map(|(_, call)| call.artifacts.len()).sum();
        let by_files = spec.level == Level::SelfChecked && files > 0;
        let text = format!("at least one fact, {level} or above");
        criteria.push(CriterionState { text, holds: count > 0 || by_files, note: format!("{count} facts") });
    }
    criteria
}

fn close(subgoal: &SubgoalId, closing: Closing) -> Event {
    Event::SubgoalClosed { subgoal: subgoal.clone(), closing }
}

fn verdict(call: &CallId, judge: Judge, judgement: Judgement, used: Used) -> Event {
    Event::VerdictGiven { call: call.clone(), judge, judgement, used, record: Record::default() }
}

fn no_skill(state: &State, subgoal: &SubgoalId, assessed: &[Assessed]) -> Closing {
    let said: Vec<String> =
        assessed.iter().map(|skill| format!("{}: {}", skill.skill, skill.reason)).collect();
    let detail = match (&state.spec(subgoal).skill, said.is_empty()) {
        (Some(name), true) => format!("the skill `{name}` is not loaded"),
        (None, true) => "no term of any skill occurs in the goal".to_owned(),
        (_, false) => said.join("; "),
    };
    Closing::NoSkill { detail }
}

fn executed(call: &CallId, ended: &Ended, used: &Used, log: Option<Digest>, record: &Record) -> Vec<Event> {
    vec![
        Event::CallEnded { call: call.clone(), ended: ended.clone(), log, record: record.clone() },
        Event::BudgetSettled { call: call.clone(), used: *used },
    ]
}

/// What follows from the state by itself. One decision at a time: each is folded before the next.
fn proceed(state: &State) -> Vec<Event> {
    if state.setup.is_none() {
        return Vec::new();
    }
    if let Some(blocked) = state.ready.iter().find(|id| !may_open(state, id)) {
        let failed = |before: &&SubgoalId| state.subgoal(before).is_closed() && !state.is_met(before);
        if let Some(by) = state.spec(blocked).after.iter().find(failed) {
            return vec![close(blocked, Closing::Blocked { by: by.clone() })];
        }
    }
    for id in &state.open {
        let events = decide(state, id, state.subgoal(id));
        if !events.is_empty() {
            return events;
        }
    }
    strategy(state)
}

/// The strategy loop: stages in order, a restore point before each, the end at the first that fails.
fn strategy(state: &State) -> Vec<Event> {
    let Some(stage) = state.stages().get(state.stage) else {
        return vec![Event::RunEnded { status: RunStatus::Done, reason: "every stage was met".to_owned() }];
    };
    if !state.entered {
        let name = format!("before-{}", stage.id);
        return vec![Event::RestorePointSet { name }, Event::StageEntered { stage: stage.id.clone() }];
    }
    if !stage.subgoals.iter().all(|spec| state.subgoal(&spec.id).is_closed()) {
        return Vec::new();
    }
    let unmet: Vec<&SubgoalId> =
        stage.subgoals.iter().map(|spec| &spec.id).filter(|id| !state.is_met(id)).collect();
    let evaluated = Event::StageEvaluated { stage: stage.id.clone(), met: unmet.is_empty() };
    if unmet.is_empty() {
        return vec![evaluated];
    }
    let asks =
        |id: &&SubgoalId| matches!(state.subgoal(id).phase, Phase::Closed(Closing::NeedsPerson { .. }));
    let status = if unmet.iter().any(asks) { RunStatus::NeedsPerson } else { RunStatus::NotReached };
    let names: Vec<String> = unmet.iter().map(|id| named_with_question(state, id)).collect();
    let reason = format!("stage `{}` was not met: {}", stage.id, names.join(", "));
    vec![evaluated, Event::RunEnded { status, reason }]
}

fn named_with_question(state: &State, id: &SubgoalId) -> String {
    match &state.subgoal(id).phase {
        Phase::Closed(Closing::NeedsPerson { question }) => {
            format!("{id} (a person must answer: {question})")
        }
        _ => id.to_string(),
    }
}

/// The task loop: the next decision about one open subgoal, if it is the core's to make.
fn decide(state: &State, id: &SubgoalId, goal: &SubgoalState) -> Vec<Event> {
    match &goal.phase {
        Phase::Checking(action) => checked(state, id, goal, action),
        Phase::Quarantined(call) => after_call(state, call),
        Phase::Verifying(call) => after_verdict(state, id, goal, call),
        Phase::Advised(call) => after_advice(state, id, goal, call),
        Phase::Evaluated => after_evaluation(id, goal),
        Phase::Waiting
        | Phase::Assessing
        | Phase::Planning
        | Phase::Calling(_)
        | Phase::Recovering(_)
        | Phase::Evaluating
        | Phase::Sleeping(_)
        | Phase::Closed(_) => Vec::new(),
    }
}

fn checked(state: &State, id: &SubgoalId, goal: &SubgoalState, raw: &Value) -> Vec<Event> {
    match action::check(state, id, raw) {
        Err(problems) => {
            let refusals = goal.refusals + 1;
            let refused = Event::ActionRefused { subgoal: id.clone(), problems };
            let closing = (refusals >= REFUSALS_MAX).then(|| close(id, Closing::Refused { refusals }));
            std::iter::once(refused).chain(closing).collect()
        }
        Ok(Action::Ask { question }) => ask(id, question),
        Ok(Action::GiveUp { reason }) => vec![close(id, Closing::GaveUp { reason })],
        Ok(Action::Call { skill, args }) => intend(state, id, goal, &skill, args),
    }
}

fn ask(id: &SubgoalId, question: String) -> Vec<Event> {
    let opened = Event::AskOpened { subgoal: id.clone(), question: question.clone() };
    vec![opened, close(id, Closing::NeedsPerson { question })]
}

/// The intent, logged before the effect, with what the call may use set aside.
fn intend(
    state: &State,
    id: &SubgoalId,
    goal: &SubgoalState,
    skill: &str,
    args: Map<String, Value>,
) -> Vec<Event> {
    let Some((setup, card)) = state.setup.as_ref().zip(state.skill(skill)) else { return Vec::new() };
    if action::effects(state, card) == Effects::Irreversible {
        let question =
            format!("may `{skill}` be called with {}? It cannot be taken back", Value::Object(args));
        return ask(id, question);
    }
    let limit = |key| card.limits.get(key);
    let (fuel, wall_ms) = match reserve(state, id, limit(LimitKey::Fuel), limit(LimitKey::Wall)) {
        Ok(reserved) => reserved,
        // What another call gives back may be enough: decided again when it has ended.
        Err(Short::Reserved) => return Vec::new(),
        Err(Short::Used(budget)) => return vec![close(id, Closing::BudgetUsed { budget })],
    };
    let call = CallId::new(&setup.run, id, goal.calls.len() as u32 + 1);
    let attempt = goal.attempts + 1;
    let intended = Event::CallIntended {
        call: call.clone(),
        subgoal: id.clone(),
        skill: skill.to_owned(),
        version: card.manifest.version.clone(),
        component: card.component,
        args,
        attempt,
        seed: Digest::of_json(&json!([setup.task.seed, id, attempt])).seed(),
    };
    vec![intended, Event::BudgetReserved { call, fuel, wall_ms }]
}

/// Why nothing can be set aside for one more call.
enum Short {
    /// What is left is set aside for calls that have not ended.
    Reserved,
    /// Nothing is left of this budget.
    Used(String),
}

/// Fuel and wall time for one more call: what its limits allow, or what the budgets have left.
fn reserve(state: &State, id: &SubgoalId, fuel: u64, wall_ms: u64) -> Result<(u64, u64), Short> {
    let stage = state.stage_of(id);
    let task = state.setup.as_ref().map(|setup| setup.task.budget).unwrap_or_default();
    let budgets: [(&str, Budget, Option<&Spent>); 3] = [
        ("run", task, Some(&state.spent)),
        ("stage", state.stages()[stage].budget, state.stage_spent.get(&stage)),
        ("subgoal", state.spec(id).budget, state.subgoal_spent.get(id)),
    ];
    let mut fuel = fuel;
    for (of, budget, spent) in budgets {
        let spent = spent.copied().unwrap_or_default();
        if let Some(calls) = budget.calls.filter(|calls| spent.calls >= *calls) {
            return Err(Short::Used(format!("{of}: {} calls of {calls}", spent.calls)));
        }
        if let Some(allowed) = budget.fuel {
            let left = allowed.saturating_sub(spent.fuel);
            if left == 0 {
                return Err(Short::Used(format!("{of}: {allowed} units of fuel")));
            }
            fuel = fuel.min(left.saturating_sub(spent.reserved));
        }
    }
    if fuel == 0 {
        return Err(Short::Reserved);
    }
    let left = wall_left(state).unwrap_or(wall_ms);
    if left == 0 {
        return Err(Short::Used("run: wall time".to_owned()));
    }
    Ok((fuel, wall_ms.min(left)))
}

/// Milliseconds that the run has left, if its budget says so.
pub fn wall_left(state: &State) -> Option<u64> {
    let allowed = state.setup.as_ref()?.task.budget.wall_ms?;
    Some((state.started.0 + allowed).saturating_sub(state.now.0))
}

/// The outcome is in quarantine: the gateway's own checks come first.
fn after_call(state: &State, call: &CallId) -> Vec<Event> {
    let (judgement, mut events) = gateway::inspect(state, call);
    events.push(verdict(call, Judge::Gateway, judgement, Used::default()));
    events
}

fn after_verdict(state: &State, id: &SubgoalId, goal: &SubgoalState, call: &CallId) -> Vec<Event> {
    let of = &state.calls[call];
    let Some((judge, last)) = of.verdicts.last() else { return Vec::new() };
    match last {
        Judgement::Rejected { findings, .. } => rejected(id, goal, call, judge, findings),
        Judgement::Unavailable { reason } if of.unavailable(judge) >= gateway::TRIES => {
            vec![close(id, Closing::Unverified { verifier: judge.name().to_owned(), reason: reason.clone() })]
        }
        Judgement::Unavailable { .. } => Vec::new(),
        Judgement::Accepted { .. } if next_judge(state, of).is_some() => Vec::new(),
        Judgement::Accepted { .. } => match gateway::admit(state, call) {
            (Ok(facts), mut events) => {
                let artifacts = gateway::submitted(of).1.to_vec();
                events.push(Event::OutcomeAccepted { call: call.clone(), facts, artifacts });
                events
            }
            (Err(judgement), mut events) => {
                events.push(verdict(call, Judge::Gateway, judgement, Used::default()));
                events
            }
        },
    }
}

fn rejected(
    id: &SubgoalId,
    goal: &SubgoalState,
    call: &CallId,
    judge: &Judge,
    findings: &[Finding],
) -> Vec<Event> {
    let reasons = gateway::reasons(judge, findings);
    let again = goal.last_reasons.as_ref() == Some(&reasons);
    let closing = again.then(|| close(id, Closing::SameReason { reasons: reasons.clone() }));
    std::iter::once(Event::OutcomeRejected { call: call.clone(), reasons }).chain(closing).collect()
}

fn after_advice(state: &State, id: &SubgoalId, goal: &SubgoalState, call: &CallId) -> Vec<Event> {
    let attempts = state.spec(id).attempts;
    let accepted = state.calls[call].accepted;
    if !accepted && goal.attempts >= attempts {
        return vec![close(id, Closing::AttemptsUsed { attempts: goal.attempts })];
    }
    match &goal.remedy {
        Some(Remedy::RetryAfter(millis)) => {
            let wait = u64::from(*millis);
            if wall_left(state).is_some_and(|left| wait >= left) {
                let budget = format!("run: wall time, with {wait} ms to wait");
                return vec![close(id, Closing::BudgetUsed { budget })];
            }
            vec![Event::TimerSet { subgoal: id.clone(), until: Timestamp(state.now.0 + wait) }]
        }
        // Any other remedy leads back to the planner at once (see `due`).
        _ => Vec::new(),
    }
}

fn after_evaluation(id: &SubgoalId, goal: &SubgoalState) -> Vec<Event> {
    if goal.criteria.iter().all(|criterion| criterion.holds) {
        return vec![close(id, Closing::Met)];
    }
    Vec::new()
}
