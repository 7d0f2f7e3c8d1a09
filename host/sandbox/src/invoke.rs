//! One invocation: a fresh store and instance, its limits, its clocks, and what it used on
//! whatever way it ends.

use std::sync::Arc;
use std::time::Duration;

use checkrein_contract::interface::{Failure, Outcome};
use checkrein_contract::limits::{LimitKey, Limits, Used};
use checkrein_contract::port::{End, Execution, NoFacts, Ran, Setting, StorageError};
use checkrein_contract::record::Record;
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, Store, UpdateDeadline};
use wasmtime_wasi::FsPerms;

use crate::accept::{Acceptor, Refused};
use crate::clock::SleptClock;
use crate::component::Component;
use crate::ending::{Bad, classify};
use crate::limiter::Limiter;
use crate::logbook::LogBook;
use crate::meter::{Meter, Metered};
use crate::net::Closed;
use crate::parts::{Execute, Part, Reach};
use crate::recorder::Recorder;
use crate::sandbox::Host;
use crate::state::{Counter, State};
use crate::wasi::{Folders, context};
use crate::work::{self, NotStored};

/// Fuel after which a computing guest lets others run, and to which fuel is exact when a call is
/// cut off in the midst of computing.
const YIELD_INTERVAL: u64 = 1_000_000;

/// Runs a part that leaves no files.
pub(crate) async fn run<P: Part>(
    host: &Host,
    component: &Component,
    setting: Setting,
    part: P,
) -> Ran<P::Answer> {
    debug_assert_ne!(P::REACH, Reach::OwnWork, "an executor's `/work` must be cleared away");
    let _turn = take_turn(&component.turns, &host.places).await;
    enter(host, component, setting, part, None).await
}

/// Runs an executor, stores the files that its outcome names, and removes its `/work`.
pub(crate) async fn execute(
    host: &Host,
    component: &Arc<Component>,
    setting: Setting,
    part: Execute,
) -> Ran<Execution> {
    let turn = take_turn(&component.turns, &host.places).await;
    let work = match work::create(&host.scratch) {
        Ok(work) => work,
        Err(error) => return unstored(error),
    };
    let limits = setting.limits.clone();
    let ran = enter(host, component, setting, part, Some(&work)).await;
    drop(turn);
    collect(host, Arc::clone(component), limits, ran, work).await
}

/// A result for a call that the host could not run.
pub(crate) fn faulted<T>(why: impl Into<String>) -> Ran<T> {
    Ran { end: End::Fault(why.into()), used: Used::default(), log: String::new(), record: Record::default() }
}

/// A result for a call for which the disk failed.
fn unstored<T>(error: StorageError) -> Ran<T> {
    Ran { end: End::Storage(error), used: Used::default(), log: String::new(), record: Record::default() }
}

/// Waits for a place: first the component's own, so that those who wait for it hold none of all.
/// Both queues are fair.
async fn take_turn<'a>(turns: &'a Semaphore, places: &'a Semaphore) -> Turn<'a> {
    // Neither semaphore is ever closed, so both permits are there.
    let own = turns.acquire().await.ok();
    Turn { _place: places.acquire().await.ok(), _own: own }
}

/// The right to run, given back when it is dropped.
struct Turn<'a> {
    _place: Option<SemaphorePermit<'a>>,
    _own: Option<SemaphorePermit<'a>>,
}

async fn enter<P: Part>(
    host: &Host,
    component: &Component,
    setting: Setting,
    part: P,
    work: Option<&TempDir>,
) -> Ran<P::Answer> {
    let log = LogBook::new(setting.limits.get(LimitKey::Log));
    let state = match state::<P>(&setting, &log, work) {
        Ok(state) => state,
        Err(error) => return unstored(error),
    };
    let meter = Meter::start(&setting.limits);
    let mut store = match store(host, state, &setting.limits, &meter) {
        Ok(store) => store,
        Err(error) => return faulted(format!("{error:#}")),
    };
    let call = Metered::new(Arc::clone(&meter), part.call(component, &mut store));
    let result = match tokio::time::timeout_at(meter.deadline().into(), call).await {
        Ok(result) => result,
        Err(_) => Err(meter.wall_hit().into()),
    };
    let record = store.data().recorder.take();
    let used = used(&store, &setting.limits, &meter, &record);
    let acceptor = Acceptor { component: &component.manifest.name, limits: &setting.limits };
    let end = match result {
        Ok(raw) => P::accept(&acceptor, raw).map_or_else(refused, End::Returned),
        Err(error) => match classify(&error, &setting.limits, &store.data().limiter) {
            Bad::Limited(hit) => End::Limited(hit),
            Bad::Trapped(message) => End::Trapped(message),
            Bad::Fault(message) => End::Fault(message),
        },
    };
    Ran { end, used, log: log.text(), record }
}

fn refused<T>(refused: Refused) -> End<T> {
    match refused {
        Refused::Limit(stop) => End::Limited(stop.0),
        Refused::Problem(problem) => End::Invalid(*problem),
    }
}

