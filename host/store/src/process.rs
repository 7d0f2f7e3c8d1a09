//! Which process this is, and whether another one still is. No clock is asked: a process is told
//! from a later one with its number by when it started, as counted since the machine did.

use std::fs;
use std::io;

use checkrein_contract::Digest;
use rustix::process::{Pid, test_kill_process};
use rustix::system::uname;

/// What tells a process from every other of this machine, now and before, and this machine from others.
/// What the system does not say is `None`: then nothing can be concluded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its number.
    pub(crate) pid: i64,
    /// When it started, in ticks since the machine did.
    pub(crate) started: Option<i64>,
    /// In which space its number counts: containers have their own.
    pub(crate) space: Option<String>,
    /// Since which start of the machine.
    pub(crate) boot: Option<String>,
    /// On which machine: see [`machine`].
    pub(crate) host: Option<String>,
}

/// Which machine this is: a digest over its number, if it has one, and its name. Either alone may be
/// that of another as well: containers of one image share a number, and names such as `localhost` are
/// everywhere. The number is nobody else's business, so it does not leave as it is.
fn machine() -> String {
    let number = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let text = format!("checkrein\n{}\n{}", number.trim(), uname().nodename().to_string_lossy());
    Digest::of(text).hex()[..HOST].to_owned()
}

/// How many hexadecimal digits stand for a machine.
const HOST: usize = 16;

/// What can be said of a process from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is there.
    Alive,
    /// It is not, and never will be again.
    Dead,
    /// It cannot be seen from here.
    Unseen,
}

impl Identity {
    /// This process.
    pub(crate) fn own() -> Self {
        let pid = i64::from(std::process::id());
        // Where `/proc` is that of another space, it shows this process under another number.
        let stat = Stat::read("self").ok().flatten().filter(|stat| stat.pid == pid);
        let space = fs::read_link("/proc/self/ns/pid").ok().filter(|_| stat.is_some());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Identity {
            pid,
            started: stat.map(|stat| stat.started),
            space: space.map(|space| space.to_string_lossy().into_owned()),
            boot: boot.map(|boot| boot.trim().to_owned()),
            host: Some(machine()),
        }
    }

    /// Where its number counts, as one text: the space, and the machine after an `@`. A binary that
    /// knows of no machine takes it for a space that it does not see into, and concludes nothing.
    pub(crate) fn place(&self) -> Option<String> {
        match (&self.space, &self.host) {
            (space, Some(host)) => Some(format!("{}@{host}", space.as_deref().unwrap_or_default())),
            (space, None) => space.clone(),
        }
    }

    /// The same with what [`place`](Self::place) gave.
    pub(crate) fn at(self, place: Option<&str>) -> Self {
        let (space, host) = match place.map(|place| place.rsplit_once('@').unwrap_or((place, ""))) {
            Some((space, host)) => (space, host),
            None => ("", ""),
        };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Identity { space: some(space), host: some(host), ..self }
    }

    /// All but its number, as part of the name of a file.
    pub(crate) fn mark(&self) -> String {
        let started = self.started.map(|started| started.to_string()).unwrap_or_default();
        let space = self.space.as_deref().and_then(inner).unwrap_or_default();
        let some = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{started}.{space}.{}.{}", some(&self.boot), some(&self.host))
    }

    /// The process with this number whose [`mark`](Self::mark) this is. Of what is no mark nothing is
    /// known.
    pub(crate) fn of_mark(pid: i64, mark: &str) -> Self {
        let parts: Vec<&str> = mark.split('.').collect();
        let [started, space, boot, host] = parts[..] else {
            return Identity { pid, started: None, space: None, boot: None, host: None };
        };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let space = some(space).map(|space| format!("{SPACE}{space}]"));
        Identity { pid, started: started.parse().ok(), space, boot: some(boot), host: some(host) }
    }

    /// For people.
    pub(crate) fn name(&self) -> String {
        format!("process {} on {}", self.pid, uname().nodename().to_string_lossy())
    }

    /// Whether `other` still is, as seen from here.
    pub(crate) fn sees(&self, other: &Identity) -> Life {
        match (&self.boot, &other.boot) {
            // This machine has started anew since; of another one its start says nothing.
            (Some(here), Some(there)) if here != there && self.is_beside(other) => return Life::Dead,
            (Some(here), Some(there)) if here != there => return Life::Unseen,
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => return Life::Unseen,
        }
        if self.space.is_none() || self.space != other.space {
            return Life::Unseen;
        }
        match (Stat::read(&other.pid.to_string()), other.started) {
            (Ok(Some(stat)), Some(_)) if stat.ended => Life::Dead,
            (Ok(Some(stat)), Some(started)) if stat.started != started => Life::Dead,
            (Ok(Some(_)), Some(_)) => Life::Alive,
            (Ok(None), _) if is_gone(other.pid) => Life::Dead,
            _ => Life::Unseen,
        }
    }

