//! Processes of this host that do what must not be done in it: compiling what a stranger wrote,
//! and judging with a verification.
//!
//! They are the same binary, started as `PROGRAM worker compile` and `PROGRAM worker verify
//! FOLDER`. [`main`] is their beginning; it gives up everything that a worker does not need before
//! it reads a byte of input. What they say is checked by the host as if a guest had said it.
//!
//! Reading order: [`frame`] and [`wire`], what goes through the pipes; [`harden`], what a worker
//! gives up; [`compile`] and [`judge`], the two workers; [`child`], [`compiler`] and [`pool`], the
//! host's side; [`taken`], what is taken of a worker's answer.

pub(crate) mod child;
mod compile;
pub(crate) mod compiler;
pub(crate) mod frame;
mod harden;
mod judge;
pub(crate) mod pool;
mod taken;
mod wire;

use std::ffi::OsString;
use std::process::ExitCode;

pub use child::WorkerError;
pub use harden::Hardening;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Compiles one component and ends.
    Compile,
    /// Judges with verifications, one at a time, until its input ends.
    Verify,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Role::Compile => "compile",
            Role::Verify => "verify",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Role::Compile, Role::Verify].into_iter().find(|role| role.as_str() == word)
    }

    /// Bytes of the longest frame that the host sends it: a component, or compiled code.
    pub(crate) fn most_in(self) -> u32 {
        match self {
            Role::Compile => 96 << 20,
            Role::Verify => 1 << 30,
        }
    }

    /// Bytes of the longest frame that it sends: compiled code, or a verdict with its log.
    pub(crate) fn most_out(self) -> u32 {
        match self {
            Role::Compile => 1 << 30,
            Role::Verify => 64 << 20,
        }
    }
}

/// Exit code of a worker that could not do its work; what was wrong stands on stderr.
const FAILED: u8 = 70;

/// Runs this process as a worker. `args` is what stands behind `worker` on the command line. Call
/// it before anything else is set up: no thread may run yet.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let role = args.next().and_then(|word| Role::parse(&word.to_string_lossy()));
    let ended = match role {
        Some(Role::Compile) => compile::main(),
        Some(Role::Verify) => judge::main(args.next()),
        None => {
            Err("`worker` is started by the host itself, as `worker compile` or `worker verify`".to_owned())
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::from(FAILED)
        }
    }
}

/// The one way in which a worker tells why it ends: the host reads its stderr.
#[expect(clippy::print_stderr, reason = "a worker has no other way to tell its host why it ends")]
fn say(why: &str) {
    eprintln!("checkrein worker: {why}");
}
