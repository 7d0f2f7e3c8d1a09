use std::collections::VecDeque;
use std::sync::Mutex;

use checkrein_contract::event::{Draft, Setup};
use checkrein_contract::grant::Clock;
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{
    Advice, Assessment, Call, Failure, FailureKind, Level, LimitHit, Mishap, Outcome, Subgoal, Submission,
    Verdict,
};
use checkrein_contract::port::{BoxFuture, End, Execution, Guests, Ran, Setting};
use checkrein_contract::record::FolderSeen;
use serde_json::json;

use super::*;
use crate::testing::{Scripted, component, draft, failure, good, outcome, run, setup, subgoal, world};

type Script = Vec<End<Result<Outcome, Failure>>>;

/// The engine that the setup of these tests names.
const ENGINE: &str = "none";

fn scripted(script: Script) -> Arc<Scripted> {
    Arc::new(Scripted { execute: Mutex::new(VecDeque::from(script)), ..good() })
}

fn gives(n: i64) -> End<Result<Outcome, Failure>> {
    outcome(vec![draft("s/a", json!({ "n": n }))])
}

fn limit(key: &str, used: u64) -> End<Result<Outcome, Failure>> {
    End::Limited(LimitHit { limit: key.to_owned(), allowed: 1, used })
}

/// The log of a run of one subgoal whose calls end so.
fn log(script: Script) -> Vec<Logged> {
    log_of(setup(vec![subgoal("a")]), script)
}

fn log_of(setup: Setup, script: Script) -> Vec<Logged> {
    let events = run(&scripted(script), setup).events;
    let logged = |(index, (at, event)): (usize, (Timestamp, Event))| Logged {
        seq: index as u64 + 1,
        at,
        prev: Digest::ZERO,
        digest: Digest::ZERO,
        event,
    };
    events.into_iter().enumerate().map(logged).collect()
}

fn again(world: &World, events: &[Logged], engine: &str) -> Result<Replayed, ReplayError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay(world, events, engine, |_| {}))
}

/// Executes a log again with calls that end so.
fn replayed(events: &[Logged], script: Script) -> Replayed {
    again(&world(scripted(script)), events, ENGINE).unwrap()
}

fn suspects(replayed: &Replayed) -> Vec<Suspect> {
    let (_, difference) = replayed.differences().next().unwrap();
    difference.suspects.iter().map(|one| one.suspect).collect()
}

fn results(replayed: &Replayed) -> Vec<&Repetition> {
    replayed.calls.iter().map(|call| &call.result).collect()
}

/// Every recorded end of a call, to be changed.
fn ends(events: &mut [Logged]) -> impl Iterator<Item = &mut Event> {
    let all = events.iter_mut().map(|logged| &mut logged.event);
    all.filter(|event| matches!(event, Event::CallEnded { .. }))
}

/// What was let in first, to be changed.
fn accepted(events: &mut [Logged]) -> (&mut Vec<FactEntry>, &mut Vec<StoredArtifact>) {
    let mut all = events.iter_mut().filter_map(|logged| match &mut logged.event {
        Event::OutcomeAccepted { facts, artifacts, .. } => Some((facts, artifacts)),
        _ => None,
    });
    all.next().unwrap()
}

/// Makes the outcomes, and the facts that came out of them, what a person says.
fn attest(events: &mut [Logged]) {
    for logged in events {
        match &mut logged.event {
            Event::CallEnded { attested, .. } => *attested = true,
            Event::OutcomeAccepted { facts, .. } => {
                facts.iter_mut().for_each(|fact| fact.level = Level::Attested);
            }
            _ => {}
        }
    }
}

#[test]
fn what_ends_the_same_agrees() {
    let replayed = replayed(&log(vec![gives(1)]), vec![gives(1)]);
    assert!(replayed.agrees());
    assert_eq!((replayed.executed(), replayed.calls.len()), (1, 1));
    assert_eq!(replayed.facts, Facts { of: 1, agree: 1, attested: 0 });
    assert_eq!(replayed.engines, [ENGINE]);
}

