//! Every event has one line that a person can read.

use checkrein_contract::Digest;
use checkrein_contract::ask::{Amendment, Answer, Asked, Attested, Message};
use checkrein_contract::event::{
    Assessed, Closing, CriterionState, Ended, Event, InForce, Judge, Judgement, Logged, Person, RunStatus,
    Stop,
};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp};
use checkrein_contract::interface::{Remedy, Severity};
use checkrein_contract::limits::Used;
use checkrein_contract::problem::{Problem, Stage};
use checkrein_contract::record::Record;
use checkrein_contract::task::Criterion;
use serde_json::{Map, json};

use crate::report::event_line;
use crate::report::sample::{Sample, intended, map, run};

fn call() -> CallId {
    CallId::new(&run(), &"publish".into(), 1)
}

/// How many kinds there are: the largest number of [`number`], and one.
const KINDS: usize = 32;

/// A number for each kind. A kind that is new does not compile here: it needs its line, and its
/// event in [`every_kind`].
fn number(event: &Event) -> usize {
    match event {
        Event::RunStarted { .. } => 0,
        Event::RestorePointSet { .. } => 1,
        Event::StageEntered { .. } => 2,
        Event::SubgoalOpened { .. } => 3,
        Event::SkillsAssessed { .. } => 4,
        Event::ActionProposed { .. } => 5,
        Event::TokensReserved { .. } => 6,
        Event::ActionRefused { .. } => 7,
        Event::BudgetReserved { .. } => 8,
        Event::CallIntended { .. } => 9,
        Event::CallUnknown { .. } => 10,
        Event::CallEnded { .. } => 11,
        Event::BudgetSettled { .. } => 12,
        Event::VerdictGiven { .. } => 13,
        Event::OutcomeAccepted { .. } => 14,
        Event::OutcomeRejected { .. } => 15,
        Event::ContradictionFound { .. } => 16,
        Event::CriteriaEvaluated { .. } => 17,
        Event::RemedyGiven { .. } => 18,
        Event::TimerSet { .. } => 19,
        Event::TimerReached { .. } => 20,
        Event::AskOpened { .. } => 21,
        Event::AskAnswered { .. } => 22,
        Event::LetterTaken { .. } => 23,
        Event::TaskAmended { .. } => 24,
        Event::SubgoalClosed { .. } => 25,
        Event::StageEvaluated { .. } => 26,
        Event::LeaseTaken { .. } => 27,
        Event::RunResumed { .. } => 28,
        Event::RunStopped { .. } => 29,
        Event::DependentsReopened { .. } => 31,
        Event::RunEnded { .. } => 30,
    }
}

/// An event of every kind; of those that the sample has, those of the sample.
fn every_kind() -> Vec<Event> {
    let mut events: Vec<Event> =
        Sample::default().events().0.into_iter().map(|logged| logged.event).collect();
    events.extend(of_run());
    events.extend(of_subgoal());
    events.extend(of_call());
    events
}

fn of_run() -> Vec<Event> {
    let message = Message::Answer { ask: "2".into(), answer: Answer::Approved { until: None } };
    let in_force = InForce { skills: Vec::new(), verifiers: Vec::new(), bindings: Vec::new() };
    vec![
        Event::RestorePointSet { name: "before analyse".to_owned() },
        Event::LeaseTaken { epoch: 3, holder: "process 812 on host".to_owned() },
        Event::RunResumed { engine: "wasmtime 48.0.8".to_owned(), in_force: Some(Box::new(in_force)) },
        Event::RunStopped { because: Stop::Person },
        Event::LetterTaken {
            letter: 7,
            by: "ada".to_owned(),
            said: message,
            refused: Some("there is no ask 2".to_owned()),
        },
        Event::TaskAmended {
            amendment: amendment(),
            version: 2,
            reopened: vec!["a".into()],
            evaluated: vec!["b".into()],
        },
        Event::DependentsReopened { by: "a".into(), reopened: vec!["b".into()] },
        Event::RunEnded { status: RunStatus::Done, reason: "all stages were met".to_owned() },
    ]
}

