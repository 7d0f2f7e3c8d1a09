use std::io::Read;
use std::sync::Mutex;

use checkrein_contract::cases::{Case, Expect, Given};
use checkrein_contract::event::{Ended, RunStatus};
use checkrein_contract::id::CallId;
use checkrein_contract::interface::{Artifact, DraftFact};
use checkrein_contract::limits::Limits;
use checkrein_contract::port::{NoFacts, NoObserver, Tree};
use checkrein_contract::record::Exchange;
use checkrein_contract::task::{Budget, InputFile, Mode, ReportSpec, Task};
use checkrein_contract::{grant::Granted, id::Timestamp, interface::Level};
use serde_json::Value;

use super::cases::Stated;
use super::*;

#[derive(Default)]
struct Memory(Mutex<HashMap<Digest, Vec<u8>>>);

impl Blobs for Memory {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        self.0.lock().unwrap().insert(Digest::of(bytes), bytes.to_vec());
        Ok(Digest::of(bytes))
    }

    fn put_from(&self, _: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        let missing = || StorageError::Missing { place: digest.to_string() };
        self.0.lock().unwrap().get(digest).cloned().ok_or_else(missing)
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }
}

/// A sandbox that nothing but an executor would be a fault of.
struct NoSandbox;

fn fault<T>() -> BoxFuture<'static, Ran<T>>
where
    T: Send + 'static,
{
    let end = End::Fault("the sandbox was asked".to_owned());
    let ran = Ran { end, used: Used::default(), log: String::new(), record: Record::default() };
    Box::pin(std::future::ready(ran))
}

impl Guests for NoSandbox {
    fn assess(&self, _: Setting, _: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        fault()
    }

    fn execute(&self, _: Setting, _: Call) -> BoxFuture<'_, Ran<Execution>> {
        panic!("an executor was to run")
    }

    fn verify(&self, _: Setting, _: Submission) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        fault()
    }

    fn recover(&self, _: Setting, _: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        fault()
    }
}

fn component() -> Digest {
    Digest::of("component")
}

fn args() -> Value {
    json!({ "table": "/in/t.csv" })
}

fn task() -> Task {
    let input =
        InputFile { name: "t".to_owned(), file: "t.csv".to_owned(), digest: Digest::of("t"), bytes: 1 };
    Task {
        name: "t".to_owned(),
        goal: "g".to_owned(),
        mode: Mode::ReadOnly,
        seed: 0,
        inputs: vec![input],
        parameters: Map::new(),
        budget: Budget::default(),
        stages: Vec::new(),
        report: ReportSpec { title: "r".to_owned(), text: None },
        level: Level::Independent,
        allow_contradictions: false,
    }
}

fn outcome(n: i64) -> Outcome {
    let fact = DraftFact {
        subject: "s/a".to_owned(),
        kind: "statistic".to_owned(),
        content: json!({ "n": n }),
        source: "/in/t.csv".to_owned(),
        supersedes: None,
    };
    Outcome { content: json!({}), facts: vec![fact], artifacts: Vec::new() }
}

fn with_file(n: i64) -> Outcome {
    let file =
        Artifact { path: "a.csv".to_owned(), title: "A".to_owned(), media_type: "text/csv".to_owned() };
    Outcome { artifacts: vec![file], ..outcome(n) }
}

fn failure(message: &str) -> Failure {
    Failure { kind: FailureKind::NotFound, message: message.to_owned(), evidence: json!({}) }
}

fn case(name: &str, given: Option<Outcome>, expect: Expect) -> Case {
    let given =
        given.map(|outcome| Given { skill: "skill".to_owned(), version: "1.0.0".to_owned(), outcome });
    Case {
        name: name.to_owned(),
        goal: String::new(),
        args: args(),
        settings: json!({}),
        attempt: 1,
        seed: 0,
        input: Vec::new(),
        artifacts: Vec::new(),
        work: vec![("a.csv".to_owned(), "x\n".to_owned())],
        given,
        expect,
    }
}

