//! Files by their digest, in `blobs/sha256/<hex>`.

use std::collections::HashSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_contract::Digest;
use checkrein_contract::id::is_relative_path;
use checkrein_contract::port::{Blobs, StorageError, Tree};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::failpoint;
use crate::scratch::{Scratch, prefix, sweep};
use crate::state::make;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The blobs of a state folder. A blob is written aside, brought to disk and renamed, so that a
/// name is either whole or not there.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    /// `blobs/sha256`: nothing but whole blobs.
    dir: PathBuf,
    /// `blobs/new`: what is being written; beside `dir`, so that a rename does not copy.
    new: PathBuf,
    scratch: Scratch,
    known: Arc<Known>,
}

/// What this process knows of blobs, so that it does the work once.
#[derive(Debug, Default)]
struct Known {
    /// They are on disk, name and all.
    durable: Mutex<HashSet<Digest>>,
    /// They were read and are what they should be.
    intact: Mutex<HashSet<Digest>>,
}

impl FileBlobs {
    pub(crate) fn open(dir: &Path, scratch: Scratch) -> Result<Self, StorageError> {
        let blobs = Self::existing(dir, scratch);
        make(&blobs.dir)?;
        make(&blobs.new)?;
        sweep(&blobs.new)?;
        Ok(blobs)
    }

    pub(crate) fn existing(dir: &Path, scratch: Scratch) -> Self {
        FileBlobs { dir: dir.join("sha256"), new: dir.join("new"), scratch, known: Arc::default() }
    }

    /// Where the blob with this digest is, if it is there.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(digest.hex())
    }

    /// Reads a blob through without keeping it, and says whether it is what it was.
    ///
    /// # Errors
    ///
    /// [`StorageError::Missing`] if it is not there, [`StorageError::Damaged`] if it is not what
    /// it was, and others if it cannot be read.
    pub fn check(&self, digest: &Digest) -> Result<(), StorageError> {
        let path = self.path(digest);
        let mut file = File::open(&path).map_err(|error| StorageError::of_io(&path, &error))?;
        let (found, _) = copy(&mut file, &mut io::sink()).map_err(|error| match error {
            CopyError::Read(error) | CopyError::Write(error) => StorageError::of_io(&path, &error),
        })?;
        same(&path, digest, &found)
    }

    /// Whether the blob is there already, whole and on disk. One that this process meets for the
    /// first time is read through: whoever asks has the right bytes, and can mend it now.
    fn is_there(&self, digest: &Digest, bytes: u64) -> Result<bool, StorageError> {
        if contains(&self.known.durable, digest) {
            return Ok(true);
        }
        // What cannot be read is written anew, as is what is not there; writing tells what is wrong.
        let there = fs::metadata(self.path(digest)).is_ok_and(|found| found.len() == bytes)
            && self.check(digest).is_ok();
        if there {
            insert(&self.known.intact, digest);
            // Another process may have renamed it and not yet brought the name to disk.
            self.make_durable(digest)?;
        }
        Ok(there)
    }

    fn make_durable(&self, digest: &Digest) -> Result<(), StorageError> {
        let folder = File::open(&self.dir).and_then(|folder| folder.sync_all());
        folder.map_err(|error| StorageError::of_io(&self.dir, &error))?;
        insert(&self.known.durable, digest);
        Ok(())
    }

    /// Stores what the reader gives, if it has the digest that is wanted, and says what it has.
    pub(crate) fn put_if(
        &self,
        reader: &mut dyn Read,
        wanted: Option<&Digest>,
    ) -> Result<(Digest, u64), StorageError> {
        let mut file = self.begin()?;
        failpoint::reach("blob", "before-write");
        let (digest, bytes) = copy(reader, &mut file).map_err(|error| error.at(&self.new))?;
        if wanted.is_none_or(|wanted| *wanted == digest) && !self.is_there(&digest, bytes)? {
            self.finish(file, &digest)?;
        }
        Ok((digest, bytes))
    }

    /// Writes the bytes with this digest to `to`, checked against it, and says how many they were.
    pub(crate) fn write_to(&self, digest: &Digest, to: &mut dyn Write) -> Result<u64, StorageError> {
        let path = self.path(digest);
        let mut file = File::open(&path).map_err(|error| StorageError::of_io(&path, &error))?;
        let (found, bytes) = copy(&mut file, to).map_err(|error| match error {
            CopyError::Read(error) => StorageError::of_io(&path, &error),
            CopyError::Write(error) => StorageError::of_io(Path::new("the file to export to"), &error),
        })?;
        same(&path, digest, &found)?;
        Ok(bytes)
    }

    /// A file that is removed when it is dropped.
    pub(crate) fn begin(&self) -> Result<NamedTempFile, StorageError> {
        let made = tempfile::Builder::new().prefix(prefix()).tempfile_in(&self.new);
        made.map_err(|error| StorageError::of_io(&self.new, &error))
    }

    fn finish(&self, file: NamedTempFile, digest: &Digest) -> Result<(), StorageError> {
        let path = self.path(digest);
        failpoint::reach("blob", "before-rename");
        // Trees hand out links to this very file: nobody may write it.
        file.as_file()
            .set_permissions(Permissions::from_mode(0o444))
            .and_then(|()| file.as_file().sync_all())
            .map_err(|error| StorageError::of_io(&path, &error))?;
        file.persist(&path).map_err(|error| StorageError::of_io(&path, &error.error))?;
        self.make_durable(digest)?;
        failpoint::reach("blob", "after-rename");
        Ok(())
    }

    /// Puts the blob at `to`, by a link where the file system has them, else by a copy.
    fn place(&self, digest: &Digest, to: &Path) -> Result<(), StorageError> {
        if !contains(&self.known.intact, digest) {
            self.check(digest)?;
            insert(&self.known.intact, digest);
        }
        let from = self.path(digest);
        if fs::hard_link(&from, to).is_ok() {
            return Ok(());
        }
        if fs::symlink_metadata(to).is_ok() {
            let detail = "two files of a tree have this path".to_owned();
            return Err(StorageError::Other { place: to.display().to_string(), detail });
        }
        fs::copy(&from, to).map_err(|error| StorageError::of_io(to, &error))?;
        fs::set_permissions(to, Permissions::from_mode(0o444))
            .map_err(|error| StorageError::of_io(to, &error))
    }
}

