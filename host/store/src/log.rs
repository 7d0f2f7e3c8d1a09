//! Driving one run: its log, its inbox and its snapshot, while the right to drive it is this one's.

use std::path::{Path, PathBuf};

use checkrein_contract::Digest;
use checkrein_contract::ask::Letter;
use checkrein_contract::event::{Event, Logged, chain};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::{Beat, Log, StorageError};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::error::of_sqlite;
use crate::failpoint;
use crate::inbox;
use crate::lease::{self, Lease};
use crate::rows::{self, integer};
use crate::snapshot;

/// The writer of one run's log, which has the right to drive the run. Each write checks in its own
/// transaction that the right is still this one, and that the head is the one that was written last;
/// if not, nothing is written. Dropping it gives the right back.
#[derive(Debug)]
pub struct EventLog {
    connection: Connection,
    file: PathBuf,
    run: RunId,
    lease: Lease,
    seq: u64,
    head: Digest,
    /// Another process has taken the right: that is final.
    fenced: Option<StorageError>,
}

impl EventLog {
    pub(crate) fn new(
        connection: Connection,
        file: &Path,
        run: &RunId,
        lease: Lease,
        (seq, head): (u64, Digest),
    ) -> Self {
        EventLog { connection, file: file.to_owned(), run: run.clone(), lease, seq, head, fenced: None }
    }

    /// The digest of the last event, [`Digest::ZERO`] before the first.
    pub fn head(&self) -> Digest {
        self.head
    }

    /// How many events the run has.
    pub fn len(&self) -> u64 {
        self.seq
    }

    /// Whether the run has no event yet.
    pub fn is_empty(&self) -> bool {
        self.seq == 0
    }

    /// Gives the right to drive the run back, so that it can be taken at once.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn release(self) -> Result<(), StorageError> {
        lease::release(&self.connection, &self.file, &self.run, &self.lease)
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn other(&self, detail: String) -> StorageError {
        StorageError::Other { place: format!("the log of run {}", self.run), detail }
    }

    /// Does `work` as one transaction, if the right to drive the run is still this one's. `what` names
    /// it for crash tests; a beat is none of their boundaries, since it comes by the clock.
    fn write<T>(
        &mut self,
        what: Option<&str>,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if let Some(error) = &self.fenced {
            return Err(error.clone());
        }
        let answer = write(&mut self.connection, &self.file, what, |change| {
            lease::check(change, &self.file, &self.run, &self.lease)?;
            work(change)
        });
        if let Err(error @ StorageError::Fenced { .. }) = &answer {
            self.fenced = Some(error.clone());
        }
        answer
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        // There is nobody to tell here. A right that is not given back is free when the process ends.
        let _ = lease::release(&self.connection, &self.file, &self.run, &self.lease);
    }
}

impl Log for EventLog {
    fn lease(&self) -> (u64, String) {
        (self.lease.epoch.unsigned_abs(), self.lease.holder.clone())
    }

    fn append(&mut self, run: &RunId, at: Timestamp, events: &[Event]) -> Result<Vec<Logged>, StorageError> {
        if *run != self.run {
            return Err(self.other(format!("events of run {run} do not belong there")));
        }
        let entries = link(run, at, events, self.seq, self.head).map_err(|detail| self.other(detail))?;
        let (expected, file) = ((self.seq, self.head), self.file.clone());
        let wrong = |error: rusqlite::Error| of_sqlite(&file, &error);
        let found = self.write(Some("append"), |change| {
            let found = rows::head(change, &file, run)?;
            if found == expected {
                insert(change, run, &entries).map_err(wrong)?;
            }
            Ok(found)
        })?;
        if found != expected {
            let detail = format!(
                "another process has written to it: event {} was expected to be the last, and it is event {}",
                expected.0, found.0
            );
            return Err(self.other(detail));
        }
        let logged: Vec<Logged> = entries.into_iter().map(|(logged, _)| logged).collect();
        if let Some(last) = logged.last() {
            (self.seq, self.head) = (last.seq, last.digest);
        }
        Ok(logged)
    }

    fn beat(&mut self, beat: &Beat, after: u64) -> Result<Vec<Letter>, StorageError> {
        let told = serde_json::to_string(beat).map_err(|error| self.other(error.to_string()))?;
        let (run, file) = (self.run.clone(), self.file.clone());
        self.write(None, |change| {
            let query = "UPDATE lease SET beat = beat + 1, told = ?2 WHERE run = ?1";
            let told = change
                .prepare_cached(query)
                .and_then(|mut update| update.execute(params![run.as_str(), told]));
            told.map_err(|error| of_sqlite(&file, &error))?;
            inbox::letters(change, &file, &run, after)
        })
    }

    fn keep_snapshot(&mut self, folded: &[u8]) -> Result<(), StorageError> {
        let (run, file, seq, head) = (self.run.clone(), self.file.clone(), self.seq, self.head);
        self.write(Some("snapshot"), |change| snapshot::keep(change, &file, &run, (seq, &head), folded))
    }
}

/// One transaction. Immediate: the lock for writing is taken before anything is read, so what is
/// checked is what is written to. Failing rolls back.
fn write<T>(
    connection: &mut Connection,
    file: &Path,
    what: Option<&str>,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>,
) -> Result<T, StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    let answer = work(&change)?;
    if let Some(what) = what {
        failpoint::reach(what, "before-commit");
    }
    change.commit().map_err(wrong)?;
    if let Some(what) = what {
        failpoint::reach(what, "after-commit");
    }
    Ok(answer)
}

/// Each event with its place in the chain, and its payload as it will stand in the log.
fn link(
    run: &RunId,
    at: Timestamp,
    events: &[Event],
    mut seq: u64,
    mut head: Digest,
) -> Result<Vec<(Logged, String)>, String> {
    let mut entries = Vec::with_capacity(events.len());
    for event in events {
        let payload = serde_json::to_string(event).map_err(|error| format!("`{}`: {error}", event.kind()))?;
        seq += 1;
        let digest = chain(run, seq, at, &head, &payload);
        entries.push((Logged { seq, at, prev: head, digest, event: event.clone() }, payload));
        head = digest;
    }
    Ok(entries)
}

fn insert(change: &Transaction<'_>, run: &RunId, entries: &[(Logged, String)]) -> rusqlite::Result<()> {
    let mut statement = change.prepare_cached(rows::INSERT)?;
    for (logged, payload) in entries {
        statement.execute(params![
            run.as_str(),
            integer(logged.seq)?,
            logged.event.kind(),
            integer(logged.at.0)?,
            logged.prev.to_string(),
            logged.digest.to_string(),
            payload,
        ])?;
    }
    Ok(())
}
