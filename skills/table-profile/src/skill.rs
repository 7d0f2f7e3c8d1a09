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
        Ok(Outcome::new(json!({ "table": table.path, "name": table.name, "rows": profile.rows, "columns": profile.columns.len() }))
            .facts(facts)
            .artifact(report::FILE, format!("Profile of {}", table.name), "application/json"))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        verify::verify(submission)
    }
}

/// Reads and profiles the table.
pub(crate) fn read(args: &Args) -> Result<(Table, Profile), Failure> {
    let name = name(args)?;
    let text = files::read_text(&args.table)?;
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
    let column = fault.column.map_or_else(String::new, |column| format!(", column {column}"));
    Failure::invalid_args(format!("`{path}`, row {}{column}: {}", fault.line, fault.what))
        .with_evidence(
            json!({ "file": path, "row": fault.line, "column": fault.column, "found": fault.what }),
        )
}

export_skill!(TableProfile);
