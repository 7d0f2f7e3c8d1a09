//! The error by which this host ends a call at a limit.

use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::LimitKey;

/// A limit that fired in the host. It travels through the engine as an error of its own type.
#[derive(Clone, Debug, thiserror::Error)]
#[error("limit `{}`: {} allowed, {} used", .0.limit, .0.allowed, .0.used)]
pub(crate) struct Stop(pub(crate) LimitHit);

impl Stop {
    /// The limit `key`, with the value in force and what was used, or would have been.
    pub(crate) fn at(key: LimitKey, allowed: u64, used: u64) -> Self {
        Stop(LimitHit { limit: key.as_str().to_owned(), allowed, used })
    }
}
