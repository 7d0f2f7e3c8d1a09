//! Whether a component does what its cases say, and whether its own verification notices what is
//! wrong: accepted outcomes are changed, and it is asked about each change.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_contract::cases::Case;
use checkrein_contract::digest::Digest;
use checkrein_contract::interface::Submission;
use checkrein_contract::port::{End, Setting, StorageError};
use checkrein_contract::problem::Fault;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::component::Component;
use crate::invoke::run;
use crate::mutate::{Mutant, MutantKind, mutants};
use crate::parts::Verify;
use crate::sandbox::Sandbox;
use crate::text::one_line;
use stage::{Accepted, Missed};

/// How many mutants a component is asked about when it loads.
pub const MUTANTS: usize = 60;

/// How one case went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// What differed from what the case expects; `None` if nothing did.
    pub difference: Option<String>,
}

/// How many mutants of one kind were made, and noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Made.
    pub mutants: usize,
    /// Rejected by the verification.
    pub caught: usize,
}

/// A mutant that the verification did not reject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survivor {
    /// The case whose outcome was changed.
    pub case: String,
    /// How it is wrong.
    pub kind: MutantKind,
    /// What was changed.
    pub description: String,
    /// How the verification let it through: `accepted`, or why it gave no verdict.
    pub because: String,
}

/// How a component did at its cases, and its verification at the mutants of their outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProbeReport {
    /// Each case, in order.
    pub cases: Vec<CaseResult>,
    /// Mutants made.
    pub mutants: usize,
    /// Mutants rejected. A verification that fails or is stopped has not noticed anything.
    pub caught: usize,
    /// The same by kind.
    pub by_kind: BTreeMap<MutantKind, Share>,
    /// Those that got through.
    pub survivors: Vec<Survivor>,
}

impl ProbeReport {
    /// How many cases pass.
    pub fn passed(&self) -> usize {
        self.cases.iter().filter(|case| case.difference.is_none()).count()
    }

    /// Why a component with this report does not load: by its cases, by its verification.
    pub(crate) fn faults(&self, file: &str) -> (Option<Vec<Fault>>, Option<Vec<Fault>>) {
        let fault = |place: &str, stage: &str, expected: &str, found: &str, mend: &str| Fault {
            file: file.to_owned(),
            place: place.to_owned(),
            stage: stage.to_owned(),
            expected: expected.to_owned(),
            found: one_line(found),
            mend: mend.to_owned(),
        };
        let failed = self.cases.iter().filter_map(|case| {
            let found = case.difference.as_ref()?;
            Some(fault(&case.name, "cases", "what the case states", found, "mend the component or the case"))
        });
        let failed: Vec<Fault> = failed.collect();
        let verification = (self.caught == 0).then(|| {
            let expected = "a verification that notices a changed outcome";
            let (found, mend) = if self.mutants == 0 {
                let mend = "add a case with an outcome that has content or facts";
                ("no case with an accepted outcome that could be changed".to_owned(), mend)
            } else {
                let mend = "compare the outcome with the inputs, by a way of its own";
                (format!("none of {} changed outcomes rejected", self.mutants), mend)
            };
            vec![fault("", "verification", expected, &found, mend)]
        });
        ((!failed.is_empty()).then_some(failed), verification)
    }
}

/// Why a component could not be tried.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProbeError {
    /// No component with this digest is loaded.
    #[error("no component {0} is loaded")]
    NotLoaded(Digest),
    /// The disk failed, which says nothing of the component.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Sandbox {
    /// Runs the cases of a loaded component, and asks its verification about at most `at_most`
    /// mutants of the outcomes that it accepts.
    ///
    /// # Errors
    ///
    /// If it is not loaded, or the disk fails.
    pub async fn probe(
        &self,
        component: &Digest,
        cases: Vec<Case>,
        at_most: usize,
    ) -> Result<ProbeReport, ProbeError> {
        let found = self.component(component).ok_or(ProbeError::NotLoaded(*component))?;
        let sandbox = self.clone();
        let work = async move { sandbox.probe_component(&found, &cases, at_most).await };
        let probed = self.on_guest_threads(work).await.unwrap_or_else(|why| {
            let all = CaseResult { name: "all".to_owned(), difference: Some(why) };
            Ok(ProbeReport { cases: vec![all], ..ProbeReport::default() })
        });
        Ok(probed?)
    }

    pub(crate) async fn probe_component(
        &self,
        component: &Arc<Component>,
        cases: &[Case],
        at_most: usize,
    ) -> Result<ProbeReport, StorageError> {
        let mut report = ProbeReport::default();
        let mut accepted = Vec::new();
        for case in cases {
            let staged = stage::run_case(&self.0, component, case).await;
            let difference = match staged {
                Ok(outcome) => {
                    accepted.extend(outcome);
                    None
                }
                Err(Missed::Differs(difference)) => Some(difference),
                Err(Missed::Storage(error)) => return Err(error),
            };
            report.cases.push(CaseResult { name: case.name.clone(), difference });
        }
        let mut left = at_most;
        for (done, one) in accepted.iter().enumerate() {
            // What a small outcome leaves over goes to those after it.
            let share = left.div_ceil(accepted.len() - done);
            let made = mutants(&one.outcome, component.digest.seed(), share);
            left -= made.len();
            self.try_mutants(component, one, made, &mut report).await?;
        }
        Ok(report)
    }

    async fn try_mutants(
        &self,
        component: &Arc<Component>,
        accepted: &Accepted,
        made: Vec<Mutant>,
        report: &mut ProbeReport,
    ) -> Result<(), StorageError> {
        let mut asked = JoinSet::new();
        for (number, mutant) in made.iter().enumerate() {
            let submission = accepted.submission(mutant.outcome.clone());
            let question = self.asks(component, accepted.setting.clone(), submission);
            asked.spawn(async move { (number, question.await) });
        }
        let mut answers = vec![Some("the host could not ask".to_owned()); made.len()];
        while let Some(answer) = asked.join_next().await {
            if let Ok((number, because)) = answer {
                answers[number] = because?;
            }
        }
        for (mutant, because) in made.into_iter().zip(answers) {
            let share = report.by_kind.entry(mutant.kind).or_default();
            share.mutants += 1;
            report.mutants += 1;
            let Some(because) = because else {
                share.caught += 1;
                report.caught += 1;
                continue;
            };
            let Mutant { kind, description, .. } = mutant;
            report.survivors.push(Survivor { case: accepted.case.clone(), kind, description, because });
        }
        Ok(())
    }

    /// Why the verification does not reject this, or `None` if it does.
    fn asks(
        &self,
        component: &Arc<Component>,
        setting: Setting,
        submission: Submission,
    ) -> impl Future<Output = Result<Option<String>, StorageError>> + Send + 'static {
        let (host, component) = (Arc::clone(&self.0), Arc::clone(component));
        async move {
            let ran = run(&host, &component, setting, Verify(submission)).await;
            Ok(match ran.end {
                End::Storage(error) => return Err(error),
                End::Returned(Ok(verdict)) if verdict.rejects() => None,
                End::Returned(Ok(_)) => Some("accepted".to_owned()),
                End::Returned(Err(failure)) => Some(format!("no verdict: {}", failure.message)),
                end => Some(format!("no verdict: {}", stage::describe(&end))),
            })
        }
    }
}
