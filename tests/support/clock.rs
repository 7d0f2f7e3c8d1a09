use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// An hour, in seconds.
pub const HOUR: i64 = 3_600;
/// A day, in seconds.
pub const DAY: i64 = 24 * HOUR;

/// Shows the command another time of day: by so many seconds.
pub fn shifted(command: &mut Command, seconds: i64) {
    command.env("LD_PRELOAD", shim()).env("FAKE_OFFSET", seconds.to_string());
}

/// The library that does it, where every user can read it.
fn shim() -> &'static Path {
    static SHIM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = SHIM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let (source, library) = (folder.path().join("clock.c"), folder.path().join("clock.so"));
        std::fs::write(&source, include_str!("clock.c")).unwrap();
        let mut command = Command::new("cc");
        command.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let out = command.output().unwrap_or_else(|error| panic!("this test needs a C compiler: {error}"));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        (folder, library)
    });
    library
}
