//! Reads the two tables, and says row and column of what is wrong.

mod annotation;
mod counts;
mod lines;

pub use annotation::{Annotation, Sample};
pub use counts::Counts;
