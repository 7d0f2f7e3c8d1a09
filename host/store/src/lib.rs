//! The event log and the blobs of Checkrein, on SQLite and the file system.
//!
//! This crate keeps bytes and their order, and can prove both. It does not know what a run is
//! for: no loop, no fact, no guest. It never repairs what it finds damaged.
//!
//! Reading order:
//!
//! * [`State`]: the state folder, `.checkrein/`, and what is in it.
//! * [`EventLog`]: appends to the log of one run ([`checkrein_contract::port::Log`]).
//! * [`RunSummary`], and the readers of [`State`]: what the log says of its runs.
//! * [`Verification`]: whether the log and its blobs are what was written.
//! * [`FileBlobs`]: files by their digest ([`checkrein_contract::port::Blobs`]).
//! * [`StoreError`]: what can go wrong.

mod blobs;
mod connection;
mod error;
mod log;
mod read;
mod rows;
mod scratch;
mod state;
mod verify;

#[cfg(test)]
mod tests;

pub use blobs::FileBlobs;
pub use connection::SCHEMA;
pub use error::StoreError;
pub use log::EventLog;
pub use read::RunSummary;
pub use state::{Options, State};
pub use verify::{BlobFault, BlobProblem, ChainFault, HeadCheck, Unknown, Verification};
