//! What a call did at its walls, as it happens: shared by everything that stands in its way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkrein_contract::record::{Exchange, Record, Wall};

/// The record of one call. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Record>>);

impl Recorder {
    /// Something was turned down; `grant` is the line that would allow it.
    pub(crate) fn deny(&self, wall: Wall, what: impl Into<String>, grant: Option<String>) {
        self.lock().deny(wall, what.into(), grant);
    }

    /// Something left.
    pub(crate) fn exchange(&self, exchange: Exchange) {
        self.lock().exchanges.push(exchange);
    }

    /// Takes what was recorded so far.
    pub(crate) fn take(&self) -> Record {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