#[test]
fn another_number_is_a_difference() {
    let replayed = replayed(&log(vec![gives(1)]), vec![gives(2)]);
    assert!(!replayed.agrees());
    assert_eq!(replayed.facts, Facts { of: 1, agree: 0, attested: 0 });
    let (call, difference) = replayed.differences().next().unwrap();
    assert_eq!((call.subgoal.as_str(), call.skill.as_str()), ("a", "skill"));
    assert!(matches!(&difference.differs, Differs::Ended { expected, found } if expected != found));
    // Twice the same here, and not what the log says.
    assert_eq!(suspects(&replayed), [Suspect::Component, Suspect::Engine]);
}

#[test]
fn two_executions_that_differ_are_random() {
    let replayed = replayed(&log(vec![gives(1)]), vec![gives(2), gives(3)]);
    assert_eq!(suspects(&replayed), [Suspect::Random]);
}

#[test]
fn another_engine_is_evidence_and_no_second_execution_is_made() {
    let guests = scripted(vec![gives(2)]);
    let replayed = again(&world(guests.clone()), &log(vec![gives(1)]), "another").unwrap();
    assert_eq!(suspects(&replayed), [Suspect::Engine]);
    assert_eq!(guests.calls.lock().unwrap().len(), 1);
}

#[test]
fn another_engine_alone_is_no_difference() {
    let replayed = again(&world(scripted(vec![gives(1)])), &log(vec![gives(1)]), "another").unwrap();
    assert!(replayed.agrees());
}

#[test]
fn the_engine_of_a_resumed_run_is_that_of_the_resumption() {
    let mut events = log(vec![gives(1)]);
    let at = events.iter().position(|logged| matches!(logged.event, Event::CallEnded { .. })).unwrap();
    let resumed = Event::RunResumed { engine: "another".to_owned(), in_force: None };
    events.insert(at, Logged { event: resumed, ..events[at].clone() });
    let replayed = again(&world(scripted(vec![gives(2)])), &events, "another").unwrap();
    assert_eq!(suspects(&replayed), [Suspect::Component, Suspect::Engine]);
    assert_eq!(replayed.engines, [ENGINE, "another"]);
}

#[test]
fn a_real_clock_is_a_suspect() {
    let mut setup = setup(vec![subgoal("a")]);
    setup.skills[0].granted.clock = Clock::Real;
    let replayed = replayed(&log_of(setup, vec![gives(1)]), vec![gives(2)]);
    assert_eq!(suspects(&replayed), [Suspect::Clock]);
}

#[test]
fn a_folder_that_was_not_recorded_is_a_suspect() {
    let mut setup = setup(vec![subgoal("a")]);
    setup.skills[0].granted.files = vec![checkrein_contract::grant::Folder::parse("ro /data").unwrap()];
    let mut events = log_of(setup, vec![gives(1)]);
    for event in ends(&mut events) {
        let Event::CallEnded { record, .. } = event else { continue };
        record.folders = vec![FolderSeen {
            path: "/data".to_owned(),
            files: None,
            left_out: Some("too large".to_owned()),
        }];
    }
    let replayed = replayed(&events, vec![gives(2)]);
    assert_eq!(suspects(&replayed), [Suspect::Input]);
}

#[test]
fn failures_are_compared_by_content() {
    let events = log(vec![failure(FailureKind::Unavailable)]);
    let alike = replayed(&events, vec![failure(FailureKind::Unavailable)]);
    assert_eq!((alike.agrees(), alike.executed()), (true, alike.calls.len()));
    let other = replayed(&events, vec![failure(FailureKind::Denied)]);
    assert!(matches!(results(&other)[0], Repetition::Different(_)));
}

