//! From documents to one table: a field is a pattern, a cell is a quotation with its place.
//!
//! In reading order: [`skill`], the four parts; [`mod@find`], from documents to cells; [`report`],
//! from cells to facts and `table.csv`.

pub mod find;
pub mod report;
pub mod skill;
mod verify;

pub use skill::{Args, DocumentTable, Field};