fn amendment() -> Amendment {
    let criterion = Criterion { text: "enough".to_owned(), check: "count('a/') > 1".to_owned() };
    Amendment {
        goal: Some("another goal".to_owned()),
        set: map(json!({ "alpha": 0.1 })),
        criteria: vec![("b".into(), criterion)],
    }
}

fn of_subgoal() -> Vec<Event> {
    let subgoal = SubgoalId::from("publish");
    let problem = Problem {
        stage: Stage::Schema,
        rule: "args".to_owned(),
        skill: "s".to_owned(),
        severity: Severity::Error,
        message: "no number".to_owned(),
        expected: json!(1),
        actual: json!("a"),
        location: None,
        suggestion: None,
    };
    let assessed =
        Assessed { skill: "s".into(), score: 1, reason: "r".into(), args: None, record: Record::default() };
    let criterion = CriterionState { text: "c".to_owned(), holds: false, note: "n".to_owned() };
    let about = Asked::Approval {
        action: Digest::of("a"),
        skill: "s".to_owned(),
        component: Digest::of("c"),
        args: Map::new(),
    };
    let until = Some(Timestamp(1_796_054_109_000));
    vec![
        Event::SkillsAssessed { subgoal: subgoal.clone(), assessed: vec![assessed] },
        Event::ActionProposed { subgoal: subgoal.clone(), action: json!({ "action": "ask" }), tokens: 812 },
        Event::TokensReserved { subgoal: subgoal.clone(), tokens: 4_000 },
        Event::ActionRefused { subgoal: subgoal.clone(), problems: vec![problem] },
        Event::CriteriaEvaluated { subgoal: subgoal.clone(), criteria: vec![criterion] },
        Event::TimerSet { subgoal: subgoal.clone(), until: Timestamp(1_796_054_109_000) },
        Event::TimerReached { subgoal: subgoal.clone() },
        Event::AskOpened {
            ask: "2".into(),
            subgoal: subgoal.clone(),
            about,
            question: "may `s` be called?".to_owned(),
        },
        Event::AskAnswered { ask: "2".into(), answer: Answer::Approved { until }, by: "ada".to_owned() },
        Event::SubgoalClosed { subgoal, closing: Closing::Met },
    ]
}

fn of_call() -> Vec<Event> {
    let judgement = Judgement::Unavailable { reason: "r".to_owned() };
    vec![
        Event::BudgetReserved { call: call(), fuel: 10, wall_ms: 1_000 },
        Event::CallUnknown { call: call() },
        Event::BudgetSettled { call: call(), used: Used::default() },
        Event::VerdictGiven {
            call: call(),
            judge: Judge::Gateway,
            judgement,
            used: Used::default(),
            record: Record::default(),
        },
        Event::OutcomeRejected { call: call(), reasons: Vec::new() },
        Event::ContradictionFound {
            call: call(),
            subject: "a".to_owned(),
            current: "a@1".into(),
            other: Digest::ZERO,
        },
        Event::RemedyGiven {
            call: call(),
            diagnosis: "d".to_owned(),
            remedy: Some(Remedy::GiveUp("r".to_owned())),
            record: Record::default(),
        },
    ]
}

fn line(event: Event) -> String {
    let at = Timestamp(1_796_054_109_000);
    event_line(&Logged { seq: 12, at, prev: Digest::ZERO, digest: Digest::ZERO, event })
}

#[test]
fn every_kind_of_event_has_a_line() {
    let mut seen = [false; KINDS];
    for event in every_kind() {
        seen[number(&event)] = true;
        let kind = event.kind();
        let text = line(event);
        let detail = text.split(kind).nth(1).unwrap_or_else(|| panic!("{text}"));
        assert!(!detail.trim().is_empty() && !text.contains('\n'), "{text}");
        // A line that only repeats the kind says nothing.
        assert_ne!(detail.trim(), kind, "{text}");
    }
    let missing: Vec<usize> = (0..KINDS).filter(|kind| !seen[*kind]).collect();
    assert!(missing.is_empty(), "no event of the kinds {missing:?}");
}

