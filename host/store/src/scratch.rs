//! Room for what does not outlive a process: folders for guests to read.

use std::fs;
use std::path::{Path, PathBuf};

use checkrein_contract::port::{StorageError, Tree};
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

use crate::state::make_own;

/// The folder `scratch/`. What is made in it carries the number of its process, so that what a
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
        let made = tempfile::Builder::new().prefix(&prefix()).tempdir_in(&self.0);
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

/// What the names of this process's temporary files and folders start with.
pub(crate) fn prefix() -> String {
    format!("{}-{KIND}-", std::process::id())
}

/// Removes from `dir` what processes left that are no longer there.
pub(crate) fn sweep(dir: &Path) -> Result<(), StorageError> {
    let entries = fs::read_dir(dir).map_err(|error| StorageError::of_io(dir, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| StorageError::of_io(dir, &error))?.path();
        if is_left_behind(&path) {
            // Another process may sweep at the same time: what is gone already is no fault, and
            // what cannot be removed is in nobody's way.
            // What a link leads to is not ours.
            let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let _ = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
    Ok(())
}

fn is_left_behind(path: &Path) -> bool {
    let owner = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
    let ours = owner.filter(|(_, rest)| rest.strip_prefix(KIND).is_some_and(|rest| rest.starts_with('-')));
    let Some(pid) = ours.and_then(|(pid, _)| pid.parse().ok()).and_then(Pid::from_raw) else {
        return false;
    };
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}
