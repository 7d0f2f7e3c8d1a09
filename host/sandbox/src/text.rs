//! Text that a stranger chose, fit to be shown.

/// Bytes of a text that are quoted in a message.
const QUOTED: usize = 200;

/// The beginning of a text, with a mark if there is more.
pub(crate) fn excerpt(text: &str) -> String {
    let cut = text.floor_char_boundary(QUOTED);
    if cut == text.len() { text.to_owned() } else { format!("{}… ({} bytes)", &text[..cut], text.len()) }
}

/// The text on one line: breaks become spaces, other control characters are replaced, so that it
/// can neither pretend to be a second message nor steer a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || is_direction(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Whether a character changes the direction of the text around it.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[31mc\u{202e}d"), "a b\u{fffd}[31mc\u{fffd}d");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert!(excerpt(&"é".repeat(1000)).ends_with("(2000 bytes)"));
        assert_eq!(excerpt("short"), "short");
    }
}
