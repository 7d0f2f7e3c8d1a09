//! Delimited text as records: RFC 4180 with any delimiter, any line end, a byte-order mark.

use std::iter::Peekable;
use std::str::Chars;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The line that it starts on, from 1.
    pub line: usize,
    /// Its cells, unquoted.
    pub cells: Vec<String>,
}

/// What cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The row, from 1.
    pub row: usize,
    /// The line of the file, from 1.
    pub line: usize,
    /// The column, from 1, where it can be said.
    pub column: Option<usize>,
    /// What stands there, if anything does.
    pub value: Option<String>,
    /// What is wrong.
    pub what: String,
}

/// All records, each as wide as the first. Lines of nothing are passed over, unless the table has
/// one column, in which they are missing values.
///
/// # Errors
///
/// No records, a quote that is not closed or goes on after its end, a record of another width.
pub fn read(text: &str, delimiter: char) -> Result<Vec<Record>, Fault> {
    let records = read_some(text, delimiter, usize::MAX)?;
    let Some(first) = records.first() else {
        let what = "no rows".into();
        return Err(Fault { row: 1, line: 1, column: None, value: None, what });
    };
    let width = first.cells.len();
    if let Some(at) = records.iter().position(|record| record.cells.len() != width) {
        let record = &records[at];
        let found = record.cells.len();
        return Err(Fault {
            row: at + 1,
            line: record.line,
            column: Some(found.min(width) + 1),
            value: record.cells.get(width).cloned(),
            what: format!("{found} cells where the first row has {width}"),
        });
    }
    Ok(records)
}

/// The first `most` records, of any width.
///
/// # Errors
///
/// A quote that is not closed or goes on after its end.
pub fn read_some(text: &str, delimiter: char, most: usize) -> Result<Vec<Record>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { chars: text.chars().peekable(), line: 1, delimiter };
    let mut records: Vec<Record> = Vec::new();
    while records.len() < most {
        let next = reader.record().map_err(|fault| Fault { row: records.len() + 1, ..fault })?;
        let Some(record) = next else {
            break;
        };
        let blank = record.cells.len() == 1 && record.cells[0].is_empty();
        let wide = records.first().is_none_or(|first| first.cells.len() > 1);
        if !(blank && wide) {
            records.push(record);
        }
    }
    Ok(records)
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
    delimiter: char,
}

impl Reader<'_> {
    fn record(&mut self) -> Result<Option<Record>, Fault> {
        if self.chars.peek().is_none() {
            return Ok(None);
        }
        let mut record = Record { line: self.line, cells: Vec::new() };
        loop {
            record.cells.push(self.cell(record.cells.len() + 1)?);
            match self.chars.next() {
                Some(c) if c == self.delimiter => {}
                Some('\r') => {
                    self.chars.next_if_eq(&'\n');
                    break;
                }
                _ => break,
            }
        }
        self.line += 1;
        Ok(Some(record))
    }

    fn cell(&mut self, column: usize) -> Result<String, Fault> {
        if self.chars.next_if_eq(&'"').is_some() {
            return self.quoted(column);
        }
        let mut cell = String::new();
        while let Some(c) =
            self.chars.next_if(|c| *c != self.delimiter && !matches!(c, '\n' | '\r'))
        {
            cell.push(c);
        }
        Ok(cell)
    }

    fn quoted(&mut self, column: usize) -> Result<String, Fault> {
        let start = self.line;
        // The row is for whoever counts rows to say.
        let fault = |line, cell, what: String| Fault {
            row: 0,
            line,
            column: Some(column),
            value: Some(cell),
            what,
        };
        let mut cell = String::new();
        loop {
            match self.chars.next() {
                Some('"') if self.chars.next_if_eq(&'"').is_some() => cell.push('"'),
                Some('"') => break,
                Some(c) => {
                    self.line += usize::from(c == '\n');
                    cell.push(c);
                }
                None => return Err(fault(start, cell, "a quote that is not closed".into())),
            }
        }
        match self.chars.peek() {
            Some(c) if *c != self.delimiter && !matches!(c, '\n' | '\r') => {
                Err(fault(self.line, cell, format!("`{c}` after a closing quote")))
            }
            _ => Ok(cell),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        read(text, ',').expect("readable").into_iter().map(|record| record.cells).collect()
    }

    #[test]
    fn line_ends_quotes_and_marks_are_understood() {
        for text in ["a,b\n1,2\n", "a,b\r\n1,2", "\u{feff}a,b\r1,2\r", "\"a\",b\n\n1,\"2\"\n\n"] {
            assert_eq!(cells(text), [["a", "b"], ["1", "2"]], "{text:?}");
        }
        assert_eq!(cells("a,\"b \"\"c\"\",\nd\"\n1,2\n")[0][1], "b \"c\",\nd");
        assert_eq!(cells("a\n\n1\n"), [["a"], [""], ["1"]]);
    }

    #[test]
    fn faults_have_a_place() {
        for (text, row, line, column, value) in [
            ("", 1, 1, None, None),
            ("a,b\n1\n", 2, 2, Some(2), None),
            ("a,b\n\n1,2,3\n", 2, 3, Some(3), Some("3")),
            ("a,b\n1,\"2\n", 2, 2, Some(2), Some("2\n")),
            ("a,b\n\"x\ny\",2\n\"1\"z,2\n", 3, 4, Some(1), Some("1")),
        ] {
            let fault = read(text, ',').expect_err(text);
            let place = (fault.row, fault.line, fault.column, fault.value.as_deref());
            assert_eq!(place, (row, line, column, value), "{text:?}: {}", fault.what);
        }
    }
}
