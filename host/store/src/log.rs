//! Appending to the log of one run.

use std::path::{Path, PathBuf};

use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Logged, chain};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::{Log, StorageError};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::error::of_sqlite;
use crate::rows;

/// The writer of one run's log. It remembers the head: if another process has appended to the
/// same run since, nothing is appended any more.
#[derive(Debug)]
pub struct EventLog {
    connection: Connection,
    file: PathBuf,
    run: RunId,
    seq: u64,
    head: Digest,
}

impl EventLog {
    pub(crate) fn new(connection: Connection, file: &Path, run: &RunId) -> Result<Self, StorageError> {
        let (seq, head) = rows::head(&connection, file, run)?;
        Ok(EventLog { connection, file: file.to_owned(), run: run.clone(), seq, head })
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

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn other(&self, detail: String) -> StorageError {
        StorageError::Other { place: format!("the log of run {}", self.run), detail }
    }
}

impl Log for EventLog {
    fn append(&mut self, run: &RunId, at: Timestamp, events: &[Event]) -> Result<Vec<Logged>, StorageError> {
        if *run != self.run {
            return Err(self.other(format!("events of run {run} do not belong there")));
        }
        let entries = link(run, at, events, self.seq, self.head).map_err(|detail| self.other(detail))?;
        let expected = (self.seq, self.head);
        let file = &self.file;
        let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
        // Immediate: the lock for writing is taken before the head is read, so the head that is
        // compared is the one that the events are appended to. Dropping it rolls back.
        let change =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
        let found = rows::head(&change, file, run)?;
        if found != expected {
            drop(change);
            let detail = format!(
                "another process has written to it: event {} was expected to be the last, and it is event {}",
                expected.0, found.0
            );
            return Err(self.other(detail));
        }
        insert(&change, run, &entries).map_err(wrong)?;
        change.commit().map_err(wrong)?;
        let logged: Vec<Logged> = entries.into_iter().map(|(logged, _)| logged).collect();
        if let Some(last) = logged.last() {
            (self.seq, self.head) = (last.seq, last.digest);
        }
        Ok(logged)
    }
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
    let query =
        "INSERT INTO event (run, seq, kind, at, prev, digest, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = change.prepare_cached(query)?;
    let number = |number: u64| {
        i64::try_from(number).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    };
    for (logged, payload) in entries {
        statement.execute(params![
            run.as_str(),
            number(logged.seq)?,
            logged.event.kind(),
            number(logged.at.0)?,
            logged.prev.to_string(),
            logged.digest.to_string(),
            payload,
        ])?;
    }
    Ok(())
}
