//! The threads of the network: apart from the guests', so that a guest that computes keeps no
//! connection waiting, and TLS is not worked out on a guest's stack.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Threads of a runtime that does nothing but network.
pub(crate) struct NetworkThreads(Option<Runtime>);

impl NetworkThreads {
    /// Starts them.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("checkrein-net")
            .enable_all()
            .build()?;
        Ok(NetworkThreads(Some(runtime)))
    }

    /// Runs this there. Dropping the future ends it; a panic in it goes on here. `None` while the
    /// threads end.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        // A set aborts its tasks when it is dropped.
        let mut set = JoinSet::new();
        if let Some(runtime) = &self.0 {
            set.spawn_on(work, runtime.handle());
        }
        async move {
            match set.join_next().await? {
                Ok(done) => Some(done),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => None,
                },
            }
        }
    }
}

impl Drop for NetworkThreads {
    fn drop(&mut self) {
        // A runtime may not be waited for on the thread of another one, where this may well run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
