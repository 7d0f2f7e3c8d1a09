//! Write skills and verifiers for Checkrein in Rust.
//!
//! A skill is one type that implements [`Skill`] and is exported with [`export_skill!`]; a
//! verifier implements [`Verifier`] and is exported with [`export_verifier!`]. Everything else here
//! helps with the four parts: typed arguments, builders for what goes out, and what the host offers.
//!
//! In reading order:
//!
//! - [`skill`]: the two traits and their export macros;
//! - [`call`]: what comes in, calls, submissions and mishaps;
//! - [`outcome`], [`failure`], [`verdict`], [`advice`]: what goes out;
//! - [`files`], [`facts`], [`http`], [`log`], [`progress`]: what the host offers;
//! - `testing` (not on wasm): a world of folders to run a skill in natively, and its `cases.toml`.
//!
//! It decides nothing: what a skill may touch, which limits hold and what becomes a fact is the
//! host's matter. Compiled for the host, imports do nothing or fail, so that a skill's code can be
//! tested with plain `cargo test`.

pub mod advice;
mod bindings;
pub mod call;
mod convert;
pub mod facts;
pub mod failure;
pub mod files;
mod glue;
pub mod http;
pub mod log;
pub mod outcome;
pub mod place;
pub mod progress;
pub mod skill;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod verdict;

pub use advice::{Advice, Remedy};
pub use call::{Body, Call, Cause, LimitHit, Mishap, Performed, Statement, Subgoal, Submission};
pub use facts::{Fact, Level};
pub use failure::{Failure, FailureKind};
pub use outcome::{Artifact, DraftFact, Outcome};
pub use place::Place;
pub use skill::{Assessment, Skill, Verifier};
pub use verdict::{Check, Comparison, Finding, Severity, Verdict};

/// What most skills need, in one line.
pub mod prelude {
    pub use crate::{
        Advice, Call, Cause, Comparison, DraftFact, Failure, Finding, Mishap, Outcome, Place,
        Remedy, Skill, Subgoal, Submission, Verdict, Verifier, export_skill, export_verifier,
        facts, files, log, progress,
    };
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};
}

/// For the export macros only.
#[doc(hidden)]
pub mod macros {
    pub use crate::bindings::skill::__export_checkrein_skill;
    pub use crate::bindings::verifier::__export_checkrein_verifier;
    pub use crate::bindings::{skill as skill_bindings, verifier as verifier_bindings};
    pub use crate::glue::Exported;
}
