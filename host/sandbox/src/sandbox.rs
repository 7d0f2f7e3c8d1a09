//! The sandbox: what runs components, and the port of the harness to them.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::interface::{
    Advice, Assessment, Call, Failure, Mishap, Subgoal, Submission, Verdict,
};
use checkrein_contract::limits::LimitKey;
use checkrein_contract::manifest::Kind;
use checkrein_contract::port::{Blobs, BoxFuture, Execution, Guests, Ran, Setting, StorageError};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use wasmtime::Engine;
use wasmtime::component::{Component as Compiled, InstancePre, Linker};

use crate::cache::Cache;
use crate::component::{Component, Pre, bare_manifest};
use crate::engine::{CALLS_AT_ONCE, EngineError};
use crate::files::{OPEN_MAX, Protected, raise_open_files};
use crate::folders::Known;
use crate::imports;
use crate::invoke::{execute, faulted, gate_for, run, scrubber_for, take_turn};
use crate::meter::FAR;
use crate::net::{Gate, Network, Resolver, Secrets, SystemResolver, WayOut};
use crate::parts::{Assess, Execute, Part, Recover, Verify};
use crate::recorder::Recorder;
use crate::replay::settled;
use crate::scratch::sweep;
use crate::state::State;
use crate::worker::compiler::{self, Compiler};
use crate::worker::pool::{Pool, Question, canonical};
use crate::worker::{Hardening, WorkerError};

/// Open files that this process may need: those of all calls at once, and some of its own.
const OPEN_FILES: u64 = CALLS_AT_ONCE as u64 * (OPEN_MAX + 8) + 1024;

/// How long a thread for blocking work waits for more.
const IDLE: Duration = Duration::from_secs(1);

/// Where the sandbox keeps what it makes. Both folders are made if they are not there.
#[derive(Clone, Debug)]
pub struct Places {
    /// Compiled code. It is made readable by its owner alone, and may be removed at any time.
    pub cache: PathBuf,
    /// The `/work` of running executors.
    pub scratch: PathBuf,
}

/// Processes of this host that do what must not be done in it.
#[derive(Clone, Debug)]
pub struct Workers {
    /// The binary: called as `PROGRAM worker compile` and `PROGRAM worker verify`.
    pub program: PathBuf,
    /// Whether verifications run there too, and not only the compiler.
    pub verify: bool,
}

/// What a sandbox is made from.
#[derive(Clone)]
pub struct Options {
    /// Where it keeps what it makes.
    pub places: Places,
    /// The secrets that requests can carry.
    pub secrets: Secrets,
    /// How names become addresses.
    pub resolver: Arc<dyn Resolver>,
    /// Certificates, in DER, that are trusted besides the system's.
    pub roots: Vec<Vec<u8>>,
    /// The processes for compiling and verification; `None` does both in this one.
    pub workers: Option<Workers>,
    /// How long a worker may compile one component.
    pub compile_wall: Duration,
    /// What no granted folder may reach, besides the places: configuration, state, secrets.
    pub protected: Vec<Protected>,
    /// A dry run: no import with an effect is linked, and executors are not called. What imports one
    /// loads all the same, and traps where it calls it.
    pub dry: bool,
}

