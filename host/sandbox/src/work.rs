//! The `/work` of one executor: made empty, read once when the executor has returned, removed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use checkrein_contract::event::StoredArtifact;
use checkrein_contract::interface::Artifact;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::port::{Blobs, StorageError};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::json;

use crate::accept::{Acceptor, Refused};
use crate::files::by_segments;
use crate::scratch::Written;
use crate::stop::Stop;

/// Why the files of an outcome were not stored.
#[derive(Debug)]
pub(crate) enum NotStored {
    /// The component's doing.
    Refused(Refused),
    /// The disk's.
    Storage(StorageError),
}

impl From<Refused> for NotStored {
    fn from(refused: Refused) -> Self {
        NotStored::Refused(refused)
    }
}

impl From<StorageError> for NotStored {
    fn from(error: StorageError) -> Self {
        NotStored::Storage(error)
    }
}

/// An empty folder under `scratch`, removed with all that is in it when it is dropped.
pub(crate) fn create(scratch: &Path) -> Result<Written, StorageError> {
    Written::create(scratch)
}

/// Stores the files that an outcome names.
pub(crate) fn store(
    work: &Path,
    named: &[Artifact],
    acceptor: &Acceptor<'_>,
    blobs: &dyn Blobs,
) -> Result<Vec<StoredArtifact>, NotStored> {
    let mut left = Allowance::new(acceptor.limits);
    let mut stored = Vec::with_capacity(named.len());
    for (at, artifact) in named.iter().enumerate() {
        let file = match open(work, &artifact.path) {
            Ok(file) => file,
            Err(NotOpened::Storage(error)) => return Err(error.into()),
            Err(NotOpened::NoFile(why)) => {
                let place = format!("/artifacts/{at}/path");
                let expected = "a regular file under `/work`, no link".into();
                acceptor.refuse(
                    "artifact-file",
                    &place,
                    expected,
                    json!(format!("{}: {why}", artifact.path)),
                )?;
                continue;
            }
        };
        let length =
            file.metadata().map_err(|error| StorageError::of_io(&work.join(&artifact.path), &error))?.len();
        left.take(length)?;
        // The length was counted; what is added while it is read does not come along.
        let (digest, bytes) = blobs.put_from(&mut file.take(length))?;
        stored.push(StoredArtifact {
            path: artifact.path.clone(),
            title: artifact.title.clone(),
            media_type: artifact.media_type.clone(),
            digest,
            bytes,
        });
    }
    Ok(stored)
}

/// Bytes of `/work` that may still be stored.
struct Allowance {
    limit: u64,
    used: u64,
}

impl Allowance {
    fn new(limits: &Limits) -> Self {
        Allowance { limit: limits.get(LimitKey::WorkBytes), used: 0 }
    }

    fn take(&mut self, bytes: u64) -> Result<(), NotStored> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.limit {
            let stop = Stop::at(LimitKey::WorkBytes, self.limit, self.used);
            return Err(NotStored::Refused(stop.into()));
        }
        Ok(())
    }
}

/// Why a file of an outcome was not opened.
#[derive(Debug)]
enum NotOpened {
    /// The component named something that is no file of its own.
    NoFile(&'static str),
    /// The disk failed.
    Storage(StorageError),
}

/// Opens a file below `root`, one segment at a time and never through a link. `path` was checked:
/// ordinary segments only.
fn open(root: &Path, path: &str) -> Result<File, NotOpened> {
    let storage = |error: io::Error| NotOpened::Storage(StorageError::of_io(&root.join(path), &error));
    let explain = |errno| no_file(errno).map_or_else(|| storage(errno.into()), NotOpened::NoFile);
    // The folder is the host's own: whatever is wrong with it is not the component's doing.
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags, Mode::empty())
        .map_err(|errno| NotOpened::Storage(StorageError::of_io(root, &errno.into())))?;
    let file = by_segments(&File::from(folder), path, OFlags::RDONLY).map_err(explain)?;
    let metadata = file.metadata().map_err(storage)?;
    if !metadata.is_file() {
        return Err(NotOpened::NoFile("not a regular file"));
    }
    // No guest can give a file a second name: whoever did can change it, or it is not the call's.
    if metadata.nlink() > 1 {
        return Err(NotOpened::NoFile("a file that has another name as well"));
    }
    Ok(file)
}

/// What a name that a component gave can be, instead of a file; `None` if the disk is at fault.
fn no_file(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::NOENT => Some("not there"),
        Errno::LOOP | Errno::NOTDIR => Some("a link, or below something that is no folder"),
        Errno::NXIO => Some("not a regular file"),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => Some("no name that a file can have"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_opened_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("a/b"), "x").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.path().join(name)).unwrap();
        link("/etc/passwd", "out");
        link("a", "folder");
        link("a/b", "file");
        assert!(open(root.path(), "a/b").is_ok());
        let outside = tempfile::NamedTempFile::new_in(root.path().parent().unwrap()).unwrap();
        std::fs::hard_link(outside.path(), root.path().join("hard")).unwrap();
        for bad in ["hard", "out", "folder/b", "file", "a", "absent", "a/b/c", &"x".repeat(300)] {
            assert!(matches!(open(root.path(), bad), Err(NotOpened::NoFile(_))), "{bad}");
        }
    }

    #[test]
    fn a_work_that_is_gone_is_a_fault_of_the_disk() {
        let root = tempfile::tempdir().unwrap();
        let gone = root.path().join("gone");
        assert!(matches!(open(&gone, "a"), Err(NotOpened::Storage(StorageError::Missing { .. }))));
        assert!(matches!(create(&gone), Err(StorageError::Missing { .. })));
        let file = root.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(create(&file), Err(StorageError::NotWritable { .. })));
    }

    #[test]
    fn what_the_system_lacks_is_not_put_down_to_the_component() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::ACCESS, Errno::NOMEM, Errno::NOSPC] {
            assert!(no_file(errno).is_none(), "{errno}");
        }
    }
}
