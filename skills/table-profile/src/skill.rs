//! The skill's four parts.

use checkrein_skill::outcome::is_segment;
use checkrein_skill::prelude::*;

use crate::profile::{Profile, profile};
use crate::{dialect, reader, report, verify};

/// Which table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the table under `/in` or `/artifacts`.
    pub table: String,
    /// What subjects call it: `[A-Za-z0-9][A-Za-z0-9._-]*`; drawn from the file's name by default.
    #[serde(default)]
    pub name: Option<String>,
    /// The delimiter, one character; found out by default.
    #[serde(default)]
    pub delimiter: Option<char>,
    /// Whether the first row names the columns; found out by default.
    #[serde(default)]
    pub header: Option<bool>,
}

/// How a table was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Where it lies.
    pub path: String,
    /// What subjects call it.
    pub name: String,
    /// What its cells are split at.
    pub delimiter: char,
    /// Whether its first row names the columns.
    pub header: bool,
}

/// The skill `table-profile`.
pub struct TableProfile;

impl Skill for TableProfile {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let (table, profile) = read(&call.args)?;
        files::write_work(report::FILE, report::document(&table, &profile))?;
        let facts = report::facts(&table, &profile);
        Ok(Outcome::new(report::content(&table, &profile)).facts(facts).artifact(
            report::FILE,
            format!("Profile of {}", table.name),
            "application/json",
        ))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        verify::verify(submission)
    }
}

/// Reads and profiles the table.
pub(crate) fn read(args: &Args) -> Result<(Table, Profile), Failure> {
    let name = name(args)?;
    let text = text(&args.table)?;
    if let Some(delimiter) =
        args.delimiter.filter(|delimiter| matches!(delimiter, '"' | '\r' | '\n'))
    {
        return Err(Failure::invalid_args(format!("{delimiter:?} cannot be a delimiter")));
    }
    let delimiter = args.delimiter.unwrap_or_else(|| dialect::sniff(&text));
    let records = reader::read(&text, delimiter).map_err(|fault| failure(&args.table, &fault))?;
    let header = args.header.unwrap_or_else(|| dialect::has_header(&records));
    let profile = profile(&records, header);
    Ok((Table { path: args.table.clone(), name, delimiter, header }, profile))
}

fn name(args: &Args) -> Result<String, Failure> {
    match &args.name {
        Some(name) if is_segment(name) && name.len() <= 80 => Ok(name.clone()),
        Some(name) => Err(Failure::invalid_args(format!(
            "`name` is `{name}`: letters, digits, `.`, `_` and `-` are possible, the first a letter or digit, at most 80"
        ))),
        None => {
            let file = args.table.rsplit('/').next().unwrap_or_default();
            let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
            Ok(report::slug(stem).to_lowercase())
        }
    }
}

fn failure(path: &str, fault: &reader::Fault) -> Failure {
    let mut place = Place::new(path, fault.row).line(fault.line);
    if let Some(column) = fault.column {
        place = place.column("", column);
    }
    if let Some(value) = &fault.value {
        place = place.value(value);
    }
    place.fault(&fault.what)
}

/// The text of the table. Where it is not UTF-8, what comes before says in which row and column.
fn text(path: &str) -> Result<String, Failure> {
    String::from_utf8(files::read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned() + "?";
        let records = reader::read_some(&before, dialect::sniff(&before), usize::MAX);
        let what = format!("not UTF-8 at byte {at}");
        match records.ok().as_deref() {
            Some([first @ .., last]) => Place::new(path, first.len() + 1)
                .line(last.line)
                .column("", last.cells.len())
                .fault(what),
            // Inside of quotes: the line is all that can be said.
            _ => Failure::invalid_args(format!("`{path}` is {what}"))
                .with_evidence(json!({ "file": path, "byte": at })),
        }
    })
}

export_skill!(TableProfile);
