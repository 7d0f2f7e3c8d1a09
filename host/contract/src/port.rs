//! What the harness needs from the sandbox and the store, so that neither knows the other.

use std::future::Future;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ask::Letter;
use crate::digest::Digest;
use crate::event::{Event, Logged, StoredArtifact};
use crate::grant::Granted;
use crate::id::{CallId, RunId, Timestamp};
use crate::interface::{
    Advice, Assessment, Call, Fact, Failure, LimitHit, Mishap, Outcome, Subgoal, Submission, Verdict,
};
use crate::limits::{Limits, Used};
use crate::problem::Problem;
use crate::record::Record;

/// A future that can be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What one call runs with. Everything a guest can reach is named here.
#[derive(Clone)]
pub struct Setting {
    /// The component.
    pub component: Digest,
    /// Its limits.
    pub limits: Limits,
    /// What it sees at `/in`, read-only.
    pub input: Option<PathBuf>,
    /// What it sees at `/artifacts`, read-only.
    pub artifacts: Option<PathBuf>,
    /// What a verification sees at `/work`, read-only. An executor's `/work` is made for it.
    pub work: Option<PathBuf>,
    /// What it may reach beyond that.
    pub granted: Granted,
    /// The facts that it can read.
    pub facts: Arc<dyn FactSource>,
    /// Who is told of its log lines and progress.
    pub observer: Arc<dyn Observer>,
    /// The wall clock that it sees.
    pub clock: Timestamp,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Set where a call is executed again: requests are answered from this record and nothing
    /// leaves, granted folders are scratch copies of what the record says, and the limits `cpu` and
    /// `wall` are off.
    pub recorded: Option<Arc<Record>>,
}

/// How an invocation ended, and what it used, on whatever way.
#[derive(Clone, Debug)]
pub struct Ran<T> {
    /// How it ended.
    pub end: End<T>,
    /// What it used.
    pub used: Used,
    /// Log lines, stdout and stderr in the order they came, cut at the limit `log`.
    pub log: String,
    /// What it did at its walls.
    pub record: Record,
}

/// How an invocation ended.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one is made for each invocation")]
pub enum End<T> {
    /// It returned.
    Returned(T),
    /// A limit fired.
    Limited(LimitHit),
    /// It trapped, or left through `exit` with a code other than 0.
    Trapped(String),
    /// It returned something that the interface does not allow, such as content that is not JSON.
    Invalid(Problem),
    /// Disk or database failed: never the component's fault.
    Storage(StorageError),
    /// The host could not run it: never the component's fault.
    Fault(String),
}

/// What came out of an executor.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The outcome, or why there is none.
    pub result: Result<Outcome, Failure>,
    /// The files that the outcome names, hashed and stored when it returned.
    pub artifacts: Vec<StoredArtifact>,
}

/// Runs the parts of components: each invocation in a fresh instance, within its limits.
pub trait Guests: Send + Sync {
    /// Asks a trigger. It reaches no files and no facts, whatever the setting says.
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>>;

    /// Calls an executor.
    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>>;

    /// Asks a verification; a failure means that it could not judge.
    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>>;

    /// Asks a recovery. It reaches no files and no facts, whatever the setting says.
    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>>;
}

/// The verified facts that a call can read.
pub trait FactSource: Send + Sync {
    /// The fact with this id.
    fn get(&self, id: &str) -> Option<Fact>;

    /// The current fact of each subject that starts with `prefix`, in the order of subjects: at
    /// most `limit`, and only subjects past `after`.
    fn find(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Fact>;
}

/// No facts at all.
#[derive(Clone, Copy, Debug)]
pub struct NoFacts;

impl FactSource for NoFacts {
    fn get(&self, _: &str) -> Option<Fact> {
        None
    }

    fn find(&self, _: &str, _: Option<&str>, _: u32) -> Vec<Fact> {
        Vec::new()
    }
}

/// Is told what a running guest says of itself.
pub trait Observer: Send + Sync {
    /// A log line; `level` as in the WIT.
    fn log(&self, level: &str, message: &str);

    /// Progress. The guest goes on when the future is ready, so that a slow reader slows it.
    fn progress(&self, done: u32, total: u32, message: String) -> BoxFuture<'_, ()>;
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn log(&self, _: &str, _: &str) {}

