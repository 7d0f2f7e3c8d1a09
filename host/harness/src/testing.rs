//! A world in memory for tests: guests that do what a script says, a log and blobs that forget.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};

use checkrein_contract::Digest;
use checkrein_contract::ask::Letter;
use checkrein_contract::event::{Binding, ComponentCard, Event, Logged, Person, RunStatus, Setup};
use checkrein_contract::grant::Granted;
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::interface::{
    Advice, Assessment, Call, Check, DraftFact, Failure, FailureKind, Finding, Level, Mishap, Outcome,
    Remedy, Severity, Subgoal, Submission, Verdict,
};
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::manifest::{Capabilities, Effects, Kind, Manifest};
use checkrein_contract::port::{
    Beat, Blobs, BoxFuture, End, Execution, Guests, Log, Ran, Setting, StorageError, Tree,
};
use checkrein_contract::record::Record;
use checkrein_contract::task::{Budget, Criterion, InputFile, Mode, ReportSpec, Stage, SubgoalSpec, Task};
use serde_json::{Map, Value, json};

use crate::driver::{Clock, Driver, Finish, NoWatcher, World};
use crate::observation::{Observation, observe};
use crate::state::State;

/// What the next invocation of a part gives; the last one is given again.
pub(crate) type Script<T> = Mutex<VecDeque<End<T>>>;

/// What a judge says, one time after the other.
pub(crate) type Verdicts = VecDeque<End<Result<Verdict, Failure>>>;

/// Guests that follow a script, whatever the component.
pub(crate) struct Scripted {
    pub(crate) score: u8,
    /// What the triggers of some components say in place of that, with arguments.
    pub(crate) says: HashMap<Digest, (u8, Value)>,
    pub(crate) execute: Script<Result<Outcome, Failure>>,
    /// By the name of the judge: the skill's or the verifier's component digest.
    pub(crate) verify: Mutex<HashMap<Digest, Verdicts>>,
    pub(crate) recover: Script<Advice>,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) mishaps: Mutex<Vec<Mishap>>,
    pub(crate) verified: Mutex<Vec<Digest>>,
}

fn next<T: Clone>(script: &mut VecDeque<End<T>>) -> End<T> {
    if script.len() > 1 { script.pop_front().unwrap() } else { script.front().unwrap().clone() }
}

fn ran<T>(end: End<T>) -> Ran<T> {
    Ran { end, used: Used { fuel: 10, ..Used::default() }, log: String::new(), record: Record::default() }
}

impl Guests for Scripted {
    fn assess(&self, setting: Setting, _: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        let (score, args) = match self.says.get(&setting.component) {
            Some((score, args)) => (*score, Some(args.clone())),
            None => (self.score, None),
        };
        let said = Assessment { score, reason: "scripted".to_owned(), args };
        Box::pin(std::future::ready(ran(End::Returned(said))))
    }

    fn execute(&self, _: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        self.calls.lock().unwrap().push(call);
        let end = match next(&mut self.execute.lock().unwrap()) {
            End::Returned(result) => End::Returned(Execution { result, artifacts: Vec::new() }),
            End::Limited(hit) => End::Limited(hit),
            End::Trapped(message) => End::Trapped(message),
            End::Invalid(problem) => End::Invalid(problem),
            End::Storage(error) => End::Storage(error),
            End::Fault(detail) => End::Fault(detail),
        };
        Box::pin(std::future::ready(ran(end)))
    }

    fn verify(&self, setting: Setting, _: Submission) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        self.verified.lock().unwrap().push(setting.component);
        let end = next(self.verify.lock().unwrap().get_mut(&setting.component).unwrap());
        Box::pin(std::future::ready(ran(end)))
    }

    fn recover(&self, _: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        self.mishaps.lock().unwrap().push(mishap);
        let end = next(&mut self.recover.lock().unwrap());
        Box::pin(std::future::ready(ran(end)))
    }
}

/// Blobs in memory.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<Digest, Vec<u8>>>);

struct NoTree;

impl Tree for NoTree {
    fn path(&self) -> &Path {
        Path::new("/nowhere")
    }
}

impl Blobs for Memory {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        self.0.lock().unwrap().insert(Digest::of(bytes), bytes.to_vec());
        Ok(Digest::of(bytes))
    }

    fn put_from(&self, reader: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        Ok((self.put(&bytes)?, bytes.len() as u64))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        let missing = || StorageError::Missing { place: digest.to_string() };
        self.0.lock().unwrap().get(digest).cloned().ok_or_else(missing)
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Ok(Box::new(NoTree))
    }
}

