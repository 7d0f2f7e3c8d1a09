//! The thin loop around the core: appends the events, performs what is due, feeds back what
//! happened. Resuming is a fold of the log followed by the same loop.
//!
//! What has ended by the time the driver looks goes into one transaction: calls that run side by side
//! share the cost of a write to disk.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use checkrein_contract::event::{Event, InForce, Logged, RunStatus, Setup, Stop};
use checkrein_contract::id::{CallId, RunId, SubgoalId, Timestamp};
use checkrein_contract::port::{Beat, Blobs, BoxFuture, Guests, Log, NoObserver, Observer, StorageError};
use tokio::task::{AbortHandle, JoinSet};

use crate::due::due;
use crate::effect::{Effect, Input};
use crate::pool::Contents;
use crate::state::{State, Unfoldable};
use crate::step::advance;

pub(crate) mod perform;

/// Effects that are performed side by side at most.
const AT_ONCE: usize = 64;

/// How often a driver says that it lives, and looks into its inbox.
const PACE: Duration = Duration::from_millis(250);

/// Events after which the state is kept as a snapshot, at the earliest.
const SNAPSHOT_EVENTS: u64 = 1_000;

/// Bytes of the last snapshot for which one event more passes before the next: what snapshots cost
/// stays a small share of what events cost, however large the state is.
const SNAPSHOT_BYTES_AN_EVENT: u64 = 4 << 10;

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
    /// What was decided does not follow from the state: a fault of ours.
    #[error("a decision does not follow from what is known of the run: {0}")]
    Unfoldable(#[from] Unfoldable),
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

    /// Something could not be stored that only costs time: a snapshot, or a sign of life.
    fn troubled(&self, trouble: &StorageError);

    /// Who is told what this call says of itself while it runs.
    fn observer(&self, call: &CallId, subgoal: &SubgoalId) -> Arc<dyn Observer>;
}

/// Watches nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn appended(&self, _: &[Logged], _: &State) {}

    fn troubled(&self, _: &StorageError) {}

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

/// How a driver left its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The run has ended.
    Ended(RunStatus),
    /// It stopped, and can be resumed.
    Stopped(Stop),
}

/// What a run that is resumed goes on with.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The engine and its version.
    pub engine: String,
    /// What its components may do, where that is another thing than before.
    pub in_force: Option<Box<InForce>>,
}

/// Drives one run, until it ends or stops.
pub struct Driver<L> {
    world: World,
    contents: Contents,
    log: L,
    run: RunId,
    state: State,
    /// What is added to the clock's time, so that the time of a run never goes back.
    ahead: u64,
    /// Events that this driver appended.
    events: u64,
    /// At how many of them the next snapshot is kept.
    snapshot_at: u64,
    /// By when each call in hand will have ended.
    deadlines: BTreeMap<CallId, Timestamp>,
}

impl<L: Log> Driver<L> {
    /// Starts a run.
    ///
    /// # Errors
    ///
    /// If the first events cannot be appended.
    pub fn start(world: World, log: L, setup: Setup) -> Result<Self, DriveError> {
        let mut driver = Driver::over(world, log, setup.run.clone(), State::default());
        let (epoch, holder) = driver.log.lease();
        driver.feed(&[Input::Start { setup: Box::new(setup), epoch, holder }])?;
        Ok(driver)
    }

    /// Goes on with a run from what its log folds to.
    ///
    /// # Errors
    ///
    /// If the state is of no run, or the first events cannot be appended.
    pub fn resume(world: World, log: L, state: State, resumed: Resumed) -> Result<Self, DriveError> {
        let Some(run) = state.setup.as_ref().map(|setup| setup.run.clone()) else {
            return Err(DriveError::Stuck(RunId("without a start".to_owned())));
        };
        let mut driver = Driver::over(world, log, run, state);
        let (epoch, holder) = driver.log.lease();
        let Resumed { engine, in_force } = resumed;
        driver.feed(&[Input::Resume { epoch, holder, engine, in_force }])?;
        Ok(driver)
    }

