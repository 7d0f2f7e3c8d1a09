//! The event log and the blobs of Checkrein, on SQLite and the file system.
//!
//! This crate keeps bytes and their order, and can prove both. It does not know what a run is
//! for: no loop, no fact, no guest. It never repairs what it finds damaged.
//!
//! Reading order:
//!
//! * [`State`]: the state folder, `.checkrein/`, and what is in it.
//! * [`EventLog`]: the right to drive one run, and its log ([`checkrein_contract::port::Log`]).
//! * [`Driving`]: who has that right.
//! * [`RunSummary`], and the readers of [`State`]: what the log says of its runs.
//! * [`Kept`]: the snapshot of a run, a cache of what its events fold to.
//! * [`Verification`]: whether the log and its blobs are what was written.
//! * [`Exported`], [`Imported`]: a run as one file.
//! * [`FileBlobs`]: files by their digest ([`checkrein_contract::port::Blobs`]).
//! * [`StoreError`]: what can go wrong.

mod archive;
mod blobs;
mod chain;
mod chained;
mod connection;
mod error;
mod failpoint;
mod inbox;
mod lease;
mod log;
mod migrate;
mod process;
mod read;
mod rows;
mod scratch;
mod snapshot;
mod state;
mod verify;

#[cfg(test)]
mod tests;

pub use archive::{Exported, Imported};
pub use blobs::FileBlobs;
pub use chain::ChainFault;
pub use error::StoreError;
pub use lease::Driving;
pub use log::EventLog;
pub use migrate::SCHEMA;
pub use read::RunSummary;
pub use snapshot::Kept;
pub use state::{Options, State};
pub use verify::{BlobFault, BlobProblem, HeadCheck, Unknown, Verification};
