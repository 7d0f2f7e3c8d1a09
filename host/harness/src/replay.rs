//! Executes the calls of a recorded run again, and compares what comes out of them.
//!
//! The log is folded event by event. Before the end of a call is folded, the call is executed with
//! the state as it then was: the same component, arguments, seed, files and facts. Its requests are
//! answered from its record, its granted folders are copies of what they held, and nobody is asked
//! anything. What is compared is how the call ended: of an outcome its digest, which is over its facts
//! and its files, and what the log says of these.
//!
//! Before an acceptance is folded, the gateway is asked what it makes of the outcome, and the log must
//! say the same. So each fact is held to what came out of its call: its subject, kind, source, level
//! and version, and where its content is.
//!
//! Verdicts are taken from the log: they are not judged again.

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::event::{Ended, Event, FactEntry, Logged, StoredArtifact};
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::limits::LimitKey;
use checkrein_contract::record::Record;

use crate::driver::perform::{Made, executes};
use crate::driver::{DriveError, World};
use crate::gateway;
use crate::pool::Contents;
use crate::state::{State, Unfoldable};

mod replayed;
mod suspect;
#[cfg(test)]
mod tests;

pub use replayed::{Admission, Difference, Differs, Facts, NotRepeated, Repeated, Repetition, Replayed};
pub use suspect::{Suspect, Suspicion};

/// Why a run could not be executed again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It was a dry run.
    #[error("a dry run executed nothing, so there is nothing to execute again")]
    Dry,
    /// The log does not follow from itself.
    #[error(transparent)]
    Unfoldable(#[from] Unfoldable),
    /// The host could not execute a call, or something that the log names is not there.
    #[error(transparent)]
    Drive(#[from] DriveError),
}

/// What is told while a run is executed again.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'p> {
    /// A call begins.
    Begins {
        /// The call.
        call: &'p CallId,
        /// For which subgoal.
        subgoal: &'p SubgoalId,
        /// The skill.
        skill: &'p str,
        /// Its number, from 1.
        number: usize,
        /// Of so many.
        of: usize,
    },
    /// It has ended.
    Ended {
        /// The call.
        call: &'p CallId,
        /// For which subgoal.
        subgoal: &'p SubgoalId,
        /// Whether it ended the same.
        same: bool,
    },
}

/// The components that must be loaded before these events are executed again, each with the name of
/// its skill.
///
/// # Errors
///
/// If the events are those of a dry run.
pub fn components(events: &[Logged]) -> Result<BTreeMap<Digest, String>, ReplayError> {
    refuse_dry(events)?;
    let mut intended = BTreeMap::<&CallId, (Digest, &String)>::new();
    let mut needed = BTreeMap::new();
    for logged in events {
        if let Event::CallIntended { call, component, skill, .. } = &logged.event {
            intended.insert(call, (*component, skill));
        }
        let end = CallEnd::of(&logged.event).filter(|end| end.not_repeated().is_none());
        if let Some((component, skill)) = end.and_then(|end| intended.get(end.call)) {
            needed.insert(*component, (*skill).clone());
        }
    }
    Ok(needed)
}

/// Executes the calls of these events again, one after the other. The world's guests must have the
/// [`components`] of them loaded; `engine` is theirs, as a run's setup would name it.
///
/// # Errors
///
/// If the events are those of a dry run, or do not follow from one another; if a call cannot be
/// executed, or something that the log names is not there. A call that ends otherwise is no error, and
/// neither are facts that the gateway does not make.
pub async fn replay(
    world: &World,
    events: &[Logged],
    engine: &str,
    watch: impl FnMut(&Progress<'_>),
) -> Result<Replayed, ReplayError> {
    refuse_dry(events)?;
    let ends = events.iter().filter_map(|logged| CallEnd::of(&logged.event));
    let mut again = Again {
        world,
        contents: Contents::new(world.blobs.clone()),
        state: State::default(),
        engine,
        of: ends.filter(|end| end.not_repeated().is_none()).count(),
        number: 0,
        places: BTreeMap::new(),
        replayed: Replayed::default(),
        watch,
    };
    for logged in events {
        again.event(logged).await?;
    }
    again.unended();
    Ok(again.replayed)
}

fn refuse_dry(events: &[Logged]) -> Result<(), ReplayError> {
    let dry = |logged: &Logged| matches!(&logged.event, Event::RunStarted { setup } if setup.dry);
    if events.iter().any(dry) { Err(ReplayError::Dry) } else { Ok(()) }
}

/// How a call ended, as an event says it.
#[derive(Clone, Copy)]
struct CallEnd<'e> {
    call: &'e CallId,
    ended: &'e Ended,
    record: &'e Record,
    attested: bool,
}

