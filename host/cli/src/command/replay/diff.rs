//! Where two JSON values differ.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::output::one_line;

/// The most characters of a value in a line.
const VALUE_MAX: usize = 120;
/// The most characters of a path in a line.
const PATH_MAX: usize = 300;

/// One place at which two values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change<'v> {
    /// A JSON Pointer.
    pub(super) path: String,
    /// What stands there in the first; `None` is nothing.
    pub(super) expected: Option<&'v Value>,
    /// What stands there in the second.
    pub(super) found: Option<&'v Value>,
}

impl Change<'_> {
    /// For people: the place, and what stands there in each.
    pub(super) fn line(&self) -> String {
        let path = if self.path.is_empty() { "the whole" } else { &self.path };
        format!("{}: {} -> {}", one_line(path, PATH_MAX), show(self.expected), show(self.found))
    }
}

/// Every place at which they differ: of objects in the order of keys, of arrays item by item.
pub(super) fn changes<'v>(expected: &'v Value, found: &'v Value) -> Vec<Change<'v>> {
    let mut changes = Vec::new();
    compare(Some(expected), Some(found), &mut String::new(), &mut changes);
    changes
}

fn compare<'v>(
    expected: Option<&'v Value>,
    found: Option<&'v Value>,
    path: &mut String,
    changes: &mut Vec<Change<'v>>,
) {
    match (expected, found) {
        (Some(Value::Object(one)), Some(Value::Object(two))) => {
            let keys: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
            for key in keys {
                let segment = key.replace('~', "~0").replace('/', "~1");
                below(path, &segment, |path| compare(one.get(key), two.get(key), path, changes));
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(two))) => {
            for index in 0..one.len().max(two.len()) {
                below(path, &index.to_string(), |path| {
                    compare(one.get(index), two.get(index), path, changes);
                });
            }
        }
        (one, two) if one == two => {}
        (expected, found) => changes.push(Change { path: path.clone(), expected, found }),
    }
}

fn below(path: &mut String, segment: &str, inside: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(segment);
    inside(path);
    path.truncate(length);
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| one_line(&value.to_string(), VALUE_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(expected: &Value, found: &Value) -> Vec<String> {
        changes(expected, found).iter().map(Change::line).collect()
    }

    #[test]
    fn equal_values_do_not_differ() {
        let value = json!({ "a": [1, { "b": null }], "c": 0.1 });
        assert!(changes(&value, &value.clone()).is_empty());
        // The order of keys is none.
        let (one, two) = (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert!(changes(&parsed(one), &parsed(two)).is_empty());
    }

    #[test]
    fn the_place_is_named_with_both_values() {
        let one = json!({ "facts": [{ "content": { "q": 0.01, "n": 3 } }], "content": {} });
        let two = json!({ "facts": [{ "content": { "q": 0.02, "n": 3 } }], "content": {} });
        assert_eq!(lines(&one, &two), ["/facts/0/content/q: 0.01 -> 0.02"]);
    }

    #[test]
    fn what_is_only_in_one_is_nothing_in_the_other() {
        let (one, two) = (json!({ "a": [1, 2], "b": null }), json!({ "a": [1], "c": "x" }));
        assert_eq!(lines(&one, &two), ["/a/1: 2 -> nothing", "/b: null -> nothing", "/c: nothing -> \"x\""]);
    }

    #[test]
    fn another_kind_of_value_is_one_change() {
        assert_eq!(lines(&json!({ "a": { "b": 1 } }), &json!({ "a": [1] })), ["/a: {\"b\":1} -> [1]"]);
        assert_eq!(lines(&json!(1), &json!(1.0)), ["the whole: 1 -> 1.0"]);
    }

    #[test]
    fn keys_are_written_as_pointers_write_them() {
        assert_eq!(lines(&json!({ "a/b~c": 1 }), &json!({ "a/b~c": 2 })), ["/a~1b~0c: 1 -> 2"]);
    }

    #[test]
    fn long_values_are_cut_and_strangers_text_is_shown() {
        let (one, two) = (json!("x".repeat(1000)), json!("\u{202e}"));
        let line = lines(&one, &two).remove(0);
        assert!(line.chars().count() < 300 && line.contains('…') && line.contains("\\u{202e}"), "{line}");
    }
}
