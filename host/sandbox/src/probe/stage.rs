//! Plays one case: its files, the call, the verification, and what differs from what it states.

use std::path::Path;
use std::sync::Arc;

use checkrein_contract::cases::{Case, Expect};
use checkrein_contract::interface::{Body, Call, Outcome, Subgoal, Submission, Verdict};
use checkrein_contract::manifest::Kind;
use checkrein_contract::port::{End, Execution, Setting, StorageError, Tree};
use tempfile::TempDir;

use super::Budget;
use crate::component::Component;
use crate::invoke::{execute, run};
use crate::load::trial_setting;
use crate::parts::{Execute, Verify};
use crate::sandbox::Host;
use crate::scratch::{self, Kind as For};

/// An outcome that the verification accepted, with all that is needed to ask about variants of it.
pub(super) struct Accepted {
    pub(super) case: String,
    pub(super) outcome: Outcome,
    pub(super) setting: Setting,
    asked: Submission,
    /// The folders of the setting live as long as this does.
    _folders: TempDir,
    _work: Option<Box<dyn Tree>>,
}

impl Accepted {
    /// The same question about another outcome.
    pub(super) fn submission(&self, changed: Outcome) -> Submission {
        let mut submission = self.asked.clone();
        if let Body::Performed { outcome, .. } = &mut submission.body {
            *outcome = changed;
        }
        submission
    }
}

/// Why a case did not go as it states.
#[derive(Debug)]
pub(super) enum Missed {
    /// The component does something else.
    Differs(String),
    /// The disk failed: nothing is known of the component.
    Storage(StorageError),
}

impl From<String> for Missed {
    fn from(difference: String) -> Self {
        Missed::Differs(difference)
    }
}

impl From<StorageError> for Missed {
    fn from(error: StorageError) -> Self {
        Missed::Storage(error)
    }
}

/// Plays a case. Gives the outcome if it is one that was accepted, or what differs.
pub(super) async fn run_case(
    host: &Host,
    component: &Arc<Component>,
    case: &Case,
    budget: &mut Budget,
) -> Result<Option<Accepted>, Missed> {
    let mut setting = trial_setting(component.digest, component.trial_limits());
    // Before anything is written.
    budget.within(&setting)?;
    let folders = files(&host.scratch, case)?;
    setting.input = Some(folders.path().join("in"));
    setting.artifacts = Some(folders.path().join("artifacts"));
    setting.seed = case.seed;
    let mut tree = None;
    let (skill, version, outcome) = match &case.given {
        Some(given) => {
            setting.work = Some(folders.path().join("work"));
            (given.skill.clone(), given.version.clone(), given.outcome.clone())
        }
        None => {
            let Some(Execution { result: Ok(outcome), artifacts }) =
                call(host, component, case, &setting, budget).await?
            else {
                return Ok(None);
            };
            let stored: Vec<_> = artifacts.into_iter().map(|file| (file.path, file.digest)).collect();
            let work = host.blobs.tree(&stored)?;
            setting.work = Some(work.path().to_owned());
            tree = Some(work);
            (component.manifest.name.clone(), component.manifest.version.clone(), outcome)
        }
    };
    let body = Body::Performed { call: call_of(case), outcome: outcome.clone() };
    let subgoal = subgoal_of(case);
    let asked =
        Submission { skill, version, subgoal, body, inputs: Vec::new(), settings: case.settings.clone() };
    let accepted = verify(host, component, case, &setting, asked.clone(), budget).await?;
    let case = case.name.clone();
    Ok(accepted.then_some(Accepted { case, outcome, setting, asked, _folders: folders, _work: tree }))
}

