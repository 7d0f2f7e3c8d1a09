//! Worker processes: a verification runs in a process that has nothing, and whatever becomes of it
//! there is an answer.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Granted;
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{
    Body, Call, Fact, Failure, FailureKind, Level, Outcome, Subgoal, Submission, Verdict,
};
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::network::Rule;
use checkrein_contract::port::{
    BoxFuture, End, FactSource, Guests as _, NoFacts, NoObserver, Observer, Ran, Setting,
};
use checkrein_sandbox::{Options, Places, Sandbox, Source, Workers};
use checkrein_tests::{Judge, binary};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

/// A sandbox with workers, and a verifier in it.
struct Bench {
    sandbox: Sandbox,
    verifier: Digest,
    folder: TempDir,
}

fn sandbox(folder: &TempDir, program: Option<&Path>, verify: bool) -> Sandbox {
    let state = checkrein_store::State::open(folder.path()).unwrap();
    let places = Places { cache: folder.path().join("cache"), scratch: folder.path().join("scratch") };
    let workers = program.map(|program| Workers { program: program.to_owned(), verify });
    Sandbox::new(Options { workers, ..Options::new(places) }, Arc::new(state.blobs())).unwrap()
}

async fn load(sandbox: &Sandbox) -> Digest {
    let source = Source::Bytes { name: "judge.wasm".into(), bytes: Judge::default().assemble() };
    sandbox.load(source).await.unwrap_or_else(|faults| panic!("{faults:#?}")).digest
}

impl Bench {
    async fn new() -> Self {
        Self::with(binary()).await
    }

    /// With another program for its workers, once the verifier is compiled.
    async fn with(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        load(&sandbox(&folder, Some(binary()), true)).await;
        let sandbox = sandbox(&folder, Some(program), true);
        let verifier = load(&sandbox).await;
        Bench { sandbox, verifier, folder }
    }

    fn setting(&self) -> Setting {
        Setting {
            component: self.verifier,
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

    async fn ask(&self, mode: &str) -> Ran<Result<Verdict, Failure>> {
        self.sandbox.verify(self.setting(), submission(mode)).await
    }

    /// The one worker that waits.
    async fn worker(&self) -> u32 {
        self.sandbox.hardening().await.unwrap().unwrap();
        let [worker] = self.sandbox.waiting_workers()[..] else { panic!() };
        worker
    }
}

fn submission(mode: &str) -> Submission {
    let subgoal = Subgoal {
        id: "s".into(),
        goal: "g".into(),
        args: json!({}),
        evidence: Vec::new(),
        criteria: Vec::new(),
    };
    let call = Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) };
    let outcome = Outcome { content: json!({ "n": 1 }), facts: Vec::new(), artifacts: Vec::new() };
    Submission {
        skill: "x".into(),
        version: "1.0.0".into(),
        subgoal,
        body: Body::Performed { call, outcome },
        inputs: Vec::new(),
        settings: Value::from(mode),
    }
}

fn failure(ran: &Ran<Result<Verdict, Failure>>) -> &Failure {
    match &ran.end {
        End::Returned(Err(failure)) => failure,
        end => panic!("{end:?}"),
    }
}

fn assert_unavailable(ran: &Ran<Result<Verdict, Failure>>, words: &str) {
    let failure = failure(ran);
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains(words), "`{words}` is not in `{}`", failure.message);
}

fn assert_accepted(ran: &Ran<Result<Verdict, Failure>>) {
    match &ran.end {
        End::Returned(Ok(verdict)) if !verdict.rejects() => {}
        end => panic!("{end:?}"),
    }
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap();
    assert!(sent.success());
}

fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// A program that stands in for the worker.
fn script(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("worker.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn a_verification_in_a_worker_says_what_one_in_this_process_says() {
    let bench = Bench::new().await;
    let here = sandbox(&bench.folder, None, false);
    load(&here).await;
    for mode in ["-", "t"] {
        let apart = bench.ask(mode).await;
        let near = here.verify(bench.setting(), submission(mode)).await;
        assert_eq!(format!("{:?}", apart.end), format!("{:?}", near.end));
        assert_eq!((apart.used.fuel, apart.used.memory_bytes), (near.used.fuel, near.used.memory_bytes));
    }
    let limited = Setting { limits: Limits::default().with(LimitKey::Cpu, 20), ..bench.setting() };
    let ran = bench.sandbox.verify(limited, submission("l")).await;
    let End::Limited(hit) = &ran.end else { panic!("{ran:?}") };
    assert_eq!(hit.limit, "cpu");
    assert!(ran.used.cpu_ms >= 20 && ran.log.contains("begun"), "{ran:?}");
    // A limit is the guest's affair: the worker goes on.
    assert_eq!(bench.sandbox.waiting_workers().len(), 1);
}

/// One fact.
struct OneFact;

impl FactSource for OneFact {
    fn get(&self, _: &str) -> Option<Fact> {
        None
    }

    fn find(&self, _: &str, _: Option<&str>, limit: u32) -> Vec<Fact> {
        assert_eq!(limit, 10);
        let text = |text: &str| text.to_owned();
        vec![Fact {
            id: text("a@1"),
            version: 1,
            subject: text("a"),
            kind: text("k"),
            content: json!(1.5),
            source: text("/in/a"),
            level: Level::Independent,
        }]
    }
}

#[tokio::test]
async fn facts_folders_and_network_are_the_hosts() {
    let bench = Bench::new().await;
    let ran =
        bench.sandbox.verify(Setting { facts: Arc::new(OneFact), ..bench.setting() }, submission("f")).await;
    assert_accepted(&ran);
    assert!(ran.used.host_calls == 1);
    let ran = bench.ask("h").await;
    assert_accepted(&ran);
    assert!(ran.record.denials[0].what.contains("https://example.org/"), "{:?}", ran.record);

    let inside = bench.folder.path().join("scratch/given");
    std::fs::create_dir(&inside).unwrap();
    let ran = bench.sandbox.verify(Setting { input: Some(inside), ..bench.setting() }, submission("o")).await;
    assert_accepted(&ran);
    let outside = tempfile::tempdir().unwrap();
    let link = bench.folder.path().join("scratch/link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    let ran = bench.sandbox.verify(Setting { input: Some(link), ..bench.setting() }, submission("o")).await;
    assert_unavailable(&ran, "lies outside of");
}

#[tokio::test]
async fn a_worker_has_nothing() {
    let bench = Bench::new().await;
    let walls = bench.sandbox.hardening().await.unwrap().unwrap();
    assert_eq!(walls.variables, 0);
    assert!(walls.no_new_privileges && walls.not_dumpable && walls.ends_with_host);
    assert_eq!(walls.limits["core"], 0);
    assert!(walls.limits["data"] <= 4 << 30 && !walls.limits.contains_key("address-space"));
    assert_eq!(
        walls.reads,
        [bench.folder.path().join("scratch").canonicalize().unwrap().display().to_string()]
    );
    let process = bench.worker().await;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    let none = sandbox(&tempfile::tempdir().unwrap(), None, false);
    assert_eq!(none.hardening().await.unwrap(), None);
}

#[tokio::test]
async fn descriptors_that_were_left_open_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let leaking = script(&folder, &format!("exec {} \"$@\" 8</etc/passwd 9</etc/passwd", binary().display()));
    let bench = Bench::with(&leaking).await;
    let walls = bench.sandbox.hardening().await.unwrap().unwrap();
    assert!(walls.closed >= 2, "{walls:?}");
    assert_accepted(&bench.ask("-").await);
}

#[tokio::test]
async fn a_request_of_a_verification_passes_the_hosts_gate() {
    let bench = Bench::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/data", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).unwrap();
        assert!(request[..read].starts_with(b"GET /data HTTP/1.1\r\n"));
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").unwrap();
    });
    let ran = bench.ask(&format!("n{url}")).await;
    assert!(matches!(ran.end, End::Trapped(_)), "{ran:?}");
    assert!(ran.record.denials[0].what.contains(&url), "{:?}", ran.record);
    let network = vec![Rule::parse(&format!("GET {url}")).unwrap()];
    let setting = Setting { granted: Granted { network, ..Granted::default() }, ..bench.setting() };
    let ran = bench.sandbox.verify(setting, submission(&format!("n{url}"))).await;
    assert_accepted(&ran);
    assert!(ran.record.fetched(&url), "{:?}", ran.record);
    // It is the host that counts them.
    assert_eq!((ran.used.http_calls, ran.used.http_in_bytes), (1, 2));
    server.join().unwrap();
}