impl<'e> CallEnd<'e> {
    fn of(event: &'e Event) -> Option<Self> {
        match event {
            Event::CallEnded { call, ended, record, attested, .. } => {
                Some(CallEnd { call, ended, record, attested: *attested })
            }
            _ => None,
        }
    }

    fn not_repeated(&self) -> Option<NotRepeated> {
        if self.attested {
            return Some(NotRepeated::Attested);
        }
        match self.ended {
            Ended::Cancelled => Some(NotRepeated::Cancelled),
            Ended::Happened => Some(NotRepeated::Happened),
            Ended::Limited { hit } => {
                let timed = matches!(LimitKey::parse(&hit.limit), Some(LimitKey::Cpu | LimitKey::Wall));
                timed.then(|| NotRepeated::Timed(hit.limit.clone()))
            }
            Ended::Outcome { .. } | Ended::Failed { .. } | Ended::Trapped { .. } | Ended::Invalid { .. } => {
                None
            }
        }
    }
}

/// A run that is being executed again.
struct Again<'r, W> {
    world: &'r World,
    contents: Contents,
    state: State,
    engine: &'r str,
    /// Calls that are to be executed, and how many were.
    of: usize,
    number: usize,
    /// Where each call stands in `replayed`.
    places: BTreeMap<CallId, usize>,
    replayed: Replayed,
    watch: W,
}

