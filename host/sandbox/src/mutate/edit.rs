//! One change of an outcome.

use checkrein_contract::interface::Outcome;
use serde_json::Value;

use super::MutantKind;

/// The JSON document that a change is in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Root {
    /// The content of the outcome.
    Content,
    /// The content of the fact with this number.
    Fact(usize),
}

impl Root {
    fn pointer(self) -> String {
        match self {
            Root::Content => "/content".to_owned(),
            Root::Fact(at) => format!("/facts/{at}/content"),
        }
    }

    fn of(self, outcome: &mut Outcome) -> Option<&mut Value> {
        match self {
            Root::Content => Some(&mut outcome.content),
            Root::Fact(at) => outcome.facts.get_mut(at).map(|fact| &mut fact.content),
        }
    }
}

/// A change that makes an outcome wrong.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    /// Another value at a place.
    Set {
        kind: MutantKind,
        root: Root,
        pointer: String,
        from: Value,
        to: Value,
    },
    /// An element of a list, or a field, is left out.
    Remove {
        root: Root,
        pointer: String,
        key: Key,
    },
    /// Two elements or fields are exchanged.
    Exchange {
        kind: MutantKind,
        root: Root,
        pointer: String,
        first: Key,
        second: Key,
    },
    /// An element is there twice.
    Repeat {
        root: Root,
        pointer: String,
        at: usize,
    },
    DropFact {
        at: usize,
        subject: String,
    },
    DropArtifact {
        at: usize,
        path: String,
    },
    SwapFacts {
        first: usize,
        second: usize,
        subjects: (String, String),
    },
    InventFact {
        like: usize,
        subject: String,
    },
}

/// A place in a list or an object.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Index(usize),
    Name(String),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Index(at) => write!(f, "{at}"),
            Key::Name(name) => f.write_str(&super::sites::escape(name)),
        }
    }
}

impl Edit {
    pub(super) fn kind(&self) -> MutantKind {
        match self {
            Edit::Set { kind, .. } | Edit::Exchange { kind, .. } => *kind,
            Edit::Remove { .. } | Edit::DropFact { .. } | Edit::DropArtifact { .. } => MutantKind::Drop,
            Edit::SwapFacts { .. } => MutantKind::Swap,
            Edit::Repeat { .. } | Edit::InventFact { .. } => MutantKind::Invent,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Edit::Set { root, pointer, from, to, .. } => {
                let short = |value: &Value| crate::text::excerpt(&value.to_string());
                format!("{}{pointer}: {} instead of {}", root.pointer(), short(to), short(from))
            }
            Edit::Remove { root, pointer, key } => format!("{}{pointer}/{key}: left out", root.pointer()),
            Edit::Exchange { root, pointer, first, second, .. } => {
                format!("{}{pointer}: `{first}` and `{second}` exchanged", root.pointer())
            }
            Edit::Repeat { root, pointer, at } => format!("{}{pointer}/{at}: there twice", root.pointer()),
            Edit::DropFact { at, subject } => format!("/facts/{at}: `{subject}` left out"),
            Edit::DropArtifact { at, path } => format!("/artifacts/{at}: `{path}` left out"),
            Edit::SwapFacts { first, subjects: (one, other), .. } => {
                format!("/facts/{first}/content: that of `{other}`, and the other way round, for `{one}`")
            }
            Edit::InventFact { like, subject } => format!("/facts: `{subject}` invented, like /facts/{like}"),
        }
    }

    pub(super) fn apply(&self, outcome: &mut Outcome) {
        match self {
            Edit::Set { root, pointer, to, .. } => {
                if let Some(place) = at(*root, pointer, outcome) {
                    *place = to.clone();
                }
            }
            Edit::Remove { root, pointer, key } => remove(at(*root, pointer, outcome), key),
            Edit::Exchange { root, pointer, first, second, .. } => {
                exchange(at(*root, pointer, outcome), first, second);
            }
            Edit::Repeat { root, pointer, at: index } => {
                if let Some(Value::Array(list)) = at(*root, pointer, outcome) {
                    list.insert(*index, list[*index].clone());
                }
            }
            Edit::DropFact { at, .. } => drop(outcome.facts.remove(*at)),
            Edit::DropArtifact { at, .. } => drop(outcome.artifacts.remove(*at)),
            Edit::SwapFacts { first, second, .. } => {
                let other = outcome.facts[*second].content.clone();
                outcome.facts[*second].content = std::mem::replace(&mut outcome.facts[*first].content, other);
            }
            Edit::InventFact { like, subject } => {
                let mut fact = outcome.facts[*like].clone();
                fact.subject.clone_from(subject);
                outcome.facts.insert(*like + 1, fact);
            }
        }
    }
}

fn at<'o>(root: Root, pointer: &str, outcome: &'o mut Outcome) -> Option<&'o mut Value> {
    root.of(outcome)?.pointer_mut(pointer)
}

fn remove(place: Option<&mut Value>, key: &Key) {
    match (place, key) {
        (Some(Value::Array(list)), Key::Index(at)) => drop(list.remove(*at)),
        // Not `remove`, which would also change the order of the other fields.
        (Some(Value::Object(map)), Key::Name(name)) => drop(map.shift_remove(name)),
        _ => {}
    }
}

fn exchange(place: Option<&mut Value>, first: &Key, second: &Key) {
    match (place, first, second) {
        (Some(Value::Array(list)), Key::Index(first), Key::Index(second)) => list.swap(*first, *second),
        (Some(Value::Object(map)), Key::Name(first), Key::Name(second)) => {
            let (Some(one), Some(other)) = (map.get(first).cloned(), map.get(second).cloned()) else {
                return;
            };
            map.insert(first.clone(), other);
            map.insert(second.clone(), one);
        }
        _ => {}
    }
}
