//! The task loop, turn by turn.

mod asks;
mod attacks;
mod model;
mod random;
mod wary;

use std::collections::VecDeque;
use std::sync::Arc;

use checkrein_contract::event::{Closing, Event, Person, RunStatus};
use checkrein_contract::id::SubgoalId;
use checkrein_contract::interface::{Cause, FailureKind, Level, LimitHit, Remedy};
use checkrein_contract::port::End;
use checkrein_contract::task::Budget;
use serde_json::json;

use crate::driver::{DriveError, Driver};
use crate::observation::Observation;
use crate::state::{Phase, State};
use crate::testing::*;

fn closing(state: &State, id: &str) -> Closing {
    match &state.subgoal(&SubgoalId::from(id)).phase {
        Phase::Closed(closing) => closing.clone(),
        other => panic!("not closed but {other:?}"),
    }
}

#[test]
fn what_is_verified_becomes_a_fact() {
    let guests = Arc::new(good());
    let ended = run(&guests, setup(vec![subgoal("one")]));
    assert_eq!(ended.status, RunStatus::Done);
    assert_eq!(
        ended.kinds(),
        [
            "run-started",
            "lease-taken",
            "restore-point-set",
            "stage-entered",
            "subgoal-opened",
            "skills-assessed",
            "action-proposed",
            "call-intended",
            "budget-reserved",
            "call-ended",
            "budget-settled",
            "verdict-given",
            "verdict-given",
            "outcome-accepted",
            "criteria-evaluated",
            "subgoal-closed",
            "stage-evaluated",
            "run-ended",
        ]
    );
    assert_eq!(ended.state.facts[&"s/a@1".into()].entry.level, Level::SelfChecked);
}

#[test]
fn a_verifier_makes_it_independent() {
    let guests = Arc::new(good());
    let ended = run(&guests, with_verifier(setup(vec![subgoal("one")])));
    assert_eq!(ended.state.facts[&"s/a@1".into()].entry.level, Level::Independent);
    assert_eq!(*guests.verified.lock().unwrap(), [component("skill"), component("verifier")]);
}

#[test]
fn criteria_count_facts_of_their_level_only() {
    let guests = Arc::new(good());
    let mut goal = subgoal("one");
    goal.level = Level::Independent;
    let ended = run(&guests, setup(vec![goal]));
    assert_eq!(ended.status, RunStatus::NotReached);
    assert!(matches!(&guests.mishaps.lock().unwrap()[0].cause, Cause::Unmet(unmet) if unmet.len() == 2));
}

#[test]
fn a_remedy_is_the_next_attempt() {
    let mut script = good();
    script.execute =
        VecDeque::from([failure(FailureKind::InvalidArgs), outcome(vec![draft("s/a", json!(1))])]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryWith(json!({ "x": 7 })))]).into();
    let guests = Arc::new(script);
    let ended = run(&guests, setup(vec![subgoal("one")]));
    assert_eq!(ended.status, RunStatus::Done);
    let calls = guests.calls.lock().unwrap();
    assert_eq!((calls[0].attempt, calls[1].attempt), (1, 2));
    assert_eq!(calls[1].args, json!({ "x": 7 }));
    assert_ne!(calls[0].id, calls[1].id);
}

#[test]
fn attempts_are_used_up_by_failures_limits_and_traps() {
    let mut script = good();
    let hit = LimitHit { limit: "fuel".to_owned(), allowed: 1, used: 1 };
    script.execute =
        VecDeque::from([failure(FailureKind::Unavailable), End::Limited(hit), End::Trapped("t".to_owned())])
            .into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(60_000))]).into();
    let guests = Arc::new(script);
    let ended = run(&guests, setup(vec![subgoal("one")]));
    assert_eq!(closing(&ended.state, "one"), Closing::AttemptsUsed { attempts: 3 });
    assert_eq!(guests.mishaps.lock().unwrap()[2].earlier.len(), 2);
    // Two waits of a minute lie between the three attempts, by a clock that was moved.
    assert_eq!(ended.kinds().iter().filter(|kind| **kind == "timer-reached").count(), 2);
    assert!(ended.state.now.0 >= 120_000);
}