    /// Whether both are of the same machine, as far as that can be shown.
    fn is_beside(&self, other: &Identity) -> bool {
        self.host.is_some() && self.host == other.host
    }
}

/// What the system calls a space of process numbers begins with this.
const SPACE: &str = "pid:[";

/// What the system calls a space, without what is around its number.
fn inner(space: &str) -> Option<&str> {
    space.strip_prefix(SPACE)?.strip_suffix(']')
}

/// Whether there is no process with this number. `/proc` may hide those of other users.
fn is_gone(pid: i64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// What `/proc/<pid>/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: i64,
    /// It was killed, and its parent has not asked for it yet: it does nothing any more.
    ended: bool,
    started: i64,
}

impl Stat {
    /// `None` if there is no such process.
    fn read(name: &str) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{name}/stat")) {
            Ok(bytes) => Ok(Some(Self::parse(&bytes).ok_or(io::ErrorKind::InvalidData)?)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        // The second field is the name of the program, which may hold spaces and brackets.
        let (pid, _) = text.split_once(' ')?;
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        // Field 22 of all; the state was field 3.
        let started = fields.nth(18)?.parse().ok()?;
        Some(Stat { pid: pid.parse().ok()?, ended: matches!(state, "Z" | "X" | "x"), started })
    }
}

fn is_absence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_may_be_named_anything() {
        let rest = "S 1 2 3 0 -1 4194304 117 0 0 0 0 0 0 0 20 0 1 0 2595496 3133440 386";
        for name in ["(cat)", "(a b)", "(x) Z 1 (y)", "())"] {
            let stat = Stat::parse(format!("17 {name} {rest}\n").as_bytes()).unwrap();
            assert_eq!(stat, Stat { pid: 17, ended: false, started: 2_595_496 });
        }
        assert_eq!(Stat::parse(b"17 (cat) S 1 2"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_process_is_seen_until_it_ends() {
        let own = Identity::own();
        assert_eq!(own.sees(&own), Life::Alive);
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let name = child.id().to_string();
        let other = Identity {
            pid: i64::from(child.id()),
            started: Stat::read(&name).unwrap().map(|stat| stat.started),
            ..own.clone()
        };
        assert_eq!(own.sees(&other), Life::Alive);
        let later = Identity { started: other.started.map(|started| started - 1), ..other.clone() };
        assert_eq!(own.sees(&later), Life::Dead, "another process has its number now");
        child.kill().unwrap();
        // Killed and not yet waited for.
        while own.sees(&other) == Life::Alive {
            std::thread::yield_now();
        }
        assert_eq!(own.sees(&other), Life::Dead);
        child.wait().unwrap();
        assert_eq!(own.sees(&other), Life::Dead);
    }

    #[test]
    fn nothing_is_concluded_from_what_cannot_be_seen() {
        let own = Identity::own();
        let elsewhere = |change: fn(&mut Identity)| {
            let mut other = own.clone();
            change(&mut other);
            own.sees(&other)
        };
        assert_eq!(elsewhere(|other| other.space = Some("pid:[1]".to_owned())), Life::Unseen);
        assert_eq!(elsewhere(|other| other.space = None), Life::Unseen);
        assert_eq!(elsewhere(|other| other.boot = None), Life::Unseen);
        assert_eq!(elsewhere(|other| other.started = None), Life::Unseen);
    }

    #[test]
    fn only_the_same_machine_can_have_started_anew() {
        let own = Identity::own();
        let before = Identity { boot: Some("before".to_owned()), ..own.clone() };
        assert_eq!(own.sees(&before), Life::Dead);
        for host in [Some("another".to_owned()), None] {
            let other = Identity { host, ..before.clone() };
            assert_eq!((own.sees(&other), other.sees(&own)), (Life::Unseen, Life::Unseen), "{other:?}");
        }
    }

    #[test]
    fn where_it_counts_is_read_back() {
        let own = Identity::own();
        assert_eq!(Identity::of_mark(own.pid, &own.mark()), own);
        for (space, host) in [(true, true), (true, false), (false, true), (false, false)] {
            let one = Identity {
                space: own.space.clone().filter(|_| space),
                host: own.host.clone().filter(|_| host),
                ..own.clone()
            };
            assert_eq!(own.clone().at(one.place().as_deref()), one);
        }
    }
}
