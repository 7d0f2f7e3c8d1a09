//! Whether a component does what its cases say, and whether its own verification notices what is
//! wrong: accepted outcomes are changed, and it is asked about each change.

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_contract::cases::Case;
use checkrein_contract::digest::Digest;
use checkrein_contract::interface::Submission;
use checkrein_contract::limits::{LimitKey, Used};
use checkrein_contract::port::{End, Setting, StorageError};
use checkrein_contract::problem::Fault;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::component::Component;
use crate::engine::CALLS_AT_ONCE_OF_ONE;
use crate::invoke::run;
use crate::mutate::{Mutant, MutantKind, mutants};
use crate::parts::Verify;
use crate::sandbox::Sandbox;
use crate::text::{at_most, excerpt, one_line};
use stage::{Accepted, Missed};

/// How many mutants a component is asked about when it loads.
pub const MUTANTS: usize = 60;

/// How many of them are asked about at once.
const AT_ONCE: u64 = CALLS_AT_ONCE_OF_ONE as u64;
/// Time that all cases of one component, and so many mutants, have together.
const WALL_MS: u64 = 60_000;
const CPU_MS: u64 = 120_000;
/// Bytes of what is told of one case or mutant.
const TOLD: usize = 2_000;

/// The time that is left of a trial. Each call alone is bounded by its limits, and many of them
/// together by this.
#[derive(Clone, Copy, Debug)]
struct Budget {
    wall_ms: u64,
    cpu_ms: u64,
}

impl Budget {
    /// That of all cases and so many mutants.
    fn of(mutants: usize) -> Self {
        let times = (mutants / MUTANTS).max(1) as u64;
        Budget { wall_ms: WALL_MS.saturating_mul(times), cpu_ms: CPU_MS.saturating_mul(times) }
    }

    /// The setting with no more time than is left.
    fn within(&self, setting: &Setting) -> Result<Setting, String> {
        if self.wall_ms == 0 || self.cpu_ms == 0 {
            return Err(format!(
                "not tried: the time of the trial ran out; all cases and changed outcomes of a component have \
                 {} and {} of processor time together, so make the cases smaller or fewer",
                LimitKey::Wall.show(WALL_MS),
                LimitKey::Cpu.show(CPU_MS),
            ));
        }
        let left = |key: LimitKey, left: u64| setting.limits.get(key).min(left);
        let (wall, cpu) = (left(LimitKey::Wall, self.wall_ms), left(LimitKey::Cpu, self.cpu_ms));
        let limits = setting.limits.clone().with(LimitKey::Wall, wall).with(LimitKey::Cpu, cpu);
        Ok(Setting { limits, ..setting.clone() })
    }