#[test]
fn a_rejection_enters_nothing_and_the_same_action_is_refused() {
    let mut script = good();
    script.verify.get_mut().unwrap().insert(component("skill"), VecDeque::from([finds("sign")]));
    script.recover = VecDeque::from([advises(Remedy::RetryWith(json!({})))]).into();
    let guests = Arc::new(script);
    let ended = run(&guests, setup(vec![subgoal("one")]));
    assert!(ended.state.facts.is_empty());
    assert_eq!(guests.calls.lock().unwrap().len(), 1);
    let refused = |observation: &Observation| matches!(observation, Observation::Refused(of) if of[0].rule == "repeated");
    assert!(ended.observations().iter().any(refused));
}

#[test]
fn the_same_reason_twice_ends_the_subgoal() {
    let mut script = good();
    script.verify.get_mut().unwrap().insert(component("skill"), VecDeque::from([finds("sign")]));
    script.recover = VecDeque::from([advises(Remedy::RetryWith(json!({ "x": 1 })))]).into();
    let ended = run(&Arc::new(script), setup(vec![subgoal("one")]));
    assert!(
        matches!(closing(&ended.state, "one"), Closing::SameReason { reasons } if reasons[0].rule == "sign")
    );
}

#[test]
fn another_reason_is_another_attempt() {
    let mut script = good();
    let verdicts = VecDeque::from([finds("sign"), finds("order"), checks(&["s/a"])]);
    script.verify.get_mut().unwrap().insert(component("skill"), verdicts);
    script.recover = VecDeque::from([
        advises(Remedy::RetryWith(json!({ "x": 1 }))),
        advises(Remedy::RetryWith(json!({ "x": 2 }))),
    ])
    .into();
    let ended = run(&Arc::new(script), setup(vec![subgoal("one")]));
    assert_eq!(closing(&ended.state, "one"), Closing::Met);
    assert_eq!(ended.state.subgoal(&"one".into()).attempts, 2);
}

#[test]
fn a_verification_that_cannot_judge_never_passes_and_uses_no_attempt() {
    let mut script = good();
    script.verify.get_mut().unwrap().insert(component("verifier"), VecDeque::from([cannot_judge()]));
    let guests = Arc::new(script);
    let ended = run(&guests, with_verifier(setup(vec![subgoal("one")])));
    assert!(
        matches!(closing(&ended.state, "one"), Closing::Unverified { verifier, .. } if verifier == "verifier")
    );
    assert!(ended.state.facts.is_empty());
    assert_eq!(ended.state.subgoal(&"one".into()).attempts, 0);
    assert_eq!(guests.verified.lock().unwrap().len(), 3);
}

#[test]
fn a_verification_that_can_judge_the_second_time_is_heard() {
    let mut script = good();
    script
        .verify
        .get_mut()
        .unwrap()
        .insert(component("skill"), VecDeque::from([cannot_judge(), checks(&["s/a"])]));
    let ended = run(&Arc::new(script), setup(vec![subgoal("one")]));
    assert_eq!(ended.status, RunStatus::Done);
}

#[test]
fn silence_is_not_agreement() {
    let mut script = good();
    script.execute = VecDeque::from([outcome(vec![draft("s/a", json!(1)), draft("s/b", json!(2))])]).into();
    let ended = run(&Arc::new(script), setup(vec![subgoal("one")]));
    assert!(ended.state.facts.is_empty());
    let unchecked = |observation: &Observation| match observation {
        Observation::Rejected(_, _, findings) => {
            findings[0].rule == "unchecked" && findings[0].location.as_deref() == Some("s/b")
        }
        _ => false,
    };
    assert!(ended.observations().iter().any(unchecked));
}

