//! One file for one run: its events, and every blob that they name.
//!
//! The file is a tar without compression, so that any machine can look into it, and of one form only,
//! so that the same run always gives the same bytes:
//!
//! * `checkrein-run.json`: the run, its head digest, and what the rest holds ([`Contents`]).
//! * `events.jsonl`: one row of the log a line ([`Line`]), its payload as the very text that the
//!   chain is over.
//! * `blobs/sha256/<hex>`: each blob, in the order of their digests.
//!
//! What reads it accepts that form and nothing else: whoever makes such a file may be a stranger.
//! The chain shows that no event was altered by accident or by half; who forges all of it is caught
//! only by the digest of the file, which the export prints and a paper can carry.

use std::fmt;

use checkrein_contract::Digest;
use checkrein_contract::id::{RunId, Timestamp, is_segment};
use checkrein_contract::text::{cut, visible};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::rows::RawEvent;

mod aside;
mod export;
mod import;
mod ustar;
pub(crate) mod walk;

#[cfg(test)]
mod tests;

/// What was written into one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The digest of the file: whoever knows it can tell a forgery.
    pub digest: Digest,
    /// The size of the file.
    pub bytes: u64,
    /// How many events it holds.
    pub events: u64,
    /// How many blobs it holds.
    pub blobs: u64,
    /// The digest of the last event.
    pub head: Digest,
}

/// What was read from one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run: RunId,
    /// How many events the file holds.
    pub events: u64,
    /// How many blobs it holds.
    pub blobs: u64,
    /// The digest of the last event.
    pub head: Digest,
    /// The digest of the file.
    pub digest: Digest,
    /// Whether the run was not here before.
    pub fresh: bool,
}

/// The schema of the file.
const SCHEMA: &str = "checkrein/export@1";

/// The name of the entry that holds the [`Contents`].
const CONTENTS: &str = "checkrein-run.json";

/// The name of the entry that holds a [`Line`] for each event.
const EVENTS: &str = "events.jsonl";

/// The largest table of contents: some 400,000 blobs.
const CONTENTS_MAX: u64 = 64 << 20;

/// The largest size of all events.
const EVENTS_MAX: u64 = 4 << 30;

/// The largest size of one event. It is held in memory.
const LINE_MAX: u64 = 64 << 20;

/// The largest list of the files of a folder. It is held in memory.
const LIST_MAX: u64 = 64 << 20;

/// The longest id of a run: it is the name of a folder, with something before or after it.
const RUN_MAX: usize = 200;

/// The first entry: what the file holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    schema: String,
    run: RunId,
    head: Digest,
    events: u64,
    /// In the order of their digests.
    blobs: Vec<Listed>,
}

/// One blob of the file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    digest: Digest,
    bytes: u64,
}

/// One event of the file: a row of the table `event`, as it stands.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    seq: u64,
    kind: String,
    at: Timestamp,
    prev: Digest,
    digest: Digest,
    payload: String,
}

/// The file is not as it should be there.
fn fault(place: impl Into<String>, expected: impl fmt::Display, found: impl fmt::Display) -> StoreError {
    // What is found may be a stranger's.
    let found = cut(&visible(&found.to_string()), FOUND_MAX);
    StoreError::NoExport { place: place.into(), detail: format!("expected {expected}, found {found}") }
}

/// How much of what is found a message shows.
const FOUND_MAX: usize = 300;

impl Contents {
    fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The blob, if the file holds it.
    fn blob(&self, digest: &Digest) -> Option<&Listed> {
        let index = self.blobs.binary_search_by_key(digest, |listed| listed.digest).ok()?;
        self.blobs.get(index)
    }
}

impl Line {
    /// `None` if a column does not hold what it should.
    fn of(raw: RawEvent) -> Option<Self> {
        let RawEvent { seq, kind, at, prev, digest, payload } = raw;
        let seq = u64::try_from(seq).ok()?;
        Some(Line { seq, kind: kind?, at: at?, prev: prev?, digest: digest?, payload: payload? })
    }

    /// `None` if a number is larger than the log can hold.
    fn into_raw(self) -> Option<RawEvent> {
        let Line { seq, kind, at, prev, digest, payload } = self;
        let (seq, _) = (i64::try_from(seq).ok()?, i64::try_from(at.0).ok()?);
        let (at, prev, digest) = (Some(at), Some(prev), Some(digest));
        Some(RawEvent { seq, kind: Some(kind), at, prev, digest, payload: Some(payload) })
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn line_name(seq: u64) -> String {
    format!("line {seq} of `{EVENTS}`")
}

/// The id becomes the name of a folder.
fn is_run(run: &RunId) -> bool {
    is_segment(run.as_str()) && run.as_str().len() <= RUN_MAX
}
