//! Whether a run's log and its blobs are what was written.
//!
//! Each event carries the digest of the one before, and its own digest is over run, position,
//! time, that digest and its payload. So whoever holds the head digest, which the report prints,
//! can show that no event up to it was altered, lost or put elsewhere.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use checkrein_contract::Digest;
use checkrein_contract::event::Event;
use checkrein_contract::id::RunId;
use checkrein_contract::port::{Blobs as _, StorageError};
use serde::Deserialize;

use crate::archive::walk;
use crate::blobs::FileBlobs;
use crate::chain::{ChainFault, Links, other_kind};
use crate::error::StoreError;
use crate::rows::{self, RawEvent};
use crate::state::State;

/// What became of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobProblem {
    /// It is not there.
    Missing,
    /// Its content has another digest.
    Altered,
    /// It could not be read.
    Unreadable(String),
}

/// A blob that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobFault {
    /// The position of the first event that names it.
    pub seq: u64,
    /// The kind of that event.
    pub kind: String,
    /// The blob.
    pub digest: Digest,
    /// What became of it.
    pub problem: BlobProblem,
}

/// An event that chains well, and that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Its position.
    pub seq: u64,
    /// What the log calls it.
    pub kind: String,
    /// Why it cannot be read.
    pub detail: String,
}

/// How the log stands to the head digest that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadCheck {
    /// None was given: events lost at the end cannot be seen.
    NotGiven,
    /// It is the last event's.
    Last,
    /// It is that of an earlier event: the run went on afterwards.
    Passed {
        /// Its position.
        seq: u64,
    },
    /// No event has it.
    NotFound,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The run.
    pub run: RunId,
    /// How many events stand in the log.
    pub events: u64,
    /// The digest of the last event that was found good.
    pub head: Digest,
    /// How the log stands to the head that was given.
    pub head_check: HeadCheck,
    /// The first fault of the chain.
    pub fault: Option<ChainFault>,
    /// How many blobs were read again.
    pub blobs: u64,
    /// Those that are not what they were.
    pub blob_faults: Vec<BlobFault>,
    /// Events that this version cannot read; not a fault.
    pub unknown: Vec<Unknown>,
}

impl Verification {
    /// Whether log and blobs are what was written.
    pub fn holds(&self) -> bool {
        self.fault.is_none() && self.blob_faults.is_empty()
    }
}

impl State {
    /// Checks the chain of a run's events, and every blob that they name, against `expected`, the
    /// head digest that a report or a person kept.
    ///
    /// # Errors
    ///
    /// If the database cannot be read; what is wrong with its content is in the answer.
    pub fn verify(&self, run: &RunId, expected: Option<Digest>) -> Result<Verification, StoreError> {
        let mut chain = Chain::new(run, expected);
        rows::scan(&self.connection(), self.database(), run, rows::START, |raw| {
            chain.follow(raw);
            Ok(())
        })?;
        let Chain { mut verification, named, lists, .. } = chain.finish();
        let mut sorted: Vec<(Digest, (u64, String))> = named.into_iter().collect();
        sorted.sort_by_key(|(digest, (seq, _))| (*seq, *digest));
        let blobs = self.blobs();
        let mut seen: HashSet<Digest> = sorted.iter().map(|(digest, _)| *digest).collect();
        // What a list names is looked at after it.
        let mut todo: VecDeque<(Digest, (u64, String))> = sorted.into();
        while let Some((digest, (seq, kind))) = todo.pop_front() {
            verification.blobs += 1;
            let problem = match listed(&blobs, &digest, lists.contains(&digest)) {
                Ok(files) => {
                    let new = files.into_iter().filter(|file| seen.insert(*file));
                    todo.extend(new.map(|file| (file, (seq, kind.clone()))));
                    continue;
                }
                Err(StorageError::Missing { .. }) => BlobProblem::Missing,
                Err(StorageError::Damaged { .. }) => BlobProblem::Altered,
                Err(error) => BlobProblem::Unreadable(error.to_string()),
            };
            verification.blob_faults.push(BlobFault { seq, kind, digest, problem });
        }
        Ok(verification)
    }
}

/// Checks a blob; of one that lists the files of a folder, gives the blobs that it lists.
fn listed(blobs: &FileBlobs, digest: &Digest, is_list: bool) -> Result<Vec<Digest>, StorageError> {
    if !is_list {
        return blobs.check(digest).map(|()| Vec::new());
    }
    let damaged = |error: serde_json::Error| StorageError::Damaged {
        place: format!("blob {digest}"),
        detail: format!("no list of files: {error}"),
    };
    walk::files(&blobs.get(digest)?).map_err(damaged)
}

/// A walk along the chain.
struct Chain {
    verification: Verification,
    /// The events that were found good.
    links: Links,
    expected: Option<Digest>,
    /// Each blob, with the first event that names it. Blobs of events past a fault are looked at
    /// too: they may be all that is left.
    named: HashMap<Digest, (u64, String)>,
    /// Those of them that list the files of a folder, which are blobs too.
    lists: HashSet<Digest>,
    /// The row of the first fault, to find where it was written.
    bad: Option<RawEvent>,
    /// The largest position from that row on.
    last: u64,
}

