use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::{Place, binary, copy, root, test_dist};

/// The folder of the components of `guests/ledger`, built.
pub fn works_dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        let folders = checkrein::build::workspace_skills(&root().join("tests/guests/ledger")).unwrap();
        let out = test_dist().join("works");
        crate::build(&folders, Some(&out));
        out
    })
}

/// Their compiled code, with the trial that each passed once.
fn compiled() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let state = root().join("target/test-works");
        for file in components() {
            let mut command = Command::new(binary());
            command.arg("--state").arg(&state).args(["skill", "check"]).arg(&file);
            let out = command.env("XDG_STATE_HOME", &state).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        }
        state.join("checkrein/code")
    })
}

fn components() -> Vec<PathBuf> {
    let files = std::fs::read_dir(works_dist()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "wasm")).collect()
}

/// A place with the components of `guests/ledger`, an input, and a folder of books that two of them
/// may write.
pub struct Works {
    place: Place,
    books: TempDir,
}

impl Deref for Works {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Default for Works {
    fn default() -> Self {
        Self::new()
    }
}

impl Works {
    /// A new one, with the usual configuration.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// One whose folder, state included, lies below this one.
    pub fn below(folder: &Path) -> Self {
        let place =
            Place { folder: tempfile::tempdir_in(folder).unwrap(), home: tempfile::tempdir().unwrap() };
        copy(compiled(), &place.cache());
        // The manifests ask for `/tmp`, and a grant can only narrow that.
        let books = tempfile::Builder::new().prefix("checkrein-books-").tempdir_in("/tmp").unwrap();
        let works = Works { place, books };
        std::fs::create_dir(works.path().join("guests")).unwrap();
        for file in components() {
            std::fs::copy(&file, works.component(&file.file_stem().unwrap().to_string_lossy())).unwrap();
        }
        works.write("numbers.txt", "1\n2\n3\n");
        works.configure_works(&works.usual(), "");
        works
    }

    /// Its own copy of a component.
    pub fn component(&self, name: &str) -> PathBuf {
        self.path().join(format!("guests/{name}.wasm"))
    }

    /// What `ledger` is granted as a rule.
    pub fn usual(&self) -> String {
        format!("files = [\"rw {}\"]", self.books.path().display())
    }

    /// Writes a configuration in which `ledger` has this grant, and more of its text.
    pub fn configure_works(&self, ledger: &str, more: &str) {
        let books = self.books.path().display();
        let usual = self.usual();
        self.write(
            "checkrein.toml",
            &format!(
                r#"
[skills]
load = ["guests/*.wasm"]

[grant.ledger]
settings = {{ folder = "{books}" }}
{ledger}

[grant.publisher]
effects = "idempotent"
settings = {{ folder = "{books}" }}
{usual}

[[verifier]]
use = "recount"
on-facts = ["work/*", "ledger/*", "publisher/*"]
{more}
"#
            ),
        );
    }

    /// Writes a task, and gives its name for the command line.
    pub fn task(&self, text: &str) -> &'static str {
        self.write("task.toml", text);
        "task.toml"
    }

    /// The lines of a book, such as `ledger`: the ids of calls.
    pub fn book(&self, name: &str) -> Vec<String> {
        let file = self.books.path().join(format!("{name}.txt"));
        let text = if file.exists() { std::fs::read_to_string(file).unwrap() } else { String::new() };
        text.lines().map(str::to_owned).collect()
    }

    /// Forgets every run, and what was written into the books.
    pub fn reset(&self) {
        let folders = [self.state(), self.books.path().to_owned()];
        for folder in folders.iter().filter(|folder| folder.exists()) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                    .unwrap();
            }
        }
    }
}
