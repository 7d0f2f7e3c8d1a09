//! Log lines, kept with the call's trace. Natively they go nowhere.

/// For whoever writes the skill.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// What happened.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// What a person may want to look at.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// What went wrong.
pub fn error(message: &str) {
    write(Level::Error, message);
}

#[cfg(target_family = "wasm")]
use crate::bindings::skill::checkrein::skill::log::{Level, write};

#[cfg(not(target_family = "wasm"))]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[cfg(not(target_family = "wasm"))]
fn write(_: Level, _: &str) {}
