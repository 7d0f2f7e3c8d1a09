//! Compiling in a process of its own: bounded in time and address space.

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
        let (mut child, mut output) =
            Child::start(&self.program, Role::Compile, None).map_err(NoCode::Worker)?;
        let most = Role::Compile.most_out();
        let ready = tokio::time::timeout(START, read_async::<Compiled>(&mut output, most)).await;
        match ready {
            Ok(Ok(Frame { message: Compiled::Ready(_), .. })) => {}
            Ok(Ok(other)) => return Err(NoCode::Worker(child.nonsense(format!("{:?}", other.message)))),
            Ok(Err(error)) => return Err(NoCode::Worker(child.lost(error).await)),
            Err(_) => return Err(NoCode::Worker(child.hung(START))),
        }
        let talk = async {
            child.send(&(), &component).await?;
            read_async::<Compiled>(&mut output, most).await
        };
        match tokio::time::timeout(self.wall, talk).await {
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
        if status.contains("SIGXCPU") {
            return NoCode::Time(WALL);
        }
        // The words of Rust's allocator, and of the system where it has no room for a thread.
        let starved = ["memory allocation of", "Cannot allocate memory", "Resource temporarily unavailable"];
        if starved.iter().any(|words| complaints.contains(words)) {
            return NoCode::Memory;
        }
        NoCode::Worker(error)
    }
}
