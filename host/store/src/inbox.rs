//! The inbox: what other processes tell whoever drives a run.

use std::path::Path;

use checkrein_contract::ask::{Letter, Message};
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_contract::port::StorageError;
use checkrein_contract::text::{cut, visible};
use rusqlite::{Connection, Row, params};

use crate::connection;
use crate::error::{StoreError, of_sqlite};
use crate::failpoint;
use crate::migrate;
use crate::rows::{self, integer};
use crate::state::State;

impl State {
    /// Puts a letter in the inbox of a run, and says where: it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// If the database cannot be written, or the message is [`Message::Unreadable`]: nobody says that.
    pub fn post(&self, run: &RunId, by: &str, at: Timestamp, message: &Message) -> Result<u64, StoreError> {
        let file = self.database();
        let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
        let refused =
            |detail: String| StorageError::Other { place: format!("a letter to run {run}"), detail };
        if let Message::Unreadable { why } = message {
            let detail =
                format!("expected a message, found one that cannot be read ({why}); it was not posted");
            return Err(refused(detail).into());
        }
        let payload = serde_json::to_string(message).map_err(|error| refused(error.to_string()))?;
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

    /// The letters of a run past `after`, oldest first. One that cannot be read is
    /// [`Message::Unreadable`].
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn letters(&self, run: &RunId, after: u64) -> Result<Vec<Letter>, StoreError> {
        let connection = self.connection();
        if migrate::version(&connection, self.database())? < migrate::WITH_LEASES {
            return Ok(Vec::new());
        }
        Ok(letters(&connection, self.database(), run, after)?)
    }
}

/// The letters of a run past `after`. One that cannot be read is not passed over, since a person said
/// it, and does not stop the reading, since nothing could ever remove it: whoever drives the run
/// refuses it, and that stands in the log.
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
        letters.push(letter(row).map_err(wrong)?);
    }
    Ok(letters)
}

/// How much of why a letter cannot be read is told: the words may be those of whoever damaged it.
const WHY_MAX: usize = 300;

/// Who put a letter in the inbox that does not say so.
const NOBODY: &str = "unknown";

fn letter(row: &Row<'_>) -> rusqlite::Result<Letter> {
    let (by, at, payload) = (rows::text(row, 1)?, rows::number(row, 2)?, rows::text(row, 3)?);
    let message = match (&by, at, payload) {
        (None, ..) => Err("who wrote it is no text".to_owned()),
        (_, None, _) => Err("when it was written is no time".to_owned()),
        (.., None) => Err("its message is no text".to_owned()),
        (Some(_), Some(_), Some(payload)) => match serde_json::from_str(&payload) {
            Ok(Message::Unreadable { why }) => Err(why),
            Ok(message) => Ok(message),
            Err(error) => Err(format!("its message: {error}")),
        },
    };
    let message = message.unwrap_or_else(|why| Message::Unreadable { why: cut(&visible(&why), WHY_MAX) });
    let (id, by) = (row.get::<_, i64>(0)?.unsigned_abs(), by.unwrap_or_else(|| NOBODY.to_owned()));
    Ok(Letter { id, by, at: Timestamp(at.unwrap_or_default()), message })
}
