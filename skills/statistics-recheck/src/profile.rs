//! A table, counted again column by column over sorted values.

use checkrein_skill::prelude::*;

use crate::csv::Grid;

/// Words that stand for no value.
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// The largest whole number that a double holds with all smaller ones.
const EXACT: f64 = 9_007_199_254_740_992.0;

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
        "integer" | "number" => measures(&values),
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

fn is_whole(value: &str) -> bool {
    let only_digits = value.trim_start_matches(['+', '-']).chars().all(|c| c.is_ascii_digit());
    only_digits && decimal(value).is_some_and(|number| number.abs() <= EXACT)
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

/// Range, sum and counts. Whole numbers are added as such, which is exact.
fn measures(values: &[&str]) -> Value {
    let mut numbers: Vec<f64> = values.iter().filter_map(|value| decimal(value)).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    let whole: Option<Vec<i128>> = values.iter().map(|value| value.parse::<i128>().ok()).collect();
    let sum = match whole {
        Some(whole) => whole.iter().sum::<i128>() as f64,
        // From both ends to the middle: what cancels does so early.
        None => pairwise(&numbers),
    };
    let mut content = json!({
        "min": numbers.first(),
        "max": numbers.last(),
        "zeros": numbers.iter().filter(|number| **number == 0.0).count(),
        "negative": numbers.iter().take_while(|number| **number < 0.0).count(),
    });
    if sum.is_finite() {
        content["sum"] = json!(sum);
        content["mean"] = json!(sum / numbers.len() as f64);
    }
    content
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
            "min": -2.0, "max": 1.0, "zeros": 1, "negative": 1, "sum": 0.0, "mean": 0.0,
        });
        assert_eq!(content, expected);
        assert_eq!(column("x", &["007", "1"])["type"], "text");
        assert_eq!(column("x", &["Yes", "no"])["type"], "boolean");
        assert_eq!(column("x", &[""])["type"], "empty");
    }
}
