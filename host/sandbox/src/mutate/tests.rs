use std::collections::BTreeSet;

use checkrein_contract::interface::{Artifact, DraftFact};
use serde_json::json;

use super::*;

fn outcome() -> Outcome {
    let fact = |subject: &str, content| DraftFact {
        subject: subject.into(),
        kind: "k".into(),
        content,
        source: "/in/x".into(),
        supersedes: None,
    };
    Outcome {
        content: json!({ "n": 5, "list": [1, 2, 3], "ok": true }),
        facts: vec![fact("a", json!({ "t": 1.5, "p": 0.25 })), fact("b", json!({ "t": -2.5, "p": 0.5 }))],
        artifacts: vec![Artifact { path: "x.csv".into(), title: String::new(), media_type: String::new() }],
    }
}

#[test]
fn every_kind_is_made_and_nothing_twice() {
    let made = mutants(&outcome(), 0, 1000);
    let kinds: BTreeSet<_> = made.iter().map(|mutant| mutant.kind).collect();
    assert_eq!(kinds.len(), MutantKind::ALL.len());
    let texts: BTreeSet<_> = made.iter().map(|mutant| &mutant.description).collect();
    assert_eq!(texts.len(), made.len());
    assert!(made.iter().all(|mutant| mutant.outcome != outcome()));
}

#[test]
fn the_number_is_kept_and_shared_by_the_kinds() {
    let made = mutants(&outcome(), 7, 12);
    assert_eq!(made.len(), 12);
    for kind in MutantKind::ALL {
        assert_eq!(made.iter().filter(|mutant| mutant.kind == kind).count(), 2, "{kind:?}");
    }
}

#[test]
fn the_seed_decides() {
    assert_eq!(mutants(&outcome(), 1, 9), mutants(&outcome(), 1, 9));
    let differs = (2..20).any(|seed| mutants(&outcome(), seed, 9) != mutants(&outcome(), 1, 9));
    assert!(differs);
}

#[test]
fn descriptions_point_at_the_place() {
    let made = mutants(&outcome(), 0, 1000);
    let has = |text: &str| assert!(made.iter().any(|mutant| mutant.description == text), "{text}");
    has("/facts/0/content/t: -1.5 instead of 1.5");
    has("/content/n: 6 instead of 5");
    has("/content/list/1: left out");
    has("/content/list: `0` and `1` exchanged");
    has("/facts/1: `b` left out");
    has("/facts: `a-invented-1` invented, like /facts/0");
}

#[test]
fn nothing_to_change_makes_nothing() {
    let empty = Outcome { content: json!(null), facts: Vec::new(), artifacts: Vec::new() };
    assert!(mutants(&empty, 0, 60).is_empty());
}
