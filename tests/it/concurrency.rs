//! Subgoals that can run side by side do.

use std::sync::Arc;

use checkrein_contract::event::{Binding, ComponentCard, Person, RunStatus, Setup};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp};
use checkrein_contract::interface::Level;
use checkrein_contract::limits::Limits;
use checkrein_contract::port::{Blobs, BoxFuture, Observer};
use checkrein_contract::task::{Budget, InputFile, Mode, ReportSpec, Stage, SubgoalSpec, Task};
use checkrein_harness::Finish;
use checkrein_harness::driver::{Driver, Watcher, World};
use checkrein_sandbox::{Places, Sandbox};
use checkrein_tests::{Place, dist};
use serde_json::{Map, json};
use tokio::sync::Barrier;

/// Lets a progress line through when another call has one too: two calls that run one after the
/// other would wait for ever.
struct Both(Arc<Barrier>);

impl Watcher for Both {
    fn appended(&self, _: &[checkrein_contract::event::Logged], _: &checkrein_harness::State) {}

    fn troubled(&self, trouble: &checkrein_contract::port::StorageError) {
        panic!("{trouble}");
    }

    fn observer(&self, _: &CallId, _: &SubgoalId) -> Arc<dyn Observer> {
        Arc::new(Both(self.0.clone()))
    }
}

impl Observer for Both {
    fn log(&self, _: &str, _: &str) {}

    fn progress(&self, _: u32, _: u32, _: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.wait().await;
        })
    }
}

fn subgoal(id: &str) -> SubgoalSpec {
    let args =
        json!({ "documents": [format!("/in/{id}.txt")], "fields": [{ "name": "n", "pattern": "n=(\\d)" }] });
    SubgoalSpec {
        id: id.into(),
        goal: "read it".to_owned(),
        skill: Some("document-table".to_owned()),
        after: Vec::new(),
        args: args.as_object().cloned().unwrap(),
        evidence: Vec::new(),
        criteria: Vec::new(),
        attempts: 1,
        level: Level::SelfChecked,
        budget: Budget::default(),
    }
}

#[test]
fn two_skills_that_wait_for_each_others_progress_line_both_run() {
    let place = Place::new();
    let state = checkrein_store::State::open(&place.state()).unwrap();
    let places = Places { cache: place.cache(), scratch: place.state().join("scratch") };
    let sandbox = Sandbox::new(checkrein_sandbox::Options::new(places), Arc::new(state.blobs())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let loaded = runtime.block_on(sandbox.load(dist().join("document-table.wasm").as_path())).unwrap();
    let inputs = ["one", "two"].map(|name| {
        let digest = state.blobs().put(format!("n={}", name.len()).as_bytes()).unwrap();
        InputFile { name: name.to_owned(), file: format!("{name}.txt"), digest, bytes: 3 }
    });
    let stage = Stage {
        id: "s".into(),
        title: None,
        budget: Budget::default(),
        subgoals: vec![subgoal("one"), subgoal("two")],
    };
    let setup = Setup {
        run: "run".into(),
        task: Task {
            name: "t".to_owned(),
            goal: "g".to_owned(),
            mode: Mode::ReadOnly,
            seed: 0,
            inputs: inputs.to_vec(),
            parameters: Map::new(),
            budget: Budget::default(),
            stages: vec![stage],
            report: ReportSpec { title: "r".to_owned(), text: None },
            level: Level::SelfChecked,
            allow_contradictions: false,
        },
        skills: vec![ComponentCard {
            component: loaded.digest,
            limits: Limits::default(),
            facts: loaded.manifest.facts.clone(),
            settings: json!({}),
            granted: Default::default(),
            effects: checkrein_contract::manifest::Effects::None,
            max_score: 100,
            manifest: loaded.manifest,
        }],
        verifiers: Vec::new(),
        bindings: Vec::<Binding>::new(),
        planner: "triggers".to_owned(),
        engine: "test".to_owned(),
        clock: Timestamp(0),
        apart: false,
        person: Person::Never,
        dry: false,
        proposal_tokens: 0,
    };
    let log = state.lease(&setup.run).unwrap();
    let world = World {
        guests: Arc::new(sandbox),
        blobs: Arc::new(state.blobs()),
        clock: Arc::new(checkrein::world::SystemClock::new()),
        watcher: Arc::new(Both(Arc::new(Barrier::new(2)))),
    };
    let driver = Driver::start(world, log, setup).unwrap();
    let (status, _) = runtime.block_on(driver.run(std::future::pending())).unwrap();
    assert_eq!(status, Finish::Ended(RunStatus::Done));
}
