use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::{Place, Ran};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it waits before it looks again. There is no event to wait for: what is looked at belongs
/// to another process.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until this holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(LOOK);
    }
}

/// A command that has not ended yet, of which all that it prints is kept. Dropped, it is killed.
pub struct Job {
    child: Child,
    out: NamedTempFile,
    err: NamedTempFile,
}

impl Place {
    /// Starts `checkrein` in it with a command that was changed, and does not wait for its end.
    pub fn job(&self, args: &[&str], change: impl FnOnce(&mut Command)) -> Job {
        let mut command = self.command(args);
        change(&mut command);
        let (out, err) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        command.stdin(Stdio::null());
        command.stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        Job { child: command.spawn().unwrap(), out, err }
    }
}

impl Job {
    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub fn told(&self) -> String {
        read(&self.err)
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        read(&self.out)
    }

    /// Waits for a message that contains these words.
    pub fn wait_for(&mut self, words: &str) {
        until(words, || {
            let ended = self.child.try_wait().unwrap().is_some();
            let told = read(&self.err);
            let there = told.contains(words);
            assert!(there || !ended, "it ended without `{words}`:\n{told}\n{}", read(&self.out));
            there
        });
    }

    /// Sends it a signal, such as `INT`.
    pub fn signal(&self, name: &str) {
        let args = [format!("-{name}"), self.pid().to_string()];
        assert!(Command::new("kill").args(args).status().unwrap().success(), "no signal {name}");
    }

    /// Waits for its end, which must come.
    pub fn end(self) -> Ran {
        self.within(PATIENCE)
    }

    /// Waits for its end, which must come before this time is over.
    pub fn within(mut self, most: Duration) -> Ran {
        assert!(self.ends_within(most), "it goes on after {most:?}:\n{}", read(&self.err));
        self.ran()
    }

    /// Kills it after this time, if it has not ended by then.
    pub fn kill_after(mut self, time: Duration) -> Ran {
        if !self.ends_within(time) {
            // It may end this very moment, and then there is nobody to kill.
            drop(self.child.kill());
        }
        self.ran()
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            let Some(left) = time.checked_sub(begun.elapsed()) else { return false };
            std::thread::sleep(LOOK.min(left));
        }
    }

    /// A command that a signal ended has the code -1.
    fn ran(&mut self) -> Ran {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran { code, out: read(&self.out), err: read(&self.err) }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // It may have ended already, and then there is nobody to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read(file: &NamedTempFile) -> String {
    String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned()
}
