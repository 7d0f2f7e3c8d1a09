//! The snapshot of a run: what its events up to one of them fold to. It is a cache, and is trusted
//! only where it can be shown to be what was kept, of the very log that is there.

use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::id::RunId;
use checkrein_contract::port::StorageError;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, params};
use sha2::{Digest as _, Sha256};

use crate::error::{StoreError, of_sqlite};
use crate::migrate;
use crate::rows::{self, integer};
use crate::state::State;

/// What is kept of a run's fold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing.
    None,
    /// Something that is not what was kept, or not of this log: the events say it all again.
    Damaged(String),
    /// What the events up to one of them fold to.
    At {
        /// Its position.
        seq: u64,
        /// Its digest.
        digest: Digest,
        /// What they fold to.
        folded: Vec<u8>,
    },
}

impl State {
    /// What is kept of a run's fold, if it is what was kept.
    ///
    /// # Errors
    ///
    /// If the database cannot be read at all; damage to the snapshot is in the answer.
    pub fn snapshot(&self, run: &RunId) -> Result<Kept, StoreError> {
        let (connection, file) = (self.connection(), self.database());
        if migrate::version(&connection, file)? < migrate::WITH_LEASES {
            return Ok(Kept::None);
        }
        let kept = match read(&connection, run) {
            Ok(None) => return Ok(Kept::None),
            Ok(Some(kept)) => kept,
            Err(error) if is_damage(&error) => return Ok(Kept::Damaged(error.to_string())),
            Err(error) => return Err(of_sqlite(file, &error).into()),
        };
        match kept.check(run) {
            Err(why) => Ok(Kept::Damaged(why)),
            Ok((seq, digest)) => Ok(match misfit(&connection, file, run, seq, &digest)? {
                Some(why) => Kept::Damaged(why),
                None => Kept::At { seq, digest, folded: kept.folded },
            }),
        }
    }
}

/// Keeps what the events up to `seq`, whose digest is `head`, fold to.
pub(crate) fn keep(
    change: &Transaction<'_>,
    file: &Path,
    run: &RunId,
    (seq, head): (u64, &Digest),
    folded: &[u8],
) -> Result<(), StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let query = "INSERT OR REPLACE INTO snapshot (run, seq, digest, folded, checksum, version)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let seq = integer(seq).map_err(wrong)?;
    let head = head.to_string();
    let sum = checksum(run, seq, &head, folded).to_string();
    let row = params![run.as_str(), seq, head, folded, sum, VERSION];
    change.execute(query, row).map(drop).map_err(wrong)
}

/// The version of how a snapshot is kept; what is kept in it has one of its own.
const VERSION: i64 = 1;

/// A row of the table `snapshot`.
struct Row {
    seq: i64,
    digest: String,
    folded: Vec<u8>,
    checksum: String,
    version: i64,
}

impl Row {
    /// Position and digest of the event that it was kept at, if all of it is what was kept.
    fn check(&self, run: &RunId) -> Result<(u64, Digest), String> {
        if self.version != VERSION {
            return Err(format!(
                "it has version {}, and this version of checkrein keeps {VERSION}",
                self.version
            ));
        }
        let found = checksum(run, self.seq, &self.digest, &self.folded).to_string();
        if found != self.checksum {
            return Err(format!("its checksum is {found}, and {} was noted", self.checksum));
        }
        let seq = u64::try_from(self.seq).map_err(|_| format!("it was kept at event {}", self.seq))?;
        let digest = self.digest.parse().map_err(|error| format!("the digest of event {seq}: {error}"))?;
        Ok((seq, digest))
    }
}

/// Covers the bytes, and of which log and up to where they are.
fn checksum(run: &RunId, seq: i64, digest: &str, folded: &[u8]) -> Digest {
    let head = serde_json::json!([VERSION, run, seq, digest]);
    let mut hasher = Sha256::new();
    hasher.update(format!("{head}\n"));
    hasher.update(folded);
    Digest::from_bytes(hasher.finalize().into())
}

fn read(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<Row>> {
    let query = "SELECT seq, digest, folded, checksum, version FROM snapshot WHERE run = ?1";
    let row = connection.query_row(query, [run.as_str()], |row| {
        Ok(Row {
            seq: row.get(0)?,
            digest: row.get(1)?,
            folded: row.get(2)?,
            checksum: row.get(3)?,
            version: row.get(4)?,
        })
    });
    row.optional()
}

/// Whether the fault lies in the bytes that were read, and not in reading.
fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => true,
        Some(_) => false,
        None => true,
    }
}

/// Why the snapshot is not one of the log that is there.
fn misfit(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    seq: u64,
    digest: &Digest,
) -> Result<Option<String>, StoreError> {
    if seq == 0 && *digest == Digest::ZERO {
        return Ok(None);
    }
    Ok(match rows::at(connection, file, run, seq)? {
        Some((_, found)) if found == digest.to_string() => gap(connection, file, run, seq)?,
        Some((_, found)) => {
            Some(format!("it was kept at event {seq} with the digest {digest}, and the log has `{found}`"))
        }
        None => {
            let last = rows::last(connection, file, run)?;
            let lost = if last < seq { "events were lost at its end" } else { "that one was lost" };
            Some(format!("it was kept at event {seq}, and the log ends at event {last}: {lost}"))
        }
    })
}

/// Why the events that the snapshot was folded from are not all there. Whoever goes on from it never
/// looks at them; that is the only place to see that some are gone.
fn gap(connection: &Connection, file: &Path, run: &RunId, seq: u64) -> Result<Option<String>, StoreError> {
    let (events, first) = rows::up_to(connection, file, run, seq)?;
    // No two stand at one position: as many as that from the first on are all of them.
    if events == seq && first == Some(1) {
        return Ok(None);
    }
    Ok(Some(format!("it was kept at event {seq}, and {events} events stand in the log up to there")))
}
