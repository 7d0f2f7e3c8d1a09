//! The judging workers of a host: started when one is needed, kept while they are good, replaced
//! when they are not. One verification at a time in each, so that the fall of one touches no other;
//! and each judges with one component all its life, so that one which takes its worker over gives
//! false verdicts under no name but its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::interface::{Failure, Submission, Verdict};
use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::{End, Observer, Ran, Setting, StorageError};
use checkrein_contract::record::Record;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use super::child::{Child, Home, START, WorkerError};
use super::frame::{Frame, FrameError, Most, read_async_when};
use super::harden::Hardening;
use super::taken::{short, take, unavailable};
use super::wire::{Answer, Asked, FromJudge, Judged, Refusal, ToJudge, Want};
use super::{DRY, Role, most_body, most_out_under};
use crate::component::Component;
use crate::net::{Gate, NoAnswer, Request, SECRET_MAX, Scrubber};
use crate::recorder::Recorder;

/// How many verifications run in workers at once.
const AT_ONCE: usize = 8;
/// How many workers wait for questions at least, on a machine of few cores: a submission has some
/// verifiers, and each has a worker of its own.
const KEPT: usize = 4;
/// How long past its wall limit a verification is waited for: the worker stops it by itself.
const SLACK: Duration = Duration::from_secs(5);
/// Bytes of a log line that observers are told, as in the imports.
const SHOWN: usize = 8 << 10;
/// Bytes of it that are searched for secrets: what is told, and the longest spelling of a secret
/// that may begin in it.
const SEARCHED: usize = SHOWN + 6 * SECRET_MAX;
/// How many things a worker may wait for at once. More are left in its pipe.
const UNDER_WAY: usize = 64;

/// The workers.
pub(crate) struct Pool {
    home: Home,
    turns: Semaphore,
    /// The one that was asked last stands last.
    idle: Mutex<Vec<Worker>>,
    /// How many wait for their next question.
    keep: usize,
}

/// Opens the gate of a question, when its time begins.
pub(crate) type OpenGate = Box<dyn Fn(&Setting) -> Arc<dyn Gate> + Send + Sync>;

/// One question.
pub(crate) struct Question {
    pub(crate) component: Arc<Component>,
    pub(crate) setting: Setting,
    pub(crate) submission: Submission,
    /// Opens its gate. Its time begins then, so that no wait for a worker is on it.
    pub(crate) gate: OpenGate,
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) recorder: Recorder,
}

impl Pool {
    /// A pool without any worker yet. `folder` is all that they will be able to read, `build` what
    /// they must be.
    pub(crate) fn new(program: PathBuf, folder: PathBuf, build: String, dry: bool) -> Self {
        let keep = std::thread::available_parallelism().map_or(1, usize::from);
        let build = super::build_of(build, dry);
        Pool {
            home: Home { program, folder, dry, build },
            turns: Semaphore::new(AT_ONCE),
            idle: Mutex::default(),
            keep: keep.clamp(KEPT, AT_ONCE),
        }
    }

    /// Who asks has one of these turns first.
    pub(crate) fn turns(&self) -> &Semaphore {
        &self.turns
    }

    /// Asks a worker; whatever becomes of it, there is an answer.
    pub(crate) async fn judge(&self, mut question: Question) -> Ran<Result<Verdict, Failure>> {
        let began = Instant::now();
        match self.within_reach(&mut question.setting) {
            Ok(()) => {}
            Err(Unreachable::Storage(error)) => {
                return Ran { end: End::Storage(error), ..unavailable("", 0, Record::default()) };
            }
            Err(Unreachable::Outside(why)) => return unavailable(&why, 0, Record::default()),
        }
        let answer = self.ask(&question).await;
        let limits = &question.setting.limits;
        let failed = question.recorder.failed();
        let record = question.recorder.take();
        let name = &question.component.manifest.name;
        let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match answer {
            Ok((mut worker, judged)) => {
                match take(judged, name, limits, &question.scrubber, record.clone()) {
                    Ok(ran) => {
                        self.put_back(worker);
                        match failed {
                            Some(error) => Ran { end: End::Storage(error), ..ran },
                            None => ran,
                        }
                    }
                    Err(what) => self.failed(&worker.child.nonsense(what), wall_ms, record),
                }
            }
            Err(error) => self.failed(&error, wall_ms, record),
        }
    }