/// Tells that a guest has begun.
struct Begun(Notify);

impl Observer for Begun {
    fn log(&self, level: &str, message: &str) {
        assert_eq!((level, message), ("info", "begun"));
        self.0.notify_one();
    }

    fn progress(&self, _: u32, _: u32, _: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_worker_that_is_killed_in_the_middle_is_unavailable_and_the_next_works() {
    let bench = Bench::new().await;
    let process = bench.worker().await;
    let begun = Arc::new(Begun(Notify::new()));
    let setting = Setting { observer: begun.clone(), ..bench.setting() };
    let kill = async {
        begun.0.notified().await;
        signal("KILL", process);
    };
    let (ran, ()) = tokio::join!(bench.sandbox.verify(setting, submission("l")), kill);
    assert_unavailable(&ran, "the verify worker ended (signal: 9");
    assert!(!exists(process), "it was not reaped");
    assert_accepted(&bench.ask("-").await);
    // One that dies while it waits is not noticed by anyone.
    let waiting = bench.worker().await;
    signal("KILL", waiting);
    // It is reaped although nobody asks anything.
    gone(waiting).await;
    assert_accepted(&bench.ask("-").await);
}

#[tokio::test]
async fn a_worker_that_hangs_is_killed() {
    let bench = Bench::new().await;
    let process = bench.worker().await;
    signal("STOP", process);
    let setting = Setting { limits: Limits::default().with(LimitKey::Wall, 50), ..bench.setting() };
    // The code is handed over first, which has a time of its own; so it is asked once before.
    signal("CONT", process);
    assert_accepted(&bench.ask("-").await);
    signal("STOP", process);
    let ran = bench.sandbox.verify(setting, submission("-")).await;
    assert_unavailable(&ran, "did not answer within 5050 ms");
    gone(process).await;
    assert_accepted(&bench.ask("-").await);
}

#[tokio::test]
async fn a_worker_that_answers_nonsense_is_killed() {
    let huge = r"printf '\377\377\377\177\000\000\000\000'";
    let no_json = r"printf '\004\000\000\000\000\000\000\000nope'; exec cat >/dev/null";
    let too_early = r#"printf '\010\000\000\000\000\000\000\000"loaded"'; exec cat >/dev/null"#;
    for (text, words) in [
        (huge, "a frame of 2147483647 bytes"),
        (no_json, "a frame that cannot be read"),
        (too_early, "said what cannot be: Loaded"),
        ("echo 'out of luck' >&2; exit 3", "ended (exit status: 3): out of luck"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::with(&script(&folder, text)).await;
        assert_unavailable(&bench.ask("-").await, words);
        assert!(bench.sandbox.waiting_workers().is_empty());
    }
    let bench = Bench::with(Path::new("/nothing/here")).await;
    assert_unavailable(&bench.ask("-").await, "cannot be started");
}

/// Words of a shell that send a frame without a raw part.
fn frame(message: &Value) -> String {
    let json = message.to_string();
    let [a, b, c, d] = u32::try_from(json.len()).unwrap().to_le_bytes();
    let head = format!("\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}\\000\\000\\000\\000");
    assert!(!json.contains(['\'', '%', '\\']), "{json}");
    format!("printf '{head}{json}'")
}

fn hardening() -> Value {
    json!({
        "landlock": null, "no_tcp": false, "reads": [], "no_new_privileges": true, "not_dumpable": true,
        "ends_with_host": true, "closed": 0, "variables": 0, "limits": {}
    })
}

#[tokio::test]
async fn a_worker_of_another_build_is_given_no_code() {
    let ready = json!({ "ready": { "build": "0.0.0-other", "hardening": hardening() } });
    let folder = tempfile::tempdir().unwrap();
    // What it is given is kept where it can be looked at.
    let given = folder.path().join("given");
    let text = format!("{}; exec cat >{}", frame(&ready), given.display());
    let program = script(&folder, &text);
    let bench = Bench::with(&program).await;
    let ran = bench.ask("-").await;
    assert_unavailable(&ran, "the verify worker is of another build");
    assert_unavailable(&ran, "found 0.0.0-other");
    assert!(bench.sandbox.waiting_workers().is_empty());
    assert_eq!(std::fs::read(&given).unwrap_or_default(), b"");
    // The one that compiles is given no component.
    let other = tempfile::tempdir().unwrap();
    let source = Source::Bytes { name: "judge.wasm".into(), bytes: Judge::default().assemble() };
    let faults = sandbox(&other, Some(program.as_path()), false).load(source).await.unwrap_err();
    assert_eq!(faults[0].stage, "compile");
    assert!(faults[0].to_string().contains("the compile worker is of another build"), "{faults:#?}");
    assert_eq!(std::fs::read(&given).unwrap_or_default(), b"");
}

/// The build of this program's workers, as one of them says it.
fn build() -> String {
    let folder = tempfile::tempdir().unwrap();
    let worker = Command::new(binary())
        .args(["worker", "verify"])
        .arg(folder.path())
        .env_clear()
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let length = u32::from_le_bytes(worker.stdout[..4].try_into().unwrap()) as usize;
    let ready: Value = serde_json::from_slice(&worker.stdout[8..8 + length]).unwrap();
    ready["ready"]["build"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_left_of_an_earlier_question_is_no_part_of_the_next() {
    let ready = frame(&json!({ "ready": { "build": build(), "hardening": hardening() } }));
    let used = json!({ "fuel": 0, "cpu_ms": 0, "wall_ms": 0, "memory_bytes": 0, "host_calls": 0 });
    let judged = |question: u64| {
        let end = json!({ "fault": format!("answer {question}") });
        let judged = json!({ "end": end, "used": used, "log": "", "record": {} });
        frame(&json!({ "judged": { "question": question, "judged": judged } }))
    };
    let fetch = json!({
        "fetch": { "method": "GET", "url": "https://a.test/", "headers": [], "timeout_ms": null, "follow": false }
    });
    let wants =
        |question: u64| frame(&json!({ "wants": { "question": question, "number": 0, "want": fetch } }));
    let loaded = frame(&json!("loaded"));
    let begin = format!("{ready}; {loaded}; {}", judged(1));
    for (text, refused) in [
        // A task that outlived its call: what it wants is nobody's.
        (format!("{begin}; {}; {}; exec cat >/dev/null", wants(1), judged(2)), None),
        // A second answer to the same question is none to the next.
        (format!("{begin}; {}; exec cat >/dev/null", judged(1)), Some("something of question 1, where 2")),
        (format!("{begin}; {}; exec cat >/dev/null", wants(3)), Some("something of question 3, where 2")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::with(&script(&folder, &text)).await;
        assert_unavailable(&bench.ask("-").await, "answer 1");
        let ran = bench.ask("-").await;
        assert_unavailable(&ran, refused.unwrap_or("answer 2"));
        assert!(ran.record.denials.is_empty() && ran.record.exchanges.is_empty(), "{:?}", ran.record);
        assert_eq!(bench.sandbox.waiting_workers().is_empty(), refused.is_some());
    }
}

#[test]
fn a_worker_is_told_that_its_processor_time_ran_out_before_it_is_killed() {
    let mut worker = Command::new(binary())
        .args(["worker", "compile", "7"])
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It has put its walls up when it says so.
    worker.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", worker.id())).unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max cpu time")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3..5], ["7", "12"], "{line}");
}

#[tokio::test]
async fn no_process_is_left_when_a_sandbox_or_a_call_is_dropped() {
    let bench = Bench::new().await;
    let begun = Arc::new(Begun(Notify::new()));
    let process = bench.worker().await;
    let setting = Setting { observer: begun.clone(), ..bench.setting() };
    tokio::select! {
        ran = bench.sandbox.verify(setting, submission("l")) => panic!("{ran:?}"),
        () = begun.0.notified() => {}
    }
    gone(process).await;
    let waiting = bench.worker().await;
    assert_ne!(waiting, process);
    drop(bench);
    gone(waiting).await;
}

/// Waits until a process is gone; the test's own time bounds it.
async fn gone(process: u32) {
    let until = Instant::now() + Duration::from_secs(30);
    while exists(process) {
        assert!(Instant::now() < until, "{process} is still there");
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_worker_ends_with_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Command::new(binary())
        .args(["worker", "verify"])
        .arg(folder.path())
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(worker.stdin.take());
    assert!(worker.wait().unwrap().success());
    let alone = Command::new(binary()).arg("worker").output().unwrap();
    assert_eq!(alone.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("started by the host itself"));
}

#[tokio::test]
async fn eight_verifications_at_once_each_have_an_answer() {
    let bench = Bench::new().await;
    let asked: Vec<_> = (0..12).map(|_| bench.ask("-")).collect();
    let answers = Mutex::new(0);
    let mut tasks = Vec::new();
    for one in asked {
        tasks.push(async {
            assert_accepted(&one.await);
            *answers.lock().unwrap() += 1;
        });
    }
    let mut tasks: Vec<_> = tasks.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        tasks.retain_mut(|task| task.as_mut().poll(context).is_pending());
        if tasks.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(*answers.lock().unwrap(), 12);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(bench.sandbox.waiting_workers().len() <= cores.clamp(4, 8));
}

/// What a worker costs, for the README: `cargo test --workspace --test it -- --ignored --nocapture cost_of_a_worker`.
#[tokio::test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
async fn cost_of_a_worker() {
    let bench = Bench::new().await;
    let here = sandbox(&bench.folder, None, false);
    load(&here).await;
    let began = Instant::now();
    bench.worker().await;
    let start = began.elapsed();
    let began = Instant::now();
    assert_accepted(&bench.ask("-").await);
    let first = began.elapsed();
    let mut times = [Duration::MAX; 2];
    for _ in 0..5 {
        for (time, sandbox) in times.iter_mut().zip([&here, &bench.sandbox]) {
            let began = Instant::now();
            for _ in 0..200 {
                assert_accepted(&sandbox.verify(bench.setting(), submission("-")).await);
            }
            *time = (*time).min(began.elapsed() / 200);
        }
    }
    eprintln!("start {start:?}, first {first:?}, here {:?}, apart {:?}", times[0], times[1]);
    let mut compiles = [Duration::MAX; 2];
    for round in 0..5 {
        for (time, program) in compiles.iter_mut().zip([None, Some(binary())]) {
            let folder = tempfile::tempdir().unwrap();
            let sandbox = sandbox(&folder, program, false);
            let extra = format!("(core module (func (export \"{round}\")))");
            let source = Source::Bytes { name: "judge.wasm".into(), bytes: Judge::with(extra).assemble() };
            let began = Instant::now();
            // Everything but the cases: what compiles is the same, and most of it.
            assert_eq!(sandbox.schema(source).await, Ok(None));
            *time = (*time).min(began.elapsed());
        }
    }
    eprintln!("compile here {:?}, apart {:?}", compiles[0], compiles[1]);
}
