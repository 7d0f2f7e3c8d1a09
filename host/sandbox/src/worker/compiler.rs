//! Compiling in a process of its own: bounded in time and address space.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Role;
use super::child::{Child, START, WorkerError};
use super::frame::{Frame, read_async};
use super::wire::Compiled;

/// How long one component may be compiled. The largest honest ones (a Python interpreter with its
/// libraries) take about 15 seconds on two cores.
pub(crate) const WALL: Duration = Duration::from_secs(120);

/// One compile at a time in this process: each may take gigabytes. Waiting is charged to no call.
static TURN: Mutex<()> = Mutex::const_new(());

/// Starts a process for each component.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    pub(crate) program: PathBuf,
    pub(crate) wall: Duration,
    /// What [`crate::cache::build`] says here.
    pub(crate) build: String,
}

/// Seconds of processor time for so much time on the clock: the compiler computes on every core.
fn cpu(wall: Duration) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    wall.as_secs().saturating_add(1).saturating_mul(cores)
}

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoCode {
    /// It is no valid component.
    #[error("{0}")]
    Refused(String),
    /// Time ran out.
    #[error("time ran out: it was not compiled within {} s", .0.as_secs_f64())]
    Time(Duration),
    /// Memory ran out.
    #[error("memory ran out: compiling it takes more than 4 GiB")]
    Memory,
    /// The worker failed otherwise.
    #[error(transparent)]
    Worker(WorkerError),
}

impl Compiler {
    /// Compiles a component; waits for its turn first.
    pub(crate) async fn compile(&self, component: Vec<u8>) -> Result<Vec<u8>, NoCode> {
        let _turn = TURN.lock().await;
        let seconds = OsString::from(cpu(self.wall).to_string());
        let (mut child, mut output) =
            Child::start(&self.program, Role::Compile, &[&seconds]).map_err(NoCode::Worker)?;
        let most = Role::Compile.most_out();
        let ready = tokio::time::timeout(START, read_async::<Compiled>(&mut output, most)).await;
        match ready {
            Ok(Ok(Frame { message: Compiled::Ready { build, .. }, .. })) => {
                child.of_build(&self.build, &build).map_err(NoCode::Worker)?;
            }
            Ok(Ok(other)) => return Err(NoCode::Worker(child.nonsense(format!("{:?}", other.message)))),
            Ok(Err(error)) => return Err(NoCode::Worker(child.lost(error).await)),
            Err(_) => return Err(NoCode::Worker(child.hung(START))),
        }
        match tokio::time::timeout(self.wall, child.send(&(), &component)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(self.cause(child.unsent(error).await)),
            Err(_) => return Err(NoCode::Time(self.wall)),
        }
        match tokio::time::timeout(self.wall, read_async::<Compiled>(&mut output, most)).await {
            Ok(Ok(Frame { message: Compiled::Done, raw })) => Ok(raw),
            Ok(Ok(Frame { message: Compiled::Refused(why), .. })) => Err(NoCode::Refused(why)),
            Ok(Ok(other)) => Err(NoCode::Worker(child.nonsense(format!("{:?}", other.message)))),
            Ok(Err(error)) => Err(self.cause(child.lost(error).await)),
            Err(_) => Err(NoCode::Time(self.wall)),
        }
    }

    /// What a worker's end means.
    fn cause(&self, error: WorkerError) -> NoCode {
        let WorkerError::Died { status, complaints, .. } = &error else { return NoCode::Worker(error) };
        // The signals of processor time that ran out; the second is sent if the first was not heard.
        if status.contains("SIGXCPU") || status.contains("SIGKILL") {
            return NoCode::Time(self.wall);
        }
        // The words of Rust's allocator, and of the system where it has no room for a thread.
        let starved = ["memory allocation of", "Cannot allocate memory", "Resource temporarily unavailable"];
        if starved.iter().any(|words| complaints.contains(words)) {
            return NoCode::Memory;
        }
        NoCode::Worker(error)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_worker_whose_processor_time_ran_out_is_told_as_time() {
        let wall = Duration::from_secs(7);
        let compiler = Compiler { program: PathBuf::new(), wall, build: String::new() };
        let died = |signal| {
            let (role, status) = ("compile", ExitStatus::from_raw(signal).to_string());
            compiler.cause(WorkerError::Died { role, status, complaints: String::new() })
        };
        // SIGXCPU and SIGKILL; SIGSEGV is a fault of ours.
        assert!(matches!(died(24), NoCode::Time(told) if told == wall), "{:?}", died(24));
        assert!(matches!(died(9), NoCode::Time(told) if told == wall), "{:?}", died(9));
        assert!(matches!(died(11), NoCode::Worker(_)), "{:?}", died(11));
    }

    #[test]
    fn every_core_may_compute_for_the_whole_time() {
        let cores = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(cpu(WALL) >= WALL.as_secs() * cores);
        assert!(cpu(Duration::from_millis(1)) >= 1);
    }
}