fn dry() -> DryGuests {
    let skill = Skill { name: "skill".to_owned(), cases: Cases::default() };
    DryGuests {
        sandbox: Arc::new(NoSandbox),
        blobs: Arc::new(Memory::default()),
        skills: HashMap::from([(component(), skill)]),
        inputs: Inputs::of(&task()),
        answers: BTreeMap::new(),
        recorded: Recorded::default(),
    }
}

fn with_cases(cases: Vec<Case>) -> DryGuests {
    let skill = Skill { name: "skill".to_owned(), cases: Cases(cases) };
    DryGuests { skills: HashMap::from([(component(), skill)]), ..dry() }
}

fn setting(component: Digest) -> Setting {
    Setting {
        component,
        limits: Limits::default(),
        input: None,
        artifacts: None,
        work: None,
        granted: Granted::default(),
        facts: Arc::new(NoFacts),
        observer: Arc::new(NoObserver),
        clock: Timestamp(0),
        seed: 0,
        recorded: None,
    }
}

fn call(number: u32) -> Call {
    let id = CallId::new(&"now".into(), &"de".into(), number).to_string();
    Call { id, args: args(), attempt: 1, seed: 0, settings: json!({}) }
}

fn ask(guests: &DryGuests, number: u32) -> Ran<Execution> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(guests.execute(setting(component()), call(number)))
}

fn result(ran: &Ran<Execution>) -> &Result<Outcome, Failure> {
    match &ran.end {
        End::Returned(execution) => &execution.result,
        other => panic!("{other:?}"),
    }
}

/// The events of an earlier run with one call of these arguments.
fn earlier(run: &str, dry: bool, ended: Ended, accepted: bool) -> Vec<Event> {
    let call = CallId::new(&run.into(), &"x".into(), 1);
    let setup = Setup {
        run: run.into(),
        task: task(),
        skills: Vec::new(),
        verifiers: Vec::new(),
        bindings: Vec::new(),
        planner: "triggers".to_owned(),
        engine: "none".to_owned(),
        clock: Timestamp(0),
        apart: false,
        person: checkrein_contract::event::Person::Never,
        dry,
        proposal_tokens: 0,
    };
    let exchange = Exchange {
        method: "GET".to_owned(),
        url: "https://a.org/".to_owned(),
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
    };
    let record = Record { exchanges: vec![exchange], ..Record::default() };
    let mut events = vec![
        Event::RunStarted { setup: Box::new(setup) },
        Event::CallIntended {
            call: call.clone(),
            subgoal: "x".into(),
            skill: "skill".to_owned(),
            version: "1.0.0".to_owned(),
            component: component(),
            args: args().as_object().unwrap().clone(),
            attempt: 1,
            seed: 0,
            ask: None,
        },
        Event::CallEnded { call: call.clone(), ended, log: None, record, attested: false },
        Event::BudgetSettled { call: call.clone(), used: Used { fuel: 7, ..Used::default() } },
    ];
    if accepted {
        events.push(Event::OutcomeAccepted { call, facts: Vec::new(), artifacts: Vec::new() });
    }
    events.push(Event::RunEnded { status: RunStatus::Done, reason: "r".to_owned() });
    events
}

/// Puts an outcome into a blob, and gives the ending that names it.
fn ended(outcome: &Outcome, blobs: &dyn Blobs) -> Ended {
    let mut whole = json!(outcome);
    whole["artifact_digests"] = json!({});
    let outcome = blobs.put(whole.to_string().as_bytes()).unwrap();
    Ended::Outcome { outcome, drafts: Vec::new(), artifacts: Vec::new() }
}

/// Guests that know these runs, the newest first.
fn after(runs: &[Vec<Event>], blobs: Memory) -> DryGuests {
    let mut recorded = Recorded::default();
    runs.iter().for_each(|events| recorded.add(events.iter()));
    DryGuests { recorded, blobs: Arc::new(blobs), ..dry() }
}

