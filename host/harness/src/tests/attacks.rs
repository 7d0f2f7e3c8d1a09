//! Lies of components that only the harness can see through, each named after the lie.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use checkrein_contract::Digest;
use checkrein_contract::event::{Closing, Event, Judgement, RunStatus, Setup, Stop};
use checkrein_contract::grant::{Access, Folder, Granted};
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{
    Advice, Assessment, Call, DraftFact, Failure, FailureKind, Finding, Level, Mishap, Remedy, Subgoal,
    Submission, Verdict,
};
use checkrein_contract::manifest::{Effects, Kind};
use checkrein_contract::network::Rule;
use checkrein_contract::port::{BoxFuture, Execution, Guests, Ran, Setting};
use checkrein_contract::record::{Exchange, Record, Wall};
use checkrein_contract::task::Mode;
use serde_json::json;

use super::closing;
use crate::driver::{Driver, Finish, World};
use crate::state::State;
use crate::testing::*;

/// Guests by a script that also have fetched something, and remember what they were given.
struct Fetching {
    guests: Scripted,
    record: Record,
    granted: Mutex<Vec<Granted>>,
}

impl Fetching {
    fn new(guests: Scripted, record: Record) -> Arc<Self> {
        Arc::new(Fetching { guests, record, granted: Mutex::default() })
    }
}

impl Guests for Fetching {
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        self.guests.assess(setting, subgoal)
    }

    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        self.granted.lock().unwrap().push(setting.granted.clone());
        Box::pin(
            async move { Ran { record: self.record.clone(), ..self.guests.execute(setting, call).await } },
        )
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        self.guests.verify(setting, submission)
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        self.guests.recover(setting, mishap)
    }
}

fn run_fetching(guests: &Arc<Fetching>, setup: Setup) -> (Finish, State) {
    let world = World { guests: guests.clone(), ..world(Arc::new(good())) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world, MemoryLog::default(), setup).unwrap();
    runtime.block_on(driver.run(std::future::pending())).unwrap()
}

/// What the gateway found wrong in a run.
fn findings(ended: &Ended) -> Vec<Finding> {
    let of = |(_, event): &(Timestamp, Event)| match event {
        Event::VerdictGiven { judgement: Judgement::Rejected { findings, .. }, .. } => findings.clone(),
        _ => Vec::new(),
    };
    ended.events.iter().flat_map(of).collect()
}

/// Says what is expected and what was found, and that they differ.
fn assert_tells(findings: &[Finding], rule: &str) {
    let finding = findings.iter().find(|finding| finding.rule == rule);
    let finding = finding.unwrap_or_else(|| panic!("no {rule} in {findings:?}"));
    assert!(!finding.expected.is_null() && !finding.actual.is_null(), "{finding:?}");
    assert_ne!(finding.expected, finding.actual, "{finding:?}");
}

/// `skill` states `s/a`; after it, `thief` runs, which may write on these subjects.
fn theft(subjects: &str, stolen: DraftFact) -> Ended {
    let mut second = subgoal("two");
    second.after = vec!["one".into()];
    let mut setup = setup(vec![subgoal("one"), second]);
    let mut thief = card("thief", Kind::Skill);
    thief.facts = vec![subjects.to_owned()];
    setup.skills.push(thief);
    setup.task.stages[0].subgoals[0].skill = Some("skill".to_owned());
    setup.task.stages[0].subgoals[1].skill = Some("thief".to_owned());
    let mut script = good();
    script.execute =
        VecDeque::from([outcome(vec![draft("s/a", json!({ "n": 1 }))]), outcome(vec![stolen])]).into();
    script.verify.get_mut().unwrap().insert(component("thief"), VecDeque::from([checks(&["s/a"])]));
    let ended = run(&Arc::new(script), setup);
    assert_eq!(ended.state.facts.len(), 1, "{:?}", ended.kinds());
    assert_eq!(ended.state.current["s/a"], "s/a@1".into());
    ended
}

#[test]
fn a_fact_on_another_skills_subject() {
    let ended = theft("t/*", draft("s/a", json!({ "n": 2 })));
    assert_tells(&findings(&ended), "subject-granted");
}