    fn failed(&self, error: &WorkerError, wall_ms: u64, record: Record) -> Ran<Result<Verdict, Failure>> {
        tracing::warn!(%error, "a verification got no answer; the next one has another worker");
        unavailable(&error.to_string(), wall_ms, record)
    }

    /// Starts a worker, or takes one that waits, and says what walls stand around it.
    pub(crate) async fn hardening(&self) -> Result<Hardening, WorkerError> {
        let worker = self.worker(None).await?;
        let hardening = worker.hardening.clone();
        self.put_back(worker);
        Ok(hardening)
    }

    async fn ask(&self, question: &Question) -> Result<(Worker, Judged), WorkerError> {
        let mut worker = self.worker(Some(&question.component.digest)).await?;
        worker.load(&question.component).await?;
        let wall = Duration::from_millis(question.setting.limits.get(LimitKey::Wall)).saturating_add(SLACK);
        // A limit that no clock can tell: the worker's own clocks stop it.
        let answer = match tokio::time::timeout(wall, worker.judge(question)).await {
            Ok(answer) => answer?,
            Err(_) => return Err(worker.child.hung(wall)),
        };
        Ok((worker, answer))
    }

    /// A worker that has judged with this component, or with none; `None` takes any.
    async fn worker(&self, component: Option<&Digest>) -> Result<Worker, WorkerError> {
        loop {
            let waiting = self.waiting(component);
            let Some(mut worker) = waiting else { return Worker::start(&self.home).await };
            if worker.child.is_alive() {
                return Ok(worker);
            }
            // It ended while nobody asked it anything: another takes its place.
        }
    }

    fn waiting(&self, component: Option<&Digest>) -> Option<Worker> {
        let mut idle = self.idle();
        // Whoever ended while nobody asked it anything is reaped by this look.
        idle.retain_mut(|worker| worker.child.is_alive());
        let fits = |worker: &Worker| component.is_none() || worker.loaded.as_ref() == component;
        let at = idle.iter().rposition(fits);
        let at = at.or_else(|| idle.iter().rposition(|worker| worker.loaded.is_none()))?;
        Some(idle.remove(at))
    }

    fn put_back(&self, worker: Worker) {
        let mut idle = self.idle();
        idle.push(worker);
        let first = if idle.len() > self.keep { Some(idle.remove(0)) } else { None };
        // It is ended while the others are not locked.
        drop(idle);
        drop(first);
    }

    /// The numbers of the processes that wait.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.idle().iter().map(|worker| worker.child.id()).collect()
    }

    /// Ends the workers that wait.
    pub(crate) fn dismiss(&self) {
        let waiting = std::mem::take(&mut *self.idle());
        drop(waiting);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the folders of a setting to the names that a worker can open them by.
    fn within_reach(&self, setting: &mut Setting) -> Result<(), Unreachable> {
        for folder in [&mut setting.input, &mut setting.artifacts, &mut setting.work].into_iter().flatten() {
            *folder = canonical(folder).map_err(Unreachable::Storage)?;
            if !folder.starts_with(&self.home.folder) {
                return Err(Unreachable::Outside(format!(
                    "{} lies outside of {}, which is all that a verification worker reads",
                    folder.display(),
                    self.home.folder.display()
                )));
            }
        }
        Ok(())
    }
}

enum Unreachable {
    Storage(StorageError),
    Outside(String),
}

/// The name of a folder without links.
pub(crate) fn canonical(folder: &Path) -> Result<PathBuf, StorageError> {
    folder.canonicalize().map_err(|error| StorageError::of_io(folder, &error))
}

