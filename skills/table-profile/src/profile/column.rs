//! The numbers of one column.

use std::collections::HashSet;

use serde::{Deserialize, Serialize, Serializer};

use super::is_missing;
use super::number::{Sum, integer, number};

/// What the values of a column are; the narrowest kind that all of them fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There are no values.
    Empty,
    /// `true` and `false`, or `yes` and `no`, in any case.
    Boolean,
    /// Whole numbers of up to 53 bits.
    Integer,
    /// Numbers.
    Number,
    /// Anything else.
    Text,
}

/// What is known of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name in the table.
    pub name: String,
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Cells with a value.
    pub values: usize,
    /// Cells without one.
    pub missing: usize,
    /// Different values, as text.
    pub distinct: usize,
    /// The smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "plain_number")]
    pub min: Option<f64>,
    /// The largest number.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "plain_number")]
    pub max: Option<f64>,
    /// The mean of the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "plain_number")]
    pub mean: Option<f64>,
    /// The sum of the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "plain_number")]
    pub sum: Option<f64>,
    /// How many of the numbers are 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeros: Option<usize>,
    /// How many of the numbers are below 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negative: Option<usize>,
    /// Characters of the shortest text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<usize>,
    /// Characters of the longest text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
}

impl Column {
    /// Profiles trimmed cells.
    pub fn of<'a>(name: String, cells: impl Iterator<Item = &'a str>) -> Self {
        let (missing, values): (Vec<&str>, Vec<&str>) = cells.partition(|cell| is_missing(cell));
        let kind = kind(&values);
        let mut column = Self {
            name,
            kind,
            values: values.len(),
            missing: missing.len(),
            distinct: values.iter().collect::<HashSet<_>>().len(),
            min: None,
            max: None,
            mean: None,
            sum: None,
            zeros: None,
            negative: None,
            min_length: None,
            max_length: None,
        };
        match kind {
            Kind::Integer | Kind::Number => column.measure(&values),
            Kind::Text => {
                let lengths = || values.iter().map(|value| value.chars().count());
                (column.min_length, column.max_length) = (lengths().min(), lengths().max());
            }
            Kind::Empty | Kind::Boolean => {}
        }
        column
    }

    fn measure(&mut self, values: &[&str]) {
        let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
        let mut sum = Sum::default();
        numbers.iter().for_each(|value| sum.add(*value));
        // A sum past the largest double is no number, and is not given.
        let total = Some(sum.total()).filter(|total| total.is_finite());
        self.sum = total;
        self.mean = total.map(|total| total / numbers.len() as f64);
        self.min = numbers.iter().copied().reduce(f64::min);
        self.max = numbers.iter().copied().reduce(f64::max);
        self.zeros = Some(numbers.iter().filter(|value| **value == 0.0).count());
        self.negative = Some(numbers.iter().filter(|value| **value < 0.0).count());
    }
}

/// Whole numbers without a fraction, so that a report says 3 and not 3.0.
fn plain_number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() <= MOST_EXACT => {
            // Exact: a whole number within the range of a double's own integers.
            #[allow(clippy::cast_possible_truncation, reason = "in range, see above")]
            serializer.serialize_i64(*number as i64)
        }
        other => other.serialize(serializer),
    }
}

/// 2^53: up to here a double holds every whole number.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

fn kind(values: &[&str]) -> Kind {
    let all = |fits: fn(&str) -> bool| values.iter().all(|value| fits(value));
    if values.is_empty() {
        Kind::Empty
    } else if all(|value| integer(value).is_some()) {
        Kind::Integer
    } else if all(|value| number(value).is_some()) {
        Kind::Number
    } else if all(is_truth) {
        Kind::Boolean
    } else {
        Kind::Text
    }
}

fn is_truth(value: &str) -> bool {
    ["true", "false", "yes", "no"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Column {
        Column::of("x".into(), cells.iter().copied())
    }

    #[test]
    fn kinds_are_the_narrowest_that_fit() {
        assert_eq!(of(&["1", "-2", "NA"]).kind, Kind::Integer);
        assert_eq!(of(&["1", "2.5"]).kind, Kind::Number);
        assert_eq!(of(&["TRUE", "false"]).kind, Kind::Boolean);
        assert_eq!(of(&["1", "x"]).kind, Kind::Text);
        assert_eq!(of(&["", "NA"]).kind, Kind::Empty);
    }

    #[test]
    fn numbers_are_measured() {
        let column = of(&["0", "-1", "4", "4", "NA"]);
        assert_eq!((column.min, column.max), (Some(-1.0), Some(4.0)));
        assert_eq!((column.mean, column.sum), (Some(1.75), Some(7.0)));
        assert_eq!((column.zeros, column.negative), (Some(1), Some(1)));
        assert_eq!((column.distinct, column.missing), (3, 1));
        let text = of(&["ä", "xyz"]);
        assert_eq!((text.min_length, text.max_length), (Some(1), Some(3)));
    }
}
