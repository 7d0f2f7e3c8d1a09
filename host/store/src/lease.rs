//! The right to drive a run: one process has it, until it gives it back, ends, or another takes it.
//!
//! Each time it is taken it is counted up by one, its epoch, and every write of the driver checks in
//! its own transaction that the epoch is still the one that it took. So a process that was thought
//! dead and is not can do no harm. No clock decides anything: a process that can be seen either is or
//! is not, and of one that cannot be seen the beat has to move.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use checkrein_contract::id::RunId;
use checkrein_contract::port::{Beat, StorageError};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::connection;
use crate::error::{StoreError, of_sqlite};
use crate::failpoint;
use crate::log::EventLog;
use crate::migrate;
use crate::process::{Identity, Life};
use crate::rows;
use crate::state::State;

/// Which right to drive a run somebody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Counted up by one each time that the right is taken.
    pub(crate) epoch: i64,
    /// Which process has it, for people.
    pub(crate) holder: String,
}

/// Who drives a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driving {
    /// Which process.
    pub holder: String,
    /// How often it has said that it lives.
    pub beats: u64,
    /// What it said of itself last.
    pub beat: Beat,
}

impl State {
    /// Takes the right to drive this run, new or not. A process that can be seen has it as long as it
    /// lives; one that cannot be seen, in another container or on another machine, as long as its beat
    /// moves: this waits [`patience`](crate::Options::patience) for that.
    ///
    /// # Errors
    ///
    /// [`StoreError::Driven`] while another has it; else if the database cannot be opened for writing.
    pub fn lease(&self, run: &RunId) -> Result<EventLog, StoreError> {
        let file = self.database();
        let mut connection = connection::writable(file, self.options().wait)?;
        let mut still = None;
        loop {
            match take(&mut connection, file, run, still)? {
                Taken::Ours { lease, seq, head } => {
                    return Ok(EventLog::new(connection, file, run, lease, (seq, head)));
                }
                Taken::Theirs(holder) => return Err(StoreError::Driven { run: run.clone(), holder }),
                Taken::Unseen(mark) => {
                    watch(&connection, file, run, mark, self.options().patience)?;
                    still = Some(mark);
                }
            }
        }
    }

    /// Who drives this run now, if somebody does. Where the process cannot be seen, this waits for its
    /// beat.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn drives(&self, run: &RunId) -> Result<Option<Driving>, StoreError> {
        let (connection, file) = (self.connection(), self.database());
        if migrate::version(&connection, file)? < migrate::WITH_LEASES {
            return Ok(None);
        }
        let Some(mut held) = read(&connection, file, run)? else { return Ok(None) };
        match held.life() {
            Life::Dead => return Ok(None),
            Life::Alive => {}
            Life::Unseen => {
                let mark = held.mark();
                watch(&connection, file, run, mark, self.options().patience)?;
                let later = read(&connection, file, run)?;
                match later.filter(|later| later.mark() != mark && later.life() != Life::Dead) {
                    Some(later) => held = later,
                    None => return Ok(None),
                }
            }
        }
        let beat = serde_json::from_str(&held.told).map_err(|error| StorageError::Damaged {
            place: place(file, run),
            detail: format!("what its holder told is no beat: {error}"),
        })?;
        Ok(Some(Driving { holder: held.holder, beats: held.beat.unsigned_abs(), beat }))
    }
}

/// Who drives which run, as far as it can be seen without waiting: a process that cannot be seen is
/// taken at its word.
pub(crate) fn held(connection: &Connection, file: &Path) -> Result<Vec<(String, String)>, StoreError> {
    if migrate::version(connection, file)? < migrate::WITH_LEASES {
        return Ok(Vec::new());
    }
    let wrong = |error: rusqlite::Error| StoreError::from(of_sqlite(file, &error));
    let query = format!("SELECT {COLUMNS}, run FROM lease WHERE pid IS NOT NULL");
    let mut statement = connection.prepare(&query).map_err(wrong)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(8)?, Held::read(row)?)));
    let held: Vec<(String, Held)> = rows.map_err(wrong)?.collect::<Result<_, _>>().map_err(wrong)?;
    let live = held.into_iter().filter(|(_, held)| held.life() != Life::Dead);
    Ok(live.map(|(run, held)| (run, held.holder)).collect())
}

