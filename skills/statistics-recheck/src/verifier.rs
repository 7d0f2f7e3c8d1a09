//! What is judged, and by what.

use checkrein_skill::call::settings;
use checkrein_skill::prelude::*;

use crate::{judge_expression, judge_profile};

/// As many findings as a person would read.
const MOST_FINDINGS: usize = 20;

/// What an operator can set.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Relative difference that is still agreement.
    pub tolerance: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: 1e-6 }
    }
}

/// The verifier `statistics-recheck`.
pub struct StatisticsRecheck;

impl Verifier for StatisticsRecheck {
    fn verify(submission: &Submission<Value>) -> Result<Verdict, Failure> {
        let performed = submission.performed()?;
        let settings: Settings = settings(&submission.settings)?;
        if !(settings.tolerance > 0.0 && settings.tolerance < 0.1) {
            let message =
                format!("`tolerance` is {}: over 0 and below 0.1 is possible", settings.tolerance);
            return Err(Failure::invalid_args(message));
        }
        let (args, outcome) = (&performed.call.args, &performed.outcome);
        let mut verdict = Verdict::new();
        match subject_matter(outcome)? {
            Matter::Expression => {
                judge_expression::judge(args, outcome, settings.tolerance, &mut verdict)?
            }
            Matter::Profile => {
                judge_profile::judge(args, outcome, settings.tolerance, &mut verdict)?
            }
        }
        verdict.cap_findings(MOST_FINDINGS);
        Ok(verdict)
    }
}

enum Matter {
    Expression,
    Profile,
}

/// What all facts are about. One that cannot be judged makes the whole submission so: a part that
/// holds must not look like the whole.
fn subject_matter(outcome: &Outcome) -> Result<Matter, Failure> {
    let under = |folder: &str| outcome.facts.iter().all(|fact| fact.subject.starts_with(folder));
    let artifact = |path: &str| outcome.artifacts.iter().any(|artifact| artifact.path == path);
    let facts = !outcome.facts.is_empty();
    if under("de/") && (facts || artifact("de.csv")) {
        return Ok(Matter::Expression);
    }
    if under("profile/") && (facts || artifact("profile.json")) {
        return Ok(Matter::Profile);
    }
    let known = |subject: &str| subject.starts_with("de/") || subject.starts_with("profile/");
    let unknown =
        outcome.facts.iter().map(|fact| fact.subject.as_str()).find(|subject| !known(subject));
    let message = match unknown {
        Some(subject) => format!("`{subject}` is neither under `de/` nor under `profile/`"),
        None => "facts under both `de/` and `profile/`, or no facts at all".into(),
    };
    Err(Failure::unsupported(message))
}

export_verifier!(StatisticsRecheck);
