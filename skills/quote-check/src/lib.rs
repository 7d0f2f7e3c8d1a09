//! Reads each quotation again where it is said to stand, and searches again for what is said to be
//! missing.
//!
//! In reading order: [`verifier`], what is judged; `cell`, one fact; `table`, the artifact.

mod cell;
mod table;
pub mod verifier;

pub use verifier::QuoteCheck;
