//! Text that a stranger chose, fit to be shown.

/// Bytes of a text that are quoted in a message.
const QUOTED: usize = 200;

/// The beginning of a text, with a mark if there is more.
pub(crate) fn excerpt(text: &str) -> String {
    at_most(text, QUOTED)
}

/// The beginning of a text, so many bytes of it, with a mark if there is more.
pub(crate) fn at_most(text: &str, bytes: usize) -> String {
    let cut = text.floor_char_boundary(bytes);
    if cut == text.len() { text.to_owned() } else { format!("{}… ({} bytes)", &text[..cut], text.len()) }
}

/// The text on one line, every character seen, so that it can neither pretend to be a second
/// message nor steer a terminal.
pub(crate) fn one_line(text: &str) -> String {
    checkrein_contract::text::visible(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[31mc\u{202e}d"), "a b\\u{1b}[31mc\\u{202e}d");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert!(excerpt(&"é".repeat(1000)).ends_with("(2000 bytes)"));
        assert_eq!(excerpt("short"), "short");
    }
}
