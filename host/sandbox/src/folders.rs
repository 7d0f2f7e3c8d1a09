//! What granted folders hold: noted when a call begins, so that the call can be executed again where
//! they are not, and laid out again from that note.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_contract::digest::Digest;
use checkrein_contract::id::is_relative_path;
use checkrein_contract::port::{Blobs, Setting, StorageError};
use checkrein_contract::record::{FolderFile, FolderSeen, Record, Wall};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};

use crate::cache::Cache;
use crate::files::{Mount, NotMounted, Protected, by_segments, mount_copy, mount_granted};
use crate::recorder::Recorder;
use crate::sandbox::Host;
use crate::scratch::Written;

/// Bytes of one folder that are noted; of a larger one it is noted that it is.
const BYTES_MAX: u64 = 64 << 20;

/// Files and folders in one folder that are noted.
const FILES_MAX: usize = 4_096;

/// Files whose digest is remembered.
const KNOWN_MAX: usize = 100_000;

/// The digests of files that were read before, for as long as they are the same: device, number,
/// size, and both times to the nanosecond.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<Mark, Digest>>);

type Mark = (u64, u64, u64, (i64, i64), (i64, i64));

/// The granted folders of one call, as its guest sees them.
pub(crate) struct Given {
    pub(crate) mounts: Vec<Mount>,
    /// Copies, removed when the call is over.
    pub(crate) copies: Vec<Written>,
}

impl Given {
    /// No folder at all.
    pub(crate) fn none() -> Self {
        Given { mounts: Vec::new(), copies: Vec::new() }
    }
}

/// Opens the granted folders of a call and notes what they hold; for one that is executed again,
/// copies of what was noted then take their place, and the folders are not touched.
pub(crate) async fn give(host: &Host, setting: &Setting, recorder: &Recorder) -> Result<Given, NotMounted> {
    if setting.granted.files.is_empty() {
        return Ok(Given::none());
    }
    let (disk, setting, recorder) = (Disk::of(host), setting.clone(), recorder.clone());
    let given = tokio::task::spawn_blocking(move || match &setting.recorded {
        Some(record) => lay_out(&disk, &setting, record, &recorder).map_err(NotMounted::Storage),
        None => note(&disk, &setting, &recorder),
    });
    given.await.unwrap_or_else(|error| Err(NotMounted::Granted(format!("was not read: {error}"))))
}

/// What of the host it needs, on a thread of its own: reading files blocks.
struct Disk {
    scratch: PathBuf,
    /// What no granted folder may reach.
    protected: Vec<Protected>,
    blobs: Arc<dyn Blobs>,
    known: Arc<Known>,
}

impl Disk {
    fn of(host: &Host) -> Self {
        let cache = host.cache.as_ref().map(Cache::folder);
        let places = std::iter::once(host.scratch.as_path()).chain(cache);
        let places = places.map(|place| Protected::Folder(place.to_path_buf()));
        Disk {
            scratch: host.scratch.clone(),
            protected: places.chain(host.protected.iter().cloned()).collect(),
            blobs: Arc::clone(&host.blobs),
            known: Arc::clone(&host.known),
        }
    }
}

fn note(disk: &Disk, setting: &Setting, recorder: &Recorder) -> Result<Given, NotMounted> {
    let mut given = Given::none();
    for grant in &setting.granted.files {
        let mount = mount_granted(grant, &disk.protected)?;
        let folder = mount.folder();
        let (files, left_out) = match held(&folder, &disk.known, &*disk.blobs) {
            Ok(files) => {
                let list = serde_json::to_vec(&files).unwrap_or_default();
                (Some(disk.blobs.put(&list).map_err(NotMounted::Storage)?), None)
            }
            Err(NotNoted::Why(why)) => (None, Some(why)),
            Err(NotNoted::Storage(error)) => return Err(NotMounted::Storage(error)),
        };
        recorder.saw(FolderSeen { path: grant.path.clone(), files, left_out });
        given.mounts.push(mount);
    }
    Ok(given)
}

enum NotNoted {
    /// It cannot be noted, which keeps no call from being made.
    Why(String),
    /// Our own disk failed.
    Storage(StorageError),
}

/// All that is in a folder, in the order of paths; links and what is no file are left out, as guests
/// do not see them.
fn held(root: &File, known: &Known, blobs: &dyn Blobs) -> Result<Vec<FolderFile>, NotNoted> {
    let why = |error: rustix::io::Errno| NotNoted::Why(format!("not readable: {error}"));
    let (mut files, mut todo, mut bytes) = (Vec::new(), vec![String::new()], 0);
    while let Some(path) = todo.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match path.as_str() {
            "" => root.try_clone().map_err(|error| NotNoted::Why(format!("not readable: {error}")))?,
            below => by_segments(root, below, flags).map_err(why)?,
        };
        for entry in Dir::read_from(&folder).map_err(why)? {
            let entry = entry.map_err(why)?;
            let Ok(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if matches!(name.as_str(), "." | "..") {
                continue;
            }
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let found = statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW).map_err(why)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => {
                    todo.push(below.clone());
                    files.push(FolderFile { path: below, digest: None });
                }
                FileType::RegularFile => {
                    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
                    let file = by_segments(root, &below, flags).map_err(why)?;
                    let digest = digest_of(file, &mut bytes, known, blobs)?;
                    files.push(FolderFile { path: below, digest: Some(digest) });
                }
                _ => continue,
            }
            if files.len() > FILES_MAX {
                return Err(NotNoted::Why(format!("more than {FILES_MAX} files")));
            }
        }
    }
    files.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(files)
}