/// A log in memory; it fails when it is full.
#[derive(Clone, Default)]
pub(crate) struct MemoryLog {
    pub(crate) events: Arc<Mutex<Vec<(Timestamp, Event)>>>,
    pub(crate) full_after: Option<usize>,
    /// Transactions.
    pub(crate) appends: Arc<Mutex<usize>>,
    /// Letters that wait, and those that were taken.
    pub(crate) inbox: Arc<Mutex<Vec<Letter>>>,
    pub(crate) snapshot: Arc<Mutex<Option<Vec<u8>>>>,
    pub(crate) epoch: u64,
}

impl Log for MemoryLog {
    fn append(&mut self, _: &RunId, at: Timestamp, events: &[Event]) -> Result<Vec<Logged>, StorageError> {
        let mut log = self.events.lock().unwrap();
        if self.full_after.is_some_and(|most| log.len() + events.len() > most) {
            return Err(StorageError::Full { place: "memory".to_owned() });
        }
        log.extend(events.iter().map(|event| (at, event.clone())));
        *self.appends.lock().unwrap() += 1;
        Ok(Vec::new())
    }

    fn lease(&self) -> (u64, String) {
        (self.epoch.max(1), "test".to_owned())
    }

    fn beat(&mut self, _: &Beat, after: u64) -> Result<Vec<Letter>, StorageError> {
        Ok(self.inbox.lock().unwrap().iter().filter(|letter| letter.id > after).cloned().collect())
    }

    fn keep_snapshot(&mut self, folded: &[u8]) -> Result<(), StorageError> {
        *self.snapshot.lock().unwrap() = Some(folded.to_vec());
        Ok(())
    }
}

/// A clock that moves when it is waited for.
#[derive(Default)]
pub(crate) struct Moved(Arc<Mutex<u64>>);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp(*self.0.lock().unwrap())
    }

    fn until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let clock = self.0.clone();
        Box::pin(async move {
            let mut now = clock.lock().unwrap();
            *now = (*now).max(at.0);
        })
    }
}

/// The component of the skill named so.
pub(crate) fn component(name: &str) -> Digest {
    Digest::of(name)
}

pub(crate) fn card(name: &str, kind: Kind) -> ComponentCard {
    ComponentCard {
        component: component(name),
        manifest: Manifest {
            kind,
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            description: "scripted".to_owned(),
            effects: Effects::None,
            facts: vec!["s/*".to_owned()],
            evidence: Vec::new(),
            requires: Vec::new(),
            locks: Vec::new(),
            terms: vec!["goal".to_owned()],
            args: Some(
                json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "additionalProperties": false }),
            ),
            capabilities: Capabilities::default(),
        },
        limits: Limits::default(),
        facts: vec!["s/*".to_owned()],
        settings: json!({}),
        granted: Granted::default(),
        effects: Effects::None,
        max_score: 100,
    }
}

pub(crate) fn subgoal(id: &str) -> SubgoalSpec {
    SubgoalSpec {
        id: id.into(),
        goal: "a goal".to_owned(),
        skill: None,
        after: Vec::new(),
        args: Map::new(),
        evidence: vec!["statistic".to_owned()],
        criteria: vec![Criterion { text: "it is there".to_owned(), check: "has_fact('s/a')".to_owned() }],
        attempts: 3,
        level: Level::SelfChecked,
        budget: Budget { calls: Some(20), ..Budget::default() },
    }
}

pub(crate) fn setup(subgoals: Vec<SubgoalSpec>) -> Setup {
    Setup {
        run: "run".into(),
        task: Task {
            name: "t".to_owned(),
            goal: "g".to_owned(),
            mode: Mode::ReadOnly,
            seed: 0,
            inputs: vec![InputFile {
                name: "in".to_owned(),
                file: "in.csv".to_owned(),
                digest: Digest::of("in"),
                bytes: 2,
            }],
            parameters: Map::new(),
            budget: Budget::default(),
            stages: vec![Stage { id: "stage".into(), title: None, budget: Budget::default(), subgoals }],
            report: ReportSpec { title: "r".to_owned(), text: None },
            level: Level::Independent,
            allow_contradictions: false,
        },
        skills: vec![card("skill", Kind::Skill)],
        verifiers: Vec::new(),
        bindings: Vec::new(),
        planner: "triggers".to_owned(),
        engine: "none".to_owned(),
        clock: Timestamp(0),
        apart: false,
        person: Person::Approvals,
        dry: false,
        proposal_tokens: 0,
    }
}

/// The same with a verifier bound to everything.
pub(crate) fn with_verifier(mut setup: Setup) -> Setup {
    setup.verifiers = vec![card("verifier", Kind::Verifier)];
    setup.bindings = vec![Binding {
        verifier: "verifier".to_owned(),
        on: vec!["*".to_owned()],
        on_facts: Vec::new(),
        settings: json!({}),
    }];
    setup
}