#[test]
fn the_task_answers_call_by_call_and_its_last_answer_again() {
    let answers = vec![DryAnswer::Failure(failure("first")), DryAnswer::Outcome(outcome(2))];
    let guests = DryGuests { answers: BTreeMap::from([("de".into(), answers)]), ..dry() };
    assert_eq!(result(&ask(&guests, 1)), &Err(failure("first")));
    for number in [2, 3, 9] {
        let ran = ask(&guests, number);
        assert_eq!(result(&ran), &Ok(outcome(2)));
        assert_eq!(ran.log, "dry run: answered from `[dry.de]` of the task, answer 2\n");
        assert_eq!(ran.used, Used::default());
    }
}

#[test]
fn a_stated_outcome_has_no_files() {
    let answers = vec![DryAnswer::Outcome(with_file(1))];
    let guests = DryGuests { answers: BTreeMap::from([("de".into(), answers)]), ..dry() };
    let ran = ask(&guests, 1);
    let Err(failure) = result(&ran) else { panic!("{ran:?}") };
    assert!(failure.message.contains("`a.csv`") && failure.message.contains("[dry.de]"), "{failure:?}");
}

#[test]
fn the_task_goes_before_what_was_recorded_and_that_before_the_cases() {
    let blobs = Memory::default();
    let runs = [earlier("then", false, ended(&outcome(5), &blobs), true)];
    let cases = Cases(vec![case("given", Some(outcome(6)), Expect::Accepted)]);
    let skill = Skill { name: "skill".to_owned(), cases };
    let mut guests = DryGuests { skills: HashMap::from([(component(), skill)]), ..after(&runs, blobs) };
    assert_eq!(result(&ask(&guests, 1)), &Ok(outcome(5)));
    guests.answers = BTreeMap::from([("de".into(), vec![DryAnswer::Outcome(outcome(4))])]);
    assert_eq!(result(&ask(&guests, 1)), &Ok(outcome(4)));
    (guests.answers, guests.recorded) = (BTreeMap::new(), Recorded::default());
    assert_eq!(result(&ask(&guests, 1)), &Ok(outcome(6)));
}

#[test]
fn a_recorded_call_answers_with_what_it_used_and_what_it_fetched() {
    let blobs = Memory::default();
    let runs = [earlier("then", false, ended(&outcome(1), &blobs), true)];
    let ran = ask(&after(&runs, blobs), 1);
    assert_eq!(result(&ran), &Ok(outcome(1)));
    assert_eq!(ran.used.fuel, 7);
    assert!(ran.record.fetched("https://a.org/"));
    assert_eq!(ran.log, "dry run: answered from the call then/x/1\n");
}

#[test]
fn a_recorded_call_with_other_arguments_or_inputs_says_nothing() {
    let blobs = Memory::default();
    let runs = [earlier("then", false, ended(&outcome(1), &blobs), true)];
    let mut guests = after(&runs, blobs);
    let other = Call { args: json!({ "table": "/in/u.csv" }), ..call(1) };
    assert!(matches!(&guests.perform(&component(), &other).end, End::Returned(one) if one.result.is_err()));
    let mut task = task();
    task.inputs[0].digest = Digest::of("other");
    guests.inputs = Inputs::of(&task);
    assert!(result(&ask(&guests, 1)).is_err());
}

#[test]
fn dry_runs_and_what_a_person_said_are_not_recorded_calls() {
    let blobs = Memory::default();
    let dry = earlier("then", true, ended(&outcome(1), &blobs), true);
    let mut said = earlier("then", false, ended(&outcome(1), &blobs), true);
    for event in &mut said {
        if let Event::CallEnded { attested, .. } = event {
            *attested = true;
        }
    }
    assert!(result(&ask(&after(&[dry, said], blobs), 1)).is_err());
}

#[test]
fn the_call_that_got_furthest_answers_and_of_equals_the_newest() {
    let blobs = Memory::default();
    let failed = earlier("newest", false, Ended::Failed { failure: failure("no") }, false);
    let rejected = earlier("newer", false, ended(&outcome(1), &blobs), false);
    let accepted = earlier("old", false, ended(&outcome(2), &blobs), true);
    let oldest = earlier("oldest", false, ended(&outcome(3), &blobs), true);
    let cancelled = earlier("stopped", false, Ended::Cancelled, false);
    let ran = ask(&after(&[cancelled, failed, rejected, accepted, oldest], blobs), 1);
    assert_eq!(result(&ran), &Ok(outcome(2)));
}

