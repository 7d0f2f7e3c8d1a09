//! What a call did at its walls, as it happens: shared by everything that stands in its way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkrein_contract::port::StorageError;
use checkrein_contract::record::{Exchange, FolderSeen, Record, Wall};

use crate::text::at_most;

/// Bytes of one denial that are kept: a guest chooses what it tries, and how long that is.
const TOLD: usize = 1_000;

/// The record of one call. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    record: Record,
    failed: Option<StorageError>,
    /// The record was taken: what happens from here on would be told nowhere, so nothing may.
    closed: bool,
}

impl Recorder {
    /// Something was turned down; `grant` is the line that would allow it.
    pub(crate) fn deny(&self, wall: Wall, what: impl Into<String>, grant: Option<String>) {
        let what = at_most(&what.into(), TOLD);
        // A line that is cut allows something else, or nothing.
        let grant = grant.filter(|line| line.len() <= TOLD);
        let mut pages = self.lock();
        if !pages.closed {
            pages.record.deny(wall, what, grant);
        }
    }

    /// What the granted folders held before anything was done.
    pub(crate) fn saw(&self, folders: Vec<FolderSeen>) {
        self.lock().record.folders = folders;
    }

    /// Something is about to leave; says where it stands in the record. `None` once the record was
    /// taken: the call is over, and what would leave now must not.
    pub(crate) fn begin(&self, exchange: Exchange) -> Option<usize> {
        let mut pages = self.lock();
        if pages.closed {
            return None;
        }
        let exchanges = &mut pages.record.exchanges;
        exchanges.push(exchange);
        Some(exchanges.len() - 1)
    }

    /// What came of it. Once the record was taken, the call is over and nobody asks any more.
    pub(crate) fn amend(&self, at: usize, exchange: Exchange) {
        if let Some(known) = self.lock().record.exchanges.get_mut(at) {
            *known = exchange;
        }
    }

    /// The disk failed while something was recorded: the call ends with that, whatever it returns.
    pub(crate) fn fail(&self, error: StorageError) {
        self.lock().failed.get_or_insert(error);
    }

    /// The first failure of the disk, if there was one.
    pub(crate) fn failed(&self) -> Option<StorageError> {
        self.lock().failed.take()
    }

    /// Whether the record was taken.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes what was recorded, and closes the record: tasks of a call may outlive it for a moment,
    /// and none of them sends anything more.
    pub(crate) fn take(&self) -> Record {
        let mut pages = self.lock();
        pages.closed = true;
        std::mem::take(&mut pages.record)
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use checkrein_contract::digest::Digest;
    use checkrein_contract::id::Timestamp;

    use super::*;

    #[test]
    fn a_record_that_was_taken_is_closed() {
        let exchange = Exchange {
            method: "GET".to_owned(),
            url: "https://a.test/".to_owned(),
            asked: None,
            at: Timestamp(0),
            ms: 0,
            sent: Digest::ZERO,
            sent_bytes: 0,
            status: None,
            headers: Vec::new(),
            body: None,
            body_bytes: 0,
            error: None,
        };
        let recorder = Recorder::default();
        assert_eq!(recorder.begin(exchange.clone()), Some(0));
        assert!(!recorder.is_closed());
        assert_eq!(recorder.take().exchanges.len(), 1);
        assert!(recorder.is_closed());
        assert_eq!(recorder.clone().begin(exchange), None);
        recorder.deny(Wall::Network, "GET https://a.test/", None);
        assert!(recorder.take().is_empty());
    }

    #[test]
    fn what_a_guest_tried_is_kept_as_far_as_it_is_of_use() {
        let recorder = Recorder::default();
        recorder.deny(Wall::Network, "x".repeat(1 << 20), Some("x".repeat(1 << 20)));
        recorder.deny(
            Wall::Network,
            "GET https://a.test/",
            Some("network = [\"GET https://a.test/\"]".into()),
        );
        let record = recorder.take();
        assert!(record.denials[0].what.len() < 1_100 && record.denials[0].grant.is_none());
        assert!(record.denials[1].grant.is_some());
    }
}
