//! The sandbox: what runs components, and the port of the harness to them.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use checkrein_contract::digest::Digest;
use checkrein_contract::interface::{
    Advice, Assessment, Call, Failure, Mishap, Subgoal, Submission, Verdict,
};
use checkrein_contract::manifest::Kind;
use checkrein_contract::port::{Blobs, BoxFuture, Execution, Guests, Ran, Setting, StorageError};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::component::Component;
use crate::engine::{CALLS_AT_ONCE, EngineError};
use crate::invoke::{execute, faulted, run};
use crate::net::{Network, Resolver, Secrets, SystemResolver};
use crate::parts::{Assess, Execute, Part, Recover, Verify};
use crate::scratch::sweep;
use crate::state::State;

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
    /// The threads for guests do not start.
    #[error("no threads could be started for guests: {0}")]
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
    pub(crate) cache: Cache,
    pub(crate) scratch: PathBuf,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) network: Network,
    pub(crate) workers: Option<Workers>,
    /// Calls at once, of all components.
    pub(crate) places: Semaphore,
    allocation: String,
    components: RwLock<HashMap<Digest, Arc<Component>>>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Sandbox {
    /// Starts the engine and the threads for guests, and removes what killed processes left in
    /// the folders.
    ///
    /// # Errors
    ///
    /// If wasmtime cannot run on this machine, or a folder cannot be used.
    pub fn new(options: Options, blobs: Arc<dyn Blobs>) -> Result<Self, SandboxError> {
        let Options { places, secrets, resolver, roots, workers } = options;
        let (engine, allocation) = crate::engine::build()?;
        let mut linker = Linker::new(&engine);
        crate::imports::add_to_linker(&mut linker)
            .map_err(|error| SandboxError::Link(format!("{error:#}")))?;
        std::fs::create_dir_all(&places.scratch)
            .map_err(|error| StorageError::of_io(&places.scratch, &error))?;
        sweep(&places.scratch)?;
        let cache = Cache::open(&places.cache, &engine)?;
        Ok(Sandbox(Arc::new(Host {
            engine,
            linker,
            cache,
            scratch: places.scratch,
            blobs,
            network: Network { resolver, secrets: Arc::new(secrets), roots },
            workers,
            places: Semaphore::new(CALLS_AT_ONCE as usize),
            allocation,
            components: RwLock::default(),
            runtime: Some(start_runtime().map_err(SandboxError::Runtime)?),
        })))
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
        let runtime = self.0.runtime.as_ref().ok_or("the sandbox is shutting down")?;
        Task(runtime.spawn(work)).await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => format!("the host panicked in this call: {}", panic_message(&*panic)),
            Err(_) => "the call was ended from outside".to_owned(),
        })
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
        let host = Arc::clone(&self.0);
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
            let component = match self.find(&setting.component, true) {
                Ok(component) => component,
                Err(why) => return faulted(why),
            };
            let host = Arc::clone(&self.0);
            let call = async move { execute(&host, &component, setting, Execute(call)).await };
            self.on_guest_threads(call).await.unwrap_or_else(faulted)
        })
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        Box::pin(self.ask(setting, Verify(submission), false))
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        Box::pin(self.ask(setting, Recover(mishap), true))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A runtime may not be waited for on the thread of another one, where this may well run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn start_runtime() -> io::Result<Runtime> {
    // Two at least: a guest that computes must not keep the timers of the others waiting.
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("checkrein-guest")
        // A thread that blocked once is soon given back, so that one that still does is seen.
        .thread_keep_alive(IDLE)
        .enable_all()
        .build()
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