#[test]
fn a_recorded_outcome_that_is_lost_stops_the_run() {
    let runs = [earlier("then", false, ended(&outcome(1), &Memory::default()), true)];
    let ran = ask(&after(&runs, Memory::default()), 1);
    assert!(matches!(ran.end, End::Storage(StorageError::Missing { .. })), "{ran:?}");
}

#[test]
fn a_case_answers_with_the_outcome_that_it_gives_and_its_files() {
    let guests = with_cases(vec![
        case("a lie", Some(outcome(9)), Expect::Rejected),
        case("holds", Some(with_file(1)), Expect::Accepted),
    ]);
    let ran = ask(&guests, 1);
    assert_eq!(result(&ran), &Ok(with_file(1)));
    let End::Returned(execution) = &ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.artifacts[0].digest, Digest::of("x\n"));
    assert_eq!(guests.blobs.get(&Digest::of("x\n")).unwrap(), b"x\n");
    assert_eq!(ran.log, "dry run: answered from the case \"holds\" of `skill`\n");
}

#[test]
fn a_case_without_the_file_that_it_names_is_a_failure() {
    let bare = Case { work: Vec::new(), ..case("holds", Some(with_file(1)), Expect::Accepted) };
    let ran = ask(&with_cases(vec![bare]), 1);
    let Err(failure) = result(&ran) else { panic!("{ran:?}") };
    assert!(failure.message.contains("`a.csv`"), "{failure:?}");
}

#[test]
fn a_failure_is_taken_from_cases_only_where_all_expect_it() {
    let expects = |kind| case("fails", None, Expect::Failure(kind));
    let find = |cases: Vec<Case>| match Cases(cases).find("skill", &args()) {
        Some(Stated::Failure(_, kind)) => Some(kind),
        Some(Stated::Outcome(..)) => panic!("no case gives an outcome"),
        None => None,
    };
    let kind = FailureKind::NotFound;
    assert_eq!(find(vec![expects(kind), expects(kind)]), Some(kind));
    assert_eq!(find(vec![expects(kind), case("goes", None, Expect::Outcome)]), None);
    assert_eq!(find(vec![expects(kind), expects(FailureKind::InvalidArgs)]), None);
    assert_eq!(find(vec![Case { args: json!({}), ..expects(kind) }]), None);
    assert_eq!(find(Vec::new()), None);
}

#[test]
fn what_a_case_says_of_another_skill_says_nothing_of_this_one() {
    let cases = Cases(vec![case("holds", Some(outcome(1)), Expect::Accepted)]);
    assert!(cases.find("skill", &args()).is_some());
    assert_eq!(cases.find("other", &args()), None);
}

#[test]
fn a_call_that_nothing_is_known_of_says_what_to_add() {
    let ran = ask(&dry(), 1);
    let Err(failure) = result(&ran) else { panic!("{ran:?}") };
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(failure.message.contains("`[dry.de]`") && failure.message.contains("`skill`"), "{failure:?}");
}

#[test]
fn a_component_that_is_not_of_the_run_is_a_fault() {
    let ran = dry().perform(&Digest::of("other"), &call(1));
    assert!(matches!(ran.end, End::Fault(_)), "{ran:?}");
}

#[test]
fn all_other_parts_are_asked_in_the_sandbox() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let subgoal = Subgoal {
        id: "de".to_owned(),
        goal: "g".to_owned(),
        args: json!({}),
        evidence: Vec::new(),
        criteria: Vec::new(),
    };
    let ran = runtime.block_on(dry().assess(setting(component()), subgoal));
    assert!(matches!(ran.end, End::Fault(why) if why == "the sandbox was asked"));
}

#[test]
fn the_place_of_a_call_is_in_its_id() {
    let id = CallId::new(&"20261130-abcdef".into(), &"de".into(), 12);
    assert_eq!(place(id.as_str()), ("de".into(), 12));
    assert_eq!(place("odd"), ("odd".into(), 1));
}
