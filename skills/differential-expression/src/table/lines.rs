//! Delimited text as rows of cells: RFC 4180 with any one-byte delimiter.

use checkrein_skill::{Failure, Place};
use serde_json::json;

/// One row, with its number and the line of the file that it starts on, both from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) number: usize,
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

/// The rows of a file, header included, none of them empty. A byte-order mark, CRLF and quotes are
/// understood; the delimiter is the tab, comma or semicolon that the first line has most of.
///
/// # Errors
///
/// Text that is not UTF-8, no rows, a quote that is not closed, a row longer or shorter than the
/// header.
pub(crate) fn read(path: &str, bytes: &[u8]) -> Result<Vec<Row>, Failure> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| not_utf8(path, &bytes[..error.valid_up_to()]))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rows = split(path, text, delimiter(text))?;
    let Some(header) = rows.first() else {
        return Err(Failure::invalid_args(format!("`{path}` is empty"))
            .with_evidence(json!({ "file": path })));
    };
    let width = header.cells.len();
    for row in &rows {
        if row.cells.len() != width {
            let mut place = row.place(path);
            place = match row.cells.get(width) {
                Some(extra) => place.column("", width + 1).value(extra),
                None => place.column(&header.cells[row.cells.len()], row.cells.len() + 1),
            };
            let what = format!("{} cells where the header has {width}", row.cells.len());
            return Err(place.fault(what));
        }
    }
    Ok(rows)
}

impl Row {
    /// Its place, without a column.
    pub(crate) fn place<'a>(&self, path: &'a str) -> Place<'a> {
        Place::new(path, self.number).line(self.line)
    }

    /// The place of one of its cells, under the name that the header has for it.
    pub(crate) fn cell<'a>(&'a self, path: &'a str, header: &'a Row, at: usize) -> Place<'a> {
        self.place(path).column(&header.cells[at], at + 1).value(&self.cells[at])
    }
}

/// What comes before says in which row and column.
fn not_utf8(path: &str, before: &[u8]) -> Failure {
    let what = format!("not UTF-8 at byte {}", before.len());
    let text = String::from_utf8_lossy(before).into_owned() + "?";
    match split(path, &text, delimiter(&text)).ok().as_deref() {
        Some([.., last]) => last.place(path).column("", last.cells.len()).fault(what),
        // Inside of quotes: the byte is all that can be said.
        _ => Failure::invalid_args(format!("`{path}` is {what}"))
            .with_evidence(json!({ "file": path, "byte": before.len() })),
    }
}

fn delimiter(text: &str) -> char {
    let first = text.lines().find(|line| !line.is_empty()).unwrap_or("");
    let mut best = ('\t', first.matches('\t').count());
    for candidate in [',', ';'] {
        let count = first.matches(candidate).count();
        if count > best.1 {
            best = (candidate, count);
        }
    }
    best.0
}

fn split(path: &str, text: &str, delimiter: char) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut reader = Reader { path, chars: text.chars().peekable(), row: 1, line: 1, delimiter };
    while let Some(row) = reader.row()? {
        if row.cells.len() > 1 || !row.cells[0].is_empty() {
            rows.push(row);
            reader.row += 1;
        }
    }
    Ok(rows)
}

struct Reader<'a> {
    path: &'a str,
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    row: usize,
    line: usize,
    delimiter: char,
}

impl Reader<'_> {
    fn row(&mut self) -> Result<Option<Row>, Failure> {
        if self.chars.peek().is_none() {
            return Ok(None);
        }
        let start = self.line;
        let mut cells = Vec::new();
        loop {
            let column = cells.len() + 1;
            let quoted = self.chars.peek() == Some(&'"');
            cells.push(if quoted { self.quoted(column)? } else { self.plain() });
            match self.chars.next() {
                Some(c) if c == self.delimiter => {}
                Some('\r') if self.chars.peek() == Some(&'\n') => {
                    self.chars.next();
                    break;
                }
                None | Some('\n' | '\r') => break,
                Some(other) => {
                    let what = format!("`{other}` after a closing quote");
                    return Err(self.place(column).value(&cells[column - 1]).fault(what));
                }
            }
        }
        self.line += 1;
        Ok(Some(Row { number: self.row, line: start, cells }))
    }

    fn place(&self, column: usize) -> Place<'_> {
        Place::new(self.path, self.row).line(self.line).column("", column)
    }

    fn plain(&mut self) -> String {
        let mut cell = String::new();
        while let Some(c) = self.chars.next_if(|c| *c != self.delimiter && *c != '\n' && *c != '\r')
        {
            cell.push(c);
        }
        cell.trim().to_owned()
    }

    fn quoted(&mut self, column: usize) -> Result<String, Failure> {
        let start = self.line;
        self.chars.next();
        let mut cell = String::new();
        loop {
            match self.chars.next() {
                Some('"') if self.chars.peek() == Some(&'"') => {
                    self.chars.next();
                    cell.push('"');
                }
                Some('"') => return Ok(cell),
                Some(c) => {
                    self.line += usize::from(c == '\n');
                    cell.push(c);
                }
                None => {
                    let place = self.place(column).line(start).value(&cell);
                    return Err(place.fault("a quote that is not closed"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        read("/in/x", text.as_bytes()).expect("readable").into_iter().map(|row| row.cells).collect()
    }

    #[test]
    fn dialects_read_the_same() {
        let expected = vec![vec!["a", "b"], vec!["1", "2"]];
        for text in [
            "a\tb\n1\t2\n",
            "a,b\r\n1,2\r\n",
            "\u{feff}a;b\n1;2",
            "\"a\",\"b\"\n\"1\",2\n\n",
            "a,b\r1,2\r",
        ] {
            assert_eq!(cells(text), expected, "{text:?}");
        }
        assert_eq!(cells("a,\"b\"\"c,\nd\"\n1,2\n")[0][1], "b\"c,\nd");
    }

    #[test]
    fn faults_name_row_and_column() {
        for (text, place) in [
            ("a,b\n1\n", "row 2, column `b`"),
            ("a,b\n\n1,2,3\n", "row 2 (line 3), column 3"),
            ("a,b\n1,\"2\n", "row 2, column 2"),
            ("a,b\n\"1\"x,2\n", "row 2, column 1"),
            ("\n\n", "empty"),
            ("", "empty"),
        ] {
            let failure = read("/in/x", text.as_bytes()).expect_err(text);
            assert!(failure.message.contains(place), "{text:?}: {failure}");
        }
        let failure = read("/in/x", b"a,b\n1,\xff\n").expect_err("not UTF-8");
        assert!(failure.message.contains("row 2, column 2: not UTF-8 at byte 6"), "{failure}");
        let failure = read("/in/x", b"a,b\n\n1,2,3\n").expect_err("ragged");
        let evidence = json!({ "file": "/in/x", "row": 2, "line": 3, "column": 3, "value": "3" });
        assert_eq!(failure.evidence, evidence);
    }
}
