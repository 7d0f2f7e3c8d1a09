//! How the parts of a run are found.

use std::collections::BTreeSet;

use checkrein_contract::Digest;
use checkrein_contract::event::ComponentCard;
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::task::SubgoalSpec;
use serde_json::{Map, Value};

use super::{ArtifactView, CallView, FactView, RunView, SubgoalView};

/// Something that a call read, named in its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// As the call saw it: a path under `/in` or `/artifacts`.
    pub place: String,
    /// Its content.
    pub digest: Digest,
}

impl RunView {
    /// The current fact on a subject: the newest, unless it merely restates one with more to stand on.
    pub fn fact(&self, subject: &str) -> Option<&FactView> {
        self.current(self.by_subject.get(subject)?)
    }

    /// The current facts, in the order of subjects.
    pub fn current_facts(&self) -> impl Iterator<Item = &FactView> {
        self.by_subject.values().filter_map(|versions| self.current(versions))
    }

    fn current(&self, versions: &[usize]) -> Option<&FactView> {
        let facts = versions.iter().filter_map(|at| self.facts.get(*at));
        facts.reduce(|before, fact| if fact.entry.replaces(&before.entry) { fact } else { before })
    }

    /// Whether the report counts this fact: its level is the task's, or higher.
    pub fn counts(&self, fact: &FactView) -> bool {
        fact.entry.level >= self.task.level
    }

    /// The artifact at `<subgoal>/<path>`; of several, the last that was accepted.
    pub fn artifact(&self, place: &str) -> Option<(usize, &ArtifactView)> {
        self.artifacts.iter().enumerate().rev().find(|(_, artifact)| artifact.place() == place)
    }

    /// Every subgoal, in the order of the task.
    pub fn subgoals(&self) -> impl Iterator<Item = &SubgoalView> {
        self.stages.iter().flat_map(|stage| &stage.subgoals)
    }

    /// Every call, in the order of the task.
    pub fn calls(&self) -> impl Iterator<Item = &CallView> {
        self.subgoals().flat_map(|subgoal| &subgoal.calls)
    }

    /// The subgoal with this id.
    pub fn subgoal(&self, id: &SubgoalId) -> Option<&SubgoalView> {
        self.subgoals().find(|subgoal| subgoal.id == *id)
    }

    /// What the task says of the subgoal with this id.
    pub fn spec(&self, id: &SubgoalId) -> Option<&SubgoalSpec> {
        self.task.subgoals().map(|(_, spec)| spec).find(|spec| spec.id == *id)
    }

    /// The call with this id, abandoned or not.
    pub fn call(&self, id: &CallId) -> Option<&CallView> {
        self.calls().chain(&self.history.calls).find(|call| call.id == *id)
    }

    /// The component with this name that is in force.
    pub fn card(&self, name: &str) -> Option<&ComponentCard> {
        self.components.iter().find(|card| card.name() == name)
    }

    /// The version of a component of the run.
    pub fn version_of(&self, component: &Digest) -> Option<&str> {
        let mut all = self.components.iter().chain(&self.replaced);
        Some(&all.find(|card| card.component == *component)?.manifest.version)
    }

    /// The files that a call's arguments name; all inputs of the task if they name none.
    pub fn files_of(&self, call: &CallView) -> Vec<ReadFile> {
        let abandoned = self.history.calls.iter().any(|other| other.id == call.id);
        self.files(&call.args, if abandoned { &self.history.artifacts } else { &[] })
    }

    /// The files that these arguments name; all inputs of the task if they name none.
    pub fn files_in(&self, args: &Map<String, Value>) -> Vec<ReadFile> {
        self.files(args, &[])
    }

    fn files(&self, args: &Map<String, Value>, before: &[ArtifactView]) -> Vec<ReadFile> {
        let mut named = BTreeSet::new();
        texts(args, &mut named);
        let inputs: Vec<ReadFile> = self
            .task
            .inputs
            .iter()
            .map(|input| ReadFile { place: format!("/in/{}", input.file), digest: input.digest })
            .collect();
        let artifacts = self.artifacts.iter().chain(before).map(|artifact| ReadFile {
            place: format!("/artifacts/{}", artifact.place()),
            digest: artifact.file.digest,
        });
        let found: Vec<ReadFile> = inputs
            .iter()
            .cloned()
            .chain(artifacts)
            .filter(|file| named.contains(file.place.as_str()))
            .collect();
        if found.is_empty() { inputs } else { found }
    }
}

/// Every text in the values of `map`, at any depth.
fn texts<'v>(map: &'v Map<String, Value>, found: &mut BTreeSet<&'v str>) {
    let mut left: Vec<&Value> = map.values().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => {
                found.insert(text);
            }
            Value::Array(items) => left.extend(items),
            Value::Object(map) => left.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
