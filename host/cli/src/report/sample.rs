//! A made-up run for the tests: two stages, an attempt that fails and one that is accepted, a
//! verifier, a figure.

use std::collections::HashMap;
use std::io::Read;

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Binding, Closing, ComponentCard, CriterionState, Draft, Ended, Event, FactEntry, Judge, Judgement,
    Logged, Person, RunStatus, Setup, StoredArtifact, chain,
};
use checkrein_contract::grant::Granted;
use checkrein_contract::id::{CallId, FactId, RunId, SubgoalId, Timestamp};
use checkrein_contract::interface::{
    Artifact, Check, DraftFact, Failure, FailureKind, Level, Outcome, Remedy,
};
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::manifest::{Capabilities, Effects, Kind, Manifest};
use checkrein_contract::port::{Blobs, StorageError, Tree};
use checkrein_contract::record::Record;
use checkrein_contract::task::{Budget, Criterion, InputFile, Mode, ReportSpec, Stage, SubgoalSpec, Task};
use serde_json::{Map, Value, json};

use super::view::RunView;

/// Blobs in memory.
#[derive(Default)]
pub(super) struct Memory(HashMap<Digest, Vec<u8>>);

impl Memory {
    fn keep(&mut self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        self.0.insert(digest, bytes.to_vec());
        digest
    }
}

impl Blobs for Memory {
    fn put(&self, _: &[u8]) -> Result<Digest, StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }

    fn put_from(&self, _: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        self.0.get(digest).cloned().ok_or(StorageError::Missing { place: digest.to_string() })
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }
}

/// What a test may change.
pub(super) struct Sample {
    /// The text of the report.
    pub(super) text: Option<String>,
    /// Facts of the accepted call: subject and content.
    pub(super) facts: Vec<(String, Value)>,
    /// The message of the call that fails.
    pub(super) message: String,
    /// The figure.
    pub(super) figure: String,
    /// Its title.
    pub(super) figure_title: String,
    /// The level of the facts.
    pub(super) level: Level,
    /// The note of the verifier's check.
    pub(super) note: String,
    /// What every call and judge did at its walls.
    pub(super) record: Record,
}

const TEXT: &str = include_str!("sample.md");

impl Default for Sample {
    fn default() -> Self {
        let mut facts = vec![
            (
                "de/summary".to_owned(),
                json!({"kept": 7908, "significant": 623, "up": 371, "down": 252, "significant_welch": 183}),
            ),
            ("de/prior".to_owned(), json!({"df": 2.573136989, "variance": 0.0292817285})),
        ];
        for (gene, change, t, p, q) in [
            ("FBgn0039155", -4.5283090, -34.271869, 1.3921458e-9, 1.0618633e-5),
            ("FBgn0025111", 2.9452952, 31.406632, 2.6855419e-9, 1.0618633e-5),
            ("FBgn0034736", -3.4091678, -29.035419, 4.8452729e-9, 1.2772139e-5),
            ("FBgn0035085", -2.4915424, -26.733252, 9.0086640e-9, 1.7810129e-5),
        ] {
            facts.push((
                format!("de/gene/{gene}"),
                json!({"log2_fold_change": change, "t": t, "p": p, "q": q}),
            ));
        }
        Sample {
            text: Some(TEXT.to_owned()),
            facts,
            message: "annotation names sample `treated1fb`, which the counts do not have".to_owned(),
            figure: volcano(),
            figure_title: "Fold change and significance of 7,908 genes".to_owned(),
            level: Level::Independent,
            note: "7,908 genes recomputed from /in, largest relative difference 3.1e-12".to_owned(),
            record: Record::default(),
        }
    }
}

impl Sample {
    pub(super) fn view(&self) -> RunView {
        let (events, blobs) = self.events();
        RunView::fold(&events, &blobs).unwrap()
    }

    pub(super) fn events(&self) -> (Vec<Logged>, Memory) {
        self.changed(|_| {})
    }

    /// The events after some were changed, put in or left out.
    pub(super) fn changed(&self, change: impl FnOnce(&mut Vec<Event>)) -> (Vec<Logged>, Memory) {
        let (mut events, blobs) = self.raw();
        change(&mut events);
        (log(&run(), events), blobs)
    }

