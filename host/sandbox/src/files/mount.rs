//! The folders of a call: its own three, and those that were granted.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use checkrein_contract::grant::{Access, Folder};
use checkrein_contract::port::{Setting, StorageError};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, open, statat};
use rustix::io::Errno;
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::parts::Reach;

/// A folder of the host, and where a guest sees it.
#[derive(Clone)]
pub(crate) struct Mount {
    /// Absolute, as the guest names it.
    pub(super) name: String,
    pub(super) dir: Dir,
    pub(super) access: Access,
    /// Whether it is the operator's, and not the host's own.
    pub(super) granted: bool,
}

/// Why a call does not get its folders.
#[derive(Debug)]
pub(crate) enum NotMounted {
    /// One of the host's own cannot be opened.
    Storage(StorageError),
    /// One that was granted cannot be given: the operator's to mend.
    Granted(String),
    /// The host lost the work.
    Lost(String),
}

/// What granted folders are held against: whoever could write it would grant himself what he likes,
/// and whoever could read some of it would know what he must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protected {
    /// A folder of the host's own: no granted folder may hold it, or lie in it.
    Folder(PathBuf),
    /// A file with secrets, or with where they are: no granted folder may hold it.
    Unread(PathBuf),
    /// A file that decides what runs, or with what: no granted folder that is writable may hold it.
    Unwritten(PathBuf),
}

/// Whether a granted folder can be given to a call: it is there, is a folder and no link to one,
/// and lies apart from what is protected. Each call asks the same again, for what lies on a disk
/// changes.
///
/// # Errors
///
/// Why not, in words that follow the name of the folder.
pub fn check_folder(grant: &Folder, protected: &[Protected]) -> Result<(), String> {
    open_granted(grant, protected).map(drop)
}

/// Opens the folders of the host's own that a part sees, and adds those that were granted. An
/// executor's own `/work` and granted folders are given.
///
/// # Errors
///
/// If one cannot be opened.
pub(crate) fn mounts(
    reach: Reach,
    setting: &Setting,
    work: Option<&Path>,
    granted: &[Mount],
) -> Result<Vec<Mount>, StorageError> {
    let work = match reach {
        Reach::Nothing => return Ok(Vec::new()),
        Reach::OwnWork => work.map(|path| (path, Access::ReadWrite)),
        Reach::GivenWork => setting.work.as_deref().map(|path| (path, Access::ReadOnly)),
    };
    let read_only = |path| (path, Access::ReadOnly);
    let own = [
        ("/in", setting.input.as_deref().map(read_only)),
        ("/artifacts", setting.artifacts.as_deref().map(read_only)),
        ("/work", work),
    ];
    let mut mounts = Vec::new();
    for (name, mount) in own {
        let Some((path, access)) = mount else { continue };
        let file = File::open(path).and_then(folder).map_err(|error| StorageError::of_io(path, &error))?;
        mounts.push(Mount::new(name, file, access, false));
    }
    // Verifications judge what the call left, and nothing else.
    if reach == Reach::OwnWork {
        mounts.extend_from_slice(granted);
    }
    Ok(mounts)
}

/// Opens a granted folder, held against what is protected.
///
/// # Errors
///
/// If it may not be given, with its grant.
pub(crate) fn mount_granted(grant: &Folder, protected: &[Protected]) -> Result<Mount, NotMounted> {
    let file = open_granted(grant, protected).map_err(|why| {
        NotMounted::Granted(format!("the folder of the grant `files = [\"{grant}\"]` {why}"))
    })?;
    Ok(Mount::new(&grant.path, file, grant.access, true))
}

/// Opens a copy of a granted folder, which the guest sees in its place.
///
/// # Errors
///
/// If the copy cannot be opened.
pub(crate) fn mount_copy(grant: &Folder, copy: &Path) -> Result<Mount, StorageError> {
    let file = File::open(copy).and_then(folder).map_err(|error| StorageError::of_io(copy, &error))?;
    Ok(Mount::new(&grant.path, file, grant.access, true))
}

