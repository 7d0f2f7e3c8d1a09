//! What a store holds for one call: everything that a guest can reach, and the counts of it.

use std::sync::Arc;

use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::port::{FactSource, Observer};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::clock::{ClockView, GuestClock};
use crate::files::{Files, FilesView};
use crate::limiter::Limiter;
use crate::logbook::LogBook;
use crate::net::wasi_http::Outgoing;
use crate::net::{Gate, Scrubber};
use crate::recorder::Recorder;
use crate::stop::Stop;

/// The data of one call's store.
pub(crate) struct State {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) clock: GuestClock,
    pub(crate) files: Files,
    pub(crate) limiter: Limiter,
    pub(crate) log: LogBook,
    pub(crate) recorder: Recorder,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) wasi_http: WasiHttpCtx,
    pub(crate) outgoing: Outgoing,
    pub(crate) facts: Arc<dyn FactSource>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) host_calls: Counter,
    pub(crate) wasi_calls: Counter,
}

/// Something that is counted and ends the call when there is too much of it.
#[derive(Debug)]
pub(crate) struct Counter {
    key: LimitKey,
    limit: u64,
    count: u64,
}

impl Counter {
    pub(crate) fn new(key: LimitKey, limits: &Limits) -> Self {
        Counter { key, limit: limits.get(key), count: 0 }
    }

    /// Counts one more.
    pub(crate) fn count(&mut self) -> Result<(), Stop> {
        self.count += 1;
        if self.count > self.limit { Err(Stop::at(self.key, self.limit, self.count)) } else { Ok(()) }
    }

    /// How many there were.
    pub(crate) fn total(&self) -> u64 {
        self.count
    }
}

impl State {
    /// What the clock's host functions work on.
    pub(crate) fn clock(&mut self) -> ClockView<'_> {
        ClockView { clock: &self.clock, table: &mut self.table }
    }

    /// What the host functions for files work on.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView { files: &mut self.files, table: &mut self.table }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.outgoing, table: &mut self.table, ctx: &mut self.wasi_http }
    }
}
