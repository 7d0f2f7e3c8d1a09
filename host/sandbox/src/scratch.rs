//! What does not outlive its process: the folders of running calls and cases, and entries of the
//! cache that are being written.
//!
//! Each name begins with the number of its process, as in the store, so that what a killed process
//! left behind can be told from what is in use. Processes that share a folder sweep it side by side.

use std::path::{Path, PathBuf};

use checkrein_contract::port::StorageError;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

/// What a temporary name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The `/work` of an executor.
    Work,
    /// The files of a case.
    Case,
    /// A file of the cache, before it has its name.
    New,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Work, Kind::Case, Kind::New];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Work => "work",
            Kind::Case => "case",
            Kind::New => "new",
        }
    }
}

/// What the names of this process begin with.
pub(crate) fn prefix(kind: Kind) -> String {
    format!("{}-{}-", std::process::id(), kind.as_str())
}

/// A new, empty folder in `dir`; removed when it is dropped.
pub(crate) fn folder(dir: &Path, kind: Kind) -> Result<TempDir, StorageError> {
    tempfile::Builder::new()
        .prefix(&prefix(kind))
        .tempdir_in(dir)
        .map_err(|error| StorageError::of_io(dir, &error))
}

/// Removes from `dir` what processes left that are no longer there; nothing that this module did
/// not name.
pub(crate) fn sweep(dir: &Path) -> Result<(), StorageError> {
    let entries = std::fs::read_dir(dir).map_err(|error| StorageError::of_io(dir, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| StorageError::of_io(dir, &error))?.path();
        if is_left_behind(&path) {
            remove(&path);
        }
    }
    Ok(())
}

/// Removes it, never through a link. Another process may sweep at the same time: what is gone is
/// no fault, and what cannot be removed is in nobody's way.
fn remove(path: &PathBuf) {
    let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(error) = removed {
        tracing::debug!(path = %path.display(), %error, "what a killed process left could not be removed");
    }
}

fn is_left_behind(path: &Path) -> bool {
    let owner = path.file_name().and_then(|name| name.to_str()).and_then(owner);
    owner.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// The process that a temporary name belongs to; `None` if it is none of ours.
fn owner(name: &str) -> Option<Pid> {
    let (pid, rest) = name.split_once('-')?;
    let (kind, _) = rest.split_once('-')?;
    Kind::ALL.iter().find(|known| known.as_str() == kind)?;
    Pid::from_raw(pid.parse().ok().filter(|pid| *pid > 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has it: the largest number of a process on Linux is 2^22.
    const DEAD: &str = "4194999";

    #[test]
    fn what_dead_processes_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "x").unwrap();
        let mine = folder(dir.path(), Kind::Work).unwrap();
        let left = [format!("{DEAD}-work-a"), format!("{DEAD}-case-b")];
        for name in &left {
            std::fs::create_dir_all(dir.path().join(name).join("deep/er")).unwrap();
            std::os::unix::fs::symlink(outside.path(), dir.path().join(name).join("deep/link")).unwrap();
        }
        std::fs::write(dir.path().join(format!("{DEAD}-new-c")), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join(format!("{DEAD}-new-d"))).unwrap();
        // Another's that runs, and names that are not ours.
        let kept =
            ["1-work-x".to_owned(), format!("{DEAD}-notes"), "work-x".into(), format!("-{DEAD}-work-x")];
        for name in &kept {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        sweep(dir.path()).unwrap();
        sweep(dir.path()).unwrap();
        assert!(mine.path().is_dir());
        let mut there: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with(&prefix(Kind::Work)))
            .collect();
        there.sort_unstable();
        let mut expected = kept.to_vec();
        expected.sort_unstable();
        assert_eq!(there, expected);
        assert!(outside.path().join("kept").exists());
    }
}
