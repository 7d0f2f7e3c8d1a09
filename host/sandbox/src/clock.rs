//! The clocks that a guest sees: none of them is the machine's, unless a grant says so.
//!
//! The wall clock stands at the run's start. The monotonic clock starts at 0 and moves by what the
//! guest slept, so the same call sees the same times on every machine. Runtimes with timer heaps
//! need the second: on a clock that stands after a sleep they would wait for ever.
//!
//! With `clock = "real"` both are the machine's; the monotonic one starts with the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use checkrein_contract::id::Timestamp;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::HostWallClock;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::state::State;

/// The wall clock: it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandingClock(pub(crate) Timestamp);

impl HostWallClock for StandingClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.0)
    }
}

/// The monotonic clock of one call, in nanoseconds. Clones are the same clock.
#[derive(Clone, Debug)]
pub(crate) enum GuestClock {
    /// What the guest has slept; the sleeps move it.
    Slept(Arc<AtomicU64>),
    /// The machine's, since the call began.
    Real(Instant),
}

impl Default for GuestClock {
    fn default() -> Self {
        GuestClock::Slept(Arc::default())
    }
}

impl GuestClock {
    fn now(&self) -> u64 {
        match self {
            GuestClock::Slept(slept) => slept.load(Ordering::Relaxed),
            GuestClock::Real(began) => u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// What has slept until then tells it.
    fn move_to(&self, nanos: u64) {
        if let GuestClock::Slept(slept) = self {
            slept.fetch_max(nanos, Ordering::Relaxed);
        }
    }
}

/// What the host functions of the clock work on.
pub(crate) struct ClockView<'a> {
    pub(crate) clock: &'a GuestClock,
    pub(crate) table: &'a mut ResourceTable,
}

struct HasClock;

impl HasData for HasClock {
    type Data<'a> = ClockView<'a>;
}

/// Puts this clock in the place of wasmtime-wasi's, which sleeps on the machine's.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<State, HasClock>(linker, State::clock)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl ClockView<'_> {
    fn sleep_until(&mut self, target: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let duration = Duration::from_nanos(target.saturating_sub(self.clock.now()));
        let sleep = Sleep {
            // Too far to be told: it never comes, and the call's wall limit ends the wait.
            until: tokio::time::Instant::now().checked_add(duration),
            target,
            clock: self.clock.clone(),
            yielded: false,
        };
        let sleep = self.table.push(sleep)?;
        subscribe(self.table, sleep)
    }
}

impl monotonic_clock::Host for ClockView<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.clock.now())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.sleep_until(when)
    }

    fn subscribe_duration(&mut self, nanos: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let target = self.clock.now().saturating_add(nanos);
        self.sleep_until(target)
    }
}

struct Sleep {
    until: Option<tokio::time::Instant>,
    target: u64,
    clock: GuestClock,
    yielded: bool,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Sleep {
    async fn ready(&mut self) {
        match self.until {
            None => std::future::pending().await,
            Some(until) if until <= tokio::time::Instant::now() => {
                // A guest that polls in a loop with a zero timeout must not starve the others.
                if !std::mem::replace(&mut self.yielded, true) {
                    tokio::task::yield_now().await;
                }
            }
            Some(until) => tokio::time::sleep_until(until).await,
        }
        self.clock.move_to(self.target);
    }
}
