//! The embedded cases. They hold real outcomes of small tables; after a change of the skills,
//! `REGENERATE=1 cargo test -p statistics-recheck --test cases` writes them again.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use std::fmt::Write as _;

use checkrein_skill::testing::{Case, World, call, load_cases, run_verifier_cases};
use checkrein_skill::{Outcome, Skill};
use differential_expression::DifferentialExpression;
use serde_json::{Value, json};
use statistics_recheck::StatisticsRecheck;
use table_profile::TableProfile;

const EXPRESSION: &str = include_str!("../../differential-expression/cases.toml");
const PROFILE: &str = include_str!("../../table-profile/cases.toml");

#[test]
fn cases_run_and_changes_are_caught() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/cases.toml");
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(file, generate()).unwrap();
    }
    let caught = run_verifier_cases::<StatisticsRecheck>(&std::fs::read_to_string(file).unwrap());
    assert!(caught > 0.95, "{caught}");
}

fn generate() -> String {
    let mut text =
        String::from("# Written by tests/cases.rs from the first cases of the two skills.\n");
    let case = load_cases(EXPRESSION).remove(0);
    let (outcome, work) = run::<DifferentialExpression>(&case, "de.csv");
    push(
        &mut text,
        "differential expression that holds",
        "accepted",
        "differential-expression",
        &case,
        &outcome,
        &work,
    );
    let mut lie = outcome.clone();
    let p = lie.facts[2].content.pointer_mut("/p").unwrap();
    *p = json!(p.as_f64().unwrap() / 2.0);
    push(&mut text, "half a p-value", "rejected", "differential-expression", &case, &lie, &work);
    let case = load_cases(PROFILE).remove(0);
    let (outcome, work) = run::<TableProfile>(&case, "profile.json");
    push(&mut text, "a profile that holds", "accepted", "table-profile", &case, &outcome, &work);
    let mut lie = outcome.clone();
    lie.facts[2].content["max"] = json!(40);
    push(&mut text, "another largest value", "rejected", "table-profile", &case, &lie, &work);
    let mut other = outcome;
    other.facts[0].subject = "lines/total".into();
    push(
        &mut text,
        "a subject that it does not know",
        "unsupported",
        "line-count",
        &case,
        &other,
        &work,
    );
    text
}

fn run<T: Skill>(case: &Case, artifact: &str) -> (Outcome, (String, String)) {
    let world = World::new();
    for (name, text) in &case.inputs {
        world.write(&format!("/in/{name}"), text);
    }
    let outcome = T::execute(call(serde_json::from_value(case.args.clone()).unwrap())).unwrap();
    (outcome, (artifact.to_owned(), world.read(&format!("/work/{artifact}"))))
}

fn push(
    text: &mut String,
    name: &str,
    expect: &str,
    skill: &str,
    case: &Case,
    outcome: &Outcome,
    work: &(String, String),
) {
    let args: Vec<String> = case
        .args
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    write!(
        text,
        "\n[[case]]\nname = {name:?}\nexpect = {expect:?}\nsubmission = {{ skill = {skill:?}, version = \"0.1.0\" }}\n\
         args = {{ {} }}\noutcome = '''\n{}\n'''\n\n[case.in]\n",
        args.join(", "),
        outcome_json(outcome),
    )
    .unwrap();
    for (file, content) in &case.inputs {
        writeln!(text, "{} = {}", json!(file), multi_line(content)).unwrap();
    }
    writeln!(text, "\n[case.work]\n{} = {}", json!(work.0), multi_line(&work.1)).unwrap();
}

fn multi_line(content: &str) -> String {
    let escaped = content
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\t', "\\t")
        .replace('\r', "\\r");
    format!("\"\"\"\n{escaped}\"\"\"")
}

/// One line a fact.
fn outcome_json(outcome: &Outcome) -> String {
    let fact = |fact: &checkrein_skill::DraftFact| {
        json!({ "subject": fact.subject, "kind": fact.kind, "source": fact.source, "content": fact.content }).to_string()
    };
    let artifacts: Vec<Value> = outcome
        .artifacts
        .iter()
        .map(|artifact| json!({ "path": artifact.path, "title": artifact.title, "media_type": artifact.media_type }))
        .collect();
    let facts: Vec<String> = outcome.facts.iter().map(fact).collect();
    format!(
        "{{ \"content\": {},\n  \"facts\": [\n    {} ],\n  \"artifacts\": {} }}",
        outcome.content,
        facts.join(",\n    "),
        json!(artifacts)
    )
}
