//! What must hold of an outcome, from the outcome alone: the summary, the facts and `de.csv` say
//! the same, and what follows from other numbers in it does follow.
//!
//! It recomputes nothing from the counts: that is for a verifier that shares no code with this.

mod facts;
mod rows;

use checkrein_skill::prelude::*;

use crate::{Args, report};

/// Relative; the same code on the same numbers, so all but the last digits agree.
const TOLERANCE: f64 = 1e-9;

/// As many findings as a person would read.
const MOST_FINDINGS: usize = 20;

pub(crate) fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let (args, outcome) = (&performed.call.args, &performed.outcome);
    let mut verdict = Verdict::new();
    check_artifacts(outcome, &mut verdict);
    match rows::parse(&files::read_work(report::TABLE)?) {
        Ok(genes) => {
            rows::check(&genes, outcome, &mut verdict)?;
            facts::check(&genes, args, outcome, &mut verdict);
        }
        Err(finding) => {
            verdict.finding(*finding);
        }
    }
    verdict.cap_findings(MOST_FINDINGS);
    Ok(verdict)
}

fn check_artifacts(outcome: &Outcome, verdict: &mut Verdict) {
    let paths: Vec<&str> =
        outcome.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    verdict.equal("artifacts", "one artifact is expected", &vec![report::TABLE], &paths, "");
}
