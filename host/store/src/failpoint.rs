//! Where a crash test kills the process: at each boundary of a write. In a release build there is
//! nothing here.
//!
//! `CHECKREIN_KILL_AT=<n>` kills the process with SIGKILL at the `n`th boundary that it reaches,
//! counted from 1. `CHECKREIN_COUNT_AT=<file>` appends a line `<n> <name>` for each.

#[cfg(debug_assertions)]
pub(crate) use armed::reach;

/// A boundary of a write is reached: `what` is written, and `when` it is.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn reach(_what: &str, _when: &str) {}

#[cfg(debug_assertions)]
mod armed {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::abort;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static REACHED: AtomicU64 = AtomicU64::new(0);
    static ORDERS: OnceLock<Orders> = OnceLock::new();

    struct Orders {
        kill_at: Option<u64>,
        count_at: Option<PathBuf>,
    }

    impl Orders {
        fn read() -> Self {
            // A crash test that kills nothing would pass: what cannot be read ends the process.
            let number = |text: String| text.parse().unwrap_or_else(|_| abort());
            Orders {
                kill_at: std::env::var("CHECKREIN_KILL_AT").ok().map(number),
                count_at: std::env::var_os("CHECKREIN_COUNT_AT").map(PathBuf::from),
            }
        }
    }

    /// A boundary of a write is reached: `what` is written, and `when` it is.
    pub(crate) fn reach(what: &str, when: &str) {
        let orders = ORDERS.get_or_init(Orders::read);
        let number = REACHED.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(file) = &orders.count_at {
            count(file, &format!("{number} {what}-{when}\n"));
        }
        if orders.kill_at == Some(number) {
            // It does not return; should it fail, the process ends all the same.
            let _ = kill_process(getpid(), Signal::KILL);
            abort();
        }
    }

    fn count(file: &Path, line: &str) {
        let opened = OpenOptions::new().create(true).append(true).open(file);
        // A boundary that is not counted is one that no crash test kills at.
        if opened.and_then(|mut file| file.write_all(line.as_bytes())).is_err() {
            abort();
        }
    }
}
