//! What holds in every log, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_contract::ask::{Answer, Asked};
use checkrein_contract::event::{Ended, Event, Judge, Judgement};
use checkrein_contract::id::{AskId, CallId, FactId, SubgoalId, Timestamp};
use checkrein_contract::task::{ATTEMPTS_MAX, Budget};

use super::world::World;

#[derive(Default)]
struct Seen {
    subgoal: BTreeMap<CallId, SubgoalId>,
    attempts: BTreeMap<SubgoalId, u64>,
    attempts_in_all: BTreeMap<SubgoalId, u64>,
    calls: BTreeMap<SubgoalId, u64>,
    fuel: BTreeMap<SubgoalId, u64>,
    tokens: BTreeMap<SubgoalId, u64>,
    reserved: BTreeMap<CallId, u64>,
    tokens_reserved: BTreeMap<SubgoalId, u64>,
    ended: BTreeMap<CallId, u32>,
    approvals: BTreeMap<AskId, (Option<Timestamp>, bool)>,
    asked: BTreeMap<AskId, Asked>,
    verdicts: BTreeMap<CallId, Vec<(Judge, Judgement)>>,
    facts: BTreeMap<FactId, SubgoalId>,
    /// Calls that are made, and of which nothing is known yet.
    in_hand: BTreeSet<CallId>,
}

pub(super) fn hold(world: &World) {
    let mut seen = Seen::default();
    for (at, event) in &world.log {
        follow(&mut seen, *at, event);
    }
    budgets(&seen, world);
    for (call, times) in &world.happened {
        assert_eq!(*times, 1, "{call} happened {times} times");
    }
    assert!(world.state.ended.is_some());
    for fact in world.state.facts.values() {
        assert!(fact.abandoned != seen.facts.contains_key(&fact.entry.id), "{}", fact.entry.id);
    }
}

fn follow(seen: &mut Seen, at: Timestamp, event: &Event) {
    match event {
        Event::SubgoalOpened { scope, .. } => {
            for fact in scope {
                assert!(seen.facts.contains_key(fact), "{fact} is in a scope, and no fact that stands");
            }
        }
        Event::CallIntended { call, subgoal, skill, args, attempt, ask, .. } => {
            assert!(seen.subgoal.insert(call.clone(), subgoal.clone()).is_none(), "{call} intended twice");
            *seen.calls.entry(subgoal.clone()).or_default() += 1;
            assert!(*attempt <= ATTEMPTS_MAX);
            if skill == "publish" {
                permitted(seen, at, ask.as_ref().expect("an approval"), skill, args);
            } else {
                assert!(ask.is_none());
            }
        }
        Event::BudgetReserved { call, fuel, .. } => {
            assert!(seen.in_hand.insert(call.clone()), "{call} is made again, and is in hand");
            seen.reserved.insert(call.clone(), *fuel);
        }
        Event::CallUnknown { call } => assert!(seen.in_hand.remove(call), "{call} was not made"),
        Event::RunEnded { .. } => assert!(seen.in_hand.is_empty(), "{:?} in hand at the end", seen.in_hand),
        Event::BudgetSettled { call, used } => {
            let reserved = seen.reserved.remove(call).expect("settled once for each time it is reserved");
            assert!(used.fuel <= reserved);
            *seen.fuel.entry(seen.subgoal[call].clone()).or_default() += used.fuel;
        }
        Event::TokensReserved { subgoal, tokens } => {
            assert!(seen.tokens_reserved.insert(subgoal.clone(), *tokens).is_none(), "reserved twice");
        }
        Event::ActionProposed { subgoal, tokens, .. } => {
            seen.tokens_reserved.remove(subgoal);
            *seen.tokens.entry(subgoal.clone()).or_default() += tokens;
        }
        // What a proposal under way used is not known, and is charged whole.
        Event::RunStopped { .. } | Event::RunResumed { .. } => {
            for (subgoal, tokens) in std::mem::take(&mut seen.tokens_reserved) {
                *seen.tokens.entry(subgoal).or_default() += tokens;
            }
        }
        Event::SubgoalClosed { subgoal, .. } => {
            if let Some(tokens) = seen.tokens_reserved.remove(subgoal) {
                *seen.tokens.entry(subgoal.clone()).or_default() += tokens;
            }
        }
        Event::CallEnded { call, ended, .. } => {
            seen.in_hand.remove(call);
            *seen.ended.entry(call.clone()).or_default() += 1;
            assert_eq!(seen.ended[call], 1, "{call} ended twice");
            if !matches!(ended, Ended::Outcome { .. } | Ended::Cancelled | Ended::Happened) {
                used_up(seen, call);
            }
        }
        Event::OutcomeRejected { call, .. } => used_up(seen, call),
        Event::AskOpened { ask, about, .. } => {
            assert!(seen.asked.insert(ask.clone(), about.clone()).is_none(), "ask {ask} opened twice");
        }
        Event::AskAnswered { ask, answer, .. } => {
            assert!(seen.asked[ask].takes(answer));
            if let Answer::Approved { until } = answer {
                assert!(seen.approvals.insert(ask.clone(), (*until, false)).is_none());
            }
        }
        Event::VerdictGiven { call, judge, judgement, .. } => {
            seen.verdicts.entry(call.clone()).or_default().push((judge.clone(), judgement.clone()));
        }
        Event::OutcomeAccepted { call, facts, .. } => {
            accepted(seen, call);
            for fact in facts {
                let of = seen.subgoal[call].clone();
                assert!(seen.facts.insert(fact.id.clone(), of).is_none(), "{} made twice", fact.id);
            }
        }
        Event::TaskAmended { reopened, .. } | Event::DependentsReopened { reopened, .. } => {
            seen.facts.retain(|_, of| !reopened.contains(of));
            for subgoal in reopened {
                seen.attempts.remove(subgoal);
                if let Some(tokens) = seen.tokens_reserved.remove(subgoal) {
                    *seen.tokens.entry(subgoal.clone()).or_default() += tokens;
                }
            }
        }
        _ => {}
    }
}