fn folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() { Ok(file) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

impl Mount {
    /// The folder itself.
    pub(crate) fn folder(&self) -> Arc<File> {
        Arc::clone(&self.dir.dir)
    }

    /// Whether a guest may write in it.
    pub(crate) fn is_writable(&self) -> bool {
        self.access == Access::ReadWrite
    }

    /// Where the guest sees it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn new(name: &str, file: File, access: Access, granted: bool) -> Self {
        let (permissions, mode) = match access {
            Access::ReadOnly => (FsPerms::ReadOnly, OpenMode::READ),
            Access::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
        };
        // The host's own folders hold plain files on a disk of this machine: doing the work on the
        // spot is several times faster. What a granted folder is made of only the operator knows;
        // there it gets a thread of its own, so that a call ends in time whatever it waits for.
        let dir = Dir::new(file, permissions, mode, !granted);
        Mount { name: name.to_owned(), dir, access, granted }
    }
}

fn open_granted(grant: &Folder, protected: &[Protected]) -> Result<File, String> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(&grant.path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => "is not there: make it, or take it out of the grant".to_owned(),
        Errno::LOOP | Errno::NOTDIR => "is no folder, or a link: name the folder itself".to_owned(),
        other => format!("cannot be opened: {other}"),
    })?;
    check_apart(grant, &opened, protected)?;
    Ok(File::from(opened))
}

/// Whether the opened folder of a grant lies apart from all that is protected.
fn check_apart(grant: &Folder, opened: &OwnedFd, protected: &[Protected]) -> Result<(), String> {
    let above =
        lineage(opened, Path::new(".")).map_err(|errno| format!("cannot be followed upwards: {errno}"))?;
    for one in protected {
        let (path, what) = match one {
            Protected::Folder(path) => (path, "where the sandbox keeps its own files"),
            Protected::Unread(path) => (path, "which no component may read"),
            Protected::Unwritten(_) if grant.access == Access::ReadOnly => continue,
            Protected::Unwritten(path) => (path, "which no component may write"),
        };
        let unclear = |errno: Errno| format!("cannot be held against {}: {errno}", path.display());
        let held_by = holders(path).map_err(unclear)?;
        let holds = above.first().is_some_and(|own| held_by.contains(own));
        let is_folder = matches!(one, Protected::Folder(_));
        let own = if is_folder { reachable(path).map_err(unclear)? } else { Vec::new() };
        let lies_in = own.first().is_some_and(|own| above.contains(own));
        if holds || lies_in {
            let how = if is_folder { "holds, or lies in," } else { "holds" };
            return Err(format!("{how} {}, {what}: grant a folder apart from it", path.display()));
        }
    }
    Ok(())
}

/// The folders in which another could be put in the place of what is at this path: all above it, as
/// it is written and as it is once links are followed. It need not be there: those that are count.
fn holders(path: &Path) -> Result<Vec<Identity>, Errno> {
    let mut found = Vec::new();
    for path in [std::path::absolute(path), path.canonicalize()].into_iter().flatten() {
        let mut before = PathBuf::new();
        for component in path.components() {
            // The name of the next one stands in this folder, which may be a link to another.
            if matches!(component, Component::Normal(_)) {
                found.extend(reachable(&before)?);
            }
            before.push(component);
        }
    }
    Ok(found)
}

/// A folder and all those above it; none if it is not there, or out of this user's reach, so that
/// no guest of his reaches it either.
fn reachable(path: &Path) -> Result<Vec<Identity>, Errno> {
    match lineage(CWD, path) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(Vec::new()),
        found => found,
    }
}

/// Device and number: what a folder is, whatever path led to it.
type Identity = (u64, u64);

/// The folder itself and all those above it. They are looked at and not opened: not every folder
/// on the way up can be read.
fn lineage(from: impl AsFd, path: &Path) -> Result<Vec<Identity>, Errno> {
    let mut found: Vec<Identity> = Vec::new();
    let mut path = path.to_owned();
    loop {
        let at = identity(&statat(&from, &path, AtFlags::empty())?);
        // The root is its own parent.
        if found.last() == Some(&at) {
            return Ok(found);
        }
        found.push(at);
        path.push("..");
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ between systems")]
fn identity(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}