    fn over(world: World, log: L, run: RunId, state: State) -> Self {
        let contents = Contents::new(world.blobs.clone());
        let ahead = state.now.0.saturating_sub(world.clock.now().0);
        let (snapshot_at, deadlines) = (SNAPSHOT_EVENTS, BTreeMap::new());
        Driver { world, contents, log, run, state, ahead, events: 0, snapshot_at, deadlines }
    }

    /// The state, as far as the run has come.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Drives the run until it ends, waits for a person, or `stop` is ready. What was under way then
    /// is dropped, and told in the log.
    ///
    /// # Errors
    ///
    /// If disk or database fail, another process drives the run now, or the host cannot run a
    /// component. Everything up to then is in the log.
    pub async fn run(mut self, stop: impl Future<Output = Stop>) -> Result<(Finish, State), DriveError> {
        let mut tasks = JoinSet::new();
        let mut performing = Performing::new();
        let mut stop = pin!(stop);
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // What was told while nobody drove the run comes first: it may open again what has ended.
        self.look(&mut tasks, &mut performing)?;
        loop {
            if let Some(finish) = self.finished() {
                return Ok((finish, self.state));
            }
            self.begin(&mut tasks, &mut performing)?;
            if performing.is_empty() {
                self.look(&mut tasks, &mut performing)?;
                if self.finished().is_none() && performing.is_empty() && crate::due(&self.state).is_empty() {
                    self.rest()?;
                }
                continue;
            }
            tokio::select! {
                biased;
                because = &mut stop => {
                    self.collect(None, &mut tasks, &mut performing)?;
                    self.feed(&[Input::Stop(because)])?;
                }
                Some(first) = tasks.join_next_with_id() => {
                    self.collect(Some(first), &mut tasks, &mut performing)?;
                }
                _ = pace.tick() => self.look(&mut tasks, &mut performing)?,
            }
        }
    }

    fn finished(&self) -> Option<Finish> {
        let stopped = self.state.stopped.map(Finish::Stopped);
        self.state.ended.map(Finish::Ended).or(stopped)
    }

    /// Begins what is due and not under way.
    fn begin(&self, tasks: &mut Tasks, performing: &mut Performing) -> Result<(), DriveError> {
        for effect in due(&self.state) {
            let waits = matches!(effect, Effect::WaitUntil { .. });
            if (waits || performing.len() < AT_ONCE) && !performing.contains_key(&effect) {
                let (work, done) = (self.work(&effect)?, effect.clone());
                let task = tasks.spawn(async move { (done, work.await) });
                performing.insert(effect, task);
            }
        }
        Ok(())
    }

    fn work(&self, effect: &Effect) -> Result<perform::Work, DriveError> {
        match effect {
            Effect::WaitUntil { subgoal, until } => {
                let at = Timestamp(until.0.saturating_sub(self.ahead));
                let (wait, subgoal) = (self.world.clock.until(at), subgoal.clone());
                Ok(Box::pin(async move {
                    wait.await;
                    Ok(Input::TimerReached { subgoal })
                }))
            }
            other => perform::perform(&self.world, &self.contents, &self.state, other),
        }
    }

