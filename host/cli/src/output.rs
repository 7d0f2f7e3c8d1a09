//! The only place that writes to the terminal: data to stdout, messages to stderr.

use std::io::Write;

use crate::report::escape::{visible, visible_lines};

/// A line of data.
///
/// A reader that has gone away (`| head`) is no error of ours: there is nobody left to tell.
pub fn line(text: &str) {
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// A message to the person. Messages quote strangers, so nothing in them is hidden.
pub fn message(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", visible_lines(text)));
}

/// One line of text from outside, cut at so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = visible(text);
    if line.chars().count() > most {
        line = line.chars().take(most.saturating_sub(1)).chain(['…']).collect();
    }
    line
}
