//! One invocation: a fresh store and instance, its limits, its clocks, and what it used on
//! whatever way it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_contract::grant::Clock;
use checkrein_contract::interface::{Failure, Outcome};
use checkrein_contract::limits::{LimitKey, Limits, Used};
use checkrein_contract::port::{End, Execution, NoFacts, Ran, Setting, StorageError};
use checkrein_contract::record::{Record, Wall};
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, Store, UpdateDeadline};

use crate::accept::{Acceptor, Refused};
use crate::clock::GuestClock;
use crate::component::Component;
use crate::ending::{Bad, classify};
use crate::files::{Files, Mount, NotMounted, mounts};
use crate::folders::Folders;
use crate::limiter::Limiter;
use crate::logbook::LogBook;
use crate::meter::{Meter, Metered};
use crate::net::wasi_http::Outgoing;
use crate::net::{Clear, Closed, Gate, Pass, Replay, Scrubber};
use crate::parts::{Execute, Part, Reach};
use crate::recorder::Recorder;
use crate::sandbox::Host;
use crate::scratch::Written;
use crate::state::{Counter, State};
use crate::wasi::context;
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
    let own = match Own::prepare(host, &setting).await {
        Ok(own) => own,
        Err(why) => return not_mounted(why),
    };
    let limits = setting.limits.clone();
    let ran = enter(host, component, setting, part, Some(&own)).await;
    drop(turn);
    collect(host, Arc::clone(component), limits, ran, own.work).await
}

/// What an executor has of its own, beside what every part may see.
pub(crate) struct Own {
    work: Written,
    folders: Folders,
}

impl Own {
    /// An empty `/work`, and the granted folders.
    pub(crate) async fn prepare(host: &Host, setting: &Setting) -> Result<Self, NotMounted> {
        let work = work::create(&host.scratch)?;
        Ok(Own { work, folders: Folders::of(host, setting).await? })
    }
}

/// A result for a call that did not get its folders.
fn not_mounted<T>(why: NotMounted) -> Ran<T> {
    match why {
        NotMounted::Storage(error) => unstored(error),
        NotMounted::Granted(why) => faulted(why),
        NotMounted::Lost(why) => faulted(format!("the host lost the folders of this call: {why}")),
    }
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
pub(crate) async fn take_turn<'a>(turns: &'a Semaphore, places: &'a Semaphore) -> Turn<'a> {
    // Neither semaphore is ever closed, so both permits are there.
    let own = turns.acquire().await.ok();
    Turn { _place: places.acquire().await.ok(), _own: own }
}

/// The right to run, given back when it is dropped.
pub(crate) struct Turn<'a> {
    _place: Option<SemaphorePermit<'a>>,
    _own: Option<SemaphorePermit<'a>>,
}

async fn enter<P: Part>(
    host: &Host,
    component: &Component,
    setting: Setting,
    part: P,
    own: Option<&Own>,
) -> Ran<P::Answer> {
    let log = LogBook::new(setting.limits.get(LimitKey::Log));
    let meter = Meter::start(&setting.limits);
    let state = match state::<P>(host, &setting, &log, own, meter.deadline()) {
        Ok(state) => state,
        Err(error) => return unstored(error),
    };
    let mut store = match store(host, state, &setting.limits, &meter) {
        Ok(store) => store,
        Err(error) => return faulted(format!("{error:#}")),
    };
    let call = Metered::new(Arc::clone(&meter), part.call(component, &mut store));
    let deadline = host.at(meter.deadline());
    let result = tokio::select! {
        biased;
        result = call => result,
        () = deadline => Err(meter.wall_hit().into()),
    };
    // The store still lives, and so do the requests that the guest did not wait for: from here on
    // none of them leaves.
    let recorder = &store.data().recorder;
    let record = recorder.take();
    let failed = recorder.failed();
    let used = used(&store, &setting.limits, &meter, &record);
    let scrubber = Arc::clone(&store.data().scrubber);
    let acceptor = Acceptor {
        component: &component.manifest.name,
        limits: &setting.limits,
        scrubber: Arc::clone(&scrubber),
    };
    let end = match result {
        Ok(raw) => P::accept(&acceptor, raw).map_or_else(refused, End::Returned),
        Err(error) => match classify(&error, &setting.limits, &store.data().limiter) {
            Bad::Limited(hit) => End::Limited(hit),
            Bad::Trapped(message) => End::Trapped(scrubber.string(message)),
            Bad::Fault(message) => End::Fault(message),
        },
    };
    let end = failed.map_or(end, End::Storage);
    Ran { end, used, log: scrubber.string(log.text()), record }
}

