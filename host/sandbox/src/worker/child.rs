//! A worker process, from its host's side: how it is started, what it complains of, and that it
//! never outlives who holds it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;

use super::Role;
use super::frame::{FrameError, write_async};
use crate::text::{at_most, excerpt, one_line};

/// Bytes of what a worker writes to stderr that are kept: the last ones.
const COMPLAINTS: usize = 4 << 10;
/// Bytes of nonsense that are told.
const SAID: usize = 4 << 10;
/// How long a worker may take to begin: to give up its rights, and to try its walls.
pub(super) const START: Duration = Duration::from_secs(60);
/// How long what a dead worker had written may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a worker process gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("the {role} worker `{program}` cannot be started: {source}")]
    Start {
        /// What it should have done.
        role: &'static str,
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It ended.
    #[error("the {role} worker ended ({status}){complaints}")]
    Died {
        /// What it should have done.
        role: &'static str,
        /// How.
        status: String,
        /// The end of what it wrote to stderr, after a colon.
        complaints: String,
    },
    /// It did not answer in time, and was killed.
    #[error("the {role} worker did not answer within {} ms and was killed", .after.as_millis())]
    Hung {
        /// What it should have done.
        role: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// It said what it may not say, and was killed.
    #[error("the {role} worker said what cannot be: {what}; it was killed")]
    Nonsense {
        /// What it should have done.
        role: &'static str,
        /// What it said.
        what: String,
    },
    /// It is another program than this host, and was given nothing.
    #[error(
        "the {role} worker is of another build: expected {expected}, found {found}; was this program replaced \
         while it runs? then start it again"
    )]
    OtherBuild {
        /// What it should have done.
        role: &'static str,
        /// This host's build.
        expected: String,
        /// Its build.
        found: String,
    },
    /// What it should be given cannot be sent: a fault of this host, or of its limits.
    #[error("the {role} worker cannot be given its work: {what}; lower the limits that let it grow so long")]
    Unsendable {
        /// What it should have done.
        role: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// A process that is killed and reaped by several: who holds it, and who hears its end.
type Shared = Arc<Mutex<Process>>;

/// A running worker. Dropped, it is killed; a thread waits until it is gone.
pub(super) struct Child {
    role: Role,
    id: u32,
    process: Shared,
    input: Sender,
    complaints: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Child {
    /// Starts a worker, with an empty environment, and gives the pipe of its answers. To be called
    /// on a thread that lasts: the kernel ends a worker with the thread that started it.
    /// `arguments` are the folder that it reads and whether it is a dry one, or how many seconds of
    /// processor time it may use.
    pub(super) fn start(
        program: &Path,
        role: Role,
        arguments: &[&OsStr],
    ) -> Result<(Self, Receiver), WorkerError> {
        Self::spawn(program, role, arguments).map_err(|source| WorkerError::Start {
            role: role.as_str(),
            program: program.display().to_string(),
            source,
        })
    }

    fn spawn(program: &Path, role: Role, arguments: &[&OsStr]) -> io::Result<(Self, Receiver)> {
        let mut command = Command::new(std::path::absolute(program)?);
        command.args(["worker", role.as_str()]).args(arguments).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let made = match pipes {
            (Some(input), Some(output), Some(errors)) => Sender::from_owned_fd(OwnedFd::from(input))
                .and_then(|input| Ok((input, receiver(output)?, receiver(errors)?))),
            _ => Err(io::Error::other("a pipe is missing")),
        };
        let id = process.id();
        let process = Arc::new(Mutex::new(process));
        let (input, output, errors) = made.inspect_err(|_| reap(&process))?;
        let complaints = Arc::default();
        let heard = listen(errors, role, Arc::clone(&complaints));
        let ended = Arc::clone(&process);
        let listener = tokio::spawn(async move {
            heard.await;
            // It is gone, or closed what an honest one never closes: it does not stay as a zombie
            // until it is asked again.
            drop(tokio::task::spawn_blocking(move || end(&ended)));
        });
        Ok((Child { role, id, process, input, complaints, listener }, output))
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Whether it has not ended.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(locked(&self.process).try_wait(), Ok(None))
    }

    /// Sends it a frame.
    pub(super) async fn send(&mut self, message: &impl Serialize, raw: &[u8]) -> Result<(), FrameError> {
        write_async(&mut self.input, message, raw, self.role.most_in()).await
    }

    /// What a frame that did not come, or was none, says of it. It is killed.
    pub(super) async fn lost(&mut self, error: FrameError) -> WorkerError {
        match error {
            FrameError::Closed | FrameError::Pipe(_) => self.died().await,
            FrameError::TooLong { .. } | FrameError::Malformed(_) => self.nonsense(error.to_string()),
        }
    }

    /// What a frame that could not be sent says, of the worker or of this host. It is killed.
    pub(super) async fn unsent(&mut self, error: FrameError) -> WorkerError {
        match error {
            FrameError::Closed | FrameError::Pipe(_) => self.died().await,
            FrameError::TooLong { .. } | FrameError::Malformed(_) => self.unsendable(error.to_string()),
        }
    }

    /// What it should be given cannot be sent, which is no fault of its. It is killed.
    pub(super) fn unsendable(&mut self, what: String) -> WorkerError {
        kill(&self.process);
        WorkerError::Unsendable { role: self.role.as_str(), what: one_line(&what) }
    }

    /// It is given nothing if it is of another build; then it is killed.
    pub(super) fn of_build(&mut self, expected: &str, found: &str) -> Result<(), WorkerError> {
        if expected == found {
            return Ok(());
        }
        kill(&self.process);
        let (expected, found) = (expected.to_owned(), one_line(&excerpt(found)));
        Err(WorkerError::OtherBuild { role: self.role.as_str(), expected, found })
    }

    /// It said what it may not say. It is killed.
    pub(super) fn nonsense(&mut self, what: String) -> WorkerError {
        kill(&self.process);
        WorkerError::Nonsense { role: self.role.as_str(), what: one_line(&at_most(&what, SAID)) }
    }

    /// It did not answer. It is killed.
    pub(super) fn hung(&mut self, after: Duration) -> WorkerError {
        kill(&self.process);
        WorkerError::Hung { role: self.role.as_str(), after }
    }

    async fn died(&mut self) -> WorkerError {
        let ended = Arc::clone(&self.process);
        let status = match tokio::task::spawn_blocking(move || end(&ended)).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Its end of the pipe is closed, unless it gave it away.
        let heard = tokio::time::timeout(LAST_WORDS, &mut self.listener).await;
        if heard.is_err() {
            tracing::debug!(role = self.role.as_str(), "the worker's stderr is still open after its end");
        }
        let said = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let said = one_line(String::from_utf8_lossy(&said).trim());
        let complaints = if said.is_empty() { said } else { format!(": {said}") };
        WorkerError::Died { role: self.role.as_str(), status, complaints }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.listener.abort();
        reap(&self.process);
    }
}

fn receiver(pipe: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}

fn locked(process: &Mutex<Process>) -> std::sync::MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills a process, and waits for nothing.
fn kill(process: &Mutex<Process>) {
    if let Err(error) = locked(process).kill() {
        tracing::warn!(%error, "a worker process could not be killed");
    }
}

/// Ends a process and waits until it is gone: nothing can keep it from that, but it takes a moment,
/// so this is for threads that may block.
fn end(process: &Mutex<Process>) -> io::Result<ExitStatus> {
    let mut process = locked(process);
    process.kill()?;
    process.wait()
}

/// Kills a process and lets a thread wait for its end. Not one of a runtime: that may be ending
/// itself, and would leave a zombie.
fn reap(process: &Shared) {
    kill(process);
    if !matches!(locked(process).try_wait(), Ok(None)) {
        return;
    }
    let waited_for = Arc::clone(process);
    let wait = move || {
        if let Err(error) = end(&waited_for) {
            tracing::warn!(%error, "a worker process could not be ended");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("checkrein-reaper".to_owned()).spawn(wait) {
        tracing::warn!(%error, "there is no thread to wait for the end of a worker; it is waited for here");
        drop(end(process));
    }
}

/// Keeps the end of what a worker writes to stderr.
async fn listen(mut errors: Receiver, role: Role, complaints: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    loop {
        match errors.read(&mut buffer).await {
            Ok(0) => return,
            Ok(read) => {
                let said = &buffer[..read];
                tracing::debug!(role = role.as_str(), said = %one_line(&String::from_utf8_lossy(said)), "a worker complains");
                let mut kept = complaints.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(said);
                let excess = kept.len().saturating_sub(COMPLAINTS);
                kept.drain(..excess);
            }
            Err(error) => {
                tracing::debug!(role = role.as_str(), %error, "a worker's stderr cannot be read");
                return;
            }
        }
    }
}

/// Where a worker's program and its one folder are, and what the program must be.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    /// Whether they link nothing with an effect.
    pub(super) dry: bool,
    /// What [`crate::cache::build`] says here, and must say there.
    pub(super) build: String,
}