fn digest_of(file: File, bytes: &mut u64, known: &Known, blobs: &dyn Blobs) -> Result<Digest, NotNoted> {
    let found = file.metadata().map_err(|error| NotNoted::Why(format!("not readable: {error}")))?;
    *bytes += found.len();
    if *bytes > BYTES_MAX {
        return Err(NotNoted::Why(format!("larger than {} MiB", BYTES_MAX >> 20)));
    }
    let times = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    let mark = (found.dev(), found.ino(), found.len(), times.0, times.1);
    let mut marks = known.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = marks.get(&mark) {
        return Ok(*digest);
    }
    let length = found.len();
    let (digest, _) = blobs.put_from(&mut std::io::Read::take(file, length)).map_err(NotNoted::Storage)?;
    if marks.len() >= KNOWN_MAX {
        marks.clear();
    }
    marks.insert(mark, digest);
    Ok(digest)
}

fn lay_out(
    disk: &Disk,
    setting: &Setting,
    record: &Record,
    recorder: &Recorder,
) -> Result<Given, StorageError> {
    let mut given = Given::none();
    for grant in &setting.granted.files {
        let copy = Written::create(&disk.scratch)?;
        let seen = record.folders.iter().find(|seen| seen.path == grant.path);
        match seen.and_then(|seen| seen.files) {
            Some(list) => fill(copy.path(), &list, &*disk.blobs)?,
            None => {
                let why = seen.and_then(|seen| seen.left_out.clone());
                let why = why.unwrap_or_else(|| "the log does not say".to_owned());
                let what = format!("{}: what it held was not recorded ({why}), so it is empty", grant.path);
                recorder.deny(Wall::File, what, None);
            }
        }
        if let Some(seen) = seen {
            recorder.saw(seen.clone());
        }
        given.mounts.push(mount_copy(grant, copy.path())?);
        given.copies.push(copy);
    }
    Ok(given)
}

/// Writes what a list names into an empty folder. The list may be a stranger's.
fn fill(folder: &Path, list: &Digest, blobs: &dyn Blobs) -> Result<(), StorageError> {
    let damaged = |detail: String| StorageError::Damaged { place: format!("the list {list}"), detail };
    let files: Vec<FolderFile> =
        serde_json::from_slice(&blobs.get(list)?).map_err(|error| damaged(error.to_string()))?;
    for file in files {
        if !is_relative_path(&file.path) {
            return Err(damaged(format!("{:?} is no path below a folder", file.path)));
        }
        let place = folder.join(&file.path);
        let io = |error: std::io::Error| StorageError::of_io(&place, &error);
        match file.digest {
            None => std::fs::create_dir_all(&place).map_err(io)?,
            Some(digest) => {
                if let Some(above) = place.parent() {
                    std::fs::create_dir_all(above).map_err(io)?;
                }
                std::fs::write(&place, blobs.get(&digest)?).map_err(io)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryBlobs as Memory;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("b/c")).unwrap();
        std::fs::write(folder.path().join("b/c/two.txt"), "two").unwrap();
        std::fs::write(folder.path().join("one.txt"), "one").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        folder
    }

    fn noted(folder: &Path, known: &Known, blobs: &Memory) -> Result<Vec<FolderFile>, String> {
        held(&File::open(folder).unwrap(), known, blobs).map_err(|why| match why {
            NotNoted::Why(why) => why,
            NotNoted::Storage(error) => error.to_string(),
        })
    }

    #[test]
    fn what_a_folder_holds_is_noted_and_laid_out_again() {
        let (folder, blobs, known) = (tree(), Memory::default(), Known::default());
        let files = noted(folder.path(), &known, &blobs).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["b", "b/c", "b/c/two.txt", "one.txt"]);
        let list = blobs.put(&serde_json::to_vec(&files).unwrap()).unwrap();
        let copy = tempfile::tempdir().unwrap();
        fill(copy.path(), &list, &blobs).unwrap();
        assert_eq!(noted(copy.path(), &Known::default(), &blobs).unwrap(), files);
    }

    #[test]
    fn a_file_that_changed_is_read_again() {
        let (folder, blobs, known) = (tree(), Memory::default(), Known::default());
        let before = noted(folder.path(), &known, &blobs).unwrap();
        assert_eq!(noted(folder.path(), &known, &blobs).unwrap(), before);
        std::fs::write(folder.path().join("one.txt"), "another").unwrap();
        assert_ne!(noted(folder.path(), &known, &blobs).unwrap(), before);
    }

    #[test]
    fn a_folder_that_is_too_large_is_left_out() {
        let (folder, blobs, known) = (tree(), Memory::default(), Known::default());
        let large = File::create(folder.path().join("large")).unwrap();
        large.set_len(BYTES_MAX + 1).unwrap();
        assert!(noted(folder.path(), &known, &blobs).unwrap_err().contains("larger than 64 MiB"));
        std::fs::remove_file(folder.path().join("large")).unwrap();
        for n in 0..=FILES_MAX {
            std::fs::create_dir(folder.path().join(format!("d{n}"))).unwrap();
        }
        assert!(noted(folder.path(), &known, &blobs).unwrap_err().contains("more than 4096 files"));
    }

    #[test]
    fn no_list_leads_out_of_the_copy() {
        let blobs = Memory::default();
        let file = blobs.put(b"x").unwrap();
        for path in ["../evil", "/etc/evil", "a/../../evil", ""] {
            let list = serde_json::json!([{ "path": path, "digest": file }]).to_string();
            let list = blobs.put(list.as_bytes()).unwrap();
            let copy = tempfile::tempdir().unwrap();
            assert!(matches!(fill(copy.path(), &list, &blobs), Err(StorageError::Damaged { .. })), "{path}");
        }
    }
}
