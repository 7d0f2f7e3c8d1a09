//! The two loops of Checkrein: a pure core, the gateway, and a thin driver.
//!
//! The core decides and folds, and reads nothing: no clock, no random source, no file, no network.
//! `step(&State, &Input) -> Vec<Event>` decides, [`State::apply`] folds, [`due()`] says what the
//! outside world owes. The [`driver`] appends the events, performs what is due, and feeds back
//! what happened.
//!
//! Reading order:
//!
//! * [`effect`]: what goes in and what is owed.
//! * [`state`]: what is known of a run; folded from its events and from nothing else.
//! * [`step()`]: what follows from an input.
//! * [`due()`]: what the outside world owes.
//! * [`action`]: the check of an action in three stages, before anything runs.
//! * [`ask`]: questions to a person, and what follows from the answers; [`amend`]: a task that is
//!   changed while it runs.
//! * [`gateway`]: the only door from quarantine to the fact pool.
//! * [`observation`]: what the planner is told, made from events in one place.
//! * [`planner`]: the planner `triggers`, a plain rule.
//! * [`criteria`], [`reference`]: CEL over facts, and the references in arguments.
//! * [`pool`]: the contents of facts, read from blobs.
//! * [`driver`]: the loop around it all.
//! * [`mod@replay`]: every call of a log executed again, and compared.

pub mod action;
pub mod amend;
pub mod ask;
pub mod criteria;
pub mod driver;
pub mod due;
pub mod effect;
pub mod gateway;
pub mod observation;
pub mod planner;
pub mod pool;
pub mod reference;
pub mod replay;
mod schema;
pub mod state;
pub mod step;

pub use driver::{DriveError, Driver, Finish, Resumed};
pub use due::due;
pub use effect::{Effect, Input};
pub use state::{State, Unfoldable};
pub use step::{advance, step};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
