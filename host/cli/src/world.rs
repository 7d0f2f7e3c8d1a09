//! The outside world of a run: state folder, sandbox, clock, signals, ids.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_contract::event::Stop;
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::BoxFuture;
use checkrein_harness::driver::Clock;
use checkrein_sandbox::{Options, Places, Protected, Sandbox, SandboxError, Secrets, Workers};
use checkrein_store::{State, StoreError};
use rand::RngExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::Global;
use crate::config::state_folder;
use crate::error::{CliError, exit, watch};
use crate::operator::Operator;
use crate::output;
use crate::standing::{Standing, of_operator};

/// The system's clock, as it stood when this was made, moved on by what has passed since: setting it
/// while a run goes on moves no deadline.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    made: Timestamp,
    at: Instant,
}

impl SystemClock {
    /// The clock, set by the system's.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SystemClock { made: Timestamp(since.as_millis() as u64), at: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.made.0.saturating_add(self.at.elapsed().as_millis() as u64))
    }

    fn until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let left = at.0.saturating_sub(self.now().0);
        Box::pin(tokio::time::sleep(Duration::from_millis(left)))
    }
}

/// Ready when a person, or the system, asks the process to stop; it listens from now on. Asked
/// again, or when nobody waits for this any more, the process ends at once: what it did is in the log.
///
/// # Errors
///
/// If it cannot listen.
pub fn interruption() -> Result<impl Future<Output = Stop>, CliError> {
    let listen = |kind| signal(kind).map_err(|error| CliError::Ours(format!("no signals: {error}")));
    let mut signals = [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?];
    let (told, stop) = oneshot::channel();
    tokio::spawn(async move {
        either(&mut signals).await;
        if told.send(Stop::Interrupted).is_ok() {
            output::message("interrupted: calls in hand are ended; once more ends the process at once");
            either(&mut signals).await;
        }
        std::process::exit(i32::from(exit::INTERRUPTED));
    });
    Ok(async move {
        match stop.await {
            Ok(stop) => stop,
            // Who listens is gone, and so nobody asks.
            Err(_) => std::future::pending().await,
        }
    })
}

async fn either([interrupt, terminate]: &mut [Signal; 2]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// A run id: the day, and six characters by chance.
pub fn new_run_id(now: Timestamp) -> RunId {
    const ALPHABET: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let day = jiff::Timestamp::from_millisecond(now.0 as i64)
        .map(|at| at.strftime("%Y%m%d").to_string())
        .unwrap_or_default();
    let mut random = rand::rng();
    let tail: String = (0..6).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect();
    RunId(format!("{day}-{tail}"))
}

/// Opens the state folder, and makes it if it is not there.
///
/// # Errors
///
/// If it cannot be made or written.
pub fn open_state(global: &Global) -> Result<State, CliError> {
    Ok(State::open(&state_folder(global)?)?)
}

/// Opens the state folder for reading.
///
/// # Errors
///
/// If there is none.
pub fn read_state(global: &Global) -> Result<State, CliError> {
    Ok(State::open_existing(&state_folder(global)?)?)
}

/// Opens a state folder that is there, for writing.
///
/// # Errors
///
/// If there is none: whoever goes on with a run makes none.
pub fn existing_state(global: &Global) -> Result<State, CliError> {
    let folder = state_folder(global)?;
    match State::open_existing(&folder) {
        Err(error @ StoreError::NoState { .. }) => Err(error.into()),
        // What else keeps it from being read, opening it for writing mends or tells.
        _ => Ok(State::open(&folder)?),
    }
}

/// The sandbox for what the configuration grants, after its limits were tried on this machine. For
/// a dry run it is one in which nothing that a guest does has an effect.
///
/// # Errors
///
/// As for [`sandbox`].
pub async fn sandbox_of(state: &State, standing: &Standing) -> Result<Sandbox, CliError> {
    let Standing { operator, secrets, protected, dry, .. } = standing;
    tried(build(state, operator, secrets.clone(), protected.clone(), *dry)?).await
}

/// The sandbox over a state folder, for who is granted nothing by a configuration, after its limits
/// were tried on this machine: nothing of a stranger runs where they do not hold.
///
/// # Errors
///
/// If it cannot be set up, or a limit does not hold.
pub async fn sandbox(state: &State, operator: &Operator, secrets: Secrets) -> Result<Sandbox, CliError> {
    tried(untried_sandbox(state, operator, secrets)?).await
}

async fn tried(sandbox: Sandbox) -> Result<Sandbox, CliError> {
    let held = sandbox.self_test().await;
    held.map_err(|error| CliError::Ours(format!("{error}; `checkrein doctor` shows what is in force")))?;
    Ok(sandbox)
}

/// The sandbox over a state folder, for who tries its limits.
///
/// # Errors
///
/// If it cannot be set up.
pub fn untried_sandbox(state: &State, operator: &Operator, secrets: Secrets) -> Result<Sandbox, CliError> {
    build(state, operator, secrets, of_operator(operator), false)
}

fn build(
    state: &State,
    operator: &Operator,
    secrets: Secrets,
    mut protected: Vec<Protected>,
    dry: bool,
) -> Result<Sandbox, CliError> {
    // Blobs, reports and the database are as little a component's as cache and scratch.
    protected.push(Protected::Folder(state.dir().to_owned()));
    let places = Places { cache: cache_folder(state), scratch: state.dir().join("scratch") };
    let program = std::env::current_exe()
        .map_err(|error| CliError::Ours(format!("this program does not find itself: {error}")))?;
    let workers = Some(Workers { program, verify: operator.process });
    let options = Options { secrets, workers, protected, dry, ..Options::new(places) };
    Ok(Sandbox::new(options, Arc::new(state.blobs()))?)
}

/// Where compiled code is kept: with this user, `$XDG_STATE_HOME/checkrein/code`, else
/// `~/.local/state/checkrein/code`. Never with the project, which may come from a stranger: compiled code is
/// trusted, and a project that brings both code and key along would be. Without a home it is in the
/// state folder, beside nothing that was packed by others.
pub fn cache_folder(state: &State) -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    own.map_or_else(|| state.dir().join("cache"), |own| own.join("checkrein/code"))
}

impl From<SandboxError> for CliError {
    fn from(error: SandboxError) -> Self {
        CliError::Ours(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Storage(error) => error.into(),
            StoreError::Driven { ref run, .. } => CliError::usage(error.to_string(), watch(run)),
            StoreError::NoState { .. }
            | StoreError::NoRuns { .. }
            | StoreError::NoRun { .. }
            | StoreError::Ambiguous { .. } => {
                CliError::usage(error.to_string(), "`checkrein runs` lists them")
            }
            other => CliError::Storage(other.to_string()),
        }
    }
}
