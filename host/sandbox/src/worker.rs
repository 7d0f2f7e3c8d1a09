//! Processes of this host that do what must not be done in it: compiling what a stranger wrote,
//! and judging with a verification.
//!
//! They are the same binary, started as `PROGRAM worker compile` and `PROGRAM worker verify
//! FOLDER`, with `dry` behind it where nothing with an effect is linked. [`main`] is their beginning; it gives up everything that a worker does not need before
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

use checkrein_contract::limits::{LimitKey, Limits};

use frame::Most;

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

    /// The longest frame that the host sends it: a component; or a submission, compiled code, and
    /// what a request fetched. A worker trusts its host: these keep an accident small, not an
    /// attack.
    pub(crate) fn most_in(self) -> Most {
        match self {
            Role::Compile => Most { json: SMALL, raw: 96 << 20 },
            Role::Verify => Most { json: 2 << 30, raw: 2 << 30 },
        }
    }

    /// The longest frame that it sends: compiled code; or, before its first question, some words.
    pub(crate) fn most_out(self) -> Most {
        match self {
            Role::Compile => Most { json: SMALL, raw: 1 << 30 },
            Role::Verify => Most { json: SMALL, raw: 0 },
        }
    }
}

/// What stands behind the folder of a judging worker that links nothing with an effect.
const DRY: &str = "dry";

/// The build of a judging worker, which says as well whether it is a dry one: a program that does
/// not know that word would be another than is needed.
fn build_of(build: String, dry: bool) -> String {
    if dry { format!("{build}-{DRY}") } else { build }
}

/// Bytes of JSON of every frame that carries nothing of a limit's size.
const SMALL: u32 = 1 << 20;
/// Bytes of a request's URL and headers, or of an id that is looked for, that a worker sends on. No
/// server takes longer ones, and no fact has a longer id.
pub(crate) const WANTED: usize = 1 << 20;

/// The longest frame that a judging worker sends while it is asked under these limits: a verdict
/// with its log, or a request with its body.
pub(crate) fn most_out_under(limits: &Limits) -> Most {
    // In JSON a control character is six bytes, and a byte of a header at most four. What surrounds
    // the text of a finding or check has no limit of its own: there is room for some 100,000.
    const FRAME: u64 = 16 << 20;
    let texts = limits.get(LimitKey::Outcome).saturating_add(limits.get(LimitKey::Log));
    let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Most { json: bytes(texts.saturating_mul(6).saturating_add(FRAME)), raw: bytes(most_body(limits)) }
}

/// Bytes of a request's body that a worker sends on: one more than may leave, so that the gate of
/// the host sees, refuses and records what is too long.
pub(crate) fn most_body(limits: &Limits) -> u64 {
    limits.get(LimitKey::HttpOut).saturating_add(1)
}

/// Exit code of a worker that could not do its work; what was wrong stands on stderr.
const FAILED: u8 = 70;

/// Runs this process as a worker. `args` is what stands behind `worker` on the command line. Call
/// it before anything else is set up: no thread may run yet.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let role = args.next().and_then(|word| Role::parse(&word.to_string_lossy()));
    let ended = match role {
        Some(Role::Compile) => compile::main(args.next()),
        Some(Role::Verify) => judge::main(args.next(), args.next()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_hold_what_the_limits_of_a_question_allow() {
        let mut ceilings = Limits::default();
        for key in LimitKey::ALL {
            ceilings = ceilings.with(*key, key.default_ceiling());
        }
        for limits in [Limits::default(), ceilings] {
            let most = most_out_under(&limits);
            // The worst text: all of it escaped.
            let escaped = serde_json::to_string("\u{1}").unwrap().len() as u64 - 2;
            let texts = limits.get(LimitKey::Log) + limits.get(LimitKey::Outcome);
            assert!(u64::from(most.json) > escaped * texts);
            assert!(u64::from(most.json) > 6 * WANTED as u64);
            assert!(u64::from(most.raw) > limits.get(LimitKey::HttpOut));
            assert!(u64::from(Role::Verify.most_in().raw) > limits.get(LimitKey::HttpIn));
        }
    }
}
