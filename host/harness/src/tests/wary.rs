//! What must not slip through, each found by somebody who looked for a way.

use std::collections::VecDeque;
use std::sync::Arc;

use checkrein_contract::event::{Closing, Event, Person, RunStatus};
use checkrein_contract::interface::{FailureKind, Level, Remedy};
use checkrein_contract::manifest::{Effects, Kind};
use checkrein_contract::port::StorageError;
use checkrein_contract::task::Budget;
use serde_json::json;

use super::closing;
use crate::driver::{DriveError, Driver};
use crate::testing::*;

fn object(value: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn restating_a_fact_with_less_to_stand_on_takes_nothing_from_it() {
    let mut last = subgoal("three");
    // Only independent facts count for it, and it reads the restated one.
    last.level = Level::Independent;
    last.after = vec!["two".into()];
    last.args = object(json!({ "x": { "$fact": "s/a", "pointer": "/n" } }));
    let mut setup = with_verifier(setup(vec![subgoal("one"), subgoal("two"), last]));
    setup.bindings[0].on = vec!["skill".to_owned()];
    setup.skills.push(card("weak", Kind::Skill));
    setup.task.stages[0].subgoals[0].skill = Some("skill".to_owned());
    setup.task.stages[0].subgoals[1].skill = Some("weak".to_owned());
    setup.task.stages[0].subgoals[1].after = vec!["one".into()];
    setup.task.stages[0].subgoals[2].skill = Some("weak".to_owned());
    setup.task.stages[0].subgoals[2].evidence.clear();
    let mut script = good();
    script.verify.get_mut().unwrap().insert(component("weak"), VecDeque::from([checks(&["s/a"])]));
    let ended = run(&Arc::new(script), setup);
    assert_eq!(ended.status, RunStatus::Done);
    assert_eq!(ended.state.facts[&"s/a@2".into()].entry.level, Level::SelfChecked);
    assert_eq!(ended.state.current["s/a"], "s/a@1".into());
}

#[test]
fn what_runs_beside_a_subgoal_takes_nothing_from_its_scope() {
    // `one` and `two` state the same; `three` comes after `one` alone, and must see its fact.
    let (one, two, mut three) = (subgoal("one"), subgoal("two"), subgoal("three"));
    three.after = vec!["one".into()];
    three.args = object(json!({ "x": { "$fact": "s/a", "pointer": "/n" } }));
    let ended = run(&Arc::new(good()), setup(vec![one, two, three]));
    assert_eq!(ended.status, RunStatus::Done, "{:?}", ended.kinds());
    assert_eq!(ended.state.subgoal(&"three".into()).scope.len(), 1);
}

#[test]
fn what_is_set_aside_for_another_call_is_waited_for() {
    let mut setup = setup(vec![subgoal("one"), subgoal("two")]);
    setup.task.budget = Budget { fuel: Some(1000), ..Budget::default() };
    let ended = run(&Arc::new(good()), setup);
    assert_eq!(ended.status, RunStatus::Done, "{:?}", ended.kinds());
}

#[test]
fn a_wait_past_the_end_of_the_run_ends_the_subgoal() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(u32::MAX))]).into();
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.budget = Budget { wall_ms: Some(60_000), ..Budget::default() };
    let ended = run(&Arc::new(script), setup);
    assert!(matches!(closing(&ended.state, "one"), Closing::BudgetUsed { .. }));
    assert_eq!(ended.state.now.0, 0);
}

#[test]
fn what_cannot_be_taken_back_waits_for_a_person() {
    let guests = Arc::new(good());
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.mode = checkrein_contract::task::Mode::ReadWrite;
    setup.skills[0].effects = Effects::Irreversible;
    setup.person = Person::Never;
    let ended = run(&guests, setup);
    assert!(matches!(closing(&ended.state, "one"), Closing::NeedsPerson { .. }));
    assert!(guests.calls.lock().unwrap().is_empty());
}

#[test]
fn a_read_only_task_calls_nothing_with_effects() {
    let guests = Arc::new(good());
    let mut setup = setup(vec![subgoal("one")]);
    setup.skills[0].effects = Effects::Idempotent;
    let ended = run(&guests, setup);
    assert_eq!(ended.status, RunStatus::NotReached);
    assert!(guests.calls.lock().unwrap().is_empty());
}

#[test]
fn no_remedy_changes_a_parameter() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::InvalidArgs)]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryWith(json!({ "x": 9 })))]).into();
    let mut goal = subgoal("one");
    goal.args = object(json!({ "x": { "$param": "x" } }));
    let mut setup = setup(vec![goal]);
    setup.task.parameters = object(json!({ "x": 1 }));
    let ended = run(&Arc::new(script), setup);
    let refused = ended.events.iter().any(|(_, event)| match event {
        Event::ActionRefused { problems, .. } => problems.iter().any(|problem| problem.rule == "parameter"),
        _ => false,
    });
    assert!(refused, "{:?}", ended.kinds());
}

