//! The words of Checkrein as types, and the ports between its crates.
//!
//! This crate holds no behaviour beyond parsing and checking its own words: no async runtime, no
//! wasmtime, no SQL, no HTTP. `store`, `sandbox` and `harness` depend on it and not on one
//! another; `cli` ties them together.
//!
//! Reading order:
//!
//! * [`digest`], [`id`]: how things are named.
//! * [`interface`]: the records of the WIT package, as Rust types.
//! * [`problem`]: the one shape for what is wrong ([`problem::Problem`]), and for what stops a
//!   start ([`problem::Fault`]).
//! * [`limits`]: every limit of a call, its key, its default.
//! * [`network`], [`grant`]: what a component may reach; [`record`]: what it did there.
//! * [`document`]: a TOML reader that reports all mistakes at once.
//! * [`manifest`], [`cases`], [`section`]: what a component carries with it.
//! * [`task`]: what a user asks for.
//! * [`text`]: text of strangers, fit to be shown.
//! * [`event`]: the event log, the only truth about a run.
//! * [`port`]: what the harness needs from the sandbox and the store.

pub mod ask;
pub mod cases;
pub mod digest;
pub mod document;
pub mod event;
pub mod grant;
pub mod id;
pub mod interface;
pub mod limits;
pub mod manifest;
pub mod network;
pub mod port;
pub mod problem;
pub mod record;
pub mod section;
pub mod task;
pub mod text;
pub mod units;

pub use digest::Digest;
pub use problem::{Fault, Problem};
