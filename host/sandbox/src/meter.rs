//! Time: how long a call computed (`cpu`) and how long it took (`wall`).
//!
//! `cpu` is the thread's own time inside the poll of the call's future. Waiting in the host, in
//! the run queue, or for another process is not in it. Counting epoch ticks instead would charge
//! a tick for every wait. The [`Meter`] is shared between the future that measures and the epoch
//! callback that enforces both limits while the guest computes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::{LimitKey, Limits};
use rustix::time::{ClockId, clock_gettime};

use crate::stop::Stop;

/// Where a limit is so large that no clock can tell it: a year.
pub(crate) const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Marks that no poll is going on; a thread's time never is so large.
const IDLE: u64 = u64::MAX;

/// The two clocks of one call.
#[derive(Debug)]
pub(crate) struct Meter {
    started: Instant,
    cpu_limit: Duration,
    wall_limit: Duration,
    /// Nanoseconds of the polls that are over.
    spent: AtomicU64,
    /// The thread's time when the current poll began, or [`IDLE`].
    poll_began: AtomicU64,
}

impl Meter {
    /// Starts the wall clock.
    pub(crate) fn start(limits: &Limits) -> Arc<Self> {
        Arc::new(Meter {
            started: Instant::now(),
            cpu_limit: Duration::from_millis(limits.get(LimitKey::Cpu)),
            wall_limit: Duration::from_millis(limits.get(LimitKey::Wall)),
            spent: AtomicU64::new(0),
            poll_began: AtomicU64::new(IDLE),
        })
    }

    /// What was computed so far. Only exact on the thread that polls, and between polls.
    pub(crate) fn cpu(&self) -> Duration {
        let began = self.poll_began.load(Ordering::Relaxed);
        let current = if began == IDLE { 0 } else { thread_nanos().saturating_sub(began) };
        Duration::from_nanos(self.spent.load(Ordering::Relaxed) + current)
    }

    /// What has passed since the start.
    pub(crate) fn wall(&self) -> Duration {
        self.started.elapsed()
    }

    /// When the call must be over.
    pub(crate) fn deadline(&self) -> Instant {
        self.started.checked_add(self.wall_limit).unwrap_or(self.started + FAR)
    }

    /// The time limit that is used up, if one is.
    pub(crate) fn exceeded(&self) -> Option<Stop> {
        let (cpu, wall) = (self.cpu(), self.wall());
        if cpu > self.cpu_limit {
            return Some(hit(LimitKey::Cpu, self.cpu_limit, cpu));
        }
        (wall > self.wall_limit).then(|| self.wall_hit())
    }

    /// The wall limit, as hit now.
    pub(crate) fn wall_hit(&self) -> Stop {
        hit(LimitKey::Wall, self.wall_limit, self.wall())
    }

    fn enter(&self) {
        self.poll_began.store(thread_nanos(), Ordering::Relaxed);
    }

    fn leave(&self) {
        let began = self.poll_began.swap(IDLE, Ordering::Relaxed);
        self.spent.fetch_add(thread_nanos().saturating_sub(began), Ordering::Relaxed);
    }
}

fn hit(key: LimitKey, allowed: Duration, used: Duration) -> Stop {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Stop(LimitHit { limit: key.as_str().to_owned(), allowed: millis(allowed), used: millis(used) })
}

/// The time that this thread has computed, in nanoseconds.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A call's future, measured at every poll, and ended at the end of one if a limit is used up.
pub(crate) struct Metered<F> {
    inner: Pin<Box<F>>,
    meter: Arc<Meter>,
}

impl<F> Metered<F> {
    pub(crate) fn new(meter: Arc<Meter>, inner: F) -> Self {
        Metered { inner: Box::pin(inner), meter }
    }
}

impl<T, F: Future<Output = wasmtime::Result<T>>> Future for Metered<F> {
    type Output = wasmtime::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let meter = Arc::clone(&self.meter);
        meter.enter();
        let polled = self.inner.as_mut().poll(context);
        meter.leave();
        match (polled, meter.exceeded()) {
            (Poll::Pending, Some(stop)) => Poll::Ready(Err(stop.into())),
            (polled, _) => polled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_no_computing() {
        let meter = Meter::start(&Limits::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let waits = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            wasmtime::Result::Ok(())
        };
        runtime.unwrap().block_on(Metered::new(Arc::clone(&meter), waits)).unwrap();
        assert!(meter.wall() >= Duration::from_millis(20));
        assert!(meter.cpu() < Duration::from_millis(10), "{:?}", meter.cpu());
    }

    #[test]
    fn computing_past_the_limit_ends_it() {
        let meter = Meter::start(&Limits::default().with(LimitKey::Cpu, 3));
        let spin = std::future::poll_fn(|context| {
            let until = thread_nanos() + 1_000_000;
            while thread_nanos() < until {}
            context.waker().wake_by_ref();
            Poll::<wasmtime::Result<()>>::Pending
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(Metered::new(meter, spin)).unwrap_err();
        assert_eq!(error.downcast_ref::<Stop>().unwrap().0.limit, "cpu");
    }
}
