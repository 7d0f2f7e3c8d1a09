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
use checkrein_contract::network::Rule;
use checkrein_contract::record::Wall;
use serde::Serialize;
use serde_json::Value;

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
    /// The process that compiles it is ended, since it has used up this: `time` or `memory`.
    Compile(&'static str),
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
            Expected::Compile(what) => write!(f, "compiling, `{what}`"),
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
    /// A component that is only to be compiled.
    Bomb(fn() -> Guest),
}

/// What an attack must have been told. One refusal shows that there is a wall; that each of its
/// steps ended as it must shows that there is no hole beside it.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    /// The content that it returns: how its steps ended, one by one.
    Content(Value),
    /// A line of its log.
    Line(&'static str),
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
    /// What it must have been told, if it says that.
    told: Option<Told>,
}

impl Attack {
    fn part(
        group: Group,
        name: &'static str,
        asked: Asked,
        expected: impl Into<Expected>,
        guest: fn() -> Guest,
    ) -> Self {
        Attack::new(group, name, expected.into(), Body::Part(asked, guest))
    }

    fn loading(name: &'static str, stage: &'static str, body: Body) -> Self {
        Attack::new(Group::Loading, name, Expected::Load(stage), body)
    }

    fn compiling(name: &'static str, what: &'static str, guest: fn() -> Guest) -> Self {
        Attack::new(Group::Loading, name, Expected::Compile(what), Body::Bomb(guest))
    }

    fn new(group: Group, name: &'static str, expected: Expected, body: Body) -> Self {
        let (limits, granted) = (Vec::new(), Granted::default());
        Attack { group, name, expected, body, limits, granted, told: None }
    }

    /// With a limit of its own.
    fn within(mut self, key: LimitKey, value: u64) -> Self {
        self.limits.push((key, value));
        self
    }

    /// With the content that it must return.
    fn returning(mut self, content: Value) -> Self {
        self.told = Some(Told::Content(content));
        self
    }

    /// With a line that its log must have.
    fn logging(mut self, line: &'static str) -> Self {
        self.told = Some(Told::Line(line));
        self
    }

    /// With a rule of the network that it is granted, so that there is something to go beyond.
    fn granting(mut self, rule: &str) -> Self {
        self.granted.network.extend(Rule::parse(rule));
        self
    }

    /// Whether it is tried only where components are compiled in a process of their own: nothing
    /// ends a compiler that runs in this one.
    pub fn needs_a_worker(&self) -> bool {
        matches!(self.body, Body::Bomb(_))
    }

    /// Its name in one word, with its group: `time-loop-in-the-executor`.
    pub fn slug(&self) -> String {
        format!("{}-{}", self.group.as_str(), self.name.replace(' ', "-").to_lowercase())
    }

    /// Its component as text; `None` for a file that is no component, and for a bomb, whose text
    /// is long and says the same again and again.
    pub fn text(&self) -> Option<String> {
        match self.body {
            Body::Part(_, guest) | Body::Load(guest) => Some(guest().text()),
            Body::File(_) | Body::Bomb(_) => None,
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