pub(crate) fn draft(subject: &str, content: Value) -> DraftFact {
    DraftFact {
        subject: subject.to_owned(),
        kind: "statistic".to_owned(),
        content,
        source: "/in/in.csv".to_owned(),
        supersedes: None,
    }
}

pub(crate) fn outcome(facts: Vec<DraftFact>) -> End<Result<Outcome, Failure>> {
    End::Returned(Ok(Outcome { content: json!({}), facts, artifacts: Vec::new() }))
}

pub(crate) fn failure(kind: FailureKind) -> End<Result<Outcome, Failure>> {
    End::Returned(Err(Failure { kind, message: "no".to_owned(), evidence: json!({}) }))
}

pub(crate) fn checks(about: &[&str]) -> End<Result<Verdict, Failure>> {
    let about = about.iter().map(|&about| about.to_owned()).collect();
    let check = Check { rule: "rule".to_owned(), about, note: "holds".to_owned() };
    End::Returned(Ok(Verdict { checks: vec![check], findings: Vec::new() }))
}

pub(crate) fn finds(rule: &str) -> End<Result<Verdict, Failure>> {
    let finding = Finding {
        rule: rule.to_owned(),
        severity: Severity::Error,
        message: "wrong".to_owned(),
        expected: json!(1),
        actual: json!(2),
        location: Some("/facts/0".to_owned()),
        suggestion: None,
    };
    End::Returned(Ok(Verdict { checks: Vec::new(), findings: vec![finding] }))
}

pub(crate) fn cannot_judge() -> End<Result<Verdict, Failure>> {
    End::Trapped("unreachable".to_owned())
}

pub(crate) fn advises(remedy: Remedy) -> End<Advice> {
    End::Returned(Advice { diagnosis: "d".to_owned(), remedy })
}

/// A script in which all goes well.
pub(crate) fn good() -> Scripted {
    Scripted {
        score: 50,
        says: HashMap::new(),
        execute: Mutex::new(VecDeque::from([outcome(vec![draft("s/a", json!({ "n": 1 }))])])),
        verify: Mutex::new(HashMap::from([
            (component("skill"), VecDeque::from([checks(&["s/a"])])),
            (component("verifier"), VecDeque::from([checks(&["s/a"])])),
        ])),
        recover: Mutex::new(VecDeque::from([advises(Remedy::GiveUp("enough".to_owned()))])),
        calls: Mutex::default(),
        mishaps: Mutex::default(),
        verified: Mutex::default(),
    }
}

/// A run that has ended, with its events.
pub(crate) struct Ended {
    pub(crate) status: RunStatus,
    pub(crate) state: State,
    pub(crate) events: Vec<(Timestamp, Event)>,
}

impl Ended {
    /// What the planner was told, of whatever subgoal.
    pub(crate) fn observations(&self) -> Vec<Observation> {
        let told = self.events.iter().filter_map(|(_, event)| observe(event));
        told.map(|(_, observation)| observation).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|(_, event)| event.kind()).collect()
    }
}

pub(crate) fn world(guests: Arc<Scripted>) -> World {
    World {
        guests,
        blobs: Arc::new(Memory::default()),
        clock: Arc::new(Moved::default()),
        watcher: Arc::new(NoWatcher),
    }
}

/// Runs a setup to its end, and checks that folding the log gives the same state.
pub(crate) fn run(guests: &Arc<Scripted>, setup: Setup) -> Ended {
    let log = MemoryLog::default();
    let events = log.events.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let driver = Driver::start(world(guests.clone()), log, setup).unwrap();
    let (finish, state) = runtime.block_on(driver.run(std::future::pending())).unwrap();
    let events = events.lock().unwrap().clone();
    folds_to(&events, &state);
    let Finish::Ended(status) = finish else { panic!("it did not end: {finish:?}") };
    Ended { status, state, events }
}

/// Folding the log gives this state, and so does reading its snapshot back.
pub(crate) fn folds_to(events: &[(Timestamp, Event)], state: &State) {
    let folded = State::fold(events.iter().map(|(at, event)| (*at, event))).unwrap();
    let json = |state: &State| String::from_utf8(state.snapshot()).unwrap();
    assert_eq!(json(&folded), json(state), "folding the log gives another state");
    let read = State::of_snapshot(&state.snapshot()).expect("a snapshot reads back");
    assert_eq!(json(&read), json(state), "a snapshot reads back as another state");
}

/// Blobs that take everything and give nothing back.
#[derive(Default)]
pub(crate) struct Forgetful;

impl Blobs for Forgetful {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        Ok(Digest::of(bytes))
    }

    fn put_from(&self, _: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        Ok((Digest::ZERO, 0))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        Err(StorageError::Missing { place: digest.to_string() })
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Ok(Box::new(NoTree))
    }
}