#[test]
fn limits_are_compared_by_their_key() {
    let events = log(vec![limit("fuel", 2)]);
    assert!(replayed(&events, vec![limit("fuel", 3)]).agrees());
    assert!(!replayed(&events, vec![limit("memory", 2)]).agrees());
}

#[test]
fn what_time_ended_is_not_executed_again() {
    for key in ["cpu", "wall"] {
        let guests = scripted(vec![gives(1)]);
        let replayed = again(&world(guests.clone()), &log(vec![limit(key, 2)]), ENGINE).unwrap();
        assert!(guests.calls.lock().unwrap().is_empty());
        assert!(!replayed.agrees() && replayed.executed() == 0 && !replayed.calls.is_empty());
        assert_eq!(replayed.not_repeated().next().unwrap().1, &NotRepeated::Timed(key.to_owned()));
    }
}

#[test]
fn what_a_person_says_is_counted_apart_and_alone_does_not_agree() {
    let mut events = log(vec![gives(1)]);
    attest(&mut events);
    assert!(components(&events).unwrap().is_empty());
    let replayed = replayed(&events, vec![gives(2)]);
    assert_eq!(results(&replayed), [&Repetition::NotRepeated(NotRepeated::Attested)]);
    assert_eq!(replayed.facts, Facts { of: 0, agree: 0, attested: 1 });
    assert_eq!(replayed.differences().count(), 0);
    assert!(replayed.compares_nothing() && !replayed.agrees());
}

#[test]
fn what_a_person_says_beside_what_was_compared_agrees() {
    let mut second = subgoal("b");
    second.after = vec!["a".into()];
    let mut events = log_of(setup(vec![subgoal("a"), second]), vec![gives(1)]);
    let last = events.iter().rposition(|logged| matches!(logged.event, Event::CallEnded { .. })).unwrap();
    attest(&mut events[last..]);
    let replayed = replayed(&events, vec![gives(1)]);
    assert_eq!(replayed.facts, Facts { of: 1, agree: 1, attested: 1 });
    assert!(replayed.agrees(), "{replayed:#?}");
}

#[test]
fn drafts_that_are_other_than_those_of_the_outcome_are_a_difference() {
    let changes: [fn(&mut Draft); 5] = [
        |draft| draft.subject = "s/b".to_owned(),
        |draft| draft.kind = "opinion".to_owned(),
        |draft| draft.content = Digest::ZERO,
        |draft| draft.source = "/in/other.csv".to_owned(),
        |draft| draft.supersedes = Some("s/a@1".to_owned()),
    ];
    for change in changes {
        let mut events = log(vec![gives(1)]);
        for event in ends(&mut events) {
            if let Event::CallEnded { ended: Ended::Outcome { drafts, .. }, .. } = event {
                change(&mut drafts[0]);
            }
        }
        let guests = scripted(vec![gives(1)]);
        let replayed = again(&world(guests.clone()), &events, "another").unwrap();
        assert!(!replayed.agrees());
        assert_eq!(replayed.facts, Facts { of: 1, agree: 0, attested: 0 });
        // The engine is another as well, and it is not to blame.
        assert_eq!(suspects(&replayed), [Suspect::Log]);
        assert_eq!(guests.calls.lock().unwrap().len(), 1);
    }
}

#[test]
fn facts_that_are_other_than_what_the_gateway_makes_are_a_difference() {
    let changes: [fn(&mut FactEntry); 8] = [
        |fact| fact.id = "s/b@1".into(),
        |fact| fact.subject = "s/b".to_owned(),
        |fact| fact.version = 2,
        |fact| fact.kind = "opinion".to_owned(),
        |fact| fact.source = "/in/other.csv".to_owned(),
        |fact| fact.level = Level::Attested,
        |fact| fact.content = Digest::ZERO,
        |fact| fact.index = 1,
    ];
    for change in changes {
        let mut events = log(vec![gives(1)]);
        let (facts, _) = accepted(&mut events);
        let made = facts.clone();
        change(&mut facts[0]);
        let changed = facts.clone();
        let replayed = replayed(&events, vec![gives(1)]);
        assert!(!replayed.agrees());
        assert_eq!(results(&replayed), [&Repetition::Same]);
        assert_eq!(replayed.facts, Facts { of: 1, agree: 0, attested: 0 });
        assert_eq!(suspects(&replayed), [Suspect::Log]);
        let (_, difference) = replayed.differences().next().unwrap();
        let admission = |facts| Admission::Accepted { facts, artifacts: Vec::new() };
        let differs = Differs::Admission { expected: admission(changed), found: admission(made) };
        assert_eq!(difference.differs, differs);
    }
}

