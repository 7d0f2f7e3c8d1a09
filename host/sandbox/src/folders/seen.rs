//! Records what a folder holds: the content of each file as a blob, and a list of them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::record::{FolderFile, FolderSeen};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::files::below;
use crate::text::{excerpt, one_line};

/// Bytes of a granted folder that are recorded; what is larger is left out of the record.
pub const FOLDER_BYTES: u64 = 64 << 20;
/// Files and folders of a granted folder that are recorded; of one with more, none is.
pub const FOLDER_FILES: usize = 4_096;

/// How long a folder may take to be read: its call waits for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a file must have been left alone to be known by its times: file systems count them in
/// steps, and a second change within one would not show.
const SETTLED: Duration = Duration::from_secs(2);
/// Files that are remembered.
const KNOWN_MOST: usize = 1 << 16;
/// Threads that read files and bring their contents to disk, which waits more than it computes.
const READERS: usize = 4;

/// The files that this process has hashed, so that those which nobody touched are not read again.
#[derive(Debug)]
pub(crate) struct Known {
    files: Mutex<HashMap<Stamp, Digest>>,
    settled: Duration,
}

/// What changes with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    place: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What stands in a folder.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Folder,
    File(Stamp),
}

/// What was found in a folder, by path.
#[derive(Debug, Default)]
struct Found {
    entries: BTreeMap<String, Entry>,
    bytes: u64,
    omitted: Omitted,
}

/// What of a folder is not in its record.
#[derive(Debug, Default)]
struct Omitted {
    count: u64,
    first: String,
    changed: u64,
}

/// Why a folder is not recorded.
enum NotSeen {
    LeftOut(String),
    Storage(StorageError),
}

/// Records a folder; `path` is the name that it was granted by. If it changes meanwhile, so be it:
/// the record says so where that shows.
///
/// # Errors
///
/// If it cannot be stored.
pub(super) fn see(
    path: &str,
    folder: &File,
    blobs: &dyn Blobs,
    known: &Known,
) -> Result<FolderSeen, StorageError> {
    let until = Instant::now() + PATIENCE;
    let listed = walk(folder, until).and_then(|found| list(folder, found, blobs, known, until));
    let (files, left_out) = match listed {
        Ok((files, omitted)) => {
            let list = serde_json::to_vec(&files)
                .map_err(|error| StorageError::Other { place: path.to_owned(), detail: error.to_string() })?;
            (Some(blobs.put(&list)?), omitted.told())
        }
        Err(NotSeen::LeftOut(why)) => (None, Some(why)),
        Err(NotSeen::Storage(error)) => return Err(error),
    };
    Ok(FolderSeen { path: path.to_owned(), files, left_out })
}

/// Looks at all that a guest could open, in every folder of the folder.
fn walk(folder: &File, until: Instant) -> Result<Found, NotSeen> {
    let mut found = Found::default();
    let root = read_folder(folder, ".").map_err(|errno| left_out(format!("it cannot be read: {errno}")))?;
    let mut waiting = vec![(String::new(), root)];
    while let Some((path, entries)) = waiting.pop() {
        for (name, type_) in entries {
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            in_time(until)?;
            match type_ {
                FileType::Directory => match read_folder(folder, &below) {
                    Ok(entries) => {
                        found.add(below.clone(), Entry::Folder)?;
                        waiting.push((below, entries));
                    }
                    Err(_) => found.omitted.add(&below),
                },
                // A link is what it leads to, for whoever opens it; out of the folder none leads.
                FileType::RegularFile | FileType::Symlink => match open(folder, &below) {
                    Ok((_, stamp)) => found.add(below, Entry::File(stamp))?,
                    Err(_) => found.omitted.add(&below),
                },
                _ => found.omitted.add(&below),
            }
        }
    }
    Ok(found)
}

/// The digests of what was found, each content stored.
fn list(
    folder: &File,
    found: Found,
    blobs: &dyn Blobs,
    known: &Known,
    until: Instant,
) -> Result<(Vec<FolderFile>, Omitted), NotSeen> {
    let Found { entries, mut omitted, .. } = found;
    let mut digests = HashMap::new();
    let mut unread = Vec::new();
    for (path, entry) in &entries {
        let Entry::File(stamp) = entry else { continue };
        match known.get(stamp) {
            Some(digest) => drop(digests.insert(path.as_str(), digest)),
            None => unread.push((path.as_str(), *stamp)),
        }
    }
    for (path, read) in read_all(folder, &unread, blobs, known, until)? {
        match read {
            Read::Whole(digest) => drop(digests.insert(path, digest)),
            Read::Changing(digest) => {
                omitted.changed += 1;
                digests.insert(path, digest);
            }
            Read::Not => omitted.add(path),
        }
    }
    let files = entries.iter().filter_map(|(path, entry)| {
        let digest = match entry {
            Entry::Folder => None,
            Entry::File(_) => Some(*digests.get(path.as_str())?),
        };
        Some(FolderFile { path: path.clone(), digest })
    });
    Ok((files.collect(), omitted))
}

/// How reading a file went.
enum Read {
    Whole(Digest),
    /// It changed before it was read, or while it was.
    Changing(Digest),
    Not,
}

type Unread<'a> = [(&'a str, Stamp)];