#[test]
fn the_gateway_has_checks_of_its_own() {
    let bad = [
        (draft("other/a", json!(1)), "subject-granted"),
        (draft("s/..", json!(1)), "subject"),
        (
            checkrein_contract::interface::DraftFact {
                source: "/in/none.csv".to_owned(),
                ..draft("s/a", json!(1))
            },
            "source",
        ),
        (
            checkrein_contract::interface::DraftFact {
                source: "https://example.org/".to_owned(),
                ..draft("s/a", json!(1))
            },
            "source",
        ),
        (
            checkrein_contract::interface::DraftFact { kind: "opinion".to_owned(), ..draft("s/a", json!(1)) },
            "evidence",
        ),
        (
            checkrein_contract::interface::DraftFact {
                supersedes: Some("s/a@1".to_owned()),
                ..draft("s/a", json!(1))
            },
            "supersedes",
        ),
    ];
    for (draft, rule) in bad {
        let mut script = good();
        script.execute = VecDeque::from([outcome(vec![draft])]).into();
        let guests = Arc::new(script);
        let ended = run(&guests, setup(vec![subgoal("one")]));
        let rejected = |(_, event): &(_, Event)| match event {
            Event::OutcomeRejected { reasons, .. } => {
                reasons.iter().any(|reason| reason.verifier == "gateway" && reason.rule == rule)
            }
            _ => false,
        };
        assert!(ended.events.iter().any(rejected), "{rule}");
        assert!(guests.verified.lock().unwrap().is_empty(), "{rule}: a dearer judge was asked");
    }
}

#[test]
fn other_content_on_a_subject_is_a_contradiction() {
    let mut script = good();
    script.execute =
        VecDeque::from([outcome(vec![draft("s/a", json!(1))]), outcome(vec![draft("s/a", json!(2))])]).into();
    let mut second = subgoal("two");
    second.after = vec!["one".into()];
    let ended = run(&Arc::new(script), setup(vec![subgoal("one"), second]));
    assert!(ended.kinds().contains(&"contradiction-found"));
    assert_eq!(ended.state.current["s/a"], "s/a@1".into());
}

#[test]
fn a_task_may_allow_contradictions_and_both_are_kept() {
    let mut script = good();
    script.execute =
        VecDeque::from([outcome(vec![draft("s/a", json!(1))]), outcome(vec![draft("s/a", json!(2))])]).into();
    let mut second = subgoal("two");
    second.after = vec!["one".into()];
    let mut setup = setup(vec![subgoal("one"), second]);
    setup.task.allow_contradictions = true;
    let ended = run(&Arc::new(script), setup);
    assert_eq!(ended.status, RunStatus::Done);
    assert_eq!(ended.state.facts.len(), 2);
    assert!(ended.kinds().contains(&"contradiction-found"));
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_any_call() {
    let guests = Arc::new(good());
    let mut goal = subgoal("one");
    goal.args = json!({ "x": "text", "y": 1 }).as_object().cloned().unwrap();
    let ended = run(&guests, setup(vec![goal]));
    assert!(guests.calls.lock().unwrap().is_empty());
    let problems = ended.events.iter().find_map(|(_, event)| match event {
        Event::ActionRefused { problems, .. } => Some(problems.clone()),
        _ => None,
    });
    assert_eq!(problems.unwrap().len(), 2, "all that is wrong at once");
    assert_eq!(ended.state.subgoal(&"one".into()).attempts, 0);
}

#[test]
fn nothing_starts_after_a_subgoal_that_was_not_met() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unsupported)]).into();
    let mut second = subgoal("two");
    second.after = vec!["one".into()];
    let mut third = subgoal("three");
    third.after = vec!["two".into()];
    let ended = run(&Arc::new(script), setup(vec![subgoal("one"), second, third]));
    assert_eq!(closing(&ended.state, "two"), Closing::Blocked { by: "one".into() });
    assert_eq!(closing(&ended.state, "three"), Closing::Blocked { by: "two".into() });
}

