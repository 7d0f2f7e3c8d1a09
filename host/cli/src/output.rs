//! The only place that writes to the terminal: data to stdout, messages to stderr.

use std::io::Write;

/// A line of data.
///
/// A reader that has gone away (`| head`) is no error of ours: there is nobody left to tell.
pub fn line(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// A message to the person.
pub fn message(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Text from outside, for a terminal: control and bidirectional characters made visible.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}')
    };
    text.chars().map(|c| if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// One line of text from outside, cut at so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = visible(text).replace('\n', " ⏎ ");
    if line.chars().count() > most {
        line = line.chars().take(most.saturating_sub(1)).chain(['…']).collect();
    }
    line
}
