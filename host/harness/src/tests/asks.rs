//! Asks, restarts and amendments, one by one.

use std::sync::Arc;

use checkrein_contract::ask::{Amendment, Answer, Asked, Letter, Message};
use checkrein_contract::event::{Closing, Ended, Event, Person, RunStatus, Setup, Stop};
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{FailureKind, Remedy};
use checkrein_contract::manifest::Effects;
use checkrein_contract::task::Mode;
use serde_json::json;
use std::collections::VecDeque;

use super::closing;
use crate::driver::{Driver, Finish, Resumed};
use crate::state::State;
use crate::testing::*;

fn irreversible() -> Setup {
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.mode = Mode::ReadWrite;
    setup.skills[0].effects = Effects::Irreversible;
    setup.person = Person::Always;
    setup
}

/// A run, driven again and again.
struct Long {
    guests: Arc<Scripted>,
    log: MemoryLog,
    world: crate::driver::World,
}

impl Long {
    fn new(script: Scripted) -> Self {
        let guests = Arc::new(script);
        let world = world(guests.clone());
        Long { guests, log: MemoryLog::default(), world }
    }

    fn drive(&self, driver: Driver<MemoryLog>) -> (Finish, State) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (finish, state) = runtime.block_on(driver.run(std::future::pending())).unwrap();
        folds_to(&self.log.events.lock().unwrap(), &state);
        (finish, state)
    }

    fn start(&self, setup: Setup) -> (Finish, State) {
        self.drive(Driver::start(self.world.clone(), self.log.clone(), setup).unwrap())
    }

    fn resume(&self) -> (Finish, State) {
        let resumed = Resumed { engine: "none".to_owned(), in_force: None };
        let state = self.state();
        self.drive(Driver::resume(self.world.clone(), self.log.clone(), state, resumed).unwrap())
    }

    fn state(&self) -> State {
        State::fold(self.log.events.lock().unwrap().iter().map(|(at, event)| (*at, event))).unwrap()
    }

    fn post(&self, message: Message) {
        let mut inbox = self.log.inbox.lock().unwrap();
        let id = inbox.len() as u64 + 1;
        inbox.push(Letter { id, by: "ada".to_owned(), at: Timestamp(0), message });
    }

    fn answer(&self, ask: &str, answer: Answer) {
        self.post(Message::Answer { ask: ask.into(), answer });
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.log.events.lock().unwrap().iter().map(|(_, event)| event.kind()).collect()
    }

    /// Cuts the log after the first event of this kind: the process ended there.
    fn cut_after(&self, kind: &str) {
        let mut events = self.log.events.lock().unwrap();
        let at = events.iter().position(|(_, event)| event.kind() == kind).unwrap();
        events.truncate(at + 1);
    }
}

const WAITS: Finish = Finish::Stopped(Stop::Person);
const DONE: Finish = Finish::Ended(RunStatus::Done);

#[test]
fn an_approved_call_is_made_once() {
    let long = Long::new(good());
    assert_eq!(long.start(irreversible()).0, WAITS);
    assert!(long.guests.calls.lock().unwrap().is_empty());
    long.answer("1", Answer::Approved { until: None });
    assert_eq!(long.resume().0, DONE);
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
    let names = |(_, event): &(Timestamp, Event)| matches!(event, Event::CallIntended { ask: Some(ask), .. } if ask.as_str() == "1");
    assert!(long.log.events.lock().unwrap().iter().any(names));
}

#[test]
fn an_approval_that_has_expired_is_asked_for_again() {
    let long = Long::new(good());
    let mut late = irreversible();
    late.clock = Timestamp(0);
    assert_eq!(long.start(late).0, WAITS);
    long.answer("1", Answer::Approved { until: Some(Timestamp(10)) });
    // The clock of this world stands at 0 until somebody waits.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(long.world.clock.until(Timestamp(11)));
    let (finish, state) = long.resume();
    assert_eq!(finish, WAITS);
    assert_eq!(state.open_asks().next().unwrap().0.as_str(), "2");
    assert!(long.guests.calls.lock().unwrap().is_empty());
}

#[test]
fn a_denied_call_is_not_made() {
    let long = Long::new(good());
    long.start(irreversible());
    long.answer("1", Answer::Denied { reason: "too dear".to_owned() });
    let (finish, state) = long.resume();
    assert_eq!(finish, Finish::Ended(RunStatus::NotReached));
    assert!(matches!(closing(&state, "one"), Closing::GaveUp { reason } if reason.contains("too dear")));
    assert!(long.guests.calls.lock().unwrap().is_empty());
}

