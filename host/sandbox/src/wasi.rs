//! What a guest reaches through WASI: the folders of its part, two seeded generators, two clocks
//! that are not the machine's, a log. No environment, no arguments, no network.

use std::io;
use std::path::Path;

use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::{Setting, StorageError};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use crate::clock::StandingClock;
use crate::logbook::LogBook;

/// The folders that a part sees.
#[derive(Debug, Default)]
pub(crate) struct Folders<'a> {
    pub(crate) input: Option<&'a Path>,
    pub(crate) artifacts: Option<&'a Path>,
    /// `/work`, and whether the guest may write there.
    pub(crate) work: Option<(&'a Path, FsPerms)>,
}

/// Builds the context of one call.
///
/// # Errors
///
/// If a folder cannot be opened.
pub(crate) fn context(
    folders: &Folders<'_>,
    setting: &Setting,
    log: &LogBook,
) -> Result<WasiCtx, StorageError> {
    let mut wasi = WasiCtxBuilder::new();
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.stdout(log.clone()).stderr(log.clone());
    wasi.wall_clock(StandingClock(setting.clock));
    seed(&mut wasi, setting.seed);
    wasi.max_random_size(setting.limits.get(LimitKey::Random));
    // The folders hold plain files that the host made, so no operation on them waits for long, and
    // doing it on the spot is several times faster than on a thread of its own.
    wasi.allow_blocking_current_thread(true);
    let read_only = |path| (path, FsPerms::ReadOnly);
    let mounts = [
        ("/in", folders.input.map(read_only)),
        ("/artifacts", folders.artifacts.map(read_only)),
        ("/work", folders.work),
    ];
    for (name, mount) in mounts {
        let Some((path, permissions)) = mount else { continue };
        wasi.preopened_dir(path, name, permissions).map_err(|error| not_opened(path, name, &error))?;
    }
    Ok(wasi.build())
}

fn not_opened(path: &Path, name: &str, error: &wasmtime::Error) -> StorageError {
    match error.downcast_ref::<io::Error>() {
        Some(error) => StorageError::of_io(path, error),
        None => StorageError::Other {
            place: path.display().to_string(),
            detail: format!("it cannot be opened as `{name}`: {error:#}"),
        },
    }
}

/// The same seed gives the same numbers, from three sources that say nothing of one another.
fn seed(wasi: &mut WasiCtxBuilder, seed: u64) {
    let mut source = StdRng::seed_from_u64(seed);
    wasi.secure_random(StdRng::from_rng(&mut source));
    wasi.insecure_random(StdRng::from_rng(&mut source));
    wasi.insecure_random_seed(source.random());
}
