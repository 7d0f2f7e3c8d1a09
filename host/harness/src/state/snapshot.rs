//! A snapshot: a state as bytes. It is a cache of the fold, never the truth.

use serde::{Deserialize, Serialize};

use super::State;

/// The format of a snapshot: this word, and the version of the crate, whose every release may fold
/// otherwise. A snapshot of another format is not read, which only costs time.
const FORMAT: &str = concat!("checkrein-state@2/", env!("CARGO_PKG_VERSION"));

#[derive(Serialize)]
struct Written<'s> {
    format: &'static str,
    state: &'s State,
}

#[derive(Deserialize)]
struct Read {
    format: String,
    state: State,
}

impl State {
    /// The state as bytes; empty if it cannot be written, which no state is.
    pub fn snapshot(&self) -> Vec<u8> {
        serde_json::to_vec(&Written { format: FORMAT, state: self }).unwrap_or_default()
    }

    /// The state in these bytes; `None` if they are of another format, or none.
    pub fn of_snapshot(bytes: &[u8]) -> Option<Self> {
        let read: Read = serde_json::from_slice(bytes).ok()?;
        (read.format == FORMAT).then_some(read.state)
    }
}
