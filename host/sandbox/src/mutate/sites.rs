//! Every change that can be made to an outcome.

use checkrein_contract::interface::Outcome;
use serde_json::{Number, Value, json};

use super::MutantKind;
use super::edit::{Edit, Key, Root};

/// All of them, in the order of the outcome.
pub(super) fn edits(outcome: &Outcome) -> Vec<Edit> {
    let mut edits = Vec::new();
    of_value(Root::Content, &outcome.content, String::new(), &mut edits);
    for (at, fact) in outcome.facts.iter().enumerate() {
        of_value(Root::Fact(at), &fact.content, String::new(), &mut edits);
        edits.push(Edit::DropFact { at, subject: fact.subject.clone() });
        edits.push(Edit::InventFact { like: at, subject: invented(outcome, &fact.subject) });
        // With a fact of its kind: between others the exchange would be plain nonsense, which is
        // easier to see than a mix-up.
        let mut later = outcome.facts.iter().enumerate().skip(at + 1);
        let other = later.find(|(_, other)| other.kind == fact.kind && other.content != fact.content);
        if let Some((second, other)) = other {
            edits.push(Edit::SwapFacts {
                first: at,
                second,
                subjects: (fact.subject.clone(), other.subject.clone()),
            });
        }
    }
    let artifacts = outcome.artifacts.iter().enumerate();
    edits.extend(artifacts.map(|(at, file)| Edit::DropArtifact { at, path: file.path.clone() }));
    edits
}

/// A subject beside `subject` that no fact is about.
fn invented(outcome: &Outcome, subject: &str) -> String {
    (1..)
        .map(|number| format!("{subject}-invented-{number}"))
        .find(|name| outcome.facts.iter().all(|fact| fact.subject != *name))
        .unwrap_or_default()
}

fn of_value(root: Root, value: &Value, pointer: String, edits: &mut Vec<Edit>) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => edits.push(set(MutantKind::Value, root, &pointer, value, json!(!truth))),
        Value::String(text) => {
            edits.push(set(MutantKind::Value, root, &pointer, value, json!(other_text(text))))
        }
        Value::Number(number) => of_number(root, value, number, &pointer, edits),
        Value::Array(list) => of_list(root, list, &pointer, edits),
        Value::Object(map) => {
            let names: Vec<&String> = map.keys().collect();
            for (at, name) in names.iter().enumerate() {
                edits.push(Edit::Remove { root, pointer: pointer.clone(), key: Key::Name((*name).clone()) });
                let partner = names[at + 1..].iter().find(|other| alike(&map[*name], &map[**other]));
                if let Some(other) = partner {
                    edits.push(Edit::Exchange {
                        kind: MutantKind::Swap,
                        root,
                        pointer: pointer.clone(),
                        first: Key::Name((*name).clone()),
                        second: Key::Name((*other).clone()),
                    });
                }
                of_value(root, &map[*name], format!("{pointer}/{}", escape(name)), edits);
            }
        }
    }
}

fn of_number(root: Root, value: &Value, number: &Number, pointer: &str, edits: &mut Vec<Edit>) {
    let mut off: Vec<Value> = [0.1, 1e-3].into_iter().filter_map(|share| off_by(number, share)).collect();
    // A small whole number moves by 1 either way.
    off.dedup();
    edits.extend(off.into_iter().map(|to| set(MutantKind::Value, root, pointer, value, to)));
    let negated = match number.as_i64() {
        Some(whole) => whole.checked_neg().filter(|_| whole != 0).map(|whole| json!(whole)),
        None => number.as_f64().filter(|real| *real != 0.0).map(|real| json!(-real)),
    };
    if let Some(to) = negated {
        edits.push(set(MutantKind::Sign, root, pointer, value, to));
    }
}

fn of_list(root: Root, list: &[Value], pointer: &str, edits: &mut Vec<Edit>) {
    for (at, value) in list.iter().enumerate() {
        edits.push(Edit::Remove { root, pointer: pointer.to_owned(), key: Key::Index(at) });
        edits.push(Edit::Repeat { root, pointer: pointer.to_owned(), at });
        if list.get(at + 1).is_some_and(|next| next != value) {
            edits.push(Edit::Exchange {
                kind: MutantKind::Order,
                root,
                pointer: pointer.to_owned(),
                first: Key::Index(at),
                second: Key::Index(at + 1),
            });
        }
        of_value(root, value, format!("{pointer}/{at}"), edits);
    }
}

fn set(kind: MutantKind, root: Root, pointer: &str, from: &Value, to: Value) -> Edit {
    Edit::Set { kind, root, pointer: pointer.to_owned(), from: from.clone(), to }
}

/// The number, larger by `share` of itself; a whole number stays whole and moves by 1 at least.
fn off_by(number: &Number, share: f64) -> Option<Value> {
    if let Some(whole) = number.as_i64() {
        // Beyond 2⁵³ the product is rounded; it is a wrong number all the same.
        let step = ((whole as f64 * share).abs() as i64).max(1);
        return whole.checked_add(step).map(|whole| json!(whole));
    }
    let real = number.as_f64()?;
    let changed = if real == 0.0 { share } else { real * (1.0 + share) };
    Number::from_f64(changed).map(Value::Number)
}

/// Another text, of the same look.
fn other_text(text: &str) -> String {
    let Some((at, last)) = text.char_indices().next_back() else { return "x".to_owned() };
    let other = if last == 'x' { 'y' } else { 'x' };
    format!("{}{other}", &text[..at])
}

/// Whether two values are of one type and differ.
fn alike(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one != other
}

/// A key as a segment of a JSON Pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
