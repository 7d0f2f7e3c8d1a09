//! What a skill's own cases state.

use checkrein_contract::cases::{self, Case, Expect};
use checkrein_contract::digest::canonical;
use checkrein_contract::event::StoredArtifact;
use checkrein_contract::interface::{Failure, FailureKind, Outcome};
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::problem::Faults;
use checkrein_contract::section;
use serde_json::{Value, json};

use super::{Answer, without_file};
use crate::error::{CliError, fault};

/// The cases that a component carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cases(pub(super) Vec<Case>);

/// What a case states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stated<'c> {
    /// This outcome, which holds.
    Outcome(&'c Case, &'c Outcome),
    /// A failure of this kind.
    Failure(&'c Case, FailureKind),
}

impl Cases {
    /// The cases in these bytes of a component.
    pub(super) fn read(skill: &str, component: &[u8]) -> Result<Self, CliError> {
        let found = section::find(component, section::CASES).map_err(|error| {
            CliError::Load(Faults(vec![fault(skill, "format", "a component", &error.to_string(), "")]))
        })?;
        let Some(text) = found else { return Ok(Cases::default()) };
        let place = format!("{skill}#{}", section::CASES);
        cases::parse(&place, &String::from_utf8_lossy(text)).map(Cases).map_err(CliError::Load)
    }

    /// What comes of a call with these arguments: an outcome of this skill that a case gives and that
    /// holds, else a failure that is expected. Where cases with the same arguments expect different
    /// things, their files decide, and those of the call are others: no failure is taken from them.
    pub(super) fn find(&self, skill: &str, args: &Value) -> Option<Stated<'_>> {
        let args = canonical(args);
        let alike: Vec<&Case> = self.0.iter().filter(|case| canonical(&case.args) == args).collect();
        let given = alike.iter().copied().find_map(|case| {
            let given = case.given.as_ref().filter(|given| given.skill == skill)?;
            (case.expect == Expect::Accepted).then_some(Stated::Outcome(case, &given.outcome))
        });
        if given.is_some() {
            return given;
        }
        let executed: Vec<&Case> = alike.into_iter().filter(|case| case.given.is_none()).collect();
        let first = *executed.first()?;
        match first.expect {
            Expect::Failure(kind) if executed.iter().all(|case| case.expect == first.expect) => {
                Some(Stated::Failure(first, kind))
            }
            _ => None,
        }
    }
}

impl Stated<'_> {
    /// The answer, with the files of an outcome put into blobs.
    pub(super) fn answer(&self, skill: &str, blobs: &dyn Blobs) -> Result<Answer, StorageError> {
        let (case, outcome) = match *self {
            Stated::Outcome(case, outcome) => (case, outcome),
            Stated::Failure(case, kind) => {
                let message = format!("the case {:?} of `{skill}` expects this failure", case.name);
                let failure = Failure { kind, message, evidence: json!({ "case": case.name }) };
                return Ok(Answer::stated(Err(failure), named(case, skill)));
            }
        };
        let from = named(case, skill);
        let mut artifacts = Vec::new();
        for file in &outcome.artifacts {
            let Some((_, text)) = case.work.iter().find(|(path, _)| *path == file.path) else {
                return Ok(Answer::stated(Err(without_file(&file.path, &from)), from));
            };
            artifacts.push(StoredArtifact {
                path: file.path.clone(),
                title: file.title.clone(),
                media_type: file.media_type.clone(),
                digest: blobs.put(text.as_bytes())?,
                bytes: text.len() as u64,
            });
        }
        Ok(Answer { artifacts, ..Answer::stated(Ok(outcome.clone()), from) })
    }
}

fn named(case: &Case, skill: &str) -> String {
    format!("the case {:?} of `{skill}`", case.name)
}
