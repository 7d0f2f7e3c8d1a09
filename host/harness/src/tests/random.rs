//! Random worlds: whatever guests, verifiers and recoveries do, every run ends, budgets hold, and
//! nothing becomes a fact that was not verified.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use checkrein_contract::event::{Ended, Event, Judge, Judgement, Person};
use checkrein_contract::interface::{
    Advice, Failure, FailureKind, Level, LimitHit, Outcome, Remedy, Verdict,
};
use checkrein_contract::port::End;
use checkrein_contract::task::Budget;
use proptest::prelude::*;
use serde_json::json;

use crate::testing::*;

fn executor() -> impl Strategy<Value = End<Result<Outcome, Failure>>> {
    let hit = LimitHit { limit: "cpu".to_owned(), allowed: 1, used: 2 };
    prop_oneof![
        3 => (0..3i64).prop_map(|n| outcome(vec![draft("s/a", json!(n))])),
        1 => Just(outcome(vec![draft("s/a", json!(1)), draft("s/b", json!(2))])),
        1 => Just(outcome(vec![draft("elsewhere/a", json!(1))])),
        1 => Just(outcome(Vec::new())),
        1 => Just(failure(FailureKind::InvalidArgs)),
        1 => Just(failure(FailureKind::Unavailable)),
        1 => Just(End::Limited(hit)),
        1 => Just(End::Trapped("unreachable".to_owned())),
    ]
}

fn judge() -> impl Strategy<Value = End<Result<Verdict, Failure>>> {
    prop_oneof![
        4 => Just(checks(&["s/a"])),
        1 => Just(checks(&["s/a", "s/b"])),
        1 => Just(checks(&[])),
        1 => Just(finds("sign")),
        1 => Just(finds("order")),
        1 => Just(cannot_judge()),
    ]
}

fn recovery() -> impl Strategy<Value = End<Advice>> {
    prop_oneof![
        3 => (0..4i64).prop_map(|x| advises(Remedy::RetryWith(json!({ "x": x })))),
        1 => Just(advises(Remedy::RetryWith(json!({ "y": 1 })))),
        2 => Just(advises(Remedy::RetryAfter(1000))),
        1 => Just(advises(Remedy::UseSkill("skill".to_owned()))),
        1 => Just(advises(Remedy::UseSkill("none".to_owned()))),
        1 => Just(advises(Remedy::Replan("another way".to_owned()))),
        1 => Just(advises(Remedy::AskPerson("what now?".to_owned()))),
        1 => Just(End::Trapped("unreachable".to_owned())),
    ]
}

fn some<T: Clone + std::fmt::Debug + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<VecDeque<T>> {
    prop::collection::vec(of, 1..6).prop_map(VecDeque::from).boxed()
}

/// The last verdict of each judge on each call.
fn verdicts(events: &[Event]) -> BTreeMap<String, BTreeMap<Judge, Judgement>> {
    let mut verdicts = BTreeMap::<String, BTreeMap<Judge, Judgement>>::new();
    for event in events {
        if let Event::VerdictGiven { call, judge, judgement, .. } = event {
            verdicts.entry(call.to_string()).or_default().insert(judge.clone(), judgement.clone());
        }
    }
    verdicts
}

fn check(events: &[Event], calls_budget: u64, attempts: u32) {
    let (mut intended, mut open) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, ()>::new());
    let mut used_up = BTreeMap::<String, u32>::new();
    let verdicts = verdicts(events);
    for event in events {
        match event {
            Event::CallIntended { call, subgoal, attempt, .. } => {
                *intended.entry(subgoal.to_string()).or_default() += 1;
                assert!(*attempt <= attempts, "attempt {attempt}");
                assert!(open.insert(call.to_string(), ()).is_none(), "{call} intended twice");
            }
            Event::CallEnded { call, ended, .. } => {
                assert!(
                    open.remove(call.as_str()).is_some(),
                    "{call} ended without being intended, or twice"
                );
                if !matches!(ended, Ended::Outcome { .. }) {
                    *used_up.entry(call.as_str().split('/').nth(1).unwrap().to_owned()).or_default() += 1;
                }
            }
            Event::OutcomeAccepted { call, facts, .. } => {
                let of = &verdicts[call.as_str()];
                assert!(
                    of.values().all(|judgement| matches!(judgement, Judgement::Accepted { .. })),
                    "{call}: {of:?}"
                );
                assert_eq!(of.len(), 3, "{call}: gateway, own verification and verifier");
                for fact in facts {
                    let named = |(judge, judgement): (&Judge, &Judgement)| {
                        matches!(judge, Judge::Verifier { .. })
                            && judgement.checks().iter().any(|check| check.about.contains(&fact.subject))
                    };
                    assert_eq!(fact.level == Level::Independent, of.iter().any(named), "{}", fact.id);
                }
            }
            _ => {}
        }
    }
    assert!(intended.values().all(|calls| *calls <= calls_budget), "{intended:?}");
    assert!(used_up.values().all(|used| *used <= attempts), "{used_up:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_and_only_what_was_verified_is_a_fact(
        execute in some(executor()),
        own in some(judge()),
        verifier in some(judge()),
        recover in some(recovery()),
        calls in 1..6u64,
        attempts in 1..=5u32,
    ) {
        let mut script = good();
        script.execute = execute.into();
        script.recover = recover.into();
        script.verify.get_mut().unwrap().insert(component("skill"), own);
        script.verify.get_mut().unwrap().insert(component("verifier"), verifier);
        let (mut one, mut two, mut three) = (subgoal("one"), subgoal("two"), subgoal("three"));
        for goal in [&mut one, &mut two, &mut three] {
            goal.attempts = attempts;
            goal.budget = Budget { calls: Some(calls), ..Budget::default() };
        }
        three.after = vec!["one".into()];
        let mut setup = with_verifier(setup(vec![one, two, three]));
        setup.person = Person::Never;
        let ended = run(&Arc::new(script), setup);
        let events: Vec<Event> = ended.events.into_iter().map(|(_, event)| event).collect();
        check(&events, calls, attempts);
        for fact in ended.state.facts.values() {
            let named = |event: &&Event| matches!(event, Event::OutcomeAccepted { facts, .. } if facts.contains(&fact.entry));
            prop_assert_eq!(events.iter().filter(named).count(), 1);
        }
    }
}
