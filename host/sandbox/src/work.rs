//! The `/work` of one executor: made empty, read once when the executor has returned, removed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use checkrein_contract::event::StoredArtifact;
use checkrein_contract::interface::Artifact;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::port::Blobs;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use serde_json::json;
use tempfile::TempDir;

use crate::accept::{Acceptor, Refused};
use crate::stop::Stop;

/// Why the files of an outcome were not stored.
#[derive(Debug)]
pub(crate) enum NotStored {
    /// The component's doing.
    Refused(Refused),
    /// The host's.
    Fault(String),
}

impl From<Refused> for NotStored {
    fn from(refused: Refused) -> Self {
        NotStored::Refused(refused)
    }
}

/// An empty folder under `scratch`.
pub(crate) fn create(scratch: &Path) -> Result<TempDir, String> {
    tempfile::Builder::new()
        .prefix("work-")
        .tempdir_in(scratch)
        .map_err(|error| format!("no folder for `/work` could be made in `{}`: {error}", scratch.display()))
}

/// Removes it with all that is in it. What stays behind is told, and harms no later call: each has
/// a folder of its own.
pub(crate) fn remove(work: TempDir) {
    let path = work.path().to_owned();
    if let Err(error) = work.close() {
        tracing::warn!(path = %path.display(), %error, "a `/work` could not be removed");
    }
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
            Err(why) => {
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
        let length = file.metadata().map_err(|error| NotStored::Fault(error.to_string()))?.len();
        left.take(length)?;
        // The length was counted; what is added while it is read does not come along.
        let (digest, bytes) =
            blobs.put_from(&mut file.take(length)).map_err(|error| NotStored::Fault(error.to_string()))?;
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

/// Opens a file below `root`, one segment at a time and never through a link. `path` was checked:
/// ordinary segments only.
fn open(root: &Path, path: &str) -> Result<File, &'static str> {
    let mut at = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(explain)?;
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    for folder in folders.iter().flat_map(|folders| folders.split('/')) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = openat(&at, folder, flags, Mode::empty()).map_err(explain)?;
    }
    // Without NONBLOCK, a named pipe would be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&at, name, flags, Mode::empty()).map_err(explain)?);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err("not a regular file"),
        Err(_) => Err("cannot be read"),
    }
}

fn explain(error: Errno) -> &'static str {
    match error {
        Errno::NOENT => "not there",
        Errno::LOOP | Errno::NOTDIR => "a link, or below something that is no folder",
        _ => "cannot be opened",
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
        for bad in ["out", "folder/b", "file", "a", "absent", "a/b/c"] {
            assert!(open(root.path(), bad).is_err(), "{bad}");
        }
    }
}
