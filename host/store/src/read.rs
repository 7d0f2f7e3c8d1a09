//! What the log says of its runs.

use std::collections::HashMap;

use checkrein_contract::event::{Logged, RunStatus, Stop};
use checkrein_contract::id::{RunId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{StoreError, of_sqlite};
use crate::lease;
use crate::rows;
use crate::state::State;

/// One line of `checkrein runs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The name of its task; `None` if its first event cannot be read.
    pub task: Option<String>,
    /// When its first event was appended.
    pub started: Timestamp,
    /// When its last event was appended.
    pub last: Timestamp,
    /// How it ended; `None` while it has not, or where an amendment opened something of it again.
    pub status: Option<RunStatus>,
    /// Why it stopped, if it has neither gone on nor ended since.
    pub stopped: Option<Stop>,
    /// Which process drives it, as far as that can be seen without waiting: see [`State::drives`].
    pub driven: Option<String>,
    /// Whether nothing of it leaves.
    pub dry: bool,
    /// How many events it has.
    pub events: u64,
}

impl State {
    /// The events of a run, in order; none if there is no such run.
    ///
    /// # Errors
    ///
    /// If the database cannot be read, or an event of it is not one that this version knows.
    pub fn events(&self, run: &RunId) -> Result<Vec<Logged>, StoreError> {
        self.scanned(run, rows::START)
    }

    /// The events of a run past the one at `seq`, in order.
    ///
    /// # Errors
    ///
    /// As for [`State::events`].
    pub fn events_after(&self, run: &RunId, seq: u64) -> Result<Vec<Logged>, StoreError> {
        self.scanned(run, rows::start(seq))
    }

    fn scanned(&self, run: &RunId, after: i64) -> Result<Vec<Logged>, StoreError> {
        let mut events = Vec::new();
        rows::scan(&self.connection(), self.database(), run, after, |raw| {
            events.push(raw.logged(run)?);
            Ok(())
        })?;
        Ok(events)
    }

    /// The runs that there are, newest first. A run whose events were tampered with is listed too.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        let query = "
            SELECT edge.run, edge.events, first.payload, first.at, last.at
            FROM (SELECT run, count(*) AS events, min(seq) AS low, max(seq) AS high FROM event GROUP BY run) AS edge
            JOIN event AS first ON first.run = edge.run AND first.seq = edge.low
            JOIN event AS last ON last.run = edge.run AND last.seq = edge.high
            ORDER BY first.at DESC, edge.run DESC";
        let wrong = |error: rusqlite::Error| StoreError::from(of_sqlite(self.database(), &error));
        let connection = self.connection();
        let mut statement = connection.prepare(query).map_err(wrong)?;
        let rows = statement.query_map([], summary).map_err(wrong)?;
        let mut runs: Vec<RunSummary> = rows.collect::<Result<_, _>>().map_err(wrong)?;
        let mut holders: HashMap<String, String> =
            lease::held(&connection, self.database())?.into_iter().collect();
        for one in &mut runs {
            one.driven = holders.remove(one.run.as_str());
            (one.status, one.stopped) = course(&connection, &one.run).map_err(wrong)?;
        }
        Ok(runs)
    }

    /// The run that `wanted` stands for: its id, a prefix that no other run shares, or `@last`.
    ///
    /// # Errors
    ///
    /// If there is none, or more than one; the error lists the runs that it may have meant.
    pub fn resolve(&self, wanted: &str) -> Result<RunId, StoreError> {
        if self.has(wanted)? {
            return Ok(RunId::from(wanted));
        }
        let known: Vec<RunId> = self.runs()?.into_iter().map(|summary| summary.run).collect();
        if wanted == "@last" || known.is_empty() {
            let place = self.dir().display().to_string();
            return known.into_iter().next().ok_or(StoreError::NoRuns { place });
        }
        let starts = |run: &&RunId| !wanted.is_empty() && run.as_str().starts_with(wanted);
        let mut candidates: Vec<RunId> = known.iter().filter(starts).cloned().collect();
        match candidates.len() {
            0 => Err(StoreError::NoRun { wanted: wanted.to_owned(), known }),
            1 => Ok(candidates.remove(0)),
            _ => Err(StoreError::Ambiguous { wanted: wanted.to_owned(), candidates }),
        }
    }

    fn has(&self, run: &str) -> Result<bool, StoreError> {
        let query = "SELECT 1 FROM event WHERE run = ?1 LIMIT 1";
        let found = self.connection().query_row(query, [run], |_| Ok(())).optional();
        Ok(found.map_err(|error| of_sqlite(self.database(), &error))?.is_some())
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let time = |index: usize| -> rusqlite::Result<Timestamp> {
        Ok(Timestamp(u64::try_from(row.get::<_, i64>(index)?).unwrap_or_default()))
    };
    let first = json(row, 2)?;
    Ok(RunSummary {
        run: RunId(row.get(0)?),
        task: first["setup"]["task"]["name"].as_str().map(str::to_owned),
        started: time(3)?,
        last: time(4)?,
        status: None,
        stopped: None,
        driven: None,
        dry: first["setup"]["dry"] == true,
        events: u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
    })
}

/// The kinds of events that [`course`] looks at, from the last one back. There is no index of kinds:
/// this passes over the rows of the run at most once, as counting them does, and reads no other payload.
const COURSE: &str = "
    SELECT kind, payload FROM event
    WHERE run = ?1 AND kind IN ('run-ended', 'run-stopped', 'run-resumed', 'task-amended')
    ORDER BY seq DESC";

/// How the run ended, or why it stopped, if neither was undone since. Other events may come after it:
/// letters that are refused, and who takes the right to drive it.
fn course(connection: &Connection, run: &RunId) -> rusqlite::Result<(Option<RunStatus>, Option<Stop>)> {
    let mut statement = connection.prepare_cached(COURSE)?;
    let mut rows = statement.query([run.as_str()])?;
    let (mut resumed, mut opened) = (false, false);
    while let Some(row) = rows.next()? {
        let event = json(row, 1)?;
        let names = |list: &str| event[list].as_array().is_some_and(|subgoals| !subgoals.is_empty());
        match row.get_ref(0)?.as_bytes().unwrap_or_default() {
            b"run-resumed" => resumed = true,
            b"task-amended" => opened |= names("reopened") || names("evaluated"),
            b"run-stopped" if resumed => break,
            b"run-stopped" => return Ok((None, Stop::deserialize(&event["because"]).ok())),
            _ if opened => break,
            _ => return Ok((RunStatus::deserialize(&event["status"]).ok(), None)),
        }
    }
    Ok((None, None))
}

/// A payload. What was tampered with is for `verify` to name; here it only leaves its field empty.
fn json(row: &Row<'_>, index: usize) -> rusqlite::Result<Value> {
    let payload = row.get_ref(index)?.as_bytes().unwrap_or_default();
    Ok(serde_json::from_slice(payload).unwrap_or_default())
}