    /// The run that those events fold to.
    pub(super) fn view_of(&self, change: impl FnOnce(&mut Vec<Event>)) -> RunView {
        let (events, blobs) = self.changed(change);
        RunView::fold(&events, &blobs).unwrap()
    }

    fn raw(&self) -> (Vec<Event>, Memory) {
        let mut blobs = Memory::default();
        let run = run();
        let mut events = vec![Event::RunStarted { setup: Box::new(setup(&run, self.text.clone())) }];
        events.push(Event::StageEntered { stage: "analyse".into() });
        events.push(opened(
            "de",
            json!({"counts": "/in/pasilla_gene_counts.tsv", "annotation": "/in/samples.csv"}),
        ));
        events.extend(self.failing(&run));
        events.extend(self.accepted(&run, &mut blobs));
        events.push(Event::StageEvaluated { stage: "analyse".into(), met: true });
        events.push(Event::StageEntered { stage: "enrich".into() });
        events.push(opened("go", json!({})));
        let detail = "no trigger scores above 0 for “which pathways are enriched”".to_owned();
        events.push(Event::SubgoalClosed { subgoal: "go".into(), closing: Closing::NoSkill { detail } });
        events.push(Event::StageEvaluated { stage: "enrich".into(), met: false });
        let reason = "stage `enrich` was not met".to_owned();
        events.push(Event::RunEnded { status: RunStatus::NotReached, reason });
        (events, blobs)
    }

    fn failing(&self, run: &RunId) -> Vec<Event> {
        let call = CallId::new(run, &"de".into(), 1);
        let evidence = json!({"missing": ["treated1fb"], "columns": ["treated1", "untreated1"]});
        let failure = Failure { kind: FailureKind::InvalidArgs, message: self.message.clone(), evidence };
        vec![
            intended(
                &call,
                "de",
                "differential-expression",
                json!({"counts": "/in/pasilla_gene_counts.tsv"}),
                1,
            ),
            Event::CallEnded {
                call: call.clone(),
                ended: Ended::Failed { failure },
                log: None,
                record: self.record.clone(),
                attested: false,
            },
            Event::BudgetSettled { call: call.clone(), used: used() },
            Event::RemedyGiven {
                call,
                diagnosis: "sample names of the annotation end in `fb`".to_owned(),
                remedy: Some(Remedy::RetryWith(json!({"suffix": "fb"}))),
                record: self.record.clone(),
            },
        ]
    }

    fn accepted(&self, run: &RunId, blobs: &mut Memory) -> Vec<Event> {
        let call = CallId::new(run, &"de".into(), 2);
        let source = "/in/pasilla_gene_counts.tsv".to_owned();
        let draft = |(subject, content): &(String, Value)| DraftFact {
            subject: subject.clone(),
            kind: "statistic".to_owned(),
            content: content.clone(),
            source: source.clone(),
            supersedes: None,
        };
        let figure = StoredArtifact {
            path: "volcano.svg".to_owned(),
            title: self.figure_title.clone(),
            media_type: "image/svg+xml".to_owned(),
            digest: blobs.keep(self.figure.as_bytes()),
            bytes: self.figure.len() as u64,
        };
        let outcome = Outcome {
            content: json!({}),
            facts: self.facts.iter().map(draft).collect(),
            artifacts: vec![Artifact {
                path: figure.path.clone(),
                title: String::new(),
                media_type: String::new(),
            }],
        };
        let bytes = serde_json::to_vec(&outcome).unwrap();
        let drafts: Vec<Draft> = outcome
            .facts
            .iter()
            .map(|fact| Draft {
                subject: fact.subject.clone(),
                kind: fact.kind.clone(),
                content: Digest::of_json(&fact.content),
                source: fact.source.clone(),
                supersedes: None,
            })
            .collect();
        let entries = self.entries(&drafts);
        let ended = Ended::Outcome { outcome: blobs.keep(&bytes), drafts, artifacts: vec![figure.clone()] };
        let mut about: Vec<String> = self.facts.iter().map(|(subject, _)| subject.clone()).collect();
        about.push("volcano.svg".to_owned());
        let mut events = vec![
            intended(
                &call,
                "de",
                "differential-expression",
                json!({"counts": source, "annotation": "/in/samples.csv", "suffix": "fb"}),
                2,
            ),
            Event::CallEnded {
                call: call.clone(),
                ended,
                log: None,
                record: self.record.clone(),
                attested: false,
            },
            Event::BudgetSettled { call: call.clone(), used: used() },
        ];
        events.extend(self.verdicts(&call, about));
        events.push(Event::OutcomeAccepted { call, facts: entries, artifacts: vec![figure] });
        let criterion =
            CriterionState { text: "some genes respond".to_owned(), holds: true, note: "true".to_owned() };
        events.push(Event::CriteriaEvaluated { subgoal: "de".into(), criteria: vec![criterion] });
        events.push(Event::SubgoalClosed { subgoal: "de".into(), closing: Closing::Met });
        events
    }