#[test]
fn supersedes_of_a_fact_that_is_not_its_own() {
    let stolen = DraftFact { supersedes: Some("s/a@1".to_owned()), ..draft("s/a", json!({ "n": 2 })) };
    assert_tells(&findings(&theft("s/*", stolen)), "supersedes");
}

#[test]
fn supersedes_of_a_fact_that_is_not_there() {
    let stolen = DraftFact { supersedes: Some("s/b@1".to_owned()), ..draft("s/b", json!({ "n": 2 })) };
    assert_tells(&findings(&theft("s/*", stolen)), "supersedes");
}

fn exchange(url: &str) -> Exchange {
    Exchange {
        method: "GET".to_owned(),
        url: url.to_owned(),
        asked: None,
        at: Timestamp(0),
        ms: 1,
        sent: Digest::of(""),
        sent_bytes: 0,
        status: Some(200),
        headers: Vec::new(),
        body: Some(Digest::of("body")),
        body_bytes: 4,
        error: None,
    }
}

#[test]
fn a_source_that_was_never_fetched() {
    const SOURCE: &str = "https://a.test/page?x=1";
    let fetched = exchange(SOURCE);
    let redirected = Exchange { asked: Some(SOURCE.to_owned()), ..exchange("https://b.test/moved") };
    let another = exchange("https://a.test/page?x=2");
    let not_found = Exchange { status: Some(404), ..exchange(SOURCE) };
    let moved = Exchange { status: Some(302), ..exchange(SOURCE) };
    let cut = Exchange { body: None, ..exchange(SOURCE) };
    let refused =
        Exchange { status: None, body: None, error: Some("refused".to_owned()), ..exchange(SOURCE) };
    let cases = [
        (Some(fetched), true),
        (Some(redirected), true),
        (Some(another), false),
        (Some(not_found), false),
        (Some(moved), false),
        (Some(cut), false),
        (Some(refused), false),
        (None, false),
    ];
    for (exchange, good_source) in cases {
        let mut script = good();
        let draft = DraftFact { source: SOURCE.to_owned(), ..draft("s/a", json!({ "n": 1 })) };
        script.execute = VecDeque::from([outcome(vec![draft])]).into();
        let told = format!("{exchange:?}");
        let record = Record { exchanges: exchange.into_iter().collect(), ..Record::default() };
        let (_, state) = run_fetching(&Fetching::new(script, record), setup(vec![subgoal("one")]));
        assert_eq!(state.facts.len(), usize::from(good_source), "{told}");
    }
}

/// Guests by a script whose triggers and recoveries try what nobody allows them.
struct Probing {
    guests: Scripted,
    record: Record,
}

impl Guests for Probing {
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        Box::pin(
            async move { Ran { record: self.record.clone(), ..self.guests.assess(setting, subgoal).await } },
        )
    }

    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        self.guests.execute(setting, call)
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        self.guests.verify(setting, submission)
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        Box::pin(
            async move { Ran { record: self.record.clone(), ..self.guests.recover(setting, mishap).await } },
        )
    }
}

#[test]
fn what_triggers_and_recoveries_were_refused_is_recorded() {
    let mut record = Record::default();
    record.deny(Wall::Socket, "a TCP socket (IPv4)".to_owned(), None);
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    let guests = Arc::new(Probing { guests: script, record: record.clone() });
    let world = World { guests, ..world(Arc::new(good())) };
    let log = MemoryLog::default();
    let events = log.events.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world, log, setup(vec![subgoal("one")])).unwrap();
    runtime.block_on(driver.run(std::future::pending())).unwrap();
    let events = events.lock().unwrap();
    let trigger = events.iter().find_map(|(_, event)| match event {
        Event::SkillsAssessed { assessed, .. } => Some(&assessed[0].record),
        _ => None,
    });
    let recovery = events.iter().find_map(|(_, event)| match event {
        Event::RemedyGiven { record, .. } => Some(record),
        _ => None,
    });
    assert_eq!((trigger, recovery), (Some(&record), Some(&record)));
}

#[test]
fn a_remedy_that_names_itself() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    script.recover = VecDeque::from([advises(Remedy::UseSkill("skill".to_owned()))]).into();
    let guests = Arc::new(script);
    let ended = run(&guests, setup(vec![subgoal("one")]));
    assert_eq!(closing(&ended.state, "one"), Closing::AttemptsUsed { attempts: 3 });
    assert_eq!(guests.calls.lock().unwrap().len(), 3);
}

