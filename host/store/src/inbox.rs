//! The inbox: what other processes tell whoever drives a run.

use std::path::Path;

use checkrein_contract::ask::{Letter, Message};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::StorageError;
use rusqlite::{Connection, Row, params};

use crate::connection;
use crate::error::{StoreError, of_sqlite};
use crate::failpoint;
use crate::migrate;
use crate::rows::integer;
use crate::state::State;

impl State {
    /// Puts a letter in the inbox of a run, and says where: it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// If the database cannot be written.
    pub fn post(&self, run: &RunId, by: &str, at: Timestamp, message: &Message) -> Result<u64, StoreError> {
        let file = self.database();
        let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
        let payload = serde_json::to_string(message).map_err(|error| StorageError::Other {
            place: format!("a letter to run {run}"),
            detail: error.to_string(),
        })?;
        let mut connection = connection::writable(file, self.options().wait)?;
        let change = connection.transaction().map_err(wrong)?;
        let query = r#"INSERT INTO inbox (run, "by", at, payload) VALUES (?1, ?2, ?3, ?4)"#;
        let row = params![run.as_str(), by, integer(at.0).map_err(wrong)?, payload];
        change.execute(query, row).map_err(wrong)?;
        let id = change.last_insert_rowid();
        failpoint::reach("post", "before-commit");
        change.commit().map_err(wrong)?;
        failpoint::reach("post", "after-commit");
        Ok(id.unsigned_abs())
    }

    /// The letters of a run past `after`, oldest first.
    ///
    /// # Errors
    ///
    /// If the database cannot be read, or one of them is not what a letter is.
    pub fn letters(&self, run: &RunId, after: u64) -> Result<Vec<Letter>, StoreError> {
        let connection = self.connection();
        if migrate::version(&connection, self.database())? < migrate::WITH_LEASES {
            return Ok(Vec::new());
        }
        Ok(letters(&connection, self.database(), run, after)?)
    }
}

/// The letters of a run past `after`. One that cannot be read stops the reading: a person said it,
/// and it must not be passed over.
pub(crate) fn letters(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    after: u64,
) -> Result<Vec<Letter>, StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let query = r#"SELECT id, "by", at, payload FROM inbox WHERE run = ?1 AND id > ?2 ORDER BY id"#;
    let mut statement = connection.prepare_cached(query).map_err(wrong)?;
    // No letter has a place past the largest one.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![run.as_str(), after]).map_err(wrong)?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next().map_err(wrong)? {
        let id: i64 = row.get(0).map_err(wrong)?;
        letters.push(letter(row, id).map_err(|detail| StorageError::Damaged {
            place: format!("letter {id} to run {run} in {}", file.display()),
            detail,
        })?);
    }
    Ok(letters)
}

fn letter(row: &Row<'_>, id: i64) -> Result<Letter, String> {
    let wrong = |error: rusqlite::Error| error.to_string();
    let payload: String = row.get(3).map_err(wrong)?;
    let message = serde_json::from_str(&payload).map_err(|error| format!("its message: {error}"))?;
    let at =
        u64::try_from(row.get::<_, i64>(2).map_err(wrong)?).map_err(|error| format!("its time: {error}"))?;
    Ok(Letter { id: id.unsigned_abs(), by: row.get(1).map_err(wrong)?, at: Timestamp(at), message })
}
