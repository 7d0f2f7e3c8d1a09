//! What the calls of earlier runs came to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use checkrein_contract::Digest;
use checkrein_contract::ask::action_digest;
use checkrein_contract::event::{Ended, Event, StoredArtifact};
use checkrein_contract::id::CallId;
use checkrein_contract::interface::{Failure, Outcome};
use checkrein_contract::limits::Used;
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::record::{Exchange, Record};
use checkrein_contract::task::Task;
use serde_json::{Map, Value};

use super::{Answer, is_dry};

/// The inputs of a task: each file as its calls see it, with its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs(Vec<(String, Digest)>);

impl Inputs {
    pub(super) fn of(task: &Task) -> Self {
        let mut files: Vec<(String, Digest)> =
            task.inputs.iter().map(|input| (input.file.clone(), input.digest)).collect();
        files.sort();
        Inputs(files)
    }
}

/// Calls of earlier runs, by skill, component, arguments and inputs.
#[derive(Default)]
pub(super) struct Recorded(HashMap<Digest, Known>);

/// What one call came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    call: CallId,
    came: Came,
    used: Used,
    exchanges: Vec<Exchange>,
    worth: Worth,
}

#[derive(Clone, Debug, PartialEq)]
enum Came {
    Outcome { outcome: Digest, artifacts: Vec<StoredArtifact> },
    Failure(Failure),
}

/// Of several calls that were alike, the one that got furthest answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Failed,
    Outcome,
    Accepted,
}

impl Recorded {
    /// Adds the calls of a run; what was added before it counts more. A dry run has none: its answers
    /// were stated or recorded ones.
    pub(super) fn add<'e>(&mut self, events: impl Iterator<Item = &'e Event>) {
        let mut inputs = Inputs::default();
        // In the order in which they were intended.
        let mut actions = Vec::<(&CallId, Digest)>::new();
        let mut ended = HashMap::<&CallId, Known>::new();
        for event in events {
            match event {
                event if is_dry(event) => return,
                Event::RunStarted { setup } => inputs = Inputs::of(&setup.task),
                Event::CallIntended { call, skill, component, args, .. } => {
                    actions.push((call, action_digest(skill, component, args, &inputs.0)));
                }
                Event::CallEnded { call, ended: end, record, attested: false, .. } => {
                    ended.extend(Known::of(call, end, record).map(|known| (call, known)));
                }
                Event::BudgetSettled { call, used } => {
                    if let Some(known) = ended.get_mut(call) {
                        known.used = *used;
                    }
                }
                Event::OutcomeAccepted { call, .. } => {
                    if let Some(known) = ended.get_mut(call) {
                        known.worth = Worth::Accepted;
                    }
                }
                _ => {}
            }
        }
        for (call, action) in actions {
            if let Some(known) = ended.remove(call) {
                self.keep(action, known);
            }
        }
    }

    fn keep(&mut self, action: Digest, known: Known) {
        match self.0.entry(action) {
            Entry::Vacant(place) => {
                place.insert(known);
            }
            Entry::Occupied(mut place) => {
                if known.worth > place.get().worth {
                    place.insert(known);
                }
            }
        }
    }

    /// What such a call came to.
    pub(super) fn find(
        &self,
        skill: &str,
        component: &Digest,
        args: &Map<String, Value>,
        inputs: &Inputs,
    ) -> Option<&Known> {
        self.0.get(&action_digest(skill, component, args, &inputs.0))
    }
}

impl Known {
    /// `None` if it came to nothing that could be answered.
    fn of(call: &CallId, ended: &Ended, record: &Record) -> Option<Self> {
        let (came, worth) = match ended {
            Ended::Outcome { outcome, artifacts, .. } => {
                (Came::Outcome { outcome: *outcome, artifacts: artifacts.clone() }, Worth::Outcome)
            }
            Ended::Failed { failure } => (Came::Failure(failure.clone()), Worth::Failed),
            Ended::Limited { .. }
            | Ended::Trapped { .. }
            | Ended::Invalid { .. }
            | Ended::Cancelled
            | Ended::Happened => return None,
        };
        let exchanges = record.exchanges.clone();
        Some(Known { call: call.clone(), came, used: Used::default(), exchanges, worth })
    }

    /// The same again. What it fetched then is what its facts may rest on.
    pub(super) fn answer(&self, blobs: &dyn Blobs) -> Result<Answer, StorageError> {
        let (result, artifacts) = match &self.came {
            Came::Outcome { outcome, artifacts } => (Ok(read(outcome, blobs)?), artifacts.clone()),
            Came::Failure(failure) => (Err(failure.clone()), Vec::new()),
        };
        let record = Record { exchanges: self.exchanges.clone(), ..Record::default() };
        Ok(Answer { result, artifacts, used: self.used, record, from: format!("the call {}", self.call) })
    }
}

fn read(digest: &Digest, blobs: &dyn Blobs) -> Result<Outcome, StorageError> {
    let bytes = blobs.get(digest)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| StorageError::Damaged { place: format!("blob {digest}"), detail: error.to_string() })
}
