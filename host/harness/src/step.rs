//! What follows from an input: the decisions of both loops, as a pure function.

use checkrein_contract::ask::{Asked, Message};
use checkrein_contract::event::{
    Assessed, Closing, CriterionState, Event, Judge, Judgement, RunStatus, Stop,
};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp};
use checkrein_contract::interface::{Finding, Level, Remedy};
use checkrein_contract::limits::{LimitKey, Used};
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;
use checkrein_contract::task::REFUSALS_MAX;
use checkrein_contract::{Digest, ask::Letter};
use serde_json::{Map, Value, json};

use crate::action::{self, Action};
use crate::amend::{amended, charged_whole, given_up, reopened_after};
use crate::ask::{self, Permit, hand_over};
use crate::due::{next_judge, reserves_tokens};
use crate::effect::Input;
use crate::gateway;
use crate::state::{Phase, Short, State, SubgoalState, Unfoldable};

/// How often the process may end while the same call is made, before a person is asked whether it is
/// to be made once more.
pub const INTERRUPTED_MAX: u32 = 3;

/// Decides, folds, and goes on deciding until nothing follows by itself: the events to append.
///
/// # Errors
///
/// If an event does not follow from the state, which is a fault of ours.
pub fn advance(state: &mut State, input: &Input, at: Timestamp) -> Result<Vec<Event>, Unfoldable> {
    let mut all = Vec::new();
    let mut events = step(state, input);
    while !events.is_empty() {
        for event in &events {
            state.apply(at, event)?;
        }
        all.append(&mut events);
        events = step(state, &Input::Proceed);
    }
    Ok(all)
}

/// What follows from an input in this state. An input that the state does not wait for is stale,
/// and nothing follows from it.
pub fn step(state: &State, input: &Input) -> Vec<Event> {
    match input {
        Input::Start { setup, epoch, holder } if state.setup.is_none() => {
            vec![Event::RunStarted { setup: setup.clone() }, leased(*epoch, holder)]
        }
        Input::Start { .. } => Vec::new(),
        _ if state.setup.is_none() => Vec::new(),
        Input::Resume { epoch, holder, engine, in_force } => {
            let resumed = Event::RunResumed { engine: engine.clone(), in_force: in_force.clone() };
            [leased(*epoch, holder), resumed].into_iter().chain(in_hand(state)).collect()
        }
        _ if state.stopped.is_some() => Vec::new(),
        Input::Letter(letter) if letter.id > state.letters => read(state, letter),
        Input::Letter(_) => Vec::new(),
        _ if state.ended.is_some() => Vec::new(),
        Input::Stop(because) => stop(state, *because),
        Input::Proceed => proceed(state),
        happened => of_subgoal(state, happened).or_else(|| of_call(state, happened)).unwrap_or_default(),
    }
}

fn leased(epoch: u64, holder: &str) -> Event {
    Event::LeaseTaken { epoch, holder: holder.to_owned() }
}

/// What happened to a subgoal, if it waits for that.
fn of_subgoal(state: &State, input: &Input) -> Option<Vec<Event>> {
    Some(match input {
        Input::Resolved { subgoal, .. } if !state.ready.contains(subgoal) => Vec::new(),
        Input::Resolved { subgoal, args: Err(problems), .. } => {
            vec![close(subgoal, Closing::Unresolved { problems: problems.clone() })]
        }
        Input::Resolved { subgoal, scope, artifacts, args: Ok(args) } => vec![Event::SubgoalOpened {
            subgoal: subgoal.clone(),
            scope: scope.clone(),
            artifacts: artifacts.clone(),
            args: args.clone(),
        }],
        Input::Assessed { subgoal, assessed } if state.subgoal(subgoal).phase == Phase::Assessing => {
            let mut assessed = assessed.clone();
            assessed.sort_by(|one, two| two.score.cmp(&one.score).then_with(|| one.skill.cmp(&two.skill)));
            let none = assessed.iter().all(|skill| skill.score == 0);
            let closing = none.then(|| close(subgoal, no_skill(state, subgoal, &assessed)));
            let event = Event::SkillsAssessed { subgoal: subgoal.clone(), assessed };
            std::iter::once(event).chain(closing).collect()
        }
        Input::Proposed { subgoal, action, tokens } if is_planning(&state.subgoal(subgoal).phase) => {
            let (subgoal, action, tokens) = (subgoal.clone(), action.clone(), *tokens);
            vec![Event::ActionProposed { subgoal, action, tokens }]
        }
        Input::Evaluated { subgoal, criteria } if state.subgoal(subgoal).phase == Phase::Evaluating => {
            let criteria = evidence(state, subgoal).into_iter().chain(criteria.clone()).collect();
            vec![Event::CriteriaEvaluated { subgoal: subgoal.clone(), criteria }]
        }
        Input::TimerReached { subgoal } if matches!(state.subgoal(subgoal).phase, Phase::Sleeping(_)) => {
            vec![Event::TimerReached { subgoal: subgoal.clone() }]
        }
        _ => return None,
    })
}