impl<W: FnMut(&Progress<'_>)> Again<'_, W> {
    async fn event(&mut self, logged: &Logged) -> Result<(), ReplayError> {
        match &logged.event {
            Event::RunStarted { setup } => self.written_by(&setup.engine),
            Event::RunResumed { engine, .. } => self.written_by(engine),
            Event::OutcomeAccepted { call, facts, artifacts } => self.accepted(call, facts, artifacts),
            event => {
                if let Some(end) = CallEnd::of(event) {
                    self.ended(end).await?;
                }
            }
        }
        Ok(self.state.apply(logged.at, &logged.event)?)
    }

    /// The engine that wrote the events from here on is the last one of the list.
    fn written_by(&mut self, engine: &str) {
        self.replayed.engines.retain(|known| known != engine);
        self.replayed.engines.push(engine.to_owned());
    }

    /// Holds what the log says of an outcome that was let in to what the gateway makes of it.
    fn accepted(&mut self, call: &CallId, facts: &[FactEntry], artifacts: &[StoredArtifact]) {
        // That no event intended it is told when it is folded.
        if !self.state.calls.contains_key(call) {
            return;
        }
        let expected = Admission::Accepted { facts: facts.to_vec(), artifacts: artifacts.to_vec() };
        let found = admission(&self.state, call);
        let same = expected == found;
        let Some(entry) = self.entry(call) else { return };
        if !same {
            let differs = Differs::Admission { expected, found };
            entry.admission = Some(Box::new(Difference { differs, suspects: vec![suspect::log()] }));
        }
        let attested = entry.result == Repetition::NotRepeated(NotRepeated::Attested);
        let agrees = same && entry.result == Repetition::Same;
        let (count, counted) = (facts.len() as u64, &mut self.replayed.facts);
        match attested {
            true => counted.attested += count,
            false => counted.of += count,
        }
        counted.agree += if agrees { count } else { 0 };
    }

    async fn ended(&mut self, end: CallEnd<'_>) -> Result<(), ReplayError> {
        // That no event intended it is told when it is folded.
        let Some(call) = self.state.calls.get(end.call) else { return Ok(()) };
        let (subgoal, skill) = (call.subgoal.clone(), call.skill.clone());
        let result = match end.not_repeated() {
            Some(why) => Repetition::NotRepeated(why),
            None => {
                in_scope(&self.state, &subgoal)?;
                self.repeat(end, &subgoal, &skill).await?
            }
        };
        // A difference stands, whatever a log that was altered says after it.
        if let Some(entry) = self.entry(end.call)
            && !matches!(entry.result, Repetition::Different(_))
        {
            entry.result = result;
        }
        Ok(())
    }

    /// The entry of a call that was intended: one for all its ends.
    fn entry(&mut self, id: &CallId) -> Option<&mut Repeated> {
        let call = self.state.calls.get(id)?;
        let calls = &mut self.replayed.calls;
        let place = *self.places.entry(id.clone()).or_insert(calls.len());
        if place == calls.len() {
            calls.push(Repeated {
                call: id.clone(),
                subgoal: call.subgoal.clone(),
                skill: call.skill.clone(),
                result: Repetition::NotRepeated(NotRepeated::Unended),
                admission: None,
            });
        }
        calls.get_mut(place)
    }

    fn unended(&mut self) {
        for call in self.state.calls.keys().cloned().collect::<Vec<_>>() {
            let _ = self.entry(&call);
        }
    }

    async fn repeat(
        &mut self,
        end: CallEnd<'_>,
        subgoal: &SubgoalId,
        skill: &str,
    ) -> Result<Repetition, DriveError> {
        self.number += 1;
        let (call, number, of) = (end.call, self.number, self.of);
        (self.watch)(&Progress::Begins { call, subgoal, skill, number, of });
        let record = Arc::new(end.record.clone());
        let (found, seen) = self.execute(call, &record).await?;
        let same = same(end.ended, &found);
        (self.watch)(&Progress::Ended { call, subgoal, same });
        if same {
            return Ok(Repetition::Same);
        }
        let mut suspects = match same_outcome(end.ended, &found) {
            true => vec![suspect::log()],
            false => self.evidence(skill, &record, &seen),
        };
        if suspects.is_empty() {
            let (again, _) = self.execute(call, &record).await?;
            suspects = suspect::without_evidence(skill, self::same(&found, &again));
        }
        let differs = Differs::Ended { expected: end.ended.clone(), found };
        Ok(Repetition::Different(Box::new(Difference { differs, suspects })))
    }

    async fn execute(&self, call: &CallId, record: &Arc<Record>) -> Result<(Ended, Record), DriveError> {
        let recorded = Some(Arc::clone(record));
        let work = executes(self.world, &self.contents, &self.state, call, recorded)?;
        let Made { ended, record, .. } = work.await?;
        Ok((ended, record))
    }

    fn evidence(&self, skill: &str, recorded: &Record, seen: &Record) -> Vec<Suspicion> {
        let written_by = self.replayed.engines.last().map_or("", String::as_str);
        let granted = self.state.skill(skill).map(|card| card.granted.clone()).unwrap_or_default();
        let engine = suspect::engine(written_by, self.engine);
        let inputs = suspect::inputs(&granted, recorded, seen);
        engine.into_iter().chain(inputs).chain(suspect::clock(skill, &granted)).collect()
    }
}

/// Everything that the scope of a subgoal names was made before: a log may come from a stranger.
fn in_scope(state: &State, subgoal: &SubgoalId) -> Result<(), Unfoldable> {
    let Some(goal) = state.subgoals.get(subgoal) else { return Ok(()) };
    let fact = goal.scope.iter().find(|fact| !state.facts.contains_key(*fact));
    let call = goal.artifacts.iter().find(|call| !state.calls.contains_key(*call));
    let what = fact.map(|fact| format!("the fact `{fact}`"));
    match what.or_else(|| call.map(|call| format!("the call `{call}`"))) {
        Some(what) => Err(Unfoldable { kind: "subgoal-opened", what }),
        None => Ok(()),
    }
}

/// What the gateway makes of a call's outcome, by what the log says up to here.
fn admission(state: &State, call: &CallId) -> Admission {
    match gateway::admit(state, call).0 {
        Ok(facts) => {
            let artifacts = gateway::submitted(&state.calls[call]).1.to_vec();
            Admission::Accepted { facts, artifacts }
        }
        Err(judgement) => Admission::Rejected { findings: judgement.findings().to_vec() },
    }
}

/// Whether two endings say the same: limits by which it was, all others by their content.
fn same(expected: &Ended, found: &Ended) -> bool {
    match (expected, found) {
        (Ended::Limited { hit: one }, Ended::Limited { hit: two }) => one.limit == two.limit,
        (expected, found) => expected == found,
    }
}

/// Whether both are the same outcome, whatever else is said of it.
fn same_outcome(expected: &Ended, found: &Ended) -> bool {
    match (expected, found) {
        (Ended::Outcome { outcome: one, .. }, Ended::Outcome { outcome: two, .. }) => one == two,
        _ => false,
    }
}
