//! The engine: every setting of wasmtime that a wall or a digest depends on, in one place.

use std::io;
use std::time::Duration;

use checkrein_contract::limits::{LimitKey, Limits};
use wasmtime::{Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How many calls run at once, of all components together. The pool holds as many.
pub(crate) const CALLS_AT_ONCE: u32 = 64;
/// How many calls of one component run at once.
pub(crate) const CALLS_AT_ONCE_OF_ONE: u32 = 8;
/// How often the epoch moves: a call's time is looked at that often while it computes.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The most that a grant can raise a limit to; the pool is laid out for it (virtually).
pub(crate) mod ceiling {
    /// Bytes of one linear memory: all that 32 bits address.
    pub(crate) const MEMORY: usize = 1 << 32;
    /// Linear memories of one call.
    pub(crate) const MEMORIES: u32 = 8;
    /// Tables of one call.
    pub(crate) const TABLES: u32 = 32;
    /// Core instances of one call.
    pub(crate) const INSTANCES: u32 = 64;
    /// Elements of one table.
    pub(crate) const TABLE_ELEMENTS: usize = 100_000;
    /// Bytes of the guest's stack: fixed for the whole engine.
    pub(crate) const STACK: usize = 1 << 20;
}

/// The value of a limit that the engine goes by: a configured one, as far as its ceilings allow;
/// its stack is one for all.
pub(crate) fn in_force(limits: &Limits, key: LimitKey) -> u64 {
    let configured = limits.get(key);
    match key {
        LimitKey::Stack => ceiling::STACK as u64,
        LimitKey::Memories => configured.min(u64::from(ceiling::MEMORIES)),
        LimitKey::Tables => configured.min(u64::from(ceiling::TABLES)),
        LimitKey::Instances => configured.min(u64::from(ceiling::INSTANCES)),
        LimitKey::TableElements => configured.min(ceiling::TABLE_ELEMENTS as u64),
        _ => configured,
    }
}

/// Bytes of the stack that guest and host functions share; virtual, so it costs what is touched.
const ASYNC_STACK: usize = 4 << 20;
/// Bytes of a memory that stay mapped between two calls.
const KEEP_RESIDENT: usize = 128 << 10;
/// Bytes of a stack that stay mapped between two calls. The rest is given back: a guest that
/// recurses until it is stopped would else leave a megabyte behind in each stack of the pool.
const KEEP_OF_STACK: usize = 32 << 10;

/// Why the engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime refuses these settings on this machine.
    #[error("wasmtime cannot run here: {0}")]
    Refused(String),
    /// No thread for the clock of the epochs.
    #[error("no thread could be started for the sandbox's clock: {0}")]
    Thread(#[source] io::Error),
}

/// Makes the engine and starts its clock, and says how instances are allocated. Without room for a
/// pool (a small address space), instances are allocated one by one: slower, and as safe.
pub(crate) fn build() -> Result<(Engine, String), EngineError> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    let (engine, allocation) = match Engine::new(&config) {
        Ok(engine) => (engine, "pooled".to_owned()),
        Err(why) => {
            let why = format!("{why:#}");
            tracing::warn!(%why, "no room for a pool of instances; calls are slower to start");
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            let engine = Engine::new(&config).map_err(|error| EngineError::Refused(format!("{error:#}")))?;
            (engine, format!("on demand (no pool: {why})"))
        }
    };
    start_clock(engine.weak())?;
    Ok((engine, allocation))
}

/// An engine for a worker process: one call at a time needs no pool, and no page of `/proc`.
pub(crate) fn build_on_demand() -> Result<Engine, EngineError> {
    let engine = build_for_compiling()?;
    start_clock(engine.weak())?;
    Ok(engine)
}

/// An engine that runs nothing. Its code runs in every other: how instances are allocated is no
/// part of it.
pub(crate) fn build_for_compiling() -> Result<Engine, EngineError> {
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Engine::new(&config).map_err(|error| EngineError::Refused(format!("{error:#}")))
}

pub(crate) fn config() -> Config {
    let mut config = Config::new();
    // What stops a guest.
    config.consume_fuel(true).epoch_interruption(true);
    config.max_wasm_stack(ceiling::STACK).async_stack_size(ASYNC_STACK);
    config.async_stack_zeroing(true);
    // The concurrent scheduler keeps dropped calls in the store; without it, dropping ends them.
    config.concurrency_support(false);
    // What an outcome's digest depends on.
    config.cranelift_nan_canonicalization(true).relaxed_simd_deterministic(true);
    // What no language needs so far stays off: less to be wrong about.
    config.wasm_memory64(false).wasm_shared_everything_threads(false);
    config.wasm_wide_arithmetic(false).wasm_custom_page_sizes(false);
    config.shared_memory(false);
    config
}

pub(crate) fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(CALLS_AT_ONCE)
        .total_core_instances(CALLS_AT_ONCE * ceiling::INSTANCES)
        .total_memories(CALLS_AT_ONCE * ceiling::MEMORIES)
        .total_tables(CALLS_AT_ONCE * ceiling::TABLES)
        .total_stacks(CALLS_AT_ONCE)
        .max_core_instances_per_component(ceiling::INSTANCES)
        .max_memories_per_component(ceiling::MEMORIES)
        .max_tables_per_component(ceiling::TABLES)
        .max_memories_per_module(ceiling::MEMORIES)
        .max_tables_per_module(ceiling::TABLES)
        .table_elements(ceiling::TABLE_ELEMENTS)
        .max_memory_size(ceiling::MEMORY)
        .max_unused_warm_slots(CALLS_AT_ONCE)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT)
        .async_stack_keep_resident(KEEP_OF_STACK)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Moves the epoch until the engine is dropped.
fn start_clock(engine: EngineWeak) -> Result<(), EngineError> {
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    std::thread::Builder::new()
        .name("checkrein-epochs".to_owned())
        .spawn(tick)
        .map_err(EngineError::Thread)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_of_the_engine_is_not_lifted_by_configuration() {
        let value = |key, configured| in_force(&Limits::default().with(key, configured), key);
        assert_eq!(value(LimitKey::Stack, 16 << 20), 1 << 20);
        assert_eq!(value(LimitKey::Stack, 1), 1 << 20);
        assert_eq!((value(LimitKey::Tables, 1000), value(LimitKey::Tables, 3)), (32, 3));
        assert_eq!((value(LimitKey::Memories, 1000), value(LimitKey::Instances, 1000)), (8, 64));
        assert_eq!(
            (value(LimitKey::TableElements, 1_000_000), value(LimitKey::TableElements, 5)),
            (100_000, 5)
        );
        // What a grant can reach is what the engine holds.
        for key in LimitKey::ALL {
            let most = key.default_ceiling();
            assert_eq!(in_force(&Limits::default().with(*key, most), *key), most, "{key}");
        }
        for key in LimitKey::ALL {
            assert_eq!(in_force(&Limits::default(), *key), key.default_value(), "{key}");
        }
    }

    #[test]
    fn the_version_that_is_logged_is_the_one_in_use() {
        let manifest =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("wasmtime =")).unwrap();
        assert!(line.contains(&format!("\"={}\"", crate::WASMTIME)), "{line}");
    }

    #[test]
    fn the_pool_is_there_and_the_clock_ends_with_the_engine() {
        let (engine, allocation) = super::build().unwrap();
        assert_eq!(allocation, "pooled");
        let weak = engine.weak();
        drop(engine);
        // The clock holds the engine only for the moment of a tick.
        while weak.upgrade().is_some() {
            std::thread::yield_now();
        }
    }
}
