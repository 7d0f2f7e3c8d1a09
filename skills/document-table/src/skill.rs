//! The skill's four parts.

use checkrein_skill::prelude::*;

use crate::{find, report, verify};

/// Which documents, and what to look for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Paths of text or Markdown files in UTF-8, under `/in` or `/artifacts`: a row each.
    #[schemars(length(min = 1))]
    pub documents: Vec<String>,
    /// What to look for in each: a column each.
    #[schemars(length(min = 1))]
    pub fields: Vec<Field>,
}

/// One column.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// What subjects and the column are called: `[A-Za-z0-9][A-Za-z0-9._-]*`.
    pub name: String,
    /// A regular expression; `^` and `$` match at lines. The value is its group 1, or, without one,
    /// all that it matches.
    pub pattern: String,
}

/// The skill `document-table`.
pub struct DocumentTable;

impl Skill for DocumentTable {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let table = find::table(&call.args)?;
        files::write_work(report::FILE, report::csv(&table))?;
        Ok(report::outcome(&table))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        verify::verify(submission)
    }
}

export_skill!(DocumentTable);
