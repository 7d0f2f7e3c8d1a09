//! How a call that did not return ended: at a limit, by a trap, or by a fault of the host.

use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::{LimitKey, Limits};
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::{I32Exit, ResourceTableError};

use crate::engine::in_force;
use crate::limiter::Limiter;
use crate::stop::Stop;
use crate::text::{at_most, one_line};

/// Functions of the guest that a trap's message names.
const FRAMES: usize = 6;
/// Bytes of one name of the guest's that a message shows.
const NAME: usize = 100;
/// Bytes of what the engine says: it quotes names that a stranger chose.
const SAID: usize = 2_000;

/// A way to end without an answer.
#[derive(Debug)]
pub(crate) enum Bad {
    Limited(LimitHit),
    Trapped(String),
    Fault(String),
}

/// Tells the ways apart.
pub(crate) fn classify(error: &wasmtime::Error, limits: &Limits, limiter: &Limiter) -> Bad {
    if let Some(Stop(hit)) = error.downcast_ref() {
        return Bad::Limited(hit.clone());
    }
    if let Some(Stop(hit)) = of_engine(error, limits) {
        return Bad::Limited(hit);
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Bad::Fault(format!("no place left in the pool of instances: {error:#}"));
    }
    // A guest that is refused memory aborts, each language in its own way.
    if let Some(Stop(hit)) = limiter.refused().filter(|_| !matches!(error.downcast_ref(), Some(I32Exit(0)))) {
        return Bad::Limited(hit.clone());
    }
    Bad::Trapped(describe(error))
}

/// The limits that the engine enforces by itself.
fn of_engine(error: &wasmtime::Error, limits: &Limits) -> Option<Stop> {
    let full = |key| Stop::at(key, in_force(limits, key), in_force(limits, key));
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return Some(full(LimitKey::Fuel)),
        Some(Trap::StackOverflow) => return Some(full(LimitKey::Stack)),
        _ => {}
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return Some(full(LimitKey::Handles));
    }
    error.chain().find_map(|cause| of_text(&cause.to_string(), limits))
}

/// Some limits of the engine have no error type of their own. This is the one place that knows
/// their words; the tests of `invoke` hold each against the engine in use.
fn of_text(text: &str, limits: &Limits) -> Option<Stop> {
    let over = |key| Stop::at(key, in_force(limits, key), in_force(limits, key).saturating_add(1));
    if text.contains("fuel allocated for hostcalls has been exhausted") {
        return Some(over(LimitKey::Transfer));
    }
    if text.contains("store handle limit exceeded") {
        return Some(over(LimitKey::Handles));
    }
    if let Some(rest) = text.strip_prefix("requested len ") {
        let used = rest.split(' ').next()?.parse().ok()?;
        return Some(Stop::at(LimitKey::Random, in_force(limits, LimitKey::Random), used));
    }
    let (what, used) = text.strip_prefix("resource limit exceeded: ")?.split_once(" count too high at ")?;
    let key = match what {
        "instance" => LimitKey::Instances,
        "memory" => LimitKey::Memories,
        "table" => LimitKey::Tables,
        _ => return None,
    };
    Some(Stop::at(key, in_force(limits, key), used.parse().ok()?))
}

/// What happened and where in the guest, in one line; nothing of the host's stack.
pub(crate) fn describe(error: &wasmtime::Error) -> String {
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return format!("left through `exit({code})` instead of returning");
    }
    let what = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => causes(error),
    };
    let frames = error.downcast_ref::<WasmBacktrace>().map_or_else(Vec::new, |trace| {
        trace.frames().iter().take(FRAMES).filter_map(|frame| frame.func_name()).map(clean).collect()
    });
    if frames.is_empty() { what } else { format!("{what}, in `{}`", frames.join("` called by `")) }
}

/// The messages of an error that is no trap, without the backtrace that the engine puts around it.
fn causes(error: &wasmtime::Error) -> String {
    let texts: Vec<String> = error
        .chain()
        .map(ToString::to_string)
        .filter(|text| !text.starts_with("error while executing at wasm backtrace"))
        .map(|text| one_line(&text))
        .collect();
    at_most(&texts.join(": "), SAID)
}

/// A name that a stranger chose, fit for one line.
fn clean(name: &str) -> String {
    one_line(&name[..name.floor_char_boundary(NAME)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_quotes_is_bounded() {
        let error = wasmtime::Error::msg("x".repeat(100_000)).context("a\nb");
        let said = describe(&error);
        assert!(said.starts_with("a b: xxx") && said.len() < 2_100, "{}", said.len());
    }

    #[test]
    fn what_is_reported_is_what_the_engine_goes_by() {
        let limits = Limits::default().with(LimitKey::Tables, 1000).with(LimitKey::Stack, 7);
        let Stop(hit) = of_text("resource limit exceeded: table count too high at 33", &limits).unwrap();
        assert_eq!((hit.limit.as_str(), hit.allowed, hit.used), ("tables", 32, 33));
        let error = wasmtime::Error::from(Trap::StackOverflow);
        assert_eq!(of_engine(&error, &limits).unwrap().0.allowed, 1 << 20);
    }
}
