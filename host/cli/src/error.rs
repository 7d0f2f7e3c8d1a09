//! The one place that turns errors into output: message, hint, exit code.

use std::process::ExitCode;

use checkrein_contract::id::RunId;
use checkrein_contract::port::StorageError;
use checkrein_contract::problem::{Fault, Faults};
use checkrein_harness::DriveError;
use serde_json::{Value, json};

use crate::output;
use crate::report::escape::{shell, visible, visible_lines};

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Mistakes in input or configuration.
    #[error("{0}")]
    Input(Faults),
    /// A component does not load.
    #[error("{0}")]
    Load(Faults),
    /// A mistake in what was asked for, without a file.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// A check found a difference.
    #[error("{0}")]
    Difference(String),
    /// A component was to be built, and could not be.
    #[error("{message}")]
    Build {
        /// What is wrong, in the compiler's own words.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Disk or database.
    #[error("{0}")]
    Storage(String),
    /// A fault of ours.
    #[error("{0}")]
    Ours(String),
}

/// The exit codes of the command line.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// A mistake in input or configuration.
    pub const INPUT: u8 = 1;
    /// A mistake in usage.
    pub const USAGE: u8 = 2;
    /// The run ended without its goal.
    pub const NOT_REACHED: u8 = 3;
    /// The run waits for a person.
    pub const WAITS: u8 = 4;
    /// A component does not load.
    pub const LOAD: u8 = 5;
    /// A check found a difference.
    pub const DIFFERENCE: u8 = 6;
    /// A fault of ours.
    pub const OURS: u8 = 70;
    /// Disk or database.
    pub const STORAGE: u8 = 74;
    /// Interrupted, or cancelled.
    pub const INTERRUPTED: u8 = 130;
}

impl CliError {
    /// A mistake in what was asked for.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), hint: hint.into() }
    }

    /// A file that cannot be read.
    pub fn unreadable(file: &std::path::Path, error: &std::io::Error) -> Self {
        CliError::Input(Faults(vec![fault(
            &file.display().to_string(),
            "file",
            "a file that can be read",
            &error.to_string(),
            "",
        )]))
    }

    /// Components that do not load; if it was for want of disk, that is what it is.
    pub fn load(faults: Vec<Fault>) -> Self {
        match faults.iter().find(|fault| fault.stage == checkrein_sandbox::STORAGE) {
            Some(fault) => CliError::Storage(format!("{}: {}", fault.file, fault.found)),
            None => CliError::Load(Faults(faults)),
        }
    }

    fn code(&self) -> (&'static str, u8) {
        match self {
            CliError::Input(_) => ("input", exit::INPUT),
            CliError::Load(_) => ("load", exit::LOAD),
            CliError::Usage { .. } => ("usage", exit::INPUT),
            CliError::Difference(_) => ("difference", exit::DIFFERENCE),
            CliError::Build { .. } => ("build", exit::INPUT),
            CliError::Storage(_) => ("storage", exit::STORAGE),
            CliError::Ours(_) => ("fault", exit::OURS),
        }
    }

    fn faults(&self) -> &[Fault] {
        match self {
            CliError::Input(faults) | CliError::Load(faults) => &faults.0,
            _ => &[],
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            CliError::Usage { hint, .. } | CliError::Build { hint, .. } => {
                Some(hint.as_str()).filter(|hint| !hint.is_empty())
            }
            _ => None,
        }
    }

    /// Tells the user, and says how the process ends.
    pub fn report(&self, json: bool) -> ExitCode {
        let (_, exit) = self.code();
        if json {
            output::json(&self.json());
        } else {
            for line in self.lines() {
                output::message(&line);
            }
        }
        ExitCode::from(exit)
    }

    fn json(&self) -> Value {
        json!({
            "schema": "checkrein/error@1",
            "code": self.code().0,
            "message": self.to_string(),
            "hint": self.hint(),
            "faults": self.faults(),
        })
    }

    /// For a person: one line each. Only a compiler's words keep their lines.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = match self {
            CliError::Input(faults) | CliError::Load(faults) => {
                faults.0.iter().map(|fault| format!("error: {}", visible(&fault.to_string()))).collect()
            }
            CliError::Build { message, .. } => {
                vec![format!("error: {}", visible_lines(message))]
            }
            other => vec![format!("error: {}", visible(&other.to_string()))],
        };
        lines.extend(self.hint().map(|hint| format!("hint: {}", visible(hint))));
        lines
    }
}