fn refused<T>(refused: Refused) -> End<T> {
    match refused {
        Refused::Limit(stop) => End::Limited(stop.0),
        Refused::Problem(problem) => End::Invalid(*problem),
    }
}

/// What stands between one call and the network.
pub(crate) fn gate_for(
    host: &Host,
    setting: &Setting,
    deadline: Instant,
    recorder: Recorder,
) -> Arc<dyn Gate> {
    if host.dry {
        return Arc::new(Closed(recorder));
    }
    let Setting { granted, limits, .. } = setting;
    let blobs = Arc::clone(&host.blobs);
    let pass = Pass { granted, limits, deadline, clear: Clear::ByRule, recorder, blobs };
    match &setting.recorded {
        Some(record) => Arc::new(Replay::open(pass, Arc::clone(record))),
        None => host.way_out.gate(pass),
    }
}

/// What scrubs the secrets of a call. One that is executed again sends none, and what came back was
/// scrubbed when it was recorded.
pub(crate) fn scrubber_for(host: &Host, setting: &Setting) -> Arc<Scrubber> {
    match &setting.recorded {
        Some(_) => Arc::default(),
        None => host.way_out.scrubber(&setting.granted),
    }
}

fn state<P: Part>(
    host: &Host,
    setting: &Setting,
    log: &LogBook,
    own: Option<&Own>,
    deadline: Instant,
) -> Result<State, StorageError> {
    let recorder = Recorder::default();
    let granted = own.map_or(&[][..], |own| {
        recorder.saw(own.folders.seen.clone());
        own.folders.unlike.iter().for_each(|why| recorder.deny(Wall::File, why.clone(), None));
        &own.folders.mounts
    });
    let mounts = mounts(P::REACH, setting, own.map(|own| own.work.path()), granted)?;
    if host.dry {
        only_readable(P::REACH, &mounts)?;
    }
    let clock = if P::REACH == Reach::Nothing { Clock::Virtual } else { setting.granted.clock };
    let limits = &setting.limits;
    let (gate, scrubber) = match P::REACH {
        Reach::Nothing => (Arc::new(Closed(recorder.clone())) as Arc<dyn Gate>, Arc::default()),
        Reach::OwnWork | Reach::GivenWork => {
            (gate_for(host, setting, deadline, recorder.clone()), scrubber_for(host, setting))
        }
    };
    let mut table = ResourceTable::new();
    table.set_max_capacity(count(limits, LimitKey::Handles));
    Ok(State {
        wasi: context(setting, clock, log),
        table,
        clock: match clock {
            Clock::Virtual => GuestClock::default(),
            Clock::Real => GuestClock::Real(Instant::now()),
        },
        files: Files::new(mounts, limits, recorder.clone()),
        limiter: Limiter::new(limits),
        log: log.clone(),
        outgoing: Outgoing::new(Arc::clone(&gate), limits, recorder.clone()),
        wasi_http: Outgoing::context(limits),
        gate,
        scrubber,
        recorder,
        facts: if P::REACH == Reach::Nothing { Arc::new(NoFacts) } else { Arc::clone(&setting.facts) },
        observer: Arc::clone(&setting.observer),
        host_calls: Counter::new(LimitKey::HostCalls, limits),
        wasi_calls: Counter::new(LimitKey::WasiCalls, limits),
    })
}

/// In a dry run the one folder that is written in is the `/work` of an executor whose cases are
/// played when it loads.
pub(crate) fn only_readable(reach: Reach, mounts: &[Mount]) -> Result<(), StorageError> {
    let own = |mount: &Mount| reach == Reach::OwnWork && mount.name() == "/work";
    match mounts.iter().find(|mount| mount.is_writable() && !own(mount)) {
        None => Ok(()),
        Some(mount) => {
            let detail = "nothing is written in a dry run".to_owned();
            Err(StorageError::NotWritable { place: mount.name().to_owned(), detail })
        }
    }
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
    work: Written,
) -> Ran<Execution> {
    let Ran { end, used, log, record } = ran;
    let blobs = Arc::clone(&host.blobs);
    let stored = tokio::task::spawn_blocking(move || {
        let end = match end {
            End::Returned(result) => {
                let named = result.as_ref().map_or(&[][..], |outcome| &outcome.artifacts);
                let component = &component.manifest.name;
                let acceptor = Acceptor { component, limits: &limits, scrubber: Arc::default() };
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
        drop(work);
        end
    });
    let end =
        stored.await.unwrap_or_else(|error| End::Fault(format!("storing the artifacts failed: {error}")));
    Ran { end, used, log, record }
}

#[cfg(test)]
pub(crate) mod tests;