impl Options {
    /// No secrets, the system's resolver and certificates, no other process.
    pub fn new(places: Places) -> Self {
        Options {
            places,
            secrets: Secrets::default(),
            resolver: Arc::new(SystemResolver),
            roots: Vec::new(),
            workers: None,
            compile_wall: compiler::WALL,
            protected: Vec::new(),
            dry: false,
        }
    }
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The host's functions do not fit the engine: a fault of ours.
    #[error("the host's functions cannot be linked: {0}")]
    Link(String),
    /// A folder of [`Places`] cannot be made, read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The threads for guests, the network or workers do not start.
    #[error("no threads could be started for the sandbox: {0}")]
    Runtime(#[source] io::Error),
}

/// Loads components and runs their parts: each call in a fresh instance, within its limits, on
/// threads apart from the caller's. Clones share one engine, one cache and one set of components.
///
/// Its futures can be awaited on any executor; dropping one ends its call.
#[derive(Clone)]
pub struct Sandbox(pub(crate) Arc<Host>);

/// What the clones of a sandbox share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// `None` in a worker process, which keeps nothing.
    pub(crate) cache: Option<Cache>,
    pub(crate) scratch: PathBuf,
    /// Whether nothing with an effect is linked.
    pub(crate) dry: bool,
    /// The files of granted folders that were hashed.
    pub(crate) known: Arc<Known>,
    /// What no granted folder may reach, besides cache and scratch.
    pub(crate) protected: Vec<Protected>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) way_out: WayOut,
    /// Compiles elsewhere; without it, here.
    pub(crate) compiler: Option<Compiler>,
    /// Verifies elsewhere; without it, here.
    judges: Option<Pool>,
    /// Calls at once, of all components.
    pub(crate) places: Semaphore,
    allocation: String,
    components: RwLock<HashMap<Digest, Arc<Component>>>,
    /// The guests' threads, those of timers, and those of worker processes: what computes, or reads
    /// what a stranger's process says, must not make late what waits. `None` only while it is
    /// dropped.
    runtimes: Option<Runtimes>,
}

struct Runtimes {
    guests: Runtime,
    host: Runtime,
    /// Where worker processes are started, fed and read. `None` in one, which has none of its own.
    workers: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engine and the threads for guests, and removes what killed processes left in
    /// the folders.
    ///
    /// # Errors
    ///
    /// If wasmtime cannot run on this machine, or a folder cannot be used.
    pub fn new(options: Options, blobs: Arc<dyn Blobs>) -> Result<Self, SandboxError> {
        let Options { places, secrets, resolver, roots, workers, compile_wall, protected, dry } = options;
        let (engine, allocation) = crate::engine::build()?;
        let linker = link(&engine, dry)?;
        std::fs::create_dir_all(&places.scratch)
            .map_err(|error| StorageError::of_io(&places.scratch, &error))?;
        sweep(&places.scratch)?;
        raise_open_files(OPEN_FILES);
        let cache = Cache::open(&places.cache, &engine)?;
        let network = Network::start(resolver, secrets, roots).map_err(SandboxError::Runtime)?;
        let judges = match &workers {
            Some(workers) if workers.verify => {
                let (program, build) = (workers.program.clone(), crate::cache::build(&engine));
                Some(Pool::new(program, canonical(&places.scratch)?, build, dry))
            }
            _ => None,
        };
        let build = |_: &Workers| crate::cache::build(&engine);
        let build = workers.as_ref().map(build).unwrap_or_default();
        let compiler =
            workers.map(|workers| Compiler { program: workers.program, wall: compile_wall, build });
        Ok(Sandbox(Arc::new(Host {
            engine,
            linker,
            cache: Some(cache),
            scratch: places.scratch,
            dry,
            known: Arc::default(),
            protected,
            blobs,
            way_out: WayOut::Network(network),
            compiler,
            judges,
            places: Semaphore::new(CALLS_AT_ONCE as usize),
            allocation,
            components: RwLock::default(),
            runtimes: Some(Runtimes::start(true).map_err(SandboxError::Runtime)?),
        })))
    }

    /// The sandbox of a worker process: it keeps nothing, and asks its host for everything.
    pub(crate) fn for_judging(
        gate: Arc<dyn Gate>,
        blobs: Arc<dyn Blobs>,
        dry: bool,
    ) -> Result<Self, SandboxError> {
        let engine = crate::engine::build_on_demand()?;
        let linker = link(&engine, dry)?;
        Ok(Sandbox(Arc::new(Host {
            engine,
            linker,
            cache: None,
            scratch: PathBuf::new(),
            dry,
            known: Arc::default(),
            protected: Vec::new(),
            blobs,
            way_out: WayOut::Host(gate),
            compiler: None,
            judges: None,
            places: Semaphore::new(1),
            allocation: "on demand".to_owned(),
            components: RwLock::default(),
            runtimes: Some(Runtimes::start(false).map_err(SandboxError::Runtime)?),
        })))
    }

