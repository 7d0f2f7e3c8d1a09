//! What of the network one call may use: `http-calls`, `http-out`, `http-in`.

use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::record::Wall;

use super::NoAnswer;
use super::check::Refusal;

/// The three counts of one call, shared by all its requests.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) calls: Count,
    pub(super) sent: Count,
    pub(super) received: Count,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        let count = |key| Count { key, allowed: limits.get(key), used: AtomicU64::new(0) };
        Budget {
            calls: count(LimitKey::HttpCalls),
            sent: count(LimitKey::HttpOut),
            received: count(LimitKey::HttpIn),
        }
    }
}

/// Something that is counted over a call and refused past its limit.
#[derive(Debug)]
pub(super) struct Count {
    key: LimitKey,
    allowed: u64,
    used: AtomicU64,
}

impl Count {
    /// Uses so much more of it. What was refused stays counted: after a refusal nothing fits.
    pub(super) fn take(&self, amount: u64) -> Result<(), Refusal> {
        let used = self.used.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        if used <= self.allowed { Ok(()) } else { Err(self.refusal(used)) }
    }

    /// How much of it there is.
    pub(super) fn allowed(&self) -> u64 {
        self.allowed
    }

    fn refusal(&self, used: u64) -> Refusal {
        let (what, grant) = over(self.key, self.allowed, used);
        let told = match self.key {
            LimitKey::HttpIn => NoAnswer::TooLarge(self.allowed),
            _ => NoAnswer::Denied(what.clone()),
        };
        Refusal { wall: Wall::Limit, what, grant: Some(grant), told }
    }
}

/// What is told of a limit that was passed, and a grant that would have let more through. How much
/// would have been enough is not known: the rest was not read.
pub(super) fn over(key: LimitKey, allowed: u64, used: u64) -> (String, String) {
    let what = format!("{}: {} allowed, {} used", passed(key), key.show(allowed), key.show(used));
    let wanted = used.max(allowed.saturating_mul(2)).checked_next_power_of_two().unwrap_or(used);
    (what, format!("limits = {{ {key} = \"{}\" }}", key.show(wanted)))
}

/// How the words about a limit that was passed begin: a record is read by them again.
pub(super) fn passed(key: LimitKey) -> String {
    format!("limit `{key}`")
}
