//! The host's side of `checkrein:skill`: log, progress, http, facts. Every call of one is counted.

use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::p2::bindings::{cli, random, sockets};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView as _};

use crate::bindings::{facts, http, log, progress, types};
use crate::convert::fact_to_guest;
use crate::net::{NoAnswer, Request};
use crate::state::State;

/// Bytes of a line that observers are told; the log keeps more.
const SHOWN: usize = 8 << 10;

/// The interfaces by which something can leave, and all that belongs to them; those of WASI by the
/// beginning of their names.
const EFFECTS: [&str; 3] = ["checkrein:skill/http@", "wasi:http/", "wasi:sockets/"];

/// Whether an import of this name is one by which something can leave.
pub(crate) fn has_effect(name: &str) -> bool {
    EFFECTS.iter().any(|interface| name.starts_with(interface))
}

/// Adds all that a component can import.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    add_inert(linker)?;
    add_effects(linker)
}

/// Adds what has no effect beyond the call: log, progress, facts, and WASI 0.2 without network, with
/// this host's clock and file gate in the stead of wasmtime-wasi's. A file can be written where a
/// folder is writable; which ones are is the call's.
pub(crate) fn add_inert(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // Streams, clocks, random numbers, and the standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<State, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(linker, State::cli)?;
    crate::clock::add_to_linker(linker)?;
    crate::files::add_to_linker(linker)?;
    types::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    log::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    progress::add_to_linker::<State, HasSelf<State>>(linker, |state| state)?;
    facts::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

/// Adds the ways out: `http` and `wasi:http`, which pass the gate, and sockets that do not open.
fn add_effects(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    sockets::tcp::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
    sockets::udp::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
    sockets::instance_network::add_to_linker::<State, WasiSockets>(linker, State::sockets)?;
    let options = sockets::network::LinkOptions::default();
    sockets::network::add_to_linker::<State, WasiSockets>(linker, &options, State::sockets)?;
    crate::net::sockets::add_to_linker(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    http::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

impl types::Host for State {}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.host_calls.count()?;
        let level = match level {
            log::Level::Debug => "debug",
            log::Level::Info => "info",
            log::Level::Warn => "warn",
            log::Level::Error => "error",
        };
        let message = self.scrubber.string(message);
        self.log.line(level, &message);
        self.observer.log(level, shown(&message));
        Ok(())
    }
}

impl progress::Host for State {
    async fn report(&mut self, done: u32, total: u32, message: String) -> wasmtime::Result<()> {
        self.host_calls.count()?;
        let message = shown(&self.scrubber.text(&message)).to_owned();
        self.observer.progress(done, total, message).await;
        Ok(())
    }
}

impl http::Host for State {
    async fn fetch(
        &mut self,
        request: http::Request,
    ) -> wasmtime::Result<Result<http::Response, http::Error>> {
        self.host_calls.count()?;
        let request = Request {
            method: request.method,
            url: request.url,
            headers: request.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
            body: request.body.into(),
            timeout: request.timeout_ms.map(|ms| Duration::from_millis(ms.into())),
            follow: true,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match self.gate.fetch(request).await {
            Ok(response) => Ok(http::Response {
                url: response.url,
                status: response.status,
                headers: response.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
                body: response.body.into(),
            }),
            Err(NoAnswer::Denied(why)) => Err(http::Error::Denied(why)),
            Err(NoAnswer::TimedOut) => Err(http::Error::TimedOut),
            Err(NoAnswer::TooLarge(most)) => Err(http::Error::TooLarge(most)),
            Err(NoAnswer::Invalid(why)) => Err(http::Error::Invalid(why)),
            Err(NoAnswer::Transport(why)) => Err(http::Error::Transport(why)),
        })
    }
}

impl facts::Host for State {
    fn get(&mut self, id: String) -> wasmtime::Result<Option<types::Fact>> {
        self.host_calls.count()?;
        Ok(self.facts.get(&id).map(fact_to_guest))
    }

    fn find(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Vec<types::Fact>> {
        self.host_calls.count()?;
        let found = self.facts.find(&prefix, after.as_deref(), limit);
        Ok(found.into_iter().map(fact_to_guest).collect())
    }
}

/// The beginning of a text of a guest, cut at a character.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}