impl Blobs for FileBlobs {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        let digest = Digest::of(bytes);
        if self.is_there(&digest, bytes.len() as u64)? {
            return Ok(digest);
        }
        let mut file = self.begin()?;
        failpoint::reach("blob", "before-write");
        file.write_all(bytes).map_err(|error| StorageError::of_io(&self.new, &error))?;
        self.finish(file, &digest)?;
        Ok(digest)
    }

    fn put_from(&self, reader: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        self.put_if(reader, None)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        let path = self.path(digest);
        let bytes = fs::read(&path).map_err(|error| StorageError::of_io(&path, &error))?;
        same(&path, digest, &Digest::of(&bytes))?;
        Ok(bytes)
    }

    fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        let folder = self.scratch.folder()?;
        for (path, digest) in files {
            if !is_relative_path(path) {
                let detail = "not a relative path of ordinary segments".to_owned();
                return Err(StorageError::Other { place: format!("{path:?}"), detail });
            }
            let to = folder.path().join(path);
            if let Some(parent) = to.parent() {
                make(parent)?;
            }
            self.place(digest, &to)?;
        }
        Ok(Box::new(folder))
    }
}

fn same(path: &Path, digest: &Digest, found: &Digest) -> Result<(), StorageError> {
    if digest == found {
        return Ok(());
    }
    let detail = format!("its content has the digest {found}");
    Err(StorageError::Damaged { place: path.display().to_string(), detail })
}

/// On which side a copy failed.
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl CopyError {
    fn at(&self, place: &Path) -> StorageError {
        match self {
            CopyError::Write(error) => StorageError::of_io(place, error),
            // What is read from is not ours, and its fault not one of the state folder.
            CopyError::Read(error) => {
                let place = format!("what was to be read into {}", place.display());
                StorageError::Other { place, detail: error.to_string() }
            }
        }
    }
}

fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<(Digest, u64), CopyError> {
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return Ok((Digest::from_bytes(hasher.finalize().into()), bytes)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        hasher.update(&chunk[..read]);
        to.write_all(&chunk[..read]).map_err(CopyError::Write)?;
        bytes += read as u64;
    }
}

fn contains(set: &Mutex<HashSet<Digest>>, digest: &Digest) -> bool {
    set.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
}

fn insert(set: &Mutex<HashSet<Digest>>, digest: &Digest) {
    set.lock().unwrap_or_else(PoisonError::into_inner).insert(*digest);
}
