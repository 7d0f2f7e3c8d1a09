//! What must hold of an outcome, from the outcome alone: the summary, the facts and `de.csv` say
//! the same, and what follows from other numbers in it does follow.
//!
//! Of the counts it reads only what the outcome says of all of them: how many genes and samples
//! there are, and the prior of their variances. Each gene is for a verifier that shares no code
//! with this.

mod content;
mod facts;
mod rows;

use checkrein_skill::prelude::*;

use crate::{Args, model, report, skill};

/// Relative; the same code on the same numbers, so all but the last digits agree.
const TOLERANCE: f64 = 1e-9;

/// As many findings as a person would read.
const MOST_FINDINGS: usize = 20;

pub(crate) fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let (args, outcome) = (&performed.call.args, &performed.outcome);
    let (counts, design) = skill::read(args)?;
    let (prior, total_df) =
        model::prior(&counts, &design).map_err(|fault| skill::failure(args, &counts, fault))?;
    let mut verdict = Verdict::new();
    check_artifacts(outcome, &mut verdict);
    match rows::parse(&files::read_work(report::TABLE)?) {
        Ok(genes) => {
            rows::check(&genes, total_df, &mut verdict);
            facts::check(&genes, prior, args, outcome, &mut verdict);
            let right = report::content(args, &counts, &design, &genes, total_df);
            content::check(&right, outcome, &mut verdict);
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