    /// The walls around the processes that verify, seen by starting one; `None` if verifications
    /// run in this process.
    ///
    /// # Errors
    ///
    /// If no worker starts, or one of its walls does not stand.
    pub async fn hardening(&self) -> Result<Option<Hardening>, WorkerError> {
        let host = Arc::clone(&self.0);
        let ask = async move {
            match &host.judges {
                Some(judges) => judges.hardening().await.map(Some),
                None => Ok(None),
            }
        };
        let lost = |why| WorkerError::Nonsense { role: "verify", what: why };
        self.on_host_threads(ask).await.map_err(lost)?
    }

    /// The numbers of the verification workers that wait for a question.
    pub fn waiting_workers(&self) -> Vec<u32> {
        self.0.judges.as_ref().map_or_else(Vec::new, Pool::processes)
    }

    /// Ends the workers that wait for a question; others are started when they are needed.
    pub(crate) fn dismiss_workers(&self) {
        if let Some(judges) = &self.0.judges {
            judges.dismiss();
        }
    }

    /// The engine and how it allocates, in one line.
    pub fn describe(&self) -> String {
        format!("wasmtime {}, instances {}", crate::WASMTIME, self.0.allocation)
    }

    /// Runs this on the guests' threads. Dropping the future ends it.
    pub(crate) async fn on_guest_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        finish(self.0.runtimes()?.guests.spawn(work)).await
    }

    /// Runs this where worker processes are waited for. Dropping the future ends it.
    pub(crate) async fn on_host_threads<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let runtimes = self.0.runtimes()?;
        finish(runtimes.workers.as_ref().unwrap_or(&runtimes.host).spawn(work)).await
    }

    /// Starts this where timers are waited for, and does not wait for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), String> {
        drop(self.0.runtimes()?.host.spawn(work));
        Ok(())
    }

    /// Waits for this on the current thread, which is no runtime's.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        Ok(self.0.runtimes()?.host.block_on(work))
    }

    /// Puts compiled code where calls find it: how a worker gets its components.
    pub(crate) fn load_code(
        &self,
        digest: Digest,
        name: &str,
        kind: Kind,
        code: &[u8],
    ) -> Result<(), String> {
        let told = |error: wasmtime::Error| format!("{error:#}");
        let compiled = crate::cache::load_fresh(&self.0.engine, code).map_err(told)?;
        let pre = self.0.link(&compiled).and_then(|pre| Pre::of(kind, pre)).map_err(told)?;
        self.register(Arc::new(Component::new(digest, bare_manifest(name, kind), pre)));
        Ok(())
    }

    async fn judge_apart(&self, setting: Setting, submission: Submission) -> Ran<Result<Verdict, Failure>> {
        let component = match self.find(&setting.component, false) {
            Ok(component) => component,
            Err(why) => return faulted(why),
        };
        let (host, setting) = (Arc::clone(&self.0), settled(setting));
        let call = async move {
            let Some(judges) = &host.judges else { return faulted("there are no workers to verify in") };
            let turns = Arc::clone(&component.turns);
            // No place of the calls in this process is taken: who waits for a worker keeps no
            // executor waiting.
            let _turn = take_turn(&turns, judges.turns()).await;
            let recorder = Recorder::default();
            let scrubber = scrubber_for(&host, &setting);
            let (own, seen) = (Arc::clone(&host), recorder.clone());
            let gate = Box::new(move |setting: &Setting| {
                let wall = Duration::from_millis(setting.limits.get(LimitKey::Wall));
                let now = Instant::now();
                let deadline = now.checked_add(wall).unwrap_or(now + FAR);
                gate_for(&own, setting, deadline, seen.clone())
            });
            judges.judge(Question { component, setting, submission, gate, scrubber, recorder }).await
        };
        self.on_host_threads(call).await.unwrap_or_else(faulted)
    }

    pub(crate) fn register(&self, component: Arc<Component>) {
        let mut components = self.0.components.write().unwrap_or_else(PoisonError::into_inner);
        // The same bytes loaded twice share one entry, and with it one share of the calls at once.
        components.entry(component.digest).or_insert(component);
    }

    /// Forgets a component; calls of it that are under way go on.
    pub(crate) fn forget(&self, digest: &Digest) {
        self.0.components.write().unwrap_or_else(PoisonError::into_inner).remove(digest);
    }

    pub(crate) fn component(&self, digest: &Digest) -> Option<Arc<Component>> {
        self.0.components.read().unwrap_or_else(PoisonError::into_inner).get(digest).map(Arc::clone)
    }

    /// The component, if it is loaded and has the part.
    fn find(&self, digest: &Digest, skills_only: bool) -> Result<Arc<Component>, String> {
        let component = self.component(digest).ok_or_else(|| format!("no component {digest} is loaded"))?;
        if skills_only && component.manifest.kind == Kind::Verifier {
            return Err(format!(
                "`{}` is a verifier: it can only be asked to verify",
                component.manifest.name
            ));
        }
        Ok(component)
    }

    async fn ask<P: Part>(&self, setting: Setting, part: P, skills_only: bool) -> Ran<P::Answer> {
        let component = match self.find(&setting.component, skills_only) {
            Ok(component) => component,
            Err(why) => return faulted(why),
        };
        let (host, setting) = (Arc::clone(&self.0), settled(setting));
        let call = async move { run(&host, &component, setting, part).await };
        self.on_guest_threads(call).await.unwrap_or_else(faulted)
    }
}