#[test]
fn an_argument_that_locks_keeps_its_value() {
    let (mut one, mut two) = (subgoal("one"), subgoal("two"));
    one.args = object(json!({ "x": 1 }));
    two.args = object(json!({ "x": 2 }));
    two.after = vec!["one".into()];
    let mut setup = setup(vec![one, two]);
    setup.skills[0].manifest.locks = vec!["/x".to_owned()];
    let ended = run(&Arc::new(good()), setup);
    assert_eq!(ended.status, RunStatus::NotReached);
    let refused = ended.events.iter().any(|(_, event)| match event {
        Event::ActionRefused { problems, .. } => problems.iter().any(|problem| problem.rule == "locked"),
        _ => false,
    });
    assert!(refused, "{:?}", ended.kinds());
}

#[test]
fn a_refused_skill_is_not_proposed_again_and_the_others_are() {
    let guests = Arc::new(good());
    let mut setup = setup(vec![subgoal("one")]);
    // `a` and `b` do not take what the subgoal gives; `skill` does.
    for name in ["a", "b"] {
        let mut other = card(name, Kind::Skill);
        other.manifest.args = Some(json!({ "type": "object", "required": ["z"] }));
        setup.skills.push(other);
    }
    let ended = run(&guests, setup);
    assert_eq!(ended.status, RunStatus::Done, "{:?}", ended.kinds());
    assert_eq!(ended.kinds().iter().filter(|kind| **kind == "action-refused").count(), 2);
}

#[test]
fn a_subgoal_that_asks_for_nothing_is_not_met_by_nothing() {
    let mut script = good();
    script.execute = VecDeque::from([outcome(Vec::new())]).into();
    script.verify.get_mut().unwrap().insert(component("skill"), VecDeque::from([checks(&[])]));
    let mut goal = subgoal("one");
    goal.evidence.clear();
    goal.criteria.clear();
    let ended = run(&Arc::new(script), setup(vec![goal]));
    assert_eq!(ended.status, RunStatus::NotReached);
}

#[test]
fn a_verifier_that_is_bound_and_not_there_is_no_pass() {
    let mut setup = with_verifier(setup(vec![subgoal("one")]));
    setup.verifiers.clear();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world(Arc::new(good())), MemoryLog::default(), setup).unwrap();
    assert!(matches!(runtime.block_on(driver.run(std::future::pending())), Err(DriveError::Host { .. })));
}

#[test]
fn a_content_that_cannot_be_read_back_is_an_error_and_not_an_absent_fact() {
    let blobs = Arc::new(Forgetful);
    let world = crate::driver::World { blobs, ..world(Arc::new(good())) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world, MemoryLog::default(), setup(vec![subgoal("one")])).unwrap();
    let error = runtime.block_on(driver.run(std::future::pending())).err().unwrap();
    assert!(matches!(error, DriveError::Storage(StorageError::Missing { .. })), "{error}");
}

#[test]
fn a_remedy_that_names_another_skill_goes_through_that_skills_own_trigger() {
    let mut script = good();
    script.execute =
        VecDeque::from([failure(FailureKind::Unsupported), outcome(vec![draft("s/a", json!(1))])]).into();
    script.recover = VecDeque::from([advises(Remedy::UseSkill("other".to_owned()))]).into();
    script.verify.get_mut().unwrap().insert(component("other"), VecDeque::from([checks(&["s/a"])]));
    script.says.insert(component("other"), (10, json!({ "x": 7 })));
    let guests = Arc::new(script);
    let mut both = setup(vec![subgoal("one")]);
    both.skills.push(card("other", Kind::Skill));
    let ended = run(&guests, both.clone());
    assert_eq!(ended.status, RunStatus::Done, "{:?}", ended.kinds());
    // The arguments are those that its own trigger drew.
    assert_eq!(guests.calls.lock().unwrap()[1].args, json!({ "x": 7 }));
    // One whose trigger does not apply is not called, whoever names it.
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unsupported)]).into();
    script.recover = VecDeque::from([advises(Remedy::UseSkill("other".to_owned()))]).into();
    script.says.insert(component("other"), (0, json!({ "x": 7 })));
    let guests = Arc::new(script);
    let ended = run(&guests, both);
    assert_eq!(ended.status, RunStatus::NotReached);
    assert_eq!(guests.calls.lock().unwrap().len(), 1);
}

#[test]
fn a_grant_caps_a_skill_that_is_made_for_everything() {
    let mut script = good();
    script.says.insert(component("greedy"), (100, json!({})));
    let guests = Arc::new(script);
    let mut both = setup(vec![subgoal("one")]);
    both.skills.push(card("greedy", Kind::Skill));
    both.skills[1].max_score = 49;
    let ended = run(&guests, both.clone());
    assert_eq!(ended.status, RunStatus::Done, "{:?}", ended.kinds());
    let assessed = ended.events.iter().find_map(|(_, event)| match event {
        Event::SkillsAssessed { assessed, .. } => Some(assessed.clone()),
        _ => None,
    });
    let assessed = assessed.unwrap();
    let scores: Vec<(&str, u8)> = assessed.iter().map(|one| (one.skill.as_str(), one.score)).collect();
    assert_eq!(scores, [("skill", 50), ("greedy", 49)]);
    // Capped at nothing, it is not called even where the task names it.
    both.skills[1].max_score = 0;
    both.task.stages[0].subgoals[0].skill = Some("greedy".to_owned());
    let guests = Arc::new(good());
    assert_eq!(run(&guests, both).status, RunStatus::NotReached);
    assert!(guests.calls.lock().unwrap().is_empty());
}
