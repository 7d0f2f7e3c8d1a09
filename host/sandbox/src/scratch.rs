//! What does not outlive its process: the folders of running calls and cases, and entries of the
//! cache that are being written.
//!
//! Each name begins with the number of its process, as in the store, so that what a killed process
//! left behind can be told from what is in use. Processes that share a folder sweep it side by side.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use checkrein_contract::port::StorageError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, renameat, statat, unlinkat};
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

/// A new, empty folder for what a guest writes; removed when it is dropped, however deep it is.
#[derive(Debug)]
pub(crate) struct Written(PathBuf);

impl Written {
    pub(crate) fn create(dir: &Path) -> Result<Self, StorageError> {
        Ok(Written(folder(dir, Kind::Work)?.keep()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Written {
    /// What stays behind is told, and harms no later call: each has a folder of its own.
    fn drop(&mut self) {
        if let Err(error) = remove_folder(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a `/work` could not be removed");
        }
    }
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
    let removed = if is_folder { remove_folder(path) } else { std::fs::remove_file(path) };
    if let Err(error) = removed {
        tracing::debug!(path = %path.display(), %error, "what a killed process left could not be removed");
    }
}

/// Removes a folder with all that is in it, never through a link.
///
/// A guest can make thousands of folders, each in the one before, and going down into them would
/// take a descriptor and a piece of the stack for each. So they are lifted out one by one, into a
/// folder beside, and removed from there.
fn remove_folder(path: &Path) -> io::Result<()> {
    let top = open(path, FOLDER, Mode::empty())?;
    let inner = clear(&top)?;
    if !inner.is_empty() {
        let beside = path.parent().unwrap_or(path);
        let lifted = tempfile::Builder::new().prefix(&prefix(Kind::Work)).tempdir_in(beside)?.keep();
        remove_lifted(&top, inner, &lifted)?;
        std::fs::remove_dir(lifted)?;
    }
    std::fs::remove_dir(path)
}

/// How a folder is opened, never through a link.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn remove_lifted(top: &OwnedFd, inner: Vec<CString>, lifted: &Path) -> io::Result<()> {
    let lifted = open(lifted, FOLDER, Mode::empty())?;
    let (mut count, mut done) = (0_u64, 0_u64);
    let lift = |from: &OwnedFd, names: Vec<CString>, count: &mut u64| -> io::Result<()> {
        for name in names {
            renameat(from, name, &lifted, count.to_string())?;
            *count += 1;
        }
        Ok(())
    };
    lift(top, inner, &mut count)?;
    while done < count {
        let name = done.to_string();
        let folder = openat(&lifted, &name, FOLDER, Mode::empty())?;
        lift(&folder, clear(&folder)?, &mut count)?;
        unlinkat(&lifted, &name, AtFlags::REMOVEDIR)?;
        done += 1;
    }
    Ok(())
}

/// Removes from a folder all but the folders in it, which it names.
fn clear(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    let entries: Vec<_> = rustix::fs::Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in entries {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            }
            known => known == FileType::Directory,
        };
        if is_folder {
            folders.push(name.to_owned());
        } else {
            unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    Ok(folders)
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

    /// Deeper than descriptors or stack would carry: each folder holds the next, and a file.
    #[test]
    fn a_folder_is_removed_however_deep_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let written = Written::create(dir.path()).unwrap();
        let mut at = open(written.path(), FOLDER, Mode::empty()).unwrap();
        for _ in 0..2000 {
            let file = OFlags::CREATE | OFlags::WRONLY;
            openat(&at, "file", file, Mode::from(0o600)).unwrap();
            rustix::fs::mkdirat(&at, "0", Mode::from(0o700)).unwrap();
            rustix::fs::symlinkat("/etc", &at, "link").unwrap();
            at = openat(&at, "0", FOLDER, Mode::empty()).unwrap();
        }
        drop(written);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(Path::new("/etc").exists());
    }

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
