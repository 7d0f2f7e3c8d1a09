//! Memory and tables of a call, counted over all of its core instances.
//!
//! wasmtime's ready-made limiter counts each memory by itself, so a component with many would get
//! many times the limit.

use checkrein_contract::limits::{LimitKey, Limits};
use wasmtime::ResourceLimiter;

use crate::engine::in_force;
use crate::stop::Stop;

/// One thing that grows.
#[derive(Debug)]
struct Account {
    key: LimitKey,
    limit: u64,
    total: u64,
    peak: u64,
    /// The refusal since which nothing was granted.
    refused: Option<Stop>,
}

impl Account {
    fn new(key: LimitKey, limits: &Limits) -> Self {
        Account { key, limit: in_force(limits, key), total: 0, peak: 0, refused: None }
    }

    fn ask(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> bool {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The guest's own maximum: it would fail without us, and is no limit of ours.
            return false;
        }
        let more = desired.saturating_sub(current) as u64;
        let after = self.total.saturating_add(more);
        if after > self.limit {
            self.refused = Some(Stop::at(self.key, self.limit, after));
            return false;
        }
        (self.total, self.refused) = (after, None);
        self.peak = self.peak.max(after);
        true
    }
}

/// What a call holds, and what it was refused.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: Account,
    elements: Account,
    instances: usize,
    tables: usize,
    memories: usize,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let count = |key| usize::try_from(in_force(limits, key)).unwrap_or(usize::MAX);
        Limiter {
            memory: Account::new(LimitKey::Memory, limits),
            elements: Account::new(LimitKey::TableElements, limits),
            instances: count(LimitKey::Instances),
            tables: count(LimitKey::Tables),
            memories: count(LimitKey::Memories),
        }
    }

    /// Bytes of the peak of all memories together.
    pub(crate) fn peak(&self) -> u64 {
        self.memory.peak
    }

    /// A growth that was refused, if none of its kind was granted since: a call that ends badly
    /// after it ended because of it.
    pub(crate) fn refused(&self) -> Option<&Stop> {
        self.memory.refused.as_ref().or(self.elements.refused.as_ref())
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.memory.ask(current, desired, maximum))
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // What was granted stays counted. This is also called for a growth that nobody asked us
        // about, so a guest could have its count lowered by failing on purpose.
        tracing::debug!(error = %format!("{error:#}"), "a memory did not grow");
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.elements.ask(current, desired, maximum))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::debug!(error = %format!("{error:#}"), "a table did not grow");
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        self.memories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_summed_and_a_refusal_is_forgotten_by_a_grant() {
        let mut limiter = Limiter::new(&Limits::default().with(LimitKey::Memory, 100));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.refused().unwrap().0.used, 120);
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(limiter.refused().is_none());
        assert_eq!(limiter.peak(), 100);
    }

    #[test]
    fn no_table_is_granted_beyond_what_the_engine_holds() {
        let mut limiter = Limiter::new(&Limits::default().with(LimitKey::TableElements, 1_000_000));
        assert!(limiter.table_growing(0, 100_000, None).unwrap());
        assert!(!limiter.table_growing(0, 1, None).unwrap());
        let hit = &limiter.refused().unwrap().0;
        assert_eq!((hit.limit.as_str(), hit.allowed), ("table-elements", 100_000));
    }

    #[test]
    fn failing_on_purpose_lowers_no_count() {
        let mut limiter = Limiter::new(&Limits::default().with(LimitKey::Memory, 100));
        assert!(limiter.memory_growing(0, 100, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("past the type")).unwrap();
        assert!(!limiter.memory_growing(0, 1, None).unwrap());
    }

    #[test]
    fn a_guests_own_maximum_is_no_limit_of_ours() {
        let mut limiter = Limiter::new(&Limits::default());
        assert!(!limiter.memory_growing(0, 60, Some(50)).unwrap());
        assert!(limiter.refused().is_none());
    }
}