/// Two skills, each of which advises the other for ever.
fn two_that_advise_each_other(
    script: Scripted,
    goal: checkrein_contract::task::SubgoalSpec,
) -> (Ended, usize) {
    let names = ["other", "skill"].iter().cycle().take(100);
    let mut script = script;
    script.recover =
        names.map(|name| advises(Remedy::UseSkill((*name).to_owned()))).collect::<VecDeque<_>>().into();
    script.verify.get_mut().unwrap().insert(component("other"), VecDeque::from([checks(&["s/a"])]));
    let guests = Arc::new(script);
    let mut setup = setup(vec![goal]);
    setup.skills.push(card("other", Kind::Skill));
    let ended = run(&guests, setup);
    assert_eq!(ended.status, RunStatus::NotReached);
    let calls = guests.calls.lock().unwrap().len();
    (ended, calls)
}

#[test]
fn two_remedies_that_name_each_other_for_ever() {
    let mut script = good();
    script.execute = VecDeque::from([failure(FailureKind::Unavailable)]).into();
    let (ended, calls) = two_that_advise_each_other(script, subgoal("one"));
    assert_eq!(closing(&ended.state, "one"), Closing::AttemptsUsed { attempts: 3 });
    assert_eq!(calls, 3);
}

#[test]
fn two_remedies_that_name_each_other_for_ever_after_accepted_calls() {
    // Accepted calls use no attempt, and the goal is never met.
    let mut goal = subgoal("one");
    goal.level = Level::Independent;
    let (_, calls) = two_that_advise_each_other(good(), goal);
    assert_eq!(calls, 2, "the same call is not made twice");
}

#[test]
fn a_remedy_with_new_arguments_for_ever_after_accepted_calls() {
    let mut script = good();
    let retries = (0..1_000).map(|x| advises(Remedy::RetryWith(json!({ "x": x }))));
    script.recover = retries.collect::<VecDeque<_>>().into();
    let mut goal = subgoal("one");
    goal.level = Level::Independent;
    let guests = Arc::new(script);
    let ended = run(&guests, setup(vec![goal]));
    assert!(matches!(closing(&ended.state, "one"), Closing::BudgetUsed { .. }), "{:?}", ended.kinds());
    assert_eq!(guests.calls.lock().unwrap().len(), 20);
}

/// A setup whose skill says that it has no effects, and is granted some.
fn granted(network: &str, folder: Option<Access>) -> Setup {
    let mut setup = setup(vec![subgoal("one")]);
    let files = folder.map(|access| Folder { access, path: "/data".to_owned() });
    setup.skills[0].granted = Granted {
        network: vec![Rule::parse(network).unwrap()],
        files: files.into_iter().collect(),
        ..Granted::default()
    };
    setup
}

#[test]
fn no_effects_and_a_post() {
    for (network, folder) in
        [("GET,POST https://a.test/*", None), ("GET https://a.test/*", Some(Access::ReadWrite))]
    {
        let mut setup = granted(network, folder);
        setup.task.mode = Mode::ReadWrite;
        let guests = Fetching::new(good(), Record::default());
        let (status, _) = run_fetching(&guests, setup.clone());
        assert_eq!(status, Finish::Stopped(Stop::Person), "{network}");
        assert!(guests.granted.lock().unwrap().is_empty());
        // The operator may know better.
        setup.skills[0].effects = Effects::Idempotent;
        let (status, _) = run_fetching(&guests, setup);
        assert_eq!(status, Finish::Ended(RunStatus::Done));
    }
}

#[test]
fn a_grant_that_changes_something_is_dropped_where_a_task_only_reads() {
    let guests = Fetching::new(good(), Record::default());
    let (status, _) = run_fetching(&guests, granted("GET,POST https://a.test/*", Some(Access::ReadWrite)));
    assert_eq!(status, Finish::Ended(RunStatus::Done));
    let granted = guests.granted.lock().unwrap();
    assert!(!granted[0].changes(), "{granted:?}");
    assert_eq!((granted[0].network.len(), granted[0].files.len()), (1, 1));
}
