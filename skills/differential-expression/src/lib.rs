//! Tests each gene for differential expression between two groups of samples.
//!
//! In reading order: [`skill`], the four parts; [`mod@table`], the two files that come in; [`model`],
//! the method, on [`special`]; [`report`], the facts and `de.csv` that go out; `verify` and
//! `recover`.

pub mod model;
mod recover;
pub mod report;
pub mod skill;
pub mod special;
pub mod table;
mod verify;

pub use skill::{Args, DifferentialExpression};