/// The mistakes of both, if both have some.
///
/// # Errors
///
/// Those of either.
pub fn both<A, B>(one: Result<A, CliError>, two: Result<B, CliError>) -> Result<(A, B), CliError> {
    match (one, two) {
        (Ok(one), Ok(two)) => Ok((one, two)),
        (Err(CliError::Input(mut faults)), Err(CliError::Input(more))) => {
            faults.0.extend(more.0);
            Err(CliError::Input(faults))
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// A fault of a whole file.
pub fn fault(file: &str, stage: &str, expected: &str, found: &str, mend: &str) -> Fault {
    Fault {
        file: file.to_owned(),
        place: String::new(),
        stage: stage.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
        mend: mend.to_owned(),
    }
}

impl From<StorageError> for CliError {
    fn from(error: StorageError) -> Self {
        match &error {
            // Nothing is wrong with the disk: somebody else goes on with the run.
            StorageError::Fenced { run, .. } => CliError::usage(error.to_string(), watch(run)),
            _ => CliError::Storage(error.to_string()),
        }
    }
}

/// What to do about a run that another process drives.
pub fn watch(run: &RunId) -> String {
    format!("watch it with: checkrein trace {} --follow", shell(run.as_str()))
}

impl From<DriveError> for CliError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::Storage(error) => error.into(),
            other => CliError::Ours(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\nerror: b\u{202e}\u{200b}\u{e0041}";

    fn every_kind() -> Vec<CliError> {
        let text = || HOSTILE.to_owned();
        let faults = || Faults(vec![fault(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)]);
        vec![
            CliError::Input(faults()),
            CliError::Load(faults()),
            CliError::usage(text(), text()),
            CliError::Difference(text()),
            CliError::Build { message: text(), hint: text() },
            CliError::Storage(text()),
            CliError::Ours(text()),
        ]
    }

    #[test]
    fn no_text_reaches_the_terminal_as_it_came() {
        for error in every_kind() {
            let lines = error.lines();
            let hidden = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{200b}\u{e0041}".contains(c);
            assert!(!lines.concat().contains(hidden), "{lines:?}");
            let errors = lines.iter().filter(|line| line.starts_with("error:"));
            assert_eq!(errors.count(), 1, "{lines:?}");
            if !matches!(error, CliError::Build { .. }) {
                assert!(!lines.concat().contains('\n'), "{lines:?}");
            }
        }
    }

    #[test]
    fn a_run_that_another_process_drives_is_no_fault_of_the_disk() {
        let error = CliError::from(StorageError::Fenced { run: "r".into(), holder: "process 7".to_owned() });
        assert_eq!(error.code(), ("usage", exit::INPUT));
        assert!(error.to_string().contains("process 7"), "{error}");
        assert_eq!(error.hint(), Some("watch it with: checkrein trace r --follow"));
        let full = CliError::from(StorageError::Full { place: "d".to_owned() });
        assert_eq!(full.code(), ("storage", exit::STORAGE));
    }

    #[test]
    fn a_hint_is_in_the_json_too() {
        assert_eq!(CliError::usage("m", "do this").json()["hint"], "do this");
        assert_eq!(CliError::usage("m", "").json()["hint"], Value::Null);
        assert_eq!(CliError::Ours("m".to_owned()).json()["hint"], Value::Null);
    }
}
