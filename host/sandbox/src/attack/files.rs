//! Components that reach for files of others, or fill the disk.

use checkrein_contract::limits::LimitKey;
use checkrein_contract::record::Wall;

use super::guest::{Guest, files};
use super::{Asked, Attack, Expected, Group};

pub(super) fn attacks() -> Vec<Attack> {
    let attack = |name, expected, guest| Attack::part(Group::Files, name, Asked::Execute, expected, guest);
    let refused = |name, guest| attack(name, Expected::Denied(Wall::File), guest);
    let full = |name, guest: fn() -> Guest| {
        attack(name, Expected::Denied(Wall::Quota), guest)
            .within(LimitKey::WorkBytes, 1_000_000)
            .within(LimitKey::WorkFiles, 50)
    };
    vec![
        refused("the folder above", files::dot_dot),
        refused("absolute paths", files::absolute_paths),
        refused("the folder of another call", || files::another_calls_folder("other")),
        refused("a hard link", files::hard_link),
        full("filling the disk by size", files::quota_by_size),
        full("filling the disk by count", || files::quota_by_count(200)),
        full("filling the disk by a sparse file of 1 TiB", files::sparse_files),
        attack("a name that is not UTF-8", Expected::Trap("utf-8"), files::broken_name),
    ]
}
