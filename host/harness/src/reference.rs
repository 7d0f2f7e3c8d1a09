//! References in arguments: `{ "$in" = NAME }`, `{ "$param" = NAME }`,
//! `{ "$fact" = SUBJECT, pointer = "/a/b" }`, `{ "$artifact" = "<subgoal>/<path>" }`.
//!
//! They are found when a task is read, and resolved once, when the subgoal opens.

use checkrein_contract::interface::{Fact, Severity};
use checkrein_contract::problem::{Problem, Stage};
use serde_json::{Map, Value, json};

/// One reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An input of the task, by name; becomes its path.
    In(String),
    /// A parameter, by name; becomes its value.
    Param(String),
    /// A fact in scope, by subject, and a JSON Pointer into its content; becomes that value.
    Fact(String, String),
    /// An artifact in scope, as `<subgoal>/<path>`; becomes its path.
    Artifact(String),
}

/// What references are resolved with.
pub trait Lookup {
    /// The path of an input.
    fn input(&self, name: &str) -> Option<String>;
    /// The value of a parameter.
    fn parameter(&self, name: &str) -> Option<Value>;
    /// The current fact on a subject.
    fn fact(&self, subject: &str) -> Option<Fact>;
    /// Whether an artifact is in scope.
    fn has_artifact(&self, path: &str) -> bool;
}

/// A value that starts like a reference, but is none.
pub type Malformed = (String, String);

/// Every reference in the arguments, with the JSON Pointer of its place; and what only looks like one.
pub fn find(args: &Map<String, Value>) -> (Vec<(String, Reference)>, Vec<Malformed>) {
    let (mut found, mut malformed) = (Vec::new(), Vec::new());
    walk(&Value::Object(args.clone()), String::new(), &mut |value, pointer| match parse(value) {
        Some(Ok(reference)) => {
            found.push((pointer.to_owned(), reference));
            false
        }
        Some(Err(why)) => {
            malformed.push((pointer.to_owned(), why));
            false
        }
        None => true,
    });
    (found, malformed)
}

/// The parameters that the arguments refer to.
pub fn parameters(args: &Map<String, Value>) -> Vec<String> {
    parameter_places(args).into_iter().map(|(_, name)| name).collect()
}

/// The places where the arguments refer to a parameter, and which.
pub fn parameter_places(args: &Map<String, Value>) -> Vec<(String, String)> {
    let references = find(args).0.into_iter();
    let parameters = references.filter_map(|(pointer, reference)| match reference {
        Reference::Param(name) => Some((pointer, name)),
        Reference::In(_) | Reference::Fact(..) | Reference::Artifact(_) => None,
    });
    parameters.collect()
}

/// The subjects of the facts that the arguments refer to.
pub fn subjects(args: &Map<String, Value>) -> Vec<String> {
    let references = find(args).0.into_iter();
    let subjects = references.filter_map(|(_, reference)| match reference {
        Reference::Fact(subject, _) => Some(subject),
        Reference::In(_) | Reference::Param(_) | Reference::Artifact(_) => None,
    });
    subjects.collect()
}

/// The value at a JSON Pointer into the arguments.
pub fn at<'v>(args: &'v Map<String, Value>, pointer: &str) -> Option<&'v Value> {
    let rest = pointer.strip_prefix('/')?;
    let (first, deeper) = rest.split_once('/').map_or((rest, None), |(first, deeper)| (first, Some(deeper)));
    let value = args.get(&first.replace("~1", "/").replace("~0", "~"))?;
    match deeper {
        None => Some(value),
        Some(deeper) => value.pointer(&format!("/{deeper}")),
    }
}

/// Every text in the arguments, with its JSON Pointer.
pub fn texts(args: &Map<String, Value>) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    walk(&Value::Object(args.clone()), String::new(), &mut |value, pointer| {
        if let Value::String(text) = value {
            texts.push((pointer.to_owned(), text.clone()));
        }
        true
    });
    texts
}

/// Resolves every reference.
///
/// # Errors
///
/// All that do not resolve.
pub fn resolve(args: &Map<String, Value>, lookup: &dyn Lookup) -> Result<Map<String, Value>, Vec<Problem>> {
    let mut problems = Vec::new();
    let resolved = args
        .iter()
        .map(|(key, value)| {
            (key.clone(), resolve_value(value, &format!("/{}", escape(key)), lookup, &mut problems))
        })
        .collect();
    if problems.is_empty() { Ok(resolved) } else { Err(problems) }
}

fn resolve_value(value: &Value, pointer: &str, lookup: &dyn Lookup, problems: &mut Vec<Problem>) -> Value {
    match parse(value) {
        Some(Ok(reference)) => resolve_one(&reference, lookup).unwrap_or_else(|(message, expected)| {
            problems.push(unresolved(pointer, message, expected, value.clone()));
            Value::Null
        }),
        Some(Err(why)) => {
            problems.push(unresolved(pointer, why, json!("a reference"), value.clone()));
            Value::Null
        }
        None => match value {
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| {
                    let deeper = format!("{pointer}/{}", escape(key));
                    (key.clone(), resolve_value(value, &deeper, lookup, problems))
                })
                .collect::<Map<String, Value>>()
                .into(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| resolve_value(value, &format!("{pointer}/{index}"), lookup, problems))
                .collect(),
            plain => plain.clone(),
        },
    }
}

