//! What a worker gives up before it reads any input. Each step that does not hold ends the worker,
//! except Landlock where the kernel has none: that is told, and `doctor` shows it.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};

use super::Role;

/// The walls around a worker process, as it found them after it had put them up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardening {
    /// The version of Landlock in force; `None` where the kernel has none, so that nothing but the
    /// user's own rights keeps the worker from files and network.
    pub landlock: Option<u32>,
    /// Whether Landlock refuses it every TCP connection, too (version 4 and up).
    pub no_tcp: bool,
    /// The only folders that it can read, and nothing that it can write or run.
    pub reads: Vec<String>,
    /// Whether no program that it might start could gain rights.
    pub no_new_privileges: bool,
    /// Whether other processes of this user are kept from tracing it, and no core is written.
    pub not_dumpable: bool,
    /// Whether the kernel ends it with its host.
    pub ends_with_host: bool,
    /// Descriptors besides the three pipes that it was given, and closed.
    pub closed: u64,
    /// Variables of its environment: 0.
    pub variables: u64,
    /// Resource limits by name; bytes, seconds or descriptors.
    pub limits: BTreeMap<String, u64>,
}

/// The newest version of Landlock whose rules are asked for.
const LANDLOCK: ABI = ABI::V6;

/// Seconds of processor time between the signal that ends a worker, and that says why, and the one
/// that nothing survives.
const CPU_SLACK: u64 = 5;

/// Puts the walls up. No thread may run yet: Landlock holds for the thread that asks for it, and
/// for those that it starts. `cpu` is how many seconds of processor time it may use.
pub(super) fn harden(role: Role, reads: Option<&Path>, cpu: Option<u64>) -> Result<Hardening, String> {
    let closed = close_others()?;
    end_with_host()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("it cannot be kept from being traced: {error}"))?;
    let mut limits = BTreeMap::new();
    for (name, resource, value) in limits_of(role) {
        limits.insert(name.to_owned(), limit(name, resource, value, value)?);
    }
    if let Some(seconds) = cpu {
        // Were the two the same, Linux would send the signal of the second, which says nothing.
        let value = limit("cpu", Resource::Cpu, seconds, seconds.saturating_add(CPU_SLACK))?;
        limits.insert("cpu".to_owned(), value);
    }
    let mut hardening = Hardening {
        closed,
        limits,
        not_dumpable: true,
        ends_with_host: true,
        variables: std::env::vars_os().count() as u64,
        ..Hardening::default()
    };
    restrict(&mut hardening, reads)?;
    Ok(hardening)
}

/// What a worker of this role may use.
fn limits_of(role: Role) -> Vec<(&'static str, Resource, u64)> {
    const GIB: u64 = 1 << 30;
    match role {
        Role::Compile => vec![
            ("core", Resource::Core, 0),
            ("file-size", Resource::Fsize, 0),
            ("files", Resource::Nofile, 64),
            // The compiler reserves nothing that it does not use; whoever runs guests does.
            ("address-space", Resource::As, 4 * GIB),
        ],
        Role::Verify => vec![
            ("core", Resource::Core, 0),
            // Not 0: the engine keeps a component's static memory in a file that has no name.
            ("file-size", Resource::Fsize, GIB / 4),
            // What a guest may hold open.
            ("files", Resource::Nofile, 1024),
            ("data", Resource::Data, 4 * GIB),
        ],
    }
}

/// Sets a limit, which may be lower already, and says what holds. `most` is what it could be raised
/// to again.
fn limit(name: &str, resource: Resource, value: u64, most: u64) -> Result<u64, String> {
    let before = rustix::process::getrlimit(resource);
    let most = before.maximum.map_or(most, |before| before.min(most));
    let value = value.min(most);
    rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(most) })
        .map_err(|error| format!("the limit `{name}` cannot be set to {value}: {error}"))?;
    Ok(value)
}

