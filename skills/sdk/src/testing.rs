//! Runs a skill natively, without host and sandbox, for `cargo test`.
//!
//! A [`World`] is a set of folders that stands for `/in`, `/artifacts` and `/work` on the thread
//! that made it. [`run_cases`] runs a component's `cases.toml` in such worlds, as `skill test` does
//! in the sandbox.

mod cases;
mod mutate;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::{Body, Call, Cause, Mishap, Outcome, Performed, Subgoal, Submission};

pub use cases::{Case, Judge, load_cases, run_cases, run_verifier_cases};
pub use mutate::{Mutant, mutants, share_caught};

thread_local! {
    static ROOT: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Folders that stand for `/in`, `/artifacts` and `/work` until it is dropped.
#[derive(Debug)]
pub struct World {
    root: PathBuf,
}

impl World {
    /// An empty world for this thread.
    ///
    /// # Panics
    ///
    /// If the folder for temporary files cannot be written.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("checkrein-skill-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for folder in ["in", "artifacts", "work"] {
            expect(std::fs::create_dir_all(root.join(folder)), &root);
        }
        ROOT.with(|current| *current.borrow_mut() = Some(root.clone()));
        Self { root }
    }

    /// Adds a file, such as `/in/counts.tsv`.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    #[must_use]
    pub fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(path, content);
        self
    }

    /// Writes a file, such as `/work/de.csv`.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let place = self.root.join(path.trim_start_matches('/'));
        if let Some(folder) = place.parent() {
            expect(std::fs::create_dir_all(folder), folder);
        }
        expect(std::fs::write(&place, content), &place);
    }

    /// Reads a file as text.
    ///
    /// # Panics
    ///
    /// If there is none, or it is not UTF-8.
    #[must_use]
    pub fn read(&self, path: &str) -> String {
        let place = self.root.join(path.trim_start_matches('/'));
        expect(std::fs::read_to_string(&place), &place)
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        ROOT.with(|current| *current.borrow_mut() = None);
        // A folder that stays behind in the place for temporary files fails no test.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn expect<T>(result: std::io::Result<T>, place: &Path) -> T {
    result.unwrap_or_else(|error| panic!("{}: {error}", place.display()))
}

/// Where `/` of this thread's world lies. Without a world nothing is found.
pub(crate) fn root() -> PathBuf {
    ROOT.with(|current| current.borrow().clone())
        .unwrap_or_else(|| PathBuf::from("/nonexistent-without-a-world"))
}

/// A subgoal of nothing in particular.
#[must_use]
pub fn subgoal(goal: &str, args: Value) -> Subgoal {
    Subgoal { id: "test".into(), goal: goal.into(), args, evidence: vec![], criteria: vec![] }
}

/// A first call with these arguments.
#[must_use]
pub fn call<A>(args: A) -> Call<A> {
    Call { id: "test".into(), args, attempt: 1, seed: 0, settings: json!({}) }
}

/// The submission of an outcome.
#[must_use]
pub fn submission<A>(skill: &str, args: A, outcome: Outcome) -> Submission<A> {
    Submission {
        skill: skill.into(),
        version: "0.1.0".into(),
        subgoal: subgoal("test", json!({})),
        body: Body::Performed(Box::new(Performed { call: call(args), outcome })),
        inputs: vec![],
        settings: json!({}),
    }
}

/// A mishap at the first attempt.
#[must_use]
pub fn mishap(args: Value, cause: Cause) -> Mishap {
    Mishap { subgoal: subgoal("test", args.clone()), call: call(args), cause, earlier: vec![] }
}