impl Guests for Sandbox {
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        Box::pin(self.ask(setting, Assess(subgoal), true))
    }

    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        Box::pin(async move {
            if self.0.dry {
                return faulted("a dry run executes nothing");
            }
            let component = match self.find(&setting.component, true) {
                Ok(component) => component,
                Err(why) => return faulted(why),
            };
            let (host, setting) = (Arc::clone(&self.0), settled(setting));
            let call = async move { execute(&host, &component, setting, Execute(call)).await };
            self.on_guest_threads(call).await.unwrap_or_else(faulted)
        })
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        if self.0.judges.is_some() {
            return Box::pin(self.judge_apart(setting, submission));
        }
        Box::pin(self.ask(setting, Verify(submission), false))
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        Box::pin(self.ask(setting, Recover(mishap), true))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A runtime may not be waited for on the thread of another one, where this may well run.
        if let Some(Runtimes { guests, host, workers }) = self.runtimes.take() {
            guests.shutdown_background();
            host.shutdown_background();
            if let Some(workers) = workers {
                workers.shutdown_background();
            }
        }
    }
}

impl Host {
    fn runtimes(&self) -> Result<&Runtimes, String> {
        self.runtimes.as_ref().ok_or_else(|| "the sandbox is shutting down".to_owned())
    }

    /// Links a component.
    pub(crate) fn link(&self, compiled: &Compiled) -> wasmtime::Result<InstancePre<State>> {
        if self.dry {
            crate::dry::link(&self.linker, compiled)
        } else {
            self.linker.instantiate_pre(compiled)
        }
    }

    /// Waits until then, by a timer that no guest makes late.
    pub(crate) fn at(&self, deadline: Instant) -> Pin<Box<tokio::time::Sleep>> {
        let _timers = self.runtimes.as_ref().map(|runtimes| runtimes.host.enter());
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }
}

impl Runtimes {
    fn start(workers: bool) -> io::Result<Self> {
        // Two at least, so that one guest that is slow to yield does not keep all others waiting.
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        let start = |name: &str, threads| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name(name)
                // A thread that blocked once is soon given back, so that one that still does is seen.
                .thread_keep_alive(IDLE)
                .enable_all()
                .build()
        };
        Ok(Runtimes {
            guests: start("checkrein-guest", cores)?,
            host: start("checkrein-timer", 2)?,
            workers: if workers { Some(start("checkrein-worker", 2)?) } else { None },
        })
    }
}

fn link(engine: &Engine, dry: bool) -> Result<Linker<State>, SandboxError> {
    let mut linker = Linker::new(engine);
    let linked = if dry { imports::add_inert(&mut linker) } else { imports::add_to_linker(&mut linker) };
    linked.map_err(|error| SandboxError::Link(format!("{error:#}")))?;
    Ok(linker)
}

async fn finish<T>(task: JoinHandle<T>) -> Result<T, String> {
    Task(task).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => format!("the host panicked in this call: {}", panic_message(&*panic)),
        Err(_) => "the call was ended from outside".to_owned(),
    })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// A task that ends when nobody waits for it any more.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