    fn verdicts(&self, call: &CallId, about: Vec<String>) -> Vec<Event> {
        let own = Judge::Own { name: "differential-expression".to_owned(), component: Digest::of("de") };
        let bound = Judge::Verifier {
            name: "statistics-recheck".to_owned(),
            component: Digest::of("recheck"),
            binding: 0,
        };
        let verdict = |judge, rule: &str, note: &str| Event::VerdictGiven {
            call: call.clone(),
            judge,
            judgement: Judgement::Accepted {
                checks: vec![Check { rule: rule.to_owned(), about: about.clone(), note: note.to_owned() }],
                findings: Vec::new(),
            },
            used: used(),
            record: self.record.clone(),
        };
        vec![
            verdict(Judge::Gateway, "sources-resolve", ""),
            verdict(own, "ranges", "p and q within 0 and 1, q never below p"),
            verdict(bound, "recomputed", &self.note),
        ]
    }

    fn entries(&self, drafts: &[Draft]) -> Vec<FactEntry> {
        let entry = |(index, draft): (usize, &Draft)| FactEntry {
            id: FactId::new(&draft.subject, 1),
            subject: draft.subject.clone(),
            version: 1,
            kind: draft.kind.clone(),
            source: draft.source.clone(),
            level: self.level,
            content: draft.content,
            index: index as u32,
        };
        drafts.iter().enumerate().map(entry).collect()
    }
}

/// The id of the run.
pub(super) fn run() -> RunId {
    RunId::from("20261130-155509-pasilla-4f2a")
}

pub(super) fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

pub(super) fn opened(subgoal: &str, args: Value) -> Event {
    Event::SubgoalOpened {
        subgoal: subgoal.into(),
        scope: Vec::new(),
        artifacts: Vec::new(),
        args: map(args),
    }
}

pub(super) fn intended(call: &CallId, subgoal: &str, skill: &str, args: Value, attempt: u32) -> Event {
    Event::CallIntended {
        call: call.clone(),
        subgoal: SubgoalId::from(subgoal),
        skill: skill.to_owned(),
        version: "1.0.0".to_owned(),
        component: Digest::of("de"),
        args: map(args),
        attempt,
        seed: 7,
        ask: None,
    }
}

fn used() -> Used {
    Used {
        fuel: 812_334_017,
        cpu_ms: 212,
        wall_ms: 240,
        memory_bytes: 23 << 20,
        host_calls: 12,
        ..Used::default()
    }
}

fn log(run: &RunId, events: Vec<Event>) -> Vec<Logged> {
    let mut prev = Digest::ZERO;
    let mut logged = Vec::new();
    for (index, event) in events.into_iter().enumerate() {
        let (seq, at) = (index as u64 + 1, Timestamp(1_796_054_109_000 + 137 * index as u64));
        let digest = chain(run, seq, at, &prev, &serde_json::to_string(&event).unwrap());
        logged.push(Logged { seq, at, prev, digest, event });
        prev = digest;
    }
    logged
}

