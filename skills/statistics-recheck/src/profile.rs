//! A table, counted again column by column over sorted values.

use checkrein_skill::prelude::*;

use crate::csv::Grid;
use crate::whole::{self, is_whole};

/// Words that stand for no value.
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// The content that the fact of a column has to have; numbers that are not exact are left to the
/// tolerance by whoever compares.
#[must_use]
pub fn column(name: &str, cells: &[&str]) -> Value {
    let mut values: Vec<&str> =
        cells.iter().copied().filter(|cell| !MISSING.contains(cell)).collect();
    values.sort_unstable();
    let mut distinct = values.clone();
    distinct.dedup();
    let kind = kind(&values);
    let mut content = json!({
        "name": name,
        "type": kind,
        "values": values.len(),
        "missing": cells.len() - values.len(),
        "distinct": distinct.len(),
    });
    let extra = match kind {
        "integer" => whole::measures(&values),
        "number" => measures(&values),
        "text" => {
            let lengths: Vec<usize> = values.iter().map(|value| value.chars().count()).collect();
            json!({ "min_length": lengths.iter().min(), "max_length": lengths.iter().max() })
        }
        _ => json!({}),
    };
    for (key, value) in extra.as_object().into_iter().flatten() {
        content[key.as_str()] = value.clone();
    }
    content
}

/// The type of values that are there.
fn kind(values: &[&str]) -> &'static str {
    let truths = ["true", "false", "yes", "no"];
    if values.is_empty() {
        "empty"
    } else if values.iter().all(|value| is_whole(value)) {
        "integer"
    } else if values.iter().all(|value| decimal(value).is_some()) {
        "number"
    } else if values.iter().all(|value| truths.contains(&value.to_ascii_lowercase().as_str())) {
        "boolean"
    } else {
        "text"
    }
}

/// A decimal number; not a code with leading zeros, not a word.
#[must_use]
pub fn decimal(value: &str) -> Option<f64> {
    let mut digits = value.trim_start_matches(['+', '-']).chars();
    let code = digits.next() == Some('0') && digits.next().is_some_and(|c| c.is_ascii_digit());
    let word = value.chars().any(|c| c.is_alphabetic() && !matches!(c, 'e' | 'E'));
    if code || word {
        return None;
    }
    value.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Range, sum and counts of numbers that are not all whole.
fn measures(values: &[&str]) -> Value {
    let mut numbers: Vec<f64> = values.iter().filter_map(|value| decimal(value)).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    let mut content = json!({
        "min": numbers.first(),
        "max": numbers.last(),
        "zeros": numbers.iter().filter(|number| **number == 0.0).count(),
        "negative": numbers.iter().take_while(|number| **number < 0.0).count(),
    });
    // Where not even the sizes add up to a double, the order would decide what comes out.
    if size(&numbers).is_finite() {
        let sum = pairwise(&numbers);
        content["sum"] = json!(sum);
        content["mean"] = json!(sum / numbers.len() as f64);
    }
    content
}

fn size(numbers: &[f64]) -> f64 {
    numbers.iter().map(|number| number.abs()).sum()
}

/// What rounding may make of the sum of these cells, whatever the order: sums that cancel have lost
/// digits. Nothing for whole numbers.
#[must_use]
pub fn slack(cells: &[&str]) -> f64 {
    if cells.iter().all(|cell| MISSING.contains(cell) || is_whole(cell)) {
        return 0.0;
    }
    let numbers: Vec<f64> = cells.iter().filter_map(|cell| decimal(cell)).collect();
    let halvings = f64::from(numbers.len().max(2).ilog2() + 1);
    Some(2.0 * halvings * f64::EPSILON * size(&numbers)).filter(|x| x.is_finite()).unwrap_or(0.0)
}

fn pairwise(numbers: &[f64]) -> f64 {
    match numbers {
        [] => 0.0,
        [one] => *one,
        many => {
            let (low, high) = many.split_at(many.len() / 2);
            pairwise(low) + pairwise(high)
        }
    }
}

/// Whether the first row names the columns: no number is in it, and all names differ, or else some
/// column below is all numbers and no name is a word for nothing.
#[must_use]
pub fn has_header(grid: &Grid) -> bool {
    let first = &grid[0];
    if first.iter().any(|cell| cell.parse::<f64>().is_ok()) {
        return false;
    }
    let twice = (1..first.len()).any(|n| first[..n].contains(&first[n]));
    let nothing = first.iter().any(|cell| !cell.is_empty() && MISSING.contains(&cell.as_str()));
    !twice || !nothing && (0..first.len()).any(|at| is_numeric(&cells(grid, true, at)))
}

fn is_numeric(cells: &[&str]) -> bool {
    let values: Vec<&str> = cells.iter().copied().filter(|cell| !MISSING.contains(cell)).collect();
    matches!(kind(&values), "integer" | "number")
}

/// What the columns are called: by number where there is no name, and by number among those of the
/// same name.
#[must_use]
pub fn names(grid: &Grid, header: bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (n, cell) in grid[0].iter().enumerate() {
        let stem = match cell.as_str() {
            "" => format!("column_{}", n + 1),
            _ if !header => format!("column_{}", n + 1),
            name => name.to_owned(),
        };
        let mut name = stem.clone();
        let mut count = 1;
        while names.contains(&name) {
            count += 1;
            name = format!("{stem}_{count}");
        }
        names.push(name);
    }
    names
}

/// Rows, by sorting, that equal an earlier one.
#[must_use]
pub fn doubled_rows(data: &[Vec<String>]) -> usize {
    let mut rows: Vec<&Vec<String>> = data.iter().collect();
    rows.sort_unstable();
    rows.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// The cells of a column.
#[must_use]
pub fn cells(grid: &Grid, header: bool, at: usize) -> Vec<&str> {
    grid[usize::from(header)..].iter().map(|row| row[at].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted() {
        let content = column("x", &["1", "-2", "NA", "0", "1"]);
        let expected = json!({
            "name": "x", "type": "integer", "values": 4, "missing": 1, "distinct": 3,
            "min": -2, "max": 1, "sum": 0, "zeros": 1, "negative": 1, "mean": 0.0,
        });
        assert_eq!(content, expected);
        assert_eq!(column("x", &["007", "1"])["type"], "text");
        assert_eq!(column("x", &["Yes", "no"])["type"], "boolean");
        assert_eq!(column("x", &[""])["type"], "empty");
    }

    #[test]
    fn headers_and_names() {
        let grid = |rows: &[&[&str]]| -> Grid {
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
        };
        for (rows, header) in [
            ([["a", "b"], ["x", "y"]], true),
            ([["a", "a"], ["1", "2"]], true),
            ([["", ""], ["1", "2"]], true),
            ([["a", "a"], ["x", "y"]], false),
            ([["NA", "NA"], ["1", "2"]], false),
            ([["1", "a"], ["1", "2"]], false),
        ] {
            assert_eq!(has_header(&grid(&[&rows[0], &rows[1]])), header, "{rows:?}");
        }
        let row = ["a", "a", "", "a_2", "column_3", "a"];
        let expected = ["a", "a_2", "column_3", "a_2_2", "column_3_2", "a_3"];
        assert_eq!(names(&grid(&[&row]), true), expected);
    }

    #[test]
    fn slack_grows_with_what_cancels() {
        assert_eq!(slack(&["9007199254740993", "NA", "-1"]), 0.0);
        assert!(slack(&["1e16", "-1e16", "0.5"]) > 1.0);
        assert!(slack(&["0.1", "0.2"]) < 1e-14);
    }
}
