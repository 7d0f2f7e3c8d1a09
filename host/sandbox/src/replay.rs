//! A call that is executed again from its record ([`Setting::recorded`]): what is another than the
//! first time, in one place.
//!
//! * Requests are answered from the record (`net/replay.rs`), and nothing leaves.
//! * Granted folders are copies of what was recorded (`folders/copied.rs`).
//! * Time is no part of it, here: neither limits of time nor the machine's clock.

use checkrein_contract::grant::Clock;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::Setting;
use checkrein_contract::record::{Denial, Wall};

/// How the lines begin that tell of a copy which is not what its folder was.
pub(crate) const FOLDER: &str = "the granted folder ";
/// What is said of a request that no exchange of the record answers: the call does something else
/// than it did.
pub(crate) const UNRECORDED: &str = "no such request was recorded";

/// Whether a denial of a replayed call tells that its record did not have what it wanted: a request
/// that was not made before, or a granted folder that was not recorded, or not whole. A result that
/// differs may then be due to that.
pub fn is_unrecorded(denial: &Denial) -> bool {
    match denial.wall {
        Wall::Network => denial.what.ends_with(UNRECORDED),
        Wall::File => denial.what.starts_with(FOLDER),
        _ => false,
    }
}

/// The setting of a call with time out of it, if it is executed again: it ends by itself or by what
/// it uses, however busy the machine is, and sees the clock of the setting.
pub(crate) fn settled(mut setting: Setting) -> Setting {
    if setting.recorded.is_some() {
        // So far off that no clock can tell it.
        setting.limits = setting.limits.with(LimitKey::Cpu, u64::MAX).with(LimitKey::Wall, u64::MAX);
        setting.granted.clock = Clock::Virtual;
    }
    setting
}
