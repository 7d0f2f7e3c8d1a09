use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Set in a test that was started again where it may mount.
const AGAIN: &str = "CHECKREIN_TEST_IN_A_NAMESPACE";

/// A file system of its own, small enough to be filled.
pub struct Disk {
    folder: TempDir,
    mounter: &'static [&'static str],
}

/// Gives `body` a disk of this size, such as `8m`.
///
/// It is a tmpfs, which only root may mount, here or through `sudo`. Where neither goes, the test
/// is started again as the root of a user namespace. Where that does not go either, it fails: a
/// full disk is not shown by looking away.
pub fn on_a_small_disk(test: &str, size: &str, body: impl FnOnce(&Disk)) {
    match Disk::mount(size) {
        Ok(disk) => body(&disk),
        Err(why) => again_in_a_namespace(test, &why),
    }
}

fn again_in_a_namespace(test: &str, why: &str) {
    let needs =
        "this test fills a disk: run it as root, with `sudo` that asks no password, or allow user namespaces";
    assert!(std::env::var_os(AGAIN).is_none(), "{needs}: {why}");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]).arg(std::env::current_exe().unwrap());
    let out = command.args(["--exact", test]).env(AGAIN, "1").output();
    let out = out.unwrap_or_else(|error| panic!("{needs}: {why}; unshare: {error}"));
    let told = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && told.contains("1 passed"), "{needs}: {why}\n{told}");
}

impl Disk {
    fn mount(size: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut wrong = Vec::new();
        for mounter in [&[][..], &["sudo", "-n"]] {
            let options = format!("size={size},mode=0777");
            let place = folder.path().display().to_string();
            match run(mounter, &["mount", "-t", "tmpfs", "-o", &options, "checkrein-test", &place]) {
                Ok(()) => return Ok(Disk { folder, mounter }),
                Err(why) => wrong.push(why),
            }
        }
        Err(wrong.join("; "))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills it, but for so many bytes.
    pub fn fill(&self, left: u64) {
        let mut file = File::create(self.filler()).unwrap();
        let block = [0; 4096];
        let mut written = 0u64;
        loop {
            match file.write(&block) {
                Ok(more) => written += more as u64,
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
        file.set_len(written.saturating_sub(left)).unwrap();
    }

    /// Makes room again.
    pub fn clear(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let place = self.folder.path().display().to_string();
        if let Err(why) = run(self.mounter, &["umount", "--lazy", &place])
            && !std::thread::panicking()
        {
            panic!("a disk stays mounted: {why}");
        }
    }
}

fn run(before: &[&str], command: &[&str]) -> Result<(), String> {
    let words: Vec<&&str> = before.iter().chain(command).collect();
    let out = Command::new(words[0]).args(&words[1..]).output();
    match out {
        Ok(out) if out.status.success() => Ok(()),
        Ok(out) => Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(error) => Err(format!("{}: {error}", words[0])),
    }
}