/// A worker that is ready.
struct Worker {
    child: Child,
    frames: mpsc::Receiver<Result<Frame<FromJudge>, FrameError>>,
    /// The longest frame that it may send now.
    most: Arc<Mutex<Most>>,
    reader: JoinHandle<()>,
    /// The number of its last question.
    asked: u64,
    /// What it judges with.
    loaded: Option<Digest>,
    hardening: Hardening,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Worker {
    async fn start(home: &Home) -> Result<Self, WorkerError> {
        let dry = home.dry.then_some(OsStr::new(DRY));
        let arguments: Vec<&OsStr> = std::iter::once(home.folder.as_os_str()).chain(dry).collect();
        let (child, output) = Child::start(&home.program, Role::Verify, &arguments)?;
        // A reader of its own: a frame that is half read must not be given up for another event.
        let (frames, received) = mpsc::channel(1);
        let most = Arc::new(Mutex::new(Role::Verify.most_out()));
        let reader = tokio::spawn(read_on(output, Arc::clone(&most), frames));
        let hardening = Hardening::default();
        let mut worker = Worker { child, frames: received, most, reader, asked: 0, loaded: None, hardening };
        match worker.first(START).await? {
            FromJudge::Ready { build, hardening } => {
                worker.child.of_build(&home.build, &build)?;
                worker.hardening = hardening;
            }
            other => return Err(worker.child.nonsense(format!("{other:?}"))),
        }
        Ok(worker)
    }

    /// A frame without a raw part, within this time.
    async fn first(&mut self, within: Duration) -> Result<FromJudge, WorkerError> {
        match tokio::time::timeout(within, self.next()).await {
            Ok(frame) => Ok(frame?.message),
            Err(_) => Err(self.child.hung(within)),
        }
    }

    async fn next(&mut self) -> Result<Frame<FromJudge>, WorkerError> {
        match self.frames.recv().await {
            Some(Ok(frame)) => Ok(frame),
            Some(Err(error)) => Err(self.child.lost(error).await),
            None => Err(self.child.lost(FrameError::Closed).await),
        }
    }

    async fn send(&mut self, message: &ToJudge, raw: &[u8]) -> Result<(), WorkerError> {
        match self.child.send(message, raw).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.child.unsent(error).await),
        }
    }

    /// Hands over the compiled code, unless it was. It goes through the pipe, so that the worker
    /// needs no file of the cache, and can read none.
    async fn load(&mut self, component: &Component) -> Result<(), WorkerError> {
        if self.loaded.is_some() {
            return Ok(());
        }
        let code = component.pre.instance_pre().component().serialize();
        let code = code
            .map_err(|error| self.child.unsendable(format!("code that cannot be serialized: {error:#}")))?;
        let manifest = &component.manifest;
        let message =
            ToJudge::Load { component: component.digest, name: manifest.name.clone(), kind: manifest.kind };
        let sent = tokio::time::timeout(START, self.send(&message, &code)).await;
        sent.unwrap_or_else(|_| Err(self.child.hung(START)))?;
        match self.first(START).await? {
            FromJudge::Loaded => {
                self.loaded = Some(component.digest);
                Ok(())
            }
            other => Err(self.child.nonsense(short(&format!("{other:?}")))),
        }
    }

    async fn judge(&mut self, question: &Question) -> Result<Judged, WorkerError> {
        let limits = &question.setting.limits;
        self.asked += 1;
        let asked = self.asked;
        *self.most.lock().unwrap_or_else(PoisonError::into_inner) = most_out_under(limits);
        let message = ToJudge::Judge {
            question: asked,
            setting: in_worker(&question.setting),
            submission: question.submission.clone(),
        };
        self.send(&message, &[]).await?;
        let gate = (question.gate)(&question.setting);
        // What a guest can ask for at most, on all ways together.
        let mut left = limits.get(LimitKey::HostCalls).saturating_add(limits.get(LimitKey::WasiCalls));
        // Dropped with this conversation, and with it all that it still waits for.
        let mut under_way: JoinSet<(u64, Answer, Vec<u8>)> = JoinSet::new();
        // The bodies that its requests carry: no more than one that is as long as may be.
        let held = Arc::new(AtomicUsize::new(0));
        let most_held = usize::try_from(most_body(limits)).unwrap_or(usize::MAX);
        loop {
            let frame = tokio::select! {
                Some(done) = under_way.join_next() => {
                    let (to, answer, raw) = match done {
                        Ok(done) => done,
                        Err(error) => std::panic::resume_unwind(error.into_panic()),
                    };
                    self.send(&ToJudge::Answer { to, answer }, &raw).await?;
                    continue;
                }
                frame = self.next(), if under_way.len() < UNDER_WAY
                    && (under_way.is_empty() || held.load(Ordering::Relaxed) < most_held) => frame?,
            };
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return Err(self.child.nonsense("more than a guest can ask for".to_owned())),
            };
            match frame.message {
                FromJudge::Judged { question: of, judged } if of == asked => return Ok(*judged),
                // What was on its way when an earlier question was answered has nobody to be told.
                FromJudge::Log { question: of, .. } | FromJudge::Wants { question: of, .. } if of < asked => {
                }
                FromJudge::Log { question: of, level, message } if of == asked => {
                    let message = told(&question.scrubber, &message);
                    self.log(&*question.setting.observer, &level, &message)?;
                }
                FromJudge::Wants { question: of, number, want } if of == asked => {
                    if let Some(answer) = at_once(question, &want) {
                        self.send(&ToJudge::Answer { to: number, answer }, &[]).await?;
                    } else {
                        let body = Held::new(&held, frame.raw.len());
                        start(&mut under_way, question, &*gate, number, want, frame.raw, body);
                    }
                }
                FromJudge::Judged { question: of, .. }
                | FromJudge::Log { question: of, .. }
                | FromJudge::Wants { question: of, .. } => {
                    let what = format!("something of question {of}, where {asked} is asked");
                    return Err(self.child.nonsense(what));
                }
                other @ (FromJudge::Ready { .. } | FromJudge::Loaded | FromJudge::NotLoaded(_)) => {
                    return Err(self.child.nonsense(short(&format!("{other:?}"))));
                }
            }
        }
    }

    fn log(&mut self, observer: &dyn Observer, level: &str, message: &str) -> Result<(), WorkerError> {
        if !["debug", "info", "warn", "error"].contains(&level) {
            return Err(self.child.nonsense(format!("a log line of the level {}", short(level))));
        }
        observer.log(level, message);
        Ok(())
    }
}

