//! Says what is in a table: rows, columns, types, missing values, ranges, duplicates.
//!
//! In reading order: [`skill`], the four parts; [`dialect`] and [`reader`], from bytes to rows;
//! [`profile`], from rows to numbers; [`report`], from numbers to facts.

pub mod dialect;
pub mod profile;
pub mod reader;
pub mod report;
pub mod skill;
mod verify;

pub use skill::{Args, TableProfile};
