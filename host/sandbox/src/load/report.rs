//! What came of loading, step by step.

use checkrein_contract::digest::Digest;
use checkrein_contract::manifest::Manifest;
use checkrein_contract::problem::Fault;
use serde::Serialize;

use crate::probe::ProbeReport;
use crate::text::{at_most, excerpt, one_line};

/// Faults of one step that are told; more are counted.
const FAULTS: usize = 100;
/// Bytes of what was found that are told: long enough for what the engine says of a mismatch.
const FOUND: usize = 2_000;

/// What one step found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result", content = "detail")]
pub enum StepResult {
    /// It holds; in a few words, what was seen.
    Passed(String),
    /// It does not.
    Failed(Vec<Fault>),
    /// It could not be tried, and why.
    Skipped(String),
}

/// One step of loading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// `read`, `format`, `size`, `manifest`, `wit-version`, `imports`, `exports`, `compile`,
    /// `instantiate`, `assess`, `schema`, `cases` or `verification`; whoever loads may add its own.
    pub name: &'static str,
    /// What it found.
    #[serde(flatten)]
    pub result: StepResult,
}

/// A component that can be called, by its digest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// The digest of its bytes, manifest and cases included.
    pub digest: Digest,
    /// Its manifest; `args` is the schema that the component says, where the manifest has none.
    pub manifest: Manifest,
    /// The text of its cases.
    pub cases: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The names of what it imports.
    pub imports: Vec<String>,
    /// The names of what it exports.
    pub exports: Vec<String>,
}

/// What came of each step of loading a component.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The file, or the name that the bytes were given.
    pub file: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The component, if every step passed.
    pub loaded: Option<Loaded>,
    /// How its own verification did; `None` if it was not tried, or passed before.
    pub probe: Option<ProbeReport>,
}

impl LoadReport {
    pub(super) fn new(file: &str) -> Self {
        LoadReport { file: file.to_owned(), steps: Vec::new(), loaded: None, probe: None }
    }

    /// Everything that is wrong with it.
    pub fn faults(&self) -> Vec<Fault> {
        let failed = self.steps.iter().filter_map(|step| match &step.result {
            StepResult::Failed(faults) => Some(faults),
            StepResult::Passed(_) | StepResult::Skipped(_) => None,
        });
        failed.flatten().cloned().collect()
    }

    /// Whether no step failed so far.
    pub(super) fn sound(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step.result, StepResult::Failed(_)))
    }

    pub(super) fn passed(&mut self, name: &'static str, detail: impl Into<String>) {
        self.steps.push(Step { name, result: StepResult::Passed(detail.into()) });
    }

    pub(super) fn skipped(&mut self, name: &'static str, why: impl Into<String>) {
        self.steps.push(Step { name, result: StepResult::Skipped(why.into()) });
    }

    pub(super) fn failed(&mut self, name: &'static str, mut faults: Vec<Fault>) {
        if faults.len() > FAULTS {
            let found = format!("{} more", faults.len() - FAULTS);
            faults.truncate(FAULTS);
            let expected = format!("at most {FAULTS} faults");
            faults.push(self.fault(name, "", &expected, &found, "mend these first"));
        }
        self.steps.push(Step { name, result: StepResult::Failed(faults) });
    }

    /// Records a step that gives a value.
    pub(super) fn step<T>(
        &mut self,
        name: &'static str,
        result: Result<T, Vec<Fault>>,
        detail: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                self.passed(name, detail(&value));
                Some(value)
            }
            Err(faults) => {
                self.failed(name, faults);
                None
            }
        }
    }

    /// A fault of this file.
    pub(super) fn fault(&self, stage: &str, place: &str, expected: &str, found: &str, mend: &str) -> Fault {
        Fault {
            file: self.file.clone(),
            place: one_line(&excerpt(place)),
            stage: stage.to_owned(),
            expected: expected.to_owned(),
            found: one_line(&at_most(found, FOUND)),
            mend: mend.to_owned(),
        }
    }
}