#[test]
fn a_question_that_nobody_answers_ends_its_subgoal() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Denied)]).into();
    script.recover = VecDeque::from([advises(Remedy::AskPerson("may I?".to_owned()))]).into();
    let mut setup = setup(vec![subgoal("one")]);
    setup.person = Person::Never;
    let ended = run(&Arc::new(script), setup);
    assert_eq!(ended.status, RunStatus::NotReached);
    assert!(matches!(closing(&ended.state, "one"), Closing::NeedsPerson { .. }));
    assert!(ended.kinds().contains(&"ask-opened"));
}

#[test]
fn budgets_are_never_passed() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(1))]).into();
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.budget = Budget { calls: Some(1), ..Budget::default() };
    let ended = run(&Arc::new(script), setup);
    assert!(matches!(closing(&ended.state, "one"), Closing::BudgetUsed { .. }));
    assert_eq!(ended.state.spent.calls, 1);
}

#[test]
fn fuel_is_reserved_from_what_is_left_and_given_back() {
    let mut script = good();
    script.execute =
        VecDeque::from([failure(FailureKind::Unavailable), outcome(vec![draft("s/a", json!(1))])]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(1))]).into();
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.budget = Budget { fuel: Some(25), ..Budget::default() };
    let ended = run(&Arc::new(script), setup);
    let reserved: Vec<u64> = ended
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::BudgetReserved { fuel, .. } => Some(*fuel),
            _ => None,
        })
        .collect();
    // Each call uses 10: 25 are set aside for the first, the 15 that are left for the second.
    assert_eq!(reserved, [25, 15]);
    assert_eq!(ended.state.spent.fuel, 20);
}

#[test]
fn a_full_disk_ends_the_run_with_the_log_whole() {
    let guests = Arc::new(good());
    let log = MemoryLog { full_after: Some(8), ..MemoryLog::default() };
    let events = log.events.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world(guests.clone()), log, setup(vec![subgoal("one")])).unwrap();
    let error = runtime.block_on(driver.run(std::future::pending())).err().unwrap();
    assert!(matches!(error, DriveError::Storage(_)));
    assert!(events.lock().unwrap().len() <= 8);
}

#[test]
fn a_reference_that_does_not_resolve_ends_the_subgoal_with_that_reason() {
    let mut goal = subgoal("one");
    goal.args = json!({ "x": { "$fact": "s/none" } }).as_object().cloned().unwrap();
    let ended = run(&Arc::new(good()), setup(vec![goal]));
    assert!(matches!(closing(&ended.state, "one"), Closing::Unresolved { .. }));
}

#[test]
fn a_score_of_nothing_is_no_skill() {
    let mut script = good();
    script.score = 0;
    let ended = run(&Arc::new(script), setup(vec![subgoal("one")]));
    assert!(matches!(closing(&ended.state, "one"), Closing::NoSkill { .. }));
}

#[test]
fn concurrent_subgoals_do_not_see_each_other() {
    let mut script = good();
    script.execute =
        VecDeque::from([outcome(vec![draft("s/a", json!(1))]), outcome(vec![draft("s/b", json!(1))])]).into();
    let verdict = VecDeque::from([checks(&["s/a", "s/b"])]);
    script.verify.get_mut().unwrap().insert(component("skill"), verdict);
    let (mut one, mut two) = (subgoal("one"), subgoal("two"));
    one.criteria.clear();
    two.criteria.clear();
    let ended = run(&Arc::new(script), setup(vec![one, two]));
    assert_eq!(ended.status, RunStatus::Done);
    assert!(ended.state.subgoal(&"one".into()).scope.is_empty());
    assert!(ended.state.subgoal(&"two".into()).scope.is_empty());
}
