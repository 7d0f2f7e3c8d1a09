//! What can go wrong, and how the words of SQLite and of the system become ours.

use std::path::Path;

use checkrein_contract::id::RunId;
use checkrein_contract::port::StorageError;
use rusqlite::ErrorCode;

use crate::chain::ChainFault;

/// Why the state folder cannot be used, or something in it not be found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A fault of disk or database.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The database was written by a newer version of Checkrein.
    #[error(
        "{place} has schema version {found}, and this version of checkrein reads up to {ours}; use a newer checkrein"
    )]
    Newer {
        /// The database.
        place: String,
        /// The version that it has.
        found: i64,
        /// The newest version that is known here.
        ours: i64,
    },
    /// There is no state folder, or none with a database.
    #[error("no runs here: {place} is not there; `checkrein run` makes it")]
    NoState {
        /// Where it would be.
        place: String,
    },
    /// The state folder has no run at all.
    #[error("no runs yet in {place}")]
    NoRuns {
        /// The state folder.
        place: String,
    },
    /// No run is named so.
    #[error("no run `{wanted}`; there are: {}", list(known))]
    NoRun {
        /// What was asked for.
        wanted: String,
        /// The runs that there are, newest first.
        known: Vec<RunId>,
    },
    /// More than one run starts so.
    #[error("`{wanted}` stands for {} runs: {}", candidates.len(), list(candidates))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs that start so, newest first.
        candidates: Vec<RunId>,
    },
    /// An event that this version cannot read.
    #[error(
        "event {seq} (`{kind}`) of run {run} cannot be read: {detail}; `checkrein trace verify {run}` says whether it was altered"
    )]
    Unreadable {
        /// The run.
        run: RunId,
        /// The position of the event.
        seq: i64,
        /// What the log calls it.
        kind: String,
        /// Why not.
        detail: String,
    },
    /// The chain of a run's events does not hold.
    #[error("the log of run {run} is damaged: {fault}; `checkrein trace verify {run}` says what of it holds")]
    Broken {
        /// The run.
        run: RunId,
        /// What is wrong.
        fault: ChainFault,
    },
    /// Another process drives the run.
    #[error("run {run} is driven by {holder}; wait until it ends, or stop it with `checkrein cancel {run}`")]
    Driven {
        /// The run.
        run: RunId,
        /// Which process.
        holder: String,
    },
    /// The file is not what `checkrein export` writes: another file, altered, or cut off.
    #[error("this is no export, or not as it was written: {place}: {detail}; no event of it was imported")]
    NoExport {
        /// Where in the file.
        place: String,
        /// What is wrong there.
        detail: String,
    },
    /// A run with the id of the imported one is here, with other events.
    #[error("run {run} is here already, and not the same: {detail}; nothing here was changed")]
    OtherEvents {
        /// The run.
        run: RunId,
        /// How they differ.
        detail: String,
    },
}

/// The most runs that a message lists.
const LISTED: usize = 8;

fn list(runs: &[RunId]) -> String {
    let mut text: Vec<String> = runs.iter().take(LISTED).map(|run| format!("`{run}`")).collect();
    if runs.len() > LISTED {
        text.push(format!("{} more", runs.len() - LISTED));
    }
    text.join(", ")
}

/// The least free space with which a failure to open or to write is not put down to a full disk.
const ROOM: u64 = 64 << 10;

/// What a failed access to the database at `place` is.
pub(crate) fn of_sqlite(place: &Path, error: &rusqlite::Error) -> StorageError {
    let name = place.display().to_string();
    let detail = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StorageError::Full { place: name },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StorageError::Locked { place: name },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StorageError::NotWritable { place: name, detail }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StorageError::Damaged { place: name, detail }
        }
        // SQLite says the same of a folder that may not be written and of a disk on which no file
        // can be made any more; the file system knows which it is.
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if is_full(place) => {
            StorageError::Full { place: name }
        }
        Some(ErrorCode::CannotOpen) => StorageError::NotWritable { place: name, detail },
        _ => StorageError::Other { place: name, detail },
    }
}

fn is_full(place: &Path) -> bool {
    let folder = place.parent().unwrap_or(place);
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}