    /// What has ended by now goes into one transaction; it is logged, whatever else went wrong.
    fn collect(
        &mut self,
        first: Option<Joined>,
        tasks: &mut Tasks,
        performing: &mut Performing,
    ) -> Result<(), DriveError> {
        let (mut inputs, mut failed) = (Vec::new(), None);
        for ended in first.into_iter().chain(std::iter::from_fn(|| tasks.try_join_next_with_id())) {
            match ended {
                // What was dropped meanwhile may have ended all the same; nobody waits for it.
                Ok((id, (effect, _))) if performing.get(&effect).is_none_or(|task| task.id() != id) => {}
                Ok((_, (effect, Ok(input)))) => {
                    performing.remove(&effect);
                    inputs.push(input);
                }
                Ok((_, (_, Err(error)))) => failed = failed.or(Some(error)),
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    let component = "an effect".to_owned();
                    failed = failed.or(Some(DriveError::Host { component, detail: error.to_string() }));
                }
            }
        }
        self.feed(&inputs)?;
        failed.map_or(Ok(()), Err)
    }

    /// Says that the run is driven, and reads its inbox.
    fn look(&mut self, tasks: &mut Tasks, performing: &mut Performing) -> Result<(), DriveError> {
        self.tell_deadlines(performing);
        let left = |(call, until): (&CallId, &Timestamp)| {
            (call.clone(), until.0.saturating_sub(self.world.clock.now().0))
        };
        let told = Beat { events: self.events, calls: self.deadlines.iter().map(left).collect() };
        let letters = match self.log.beat(&told, self.state.letters) {
            // Somebody else writes at length; the next look is soon.
            Err(trouble @ StorageError::Locked { .. }) => {
                self.world.watcher.troubled(&trouble);
                return Ok(());
            }
            letters => letters?,
        };
        if !letters.is_empty() {
            // What has ended by now has, whatever a letter says.
            self.collect(None, tasks, performing)?;
        }
        let before = self.state.version;
        for letter in letters {
            self.feed(&[Input::Letter(Box::new(letter))])?;
        }
        if self.state.version != before {
            self.drop_stale(performing);
        }
        Ok(())
    }

    /// What was begun for the task as it was before is dropped, and begun again where it is still
    /// due; but for calls that go on.
    fn drop_stale(&self, performing: &mut Performing) {
        let due: BTreeSet<Effect> = due(&self.state).into_iter().collect();
        performing.retain(|effect, task| {
            let goes_on = matches!(effect, Effect::Execute { .. }) && due.contains(effect);
            if !goes_on {
                task.abort();
            }
            goes_on
        });
    }

    /// Keeps by when each call in hand will have ended, one way or another: the deadline is that of its
    /// beginning. A call may wait for its turn until those before it have ended, so their time is its
    /// own too.
    fn tell_deadlines(&mut self, performing: &Performing) {
        let in_hand = |effect: &Effect| match effect {
            Effect::Execute { call } => Some(call.clone()),
            _ => None,
        };
        let calls: BTreeSet<CallId> = performing.keys().filter_map(in_hand).collect();
        self.deadlines.retain(|call, _| calls.contains(call));
        let wall = |call: &CallId| self.state.calls.get(call).map_or(0, |call| call.wall_ms);
        let all = calls.iter().map(wall).fold(0_u64, u64::saturating_add);
        let until = Timestamp(self.world.clock.now().0.saturating_add(all));
        for call in calls {
            self.deadlines.entry(call).or_insert(until);
        }
    }

    /// Nothing is due and nothing under way: a person must answer, or something is wrong.
    fn rest(&mut self) -> Result<(), DriveError> {
        if !self.state.waits() {
            return Err(DriveError::Stuck(self.run.clone()));
        }
        self.feed(&[Input::Stop(Stop::Person)])?;
        self.keep()
    }

    fn feed(&mut self, inputs: &[Input]) -> Result<(), DriveError> {
        let at = Timestamp(self.world.clock.now().0.saturating_add(self.ahead)).max(self.state.now);
        let mut events: Vec<Event> = Vec::new();
        for input in inputs {
            events.extend(advance(&mut self.state, input, at)?);
        }
        if events.is_empty() {
            return Ok(());
        }
        // On disk before anything that follows from them is performed.
        let logged = self.log.append(&self.run, at, &events)?;
        self.events += events.len() as u64;
        self.world.watcher.appended(&logged, &self.state);
        if self.events >= self.snapshot_at { self.keep() } else { Ok(()) }
    }

    /// Keeps the state, so that the run is resumed from here.
    fn keep(&mut self) -> Result<(), DriveError> {
        let folded = self.state.snapshot();
        self.snapshot_at = self.events + SNAPSHOT_EVENTS.max(folded.len() as u64 / SNAPSHOT_BYTES_AN_EVENT);
        match self.log.keep_snapshot(&folded) {
            Err(fenced @ StorageError::Fenced { .. }) => Err(fenced.into()),
            Err(trouble) => {
                self.world.watcher.troubled(&trouble);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

type Tasks = JoinSet<(Effect, Result<Input, DriveError>)>;
type Joined = Result<(tokio::task::Id, (Effect, Result<Input, DriveError>)), tokio::task::JoinError>;
/// What is under way.
type Performing = BTreeMap<Effect, AbortHandle>;
