//! Components that reach for files of others, or fill the disk. Each returns how its steps ended,
//! and all of them must have ended as they do here.

use checkrein_contract::limits::LimitKey;
use checkrein_contract::record::Wall;

use super::guest::{Guest, files};
use super::{Asked, Attack, Expected, Group};

/// What a step ends with that leads out of the folders.
const NO: &str = "not-permitted";
/// What a step ends with that takes more of the disk than there is for it.
const FULL: &str = "insufficient-space";
/// Files that filling the disk by count may make, and tries to.
const FILES: usize = 50;
const TRIES: usize = 200;

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |name, expected, guest| Attack::part(Group::Files, name, Asked::Execute, expected, guest);
    let refused = |name, steps: &[&str], guest: fn() -> Guest| {
        attack(name, Expected::Denied(Wall::File), guest).returning(files::notes(steps))
    };
    let full = |name, steps: &[&str], guest: fn() -> Guest| {
        attack(name, Expected::Denied(Wall::Quota), guest)
            .within(LimitKey::WorkBytes, 1_000_000)
            .within(LimitKey::WorkFiles, FILES as u64)
            .returning(files::notes(steps))
    };
    vec![
        refused("the folder above", &[NO, NO, "ok", NO, NO, NO, NO], files::dot_dot),
        refused("absolute paths", &[NO; 4], files::absolute_paths),
        refused("the folder of another call", &[NO; 4], || files::another_calls_folder("other")),
        refused("a hard link", &["ok", NO, NO], files::hard_links_of_its_own),
        refused("symbolic links", &[NO, NO, NO, "no-entry", "no-entry"], files::symbolic_links_of_its_own),
        full("filling the disk by size", &by_size(), files::quota_by_size),
        full("filling the disk by count", &by_count(), || files::quota_by_count(TRIES as u32)),
        full("filling the disk by a sparse file of 1 TiB", &SPARSE, files::sparse_files),
        attack("a name that is not UTF-8", Expected::Trap("utf-8"), files::broken_name),
    ]
}

/// The same bytes again are no growth, and the third 400,000 are too many; over what is there and
/// at its end there is room. 195,904 bytes are left: 47 times 4096, then the stream fails once and
/// is closed. What is not waited for is refused at once.
fn by_size() -> Vec<&'static str> {
    let mut steps = vec!["ok", "ok", "ok", "ok", "ok", FULL, "ok", "ok", "ok", "ok", "ok"];
    steps.extend(["ok"; 47]);
    steps.push(FULL);
    steps.extend(["closed"; 12]);
    steps.extend(["ok", FULL, "closed"]);
    steps
}

/// Neither a file nor a folder more than there may be; one that is there can be opened.
fn by_count() -> Vec<&'static str> {
    let mut steps = vec!["ok"; FILES];
    steps.extend([FULL; TRIES - FILES + 1]);
    steps.push("ok");
    steps
}

/// All that is allowed at once, and not twice. The last three are of the file: its size, its links,
/// and that it has no times.
const SPARSE: [&str; 15] =
    ["ok", FULL, FULL, "ok", FULL, "closed", "ok", FULL, "ok", "ok", FULL, "ok", "0", "1", "0"];