fn state<P: Part>(setting: &Setting, log: &LogBook, own: Option<&TempDir>) -> Result<State, StorageError> {
    let mut folders = Folders::default();
    if P::REACH != Reach::Nothing {
        folders.input = setting.input.as_deref();
        folders.artifacts = setting.artifacts.as_deref();
        folders.work = match P::REACH {
            Reach::OwnWork => own.map(|work| (work.path(), FsPerms::ReadWrite)),
            Reach::GivenWork | Reach::Nothing => {
                setting.work.as_deref().map(|path| (path, FsPerms::ReadOnly))
            }
        };
    }
    let limits = &setting.limits;
    let recorder = Recorder::default();
    let mut table = ResourceTable::new();
    table.set_max_capacity(count(limits, LimitKey::Handles));
    Ok(State {
        wasi: context(&folders, setting, log)?,
        table,
        clock: SleptClock::default(),
        limiter: Limiter::new(limits),
        log: log.clone(),
        gate: Arc::new(Closed(recorder.clone())),
        recorder,
        facts: if P::REACH == Reach::Nothing { Arc::new(NoFacts) } else { Arc::clone(&setting.facts) },
        observer: Arc::clone(&setting.observer),
        host_calls: Counter::new(LimitKey::HostCalls, limits),
        wasi_calls: Counter::new(LimitKey::WasiCalls, limits),
    })
}

fn store(host: &Host, state: State, limits: &Limits, meter: &Arc<Meter>) -> wasmtime::Result<Store<State>> {
    let mut store = Store::try_new(&host.engine, state)?;
    store.limiter(|state| &mut state.limiter);
    store.set_fuel(limits.get(LimitKey::Fuel))?;
    store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
    store.set_hostcall_fuel(count(limits, LimitKey::Transfer));
    store.set_max_component_handles(count(limits, LimitKey::Handles));
    // The only counter that sees every call of WASI. It also sees our own imports and the
    // engine's helpers (growth, yields), which the limit leaves room for.
    store.call_hook(|mut context, hook| {
        if matches!(hook, CallHook::CallingHost) {
            context.data_mut().wasi_calls.count()?;
        }
        Ok(())
    });
    store.set_epoch_deadline(1);
    let meter = Arc::clone(meter);
    store.epoch_deadline_callback(move |_| match meter.exceeded() {
        Some(stop) => Err(stop.into()),
        None => Ok(UpdateDeadline::Continue(1)),
    });
    Ok(store)
}

fn count(limits: &Limits, key: LimitKey) -> usize {
    usize::try_from(limits.get(key)).unwrap_or(usize::MAX)
}

fn used(store: &Store<State>, limits: &Limits, meter: &Meter, record: &Record) -> Used {
    let left = store.get_fuel().unwrap_or(0);
    let state = store.data();
    Used {
        fuel: limits.get(LimitKey::Fuel).saturating_sub(left),
        cpu_ms: millis(meter.cpu()),
        wall_ms: millis(meter.wall()),
        memory_bytes: state.limiter.peak(),
        host_calls: state.host_calls.total(),
        // Both are counted where the engine leaves the guest.
        wasi_calls: state.wasi_calls.total().saturating_sub(state.host_calls.total()),
        http_calls: record.exchanges.len() as u64,
        http_in_bytes: record.exchanges.iter().map(|exchange| exchange.body_bytes).sum(),
        http_out_bytes: record.exchanges.iter().map(|exchange| exchange.sent_bytes).sum(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Stores what the outcome names. Reading files blocks, so it has a thread of its own; it is the
/// host's work and not on the call's budget.
async fn collect(
    host: &Host,
    component: Arc<Component>,
    limits: Limits,
    ran: Ran<Result<Outcome, Failure>>,
    work: TempDir,
) -> Ran<Execution> {
    let Ran { end, used, log, record } = ran;
    let blobs = Arc::clone(&host.blobs);
    let stored = tokio::task::spawn_blocking(move || {
        let end = match end {
            End::Returned(result) => {
                let named = result.as_ref().map_or(&[][..], |outcome| &outcome.artifacts);
                let acceptor = Acceptor { component: &component.manifest.name, limits: &limits };
                match work::store(work.path(), named, &acceptor, &*blobs) {
                    Ok(artifacts) => End::Returned(Execution { result, artifacts }),
                    Err(NotStored::Refused(why)) => refused(why),
                    Err(NotStored::Storage(error)) => End::Storage(error),
                }
            }
            End::Limited(hit) => End::Limited(hit),
            End::Trapped(message) => End::Trapped(message),
            End::Invalid(problem) => End::Invalid(problem),
            End::Storage(error) => End::Storage(error),
            End::Fault(message) => End::Fault(message),
        };
        work::remove(work);
        end
    });
    let end =
        stored.await.unwrap_or_else(|error| End::Fault(format!("storing the artifacts failed: {error}")));
    Ran { end, used, log, record }
}

#[cfg(test)]
mod tests;