/// What happened to a call, if its subgoal waits for that.
fn of_call(state: &State, input: &Input) -> Option<Vec<Event>> {
    Some(match input {
        Input::Executed { call, ended, used, log, record }
            if *phase_of(state, call)? == Phase::Calling(call.clone()) =>
        {
            let (ended, log, record) = (ended.clone(), *log, record.clone());
            let ended = Event::CallEnded { call: call.clone(), ended, log, record, attested: false };
            vec![ended, Event::BudgetSettled { call: call.clone(), used: *used }]
        }
        Input::Judged { call, judge, judgement, used, record }
            if *phase_of(state, call)? == Phase::Verifying(call.clone())
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
        Input::Recovered { call, diagnosis, remedy, record }
            if matches!(phase_of(state, call)?, Phase::Recovering(of) if of == call)
                || *phase_of(state, call)? == Phase::Evaluated =>
        {
            vec![Event::RemedyGiven {
                call: call.clone(),
                diagnosis: diagnosis.clone(),
                remedy: remedy.clone(),
                record: record.clone(),
            }]
        }
        _ => return None,
    })
}

/// What follows from a letter; that it was read is an event in any case.
fn read(state: &State, letter: &Letter) -> Vec<Event> {
    let refused = ask::refusal(state, &letter.message);
    let next = match &letter.message {
        _ if refused.is_some() => Vec::new(),
        Message::Answer { ask, answer } => ask::answered(state, ask, answer, &letter.by),
        Message::Cancel => stop(state, Stop::Cancelled),
        Message::Amend { amendment } => amended(state, amendment),
        Message::Unreadable { .. } => Vec::new(),
    };
    let (by, said) = (letter.by.clone(), letter.message.clone());
    let taken = Event::LetterTaken { letter: letter.id, by, said, refused };
    std::iter::once(taken).chain(next).collect()
}

/// The calls in hand come to no end: one that changes nothing outside is cancelled, of any other it
/// is not known whether it happened.
fn stop(state: &State, because: Stop) -> Vec<Event> {
    let calls = calls_in_hand(state);
    let mut events: Vec<Event> = calls
        .flat_map(|call| match state.calls.get(call).map(|call| call.effects) {
            Some(Effects::None) => given_up(state, call),
            _ => unknown(state, call),
        })
        .collect();
    events.push(Event::RunStopped { because });
    events
}

/// Calls that were in hand when the process ended without stopping the run.
fn in_hand(state: &State) -> Vec<Event> {
    calls_in_hand(state).flat_map(|call| unknown(state, call)).collect()
}

fn calls_in_hand(state: &State) -> impl Iterator<Item = &CallId> {
    state.open.iter().filter_map(|id| match &state.subgoal(id).phase {
        Phase::Calling(call) => Some(call),
        _ => None,
    })
}

fn unknown(state: &State, call: &CallId) -> [Event; 2] {
    [Event::CallUnknown { call: call.clone() }, charged_whole(state, call)]
}

