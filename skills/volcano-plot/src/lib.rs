//! Draws a volcano plot: how much each gene changes, and how surely.
//!
//! In reading order: [`skill`], the four parts; [`mod@table`], the file that comes in; [`plot`], what
//! is where, on [`scale`] and [`labels`]; [`svg`], how it looks; `verify`, what a reader of the
//! picture would read.

pub mod labels;
pub mod plot;
pub mod scale;
pub mod skill;
pub mod svg;
pub mod table;
mod verify;

pub use skill::{Args, VolcanoPlot};
