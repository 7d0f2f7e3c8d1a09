//! Rows of the table `event`, read without trusting them.

use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Logged};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::StorageError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{StoreError, of_sqlite};

/// One row as it stands: a column that does not hold what it should is `None`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawEvent {
    pub(crate) seq: i64,
    pub(crate) kind: Option<String>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) prev: Option<Digest>,
    pub(crate) digest: Option<Digest>,
    pub(crate) payload: Option<String>,
}

impl RawEvent {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(RawEvent {
            seq: row.get(0)?,
            kind: text(row, 1)?,
            at: number(row, 2)?.map(Timestamp),
            prev: text(row, 3)?.and_then(|text| text.parse().ok()),
            digest: text(row, 4)?.and_then(|text| text.parse().ok()),
            payload: text(row, 5)?,
        })
    }

    /// The event, with what stands beside it.
    pub(crate) fn logged(&self, run: &RunId) -> Result<Logged, StoreError> {
        let unreadable = |detail: String| StoreError::Unreadable {
            run: run.clone(),
            seq: self.seq,
            kind: self.kind.clone().unwrap_or_default(),
            detail,
        };
        let column = |name: &str| unreadable(format!("its {name} is none"));
        let payload = self.payload.as_deref().ok_or_else(|| column("payload"))?;
        let event: Event = serde_json::from_str(payload).map_err(|error| unreadable(error.to_string()))?;
        Ok(Logged {
            seq: u64::try_from(self.seq).map_err(|_| column("position"))?,
            at: self.at.ok_or_else(|| column("time"))?,
            prev: self.prev.ok_or_else(|| column("digest before"))?,
            digest: self.digest.ok_or_else(|| column("digest"))?,
            event,
        })
    }
}

/// The column as text; `None` if it is none.
pub(crate) fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

/// The column as a number that is not negative; `None` if it is none.
pub(crate) fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

/// How an event is appended.
pub(crate) const INSERT: &str =
    "INSERT INTO event (run, seq, kind, at, prev, digest, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// A number as SQLite holds it.
pub(crate) fn integer(number: u64) -> rusqlite::Result<i64> {
    i64::try_from(number).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Before every row, also those at positions that no log has.
pub(crate) const START: i64 = i64::MIN;

/// What a scan for the events past `seq` starts after. There is none before the first: what stands at
/// a position that no log has is to be seen.
pub(crate) fn start(seq: u64) -> i64 {
    match i64::try_from(seq) {
        Ok(0) => START,
        Ok(seq) => seq,
        Err(_) => i64::MAX,
    }
}

/// Hands the events of a run past `after` to `each`, in the order of their positions.
pub(crate) fn scan(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    after: i64,
    mut each: impl FnMut(RawEvent) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let wrong = |error: rusqlite::Error| StoreError::from(of_sqlite(file, &error));
    let query =
        "SELECT seq, kind, at, prev, digest, payload FROM event WHERE run = ?1 AND seq > ?2 ORDER BY seq";
    let mut statement = connection.prepare_cached(query).map_err(wrong)?;
    let mut rows = statement.query(params![run.as_str(), after]).map_err(wrong)?;
    while let Some(row) = rows.next().map_err(wrong)? {
        each(RawEvent::read(row).map_err(wrong)?)?;
    }
    Ok(())
}

/// Position and digest of the last event of a run; 0 and [`Digest::ZERO`] if it has none.
pub(crate) fn head(connection: &Connection, file: &Path, run: &RunId) -> Result<(u64, Digest), StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let query = "SELECT seq, digest FROM event WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
    let mut statement = connection.prepare_cached(query).map_err(wrong)?;
    let row = statement.query_row([run.as_str()], |row| Ok((row.get::<_, i64>(0)?, text(row, 1)?)));
    let damaged = || StorageError::Damaged {
        place: format!("the last event of run {run} in {}", file.display()),
        detail: "its position or its digest is none".to_owned(),
    };
    let Some((seq, digest)) = row.optional().map_err(wrong)? else { return Ok((0, Digest::ZERO)) };
    let digest = digest.and_then(|text| text.parse().ok()).ok_or_else(damaged)?;
    Ok((u64::try_from(seq).map_err(|_| damaged())?, digest))
}

/// The position of the last event of a run, whatever else is wrong with it; 0 if it has none.
pub(crate) fn last(connection: &Connection, file: &Path, run: &RunId) -> Result<u64, StorageError> {
    let query = "SELECT max(seq) FROM event WHERE run = ?1";
    let found = connection.query_row(query, [run.as_str()], |row| row.get::<_, Option<i64>>(0));
    let found = found.map_err(|error| of_sqlite(file, &error))?;
    Ok(found.and_then(|seq| u64::try_from(seq).ok()).unwrap_or_default())
}

/// How many events of a run stand at `seq` or before it, and the position of the first; `None` if
/// there is none.
pub(crate) fn up_to(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    seq: u64,
) -> Result<(u64, Option<i64>), StorageError> {
    let query = "SELECT count(*), min(seq) FROM event WHERE run = ?1 AND seq <= ?2";
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let found = connection.query_row(query, params![run.as_str(), seq], |row| {
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
    });
    found.map_err(|error| of_sqlite(file, &error))
}

/// What stands in the log as kind and digest of the event at `seq`; `None` if there is no such event.
pub(crate) fn at(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    seq: u64,
) -> Result<Option<(String, String)>, StorageError> {
    let Ok(seq) = i64::try_from(seq) else { return Ok(None) };
    let query = "SELECT kind, digest FROM event WHERE run = ?1 AND seq = ?2";
    let found = connection.query_row(query, params![run.as_str(), seq], |row| {
        Ok((text(row, 0)?.unwrap_or_default(), text(row, 1)?.unwrap_or_default()))
    });
    found.optional().map_err(|error| of_sqlite(file, &error))
}
