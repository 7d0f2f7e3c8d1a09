//! Room for what does not outlive a process: folders for guests to read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use checkrein_contract::port::{StorageError, Tree};
use tempfile::TempDir;

use crate::process::{Identity, Life};
use crate::state::make_own;

/// The folder `scratch/`. What is made in it says in its name of which process it is, so that what a
/// killed process left behind can be told from what is in use.
#[derive(Clone, Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder, and removes from it what ended processes left.
    pub(crate) fn new(dir: &Path) -> Result<Self, StorageError> {
        make_own(dir)?;
        sweep(dir)?;
        Ok(Scratch(dir.to_owned()))
    }

    /// The folder of a state that is only read; it is made when it is first needed.
    pub(crate) fn existing(dir: &Path) -> Self {
        Scratch(dir.to_owned())
    }

    /// A new, empty folder.
    pub(crate) fn folder(&self) -> Result<Folder, StorageError> {
        make_own(&self.0)?;
        let made = tempfile::Builder::new().prefix(prefix()).tempdir_in(&self.0);
        made.map(Folder).map_err(|error| StorageError::of_io(&self.0, &error))
    }
}

/// A folder that is removed when this is dropped.
pub(crate) struct Folder(TempDir);

impl Tree for Folder {
    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// What the names of all temporary files and folders of the store have after the process's number:
/// a folder may hold other things whose names begin with a number.
const KIND: &str = "state";

/// What the names of this process's temporary files and folders start with: its number, and what else
/// tells it from every other.
pub(crate) fn prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let own = Identity::own();
        format!("{}-{KIND}-{}-", own.pid, own.mark())
    })
}

/// Removes from `dir` what processes left that are no longer there.
pub(crate) fn sweep(dir: &Path) -> Result<(), StorageError> {
    let own = Identity::own();
    let entries = fs::read_dir(dir).map_err(|error| StorageError::of_io(dir, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| StorageError::of_io(dir, &error))?.path();
        if is_left_behind(&path, &own) {
            // Another process may sweep at the same time: what is gone already is no fault, and
            // what cannot be removed is in nobody's way.
            // What a link leads to is not ours.
            let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let _ = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
    Ok(())
}

/// How long what was made by a process that cannot be seen from here is left as it is. The process may
/// be in another container or on another machine, or have left this behind.
const UNSEEN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

fn is_left_behind(path: &Path, own: &Identity) -> bool {
    let Some(owner) = path.file_name().and_then(|name| name.to_str()).and_then(owner) else { return false };
    match own.sees(&owner) {
        Life::Dead => true,
        Life::Alive => false,
        Life::Unseen => {
            let made = path.symlink_metadata().and_then(|found| found.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNSEEN))
        }
    }
}

/// Whose the file or folder of this name is; `None` if it is not one of the store's. An older version
/// said no more than the number of the process.
fn owner(name: &str) -> Option<Identity> {
    let (pid, rest) = name.split_once('-')?;
    let rest = rest.strip_prefix(KIND)?.strip_prefix('-')?;
    let mark = rest.rsplit_once('-').map_or("", |(mark, _)| mark);
    Some(Identity::of_mark(pid.parse().ok()?, mark))
}
