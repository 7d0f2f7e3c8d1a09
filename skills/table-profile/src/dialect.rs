//! Which delimiter a text uses, and whether its first row is a header.

use crate::profile::{Kind, is_missing};
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

/// Whether the first record names the columns. None of its cells is a number, and they all differ;
/// or, where some are the same or empty, a column of the other records holds numbers alone, and no
/// cell of the first is a word for a missing value.
#[must_use]
pub fn has_header(records: &[Record]) -> bool {
    let Some(first) = records.first() else {
        return false;
    };
    let mut names: Vec<&str> = first.cells.iter().map(|cell| cell.trim()).collect();
    if names.iter().any(|name| name.parse::<f64>().is_ok()) {
        return false;
    }
    let words = names.iter().all(|name| name.is_empty() || !is_missing(name));
    // R leaves the name of the row-name column empty: one empty name is as good as another.
    names.sort_unstable();
    let differ = names.windows(2).all(|pair| pair[0] != pair[1]);
    differ || words && (0..names.len()).any(|at| holds_numbers(&records[1..], at))
}

fn holds_numbers(data: &[Record], at: usize) -> bool {
    let cells = data.iter().map(|record| record.cells[at].trim());
    let values: Vec<&str> = cells.filter(|cell| !is_missing(cell)).collect();
    Kind::of(&values).is_numeric()
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
        assert!(!header("a,a\nx,y\n"));
        assert!(!header("a,a\n"));
    }

    #[test]
    fn headers_with_names_that_are_doubled_or_empty_stand_over_numbers() {
        let header = |text| has_header(&reader::read_some(text, ',', 10).expect("readable"));
        assert!(header("a,a\n1,2\n"));
        assert!(header(",\n1,2\n"));
        assert!(header("a,,b,b\nx,y,NA,1e3\n"));
        assert!(!header("NA,NA\n1,2\n"));
        assert!(!header("1,1\n1,2\n"));
    }
}
