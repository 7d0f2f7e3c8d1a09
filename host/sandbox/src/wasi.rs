//! What a guest reaches through WASI besides files and the monotonic clock: two seeded generators,
//! a wall clock that is not the machine's, a log. No environment, no arguments, no network.

use checkrein_contract::grant::Clock;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::Setting;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::clock::StandingClock;
use crate::logbook::LogBook;

/// Builds the context of one call. Folders are not in it: [`crate::files`] has them.
pub(crate) fn context(setting: &Setting, clock: Clock, log: &LogBook) -> WasiCtx {
    let mut wasi = WasiCtxBuilder::new();
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.stdout(log.clone()).stderr(log.clone());
    match clock {
        Clock::Virtual => {
            wasi.wall_clock(StandingClock(setting.clock));
        }
        // Without another one it is the machine's.
        Clock::Real => {}
    }
    seed(&mut wasi, setting.seed);
    wasi.max_random_size(setting.limits.get(LimitKey::Random));
    wasi.build()
}

/// The same seed gives the same numbers, from three sources that say nothing of one another.
fn seed(wasi: &mut WasiCtxBuilder, seed: u64) {
    let mut source = StdRng::seed_from_u64(seed);
    wasi.secure_random(StdRng::from_rng(&mut source));
    wasi.insecure_random(StdRng::from_rng(&mut source));
    wasi.insecure_random_seed(source.random());
}