impl Chain {
    fn new(run: &RunId, expected: Option<Digest>) -> Self {
        let verification = Verification {
            run: run.clone(),
            events: 0,
            head: Digest::ZERO,
            head_check: if expected.is_some() { HeadCheck::NotFound } else { HeadCheck::NotGiven },
            fault: None,
            blobs: 0,
            blob_faults: Vec::new(),
            unknown: Vec::new(),
        };
        let links = Links::new(run, 0, Digest::ZERO);
        let (named, lists) = (HashMap::new(), HashSet::new());
        Chain { verification, links, expected, named, lists, bad: None, last: 0 }
    }

    fn follow(&mut self, raw: RawEvent) {
        self.verification.events += 1;
        if self.verification.fault.is_none() {
            match self.link(&raw) {
                Ok(digest) => self.accept(digest),
                Err(fault) => self.verification.fault = Some(fault),
            }
        }
        self.read(&raw);
        if self.verification.fault.is_some() {
            self.last = self.last.max(u64::try_from(raw.seq).unwrap_or_default());
            self.bad.get_or_insert(raw);
        }
    }

    fn accept(&mut self, digest: Digest) {
        self.links.accept(digest);
        self.verification.head = digest;
        if self.expected == Some(digest) {
            self.verification.head_check = HeadCheck::Passed { seq: self.links.seq() };
        }
    }

    /// The digest of the event, if it is the next of the chain and what was written.
    fn link(&self, raw: &RawEvent) -> Result<Digest, ChainFault> {
        let digest = self.links.check(raw)?;
        let named = raw.payload.as_deref().and_then(tag);
        match named.filter(|named| Some(named) != raw.kind.as_ref()) {
            Some(named) => Err(other_kind(raw, &named)),
            None => Ok(digest),
        }
    }

    /// Notes the blobs that the event names, or that it cannot be read.
    fn read(&mut self, raw: &RawEvent) {
        let (Some(payload), Ok(seq)) = (&raw.payload, u64::try_from(raw.seq)) else { return };
        let kind = raw.kind.clone().unwrap_or_default();
        match serde_json::from_str::<Event>(payload) {
            Ok(event) => {
                self.lists.extend(walk::lists(&event));
                for digest in event.blobs() {
                    self.named.entry(digest).or_insert_with(|| (seq, kind.clone()));
                }
            }
            // Past a fault, and in it, a payload that cannot be read says nothing new.
            Err(error) if self.verification.fault.is_none() => {
                self.verification.unknown.push(Unknown { seq, kind, detail: error.to_string() });
            }
            Err(_) => {}
        }
    }

    fn finish(mut self) -> Self {
        if let HeadCheck::Passed { seq } = self.verification.head_check
            && seq == self.verification.events
        {
            self.verification.head_check = HeadCheck::Last;
        }
        match &self.verification.fault {
            None if self.verification.head_check == HeadCheck::NotFound => {
                let expected = self.expected.unwrap_or(Digest::ZERO);
                self.verification.fault = Some(ChainFault::TailLost { after: self.links.seq(), expected });
            }
            Some(ChainFault::Altered { .. }) => {
                if let Some(moved) = self.moved() {
                    self.verification.fault = Some(moved);
                }
            }
            None
            | Some(ChainFault::Lost { .. } | ChainFault::Reordered { .. } | ChainFault::TailLost { .. }) => {}
        }
        self
    }

    /// If the first bad row is an event that was written at another position, which one. The nearest
    /// are tried first.
    fn moved(&self) -> Option<ChainFault> {
        let row = self.bad.as_ref()?;
        let (at, prev, digest) = (row.at?, row.prev?, row.digest?);
        let payload = row.payload.as_deref()?;
        let seq = u64::try_from(row.seq).ok()?;
        let tries = HASHED_MAX / self.links.hashed(payload);
        let near = (1..=tries).flat_map(|far| [seq.checked_sub(far), seq.checked_add(far)]).flatten();
        let from = near
            .filter(|from| (1..=self.last).contains(from))
            .take(usize::try_from(tries).unwrap_or(usize::MAX))
            .find(|from| self.links.digest(*from, at, &prev, payload) == digest)?;
        Some(ChainFault::Reordered { seq, kind: row.kind.clone().unwrap_or_default(), from })
    }
}

/// How many bytes are hashed at most to find where an event was written: each position that is tried
/// costs a digest of all of its payload. It is a second or so, whatever stands in the log.
const HASHED_MAX: u64 = 256 << 20;

/// The kind that a payload states; `None` if it is no event of any version. The rest is passed over,
/// not built.
fn tag(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Tagged {
        event: String,
    }
    serde_json::from_str::<Tagged>(payload).ok().map(|tagged| tagged.event)
}

impl fmt::Display for BlobFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlobFault { seq, kind, digest, problem } = self;
        write!(f, "{digest}, named by event {seq} (`{kind}`), ")?;
        match problem {
            BlobProblem::Missing => f.write_str("is missing"),
            BlobProblem::Altered => f.write_str("was altered"),
            BlobProblem::Unreadable(detail) => write!(f, "cannot be read: {detail}"),
        }
    }
}
