//! The folders of a call: its own three, and those that were granted.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use checkrein_contract::grant::{Access, Folder};
use checkrein_contract::port::{Setting, StorageError};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, open, statat};
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
}

/// Opens the folders that a part sees. `work` is an executor's own; `places` are folders of the
/// sandbox that no grant may reach.
///
/// # Errors
///
/// If one cannot be opened, or a granted one may not be given.
pub(crate) fn mounts(
    reach: Reach,
    setting: &Setting,
    work: Option<&Path>,
    places: &[&Path],
) -> Result<Vec<Mount>, NotMounted> {
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
        let file = File::open(path).and_then(folder).map_err(|error| StorageError::of_io(path, &error));
        mounts.push(Mount::new(name, file.map_err(NotMounted::Storage)?, access, false));
    }
    // Verifications judge what the call left, and nothing else.
    let granted: &[Folder] = if reach == Reach::OwnWork { &setting.granted.files } else { &[] };
    for grant in granted {
        let file = open_granted(grant, places).map_err(|why| {
            NotMounted::Granted(format!("the folder of the grant `files = [\"{grant}\"]` {why}"))
        })?;
        mounts.push(Mount::new(&grant.path, file, grant.access, true));
    }
    Ok(mounts)
}

fn folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() { Ok(file) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

impl Mount {
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

fn open_granted(grant: &Folder, places: &[&Path]) -> Result<File, String> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(&grant.path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => "is not there: make it, or take it out of the grant".to_owned(),
        Errno::LOOP | Errno::NOTDIR => "is no folder, or a link: name the folder itself".to_owned(),
        other => format!("cannot be opened: {other}"),
    })?;
    for place in places {
        let place_fd = open(*place, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| format!("cannot be held against {}: {errno}", place.display()))?;
        let overlaps =
            overlap(&opened, &place_fd).map_err(|errno| format!("cannot be followed upwards: {errno}"));
        if overlaps? {
            return Err(format!(
                "holds, or lies in, {}, where the sandbox keeps its own files: grant a folder apart from it",
                place.display()
            ));
        }
    }
    Ok(File::from(opened))
}

/// Device and number: what a folder is, whatever path led to it.
type Identity = (u64, u64);

/// Whether one of two folders lies in the other.
fn overlap(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    let (above_one, above_other) = (lineage(one)?, lineage(other)?);
    Ok(above_one.first().is_some_and(|own| above_other.contains(own))
        || above_other.first().is_some_and(|own| above_one.contains(own)))
}

/// The folder itself and all those above it. They are looked at and not opened: not every folder
/// on the way up can be read.
fn lineage(folder: &OwnedFd) -> Result<Vec<Identity>, Errno> {
    let mut found: Vec<Identity> = Vec::new();
    let mut path = ".".to_owned();
    loop {
        let at = identity(&statat(folder, &path, AtFlags::empty())?);
        // The root is its own parent.
        if found.last() == Some(&at) {
            return Ok(found);
        }
        found.push(at);
        path.push_str("/..");
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types differ between systems")]
fn identity(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}