fn phase_of<'s>(state: &'s State, call: &CallId) -> Option<&'s Phase> {
    Some(&state.subgoal(&state.calls.get(call)?.subgoal).phase)
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

/// What follows from the state by itself. One decision at a time: each is folded before the next.
fn proceed(state: &State) -> Vec<Event> {
    if let Some(blocked) = state.blocked.first() {
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
    if state.unclosed > 0 {
        return Vec::new();
    }
    let unmet: Vec<&SubgoalId> =
        stage.subgoals.iter().map(|spec| &spec.id).filter(|id| !state.is_met(id)).collect();
    let evaluated = Event::StageEvaluated { stage: stage.id.clone(), met: unmet.is_empty() };
    if unmet.is_empty() {
        return vec![evaluated];
    }
    let names: Vec<String> = unmet.iter().map(|id| named_with_question(state, id)).collect();
    let reason = format!("stage `{}` was not met: {}", stage.id, names.join(", "));
    vec![evaluated, Event::RunEnded { status: RunStatus::NotReached, reason }]
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
    let events = match &goal.phase {
        Phase::Checking(action) => checked(state, id, goal, action),
        Phase::Unknown(call) => after_unknown(state, id, call),
        Phase::Quarantined(call) => after_call(state, call),
        Phase::Verifying(call) => after_verdict(state, id, goal, call),
        Phase::Advised(call) => after_advice(state, id, goal, call),
        Phase::Evaluated => after_evaluation(state, id, goal),
        Phase::Waiting
        | Phase::Assessing
        | Phase::Planning
        | Phase::Asking(_)
        | Phase::Calling(_)
        | Phase::Recovering(_)
        | Phase::Evaluating
        | Phase::Sleeping(_)
        | Phase::Closed(_) => Vec::new(),
    };
    if events.is_empty() { before_more(state, id, goal) } else { events }
}

/// Nothing more is begun when the wall time is used up; and before the planner is asked, the tokens
/// are set aside that it may use. A call in hand ends by its own limit, which lies within the budget.
fn before_more(state: &State, id: &SubgoalId, goal: &SubgoalState) -> Vec<Event> {
    if matches!(goal.phase, Phase::Calling(_) | Phase::Asking(_)) {
        return Vec::new();
    }
    if let Some((of, 0)) = state.wall_left(id) {
        return vec![close(id, Closing::BudgetUsed { budget: format!("{of}: wall time") })];
    }
    if !is_planning(&goal.phase) || !reserves_tokens(state, id) {
        return Vec::new();
    }
    let most = state.setup.as_ref().map_or(0, |setup| setup.proposal_tokens);
    match state.for_proposal(id, most) {
        Ok(tokens) => vec![Event::TokensReserved { subgoal: id.clone(), tokens }],
        Err(short) => out_of(id, short),
    }
}

/// What others give back may be enough: decided again when they have.
fn out_of(id: &SubgoalId, short: Short) -> Vec<Event> {
    match short {
        Short::Reserved => Vec::new(),
        Short::Used(budget) => vec![close(id, Closing::BudgetUsed { budget })],
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
        Ok(Action::Ask { question }) => ask::ask(state, id, Asked::Question, question),
        Ok(Action::GiveUp { reason }) => vec![close(id, Closing::GaveUp { reason })],
        Ok(Action::Call { skill, args }) => intend(state, id, goal, &skill, args),
    }
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
    let limit = |key| card.limits.get(key);
    let (fuel, wall_ms) = match state.for_call(id, false, limit(LimitKey::Fuel), limit(LimitKey::Wall)) {
        Ok(reserved) => reserved,
        Err(short) => return out_of(id, short),
    };
    let ask = match ask::permit(state, id, card, &args) {
        Permit::Free => None,
        Permit::By(ask) => Some(ask),
        Permit::Ask(events) => return events,
    };
    let call = CallId::new(&setup.run, id, goal.next_call());
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
        ask,
    };
    vec![intended, Event::BudgetReserved { call, fuel, wall_ms }]
}

