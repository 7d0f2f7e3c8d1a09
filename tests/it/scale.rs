//! A run of ten thousand subgoals: what a step costs at its end, what resuming costs, and how much
//! memory it takes. The guests are scripted, so that core, driver and store are all that is measured.
//!
//! The large one is run by hand, since it measures:
//!
//! ```sh
//! TMPDIR=/dev/shm cargo test --release --workspace --test it -- --ignored --nocapture ten_thousand
//! ```
//!
//! On a disk in memory, what is measured is the core, the driver and the store; on any other it is how
//! long that disk takes to keep what it is given, which other work on the machine doubles.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_contract::Digest;
use checkrein_contract::event::{ComponentCard, Event, Logged, Person, RunStatus, Setup, Stop};
use checkrein_contract::grant::Granted;
use checkrein_contract::id::{CallId, RunId, SubgoalId, Timestamp};
use checkrein_contract::interface::{
    Advice, Assessment, Body, Call, Check, DraftFact, Failure, Level, Mishap, Outcome, Remedy, Subgoal,
    Submission, Verdict,
};
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::manifest::{Capabilities, Effects, Kind, Manifest};
use checkrein_contract::port::{
    Blobs, BoxFuture, End, Execution, Guests, NoObserver, Observer, Ran, Setting,
};
use checkrein_contract::record::Record;
use checkrein_contract::task::{Budget, InputFile, Mode, ReportSpec, Stage, SubgoalSpec, Task};
use checkrein_harness::driver::{Clock, Watcher, World};
use checkrein_harness::{Driver, Finish, Resumed, State as Run};
use checkrein_store::{Kept, State};
use serde_json::{Map, json};
use tokio::sync::Notify;

/// A skill that states one fact for each subgoal.
struct Scripted;

fn ran<T>(answer: T) -> BoxFuture<'static, Ran<T>>
where
    T: Send + 'static,
{
    let used = Used { fuel: 10, ..Used::default() };
    let ran = Ran { end: End::Returned(answer), used, log: String::new(), record: Record::default() };
    Box::pin(std::future::ready(ran))
}

impl Guests for Scripted {
    fn assess(&self, _: Setting, _: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        ran(Assessment { score: 50, reason: "scripted".to_owned(), args: None })
    }

    fn execute(&self, _: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        let n = call.args["n"].as_u64().unwrap();
        let fact = DraftFact {
            subject: format!("work/{n}"),
            kind: "statistic".to_owned(),
            content: json!({ "n": n, "square": n * n, "text": "x".repeat(200) }),
            source: "/in/in.csv".to_owned(),
            supersedes: None,
        };
        let outcome = Outcome { content: json!({}), facts: vec![fact], artifacts: Vec::new() };
        ran(Execution { result: Ok(outcome), artifacts: Vec::new() })
    }

    fn verify(&self, _: Setting, submission: Submission) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        let Body::Performed { call, .. } = submission.body else { panic!("a call is judged") };
        let about = vec![format!("work/{}", call.args["n"])];
        let check = Check { rule: "square".to_owned(), about, note: "holds".to_owned() };
        ran(Ok(Verdict { checks: vec![check], findings: Vec::new() }))
    }

    fn recover(&self, _: Setting, _: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        ran(Advice { diagnosis: "none".to_owned(), remedy: Remedy::GiveUp("none".to_owned()) })
    }
}

struct Now;

impl Clock for Now {
    fn now(&self) -> Timestamp {
        Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
    }

    fn until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(at.0.saturating_sub(self.now().0))))
    }
}

/// Notes when each subgoal closed, and how much memory that took; stops the run after some.
struct Watch {
    closed: Mutex<Vec<(Instant, u64)>>,
    stop_after: usize,
    stop: Arc<Notify>,
}

impl Watcher for Watch {
    fn appended(&self, events: &[Logged], _: &Run) {
        let mut closed = self.closed.lock().unwrap();
        for logged in events.iter().filter(|logged| matches!(logged.event, Event::SubgoalClosed { .. })) {
            let _ = logged;
            closed.push((Instant::now(), resident()));
            if closed.len() == self.stop_after {
                self.stop.notify_one();
            }
        }
    }

    fn troubled(&self, trouble: &checkrein_contract::port::StorageError) {
        panic!("{trouble}");
    }

    fn observer(&self, _: &CallId, _: &SubgoalId) -> Arc<dyn Observer> {
        Arc::new(NoObserver)
    }
}

/// MiB of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 / (1 << 20)
}

fn card() -> ComponentCard {
    ComponentCard {
        component: Digest::of("skill"),
        manifest: Manifest {
            kind: Kind::Skill,
            name: "skill".to_owned(),
            version: "1.0.0".to_owned(),
            description: "scripted".to_owned(),
            effects: Effects::None,
            facts: vec!["work/*".to_owned()],
            evidence: Vec::new(),
            requires: Vec::new(),
            locks: Vec::new(),
            terms: vec!["work".to_owned()],
            args: Some(json!({ "type": "object" })),
            capabilities: Capabilities::default(),
        },
        limits: Limits::default(),
        facts: vec!["work/*".to_owned()],
        settings: json!({}),
        granted: Granted::default(),
        effects: Effects::None,
        max_score: 100,
    }
}

