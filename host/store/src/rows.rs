//! Rows of the table `event`, read without trusting them.

use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Logged};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::StorageError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::error::{StoreError, of_sqlite};

/// One row as it stands: a column that does not hold what it should is `None`.
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
    pub(crate) fn into_logged(self, run: &RunId) -> Result<Logged, StoreError> {
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

fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    })
}

/// Hands the events of a run to `each`, in the order of their positions.
pub(crate) fn scan(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    mut each: impl FnMut(RawEvent) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let wrong = |error: rusqlite::Error| StoreError::from(of_sqlite(file, &error));
    let query = "SELECT seq, kind, at, prev, digest, payload FROM event WHERE run = ?1 ORDER BY seq";
    let mut statement = connection.prepare(query).map_err(wrong)?;
    let mut rows = statement.query([run.as_str()]).map_err(wrong)?;
    while let Some(row) = rows.next().map_err(wrong)? {
        each(RawEvent::read(row).map_err(wrong)?)?;
    }
    Ok(())
}

/// Position and digest of the last event of a run; 0 and [`Digest::ZERO`] if it has none.
pub(crate) fn head(connection: &Connection, file: &Path, run: &RunId) -> Result<(u64, Digest), StorageError> {
    let query = "SELECT seq, digest FROM event WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
    let row = connection.query_row(query, [run.as_str()], |row| Ok((row.get::<_, i64>(0)?, text(row, 1)?)));
    let damaged = || StorageError::Damaged {
        place: format!("the last event of run {run} in {}", file.display()),
        detail: "its position or its digest is none".to_owned(),
    };
    match row {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok((0, Digest::ZERO)),
        Err(error) => Err(of_sqlite(file, &error)),
        Ok((seq, digest)) => {
            let digest = digest.and_then(|text| text.parse().ok()).ok_or_else(damaged)?;
            Ok((u64::try_from(seq).map_err(|_| damaged())?, digest))
        }
    }
}
