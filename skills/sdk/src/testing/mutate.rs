//! Changes accepted outcomes, to see what a verification catches.

use serde_json::{Number, Value, json};

use super::World;
use super::cases::{Case, Judge, accepts};
use crate::Outcome;

/// An outcome that was changed, or a file of `/work`.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What was changed.
    pub name: String,
    outcome: Outcome,
    file: Option<(String, String, String)>,
}

impl Mutant {
    /// Whether the verification does not accept it.
    #[must_use]
    pub fn is_caught(&self, world: &World, case: &Case, judge: &Judge<'_>) -> bool {
        if let Some((path, changed, _)) = &self.file {
            world.write(path, changed);
        }
        let accepted =
            judge(case, &self.outcome).is_ok_and(|verdict| accepts(&verdict, &self.outcome));
        if let Some((path, _, original)) = &self.file {
            world.write(path, original);
        }
        !accepted
    }
}

/// The caught share of what was made, 0 if nothing was.
#[must_use]
pub fn share_caught(caught: usize, made: usize) -> f64 {
    if made == 0 { 0.0 } else { caught as f64 / made as f64 }
}

/// Changes of the outcome's content (a value, a sign, a field left out), of each fact (a value, a
/// sign), of the list (dropped, doubled under another name,
/// contents swapped) and of each text artifact (a digit, a line).
#[must_use]
pub fn mutants(outcome: &Outcome, world: &World) -> Vec<Mutant> {
    let mut all = Vec::new();
    change_content(outcome, &mut all);
    for at in 0..outcome.facts.len().min(50) {
        change_fact(outcome, at, &mut all);
        change_list(outcome, at, &mut all);
    }
    for artifact in &outcome.artifacts {
        let path = format!("/work/{}", artifact.path);
        let text = world.read(&path);
        for (name, changed) in changed_texts(&text) {
            all.push(Mutant {
                name: format!("{}: {name}", artifact.path),
                outcome: outcome.clone(),
                file: Some((path.clone(), changed, text.clone())),
            });
        }
    }
    all
}

fn change_content(outcome: &Outcome, all: &mut Vec<Mutant>) {
    let mut push = |name: String, content: Value| {
        all.push(Mutant { name, outcome: Outcome { content, ..outcome.clone() }, file: None });
    };
    for pointer in leaves(&outcome.content, String::new()) {
        for kind in ["value", "sign"] {
            let mut content = outcome.content.clone();
            let Some(leaf) = content.pointer_mut(&pointer) else {
                continue;
            };
            if let Some(other) = change_value(leaf, kind) {
                *leaf = other;
                push(format!("/content{pointer}: {kind}"), content);
            }
        }
    }
    for key in outcome.content.as_object().into_iter().flat_map(|map| map.keys()) {
        let mut content = outcome.content.clone();
        if let Some(map) = content.as_object_mut() {
            map.shift_remove(key);
        }
        push(format!("/content/{key}: left out"), content);
    }
}

fn change_fact(outcome: &Outcome, at: usize, all: &mut Vec<Mutant>) {
    let subject = &outcome.facts[at].subject;
    for pointer in leaves(&outcome.facts[at].content, String::new()) {
        for kind in ["value", "sign"] {
            let mut changed = outcome.clone();
            let Some(leaf) = changed.facts[at].content.pointer_mut(&pointer) else {
                continue;
            };
            let Some(other) = change_value(leaf, kind) else {
                continue;
            };
            *leaf = other;
            all.push(Mutant {
                name: format!("{subject}{pointer}: {kind}"),
                outcome: changed,
                file: None,
            });
        }
    }
}

fn change_list(outcome: &Outcome, at: usize, all: &mut Vec<Mutant>) {
    let subject = outcome.facts[at].subject.clone();
    let mut push = |name: &str, outcome: Outcome| {
        all.push(Mutant { name: format!("{subject}: {name}"), outcome, file: None });
    };
    let mut dropped = outcome.clone();
    dropped.facts.remove(at);
    push("dropped", dropped);
    let mut invented = outcome.clone();
    let mut twin = invented.facts[at].clone();
    twin.subject.push_str("-x");
    invented.facts.push(twin);
    push("invented", invented);
    let next = (at + 1) % outcome.facts.len();
    if outcome.facts[at].content != outcome.facts[next].content {
        let mut swapped = outcome.clone();
        swapped.facts[at].content = outcome.facts[next].content.clone();
        swapped.facts[next].content = outcome.facts[at].content.clone();
        push("swapped", swapped);
    }
}

/// Pointers to every number, text and truth value.
fn leaves(value: &Value, at: String) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                leaves(value, format!("{at}/{key}"))
            })
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .flat_map(|(n, value)| leaves(value, format!("{at}/{n}")))
            .collect(),
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![at],
    }
}

fn change_value(value: &Value, kind: &str) -> Option<Value> {
    match (value, kind) {
        (Value::Number(number), "sign") => number.as_f64().filter(|x| *x != 0.0).map(|x| json!(-x)),
        (Value::Number(number), _) => Some(changed_number(number)),
        (Value::String(text), "value") => Some(json!(format!("{text}x"))),
        (Value::Bool(truth), "value") => Some(json!(!truth)),
        _ => None,
    }
}

fn changed_number(number: &Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => json!(whole + 1),
        (None, Some(x)) => json!(x * 1.001 + f64::MIN_POSITIVE),
        (None, None) => json!(0),
    }
}

fn changed_texts(text: &str) -> Vec<(&'static str, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    if lines.len() > 1 {
        all.push(("last line dropped", lines[..lines.len() - 1].join("\n") + "\n"));
    }
    if let Some(at) = text.rfind(|c: char| ('1'..='8').contains(&c)) {
        let digit = text.as_bytes()[at] + 1;
        let changed = format!("{}{}{}", &text[..at], char::from(digit), &text[at + 1..]);
        all.push(("a digit", changed));
    }
    all
}
