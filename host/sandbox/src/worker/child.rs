//! A worker process, from its host's side: how it is started, what it complains of, and that it
//! never outlives who holds it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::task::JoinHandle;

use super::Role;
use super::frame::{FrameError, write_async};
use crate::text::one_line;

/// Bytes of what a worker writes to stderr that are kept: the last ones.
const COMPLAINTS: usize = 4 << 10;
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
}

/// A running worker. Dropped, it is killed, and is gone when the drop returns.
pub(super) struct Child {
    role: Role,
    process: Process,
    input: Sender,
    complaints: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
}

impl Child {
    /// Starts a worker, with an empty environment, and gives the pipe of its answers. To be called
    /// on a thread that lasts: the kernel ends a worker with the thread that started it.
    pub(super) fn start(
        program: &Path,
        role: Role,
        folder: Option<&Path>,
    ) -> Result<(Self, Receiver), WorkerError> {
        Self::spawn(program, role, folder).map_err(|source| WorkerError::Start {
            role: role.as_str(),
            program: program.display().to_string(),
            source,
        })
    }

    fn spawn(program: &Path, role: Role, folder: Option<&Path>) -> io::Result<(Self, Receiver)> {
        let mut command = Command::new(std::path::absolute(program)?);
        command.args(["worker", role.as_str()]).args(folder).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let made = match pipes {
            (Some(input), Some(output), Some(errors)) => Sender::from_owned_fd(OwnedFd::from(input))
                .and_then(|input| Ok((input, receiver(output)?, receiver(errors)?))),
            _ => Err(io::Error::other("a pipe is missing")),
        };
        let (input, output, errors) = made.inspect_err(|_| end(&mut process))?;
        let complaints = Arc::default();
        let listener = tokio::spawn(listen(errors, role, Arc::clone(&complaints)));
        Ok((Child { role, process, input, complaints, listener }, output))
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has not ended.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
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

    /// It said what it may not say. It is killed.
    pub(super) fn nonsense(&mut self, what: String) -> WorkerError {
        end(&mut self.process);
        WorkerError::Nonsense { role: self.role.as_str(), what: one_line(&what) }
    }

    /// It did not answer. It is killed.
    pub(super) fn hung(&mut self, after: Duration) -> WorkerError {
        end(&mut self.process);
        WorkerError::Hung { role: self.role.as_str(), after }
    }

    async fn died(&mut self) -> WorkerError {
        end(&mut self.process);
        let status = match self.process.wait() {
            Ok(status) => status.to_string(),
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
        end(&mut self.process);
        self.listener.abort();
    }
}

fn receiver(pipe: impl Into<OwnedFd>) -> io::Result<Receiver> {
    Receiver::from_owned_fd(pipe.into())
}

/// Ends a process and waits until it is gone: nothing can keep it from that.
fn end(process: &mut Process) {
    let ended = process.kill().and_then(|()| process.wait().map(drop));
    if let Err(error) = ended {
        tracing::warn!(%error, "a worker process could not be ended");
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

/// Where a worker's program and its one folder are.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
}
