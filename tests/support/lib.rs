//! What the tests share: the binary and the guests, built once, and a folder of its own for each
//! test. No test reaches the network, and none uses another's state.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod clock;
mod disk;
mod finish;
mod job;
mod judge;
mod record;
mod running;
mod steps;
mod works;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use checkrein_contract::section;
use serde_json::Value;
use tempfile::TempDir;

pub use clock::{DAY, HOUR, shifted};
pub use disk::{Disk, on_a_small_disk};
pub use finish::{Go, KILLED, answer_all, complete, outcome_of, undisturbed};
pub use job::{Job, until};
pub use judge::Judge;
pub use record::{Entry, OpenAsk};
pub use running::Running;
pub use steps::{Step, dry, few, ledger, many, publisher, stamp, task, text_of, worker};
pub use works::{Works, works_dist};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The `checkrein` binary, built as the tests were.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // The whole workspace, so that features are resolved as for the tests and nothing is built twice.
        let args = ["build", "--workspace", "--bin", "checkrein", "--message-format=json-render-diagnostics"];
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(args).current_dir(root());
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let out = cargo.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let lines = String::from_utf8(out.stdout).unwrap();
        let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let path =
            messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
        path.expect("cargo names the binary")
    })
}

/// Where test-only guests are built to.
fn test_dist() -> PathBuf {
    root().join("target/test-guests")
}

/// The folder of the components of `skills/`, built.
pub fn dist() -> &'static Path {
    static DIST: OnceLock<PathBuf> = OnceLock::new();
    DIST.get_or_init(|| {
        build(&checkrein::build::workspace_skills(&root().join("skills")).unwrap(), None);
        root().join("skills/dist")
    })
}

/// The skill that lies as its settings say, built.
pub fn liar() -> &'static Path {
    static LIAR: OnceLock<PathBuf> = OnceLock::new();
    LIAR.get_or_init(|| {
        build(&[root().join("tests/guests/liar")], Some(&test_dist()));
        test_dist().join("differential-expression.wasm")
    })
}

fn build(folders: &[PathBuf], out: Option<&Path>) {
    let mut command = Command::new(binary());
    command.arg("--state").arg(test_state()).args(["skill", "build"]).args(folders);
    command.args(out.iter().flat_map(|out| ["--out".as_ref(), out.as_os_str()]));
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "guests cannot be built; run `skills/setup` first: {told}");
}

/// A state folder that lasts, for what is the same in every test: compiled components.
fn test_state() -> PathBuf {
    root().join("target/test-state")
}

/// A folder of its own, with a state folder that has the compiled components already.
pub struct Place {
    folder: TempDir,
    /// What `$XDG_CONFIG_HOME` is: the operator's own, and not that of who runs the tests.
    home: TempDir,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Data.
    pub out: String,
    /// Messages.
    pub err: String,
}

impl Ran {
    /// The data as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(self.out.trim()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Messages that start with `error:`.
    pub fn errors(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("error:")).collect()
    }

    /// Ends the test unless the command ended with this code.
    #[must_use]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// A new place.
    pub fn new() -> Self {
        let place = Place { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        copy(&warm_cache().join("checkrein/code"), &place.cache());
        place
    }

    /// Where its user's compiled code is.
    pub fn cache(&self) -> PathBuf {
        self.home.path().join("state/checkrein/code")
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its state folder.
    pub fn state(&self) -> PathBuf {
        self.path().join(".checkrein")
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Writes a configuration that loads these components of `skills/`, and more of its text.
    pub fn configure(&self, components: &[&str], more: &str) {
        let dist = dist().display().to_string();
        let load: Vec<String> = components.iter().map(|name| format!("\"{dist}/{name}.wasm\"")).collect();
        self.write("checkrein.toml", &format!("[skills]\nload = [{}]\n{more}", load.join(", ")));
    }

    /// Writes the operator's own file.
    pub fn operator(&self, text: &str) -> PathBuf {
        let file = self.home.path().join("checkrein/operator.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        for (path, mode) in [(file.parent().unwrap(), 0o700), (&file, 0o600)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        file
    }

    /// Writes `NAME.wasm`, a skill that asks for `http://127.0.0.1:PORT/x` on every call, with more
    /// of its manifest.
    pub fn asking(&self, name: &str, port: u16, more: &str) -> PathBuf {
        let text = std::fs::read_to_string(root().join("tests/guests/asks.wat")).unwrap();
        let bytes = wat::parse_str(text.replace("00000", &format!("{port:05}"))).unwrap();
        let manifest = format!(
            "schema = \"checkrein/skill@1\"\nkind = \"skill\"\nname = \"{name}\"\nversion = \"1.0.0\"\n\
             description = \"asks the network\"\neffects = \"none\"\n[args]\ntype = \"object\"\n{more}"
        );
        let bytes = section::embed(&bytes, section::MANIFEST, manifest.as_bytes()).unwrap();
        let bytes = section::embed(&bytes, section::CASES, b"[[case]]\nname = \"one\"\n").unwrap();
        let file = self.path().join(format!("{name}.wasm"));
        std::fs::write(&file, bytes).unwrap();
        file
    }

    /// Runs `checkrein` in it.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, |_| {})
    }

    /// Runs `checkrein` in it, with a command that was changed.
    pub fn run_with(&self, args: &[&str], change: impl FnOnce(&mut Command)) -> Ran {
        let mut command = self.command(args);
        change(&mut command);
        let Output { status, stdout, stderr } = command.output().unwrap();
        Ran {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.path()).env_remove("CHECKREIN_LOG").env_remove("RUST_BACKTRACE");
        command.env("XDG_CONFIG_HOME", self.home.path());
        command.env("XDG_STATE_HOME", self.home.path().join("state"));
        command
    }

    /// Starts `checkrein` in it, and does not wait for its end.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    /// The events of the last run.
    pub fn events(&self) -> Vec<Value> {
        let trace = self.run(&["trace", "@last", "--json"]).expect(0).out;
        trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take()).collect()
    }

    /// The events of the last run of one kind.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// Runs the pasilla task with a configuration of its own.
    pub fn run_pasilla(&self, more: &[&str]) -> Ran {
        let task = root().join("tests/tasks/pasilla/task.toml").display().to_string();
        let mut args = vec!["run", &task];
        args.extend(more);
        self.run(&args)
    }

    /// The database of its state folder.
    pub fn database(&self) -> PathBuf {
        self.state().join("checkrein.db")
    }
}

/// A state folder in which every component was compiled and passed its trial once.
fn warm_cache() -> &'static Path {
    static WARM: OnceLock<PathBuf> = OnceLock::new();
    WARM.get_or_init(|| {
        let state = test_state();
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(dist()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "wasm"));
        files.push(liar().to_owned());
        for file in files {
            let args =
                ["--state".as_ref(), state.as_os_str(), "skill".as_ref(), "check".as_ref(), file.as_os_str()];
            let out = Command::new(binary()).args(args).env("XDG_STATE_HOME", &state).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        }
        state
    })
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
