//! What this process holds: descriptors, threads, children, memory, files of calls. An attack is
//! over when all of it is as it was.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use checkrein_contract::units::show_bytes;

/// How much more memory may be resident than before: what allocators and the pool keep.
const GROWTH: u64 = 64 << 20;
/// What a call may take at its peak beyond its own memories.
const PEAK: u64 = 96 << 20;
/// How long something may take to be given back: idle threads of a pool end after a second.
const SETTLE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// What is held at a moment.
#[derive(Debug)]
pub(crate) struct Held {
    /// What each descriptor is open on, and how often.
    descriptors: BTreeMap<String, usize>,
    /// How many threads have each name.
    threads: BTreeMap<String, usize>,
    pub(crate) children: usize,
    pub(crate) resident: u64,
    scratch: Vec<String>,
}

impl Held {
    /// What is held now.
    ///
    /// # Errors
    ///
    /// Where this system does not tell.
    pub(crate) fn now(scratch: &Path) -> io::Result<Self> {
        let mut descriptors = BTreeMap::new();
        for entry in std::fs::read_dir("/proc/self/fd")? {
            // One may be closed while the list is read, as the list itself is.
            if let Ok(target) = std::fs::read_link(entry?.path()) {
                let target = target.display().to_string();
                // A pipe to a worker that was started anew is `pipe:[N]` with another number.
                let kind = target.split_once(":[").map_or(target.as_str(), |(kind, _)| kind);
                *descriptors.entry(kind.to_owned()).or_default() += 1;
            }
        }
        let mut scratch: Vec<String> = std::fs::read_dir(scratch)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        scratch.sort_unstable();
        let (threads, children) = threads()?;
        Ok(Held { descriptors, threads, children, resident: status("VmRSS:")?, scratch })
    }

    /// How many descriptors are open.
    #[cfg(test)]
    pub(crate) fn descriptors(&self) -> usize {
        self.descriptors.values().sum()
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.values().sum()
    }

    /// What is held now and was not held then, after a moment to give it back.
    pub(crate) async fn left_over(&self, scratch: &Path) -> io::Result<Vec<String>> {
        let began = Instant::now();
        loop {
            let left = self.more(&Held::now(scratch)?);
            if left.is_empty() || began.elapsed() > SETTLE {
                return Ok(left);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What is held now and was not held then.
    pub(crate) fn more(&self, now: &Held) -> Vec<String> {
        let mut left = Vec::new();
        for (target, count) in &now.descriptors {
            let before = self.descriptors.get(target).copied().unwrap_or(0);
            if *count > before {
                left.push(format!("{} descriptors of {target}", count - before));
            }
        }
        if now.threads() > self.threads() {
            let new = now.threads.iter().filter(|(name, count)| self.threads.get(*name) < Some(count));
            let names: Vec<&str> = new.map(|(name, _)| name.as_str()).collect();
            left.push(format!("{} threads ({})", now.threads() - self.threads(), names.join(", ")));
        }
        if now.children > self.children {
            left.push(format!("{} processes", now.children - self.children));
        }
        let new = now.scratch.iter().filter(|name| !self.scratch.contains(name));
        left.extend(new.map(|name| format!("the folder {name}")));
        let grown = now.resident.saturating_sub(self.resident);
        if grown > GROWTH {
            left.push(format!("{} of memory", show_bytes(grown)));
        }
        left
    }

    /// What was taken at the peak since [`forget_peak`], if it is more than a call may with these
    /// bytes of memories.
    pub(crate) fn peak(&self, memories: u64) -> io::Result<Option<String>> {
        let taken = status("VmHWM:")?.saturating_sub(self.resident);
        let told = || format!("{} of memory at its peak, not kept", show_bytes(taken));
        Ok((taken > memories.saturating_add(PEAK)).then(told))
    }
}

/// From now on the peak is counted anew.
pub(crate) fn forget_peak() -> io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")
}

/// The threads of this process by name, and how many children it has.
fn threads() -> io::Result<(BTreeMap<String, usize>, usize)> {
    let (mut threads, mut children) = (BTreeMap::new(), 0);
    for entry in std::fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        // A thread may end while the list is read: then it is none that stays.
        let Ok(name) = std::fs::read_to_string(path.join("comm")) else { continue };
        *threads.entry(name.trim().to_owned()).or_default() += 1;
        // Kernels may be built without this list.
        let list = std::fs::read_to_string(path.join("children")).unwrap_or_default();
        children += list.split_whitespace().count();
    }
    Ok((threads, children))
}

/// Bytes of a line of the process's status.
fn status(line: &str) -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let found = status.lines().find_map(|one| one.strip_prefix(line));
    let kib =
        found.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other(format!("no {line} in /proc/self/status")))
}