async fn read_on(
    mut output: Receiver,
    most: Arc<Mutex<Most>>,
    frames: mpsc::Sender<Result<Frame<FromJudge>, FrameError>>,
) {
    loop {
        let now = || *most.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = read_async_when(&mut output, now).await;
        let last = frame.is_err();
        // Nobody listens any more, or nothing more can be read.
        if frames.send(frame).await.is_err() || last {
            return;
        }
    }
}

/// The answer to what needs no waiting.
fn at_once(question: &Question, want: &Want) -> Option<Answer> {
    let facts = &question.setting.facts;
    match want {
        Want::Fact(id) => Some(Answer::Fact(facts.get(id))),
        Want::Facts { prefix, after, limit } => {
            Some(Answer::Facts(facts.find(prefix, after.as_deref(), *limit)))
        }
        Want::Progress { .. } | Want::Fetch { .. } => None,
    }
}

/// Starts what may take its time.
fn start(
    under_way: &mut JoinSet<(u64, Answer, Vec<u8>)>,
    question: &Question,
    gate: &dyn Gate,
    number: u64,
    want: Want,
    raw: Vec<u8>,
    body: Held,
) {
    match want {
        Want::Progress { done, total, message } => {
            let observer = Arc::clone(&question.setting.observer);
            let message = told(&question.scrubber, &message);
            under_way.spawn(async move {
                observer.progress(done, total, message).await;
                (number, Answer::Told, Vec::new())
            });
        }
        Want::Fetch { method, url, headers, timeout_ms, follow } => {
            let timeout = timeout_ms.map(Duration::from_millis);
            let request = Request { method, url, headers, body: raw.into(), timeout, follow };
            let fetch = gate.fetch(request);
            under_way.spawn(async move {
                let _body = body;
                match fetch.await {
                    Ok(response) => {
                        let (url, status, headers) = (response.url, response.status, response.headers);
                        (number, Answer::Fetched { url, status, headers }, response.body.into())
                    }
                    Err(denied) => (number, Answer::Denied(denied.into()), Vec::new()),
                }
            });
        }
        Want::Fact(_) | Want::Facts { .. } => {}
    }
}

