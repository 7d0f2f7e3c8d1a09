//! Text of strangers (skills, web pages, models, files), fit to be shown: on a terminal, a page, in
//! a report or to a planner.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Whether the character changes how others are shown, or is not shown itself: control
/// characters, directions of writing, characters without width, tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// One line of text in which every character is seen: hidden ones stand as `\u{202e}`, the ends
/// of lines as a space. For the terminal, and before any other escape.
pub fn visible(text: &str) -> String {
    reveal(text, |c| match c {
        '\n' | '\t' => Some(' '),
        '\r' => Some(' '),
        _ => None,
    })
}

/// As [`visible`], with the lines kept apart.
pub fn visible_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    reveal(&text, |c| matches!(c, '\n' | '\t').then_some(c))
}

fn reveal(text: &str, keep: impl Fn(char) -> Option<char>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if let Some(kept) = keep(c) {
            out.push(kept);
        } else if is_hidden(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// The first `max` characters; the cut is marked.
pub fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} …", text[..at].trim_end()),
    }
}

/// A text of a stranger as a planner or a person is told it: every character seen, the lines kept,
/// cut after `max` characters.
pub fn told(text: &str, max: usize) -> String {
    // Only what can be shown is looked at; one character becomes ten at most.
    let end = text.char_indices().nth(max.saturating_add(1)).map_or(text.len(), |(at, _)| at);
    cut(&visible_lines(&text[..end]), max)
}

/// A JSON value of a stranger with every text in it, keys too, as [`told`]; one that is larger than
/// `max` characters in all becomes its beginning, as a text.
pub fn told_json(value: &Value, max: usize) -> Value {
    let shown = shown_json(value, max);
    let text = shown.to_string();
    if text.chars().count() <= max { shown } else { Value::String(cut(&text, max)) }
}

fn shown_json(value: &Value, max: usize) -> Value {
    match value {
        Value::String(text) => Value::String(told(text, max)),
        Value::Array(items) => items.iter().take(max).map(|item| shown_json(item, max)).collect(),
        Value::Object(entries) => {
            let entries = entries.iter().take(max);
            Value::Object(
                entries.map(|(key, item)| (told(key, max), shown_json(item, max))).collect::<Map<_, _>>(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_seen() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2Jc\u{200b}\nd"), "a\\u{202e}b\\u{1b}[2Jc\\u{200b} d");
        assert_eq!(visible_lines("a\r\nb\u{7}"), "a\nb\\u{7}");
        assert_eq!(visible("Grün 漢字 é"), "Grün 漢字 é");
    }

    #[test]
    fn what_a_planner_is_told_is_short_and_seen() {
        assert_eq!(told("a\u{2066}\nb", 99), "a\\u{2066}\nb");
        assert_eq!(told(&"x".repeat(1 << 20), 10).chars().count(), 12);
        let value = json!({ "k\u{202e}": ["\u{1b}[2J", 1, null] });
        assert_eq!(told_json(&value, 99), json!({ "k\\u{202e}": ["\\u{1b}[2J", 1, null] }));
        assert!(told_json(&json!(vec![7; 1 << 16]), 50).as_str().is_some_and(|text| text.len() < 60));
    }
}
