//! Runs components of strangers: load, limits, grants, files, calls. The only crate that names
//! wasmtime.
//!
//! A component gets nothing but what its call's [`Setting`](checkrein_contract::port::Setting)
//! names, and stops when a limit says so. What it returns is checked before it is anything. This
//! crate decides nothing about what to run, and knows no task, planner or fact pool.
//!
//! Reading order:
//!
//! * [`sandbox`](Sandbox): what the harness holds; `engine`: every setting of wasmtime.
//! * `bindings`, `convert`, `accept`: the interface, the way in and the checked way back.
//! * `invoke`: one call from store to answer; `parts`: what each part of a component may reach.
//! * `meter`, `limiter`, `stop`, `ending`: what stops a call, and how that is told apart.
//! * `state`, `imports`, `wasi`, `clock`, `logbook`, `work`: what a guest can reach.
//! * `files`: the gate in front of folders: quota, links, times.
//! * `folders`: what granted folders held, and copies made of that.
//! * `recorder`: what a guest tried at the walls.
//! * `scratch`: names of what does not last.
//! * `text`: what a stranger wrote, before it is shown.
//! * `net`: the one way out, its rules, redirects, limits and secrets.
//! * [`replay`]: a call that is executed again from its record.
//! * `dry`: nothing with an effect is linked.
//! * `load`, `cache`: from a file to a component that can be called.
//! * `producers`: what a component was made with.
//! * `mutate`, `probe`: whether a component's own verification is worth its name.
//! * [`attack`]: hostile components, and whether the walls hold against them.
//! * `self_test`: the limits are tried before anything else runs.
//! * [`worker`]: processes for what must not be done in this one.

mod accept;
pub mod attack;
mod bindings;
mod cache;
mod clock;
mod component;
mod convert;
mod dry;
mod ending;
mod engine;
mod files;
mod folders;
mod imports;
mod invoke;
mod limiter;
mod load;
mod logbook;
mod meter;
pub mod mutate;
mod net;
mod parts;
pub mod probe;
mod producers;
mod recorder;
pub mod replay;
mod sandbox;
mod scratch;
mod self_test;
mod state;
mod stop;
mod text;
mod wasi;
mod work;
pub mod worker;

#[cfg(test)]
mod testing;

pub use engine::EngineError;
pub use files::{Protected, check_folder};
pub use folders::{FOLDER_BYTES, FOLDER_FILES};
pub use load::{LoadReport, Loaded, STORAGE, Source, Step, StepResult};
pub use net::{
    DownloadError, Resolver, SECRET_MAX, SECRET_MIN, SecretFault, Secrets, SystemResolver, check_secret,
};
pub use producers::{Producer, producers};
pub use sandbox::{Options, Places, Sandbox, SandboxError, Workers};
pub use self_test::{Held, SelfTestError};
pub use worker::{Hardening, WorkerError};

/// The version of the engine. Fuel depends on it, so each call is logged with it.
pub const WASMTIME: &str = "48.0.8";
