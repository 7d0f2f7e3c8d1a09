//! A place in a table, so that a failure names it in its message and in its evidence alike.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use crate::Failure;

/// So many characters of a value are shown.
const MOST_SHOWN: usize = 200;

/// A place in a table. Rows are counted from 1, lines of nothing left out: the header is row 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    file: &'a str,
    row: usize,
    line: Option<usize>,
    column: Option<Column<'a>>,
    value: Option<&'a str>,
}

/// A column, by its name or, where it has none, by its number from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Column<'a> {
    /// Its name in the header.
    Name(&'a str),
    /// Its number, from 1.
    Number(usize),
}

impl<'a> Place<'a> {
    /// A row of the table in `file`.
    #[must_use]
    pub fn new(file: &'a str, row: usize) -> Self {
        Self { file, row, line: None, column: None, value: None }
    }

    /// The line of the file that the row starts on. It is told only where it is another number.
    #[must_use]
    pub fn line(mut self, line: usize) -> Self {
        self.line = Some(line).filter(|line| *line != self.row);
        self
    }

    /// A column with a name, or with a number alone if the name is empty.
    #[must_use]
    pub fn column(mut self, name: &'a str, number: usize) -> Self {
        let named = !name.is_empty();
        self.column = Some(if named { Column::Name(name) } else { Column::Number(number) });
        self
    }

    /// What stands there.
    #[must_use]
    pub fn value(mut self, value: &'a str) -> Self {
        self.value = Some(value);
        self
    }

    /// A failure of the kind `invalid-args` that says `what` is wrong here. Its evidence has the
    /// fields `file`, `row`, and as far as they are known `line`, `column` and `value`.
    #[must_use]
    pub fn fault(&self, what: impl fmt::Display) -> Failure {
        let mut evidence = json!({ "file": self.file, "row": self.row });
        if let Some(line) = self.line {
            evidence["line"] = json!(line);
        }
        if let Some(column) = self.column {
            evidence["column"] = json!(column);
        }
        if let Some(value) = self.value {
            evidence["value"] = json!(value.chars().take(MOST_SHOWN).collect::<String>());
        }
        Failure::invalid_args(format!("{self}: {what}")).with_evidence(evidence)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, row {}", self.file, self.row)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        match self.column {
            Some(Column::Name(name)) => write!(f, ", column `{name}`"),
            Some(Column::Number(number)) => write!(f, ", column {number}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_and_evidence_name_the_same_place() {
        let failure = Place::new("/in/t", 2).line(4).column("a", 1).value("x").fault("no number");
        assert_eq!(failure.message, "`/in/t`, row 2 (line 4), column `a`: no number");
        let evidence = json!({ "file": "/in/t", "row": 2, "line": 4, "column": "a", "value": "x" });
        assert_eq!(failure.evidence, evidence);
        let failure = Place::new("/in/t", 2).line(2).column("", 3).fault("no such cell");
        assert_eq!(failure.message, "`/in/t`, row 2, column 3: no such cell");
        assert_eq!(failure.evidence, json!({ "file": "/in/t", "row": 2, "column": 3 }));
    }
}