#[test]
fn a_call_that_may_have_happened_is_asked_about_and_not_repeated() {
    let long = Long::new(good());
    long.start(irreversible());
    long.answer("1", Answer::Approved { until: None });
    long.resume();
    long.cut_after("budget-reserved");
    let (finish, state) = long.resume();
    assert_eq!(finish, WAITS);
    let (id, ask) = state.open_asks().next().unwrap();
    assert!(matches!(ask.about, Asked::CallUnknown { .. }), "{ask:?}");
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
    // It did not happen: the same call again, and no new approval.
    long.answer(id.as_str(), Answer::NotHappened);
    assert_eq!(long.resume().0, DONE);
    let calls = long.guests.calls.lock().unwrap();
    assert_eq!((calls.len(), &calls[0].id), (2, &calls[1].id));
}

#[test]
fn a_call_that_happened_and_left_nothing_is_not_made_again() {
    let long = Long::new(good());
    long.start(irreversible());
    long.answer("1", Answer::Approved { until: None });
    long.resume();
    long.cut_after("budget-reserved");
    long.resume();
    long.answer("2", Answer::Happened { outcome: None });
    let (finish, state) = long.resume();
    assert_eq!(finish, Finish::Ended(RunStatus::NotReached));
    assert!(state.facts.is_empty());
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
}

#[test]
fn a_call_without_effects_is_repeated_under_its_id_and_charged_whole() {
    let long = Long::new(good());
    long.start(setup(vec![subgoal("one")]));
    long.cut_after("budget-reserved");
    let (finish, state) = long.resume();
    assert_eq!(finish, DONE);
    let calls = long.guests.calls.lock().unwrap();
    assert_eq!((calls.len(), &calls[0].id), (2, &calls[1].id));
    // All that was set aside for the one that is unknown, and what the other used.
    assert_eq!(state.spent.fuel, 50_000_000_000 + 10);
    assert_eq!(state.spent.calls, 1);
}

#[test]
fn wherever_a_run_is_cut_it_ends_in_the_same_facts() {
    let whole = Long::new(good());
    let (_, ended) = whole.start(with_verifier(setup(vec![subgoal("one"), subgoal("two")])));
    let facts = |state: &State| state.facts.values().map(|fact| fact.entry.clone()).collect::<Vec<_>>();
    let events = whole.log.events.lock().unwrap().clone();
    for cut in 2..events.len() {
        let long = Long::new(good());
        *long.log.events.lock().unwrap() = events[..cut].to_vec();
        // Blobs outlive the process.
        let long = Long {
            world: crate::driver::World { blobs: whole.world.blobs.clone(), ..long.world.clone() },
            ..long
        };
        let (finish, state) = long.resume();
        assert_eq!((finish, facts(&state)), (DONE, facts(&ended)), "cut at {cut}");
    }
}

#[test]
fn attempts_that_are_used_up_are_handed_over() {
    let mut script = good();
    script.execute = VecDeque::from([
        failure(FailureKind::Unavailable),
        failure(FailureKind::Unavailable),
        failure(FailureKind::Unavailable),
        outcome(vec![draft("s/a", json!(1))]),
    ])
    .into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(1))]).into();
    let long = Long::new(script);
    let mut setup = setup(vec![subgoal("one")]);
    setup.person = Person::Always;
    assert_eq!(long.start(setup).0, WAITS);
    long.answer("1", Answer::Args { args: json!({ "x": "no number" }).as_object().cloned().unwrap() });
    assert_eq!(long.resume().0, WAITS, "arguments that do not fit are not taken");
    assert!(matches!(
        long.log.events.lock().unwrap().iter().rev().find(|(_, event)| event.kind() == "letter-taken"),
        Some((_, Event::LetterTaken { refused: Some(why), .. })) if why.contains("cannot be called")
    ));
    long.answer("1", Answer::Retry);
    assert_eq!(long.resume().0, DONE);
    assert_eq!(long.guests.calls.lock().unwrap().len(), 4);
}

#[test]
fn no_more_than_five_attempts_are_ever_used() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    script.recover = VecDeque::from([advises(Remedy::RetryAfter(1))]).into();
    let long = Long::new(script);
    let mut setup = setup(vec![subgoal("one")]);
    setup.person = Person::Always;
    long.start(setup);
    for ask in ["1", "2", "3"] {
        long.answer(ask, Answer::Retry);
        assert_eq!(long.resume().0, WAITS);
    }
    let refused =
        crate::ask::refusal(&long.state(), &Message::Answer { ask: "3".into(), answer: Answer::Retry });
    assert!(refused.unwrap().contains("no subgoal has more than 5"));
    long.answer("3", Answer::GiveUp { reason: "enough".to_owned() });
    assert_eq!(long.resume().0, Finish::Ended(RunStatus::NotReached));
    assert_eq!(long.guests.calls.lock().unwrap().len(), 5);
}

