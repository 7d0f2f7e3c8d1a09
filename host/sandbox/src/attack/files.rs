//! Components that reach for files of others, or fill the disk.

use super::Attack;

pub(super) fn attacks() -> Vec<Attack> {
    Vec::new()
}