#[test]
fn files_that_did_not_come_out_of_the_call_are_a_difference() {
    let mut events = log(vec![gives(1)]);
    let (_, artifacts) = accepted(&mut events);
    artifacts.push(StoredArtifact {
        path: "table.csv".to_owned(),
        title: "a table".to_owned(),
        media_type: "text/csv".to_owned(),
        digest: Digest::ZERO,
        bytes: 1,
    });
    let replayed = replayed(&events, vec![gives(1)]);
    assert_eq!(suspects(&replayed), [Suspect::Log]);
    assert_eq!(replayed.facts, Facts { of: 1, agree: 0, attested: 0 });
}

#[test]
fn facts_that_no_judge_let_through_are_a_difference() {
    let mut events = log(vec![gives(1)]);
    events.retain(|logged| !matches!(logged.event, Event::VerdictGiven { .. }));
    let replayed = replayed(&events, vec![gives(1)]);
    let (_, difference) = replayed.differences().next().unwrap();
    let Differs::Admission { found: Admission::Rejected { findings }, .. } = &difference.differs else {
        panic!("{difference:#?}");
    };
    assert_eq!(findings[0].rule, "unchecked");
    assert!(!replayed.agrees());
}

#[test]
fn facts_of_a_call_without_an_outcome_are_a_difference() {
    let failed: fn(&mut Vec<Logged>) = |events| {
        for event in ends(events) {
            if let Event::CallEnded { ended, .. } = event {
                *ended = Ended::Cancelled;
            }
        }
    };
    let unended: fn(&mut Vec<Logged>) =
        |events| events.retain(|logged| !matches!(logged.event, Event::CallEnded { .. }));
    for change in [failed, unended] {
        let mut events = log(vec![gives(1)]);
        change(&mut events);
        let replayed = replayed(&events, vec![gives(1)]);
        assert_eq!((replayed.executed(), replayed.differences().count()), (0, 1));
        assert_eq!(replayed.facts, Facts { of: 1, agree: 0, attested: 0 });
        assert!(!replayed.agrees());
    }
}

#[test]
fn facts_of_a_person_are_held_to_what_the_gateway_makes_as_well() {
    let mut events = log(vec![gives(1)]);
    attest(&mut events);
    accepted(&mut events).0[0].level = Level::Independent;
    let replayed = replayed(&events, vec![gives(1)]);
    assert_eq!(suspects(&replayed), [Suspect::Log]);
}

#[test]
fn a_difference_is_not_hidden_by_another_end_of_the_same_call() {
    let mut events = log(vec![gives(1)]);
    let at = events.iter().position(|logged| matches!(logged.event, Event::CallEnded { .. })).unwrap();
    let good = events[at].clone();
    for event in ends(&mut events) {
        if let Event::CallEnded { ended: Ended::Outcome { outcome, .. }, .. } = event {
            *outcome = Digest::of("another");
        }
    }
    events.push(good);
    let replayed = replayed(&events, vec![gives(1)]);
    assert_eq!((replayed.calls.len(), replayed.differences().count()), (1, 1));
    assert!(!replayed.agrees());
}

