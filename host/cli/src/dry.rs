//! The guests of a dry run: triggers, verifications and recoveries run, executors do not.
//!
//! A call is answered by what is stated or was recorded, in this order: the table `[dry]` of the
//! task; a call of an earlier run with the same skill, component, arguments and inputs; the skill's
//! own cases. Where none of them says anything, the call fails, and says what to add. Which source
//! answered stands in the log of the call.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Setup, StoredArtifact};
use checkrein_contract::id::SubgoalId;
use checkrein_contract::interface::{
    Advice, Assessment, Call, Failure, FailureKind, Mishap, Outcome, Subgoal, Submission, Verdict,
};
use checkrein_contract::limits::Used;
use checkrein_contract::port::{Blobs, BoxFuture, End, Execution, Guests, Ran, Setting, StorageError};
use checkrein_contract::record::Record;
use checkrein_sandbox::Sandbox;
use checkrein_store::State;
use serde_json::{Map, json};

use crate::error::CliError;
use crate::output::{message, one_line};
use crate::task_file::DryAnswer;

use cases::Cases;
use recorded::{Inputs, Recorded};

mod cases;
mod recorded;
#[cfg(test)]
mod tests;

/// The guests of a dry run. The sandbox must be one in which nothing that a guest does has an effect,
/// and the components of the setup must be blobs of the store.
///
/// # Errors
///
/// If the runs of the store cannot be listed, or a component of the setup cannot be read.
pub fn guests(
    store: &State,
    sandbox: Sandbox,
    setup: &Setup,
    answers: BTreeMap<SubgoalId, Vec<DryAnswer>>,
) -> Result<Arc<dyn Guests>, CliError> {
    let blobs: Arc<dyn Blobs> = Arc::new(store.blobs());
    let mut skills = HashMap::new();
    for card in &setup.skills {
        let bytes = blobs.get(&card.component)?;
        let cases = Cases::read(card.name(), &bytes)?;
        skills.insert(card.component, Skill { name: card.name().to_owned(), cases });
    }
    let recorded = index(store, setup)?;
    let inputs = Inputs::of(&setup.task);
    let sandbox: Arc<dyn Guests> = Arc::new(sandbox);
    Ok(Arc::new(DryGuests { sandbox, blobs, skills, inputs, answers, recorded }))
}

/// What the calls of all runs but this one and the dry ones came to.
fn index(store: &State, setup: &Setup) -> Result<Recorded, CliError> {
    let mut recorded = Recorded::default();
    // The newest first: of two that say something, it is the one that counts.
    for run in store.runs()?.into_iter().map(|summary| summary.run).filter(|run| *run != setup.run) {
        match store.events(&run) {
            Ok(events) => recorded.add(events.iter().map(|logged| &logged.event)),
            Err(error) => {
                let why = format!("the calls of run {run} are not used: {error}");
                message(&one_line(&why, WIDTH));
            }
        }
    }
    Ok(recorded)
}

/// The most characters of a message.
const WIDTH: usize = 400;

struct DryGuests {
    /// Runs all parts but executors.
    sandbox: Arc<dyn Guests>,
    blobs: Arc<dyn Blobs>,
    /// The skills of the run, by component.
    skills: HashMap<Digest, Skill>,
    inputs: Inputs,
    answers: BTreeMap<SubgoalId, Vec<DryAnswer>>,
    recorded: Recorded,
}

struct Skill {
    name: String,
    cases: Cases,
}

/// What a call is answered with, in place of being executed.
struct Answer {
    result: Result<Outcome, Failure>,
    artifacts: Vec<StoredArtifact>,
    used: Used,
    record: Record,
    /// Where it is from, in words that follow `answered from`.
    from: String,
}

impl Answer {
    fn stated(result: Result<Outcome, Failure>, from: String) -> Self {
        Answer { result, artifacts: Vec::new(), used: Used::default(), record: Record::default(), from }
    }
}

