use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::Ran;

/// A command that has not ended yet. Dropped, it is killed.
pub struct Running {
    child: Child,
    messages: BufReader<ChildStderr>,
    told: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let messages = BufReader::new(child.stderr.take().unwrap());
        Running { child, messages, told: String::new() }
    }

    /// Waits for a message that contains these words.
    pub fn wait_for(&mut self, words: &str) {
        loop {
            let mut line = String::new();
            let read = self.messages.read_line(&mut line).unwrap();
            self.told.push_str(&line);
            assert!(read > 0, "it ended without `{words}`:\n{}", self.told);
            if line.contains(words) {
                return;
            }
        }
    }

    /// Sends it a signal, such as `INT`.
    pub fn signal(&self, name: &str) {
        let args = [format!("-{name}"), self.child.id().to_string()];
        assert!(Command::new("kill").args(args).status().unwrap().success(), "no signal {name}");
    }

    /// Waits for its end. A command that a signal ended has the code -1.
    pub fn end(mut self) -> Ran {
        self.messages.read_to_string(&mut self.told).unwrap();
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran { code, out, err: std::mem::take(&mut self.told) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, and then there is nobody to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