impl From<NoAnswer> for Refusal {
    fn from(denied: NoAnswer) -> Self {
        match denied {
            NoAnswer::Denied(why) => Refusal::Denied(why),
            NoAnswer::TimedOut => Refusal::TimedOut,
            NoAnswer::TooLarge(most) => Refusal::TooLarge(most),
            NoAnswer::Invalid(why) => Refusal::Invalid(why),
            NoAnswer::Transport(why) => Refusal::Transport(why),
        }
    }
}

fn in_worker(setting: &Setting) -> Asked {
    Asked {
        component: setting.component,
        limits: setting.limits.clone(),
        input: setting.input.clone(),
        artifacts: setting.artifacts.clone(),
        work: setting.work.clone(),
        time: setting.granted.clock,
        clock: setting.clock,
        seed: setting.seed,
    }
}

/// What observers are told of a text: cut before anything is done with it, and after the search,
/// which may make it longer.
fn told(scrubber: &Scrubber, text: &str) -> String {
    let text = scrubber.text(&text[..text.floor_char_boundary(SEARCHED)]);
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

/// A body that a request under way carries.
struct Held {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Held {
    fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Self {
        all.fetch_add(bytes, Ordering::Relaxed);
        Held { all: Arc::clone(all), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use checkrein_contract::interface::{Body, Call, Outcome, Subgoal};
    use checkrein_contract::limits::Limits;
    use checkrein_contract::manifest::Kind;
    use checkrein_contract::port::Guests as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::component::{Pre, bare_manifest};
    use crate::engine::CALLS_AT_ONCE;
    use crate::load::trial_setting;
    use crate::testing::{MemoryBlobs, places_in};
    use crate::{Options, Sandbox, Workers};

    fn submission() -> Submission {
        let subgoal = Subgoal {
            id: "s".into(),
            goal: "g".into(),
            args: json!({}),
            evidence: Vec::new(),
            criteria: Vec::new(),
        };
        let call = Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) };
        let outcome = Outcome { content: json!({}), facts: Vec::new(), artifacts: Vec::new() };
        Submission {
            skill: "x".into(),
            version: "1.0.0".into(),
            subgoal,
            body: Body::Performed { call, outcome },
            inputs: Vec::new(),
            settings: Value::Null,
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_worker_holds_no_place_of_other_calls() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("worker.sh");
        // It never says that it is ready.
        std::fs::write(&program, "#!/bin/sh\necho >\"$3/begun\"\nexec cat >/dev/null\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let options =
            Options { workers: Some(Workers { program, verify: true }), ..Options::new(places_in(&folder)) };
        let sandbox = Sandbox::new(options, Arc::new(MemoryBlobs::default())).unwrap();
        let bytes = wat::parse_str("(component)").unwrap();
        let digest = Digest::of(&bytes);
        let compiled = wasmtime::component::Component::from_binary(&sandbox.0.engine, &bytes).unwrap();
        let pre = Pre::Bare(sandbox.0.link(&compiled).unwrap());
        let component = Component::new(digest, bare_manifest("v", Kind::Verifier), pre);
        sandbox.register(Arc::new(component));

        let begun = folder.path().join("scratch/begun");
        let asked = sandbox.verify(trial_setting(digest, Limits::default()), submission());
        let looked = async {
            while !begun.exists() {
                tokio::task::yield_now().await;
            }
            sandbox.0.places.available_permits()
        };
        let free = tokio::select! {
            ran = asked => panic!("{ran:?}"),
            free = looked => free,
        };
        assert_eq!(free, CALLS_AT_ONCE as usize);
    }

    #[test]
    fn a_text_is_cut_before_and_after_its_search() {
        let text = told(&Scrubber::default(), &"é".repeat(SEARCHED));
        assert!(text.len() <= SHOWN && text.len() > SHOWN - 2);
        assert_eq!(told(&Scrubber::default(), "short"), "short");
    }

    #[test]
    fn the_bodies_under_way_are_counted_while_they_are_held() {
        let all = Arc::new(AtomicUsize::new(0));
        let first = Held::new(&all, 10);
        let second = Held::new(&all, 5);
        assert_eq!(all.load(Ordering::Relaxed), 15);
        drop(first);
        assert_eq!(all.load(Ordering::Relaxed), 5);
        drop(second);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