/// Closes every descriptor but the three pipes, whoever left it open.
fn close_others() -> Result<u64, String> {
    let entries = std::fs::read_dir("/proc/self/fd")
        .map_err(|error| format!("/proc/self/fd cannot be read: {error}"))?;
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut closed = 0;
    // The descriptor of the listing itself is closed by now, and is no longer there.
    for number in numbers.into_iter().filter(|number| *number > 2) {
        if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok() {
            close(number);
            closed += 1;
        }
    }
    Ok(closed)
}

#[expect(unsafe_code, reason = "nobody owns what another process left open for this one")]
fn close(number: i32) {
    // SAFETY: this is the first thing that the process does. No thread and no object of it holds a
    // descriptor past the three standard ones.
    unsafe { rustix::io::close(number) };
}

fn end_with_host() -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("it cannot be made to end with its host: {error}"))
}

/// Gives up files, programs, network and signals, as far as the kernel's Landlock goes.
fn restrict(hardening: &mut Hardening, reads: Option<&Path>) -> Result<(), String> {
    let refused = |error: &dyn std::fmt::Display| format!("Landlock: {error}");
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(|error| refused(&error))?;
    let rules = match reads {
        Some(folder) => {
            let folder = PathFd::new(folder).map_err(|error| refused(&error))?;
            let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
            rules.add_rule(PathBeneath::new(folder, read)).map_err(|error| refused(&error))?
        }
        None => rules,
    };
    let status = rules.restrict_self().map_err(|error| refused(&error))?;
    if !status.no_new_privs {
        return Err("it cannot be kept from gaining rights (PR_SET_NO_NEW_PRIVS)".to_owned());
    }
    hardening.no_new_privileges = true;
    hardening.reads = reads.iter().map(|folder| folder.display().to_string()).collect();
    if let LandlockStatus::Available { effective_abi, .. } = status.landlock {
        hardening.landlock = Some(effective_abi as u32);
        hardening.no_tcp = effective_abi >= ABI::V4;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    /// Runs this on a thread of its own, which Landlock then holds for alone.
    fn restricted<T: Send>(reads: Option<&Path>, then: impl FnOnce(Hardening) -> T + Send) -> T {
        let run = move || {
            let mut hardening = Hardening::default();
            restrict(&mut hardening, reads).unwrap();
            then(hardening)
        };
        std::thread::scope(|threads| threads.spawn(run).join().unwrap())
    }

    #[test]
    fn reads_outside_of_its_folder_fail() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let (inside, secret) = (folder.path().join("given"), outside.path().join("key"));
        std::fs::write(&inside, "given").unwrap();
        std::fs::write(&secret, "secret").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        restricted(Some(folder.path()), |walls| {
            assert!(walls.no_new_privileges);
            if walls.landlock.is_none() {
                // Nothing to show here: `doctor` says so, too.
                return;
            }
            let refused = ErrorKind::PermissionDenied;
            assert_eq!(std::fs::read_to_string(&inside).unwrap(), "given");
            assert_eq!(std::fs::read(&secret).unwrap_err().kind(), refused);
            assert_eq!(std::fs::read(&link).unwrap_err().kind(), refused);
            assert_eq!(std::fs::read("/etc/passwd").unwrap_err().kind(), refused);
            assert_eq!(std::fs::write(folder.path().join("new"), "x").unwrap_err().kind(), refused);
            assert_eq!(std::fs::remove_file(&inside).unwrap_err().kind(), refused);
            assert_eq!(Command::new("/bin/true").status().unwrap_err().kind(), refused);
            if walls.no_tcp {
                assert_eq!(TcpStream::connect(address).unwrap_err().kind(), refused);
                assert_eq!(TcpListener::bind("127.0.0.1:0").unwrap_err().kind(), refused);
            }
        });
        // The others are free.
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    }

    #[test]
    fn a_compiling_worker_reads_nothing() {
        restricted(None, |walls| {
            assert!(walls.reads.is_empty());
            assert!(walls.landlock.is_none() || std::fs::read("/etc/passwd").is_err());
        });
    }
}
