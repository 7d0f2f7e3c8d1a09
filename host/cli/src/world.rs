//! The outside world of a run: state folder, sandbox, clock, ids.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::BoxFuture;
use checkrein_harness::driver::Clock;
use checkrein_sandbox::{Options, Places, Protected, Sandbox, SandboxError, Secrets, Workers};
use checkrein_store::{State, StoreError};
use rand::RngExt;

use crate::args::Global;
use crate::config::state_folder;
use crate::error::CliError;
use crate::operator::Operator;
use crate::standing::{Standing, of_operator};

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_millis() as u64)
    }

    fn until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let left = at.0.saturating_sub(self.now().0);
        Box::pin(tokio::time::sleep(Duration::from_millis(left)))
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

/// The sandbox for what the configuration grants, after its limits were tried on this machine.
///
/// # Errors
///
/// As for [`sandbox`].
pub async fn sandbox_of(state: &State, standing: &Standing) -> Result<Sandbox, CliError> {
    let Standing { operator, secrets, protected, .. } = standing;
    tried(build(state, operator, secrets.clone(), protected.clone())?).await
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
    build(state, operator, secrets, of_operator(operator))
}

fn build(
    state: &State,
    operator: &Operator,
    secrets: Secrets,
    mut protected: Vec<Protected>,
) -> Result<Sandbox, CliError> {
    // Blobs, reports and the database are as little a component's as cache and scratch.
    protected.push(Protected::Folder(state.dir().to_owned()));
    let places = Places { cache: cache_folder(state), scratch: state.dir().join("scratch") };
    let program = std::env::current_exe()
        .map_err(|error| CliError::Ours(format!("this program does not find itself: {error}")))?;
    let workers = Some(Workers { program, verify: operator.process });
    let options = Options { secrets, workers, protected, ..Options::new(places) };
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
