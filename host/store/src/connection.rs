//! Connections to the database, and their settings.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use checkrein_contract::port::StorageError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{StoreError, of_sqlite};
use crate::migrate;

/// How long to wait before a fresh database is tried again that another process is setting up.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens the database for writing, makes it if it is not there, and migrates it if it is an older
/// one. `wait` is how long a lock of another process is waited for.
pub(crate) fn writable(file: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let mut connection = Connection::open_with_flags(file, flags).map_err(wrong)?;
    connection.busy_timeout(wait).map_err(wrong)?;
    // A database of a newer version is left as it is, down to what waits in its write-ahead log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(wrong)?;
    migrate::version(&connection, file)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(wrong)?;
    write_ahead(&connection, file, wait)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;";
    connection.execute_batch(settings).map_err(wrong)?;
    migrate::up(&mut connection, file)?;
    Ok(connection)
}

/// Opens the database of an existing state for reading only. It may be of an older version: it is
/// not migrated, and what it has no table for is not there.
pub(crate) fn readable(file: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(|error| of_sqlite(file, &error))?;
    connection.busy_timeout(wait).map_err(|error| of_sqlite(file, &error))?;
    if migrate::version(&connection, file)? == 0 {
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
