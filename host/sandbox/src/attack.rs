//! Hostile components, each with the wall that must stop it, and the runner that sees whether it
//! does and what stays behind.
//!
//! An attack is a complete skill with one part replaced ([`guest::Guest`]), or a file that must not
//! load. `tests/guests/attacks/` holds the text of each; `doctor --attack` runs them all where the
//! user is.

mod asked;
mod files;
pub(crate) mod guest;
mod lies;
mod loading;
mod measure;
mod memory;
mod network;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod time;

use std::fmt;

use checkrein_contract::grant::Granted;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::record::Wall;
use serde::Serialize;

pub(crate) use asked::Asked;
#[cfg(test)]
pub(crate) use asked::{call, mishap, subgoal, submission};
use guest::Guest;
pub use run::{Report, Runner};

/// What an attack is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// To run for ever.
    Time,
    /// To take more than it may.
    Memory,
    /// To reach what it was not granted.
    Network,
    /// To see what only the host may.
    Secrets,
    /// To reach files of others, or to fill the disk.
    Files,
    /// To be loaded.
    Loading,
    /// To be believed.
    Lies,
}

impl Group {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Group::Time => "time",
            Group::Memory => "memory",
            Group::Network => "network",
            Group::Secrets => "secrets",
            Group::Files => "files",
            Group::Loading => "loading",
            Group::Lies => "lies",
        }
    }
}

/// What must stop an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This limit ends the call.
    Limit(LimitKey),
    /// This wall turns it down, and the call goes on.
    Denied(Wall),
    /// Loading fails at this stage.
    Load(&'static str),
    /// What it returns is refused by this rule.
    Answer(&'static str),
    /// The engine ends the call with a trap that says this.
    Trap(&'static str),
    /// Nothing: it does what it may, and must succeed.
    Nothing,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Limit(key) => write!(f, "limit `{key}`"),
            Expected::Denied(wall) => write!(f, "wall `{}`", wall.as_str()),
            Expected::Load(stage) => write!(f, "loading, at `{stage}`"),
            Expected::Answer(rule) => write!(f, "answer refused, `{rule}`"),
            Expected::Trap(what) => write!(f, "trap, {what}"),
            Expected::Nothing => f.write_str("honest: succeeds"),
        }
    }
}

impl From<LimitKey> for Expected {
    fn from(key: LimitKey) -> Self {
        Expected::Limit(key)
    }
}

/// What is hostile.
#[derive(Clone, Copy)]
enum Body {
    /// A part of a component that is called.
    Part(Asked, fn() -> Guest),
    /// A component that is to be loaded.
    Load(fn() -> Guest),
    /// A file that is to be loaded, as it is.
    File(fn() -> Result<Vec<u8>, String>),
}

/// One attack.
#[derive(Clone)]
pub struct Attack {
    /// What it is after.
    pub group: Group,
    /// What it does, in words.
    pub name: &'static str,
    /// What must stop it.
    pub expected: Expected,
    body: Body,
    /// Limits of its own, so that it ends soon; the others are those in force.
    limits: Vec<(LimitKey, u64)>,
    granted: Granted,
}

impl Attack {
    fn part(
        group: Group,
        name: &'static str,
        asked: Asked,
        expected: impl Into<Expected>,
        guest: fn() -> Guest,
    ) -> Self {
        let (expected, body) = (expected.into(), Body::Part(asked, guest));
        Attack { group, name, expected, body, limits: Vec::new(), granted: Granted::default() }
    }

    fn loading(name: &'static str, stage: &'static str, body: Body) -> Self {
        let (group, expected) = (Group::Loading, Expected::Load(stage));
        Attack { group, name, expected, body, limits: Vec::new(), granted: Granted::default() }
    }

    /// With a limit of its own.
    fn within(mut self, key: LimitKey, value: u64) -> Self {
        self.limits.push((key, value));
        self
    }

    /// Its name in one word, with its group: `time-loop-in-the-executor`.
    pub fn slug(&self) -> String {
        format!("{}-{}", self.group.as_str(), self.name.replace(' ', "-").to_lowercase())
    }

    /// Its component as text; `None` for a file that is no component.
    pub fn text(&self) -> Option<String> {
        match self.body {
            Body::Part(_, guest) | Body::Load(guest) => Some(guest().text()),
            Body::File(_) => None,
        }
    }

    /// The limits that it runs under, where `base` are in force. An honest one gets the defaults.
    fn limits(&self, base: &Limits) -> Limits {
        let base = if self.expected == Expected::Nothing { Limits::default() } else { base.clone() };
        self.limits.iter().fold(base, |limits, (key, value)| limits.with(*key, *value))
    }
}

/// Every attack there is, by group.
pub fn corpus() -> Vec<Attack> {
    [
        time::attacks(),
        memory::attacks(),
        network::attacks(),
        files::attacks(),
        loading::attacks(),
        lies::attacks(),
    ]
    .concat()
}
