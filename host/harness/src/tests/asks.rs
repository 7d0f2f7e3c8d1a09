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
use crate::effect::Input;
use crate::state::State;
use crate::step::{INTERRUPTED_MAX, advance};
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

    /// As if the process had ended so often, each time while the same call was made.
    fn end_while_called(&self, times: u32) {
        let mut events = self.log.events.lock().unwrap();
        for epoch in 0..u64::from(times) {
            let at = events.iter().rposition(|(_, event)| event.kind() == "budget-reserved").unwrap();
            events.truncate(at + 1);
            drop(events);
            let state = self.state();
            let resume = Input::Resume {
                epoch,
                holder: "another".to_owned(),
                engine: "none".to_owned(),
                in_force: None,
            };
            let resumed = advance(&mut state.clone(), &resume, state.now).unwrap();
            events = self.log.events.lock().unwrap();
            events.extend(resumed.into_iter().map(|event| (state.now, event)));
        }
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
fn a_call_that_ends_the_host_again_and_again_is_a_persons_to_repeat() {
    let mut setup = setup(vec![subgoal("one")]);
    setup.person = Person::Always;
    let long = Long::new(good());
    long.start(setup.clone());
    long.end_while_called(INTERRUPTED_MAX);
    let (finish, state) = long.resume();
    assert_eq!(finish, WAITS);
    let (id, ask) = state.open_asks().next().unwrap();
    let Asked::HandOver { because } = &ask.about else { panic!("{ask:?}") };
    assert!(matches!(**because, Closing::Interrupted { times: INTERRUPTED_MAX, .. }), "{because:?}");
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
    // Once more, under the same id.
    long.answer(id.as_str(), Answer::Retry);
    assert_eq!(long.resume().0, DONE);
    let calls = long.guests.calls.lock().unwrap();
    assert_eq!((calls.len(), &calls[0].id), (2, &calls[1].id));
    drop(calls);

    // Where nobody is waited for, it is not made once more.
    setup.person = Person::Never;
    let alone = Long::new(good());
    alone.start(setup);
    alone.end_while_called(INTERRUPTED_MAX);
    let (finish, state) = alone.resume();
    assert_eq!(finish, Finish::Ended(RunStatus::NotReached));
    assert!(matches!(closing(&state, "one"), Closing::Interrupted { .. }));
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

fn met_if(id: &str, check: &str) -> Message {
    let criterion = checkrein_contract::task::Criterion { text: check.to_owned(), check: check.to_owned() };
    Message::Amend { amendment: Amendment { criteria: vec![(id.into(), criterion)], ..Amendment::default() } }
}

fn staged(mut setup: Setup) -> Setup {
    let mut second = setup.task.stages[0].clone();
    second.id = "second".into();
    second.subgoals = vec![subgoal("two")];
    setup.task.stages.push(second);
    setup.task.allow_contradictions = true;
    setup
}

/// The log up to the moment at which a call of this subgoal is in hand.
fn cut_in_call_of(long: &Long, subgoal: &str) {
    let mut events = long.log.events.lock().unwrap();
    let of = |event: &Event| matches!(event, Event::BudgetReserved { call, .. } if call.as_str().contains(&format!("/{subgoal}/")));
    let at = events.iter().position(|(_, event)| of(event)).unwrap();
    events.truncate(at + 1);
}

#[test]
fn an_amendment_leaves_no_call_of_a_later_stage_behind() {
    let long = Long::new(good());
    long.start(staged(setup(vec![subgoal("one")])));
    cut_in_call_of(&long, "two");
    let Message::Amend { amendment } = met_if("one", "fact('s/a').n == 1") else { panic!() };
    let state = long.state();
    let events = crate::amend::amended(&state, &amendment);
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["call-ended", "budget-settled", "task-amended"]);
    // One that has effects is not left hanging.
    let mut dear = state.clone();
    dear.calls.values_mut().for_each(|call| call.effects = Effects::Irreversible);
    assert!(crate::amend::refusal(&dear, &amendment).unwrap().contains("has effects"));
    // And whether one happened is answered first.
    let call = dear.calls.keys().last().unwrap().clone();
    dear.asks.insert(
        "9".into(),
        crate::state::AskState {
            subgoal: "two".into(),
            about: Asked::CallUnknown { call },
            question: String::new(),
            answer: None,
        },
    );
    dear.subgoals.get_mut(&"two".into()).unwrap().phase = crate::state::Phase::Asking("9".into());
    let Message::Amend { amendment } = met_if("two", "fact('s/a').n == 1") else { panic!() };
    assert_eq!(crate::amend::refusal(&dear, &amendment), None, "its ask stands");
    let goal = dear.setup.as_ref().unwrap().task.stages[1].subgoals[0].goal.clone();
    dear.setup.as_mut().unwrap().task.goal = goal;
    let amendment = Amendment { goal: Some("another".to_owned()), ..Amendment::default() };
    assert!(crate::amend::refusal(&dear, &amendment).unwrap().contains("answer ask 9 first"));
}

#[test]
fn what_was_blocked_is_open_again_once_what_blocked_it_is_met() {
    let long = Long::new(good());
    let (mut one, mut two) = (subgoal("one"), subgoal("two"));
    let check = "fact('s/a').n == param('p')";
    one.criteria =
        vec![checkrein_contract::task::Criterion { text: check.to_owned(), check: check.to_owned() }];
    two.after = vec!["one".into()];
    let mut setup = setup(vec![one, two]);
    setup.task.parameters.insert("p".to_owned(), json!(2));
    setup.task.allow_contradictions = true;
    assert_eq!(long.start(setup).0, Finish::Ended(RunStatus::NotReached));
    let set = json!({ "p": 1 }).as_object().cloned().unwrap();
    long.post(Message::Amend { amendment: Amendment { set, ..Amendment::default() } });
    let (finish, state) = long.resume();
    assert_eq!(finish, DONE);
    assert!(state.is_met(&"two".into()));
    assert!(long.kinds().contains(&"dependents-reopened"));
}

#[test]
fn a_criterion_more_that_holds_touches_nothing_else() {
    let long = Long::new(good());
    let (one, mut two) = (subgoal("one"), subgoal("two"));
    two.after = vec!["one".into()];
    let mut setup = setup(vec![one, two]);
    setup.task.allow_contradictions = true;
    assert_eq!(long.start(setup).0, DONE);
    let before = long.kinds().len();
    // It holds: nothing else is touched.
    long.post(met_if("one", "fact('s/a').n >= 1"));
    assert_eq!(long.resume().0, DONE);
    assert!(!long.kinds()[before..].contains(&"call-intended"));
}

#[test]
fn a_call_that_may_do_more_by_now_is_not_repeated_without_a_word() {
    let long = Long::new(good());
    let mut setup = setup(vec![subgoal("one")]);
    setup.task.mode = Mode::ReadWrite;
    setup.person = Person::Always;
    long.start(setup);
    long.cut_after("budget-reserved");
    let state = long.state();
    let mut now = checkrein_contract::event::InForce {
        skills: state.setup.as_ref().unwrap().skills.clone(),
        verifiers: Vec::new(),
        bindings: Vec::new(),
    };
    now.skills[0].effects = Effects::Irreversible;
    let resumed = Resumed { engine: "none".to_owned(), in_force: Some(Box::new(now)) };
    let driver = Driver::resume(long.world.clone(), long.log.clone(), state, resumed).unwrap();
    let (finish, state) = long.drive(driver);
    assert_eq!(finish, WAITS);
    let (_, ask) = state.open_asks().next().unwrap();
    assert!(matches!(ask.about, Asked::Approval { .. }), "{ask:?}");
    assert_eq!(long.guests.calls.lock().unwrap().len(), 1);
}

#[test]
fn a_goal_in_other_words_is_for_subgoals_that_wait_too() {
    let long = Long::new(good());
    let (mut one, mut two) = (subgoal("one"), subgoal("two"));
    two.after = vec!["one".into()];
    for spec in [&mut one, &mut two] {
        (spec.goal, spec.skill) = ("g".to_owned(), Some("skill".to_owned()));
    }
    let mut setup = setup(vec![one, two]);
    setup.task.goal = "g".to_owned();
    setup.task.allow_contradictions = true;
    long.start(setup);
    long.cut_after("budget-reserved");
    let amendment = Amendment { goal: Some("other words".to_owned()), ..Amendment::default() };
    long.post(Message::Amend { amendment });
    let (finish, state) = long.resume();
    assert_eq!(finish, DONE);
    assert_eq!(state.spec(&"two".into()).goal, "other words");
}

#[test]
fn a_log_of_a_stranger_is_refused_and_ends_nothing() {
    let start = |setup: Setup| (Timestamp(1), Event::RunStarted { setup: Box::new(setup) });
    let entered = (Timestamp(1), Event::StageEntered { stage: "s".into() });
    let mut unknown = setup(vec![subgoal("one")]);
    unknown.task.stages[0].subgoals[0].after = vec!["nobody".into()];
    let twice = setup(vec![subgoal("one"), subgoal("one")]);
    let whole = setup(vec![subgoal("one")]);
    let opened = Event::SubgoalOpened {
        subgoal: "one".into(),
        scope: vec!["F-9".into()],
        artifacts: Vec::new(),
        args: serde_json::Map::new(),
    };
    let evaluated = Event::TaskAmended {
        amendment: Amendment::default(),
        version: 2,
        reopened: Vec::new(),
        evaluated: vec!["nobody".into()],
    };
    for events in [
        vec![start(unknown), entered.clone()],
        vec![start(twice)],
        vec![start(whole.clone()), start(whole.clone())],
        vec![start(whole.clone()), entered.clone(), (Timestamp(1), opened)],
        vec![start(whole.clone()), entered.clone(), (Timestamp(1), evaluated)],
    ] {
        let folded = State::fold(events.iter().map(|(at, event)| (*at, event)));
        assert!(folded.is_err(), "{events:?}");
    }
}

#[test]
fn what_a_call_gets_does_not_depend_on_who_is_first() {
    let mut state = State::default();
    let mut setup = setup(vec![subgoal("one"), subgoal("two")]);
    setup.task.budget.fuel = Some(60);
    state.apply(Timestamp(1), &Event::RunStarted { setup: Box::new(setup) }).unwrap();
    assert_eq!(state.for_call(&"one".into(), false, 50, 9).unwrap().0, 50);
    state.spent.reserved = 50;
    assert_eq!(state.for_call(&"two".into(), false, 50, 9), Err(crate::state::Short::Reserved));
    (state.spent.reserved, state.spent.fuel) = (0, 50);
    assert_eq!(state.for_call(&"two".into(), false, 50, 9).unwrap().0, 10);
}