/// Fails unless the right to drive the run is still this one.
pub(crate) fn check(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    lease: &Lease,
) -> Result<(), StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    let query = "SELECT epoch, holder FROM lease WHERE run = ?1";
    let mut statement = connection.prepare_cached(query).map_err(wrong)?;
    let found = statement
        .query_row([run.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()
        .map_err(wrong)?;
    match found {
        Some((epoch, _)) if epoch == lease.epoch => Ok(()),
        Some((_, holder)) => Err(StorageError::Fenced { run: run.clone(), holder }),
        None => {
            let detail = "it was removed while this process had it".to_owned();
            Err(StorageError::Damaged { place: place(file, run), detail })
        }
    }
}

/// Gives the right back, if it is still this one.
pub(crate) fn release(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    lease: &Lease,
) -> Result<(), StorageError> {
    let change = "UPDATE lease SET pid = NULL WHERE run = ?1 AND epoch = ?2";
    connection
        .execute(change, params![run.as_str(), lease.epoch])
        .map(drop)
        .map_err(|error| of_sqlite(file, &error))
}

/// How long to wait before the beat is looked at again.
const PAUSE: Duration = Duration::from_millis(250);

/// What came of trying to take the right.
enum Taken {
    Ours {
        lease: Lease,
        seq: u64,
        head: checkrein_contract::Digest,
    },
    Theirs(String),
    /// Its holder cannot be seen: does its beat move?
    Unseen(Mark),
}

/// Epoch and beat: what moves while somebody drives.
type Mark = (i64, i64);

/// Takes the right, unless somebody has it. `still` is the mark at which the beat of a holder that
/// cannot be seen stood for as long as one has patience.
fn take(
    connection: &mut Connection,
    file: &Path,
    run: &RunId,
    still: Option<Mark>,
) -> Result<Taken, StoreError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    // Immediate: nobody beats and nobody takes it between the look and the taking.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    let before = read(&change, file, run)?;
    if let Some(held) = &before {
        match held.life() {
            Life::Dead => {}
            Life::Unseen if still == Some(held.mark()) => {}
            Life::Unseen if still.is_none() => return Ok(Taken::Unseen(held.mark())),
            Life::Alive | Life::Unseen => return Ok(Taken::Theirs(held.holder.clone())),
        }
    }
    let me = Identity::own();
    let lease = Lease { epoch: before.map_or(0, |held| held.epoch) + 1, holder: me.name() };
    let (seq, head) = rows::head(&change, file, run)?;
    let told = serde_json::to_string(&Beat::default())
        .map_err(|error| StorageError::Other { place: place(file, run), detail: error.to_string() })?;
    let query = "INSERT OR REPLACE INTO lease (run, epoch, holder, pid, started, space, boot, beat, told)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)";
    let Identity { pid, started, boot, .. } = &me;
    let row = params![run.as_str(), lease.epoch, lease.holder, pid, started, me.place(), boot, told];
    change.execute(query, row).map_err(wrong)?;
    failpoint::reach("lease", "before-commit");
    change.commit().map_err(wrong)?;
    failpoint::reach("lease", "after-commit");
    Ok(Taken::Ours { lease, seq, head })
}

/// Waits until the mark moves, or for as long as one has patience.
fn watch(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    mark: Mark,
    patience: Duration,
) -> Result<(), StorageError> {
    // Monotonic: setting the clock changes nothing.
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(PAUSE));
        if read(connection, file, run)?.map(|held| held.mark()) != Some(mark) {
            return Ok(());
        }
    }
}

/// A row of the table `lease`.
struct Held {
    epoch: i64,
    holder: String,
    /// `None` where it was given back.
    who: Option<Identity>,
    beat: i64,
    told: String,
}

const COLUMNS: &str = "epoch, holder, pid, started, space, boot, beat, told";

impl Held {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (started, place, boot) = (row.get(3)?, row.get::<_, Option<String>>(4)?, row.get(5)?);
        let pid: Option<i64> = row.get(2)?;
        let known = |pid| Identity { pid, started, boot, space: None, host: None };
        let who = pid.map(|pid| known(pid).at(place.as_deref()));
        Ok(Held { epoch: row.get(0)?, holder: row.get(1)?, who, beat: row.get(6)?, told: row.get(7)? })
    }

    fn mark(&self) -> Mark {
        (self.epoch, self.beat)
    }

    fn life(&self) -> Life {
        self.who.as_ref().map_or(Life::Dead, |who| Identity::own().sees(who))
    }
}

fn read(connection: &Connection, file: &Path, run: &RunId) -> Result<Option<Held>, StorageError> {
    let query = format!("SELECT {COLUMNS} FROM lease WHERE run = ?1");
    let found = connection.query_row(&query, [run.as_str()], Held::read).optional();
    found.map_err(|error| of_sqlite(file, &error))
}

fn place(file: &Path, run: &RunId) -> String {
    format!("the lease of run {run} in {}", file.display())
}
