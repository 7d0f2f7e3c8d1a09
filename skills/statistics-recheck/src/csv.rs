//! Delimited text as a grid, by a scan over bytes.

use checkrein_skill::{Failure, Place};

/// Cells by row; every row is as wide as the first.
pub type Grid = Vec<Vec<String>>;

/// Splits `text` at `delimiter`. Quotes, any line end and a byte-order mark are understood; lines
/// without anything are passed over in tables of more than one column.
///
/// # Errors
///
/// Rows of different width, or a quote that is not closed: what cannot be read cannot be judged.
pub fn grid(path: &str, text: &str, delimiter: u8) -> Result<Grid, Failure> {
    let grid = scan(text, delimiter)
        .ok_or_else(|| Failure::invalid_args(format!("`{path}`: a quote that is not closed")))?;
    let width = grid.first().map_or(0, Vec::len);
    match grid.iter().position(|row| row.len() != width) {
        Some(row) => {
            let cells = grid[row].len();
            let place = Place::new(path, row + 1).column("", cells.min(width) + 1);
            Err(place.fault(format!("{cells} cells where the first row has {width}")))
        }
        None if grid.is_empty() => Err(Failure::invalid_args(format!("`{path}` is empty"))),
        None => Ok(grid),
    }
}

/// Whether `text`, split at `delimiter`, has rows of one width, and which.
#[must_use]
pub fn even_width(text: &str, delimiter: u8) -> Option<usize> {
    let grid = scan(text, delimiter)?;
    let width = grid.first()?.len();
    grid.iter().all(|row| row.len() == width).then_some(width)
}

fn scan(text: &str, delimiter: u8) -> Option<Grid> {
    let bytes = text.trim_start_matches('\u{feff}').as_bytes();
    let (mut rows, mut row, mut cell) = (Grid::new(), Vec::new(), Vec::new());
    let (mut quoted, mut at) = (false, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        let next = bytes.get(at + 1).copied();
        match byte {
            b'"' if quoted && next == Some(b'"') => {
                cell.push(b'"');
                at += 1;
            }
            b'"' if quoted => quoted = false,
            b'"' if cell.is_empty() => quoted = true,
            b'\r' | b'\n' if !quoted => {
                at += usize::from(byte == b'\r' && next == Some(b'\n'));
                end_cell(&mut row, &mut cell);
                end_row(&mut rows, &mut row);
            }
            _ if byte == delimiter && !quoted => end_cell(&mut row, &mut cell),
            _ => cell.push(byte),
        }
        at += 1;
    }
    if !row.is_empty() || !cell.is_empty() {
        end_cell(&mut row, &mut cell);
        end_row(&mut rows, &mut row);
    }
    (!quoted).then_some(rows)
}

fn end_cell(row: &mut Vec<String>, cell: &mut Vec<u8>) {
    // Split at ASCII bytes only, so that characters stay whole.
    row.push(String::from_utf8_lossy(cell).trim().to_owned());
    cell.clear();
}

fn end_row(rows: &mut Grid, row: &mut Vec<String>) {
    let blank = row.len() == 1 && row[0].is_empty();
    if !blank || rows.first().is_some_and(|first| first.len() == 1) {
        rows.push(std::mem::take(row));
    }
    row.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects() {
        for text in ["a,b\n1,2\n", "\u{feff}a,b\r\n1,2", "\"a\",b\r1,\"2\"\r\r", "a,b\n\n1,2\n\n"] {
            assert_eq!(
                grid("x", text, b',').expect("readable"),
                [["a", "b"], ["1", "2"]],
                "{text:?}"
            );
        }
        assert_eq!(grid("x", "a,\"b\"\"c,\nd\"\n", b',').expect("readable")[0][1], "b\"c,\nd");
        assert!(grid("x", "a,b\n1\n", b',').is_err());
        assert!(grid("x", "a,\"b\n", b',').is_err());
        assert!(grid("x", "", b',').is_err());
        assert_eq!(even_width("a;b\n1;2\n", b';'), Some(2));
    }
}