/// The approval is one of this action, holds, and is used once.
fn permitted(
    seen: &mut Seen,
    at: Timestamp,
    ask: &AskId,
    skill: &str,
    args: &serde_json::Map<String, serde_json::Value>,
) {
    let (until, used) = seen.approvals.get_mut(ask).expect("an answered approval");
    assert!(!*used, "ask {ask} was used twice");
    *used = true;
    assert!(until.is_none_or(|until| at <= until), "ask {ask} has expired");
    let Asked::Approval { skill: approved, args: approved_args, .. } = &seen.asked[ask] else {
        panic!("ask {ask} is no approval");
    };
    assert_eq!((approved.as_str(), approved_args), (skill, args), "another action was approved");
}

fn used_up(seen: &mut Seen, call: &CallId) {
    let subgoal = &seen.subgoal[call];
    let attempts = seen.attempts.entry(subgoal.clone()).or_default();
    *attempts += 1;
    assert!(*attempts <= u64::from(ATTEMPTS_MAX), "{subgoal} has used {attempts} attempts");
    *seen.attempts_in_all.entry(subgoal.clone()).or_default() += 1;
}

/// The last word of each judge was that nothing rejects it, and all three have spoken.
fn accepted(seen: &Seen, call: &CallId) {
    let mut last = BTreeMap::<&Judge, &Judgement>::new();
    for (judge, judgement) in &seen.verdicts[call] {
        last.insert(judge, judgement);
    }
    assert!(last.values().all(|judgement| matches!(judgement, Judgement::Accepted { .. })), "{call}");
    let who: BTreeSet<Option<_>> = last.keys().map(|judge| judge.component()).collect();
    assert!(who.len() == 3 && who.contains(&Some(World::verifier())), "{call}: {who:?}");
}

fn budgets(seen: &Seen, world: &World) {
    let task = &world.setup.task;
    let sum = |of: &BTreeMap<SubgoalId, u64>, ids: &[&SubgoalId]| -> u64 {
        ids.iter().filter_map(|id| of.get(*id)).sum()
    };
    let within = |budget: &Budget, ids: &[&SubgoalId], what: &str| {
        let spent = [
            ("attempts", budget.attempts, &seen.attempts_in_all),
            ("calls", budget.calls, &seen.calls),
            ("fuel", budget.fuel, &seen.fuel),
            ("tokens", budget.tokens, &seen.tokens),
        ];
        for (name, most, of) in spent {
            let used = sum(of, ids);
            assert!(most.is_none_or(|most| used <= most), "{what}: {used} {name} of {most:?}");
        }
    };
    let all: Vec<&SubgoalId> = task.subgoals().map(|(_, spec)| &spec.id).collect();
    within(&task.budget, &all, "run");
    for stage in &task.stages {
        let ids: Vec<&SubgoalId> = stage.subgoals.iter().map(|spec| &spec.id).collect();
        within(&stage.budget, &ids, stage.id.as_str());
        for spec in &stage.subgoals {
            within(&spec.budget, &[&spec.id], spec.id.as_str());
        }
    }
}