    /// Takes off what a call used that ran beside others, so many in all.
    fn charge(&mut self, used: &Used, at_once: u64) {
        self.wall_ms = self.wall_ms.saturating_sub(used.wall_ms / at_once.max(1));
        self.cpu_ms = self.cpu_ms.saturating_sub(used.cpu_ms);
    }
}

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
            place: one_line(&excerpt(place)),
            stage: stage.to_owned(),
            expected: expected.to_owned(),
            found: one_line(&at_most(found, TOLD)),
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
        most: usize,
    ) -> Result<ProbeReport, StorageError> {
        self.probe_within(component, cases, most, Budget::of(most)).await
    }

    async fn probe_within(
        &self,
        component: &Arc<Component>,
        cases: &[Case],
        most: usize,
        mut budget: Budget,
    ) -> Result<ProbeReport, StorageError> {
        let mut report = ProbeReport::default();
        let mut accepted = Vec::new();
        for case in cases {
            let staged = stage::run_case(&self.0, component, case, &mut budget).await;
            let difference = match staged {
                Ok(outcome) => {
                    accepted.extend(outcome);
                    None
                }
                Err(Missed::Differs(difference)) => Some(at_most(&difference, TOLD)),
                Err(Missed::Storage(error)) => return Err(error),
            };
            report.cases.push(CaseResult { name: case.name.clone(), difference });
        }
        let mut left = most;
        for (done, one) in accepted.iter().enumerate() {
            // What a small outcome leaves over goes to those after it.
            let share = left.div_ceil(accepted.len() - done);
            let made = mutants(&one.outcome, component.digest.seed(), share);
            left -= made.len();
            self.try_mutants(component, one, made, &mut budget, &mut report).await?;
        }
        Ok(report)
    }

    async fn try_mutants(
        &self,
        component: &Arc<Component>,
        accepted: &Accepted,
        made: Vec<Mutant>,
        budget: &mut Budget,
        report: &mut ProbeReport,
    ) -> Result<(), StorageError> {
        let mut asked = JoinSet::new();
        let mut answers = vec![Some("the host could not ask".to_owned()); made.len()];
        let mut waiting = made.iter().enumerate();
        loop {
            while (asked.len() as u64) < AT_ONCE {
                let Some((number, mutant)) = waiting.next() else { break };
                match budget.within(&accepted.setting) {
                    Ok(setting) => {
                        let submission = accepted.submission(mutant.outcome.clone());
                        let question = self.asks(component, setting, submission);
                        asked.spawn(async move { (number, question.await) });
                    }
                    Err(why) => answers[number] = Some(format!("no verdict: {why}")),
                }
            }
            let Some(answer) = asked.join_next().await else { break };
            if let Ok((number, answer)) = answer {
                let (because, used) = answer?;
                budget.charge(&used, AT_ONCE);
                answers[number] = because.map(|because| at_most(&because, TOLD));
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

    /// Why the verification does not reject this, or `None` if it does; and what it used.
    fn asks(
        &self,
        component: &Arc<Component>,
        setting: Setting,
        submission: Submission,
    ) -> impl Future<Output = Result<(Option<String>, Used), StorageError>> + Send + 'static {
        let (host, component) = (Arc::clone(&self.0), Arc::clone(component));
        async move {
            let ran = run(&host, &component, setting, Verify(submission)).await;
            let because = match ran.end {
                End::Storage(error) => return Err(error),
                End::Returned(Ok(verdict)) if verdict.rejects() => None,
                End::Returned(Ok(_)) => Some("accepted".to_owned()),
                End::Returned(Err(failure)) => Some(format!("no verdict: {}", failure.message)),
                end => Some(format!("no verdict: {}", stage::describe(&end))),
            };
            Ok((because, ran.used))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Source;
    use crate::load::trial_setting;
    use crate::testing::{CASES, Guest, MANIFEST, embedded, sandbox};

    #[tokio::test]
    async fn a_trial_whose_time_ran_out_says_so_and_tries_no_more() {
        let (sandbox, _folder) = sandbox();
        let bytes = embedded(&Guest::default().assemble(), MANIFEST, CASES);
        let loaded = sandbox.load(Source::Bytes { name: "test.wasm".to_owned(), bytes }).await.unwrap();
        let component = sandbox.component(&loaded.digest).unwrap();
        let cases = checkrein_contract::cases::parse("cases.toml", CASES).unwrap();
        let (here, count) = (sandbox.clone(), cases.len());
        let work = async move {
            let none = Budget { wall_ms: 60_000, cpu_ms: 0 };
            here.probe_within(&component, &cases, MUTANTS, none).await
        };
        let report = sandbox.on_guest_threads(work).await.unwrap().unwrap();
        assert_eq!((report.cases.len(), report.passed(), report.mutants), (count, 0, 0));
        let (failed, _) = report.faults("test.wasm");
        assert!(failed.unwrap().iter().all(|fault| fault.found.contains("ran out")), "{report:?}");
    }

    #[test]
    fn a_call_of_a_trial_gets_no_more_time_than_is_left() {
        let setting = trial_setting(Digest::of(b"x"), checkrein_contract::limits::Limits::default());
        let mut budget = Budget::of(MUTANTS);
        let fresh = budget.within(&setting).unwrap();
        assert_eq!(fresh.limits, setting.limits);
        budget.charge(&Used { wall_ms: WALL_MS - 7, cpu_ms: CPU_MS - 5, ..Used::default() }, 1);
        let last = budget.within(&setting).unwrap();
        assert_eq!((last.limits.get(LimitKey::Wall), last.limits.get(LimitKey::Cpu)), (7, 5));
        budget.charge(&Used { cpu_ms: 6, ..Used::default() }, 1);
        assert!(budget.within(&setting).is_err());
    }
}