pub(super) fn card(name: &str, kind: Kind, component: &str) -> ComponentCard {
    let manifest = Manifest {
        kind,
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        description: name.to_owned(),
        effects: Effects::None,
        facts: vec!["de/*".to_owned()],
        evidence: vec!["statistic".to_owned()],
        requires: Vec::new(),
        locks: Vec::new(),
        terms: Vec::new(),
        args: None,
        capabilities: Capabilities::default(),
    };
    ComponentCard {
        component: Digest::of(component),
        manifest,
        limits: Limits::default(),
        facts: vec!["de/*".to_owned()],
        settings: json!({}),
        granted: Granted::default(),
        effects: Effects::None,
        max_score: 100,
    }
}

fn setup(run: &RunId, text: Option<String>) -> Setup {
    let verifier = Binding {
        verifier: "statistics-recheck".to_owned(),
        on: vec!["*".to_owned()],
        on_facts: Vec::new(),
        settings: json!({}),
    };
    Setup {
        run: run.clone(),
        task: task(text),
        skills: vec![card("differential-expression", Kind::Skill, "de")],
        verifiers: vec![card("statistics-recheck", Kind::Verifier, "recheck")],
        bindings: vec![verifier],
        planner: "triggers".to_owned(),
        engine: "wasmtime 48.0.8".to_owned(),
        clock: Timestamp(1_796_054_109_000),
        apart: true,
        person: Person::Always,
        dry: false,
        proposal_tokens: 0,
    }
}

fn task(text: Option<String>) -> Task {
    let input = |name: &str, file: &str, bytes| InputFile {
        name: name.to_owned(),
        file: file.to_owned(),
        digest: Digest::of(file),
        bytes,
    };
    let subgoal = |id: &str, goal: &str| SubgoalSpec {
        id: id.into(),
        goal: goal.to_owned(),
        skill: None,
        after: Vec::new(),
        args: Map::new(),
        evidence: vec!["statistic".to_owned()],
        criteria: vec![Criterion { text: "some genes respond".to_owned(), check: "true".to_owned() }],
        attempts: 3,
        level: Level::Independent,
        budget: Budget::default(),
    };
    let stage = |id: &str, subgoal| Stage {
        id: id.into(),
        title: None,
        budget: Budget::default(),
        subgoals: vec![subgoal],
    };
    Task {
        name: "pasilla".to_owned(),
        goal: "Which genes respond to knocking down pasilla?".to_owned(),
        mode: Mode::ReadOnly,
        seed: 0,
        inputs: vec![
            input("counts", "pasilla_gene_counts.tsv", 519_220),
            input("annotation", "samples.csv", 412),
        ],
        parameters: Map::new(),
        budget: Budget::default(),
        stages: vec![
            stage("analyse", subgoal("de", "test each gene for differential expression")),
            stage("enrich", subgoal("go", "find which pathways are enriched")),
        ],
        report: ReportSpec { title: "What knocking down pasilla changes".to_owned(), text },
        level: Level::Independent,
        allow_contradictions: false,
    }
}

/// A plot of made-up points, to look at.
fn volcano() -> String {
    let mut points = String::new();
    let mut state = 12345u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31)
    };
    for _ in 0..900 {
        let x = (next() + next() + next() - 1.5) * 2.4;
        let y = (x.abs() * 2.2 * next()).min(9.0);
        let color = if y > 2.4 && x > 0.6 {
            "#c2410c"
        } else if y > 2.4 && x < -0.6 {
            "#1d6fa5"
        } else {
            "#b7bdc3"
        };
        let (cx, cy) = (380.0 + x * 90.0, 380.0 - y * 36.0);
        points.push_str(&format!(
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2.4\" fill=\"{color}\" fill-opacity=\".75\"/>"
        ));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 430\" font-family=\"sans-serif\" font-size=\"13\">\
         <rect width=\"760\" height=\"430\" fill=\"#fff\"/><path d=\"M60 380H720M60 30V380\" stroke=\"#555\" fill=\"none\"/>\
         <path d=\"M60 293H720\" stroke=\"#999\" stroke-dasharray=\"4 4\"/>{points}\
         <text x=\"390\" y=\"415\" text-anchor=\"middle\">log2 fold change</text></svg>"
    )
}
