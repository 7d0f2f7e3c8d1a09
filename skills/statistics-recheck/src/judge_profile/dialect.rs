//! How the table was read: its delimiter, and whether its first row is a header.

use checkrein_skill::prelude::*;

use super::{Request, Summary};
use crate::csv::{self, Grid};
use crate::profile::has_header;

/// The delimiter has to be the one asked for, or split the table as evenly as any other could.
pub(super) fn delimiter(
    request: &Request,
    summary: &Summary,
    text: &str,
    place: &str,
    verdict: &mut Verdict,
) -> Option<u8> {
    let found = &summary.delimiter;
    let place = format!("{place}/delimiter");
    if let Some(asked) = request.delimiter.map(String::from) {
        verdict.equal("delimiter", "another was asked for", &asked, found, place.as_str());
    }
    let wrong = match *found.as_bytes() {
        [byte] => match fault(request, byte, text) {
            None => return Some(byte),
            Some(wrong) => wrong,
        },
        _ => ("one ASCII character is expected", "one character".to_owned()),
    };
    let (message, expected) = wrong;
    verdict.finding(Finding::error("delimiter", message, expected, found).at(place));
    None
}

/// What is wrong with a delimiter, and what should be there.
fn fault(request: &Request, delimiter: u8, text: &str) -> Option<(&'static str, String)> {
    let Some(width) = csv::even_width(text, delimiter) else {
        return Some((
            "it does not split the table into rows of one width",
            "one width".to_owned(),
        ));
    };
    if request.delimiter.is_some() {
        return None;
    }
    let wider = [b'\t', b',', b';', b'|']
        .into_iter()
        .find(|other| csv::even_width(text, *other) > Some(width))?;
    Some(("another splits the table into more columns", char::from(wider).to_string()))
}

/// A first row is a header if it was said to be, or looks like one.
pub(super) fn header(
    request: &Request,
    summary: &Summary,
    grid: &Grid,
    place: &str,
    verdict: &mut Verdict,
) {
    let expected = request.header.unwrap_or_else(|| has_header(grid));
    let message = "the first row is another thing";
    verdict.equal("header", message, &expected, &summary.header, format!("{place}/header"));
}
