use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::Place;

/// An event as it stands in the database.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its position.
    pub seq: i64,
    /// When, in milliseconds.
    pub at: i64,
    /// Its kind.
    pub kind: String,
    /// What happened.
    pub event: Value,
}

/// An ask that nobody has answered.
#[derive(Clone, Debug)]
pub struct OpenAsk {
    /// Its id.
    pub ask: String,
    /// Of which subgoal.
    pub subgoal: String,
    /// What is asked: an approval, a call, a hand-over.
    pub about: Value,
}

impl OpenAsk {
    /// The word for what is asked, such as `approval`.
    pub fn kind(&self) -> &str {
        self.about["kind"].as_str().unwrap()
    }
}

/// What the database says, whoever drives the run.
impl Place {
    /// The last run; `None` while there is none.
    pub fn last_run(&self) -> Option<String> {
        let database = self.reading()?;
        let query = "SELECT run FROM event WHERE seq = 1 ORDER BY at DESC, run DESC LIMIT 1";
        // Before the first event there may be no table yet.
        database.query_row(query, [], |row| row.get(0)).ok()
    }

    /// The events of the last run; none while there is none.
    pub fn entries(&self) -> Vec<Entry> {
        let Some((run, database)) = self.last_run().zip(self.reading()) else { return Vec::new() };
        let query = "SELECT seq, at, kind, payload FROM event WHERE run = ?1 ORDER BY seq";
        let mut statement = database.prepare(query).unwrap();
        let entries = statement.query_map([run], |row| {
            let payload: String = row.get(3)?;
            let event = serde_json::from_str(&payload).unwrap();
            Ok(Entry { seq: row.get(0)?, at: row.get(1)?, kind: row.get(2)?, event })
        });
        entries.unwrap().map(Result::unwrap).collect()
    }

    /// The events of the last run of one kind.
    pub fn entries_of(&self, kind: &str) -> Vec<Value> {
        self.entries().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.event).collect()
    }

    /// The asks of the last run that are open.
    pub fn open_asks(&self) -> Vec<OpenAsk> {
        let mut open = Vec::<OpenAsk>::new();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        for Entry { kind, event, .. } in self.entries() {
            match kind.as_str() {
                "ask-opened" => open.push(OpenAsk {
                    ask: text(&event["ask"]),
                    subgoal: text(&event["subgoal"]),
                    about: event["about"].clone(),
                }),
                "ask-answered" => open.retain(|ask| event["ask"] != ask.ask.as_str()),
                "subgoal-closed" => open.retain(|ask| event["subgoal"] != ask.subgoal.as_str()),
                "task-amended" => {
                    let reopened = event["reopened"].as_array().unwrap().clone();
                    open.retain(|ask| !reopened.contains(&Value::from(ask.subgoal.as_str())));
                }
                _ => {}
            }
        }
        open
    }

    /// The facts of the last run: their ids, with the digests of their contents.
    pub fn facts(&self) -> BTreeSet<(String, String)> {
        let accepted = self.entries_of("outcome-accepted");
        let facts = accepted.iter().flat_map(|event| event["facts"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        facts.map(|fact| (text(&fact["id"]), text(&fact["content"]))).collect()
    }

    /// How the last run ended; `None` while it has not.
    pub fn status(&self) -> Option<String> {
        let ended = self.entries_of("run-ended");
        ended.last().map(|event| event["status"].as_str().unwrap().to_owned())
    }

    /// How often each call of a subgoal was intended.
    pub fn calls_of(&self, subgoal: &str) -> usize {
        self.entries_of("call-intended").iter().filter(|event| event["subgoal"] == subgoal).count()
    }

    /// Why the subgoal was closed, last.
    pub fn closing_of(&self, subgoal: &str) -> Value {
        let closed = self.entries_of("subgoal-closed");
        let last = closed.iter().rev().find(|event| event["subgoal"] == subgoal);
        last.unwrap_or_else(|| panic!("`{subgoal}` is open"))["closing"].clone()
    }

    /// Changes the database behind everybody's back; gives how many rows.
    pub fn alter(&self, sql: &str) -> usize {
        Connection::open(self.database()).unwrap().execute(sql, []).unwrap()
    }

    /// Flips a bit in the middle of the snapshot; `false` if there is none.
    pub fn flip_a_bit_of_the_snapshot(&self) -> bool {
        let database = Connection::open(self.database()).unwrap();
        let query = "SELECT folded FROM snapshot";
        let Ok(mut folded) = database.query_row(query, [], |row| row.get::<_, Vec<u8>>(0)) else {
            return false;
        };
        let middle = folded.len() / 2;
        folded[middle] ^= 1;
        database.execute("UPDATE snapshot SET folded = ?1", [folded]).unwrap() == 1
    }

    fn reading(&self) -> Option<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = self.database();
        if !file.exists() {
            return None;
        }
        let database = Connection::open_with_flags(file, flags).unwrap();
        database.busy_timeout(Duration::from_secs(10)).unwrap();
        Some(database)
    }
}