/// Calls the executor; `None` if it failed as the case states.
async fn call(
    host: &Host,
    component: &Arc<Component>,
    case: &Case,
    setting: &Setting,
    budget: &mut Budget,
) -> Result<Option<Execution>, Missed> {
    if component.manifest.kind == Kind::Verifier {
        return Err("a verifier has no executor: state a `submission`".to_owned().into());
    }
    let ran = execute(host, component, budget.within(setting)?, Execute(call_of(case))).await;
    budget.charge(&ran.used, 1);
    let execution = match ran.end {
        End::Returned(execution) => execution,
        End::Storage(error) => return Err(error.into()),
        end => return Err(format!("the executor: {}", describe(&end)).into()),
    };
    let difference = match (&case.expect, &execution.result) {
        (Expect::Outcome, Ok(_)) => return Ok(Some(execution)),
        (Expect::Outcome, Err(failure)) => {
            format!("the executor failed with `{}`: {}", failure.kind.as_str(), failure.message)
        }
        (Expect::Failure(kind), Err(failure)) if failure.kind == *kind => return Ok(None),
        (Expect::Failure(kind), Err(failure)) => format!(
            "`{}` was expected, and the executor failed with `{}`: {}",
            kind.as_str(),
            failure.kind.as_str(),
            failure.message
        ),
        (Expect::Failure(kind), Ok(_)) => {
            format!("`{}` was expected, and there is an outcome", kind.as_str())
        }
        (Expect::Accepted | Expect::Rejected, _) => "a verdict is expected of no `submission`".to_owned(),
    };
    Err(difference.into())
}

/// Whether the verification accepts, which the case must state.
async fn verify(
    host: &Host,
    component: &Component,
    case: &Case,
    setting: &Setting,
    submission: Submission,
    budget: &mut Budget,
) -> Result<bool, Missed> {
    let ran = run(host, component, budget.within(setting)?, Verify(submission)).await;
    budget.charge(&ran.used, 1);
    let judged = match ran.end {
        End::Returned(judged) => judged,
        End::Storage(error) => return Err(error.into()),
        end => return Err(format!("the verification: {}", describe(&end)).into()),
    };
    let difference = match (&case.expect, judged) {
        (Expect::Outcome | Expect::Accepted, Ok(verdict)) if !verdict.rejects() => return Ok(true),
        (Expect::Rejected, Ok(verdict)) if verdict.rejects() => return Ok(false),
        (Expect::Failure(kind), Err(failure)) if failure.kind == *kind => return Ok(false),
        (Expect::Failure(kind), Ok(_)) => {
            format!("`{}` was expected of the verification, and it judged", kind.as_str())
        }
        (_, Err(failure)) => {
            format!("the verification could not judge (`{}`): {}", failure.kind.as_str(), failure.message)
        }
        (Expect::Rejected, Ok(_)) => "the verification accepts what the case says is wrong".to_owned(),
        (Expect::Outcome | Expect::Accepted, Ok(verdict)) => rejection(&verdict),
    };
    Err(difference.into())
}

fn rejection(verdict: &Verdict) -> String {
    let findings: Vec<String> =
        verdict.findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
    format!("the verification rejects it: {}", findings.join("; "))
}

/// How an invocation ended that did not return.
pub(super) fn describe<T>(end: &End<T>) -> String {
    match end {
        End::Returned(_) => "returned".to_owned(),
        End::Limited(hit) => format!("limit `{}`: {} allowed, {} used", hit.limit, hit.allowed, hit.used),
        End::Trapped(message) => format!("trapped: {message}"),
        End::Invalid(problem) => problem.message.clone(),
        End::Storage(error) => format!("a fault of the disk: {error}"),
        End::Fault(message) => format!("a fault of the host: {message}"),
    }
}

fn call_of(case: &Case) -> Call {
    Call {
        id: "case".to_owned(),
        args: case.args.clone(),
        attempt: case.attempt,
        seed: case.seed,
        settings: case.settings.clone(),
    }
}

fn subgoal_of(case: &Case) -> Subgoal {
    Subgoal {
        id: "case".to_owned(),
        goal: case.goal.clone(),
        args: case.args.clone(),
        evidence: Vec::new(),
        criteria: Vec::new(),
    }
}

/// The files of a case, in a folder of its own.
fn files(scratch: &Path, case: &Case) -> Result<TempDir, StorageError> {
    let folders = scratch::folder(scratch, For::Case)?;
    for (name, files) in [("in", &case.input), ("artifacts", &case.artifacts), ("work", &case.work)] {
        let root = folders.path().join(name);
        std::fs::create_dir(&root).map_err(|error| StorageError::of_io(&root, &error))?;
        for (path, text) in files {
            let path = root.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|error| StorageError::of_io(parent, &error))?;
            }
            std::fs::write(&path, text).map_err(|error| StorageError::of_io(&path, &error))?;
        }
    }
    Ok(folders)
}
