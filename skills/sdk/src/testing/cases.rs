//! The cases of a component, run natively.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{World, call, mutants, share_caught, submission};
use crate::{Artifact, DraftFact, Failure, Outcome, Skill, Submission, Verdict, Verifier};

/// One case of a `cases.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// The subgoal's goal.
    #[serde(default)]
    pub goal: String,
    /// The arguments.
    #[serde(default)]
    pub args: Value,
    /// The attempt, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The operator's settings.
    #[serde(default)]
    pub settings: Option<Value>,
    /// Files under `/in`.
    #[serde(default, rename = "in")]
    pub inputs: BTreeMap<String, String>,
    /// Files under `/artifacts`, as `<subgoal>/<path>`.
    #[serde(default)]
    pub artifacts: BTreeMap<String, String>,
    /// Files under `/work`: the artifacts of a submission.
    #[serde(default)]
    pub work: BTreeMap<String, String>,
    /// Whose submission is judged; without it the executor runs.
    #[serde(default)]
    pub submission: Option<Origin>,
    /// The outcome that is judged, as JSON.
    #[serde(default)]
    pub outcome: Option<String>,
    /// `outcome`, `accepted`, `rejected` or the name of a failure kind.
    #[serde(default = "an_outcome")]
    pub expect: String,
}

/// The skill that a submission comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its name.
    pub skill: String,
    /// Its version.
    pub version: String,
}

fn first() -> u32 {
    1
}

fn an_outcome() -> String {
    "outcome".into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenOutcome {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    facts: Vec<GivenFact>,
    #[serde(default)]
    artifacts: Vec<GivenArtifact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFact {
    subject: String,
    kind: String,
    content: Value,
    source: String,
    supersedes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenArtifact {
    path: String,
    title: String,
    media_type: String,
}

/// Judges an outcome under given arguments and settings.
pub type Judge<'a> = dyn Fn(&Case, &Outcome) -> Result<Verdict, Failure> + 'a;

/// Parses a `cases.toml`.
///
/// # Panics
///
/// If it is not one.
#[must_use]
pub fn load_cases(text: &str) -> Vec<Case> {
    let cases: Cases = toml::from_str(text).unwrap_or_else(|error| panic!("cases.toml: {error}"));
    cases.case
}

/// Runs the cases of a skill, judges each outcome, and changes it in every way that [`mutants`]
/// knows. Gives the share of changes that the skill's own verification caught.
///
/// # Panics
///
/// If a case does not end as it expects, or an honest outcome is not accepted.
#[must_use]
pub fn run_cases<T: Skill>(text: &str) -> f64 {
    let judge = |case: &Case, outcome: &Outcome| {
        let args = parse_args::<T>(case)?;
        T::verify(&with_settings(submission("", args, outcome.clone()), case))
    };
    let execute = |case: &Case| {
        let mut call = call(parse_args::<T>(case)?);
        call.attempt = case.attempt;
        call.seed = case.seed;
        call.settings = case.settings.clone().unwrap_or_else(|| json!({}));
        T::execute(call)
    };
    run(text, &execute, &judge)
}

/// Runs the cases of a verifier, all of which bring their submission, as [`run_cases`] does.
///
/// # Panics
///
/// As [`run_cases`].
#[must_use]
pub fn run_verifier_cases<T: Verifier>(text: &str) -> f64 {
    let judge = |case: &Case, outcome: &Outcome| {
        let skill = case.submission.as_ref().map_or("", |origin| origin.skill.as_str());
        T::verify(&with_settings(submission(skill, case.args.clone(), outcome.clone()), case))
    };
    let execute = |case: &Case| panic!("{}: a verifier has no executor", case.name);
    run(text, &execute, &judge)
}

fn run(text: &str, execute: &dyn Fn(&Case) -> Result<Outcome, Failure>, judge: &Judge<'_>) -> f64 {
    let (mut made, mut caught) = (0, 0);
    for case in load_cases(text) {
        let world = world_of(&case);
        let outcome = match &case.outcome {
            Some(given) => Ok(parse_outcome(&case, given)),
            None => execute(&case),
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                assert_eq!(case.expect, failure.kind.name(), "{}: {failure}", case.name);
                continue;
            }
        };
        if check_verdict(&case, &outcome, judge) {
            let all = mutants(&outcome, &world);
            caught += all.iter().filter(|mutant| mutant.is_caught(&world, &case, judge)).count();
            made += all.len();
        }
    }
    share_caught(caught, made)
}

/// Whether the outcome was accepted, as the case expects.
fn check_verdict(case: &Case, outcome: &Outcome, judge: &Judge<'_>) -> bool {
    let verdict = match judge(case, outcome) {
        Ok(verdict) => verdict,
        Err(failure) => {
            assert_eq!(case.expect, failure.kind.name(), "{}: {failure}", case.name);
            return false;
        }
    };
    let accepted = accepts(&verdict, outcome);
    let expected = match case.expect.as_str() {
        "outcome" | "accepted" => true,
        "rejected" => false,
        other => panic!("{}: expected {other}, and it was judged: {verdict:?}", case.name),
    };
    assert_eq!(accepted, expected, "{}: {verdict:#?}", case.name);
    accepted
}

/// As the gateway has it: no error, and everything named in a check.
pub(super) fn accepts(verdict: &Verdict, outcome: &Outcome) -> bool {
    let named: std::collections::BTreeSet<&str> =
        verdict.checks.iter().flat_map(|check| &check.about).map(String::as_str).collect();
    !verdict.rejects()
        && outcome.facts.iter().all(|fact| named.contains(fact.subject.as_str()))
        && outcome.artifacts.iter().all(|artifact| named.contains(artifact.path.as_str()))
}

fn world_of(case: &Case) -> World {
    let world = World::new();
    let folders = [("/in", &case.inputs), ("/artifacts", &case.artifacts), ("/work", &case.work)];
    for (folder, files) in folders {
        for (name, text) in files {
            world.write(&format!("{folder}/{name}"), text);
        }
    }
    world
}

fn parse_args<T: Skill>(case: &Case) -> Result<T::Args, Failure> {
    crate::call::parse(&case.args.to_string(), "arguments")
}

fn with_settings<A>(mut submission: Submission<A>, case: &Case) -> Submission<A> {
    if let Some(settings) = &case.settings {
        submission.settings = settings.clone();
        if let crate::Body::Performed(performed) = &mut submission.body {
            performed.call.settings = settings.clone();
        }
    }
    submission
}

fn parse_outcome(case: &Case, given: &str) -> Outcome {
    let given: GivenOutcome = serde_json::from_str(given)
        .unwrap_or_else(|error| panic!("{}: outcome: {error}", case.name));
    let fact = |fact: GivenFact| DraftFact {
        subject: fact.subject,
        kind: fact.kind,
        content: fact.content,
        source: fact.source,
        supersedes: fact.supersedes,
    };
    let artifact = |artifact: GivenArtifact| Artifact {
        path: artifact.path,
        title: artifact.title,
        media_type: artifact.media_type,
    };
    Outcome {
        content: given.content,
        facts: given.facts.into_iter().map(fact).collect(),
        artifacts: given.artifacts.into_iter().map(artifact).collect(),
    }
}
