//! What is recorded of a folder, and what is not read again.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::port::{Blobs, Tree};
use checkrein_contract::record::FolderFile;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::testing::MemoryBlobs;

/// Counts what is stored.
#[derive(Default)]
struct Counting {
    blobs: MemoryBlobs,
    puts: AtomicUsize,
}

impl Blobs for Counting {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        self.blobs.put(bytes)
    }

    fn put_from(&self, reader: &mut dyn std::io::Read) -> Result<(Digest, u64), StorageError> {
        self.blobs.put_from(reader)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        self.blobs.get(digest)
    }

    fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        self.blobs.tree(files)
    }
}

impl Counting {
    /// What was stored since it was last asked.
    fn stored(&self) -> usize {
        self.puts.swap(0, Ordering::Relaxed)
    }
}

fn see(folder: &Path, blobs: &dyn Blobs, known: &Known) -> FolderSeen {
    seen::see("/granted", &File::open(folder).unwrap(), blobs, known).unwrap()
}

fn listed(seen: &FolderSeen, blobs: &dyn Blobs) -> Vec<FolderFile> {
    serde_json::from_slice(&blobs.get(&seen.files.unwrap()).unwrap()).unwrap()
}

#[test]
fn files_are_listed_by_path_and_links_are_what_they_lead_to() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("folder");
    std::fs::create_dir_all(folder.join("b/deep")).unwrap();
    std::fs::create_dir(folder.join("a")).unwrap();
    std::fs::write(folder.join("b/deep/file"), "one").unwrap();
    std::fs::write(folder.join("b.txt"), "two").unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink("../b.txt", folder.join("b/inside")).unwrap();
    // None of these can be opened by a guest, or none is a file.
    symlink("../secret", folder.join("out")).unwrap();
    symlink("/etc/passwd", folder.join("absolute")).unwrap();
    symlink("b", folder.join("to-folder")).unwrap();
    symlink("loop", folder.join("loop")).unwrap();
    mknodat(CWD, folder.join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let blobs = MemoryBlobs::default();
    let seen = see(&folder, &blobs, &Known::default());
    let list: Vec<_> = listed(&seen, &blobs)
        .into_iter()
        .map(|file| (file.path, file.digest.map(|digest| blobs.get(&digest).unwrap())))
        .collect();
    let file = |path: &str, text: &str| (path.to_owned(), Some(text.as_bytes().to_vec()));
    let dir = |path: &str| (path.to_owned(), None);
    assert_eq!(
        list,
        [
            dir("a"),
            dir("b"),
            file("b.txt", "two"),
            dir("b/deep"),
            file("b/deep/file", "one"),
            file("b/inside", "two"),
        ]
    );
    let left_out = seen.left_out.unwrap();
    assert!(
        left_out.starts_with("5 that are no files or folders") && left_out.ends_with("`absolute`"),
        "{left_out}"
    );
}

#[test]
fn the_record_of_a_folder_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Counting::default();
    let left_out = || {
        let seen = see(folder.path(), &blobs, &Known::default());
        assert_eq!((seen.files, blobs.stored()), (None, 0));
        seen.left_out.unwrap()
    };
    let large = File::create(folder.path().join("large")).unwrap();
    large.set_len(FOLDER_BYTES + 1).unwrap();
    assert_eq!(left_out(), "larger than 64 MiB");
    std::fs::remove_file(folder.path().join("large")).unwrap();
    for number in 0..FOLDER_FILES {
        File::create(folder.path().join(number.to_string())).unwrap();
    }
    let seen = see(folder.path(), &blobs, &Known::default());
    assert_eq!((listed(&seen, &blobs).len(), seen.left_out), (FOLDER_FILES, None));
    blobs.stored();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    assert_eq!(left_out(), "more than 4096 files and folders");
}

#[test]
fn files_that_nobody_touched_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["a", "b", "c"] {
        std::fs::write(path(name), name).unwrap();
    }
    let known = Known::settled_after(Duration::ZERO);
    let blobs = Counting::default();
    let first = see(folder.path(), &blobs, &known);
    // The three, and the list of them.
    assert_eq!(blobs.stored(), 4);
    assert_eq!(see(folder.path(), &blobs, &known), first);
    assert_eq!(blobs.stored(), 1);
    // One of the same length, with its times put back.
    let times = std::fs::metadata(path("b")).unwrap().modified().unwrap();
    std::fs::write(path("b"), "x").unwrap();
    File::options().write(true).open(path("b")).unwrap().set_modified(times).unwrap();
    let second = see(folder.path(), &blobs, &known);
    assert_eq!(blobs.stored(), 2);
    let digests = |seen: &FolderSeen| -> Vec<_> {
        listed(seen, &blobs).into_iter().map(|file| file.digest.unwrap()).collect()
    };
    assert_eq!(digests(&second), ["a", "x", "c"].map(Digest::of));
    // What was touched a moment ago may be touched again without its times telling.
    let careful = Known::default();
    see(folder.path(), &blobs, &careful);
    blobs.stored();
    see(folder.path(), &blobs, &careful);
    assert_eq!(blobs.stored(), 4);
}

/// Blobs as the store writes them: aside, to disk, by their name, to disk.
struct OnDisk(tempfile::TempDir);

impl Blobs for OnDisk {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        use std::io::Write as _;
        let digest = Digest::of(bytes);
        let to = self.0.path().join(digest.hex());
        if !to.exists() {
            let mut file = tempfile::NamedTempFile::new_in(self.0.path()).unwrap();
            file.write_all(bytes).unwrap();
            file.as_file().sync_all().unwrap();
            file.persist(to).unwrap();
            File::open(self.0.path()).unwrap().sync_all().unwrap();
        }
        Ok(digest)
    }

    fn put_from(&self, _: &mut dyn std::io::Read) -> Result<(Digest, u64), StorageError> {
        unreachable!("files are read whole")
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        Ok(std::fs::read(self.0.path().join(digest.hex())).unwrap())
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        unreachable!("none is asked for")
    }
}

/// `cargo test -- --ignored --nocapture cost_of_a_recorded_folder`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
fn cost_of_a_recorded_folder() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1000u32 {
        std::fs::write(folder.path().join(number.to_string()), number.to_le_bytes().repeat(1024)).unwrap();
    }
    let (memory, disk) = (MemoryBlobs::default(), OnDisk(tempfile::tempdir().unwrap()));
    for (name, blobs) in [("in memory", &memory as &dyn Blobs), ("on disk", &disk)] {
        let known = Known::settled_after(Duration::ZERO);
        for round in ["first", "again", "again"] {
            let began = Instant::now();
            see(folder.path(), blobs, &known);
            eprintln!("1,000 files of 4 KiB, blobs {name}, {round}: {:.1?}", began.elapsed());
        }
    }
}
