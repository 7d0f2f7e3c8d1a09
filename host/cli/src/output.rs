//! The only place that writes to the terminal: data to stdout, messages to stderr.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

use crate::error::CliError;
use crate::report::escape::{is_hidden, visible, visible_lines};

/// Why data could not be written, if it could not.
static FAILED: Mutex<Option<String>> = Mutex::new(None);

/// Whether the reader of the data has gone away.
static GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of the data (`| head`) has gone away, as far as was noticed: nobody waits for
/// more.
pub fn is_read_no_more() -> bool {
    GONE.load(Relaxed)
}

/// Lines of data. They quote strangers, so nothing in them is hidden.
pub fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = writeln!(stdout, "{}", visible_lines(text)).and_then(|()| stdout.flush()) {
        // A reader that has gone away (`| head`) has what it wanted; anything else is a loss.
        if error.kind() == ErrorKind::BrokenPipe {
            GONE.store(true, Relaxed);
        } else {
            FAILED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error.to_string());
        }
    }
}

/// A JSON value as a line of data. What a terminal would act on, or would not show, is escaped.
pub fn json(value: &Value) {
    let mut text = String::new();
    for c in value.to_string().chars() {
        if is_hidden(c) {
            let mut units = [0; 2];
            text.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    line(&text);
}

/// How the process ends after a command that did what it was asked.
pub fn finish(code: u8, json: bool) -> ExitCode {
    // Taken first: reporting writes, and may fail, again.
    let failed = FAILED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    match failed {
        Some(error) => CliError::Storage(format!("standard output: {error}")).report(json),
        None => ExitCode::from(code),
    }
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