fn resolve_one(reference: &Reference, lookup: &dyn Lookup) -> Result<Value, (String, Value)> {
    match reference {
        Reference::In(name) => lookup
            .input(name)
            .map(|file| Value::String(format!("/in/{file}")))
            .ok_or_else(|| (format!("there is no input `{name}`"), json!("an input of the task"))),
        Reference::Param(name) => lookup
            .parameter(name)
            .ok_or_else(|| (format!("there is no parameter `{name}`"), json!("a parameter of the task"))),
        Reference::Artifact(path) if lookup.has_artifact(path) => {
            Ok(Value::String(format!("/artifacts/{path}")))
        }
        Reference::Artifact(path) => Err((
            format!("the artifact `{path}` is not in scope"),
            json!("an accepted artifact of a subgoal before this one"),
        )),
        Reference::Fact(subject, pointer) => {
            let missing = || {
                (format!("no fact on `{subject}` is in scope"), json!("a fact of a subgoal before this one"))
            };
            let fact = lookup.fact(subject).ok_or_else(missing)?;
            let nothing = || (format!("`{}` has nothing at `{pointer}`", fact.id), fact.content.clone());
            fact.content.pointer(pointer).cloned().ok_or_else(nothing)
        }
    }
}

fn unresolved(pointer: &str, message: String, expected: Value, actual: Value) -> Problem {
    Problem {
        stage: Stage::Semantics,
        rule: "reference".to_owned(),
        skill: "planner".to_owned(),
        severity: Severity::Error,
        message,
        expected,
        actual,
        location: Some(pointer.to_owned()),
        suggestion: None,
    }
}

/// The reference that a value is: `None` if it is an ordinary value.
fn parse(value: &Value) -> Option<Result<Reference, String>> {
    let map = value.as_object()?;
    let (key, name) = map.iter().find(|(key, _)| key.starts_with('$'))?;
    let Some(name) = name.as_str() else { return Some(Err(format!("`{key}` takes a text"))) };
    let name = name.to_owned();
    let extra = map.keys().find(|other| *other != key && !(key == "$fact" && *other == "pointer"));
    if let Some(extra) = extra {
        return Some(Err(format!("`{key}` stands alone, without `{extra}`")));
    }
    Some(match key.as_str() {
        "$in" => Ok(Reference::In(name)),
        "$param" => Ok(Reference::Param(name)),
        "$artifact" => Ok(Reference::Artifact(name)),
        "$fact" => match map.get("pointer") {
            None => Ok(Reference::Fact(name, String::new())),
            Some(Value::String(pointer)) if pointer.is_empty() || pointer.starts_with('/') => {
                Ok(Reference::Fact(name, pointer.clone()))
            }
            Some(_) => Err("`pointer` is a JSON Pointer such as \"/a/b\"".to_owned()),
        },
        other => {
            Err(format!("there is no reference `{other}`; there are `$in`, `$param`, `$fact`, `$artifact`"))
        }
    })
}

/// Visits every value, depth first; `visit` says whether to go deeper.
fn walk(value: &Value, pointer: String, visit: &mut dyn FnMut(&Value, &str) -> bool) {
    if !visit(value, &pointer) {
        return;
    }
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| walk(value, format!("{pointer}/{}", escape(key)), visit));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| walk(value, format!("{pointer}/{index}"), visit));
        }
        _ => {}
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World;

    impl Lookup for World {
        fn input(&self, name: &str) -> Option<String> {
            (name == "counts").then(|| "c.tsv".to_owned())
        }
        fn parameter(&self, name: &str) -> Option<Value> {
            (name == "alpha").then(|| json!(0.05))
        }
        fn fact(&self, _: &str) -> Option<Fact> {
            None
        }
        fn has_artifact(&self, path: &str) -> bool {
            path == "de/de.csv"
        }
    }

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn each_kind_resolves() {
        let given = args(
            json!({ "a": { "$in": "counts" }, "b": [{ "$param": "alpha" }], "c": { "$artifact": "de/de.csv" }, "d": 1 }),
        );
        let resolved = resolve(&given, &World).unwrap();
        assert_eq!(
            Value::Object(resolved),
            json!({ "a": "/in/c.tsv", "b": [0.05], "c": "/artifacts/de/de.csv", "d": 1 })
        );
    }

    #[test]
    fn all_that_do_not_resolve_are_told_with_their_place() {
        let given =
            args(json!({ "a": { "$in": "x" }, "b": { "c": { "$fact": "s" } }, "d": { "$params": "alpha" } }));
        let problems = resolve(&given, &World).unwrap_err();
        let places: Vec<_> = problems.iter().map(|problem| problem.location.clone().unwrap()).collect();
        assert_eq!(places, ["/a", "/b/c", "/d"]);
    }

    #[test]
    fn parameters_are_found_with_their_place() {
        let given = args(json!({ "x": { "y~/": { "$param": "alpha" } } }));
        let places = parameter_places(&given);
        assert_eq!(places, [("/x/y~0~1".to_owned(), "alpha".to_owned())]);
        assert_eq!(at(&args(json!({ "x": { "y~/": 3 } })), &places[0].0), Some(&json!(3)));
    }
}
