//! Recomputes published statistics from the inputs, with code of its own.
//!
//! It shares nothing with the skills that it judges but the interface: another reader of tables,
//! other formulas where there are two, p-values by numerical integration instead of a continued
//! fraction. A mistake would have to be made twice to pass.
//!
//! In reading order: [`verifier`], what is judged by what; [`expression`] with [`mod@judge_expression`],
//! everything under `de/*`; [`profile`] with `judge_profile`, everything under `profile/*`;
//! [`whole`], [`student`], [`gamma`] and [`quadrature`], the numerics; [`csv`], the reader; [`closeness`], how
//! close it came.

pub mod closeness;
pub mod csv;
pub mod expression;
pub mod gamma;
mod judge_expression;
mod judge_profile;
pub mod profile;
pub mod quadrature;
pub mod student;
pub mod verifier;
pub mod whole;

pub use verifier::StatisticsRecheck;
