//! Opens files and folders below a folder: never one that lies outside, never waiting.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Set for whatever is opened: without `NONBLOCK`, a named pipe that is put there after the gate
/// has looked would be waited for; a terminal does not become this process's.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// What is made can be read and written by others as the user's mask says.
const MADE: Mode = Mode::from_raw_mode(0o666);

/// Opens `path` below `root`. A link is followed where it leads to something below `root` as well,
/// and the last one only if `follow` says so.
///
/// # Errors
///
/// `EXDEV` if it leads out, `ELOOP` for a link that is not followed, and what the system says.
pub(crate) fn below(root: &File, path: &str, flags: OFlags, follow: bool) -> Result<File, Errno> {
    let flags = flags | ALWAYS | if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    #[cfg(target_os = "linux")]
    match beneath(root, path, flags) {
        // Where a system does not have the call, or a filter of system calls does not let it
        // through, each segment is opened for itself, and no link is followed.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return opened.map(File::from),
    }
    by_segments(root, path, flags)
}

#[cfg(target_os = "linux")]
fn beneath(root: &File, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let mode = if flags.contains(OFlags::CREATE) { MADE } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel gives up when something is renamed anywhere while it walks over `..`.
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..8 {
        opened = openat2(root, path, flags, mode, resolve);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    opened
}

/// Opens `path` below `root`, one segment at a time and never through a link.
///
/// # Errors
///
/// `EXDEV` if it leads out, `ELOOP` or `ENOTDIR` for a link, and what the system says.
pub(crate) fn by_segments(root: &File, path: &str, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | ALWAYS | OFlags::NOFOLLOW;
    if path.starts_with('/') {
        return Err(Errno::XDEV);
    }
    let folder = OFlags::DIRECTORY | OFlags::RDONLY | ALWAYS | OFlags::NOFOLLOW;
    // The folders on the way, so that `..` is the one that was come from.
    let mut way: Vec<OwnedFd> = Vec::new();
    let open = |way: &[OwnedFd], name: &str, flags| match way.last() {
        Some(last) => openat(last, name, flags, MADE),
        None => openat(root, name, flags, MADE),
    };
    let path = if path.is_empty() { return Err(Errno::NOENT) } else { path.trim_end_matches('/') };
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    for segment in folders.into_iter().flat_map(|folders| folders.split('/')) {
        match segment {
            "" | "." => {}
            ".." => drop(way.pop().ok_or(Errno::XDEV)?),
            name => way.push(open(&way, name, folder)?),
        }
    }
    if name == ".." {
        way.pop().ok_or(Errno::XDEV)?;
        return open(&way, ".", flags).map(File::from);
    }
    open(&way, name, flags).map(File::from)
}

/// Lets this process have as many open files as the system allows it, up to what all calls at once
/// can hold. Fewer are no fault here: a call that finds none left is told so.
pub(crate) fn raise_open_files(wanted: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    let possible = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_none_or(|current| current >= possible) {
        return;
    }
    limit.current = Some(possible);
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the number of open files could not be raised");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, File) {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/file"), "x").unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link("a/file", "inside");
        link("../secret", "out");
        link("/etc/passwd", "absolute");
        link("loop", "loop");
        link("../../secret", "a/up");
        let file = File::open(&root).unwrap();
        (outside, file)
    }

    type Open = fn(&File, &str) -> Result<File, Errno>;

    const WAYS: [Open; 2] = [
        |root, path| below(root, path, OFlags::RDONLY, true),
        |root, path| by_segments(root, path, OFlags::RDONLY),
    ];

    #[test]
    fn what_lies_below_is_opened() {
        let (_outside, root) = tree();
        for open in WAYS {
            for path in ["a/file", "./a/../a//file", "a/b/../file", ".", "a/b/..", "a/b/", "a/b/../.."] {
                assert!(open(&root, path).is_ok(), "{path}: {:?}", open(&root, path));
            }
        }
        assert!(below(&root, "inside", OFlags::RDONLY, true).is_ok());
    }

    #[test]
    fn what_lies_outside_is_not() {
        let (_outside, root) = tree();
        for open in WAYS {
            for path in [
                "..",
                "../secret",
                "a/../../secret",
                "/etc/passwd",
                "out",
                "absolute",
                "loop",
                "a/up",
                "a/b/../../..",
            ] {
                let found = open(&root, path).map(drop);
                assert!(matches!(found, Err(Errno::XDEV | Errno::LOOP)), "{path}: {found:?}");
            }
            for absent in ["", "none", "a/none/x"] {
                assert_eq!(open(&root, absent).map(drop), Err(Errno::NOENT), "{absent:?}");
            }
        }
        assert_eq!(below(&root, "inside", OFlags::RDONLY, false).map(drop), Err(Errno::LOOP));
        assert_eq!(by_segments(&root, "inside", OFlags::RDONLY).map(drop), Err(Errno::LOOP));
    }

    /// Each of these would wait for ever, were they opened as files are.
    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::from(0o600), 0)
            .unwrap();
        let root = File::open(folder.path()).unwrap();
        assert!(below(&root, "pipe", OFlags::RDONLY, true).is_ok());
        assert_eq!(below(&root, "pipe", OFlags::WRONLY, true).map(drop), Err(Errno::NXIO));
        assert_eq!(by_segments(&root, "pipe", OFlags::WRONLY).map(drop), Err(Errno::NXIO));
    }

    #[test]
    fn the_number_of_open_files_is_raised_and_never_lowered() {
        let before = getrlimit(Resource::Nofile);
        raise_open_files(1);
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
        let wanted =
            before.current.unwrap_or(u64::MAX).saturating_add(1).min(before.maximum.unwrap_or(u64::MAX));
        raise_open_files(wanted);
        assert!(getrlimit(Resource::Nofile).current.is_none_or(|now| now >= wanted));
    }
}
