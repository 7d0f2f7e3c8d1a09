//! Connections to the database: their settings, and the schema.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use checkrein_contract::port::StorageError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{StoreError, of_sqlite};

/// The version of the schema that this crate writes, kept in `PRAGMA user_version`.
pub const SCHEMA: i64 = 1;

/// How long to wait before a fresh database is tried again that another process is setting up.
const PAUSE: Duration = Duration::from_millis(20);

const TABLES: &str = "
    CREATE TABLE event (
        run     TEXT    NOT NULL,
        seq     INTEGER NOT NULL,
        kind    TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        prev    TEXT    NOT NULL,
        digest  TEXT    NOT NULL,
        payload TEXT    NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;
";

/// Opens the database for writing, and makes it if it is not there. `wait` is how long a lock of
/// another process is waited for.
pub(crate) fn writable(file: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(|error| of_sqlite(file, &error))?;
    connection.busy_timeout(wait).map_err(|error| of_sqlite(file, &error))?;
    write_ahead(&connection, file, wait)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;";
    connection.execute_batch(settings).map_err(|error| of_sqlite(file, &error))?;
    if version(&connection, file)? == 0 {
        create(&mut connection, file)?;
    }
    Ok(connection)
}

/// Opens the database of an existing state for reading only.
pub(crate) fn readable(file: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(|error| of_sqlite(file, &error))?;
    connection.busy_timeout(wait).map_err(|error| of_sqlite(file, &error))?;
    if version(&connection, file)? == 0 {
        return Err(StoreError::NoState { place: file.display().to_string() });
    }
    Ok(connection)
}

/// Turns the write-ahead log on. SQLite does not wait for a lock here, so this does.
fn write_ahead(connection: &Connection, file: &Path, wait: Duration) -> Result<(), StorageError> {
    let deadline = Instant::now() + wait;
    let mode = loop {
        let answer = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match answer {
            Err(error) if is_busy(&error) && Instant::now() < deadline => thread::sleep(PAUSE),
            answer => break answer.map_err(|error| of_sqlite(file, &error))?,
        }
    };
    if mode == "wal" {
        return Ok(());
    }
    let detail = format!("the file system does not allow a write-ahead log (journal mode `{mode}`)");
    Err(StorageError::Other { place: file.display().to_string(), detail })
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The version of the schema; 0 is a database without one.
fn version(connection: &Connection, file: &Path) -> Result<i64, StoreError> {
    let found = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error| of_sqlite(file, &error))?;
    if found > SCHEMA {
        return Err(StoreError::Newer { place: file.display().to_string(), found, ours: SCHEMA });
    }
    Ok(found)
}

fn create(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    // Another process may have made it since.
    if version(&change, file)? == 0 {
        let tables = change.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
        if tables.map_err(wrong)? > 0 {
            let detail = "it holds tables, but is no database of checkrein".to_owned();
            return Err(StorageError::Damaged { place: file.display().to_string(), detail }.into());
        }
        change.execute_batch(TABLES).map_err(wrong)?;
    }
    change.commit().map_err(wrong)?;
    Ok(())
}