/// Chains of ten.
fn spec(n: usize) -> SubgoalSpec {
    SubgoalSpec {
        id: format!("g{n}").into(),
        goal: "some work".to_owned(),
        skill: None,
        after: if n.is_multiple_of(10) { Vec::new() } else { vec![format!("g{}", n - 1).into()] },
        args: Map::from_iter([("n".to_owned(), json!(n))]),
        evidence: vec!["statistic".to_owned()],
        criteria: Vec::new(),
        attempts: 3,
        level: Level::SelfChecked,
        budget: Budget::default(),
    }
}

fn setup(run: &RunId, subgoals: usize, input: Digest) -> Setup {
    let subgoals = (0..subgoals).map(spec).collect();
    let stage = Stage { id: "stage".into(), title: None, budget: Budget::default(), subgoals };
    Setup {
        run: run.clone(),
        task: Task {
            name: "scale".to_owned(),
            goal: "much work".to_owned(),
            mode: Mode::ReadOnly,
            seed: 0,
            inputs: vec![InputFile { name: "in".into(), file: "in.csv".into(), digest: input, bytes: 2 }],
            parameters: Map::new(),
            budget: Budget::default(),
            stages: vec![stage],
            report: ReportSpec { title: "r".to_owned(), text: None },
            level: Level::SelfChecked,
            allow_contradictions: false,
        },
        skills: vec![card()],
        verifiers: Vec::new(),
        bindings: Vec::new(),
        planner: "triggers".to_owned(),
        engine: "none".to_owned(),
        clock: Timestamp(0),
        apart: false,
        person: Person::Never,
        dry: false,
        proposal_tokens: 0,
    }
}

/// What was measured.
#[derive(Debug)]
struct Measured {
    /// Milliseconds for each subgoal in the first and the last tenth.
    first: f64,
    last: f64,
    /// MiB after the first tenth, and at the end.
    memory: (u64, u64),
    /// Resuming near the end: from the snapshot, and by folding the whole log.
    resumed: Duration,
    folded: Duration,
    events: u64,
}

/// What a log folds to, by its snapshot and what came after.
fn load(store: &State, run: &RunId) -> Run {
    let Kept::At { seq, digest, folded } = store.snapshot(run).unwrap() else { panic!("no snapshot") };
    let mut state = Run::of_snapshot(&folded).unwrap();
    for logged in store.chained_after(run, seq, digest).unwrap() {
        state.apply(logged.at, &logged.event).unwrap();
    }
    state
}

fn measure(subgoals: usize) -> Measured {
    let folder = tempfile::tempdir().unwrap();
    let store = State::open(&folder.path().join("state")).unwrap();
    let run = RunId::from("20261130-scale0");
    let blobs: Arc<dyn Blobs> = Arc::new(store.blobs());
    let input = blobs.put(b"in").unwrap();
    let stop = Arc::new(Notify::new());
    let stop_after = subgoals * 9 / 10;
    let watch = Arc::new(Watch { closed: Mutex::default(), stop_after, stop: stop.clone() });
    let world = World { guests: Arc::new(Scripted), blobs, clock: Arc::new(Now), watcher: watch.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver =
        Driver::start(world.clone(), store.lease(&run).unwrap(), setup(&run, subgoals, input)).unwrap();
    let stopping = async move {
        stop.notified().await;
        Stop::Interrupted
    };
    let (finish, at_stop) = runtime.block_on(driver.run(stopping)).unwrap();
    assert_eq!(finish, Finish::Stopped(Stop::Interrupted));

    let begun = Instant::now();
    let state = load(&store, &run);
    let resumed = begun.elapsed();
    let begun = Instant::now();
    let events = store.chained_after(&run, 0, Digest::ZERO).unwrap();
    let folded = Run::fold(events.iter().map(|logged| (logged.at, &logged.event))).unwrap();
    let whole = begun.elapsed();
    assert!(folded.snapshot() == at_stop.snapshot() && state.snapshot() == at_stop.snapshot());

    let (engine, in_force) = ("none".to_owned(), None);
    let log = store.lease(&run).unwrap();
    let driver = Driver::resume(world, log, state, Resumed { engine, in_force }).unwrap();
    let (finish, state) = runtime.block_on(driver.run(std::future::pending())).unwrap();
    assert_eq!(finish, Finish::Ended(RunStatus::Done));
    assert_eq!(state.facts.len(), subgoals);
    let closed = watch.closed.lock().unwrap();
    // The last tenth was done after the run was resumed.
    let tenth = stop_after / 10;
    let each = |from: usize| {
        let took = closed[from + tenth - 1].0.duration_since(closed[from].0);
        took.as_secs_f64() * 1000.0 / tenth as f64
    };
    Measured {
        first: each(0),
        last: each(stop_after - tenth),
        memory: (closed[tenth].1, closed[stop_after - 1].1),
        resumed,
        folded: whole,
        events: events.len() as u64,
    }
}

#[test]
fn a_run_of_many_subgoals_is_stopped_and_goes_on() {
    let Measured { events, memory, resumed, folded, .. } = measure(300);
    assert!(events > 270 * 10, "{events}");
    assert!(memory.0 > 0 && memory.1 > 0 && resumed > Duration::ZERO && folded > Duration::ZERO);
}

#[test]
#[ignore = "it measures, for a minute or two in a release build"]
fn ten_thousand_subgoals() {
    let measured = measure(10_000);
    println!(
        "{measured:#?}, a step at the end costs {:.2} of one at the start",
        measured.last / measured.first
    );
}
