//! The thin loop around the core: appends the events, performs what is due, feeds back what
//! happened. Resuming is a fold of the log followed by the same loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use checkrein_contract::event::{Event, Logged, RunStatus, Setup};
use checkrein_contract::id::{CallId, RunId, SubgoalId, Timestamp};
use checkrein_contract::port::{Blobs, BoxFuture, Guests, Log, NoObserver, Observer, StorageError};
use tokio::task::JoinSet;

use crate::due::due;
use crate::effect::{Effect, Input};
use crate::pool::Contents;
use crate::state::State;
use crate::step::advance;

mod perform;

/// Effects that are performed side by side at most.
const AT_ONCE: usize = 64;

/// Why a run could not go on. The log is whole up to the last event that was appended.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// Disk or database.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The host could not run a component: a fault of ours.
    #[error("the host could not run `{component}`: {detail}")]
    Host {
        /// Which component.
        component: String,
        /// What went wrong.
        detail: String,
    },
    /// The run neither goes on nor ends: a fault of ours.
    #[error("the run `{0}` has nothing left to do and did not end")]
    Stuck(RunId),
}

/// Time, from outside.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;

    /// Ready at that time, or after.
    fn until(&self, at: Timestamp) -> BoxFuture<'static, ()>;
}

/// Is told of every event once it is on disk, and of what running calls say.
pub trait Watcher: Send + Sync {
    /// These events were appended.
    fn appended(&self, events: &[Logged], state: &State);

    /// Who is told what this call says of itself while it runs.
    fn observer(&self, call: &CallId, subgoal: &SubgoalId) -> Arc<dyn Observer>;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn appended(&self, _: &[Logged], _: &State) {}

    fn observer(&self, _: &CallId, _: &SubgoalId) -> Arc<dyn Observer> {
        Arc::new(NoObserver)
    }
}

/// Everything outside of the core that a run needs.
#[derive(Clone)]
pub struct World {
    /// Runs components.
    pub guests: Arc<dyn Guests>,
    /// Keeps contents.
    pub blobs: Arc<dyn Blobs>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Is told what happens.
    pub watcher: Arc<dyn Watcher>,
}

/// Drives one run to its end.
pub struct Driver<L> {
    world: World,
    contents: Contents,
    log: L,
    run: RunId,
    state: State,
}

impl<L: Log> Driver<L> {
    /// Starts a run.
    ///
    /// # Errors
    ///
    /// If the first events cannot be appended.
    pub fn start(world: World, log: L, setup: Setup) -> Result<Self, DriveError> {
        let run = setup.run.clone();
        let contents = Contents::new(world.blobs.clone());
        let mut driver = Driver { world, contents, log, run, state: State::default() };
        driver.feed(&[Input::Start(Box::new(setup))])?;
        Ok(driver)
    }

    /// The state, as far as the run has come.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// If disk or database fail, or the host cannot run a component. Everything up to then is
    /// in the log.
    pub async fn run(mut self) -> Result<(RunStatus, State), DriveError> {
        let mut tasks = JoinSet::new();
        let mut performing = BTreeSet::<Effect>::new();
        loop {
            if let Some(status) = self.state.ended {
                return Ok((status, self.state));
            }
            for effect in due(&self.state) {
                let waits = matches!(effect, Effect::WaitUntil { .. });
                if (waits || performing.len() < AT_ONCE) && !performing.contains(&effect) {
                    performing.insert(effect.clone());
                    let work = perform::perform(&self.world, &self.contents, &self.state, &effect)?;
                    tasks.spawn(async move { (effect, work.await) });
                }
            }
            let Some(first) = tasks.join_next().await else { return Err(DriveError::Stuck(self.run)) };
            let (mut inputs, mut failed) = (Vec::new(), None);
            // What else has ended by now goes into the same transaction.
            for ended in std::iter::once(first).chain(std::iter::from_fn(|| tasks.try_join_next())) {
                match ended {
                    Ok((effect, Ok(input))) => {
                        performing.remove(&effect);
                        inputs.push(input);
                    }
                    Ok((_, Err(error))) => failed = failed.or(Some(error)),
                    Err(error) => {
                        let component = "an effect".to_owned();
                        failed = failed.or(Some(DriveError::Host { component, detail: error.to_string() }));
                    }
                }
            }
            // What did end is logged, whatever else went wrong.
            self.feed(&inputs)?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
    }

    fn feed(&mut self, inputs: &[Input]) -> Result<(), DriveError> {
        let at = self.world.clock.now().max(self.state.now);
        let events: Vec<Event> =
            inputs.iter().flat_map(|input| advance(&mut self.state, input, at)).collect();
        if !events.is_empty() {
            // On disk before anything that follows from them is performed.
            let logged = self.log.append(&self.run, at, &events)?;
            self.world.watcher.appended(&logged, &self.state);
        }
        Ok(())
    }
}
