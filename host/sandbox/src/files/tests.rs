//! Guests that try at files what they must not, and the wall that each of them meets.

mod artifacts;
mod escape;
mod granted;
mod held;
mod links;
mod names;
mod quota;
mod replayed;
mod seen;

use std::path::Path;

use checkrein_contract::grant::{Access, Folder};
use checkrein_contract::interface::Call;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::port::{End, Execution, Guests as _, Ran, Setting};
use checkrein_contract::record::{Denial, Wall};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::Sandbox;
use crate::testing::guest::files::{self as guests, CODES};
use crate::testing::{Guest, ready, sandbox};

/// A sandbox, and folders of the host beside those of the sandbox.
struct World {
    sandbox: Sandbox,
    _sandbox_folder: TempDir,
    outside: TempDir,
}

impl World {
    fn new() -> Self {
        let (sandbox, folder) = sandbox();
        let outside = tempfile::tempdir().unwrap();
        for name in ["in", "artifacts", "granted"] {
            std::fs::create_dir(outside.path().join(name)).unwrap();
            std::fs::write(outside.path().join(name).join("given"), "given").unwrap();
        }
        std::fs::write(outside.path().join("outside"), "untouched").unwrap();
        World { sandbox, _sandbox_folder: folder, outside }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.outside.path().join(name)
    }

    /// The setting of a call with `/in`, `/artifacts` and its own `/work`.
    fn setting(&self, guest: &Guest) -> Setting {
        let mut setting = ready(&self.sandbox, guest);
        setting.input = Some(self.path("in"));
        setting.artifacts = Some(self.path("artifacts"));
        setting
    }

    /// The same, and a granted folder.
    fn granting(&self, guest: &Guest, access: Access) -> Setting {
        let mut setting = self.setting(guest);
        let path = self.path("granted").to_str().unwrap().to_owned();
        setting.granted.files = vec![Folder { access, path }];
        setting
    }

    async fn run(&self, setting: Setting) -> Ran<Execution> {
        let ran = self.sandbox.execute(setting, call()).await;
        assert_eq!(std::fs::read_to_string(self.path("outside")).unwrap(), "untouched");
        assert_eq!(entries(&self.sandbox.0.scratch), Vec::<String>::new(), "what a call leaves behind");
        ran
    }
}

fn call() -> Call {
    Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) }
}

/// The names in a folder, sorted.
fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What a script noted; error codes by their names.
fn notes(ran: &Ran<Execution>) -> Vec<String> {
    let End::Returned(execution) = &ran.end else { panic!("{ran:?}") };
    content(&execution.result.as_ref().unwrap().content)
}

fn content(notes: &Value) -> Vec<String> {
    let note = |note: &Value| match note {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    notes.as_array().unwrap().iter().map(note).collect()
}

/// The same, where no number is noted but error codes.
fn codes(ran: &Ran<Execution>) -> Vec<String> {
    let name = |note: String| match note.parse::<usize>() {
        Ok(99) => "closed".to_owned(),
        Ok(code) => CODES[code].to_owned(),
        Err(_) => note,
    };
    notes(ran).into_iter().map(name).collect()
}

fn by<T>(ran: &Ran<T>, wall: Wall) -> Vec<&Denial> {
    ran.record.denials.iter().filter(|denial| denial.wall == wall).collect()
}

/// How often a wall turned something down.
fn count<T>(ran: &Ran<T>, wall: Wall) -> u64 {
    by(ran, wall).iter().map(|denial| denial.count).sum()
}
