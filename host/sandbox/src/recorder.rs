//! What a call did at its walls, as it happens: shared by everything that stands in its way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkrein_contract::port::StorageError;
use checkrein_contract::record::{Exchange, Record, Wall};

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
}

impl Recorder {
    /// Something was turned down; `grant` is the line that would allow it.
    pub(crate) fn deny(&self, wall: Wall, what: impl Into<String>, grant: Option<String>) {
        let what = at_most(&what.into(), TOLD);
        // A line that is cut allows something else, or nothing.
        let grant = grant.filter(|line| line.len() <= TOLD);
        self.lock().record.deny(wall, what, grant);
    }

    /// Something leaves; says where it stands in the record.
    pub(crate) fn begin(&self, exchange: Exchange) -> usize {
        let exchanges = &mut self.lock().record.exchanges;
        exchanges.push(exchange);
        exchanges.len() - 1
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

    /// Takes what was recorded so far.
    pub(crate) fn take(&self) -> Record {
        std::mem::take(&mut self.lock().record)
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