impl Guests for DryGuests {
    fn assess(&self, setting: Setting, subgoal: Subgoal) -> BoxFuture<'_, Ran<Assessment>> {
        self.sandbox.assess(setting, subgoal)
    }

    fn execute(&self, setting: Setting, call: Call) -> BoxFuture<'_, Ran<Execution>> {
        Box::pin(async move { self.perform(&setting.component, &call) })
    }

    fn verify(
        &self,
        setting: Setting,
        submission: Submission,
    ) -> BoxFuture<'_, Ran<Result<Verdict, Failure>>> {
        self.sandbox.verify(setting, submission)
    }

    fn recover(&self, setting: Setting, mishap: Mishap) -> BoxFuture<'_, Ran<Advice>> {
        self.sandbox.recover(setting, mishap)
    }
}

impl DryGuests {
    fn perform(&self, component: &Digest, call: &Call) -> Ran<Execution> {
        let Some(skill) = self.skills.get(component) else {
            return ran(End::Fault(format!("no skill of the run has the component {component}")));
        };
        match self.answer(skill, component, call) {
            Ok(answer) => Ran {
                end: End::Returned(Execution { result: answer.result, artifacts: answer.artifacts }),
                used: answer.used,
                log: format!("dry run: answered from {}\n", answer.from),
                record: answer.record,
            },
            Err(error) => ran(End::Storage(error)),
        }
    }

    fn answer(&self, skill: &Skill, component: &Digest, call: &Call) -> Result<Answer, StorageError> {
        let (subgoal, number) = place(&call.id);
        if let Some(answer) = self.of_task(&subgoal, number) {
            return Ok(answer);
        }
        let none = Map::new();
        let args = call.args.as_object().unwrap_or(&none);
        let recorded = self.recorded.find(&skill.name, component, args, &self.inputs);
        if let Some(known) = recorded {
            return known.answer(&*self.blobs);
        }
        match skill.cases.find(&skill.name, &call.args) {
            Some(stated) => stated.answer(&skill.name, &*self.blobs),
            None => Ok(unknown(&skill.name, &subgoal)),
        }
    }

    /// What the task states: the first answer for the first call, and the last for all that follow.
    fn of_task(&self, subgoal: &SubgoalId, number: usize) -> Option<Answer> {
        let answers = self.answers.get(subgoal)?;
        let index = number.saturating_sub(1).min(answers.len().checked_sub(1)?);
        let from = format!("`[dry.{subgoal}]` of the task, answer {}", index + 1);
        let result = match answers.get(index)? {
            DryAnswer::Failure(failure) => Err(failure.clone()),
            DryAnswer::Outcome(outcome) => match outcome.artifacts.first() {
                None => Ok(outcome.clone()),
                Some(file) => Err(without_file(&file.path, &from)),
            },
        };
        Some(Answer::stated(result, from))
    }
}

/// A stated outcome without the files that it names is none.
fn without_file(path: &str, from: &str) -> Failure {
    let message = format!(
        "the outcome that {from} states names the file `{path}`, and its content is nowhere; leave it out, \
         or run the task once, so that a recorded call answers"
    );
    Failure { kind: FailureKind::Unsupported, message, evidence: json!({ "path": path }) }
}

/// Nothing says what would come of the call.
fn unknown(skill: &str, subgoal: &SubgoalId) -> Answer {
    let message = format!(
        "a dry run executes nothing, and nothing says what `{skill}` would answer here: state it in the \
         task under `[dry.{subgoal}]`, or run the task once, so that its calls are recorded"
    );
    let evidence = json!({ "add": format!("[dry.{subgoal}]") });
    let failure = Failure { kind: FailureKind::Unsupported, message, evidence };
    Answer::stated(Err(failure), "nothing: no stated or recorded answer is known".to_owned())
}

/// The subgoal and the number of a call, out of its id: `<run>/<subgoal>/<number>`.
fn place(call: &str) -> (SubgoalId, usize) {
    let (rest, number) = call.rsplit_once('/').unwrap_or((call, ""));
    let (_, subgoal) = rest.split_once('/').unwrap_or(("", rest));
    (SubgoalId::from(subgoal), number.parse().unwrap_or(1))
}

fn ran(end: End<Execution>) -> Ran<Execution> {
    Ran { end, used: Used::default(), log: String::new(), record: Record::default() }
}

/// Whether these are the events of a dry run.
fn is_dry(event: &Event) -> bool {
    matches!(event, Event::RunStarted { setup } if setup.dry)
}