fn says(event: Event, part: &str) {
    let text = line(event);
    assert!(text.contains(part), "{part}\n{text}");
}

#[test]
fn the_course_of_a_run_can_be_read() {
    let of_run = of_run();
    let parts = [
        "before analyse",
        "lease 3 taken by process 812 on host",
        "goes on, wasmtime 48.0.8; what components may do has changed: 0 skills and 0 verifiers in force",
        "waiting: it waits for a person",
        "letter 7 of ada: ask 2: approved; nothing follows: there is no ask 2",
        "version 2: goal: another goal; `alpha` becomes 0.1; `b` must also hold: enough, count('a/') > 1; open again: a; criteria evaluated again: b",
        "after `a` was evaluated again; open again: b",
        "done: all stages were met",
    ];
    of_run.into_iter().zip(parts).for_each(|(event, part)| says(event, part));
    let [unknown, ended] = [Event::CallUnknown { call: call() }, cancelled()];
    says(unknown, "call 20261130-155509-pasilla-4f2a/publish/1 unknown: the host ended while it was made");
    says(ended, "cancelled: the run was stopped while it was made");
}

fn cancelled() -> Event {
    Event::CallEnded {
        call: call(),
        ended: Ended::Cancelled,
        log: None,
        record: Record::default(),
        attested: false,
    }
}

#[test]
fn what_a_person_said_can_be_read() {
    let attested = Attested { outcome: Digest::of("o"), drafts: Vec::new() };
    let short = Digest::of("o").short();
    let with_outcome = format!("it happened, with outcome {short} and 0 facts");
    let answers = [
        (Answer::Approved { until: Some(Timestamp(1_796_054_109_000)) }, "approved until 2026-"),
        (Answer::Denied { reason: "not today".to_owned() }, "denied: not today"),
        (Answer::Said { text: "the other table".to_owned() }, "said: the other table"),
        (Answer::Args { args: map(json!({ "x": 1 })) }, "to be called with {\"x\":1}"),
        (Answer::Retry, "try again"),
        (Answer::GiveUp { reason: "enough".to_owned() }, "give up: enough"),
        (Answer::Happened { outcome: None }, "it happened; what came out of it is not known"),
        (Answer::Happened { outcome: Some(attested) }, with_outcome.as_str()),
        (Answer::NotHappened, "it did not happen"),
    ];
    for (answer, part) in answers {
        let event = Event::AskAnswered { ask: "2".into(), answer, by: "ada".to_owned() };
        says(event, &format!("ask 2 answered by ada: {part}"));
    }
    let opened = of_subgoal().into_iter().find(|event| matches!(event, Event::AskOpened { .. })).unwrap();
    says(opened, "ask 2 opened for publish: approval: may `s` be called?");
}

#[test]
fn a_line_says_what_is_unusual_about_a_run_or_a_call() {
    let (mut events, _) = Sample::default().events();
    if let Event::RunStarted { setup } = &mut events[0].event {
        (setup.dry, setup.person) = (true, Person::Never);
    }
    says(events.remove(0).event, "wasmtime 48.0.8, dry run, waits for nobody");
    let mut with_ask = intended(&call(), "publish", "s", json!({}), 1);
    if let Event::CallIntended { ask, .. } = &mut with_ask {
        *ask = Some("2".into());
    }
    says(with_ask, "attempt 1, by the approval of ask 2, {}");
    let outcome = Ended::Outcome { outcome: Digest::of("o"), drafts: Vec::new(), artifacts: Vec::new() };
    let mut attested = cancelled();
    if let Event::CallEnded { ended, attested, .. } = &mut attested {
        (*ended, *attested) = (outcome, true);
    }
    says(attested, ", as a person says");
}
