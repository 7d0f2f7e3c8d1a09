//! The granted folders of a call: opened, and what they hold recorded before the guest runs; or,
//! where the call is executed again, copies of what was recorded.
//!
//! Reading order: `seen`, how a folder is recorded; `copied`, how one is made of that again.

mod copied;
mod seen;

use std::sync::Arc;

use checkrein_contract::port::{Setting, StorageError};
use checkrein_contract::record::FolderSeen;

use crate::cache::Cache;
use crate::files::{Mount, NotMounted, Protected, mount_granted};
use crate::sandbox::Host;
use crate::scratch::Written;

pub(crate) use seen::Known;
pub use seen::{FOLDER_BYTES, FOLDER_FILES};

/// The granted folders of one call.
#[derive(Default)]
pub(crate) struct Folders {
    pub(crate) mounts: Vec<Mount>,
    /// What they held when the call began.
    pub(crate) seen: Vec<FolderSeen>,
    /// Which copies are not what the folder was, and why.
    pub(crate) unlike: Vec<String>,
    /// Where the copies are, as long as the call needs them.
    _copies: Option<Written>,
}

impl Folders {
    /// Those of a call, on a thread where nobody else waits for the disk. It is the host's work and
    /// not on the call's budget.
    pub(crate) async fn of(host: &Host, setting: &Setting) -> Result<Self, NotMounted> {
        if setting.granted.files.is_empty() {
            return Ok(Folders::default());
        }
        let (grants, blobs) = (setting.granted.files.clone(), Arc::clone(&host.blobs));
        let prepared = match &setting.recorded {
            Some(record) => {
                let (record, scratch) = (Arc::clone(record), host.scratch.clone());
                tokio::task::spawn_blocking(move || {
                    copied::copy(&grants, &record, &scratch, &*blobs).map_err(NotMounted::Storage)
                })
            }
            None => {
                let (protected, known) = (apart_from(host), Arc::clone(&host.known));
                tokio::task::spawn_blocking(move || {
                    let mut folders = Folders::default();
                    for grant in &grants {
                        let mount = mount_granted(grant, &protected)?;
                        let seen = seen::see(&grant.path, &mount.folder(), &*blobs, &known);
                        folders.seen.push(seen.map_err(NotMounted::Storage)?);
                        folders.mounts.push(mount);
                    }
                    Ok(folders)
                })
            }
        };
        prepared.await.unwrap_or_else(|error| Err(NotMounted::Lost(error.to_string())))
    }
}

impl From<StorageError> for NotMounted {
    fn from(error: StorageError) -> Self {
        NotMounted::Storage(error)
    }
}

/// What no granted folder may reach.
fn apart_from(host: &Host) -> Vec<Protected> {
    let cache = host.cache.as_ref().map(Cache::folder);
    let places = std::iter::once(host.scratch.as_path()).chain(cache);
    places.map(|place| Protected::Folder(place.to_owned())).chain(host.protected.iter().cloned()).collect()
}

#[cfg(test)]
mod tests;
