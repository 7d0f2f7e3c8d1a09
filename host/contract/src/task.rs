//! What a user asks for: the task, as it is recorded with a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::id::{StageId, SubgoalId};
use crate::interface::Level;

/// Attempts of a subgoal that states none.
pub const ATTEMPTS: u32 = 3;
/// The most attempts that a subgoal may have.
pub const ATTEMPTS_MAX: u32 = 5;
/// Refusals in a row that end a subgoal.
pub const REFUSALS_MAX: u32 = 5;

/// Whether calls with effects may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Grants that allow effects are dropped.
    ReadOnly,
    /// They hold.
    ReadWrite,
}

/// What may be used up; `None` is without bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Attempts: failures, limits and rejections.
    #[serde(default)]
    pub attempts: Option<u64>,
    /// Calls.
    pub calls: Option<u64>,
    /// Tokens of the planner over all proposals.
    #[serde(default)]
    pub tokens: Option<u64>,
    /// Fuel over all calls.
    pub fuel: Option<u64>,
    /// Wall time in milliseconds, while the run is driven: what it waits for a person without a
    /// process does not count.
    pub wall_ms: Option<u64>,
}

/// One file that the task gives to its calls, at `/in/<file>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// The name that references use.
    pub name: String,
    /// The file name.
    pub file: String,
    /// Its content.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
}

/// What must hold before a subgoal is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    /// In words.
    pub text: String,
    /// In CEL, over the facts of the subgoal and those in scope.
    pub check: String,
}

/// What the strategy layer hands to the task loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubgoalSpec {
    /// Unique in the task.
    pub id: SubgoalId,
    /// In words.
    pub goal: String,
    /// The skill to use, if the task names one.
    pub skill: Option<String>,
    /// Subgoals of the same stage that come before it.
    pub after: Vec<SubgoalId>,
    /// Arguments, with references still in them.
    pub args: Map<String, Value>,
    /// Kinds of facts that must come out of it.
    pub evidence: Vec<String>,
    /// What must hold.
    pub criteria: Vec<Criterion>,
    /// Attempts.
    pub attempts: u32,
    /// The lowest level of the facts that count.
    pub level: Level,
    /// What may be used up.
    pub budget: Budget,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Unique in the task.
    pub id: StageId,
    /// In words, for the report.
    pub title: Option<String>,
    /// What may be used up.
    pub budget: Budget,
    /// Its subgoals.
    pub subgoals: Vec<SubgoalSpec>,
}

/// What the report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportSpec {
    /// Its title.
    pub title: String,
    /// Markdown with placeholders; `None`: one is made from facts and artifacts.
    pub text: Option<String>,
}

/// The task of a run, complete: nothing outside of it and of the blobs is needed to read the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// In words.
    pub goal: String,
    /// Whether calls with effects may be made.
    pub mode: Mode,
    /// What every seed is made from.
    pub seed: u64,
    /// The files it gives.
    pub inputs: Vec<InputFile>,
    /// The parameters.
    pub parameters: Map<String, Value>,
    /// What may be used up.
    pub budget: Budget,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The report.
    pub report: ReportSpec,
    /// The lowest level of the facts that the report counts.
    pub level: Level,
    /// Whether other content on a subject that has a current fact is let through.
    pub allow_contradictions: bool,
}

impl Task {
    /// All subgoals with their stages, in order.
    pub fn subgoals(&self) -> impl Iterator<Item = (&Stage, &SubgoalSpec)> {
        self.stages.iter().flat_map(|stage| stage.subgoals.iter().map(move |subgoal| (stage, subgoal)))
    }
}