/// A call of which it is not known whether it happened is made again, under the same id, if that is
/// safe, or if a person says that it did not happen; else, or if the host ended by it too often, a
/// person is asked.
fn after_unknown(state: &State, id: &SubgoalId, call: &CallId) -> Vec<Event> {
    let Some((of, card)) = state.calls.get(call).and_then(|of| Some((of, state.skill(&of.skill)?))) else {
        return Vec::new();
    };
    if of.effects == Effects::Irreversible && !of.repeats {
        return ask::about_unknown(state, id, call);
    }
    // What the skill may do may be more by now than when the call was permitted: that is another call.
    if action::effects(state, card) == Effects::Irreversible && !ask::was_approved(state, id, card, &of.args)
    {
        return given_up(state, call).into();
    }
    if of.interrupted >= INTERRUPTED_MAX {
        let (call, times) = (call.clone(), of.interrupted);
        return hand_over(state, id, Closing::Interrupted { call, times });
    }
    let limit = |key| card.limits.get(key);
    match state.for_call(id, true, limit(LimitKey::Fuel), limit(LimitKey::Wall)) {
        Ok((fuel, wall_ms)) => vec![Event::BudgetReserved { call: call.clone(), fuel, wall_ms }],
        Err(short) => out_of(id, short),
    }
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
    // Who could not judge may be bound no more by now.
    let is_last = next_judge(state, of).is_none();
    match last {
        Judgement::Rejected { findings, .. } => rejected(state, id, goal, call, judge, findings),
        Judgement::Unavailable { reason } if !is_last && of.unavailable(judge) >= gateway::TRIES => {
            let (verifier, reason) = (judge.name().to_owned(), reason.clone());
            hand_over(state, id, Closing::Unverified { verifier, reason })
        }
        Judgement::Unavailable { .. } | Judgement::Accepted { .. } if !is_last => Vec::new(),
        Judgement::Unavailable { .. } | Judgement::Accepted { .. } => match gateway::admit(state, call) {
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
    state: &State,
    id: &SubgoalId,
    goal: &SubgoalState,
    call: &CallId,
    judge: &Judge,
    findings: &[Finding],
) -> Vec<Event> {
    let reasons = gateway::reasons(judge, findings);
    let again = goal.last_reasons.as_ref() == Some(&reasons);
    let next = again.then(|| hand_over(state, id, Closing::SameReason { reasons: reasons.clone() }));
    let rejected = Event::OutcomeRejected { call: call.clone(), reasons };
    std::iter::once(rejected).chain(next.into_iter().flatten()).collect()
}

fn after_advice(state: &State, id: &SubgoalId, goal: &SubgoalState, call: &CallId) -> Vec<Event> {
    let accepted = state.calls[call].accepted;
    if !accepted && goal.attempts >= state.attempts(id) {
        return hand_over(state, id, Closing::AttemptsUsed { attempts: goal.attempts });
    }
    match &goal.remedy {
        Some(Remedy::RetryAfter(millis)) => {
            let wait = u64::from(*millis);
            if let Some((of, _)) = state.wall_left(id).filter(|(_, left)| wait >= *left) {
                let budget = format!("{of}: wall time, with {wait} ms to wait");
                return vec![close(id, Closing::BudgetUsed { budget })];
            }
            vec![Event::TimerSet { subgoal: id.clone(), until: Timestamp(state.now.0.saturating_add(wait)) }]
        }
        // Any other remedy leads back to the planner at once (see `due`).
        _ => Vec::new(),
    }
}

fn after_evaluation(state: &State, id: &SubgoalId, goal: &SubgoalState) -> Vec<Event> {
    if !goal.criteria.iter().all(|criterion| criterion.holds) {
        return Vec::new();
    }
    let met = close(id, Closing::Met);
    let Some(before) = goal.evaluated_again else { return vec![met] };
    let reopened = reopened_after(state, id, before);
    let dependents = (!reopened.is_empty()).then(|| Event::DependentsReopened { by: id.clone(), reopened });
    dependents.into_iter().chain([met]).collect()
}
