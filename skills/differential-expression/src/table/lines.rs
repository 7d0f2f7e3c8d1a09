//! Delimited text as rows of cells: RFC 4180 with any one-byte delimiter.

use checkrein_skill::Failure;
use serde_json::json;

/// One row, with the line of the file that it starts on, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
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
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        fault(path, line, None, format!("not UTF-8 at byte {}", error.valid_up_to()))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rows = split(path, text, delimiter(text))?;
    let Some(header) = rows.first() else {
        return Err(Failure::invalid_args(format!("`{path}` is empty"))
            .with_evidence(json!({ "file": path })));
    };
    let width = header.cells.len();
    for row in &rows {
        if row.cells.len() != width {
            let message = format!("{} cells where the header has {width}", row.cells.len());
            let column = row.cells.len().min(width) + 1;
            return Err(fault(path, row.line, Some(&format!("number {column}")), message));
        }
    }
    Ok(rows)
}

/// A failure that names file, row and column.
pub(crate) fn fault(
    path: &str,
    line: usize,
    column: Option<&str>,
    what: impl Into<String>,
) -> Failure {
    let what = what.into();
    let place =
        column.map_or_else(|| format!("row {line}"), |name| format!("row {line}, column {name}"));
    Failure::invalid_args(format!("`{path}`, {place}: {what}"))
        .with_evidence(json!({ "file": path, "row": line, "column": column, "found": what }))
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
    let mut reader = Reader { chars: text.chars().peekable(), line: 1, delimiter };
    while let Some(row) = reader.row(path)? {
        if row.cells.len() > 1 || !row.cells[0].is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    delimiter: char,
}

impl Reader<'_> {
    fn row(&mut self, path: &str) -> Result<Option<Row>, Failure> {
        if self.chars.peek().is_none() {
            return Ok(None);
        }
        let start = self.line;
        let mut cells = Vec::new();
        loop {
            let cell =
                if self.chars.peek() == Some(&'"') { self.quoted(path)? } else { self.plain() };
            cells.push(cell);
            match self.chars.next() {
                Some(c) if c == self.delimiter => {}
                Some('\r') if self.chars.peek() == Some(&'\n') => {
                    self.chars.next();
                    break;
                }
                None | Some('\n' | '\r') => break,
                Some(other) => {
                    let what = format!("`{other}` after a closing quote");
                    return Err(fault(
                        path,
                        self.line,
                        Some(&format!("number {}", cells.len())),
                        what,
                    ));
                }
            }
        }
        self.line += 1;
        Ok(Some(Row { line: start, cells }))
    }

    fn plain(&mut self) -> String {
        let mut cell = String::new();
        while let Some(c) = self.chars.next_if(|c| *c != self.delimiter && *c != '\n' && *c != '\r')
        {
            cell.push(c);
        }
        cell.trim().to_owned()
    }

    fn quoted(&mut self, path: &str) -> Result<String, Failure> {
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
                None => return Err(fault(path, start, None, "a quote that is not closed")),
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
            ("a,b\n1\n", "row 2, column number 2"),
            ("a,b\n1,2,3\n", "row 2, column number 3"),
            ("a,b\n1,\"2\n", "row 2"),
            ("a,b\n\"1\"x,2\n", "row 2, column number 1"),
            ("\n\n", "empty"),
            ("", "empty"),
        ] {
            let failure = read("/in/x", text.as_bytes()).expect_err(text);
            assert!(failure.message.contains(place), "{text:?}: {failure}");
        }
        let failure = read("/in/x", b"a,b\n1,\xff\n").expect_err("not UTF-8");
        assert!(failure.message.contains("row 2"), "{failure}");
    }
}
