//! The host's side of `checkrein:skill`: log, progress, http, facts. Every call of one is counted.

use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};

use crate::bindings::{facts, http, log, progress, skill, types};
use crate::convert::fact_to_guest;
use crate::net::{NoAnswer, Request};
use crate::state::State;

/// Bytes of a line that observers are told; the log keeps more.
const SHOWN: usize = 8 << 10;

/// Adds what a dry run links: nothing that changes anything outside, and nothing that leaves. Files
/// can be read, as far as a call is given any; the `http` import, `wasi:http` and sockets are not
/// there at all.
pub(crate) fn add_without_effects(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
    use wasmtime_wasi::p2::bindings::{cli, random};
    use wasmtime_wasi::random::{WasiRandom, WasiRandomView as _};
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<State, WasiRandom>(linker, State::random)?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(linker, State::random)?;
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

/// Adds the four interfaces, WASI 0.2 with `wasi:http`, and what this host has in the stead of
/// wasmtime-wasi's: the clock, the file gate, and sockets that do not open.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    crate::clock::add_to_linker(linker)?;
    crate::net::sockets::add_to_linker(linker)?;
    crate::files::add_to_linker(linker)?;
    skill::Skill::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
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
