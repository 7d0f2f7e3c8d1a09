//! The schema of the database, as the steps that lead to it. A new database goes through all of
//! them, an older one through those that it lacks; so both end with the same tables.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use checkrein_contract::port::StorageError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tempfile::TempPath;

use crate::error::{StoreError, of_sqlite};
use crate::scratch::{prefix, sweep};

/// The version of the schema that this crate writes, kept in `PRAGMA user_version`: how many steps
/// led to it.
pub const SCHEMA: i64 = STEPS.len() as i64;

/// Step `n` (from 0) makes a database of version `n + 1` out of one of version `n`. A step that was
/// released is never changed: the next version is one more entry.
const STEPS: [&str; 2] = [
    "CREATE TABLE event (
        run     TEXT    NOT NULL,
        seq     INTEGER NOT NULL,
        kind    TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        prev    TEXT    NOT NULL,
        digest  TEXT    NOT NULL,
        payload TEXT    NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;",
    r#"CREATE TABLE inbox (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        run     TEXT    NOT NULL,
        "by"    TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        payload TEXT    NOT NULL
    ) STRICT;
    CREATE INDEX inbox_of_run ON inbox (run, id);
    CREATE TABLE lease (
        run     TEXT    NOT NULL PRIMARY KEY,
        epoch   INTEGER NOT NULL,
        holder  TEXT    NOT NULL,
        pid     INTEGER,
        started INTEGER,
        space   TEXT,
        boot    TEXT,
        beat    INTEGER NOT NULL,
        told    TEXT    NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE snapshot (
        run      TEXT    NOT NULL PRIMARY KEY,
        seq      INTEGER NOT NULL,
        digest   TEXT    NOT NULL,
        folded   BLOB    NOT NULL,
        checksum TEXT    NOT NULL,
        version  INTEGER NOT NULL
    ) STRICT;"#,
];

/// The first version with `inbox`, `lease` and `snapshot`. A database that is only read may be older.
pub(crate) const WITH_LEASES: i64 = 2;

/// Brings the database to [`SCHEMA`]. An older one is copied aside first; then all that it lacks is
/// one transaction, so it is of the old version or of the new one, whatever happens.
pub(crate) fn up(connection: &mut Connection, file: &Path) -> Result<(), StoreError> {
    if version(connection, file)? == SCHEMA {
        return Ok(());
    }
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    // Nobody else writes from here on: the copy is what is migrated, and only one is made.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    let found = version(&change, file)?;
    match found {
        // Another process has done it since.
        SCHEMA => return Ok(()),
        0 => refuse_foreign(&change, file)?,
        older => copy_aside(file, older)?,
    }
    let done = usize::try_from(found).unwrap_or_default();
    for step in &STEPS[done..] {
        change.execute_batch(step).map_err(wrong)?;
    }
    change.pragma_update(None, "user_version", SCHEMA).map_err(wrong)?;
    change.commit().map_err(wrong)?;
    Ok(())
}

/// The version of the schema; 0 is a database without one.
pub(crate) fn version(connection: &Connection, file: &Path) -> Result<i64, StoreError> {
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|error| of_sqlite(file, &error))?;
    if found > SCHEMA {
        return Err(StoreError::Newer { place: file.display().to_string(), found, ours: SCHEMA });
    }
    if found < 0 {
        return Err(foreign(file).into());
    }
    Ok(found)
}

fn refuse_foreign(connection: &Connection, file: &Path) -> Result<(), StorageError> {
    let query = "SELECT count(*) FROM sqlite_master";
    let tables = connection.query_row(query, [], |row| row.get::<_, i64>(0));
    match tables.map_err(|error| of_sqlite(file, &error))? {
        0 => Ok(()),
        _ => Err(foreign(file)),
    }
}

fn foreign(file: &Path) -> StorageError {
    let detail = "it holds tables, but is no database of checkrein".to_owned();
    StorageError::Damaged { place: file.display().to_string(), detail }
}

/// Copies the database to `<file>.v<version>`, or to the first free of `….1`, `….2` and so on. The
/// name appears when the copy is whole and on disk.
fn copy_aside(file: &Path, version: i64) -> Result<(), StorageError> {
    let folder = file.parent().unwrap_or(file);
    sweep(folder)?;
    // A folder of its own: SQLite puts a journal beside the copy, and leaves it there if it fails.
    let made = tempfile::Builder::new().prefix(prefix()).tempdir_in(folder);
    let room = made.map_err(|error| StorageError::of_io(folder, &error))?;
    let copy = room.path().join("copy");
    let wrong = |error: io::Error| StorageError::of_io(&copy, &error);
    // With a connection of its own: the one that holds the lock is in a transaction.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(file, flags).map_err(|error| of_sqlite(file, &error))?;
    source.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(|error| of_sqlite(&copy, &error))?;
    File::open(&copy).and_then(|copy| copy.sync_all()).map_err(wrong)?;
    name_aside(TempPath::try_from_path(&copy).map_err(wrong)?, file, version)?;
    let named = File::open(folder).and_then(|folder| folder.sync_all());
    named.map_err(|error| StorageError::of_io(folder, &error))
}

/// Gives the copy the first name that is free; what has a name is never replaced.
fn name_aside(mut copy: TempPath, file: &Path, version: i64) -> Result<(), StorageError> {
    for number in 0_u64.. {
        let place = aside(file, version, number);
        match copy.persist_noclobber(&place) {
            Ok(()) => return Ok(()),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => copy = refused.path,
            Err(refused) => return Err(StorageError::of_io(&place, &refused.error)),
        }
    }
    Ok(())
}

fn aside(file: &Path, version: i64, number: u64) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".v{version}"));
    if number > 0 {
        name.push(format!(".{number}"));
    }
    PathBuf::from(name)
}