#[test]
fn a_judge_that_could_not_judge_is_asked_again_by_a_person() {
    let mut script = good();
    let verdicts = VecDeque::from([cannot_judge(), cannot_judge(), checks(&["s/a"])]);
    script.verify.get_mut().unwrap().insert(component("skill"), verdicts);
    let long = Long::new(script);
    let mut setup = setup(vec![subgoal("one")]);
    setup.person = Person::Always;
    assert_eq!(long.start(setup).0, WAITS);
    long.answer("1", Answer::Retry);
    assert_eq!(long.resume().0, DONE);
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1, "the call stands");
}

#[test]
fn a_changed_parameter_opens_what_used_it_and_what_came_after() {
    let long = Long::new(good());
    let (mut one, mut two, three) = (subgoal("one"), subgoal("two"), subgoal("three"));
    one.args = json!({ "x": { "$param": "p" } }).as_object().cloned().unwrap();
    two.after = vec!["one".into()];
    let mut setup = setup(vec![one, two, three]);
    setup.task.parameters.insert("p".to_owned(), json!(1));
    setup.task.allow_contradictions = true;
    let (_, before) = long.start(setup);
    assert_eq!(before.facts.len(), 3);
    let set = json!({ "p": 2 }).as_object().cloned().unwrap();
    long.post(Message::Amend { amendment: Amendment { set, ..Amendment::default() } });
    let (finish, state) = long.resume();
    assert_eq!(finish, DONE);
    let calls = long.guests.calls.lock().unwrap();
    let made: Vec<&str> = calls.iter().map(|call| call.id.split_once('/').unwrap().1).collect();
    assert_eq!(made, ["one/1", "three/1", "two/1", "one/2", "two/2"]);
    assert_eq!(calls[3].args, json!({ "x": 2 }));
    assert_eq!(state.facts.values().filter(|fact| fact.abandoned).count(), 2);
    assert_eq!((state.version, state.facts.len()), (2, 5));
}

#[test]
fn a_new_criterion_is_judged_over_what_stands() {
    let long = Long::new(good());
    long.start(setup(vec![subgoal("one")]));
    let criterion =
        |check: &str| checkrein_contract::task::Criterion { text: check.to_owned(), check: check.to_owned() };
    let criteria = vec![("one".into(), criterion("fact('s/a').n == 1"))];
    long.post(Message::Amend { amendment: Amendment { criteria, ..Amendment::default() } });
    assert_eq!(long.resume().0, DONE);
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
    let criteria = vec![("one".into(), criterion("fact('s/a').n == 2"))];
    long.post(Message::Amend { amendment: Amendment { criteria, ..Amendment::default() } });
    assert_eq!(long.resume().0, Finish::Ended(RunStatus::NotReached));
}

#[test]
fn a_stopped_run_ends_its_calls_and_goes_on() {
    let long = Long::new(good());
    let driver = Driver::start(long.world.clone(), long.log.clone(), setup(vec![subgoal("one")])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (finish, _) = runtime.block_on(driver.run(std::future::ready(Stop::Interrupted))).unwrap();
    assert_eq!(finish, Finish::Stopped(Stop::Interrupted));
    assert_eq!(long.kinds().last(), Some(&"run-stopped"));
    assert_eq!(long.resume().0, DONE);
}

#[test]
fn a_call_in_hand_of_a_stopped_run_is_cancelled_if_it_changes_nothing() {
    for (effects, expected) in [(Effects::None, "call-ended"), (Effects::Idempotent, "call-unknown")] {
        let long = Long::new(good());
        let mut setup = setup(vec![subgoal("one")]);
        setup.task.mode = Mode::ReadWrite;
        setup.skills[0].effects = effects;
        long.start(setup);
        long.cut_after("budget-reserved");
        let mut state = long.state();
        let stop = crate::effect::Input::Stop(Stop::Cancelled);
        let events = crate::step::advance(&mut state, &stop, Timestamp(0)).unwrap();
        assert_eq!(events[0].kind(), expected);
        if effects == Effects::None {
            assert!(matches!(events[0], Event::CallEnded { ended: Ended::Cancelled, .. }));
        }
        long.log.events.lock().unwrap().extend(events.into_iter().map(|event| (Timestamp(0), event)));
        assert_eq!(long.resume().0, DONE);
    }
}

#[test]
fn calls_side_by_side_share_a_transaction() {
    let long = Long::new(good());
    let mut goals: Vec<_> = (0..32).map(|n| subgoal(&format!("g{n}"))).collect();
    goals.iter_mut().for_each(|goal| goal.criteria.clear());
    let (finish, _) = long.start(setup(goals));
    assert_eq!(finish, DONE);
    let (events, appends) = (long.log.events.lock().unwrap().len(), *long.log.appends.lock().unwrap());
    assert!(appends * 10 < events, "{appends} transactions for {events} events");
}

#[test]
fn a_log_that_names_what_is_not_there_is_told() {
    let event = Event::CallUnknown { call: "run/none/1".into() };
    let error = State::fold([(Timestamp(0), &event)]).unwrap_err();
    assert!(error.to_string().contains("run/none/1"), "{error}");
}
