//! Text of skills, models and data is not trusted with the page or the terminal that shows it.

use std::fmt::Write as _;

use serde_json::Value;

pub use checkrein_contract::text::{cut, is_hidden, visible, visible_lines};

/// Plain text as Markdown: nothing in it is markup, a link, HTML or the end of a table's cell.
pub fn markdown(text: &str) -> String {
    let text = visible(text);
    let text = text.trim();
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        // These mark what a report could not fill in: see `compose`.
        let c = match c {
            '⟦' => '[',
            '⟧' => ']',
            c => c,
        };
        let special = match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!'
            | '$' | '^' | '@' => true,
            // The start of a list, a rule or a heading's underline; a sign is none of these.
            '-' | '+' | '=' => {
                at == 0 && !rest[1..].starts_with(|next: char| next.is_ascii_digit() || next == '.')
            }
            // Renderers make links of bare addresses.
            ':' => rest.starts_with("://"),
            '.' | ')' => {
                starts_item(&text[..at], &rest[1..]) || text[..at].to_ascii_lowercase().ends_with("www")
            }
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether a `.` between these makes an item of a numbered list.
fn starts_item(before: &str, after: &str) -> bool {
    let number = !before.is_empty() && before.len() <= 9 && before.bytes().all(|byte| byte.is_ascii_digit());
    number && (after.is_empty() || after.starts_with(char::is_whitespace))
}

/// A message as Markdown: plain text, and names between backticks as code.
pub fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) || parts.iter().skip(1).step_by(2).any(|name| name.trim().is_empty()) {
        return markdown(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, part) in parts.into_iter().enumerate() {
        // `markdown` trims; the space between words and names stays.
        let (before, after) = (part.starts_with(char::is_whitespace), part.ends_with(char::is_whitespace));
        match at % 2 {
            0 => {
                out.push_str(if before && at > 0 { " " } else { "" });
                let plain = markdown(part);
                out.push_str(&plain);
                out.push_str(if after && !plain.is_empty() { " " } else { "" });
            }
            _ => out.push_str(&code(part.trim())),
        }
    }
    out.trim().to_owned()
}

/// A name, an id or a digest as Markdown code; as escaped text where code cannot hold it.
pub fn code(text: &str) -> String {
    let shown = visible(text);
    if shown.trim().is_empty() || shown.contains(['`', '|', '⟦', '⟧']) || shown.trim() != shown {
        return markdown(&shown);
    }
    format!("`{shown}`")
}

/// Text as HTML, in an element or in an attribute with double quotes.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible_lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A path as the address of a link, in Markdown or in an attribute.
pub fn address(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A word of a command, quoted where a shell would not take it for one word.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", visible(word).replace('\'', "'\\''"))
}

/// A JSON value as a word of a command. What a reader would not see, or a report would take for a
/// mark of its own, stands in it as JSON escapes, so that it is the same value still.
pub fn json_word(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if is_hidden(c) || matches!(c, '⟦' | '⟧') {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a text does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    shell(&text)
}

/// A JSON value on one line, cut after `max` characters; the cut is marked.
pub fn json(value: &Value, max: usize) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    cut(&visible(&text), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_plain() {
        assert_eq!(markdown("[x](javascript:alert(1))"), r"\[x\](javascript:alert(1))");
        assert_eq!(markdown("<b>|`c`"), r"\<b\>\|\`c\`");
        assert_eq!(markdown("- a"), r"\- a");
        assert_eq!(markdown("1. a"), r"1\. a");
        assert_eq!(
            markdown("see https://x.example and www.y.example"),
            r"see https\://x.example and www\.y.example"
        );
        assert_eq!(markdown("3.5 and -2"), "3.5 and -2");
        assert_eq!(markdown("-4.5"), "-4.5");
        assert_eq!(markdown("---"), r"\---");
    }

    #[test]
    fn names_in_messages_are_code() {
        assert_eq!(prose("no fact on `a_b` here"), "no fact on `a_b` here");
        assert_eq!(prose("`a` and `b|c`."), r"`a` and b\|c.");
        assert_eq!(prose("odd ` one [x](y)"), r"odd \` one \[x\](y)");
        assert_eq!(prose("a ``` b ` c"), r"a \`\`\` b \` c");
    }

    #[test]
    fn code_never_ends_early() {
        assert_eq!(code("a_b"), "`a_b`");
        assert_eq!(code("a`b"), r"a\`b");
        assert_eq!(code("a|b"), r"a\|b");
    }

    #[test]
    fn html_is_text() {
        assert_eq!(html("<script>\"'&]]>"), "&lt;script&gt;&quot;&#39;&amp;]]&gt;");
        assert_eq!(address("a b/\"c\".svg"), "a%20b/%22c%22.svg");
    }

    #[test]
    fn a_word_of_a_command_is_one_word() {
        assert_eq!(shell("20261130-4f2a"), "20261130-4f2a");
        assert_eq!(shell("a b'; rm -rf ~"), r"'a b'\''; rm -rf ~'");
        assert_eq!(shell("$(x)"), "'$(x)'");
        assert_eq!(shell(""), "''");
        let value = serde_json::json!({ "k": "it's\u{202e} ⟦\n" });
        let word = json_word(&value);
        assert_eq!(word, r#"'{"k":"it'\''s\u202e \u27e6\n"}'"#);
        // A shell takes the quotes away, and the rest is the value.
        let taken = word.trim_matches('\'').replace(r"'\''", "'");
        assert_eq!(serde_json::from_str::<Value>(&taken).unwrap(), value);
    }

    #[test]
    fn cuts_are_marked() {
        assert_eq!(cut("äöü", 2), "äö …");
        assert_eq!(json(&serde_json::json!({"a": "\u{202e}"}), 99), "{\"a\":\"\\u{202e}\"}");
    }
}