#[test]
fn facts_that_a_verifier_named_and_later_versions_agree() {
    let mut setup = crate::testing::with_verifier(setup(vec![subgoal("a"), subgoal("b")]));
    setup.task.allow_contradictions = true;
    let events = log_of(setup, vec![gives(1), gives(2)]);
    let replayed = replayed(&events, vec![gives(1), gives(2)]);
    assert!(replayed.agrees(), "{replayed:#?}");
    assert_eq!(replayed.facts, Facts { of: 2, agree: 2, attested: 0 });
}

#[test]
fn a_call_without_an_end_is_counted_apart() {
    let mut events = log(vec![gives(1)]);
    let at = events.iter().position(|logged| matches!(logged.event, Event::CallEnded { .. })).unwrap();
    events.truncate(at);
    let replayed = replayed(&events, vec![gives(1)]);
    assert_eq!(results(&replayed), [&Repetition::NotRepeated(NotRepeated::Unended)]);
}

#[test]
fn a_dry_run_is_refused() {
    let mut events = log(vec![gives(1)]);
    if let Event::RunStarted { setup } = &mut events[0].event {
        setup.dry = true;
    }
    let refused = again(&world(scripted(vec![gives(1)])), &events, ENGINE);
    assert!(matches!(refused, Err(ReplayError::Dry)), "{refused:?}");
    assert!(matches!(components(&events), Err(ReplayError::Dry)));
}

#[test]
fn a_scope_that_no_event_made_is_refused() {
    let mut events = log(vec![gives(1)]);
    for logged in &mut events {
        if let Event::SubgoalOpened { scope, .. } = &mut logged.event {
            scope.push("s/forged@1".into());
        }
    }
    let refused = again(&world(scripted(vec![gives(1)])), &events, ENGINE);
    assert!(matches!(refused, Err(ReplayError::Unfoldable(_))), "{refused:?}");
}

#[test]
fn the_components_of_the_calls_are_named() {
    let events = log(vec![gives(1)]);
    assert_eq!(components(&events).unwrap(), BTreeMap::from([(component("skill"), "skill".to_owned())]));
}

#[test]
fn each_call_is_told_of_when_it_begins_and_when_it_ends() {
    let events = log(vec![gives(1)]);
    let (world, mut told) = (world(scripted(vec![gives(2)])), Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let watch = |progress: &Progress<'_>| match progress {
        Progress::Begins { number, of, .. } => told.push(format!("{number} of {of}")),
        Progress::Ended { same, .. } => told.push(format!("{same}")),
    };
    runtime.block_on(replay(&world, &events, ENGINE, watch)).unwrap();
    assert_eq!(told, ["1 of 1", "false"]);
}

/// Guests that note with which record they execute.
struct Noted {
    inner: Arc<Scripted>,
    records: Mutex<Vec<Option<Arc<Record>>>>,
}

impl Guests for Noted {
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        self.inner.assess(setting, subgoal)
    }

    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        self.records.lock().unwrap().push(setting.recorded.clone());
        self.inner.execute(setting, call)
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        self.inner.verify(setting, submission)
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        self.inner.recover(setting, mishap)
    }
}

#[test]
fn a_call_is_executed_with_its_own_record_and_nobody_judges() {
    let mut events = log(vec![gives(1)]);
    let seen = FolderSeen { path: "/data".to_owned(), files: Some(Digest::of("list")), left_out: None };
    for event in ends(&mut events) {
        if let Event::CallEnded { record, .. } = event {
            record.folders = vec![seen.clone()];
        }
    }
    let inner = scripted(vec![gives(1)]);
    let noted = Arc::new(Noted { inner: inner.clone(), records: Mutex::default() });
    let world = World { guests: noted.clone(), ..world(inner.clone()) };
    assert!(again(&world, &events, ENGINE).unwrap().agrees());
    let records = noted.records.lock().unwrap().clone();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].as_ref().unwrap().folders, [seen]);
    assert!(inner.verified.lock().unwrap().is_empty() && inner.mishaps.lock().unwrap().is_empty());
}
