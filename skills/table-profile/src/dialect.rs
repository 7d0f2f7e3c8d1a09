//! Which delimiter a text uses, and whether its first row is a header.

use crate::reader::{self, Record};

/// The delimiters that are tried, in the order of preference where two fit as well.
const CANDIDATES: [char; 4] = ['\t', ',', ';', '|'];

/// So many records decide.
const SAMPLE: usize = 50;

/// The delimiter that splits most of the first records into the same number of cells, and into the
/// most cells; the comma for a table of one column.
#[must_use]
pub fn sniff(text: &str) -> char {
    let mut best = (',', (0.0, 1));
    for candidate in CANDIDATES {
        // A quote that never closes under this delimiter says that it is another.
        let Ok(records) = reader::read_some(text, candidate, SAMPLE) else {
            continue;
        };
        let score = score(&records);
        if score > best.1 {
            best = (candidate, score);
        }
    }
    best.0
}

/// The share of records as wide as the first, and that width; nothing for one column.
fn score(records: &[Record]) -> (f64, usize) {
    let width = records.first().map_or(0, |record| record.cells.len());
    if width < 2 {
        return (0.0, 1);
    }
    let same = records.iter().filter(|record| record.cells.len() == width).count();
    (same as f64 / records.len() as f64, width)
}

/// Whether the first record names the columns: all of its cells are there, differ, and none is a
/// number, or the other records do not look like it.
#[must_use]
pub fn has_header(records: &[Record]) -> bool {
    let Some(first) = records.first() else {
        return false;
    };
    let mut names: Vec<&str> = first.cells.iter().map(|cell| cell.trim()).collect();
    let no_number = names.iter().all(|name| name.parse::<f64>().is_err());
    // R leaves the name of the row-name column empty, so one empty name does not speak against it.
    let empty = names.iter().filter(|name| name.is_empty()).count();
    names.sort_unstable();
    let differ = names.windows(2).all(|pair| pair[0] != pair[1]);
    no_number && empty <= 1 && differ
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found() {
        for (text, expected) in [
            ("a\tb\n1,5\t2\n", '\t'),
            ("a,b\n1,2\n", ','),
            ("a;b\n1,5;2,5\n", ';'),
            ("a|b|c\n1|2|3\n", '|'),
            ("a\nb\n", ','),
            ("\"x;y;z\",b\n\"1;2\",2\n", ','),
        ] {
            assert_eq!(sniff(text), expected, "{text:?}");
        }
    }

    #[test]
    fn headers_are_words_that_differ() {
        let header = |text| has_header(&reader::read_some(text, ',', 10).expect("readable"));
        assert!(header("a,b\n1,2\n"));
        assert!(header(",b\nx,2\n"));
        assert!(!header("1,2\n3,4\n"));
        assert!(!header("a,a\n1,2\n"));
    }
}