/// Reads files side by side: to bring each to disk takes its time.
fn read_all<'a>(
    folder: &File,
    unread: &Unread<'a>,
    blobs: &dyn Blobs,
    known: &Known,
    until: Instant,
) -> Result<Vec<(&'a str, Read)>, NotSeen> {
    let some = |files: &Unread<'a>| {
        let read = |(path, stamp): &(&'a str, Stamp)| {
            in_time(until)?;
            Ok((*path, read(folder, path, stamp, blobs, known)?))
        };
        files.iter().map(read).collect::<Result<Vec<_>, NotSeen>>()
    };
    let share = unread.len().div_ceil(READERS);
    if share <= 1 {
        return some(unread);
    }
    std::thread::scope(|threads| {
        let readers: Vec<_> = unread.chunks(share).map(|files| threads.spawn(move || some(files))).collect();
        let mut all = Vec::with_capacity(unread.len());
        for reader in readers {
            all.extend(reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

fn read(
    folder: &File,
    path: &str,
    listed: &Stamp,
    blobs: &dyn Blobs,
    known: &Known,
) -> Result<Read, NotSeen> {
    let began = SystemTime::now();
    let Ok((mut file, before)) = open(folder, path) else { return Ok(Read::Not) };
    let mut bytes = Vec::new();
    // No more than was counted: one that grows without end is not followed.
    let read = (&mut file).take(listed.bytes).read_to_end(&mut bytes);
    let Ok((_, after)) = read.map_err(|_| Errno::IO).and_then(|_| stamped(file)) else {
        return Ok(Read::Not);
    };
    let digest = blobs.put(&bytes).map_err(NotSeen::Storage)?;
    if before != *listed || after != *listed || bytes.len() as u64 != listed.bytes {
        return Ok(Read::Changing(digest));
    }
    known.keep(after, digest, began);
    Ok(Read::Whole(digest))
}

/// A file below the folder, if it is one.
fn open(folder: &File, path: &str) -> Result<(File, Stamp), Errno> {
    below(folder, path, OFlags::RDONLY, true).and_then(stamped)
}

fn stamped(file: File) -> Result<(File, Stamp), Errno> {
    let found = file.metadata().map_err(|_| Errno::IO)?;
    if !found.is_file() {
        return Err(Errno::ISDIR);
    }
    let stamp = Stamp {
        place: (found.dev(), found.ino()),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    };
    Ok((file, stamp))
}

/// The names in a folder that a guest can say, with what they stand for.
fn read_folder(folder: &File, path: &str) -> Result<Vec<(String, FileType)>, Errno> {
    let opened = below(folder, path, OFlags::DIRECTORY | OFlags::RDONLY, false)?;
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&opened)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let type_ = match entry.file_type() {
            FileType::Unknown => {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                FileType::from_raw_mode(rustix::fs::statat(&opened, name, flags)?.st_mode)
            }
            known => known,
        };
        entries.push((name.to_owned(), type_));
        // Enough to know that there are too many.
        if entries.len() > FOLDER_FILES {
            break;
        }
    }
    Ok(entries)
}

impl Found {
    fn add(&mut self, path: String, entry: Entry) -> Result<(), NotSeen> {
        if let Entry::File(stamp) = &entry {
            self.bytes = self.bytes.saturating_add(stamp.bytes);
        }
        self.entries.insert(path, entry);
        if self.bytes > FOLDER_BYTES {
            return Err(left_out(format!("larger than {}", LimitKey::Component.show(FOLDER_BYTES))));
        }
        if self.entries.len() > FOLDER_FILES {
            return Err(left_out(format!("more than {FOLDER_FILES} files and folders")));
        }
        Ok(())
    }
}

impl Omitted {
    fn add(&mut self, path: &str) {
        if self.count == 0 || path < self.first.as_str() {
            self.first = path.to_owned();
        }
        self.count += 1;
    }

    /// In words, if there is anything to say.
    fn told(&self) -> Option<String> {
        let mut told = Vec::new();
        if self.count > 0 {
            told.push(format!(
                "{} that are no files or folders, or cannot be read, are not in it, such as `{}`",
                self.count,
                one_line(&excerpt(&self.first))
            ));
        }
        if self.changed > 0 {
            told.push(format!("{} changed while it was read", self.changed));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn left_out(why: String) -> NotSeen {
    NotSeen::LeftOut(why)
}

fn in_time(until: Instant) -> Result<(), NotSeen> {
    if Instant::now() < until {
        return Ok(());
    }
    Err(left_out(format!("not read within {} s", PATIENCE.as_secs())))
}

impl Default for Known {
    fn default() -> Self {
        Known::settled_after(SETTLED)
    }
}

impl Known {
    /// One that goes by the times of files that were left alone so long.
    pub(super) fn settled_after(settled: Duration) -> Self {
        Known { files: Mutex::default(), settled }
    }

    fn get(&self, stamp: &Stamp) -> Option<Digest> {
        self.lock().get(stamp).copied()
    }

    /// Remembers a file that was read from then on.
    fn keep(&self, stamp: Stamp, digest: Digest, began: SystemTime) {
        let last = stamp.modified.max(stamp.changed);
        let before = began.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(self.settled);
        let before = (i64::try_from(before.as_secs()).unwrap_or(i64::MAX), i64::from(before.subsec_nanos()));
        if last >= before {
            return;
        }
        let mut files = self.lock();
        if files.len() >= KNOWN_MOST {
            files.clear();
        }
        files.insert(stamp, digest);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Stamp, Digest>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