    fn progress(&self, _: u32, _: u32, _: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Why something could not be stored or read back. A worker process tells its host by it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageError {
    /// No space left.
    #[error("no space left in {place}; free some and run the command again, nothing was lost")]
    Full {
        /// Where.
        place: String,
    },
    /// Another process holds it.
    #[error("{place} is locked by another process; wait for it or end it")]
    Locked {
        /// What.
        place: String,
    },
    /// It may not be written.
    #[error("{place} cannot be written: {detail}")]
    NotWritable {
        /// Where.
        place: String,
        /// What the system says.
        detail: String,
    },
    /// It is not what it was.
    #[error("{place} is damaged: {detail}")]
    Damaged {
        /// What.
        place: String,
        /// How.
        detail: String,
    },
    /// It is not there.
    #[error("{place} is not there")]
    Missing {
        /// What.
        place: String,
    },
    /// Another process drives the run now: nothing of this one is appended any more.
    #[error("{run} is driven by {holder} now; nothing of this process was appended to it since")]
    Fenced {
        /// The run.
        run: RunId,
        /// Who drives it.
        holder: String,
    },
    /// Anything else of disk or database.
    #[error("{place}: {detail}")]
    Other {
        /// Where.
        place: String,
        /// What the system says.
        detail: String,
    },
}

impl StorageError {
    /// What a failed access to `place` is.
    pub fn of_io(place: &Path, error: &io::Error) -> Self {
        let name = place.display().to_string();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StorageError::Full { place: name }
            }
            // A file stands where a folder should be: `NotADirectory`, `AlreadyExists`.
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => {
                StorageError::NotWritable { place: name, detail: error.to_string() }
            }
            io::ErrorKind::NotFound => StorageError::Missing { place: name },
            _ => StorageError::Other { place: name, detail: error.to_string() },
        }
    }
}

/// Files by their digest.
pub trait Blobs: Send + Sync {
    /// Stores these bytes; they are on disk when it returns.
    ///
    /// # Errors
    ///
    /// If they cannot be stored.
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError>;

    /// Stores what the reader gives, and says how many bytes that were.
    ///
    /// # Errors
    ///
    /// If the reader fails, or it cannot be stored.
    fn put_from(&self, reader: &mut dyn Read) -> Result<(Digest, u64), StorageError>;

    /// The bytes with this digest, checked against it.
    ///
    /// # Errors
    ///
    /// If they are not there, cannot be read, or are not what they were.
    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError>;

    /// A folder with these files (relative path, content), for a guest to read. It is removed
    /// when the tree is dropped.
    ///
    /// # Errors
    ///
    /// If one is not there, or the folder cannot be made.
    fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError>;
}

/// A folder that lives as long as this does.
pub trait Tree: Send + Sync {
    /// Where it is.
    fn path(&self) -> &Path;
}

/// What whoever drives a run says of itself, again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// How many events it has appended or read.
    pub events: u64,
    /// The calls in hand, each with the milliseconds that it may still take, its wait for a turn
    /// included; 0 for one that should have ended.
    pub calls: Vec<(CallId, u64)>,
}

/// The event log of one run, its inbox, and the right to drive it. Whoever holds it drives the run,
/// until another process takes that right; then every method fails with [`StorageError::Fenced`].
pub trait Log: Send {
    /// Which right to drive the run this is, counted up by one each time, and who holds it.
    fn lease(&self) -> (u64, String);

    /// Appends the events as one transaction; they are on disk when it returns.
    ///
    /// # Errors
    ///
    /// If they cannot be appended: then none of them was.
    fn append(&mut self, run: &RunId, at: Timestamp, events: &[Event]) -> Result<Vec<Logged>, StorageError>;

    /// Says that the run is still driven, and gives the letters of its inbox past `after`, oldest
    /// first.
    ///
    /// # Errors
    ///
    /// If the database cannot be reached.
    fn beat(&mut self, beat: &Beat, after: u64) -> Result<Vec<Letter>, StorageError>;

    /// Keeps what the events up to the last one fold to, in place of what was kept before. It is a
    /// cache: losing it only costs time.
    ///
    /// # Errors
    ///
    /// If it cannot be kept.
    fn keep_snapshot(&mut self, folded: &[u8]) -> Result<(), StorageError>;
}
