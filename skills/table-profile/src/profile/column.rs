//! The numbers of one column.

use std::collections::HashSet;

use serde::Serialize;

use super::is_missing;
use super::number::{Amount, Sum, number};
use super::whole::{Whole, is_whole};

/// What the values of a column are; the narrowest kind that all of them fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There are no values.
    Empty,
    /// `true` and `false`, or `yes` and `no`, in any case.
    Boolean,
    /// Whole numbers of any length.
    Integer,
    /// Numbers.
    Number,
    /// Anything else.
    Text,
}

/// What is known of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Amount>,
    /// The largest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Amount>,
    /// The mean of the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Amount>,
    /// The sum of the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Amount>,
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

impl Kind {
    /// The narrowest kind that all of these values fit.
    #[must_use]
    pub fn of(values: &[&str]) -> Self {
        let all = |fits: fn(&str) -> bool| values.iter().all(|value| fits(value));
        if values.is_empty() {
            Self::Empty
        } else if all(is_whole) {
            Self::Integer
        } else if all(|value| number(value).is_some()) {
            Self::Number
        } else if all(is_truth) {
            Self::Boolean
        } else {
            Self::Text
        }
    }

    /// Whether the values can be counted with.
    #[must_use]
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

impl Column {
    /// Profiles trimmed cells.
    pub fn of<'a>(name: String, cells: impl Iterator<Item = &'a str>) -> Self {
        let (missing, values): (Vec<&str>, Vec<&str>) = cells.partition(|cell| is_missing(cell));
        let kind = Kind::of(&values);
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
            Kind::Integer => column.measure_wholes(&values),
            Kind::Number => column.measure(&values),
            Kind::Text => {
                let lengths = || values.iter().map(|value| value.chars().count());
                (column.min_length, column.max_length) = (lengths().min(), lengths().max());
            }
            Kind::Empty | Kind::Boolean => {}
        }
        column
    }

    /// Every digit counts: an id of 20 digits must not come out as another one.
    fn measure_wholes(&mut self, values: &[&str]) {
        let numbers: Vec<Whole> = values.iter().filter_map(|value| Whole::parse(value)).collect();
        let sum = Whole::sum(&numbers);
        self.mean = mean(sum.to_f64(), numbers.len());
        self.sum = Some(Amount::Whole(sum));
        self.min = numbers.iter().min().cloned().map(Amount::Whole);
        self.max = numbers.iter().max().cloned().map(Amount::Whole);
        self.zeros = Some(numbers.iter().filter(|number| number.is_zero()).count());
        self.negative = Some(numbers.iter().filter(|number| number.is_negative()).count());
    }

    fn measure(&mut self, values: &[&str]) {
        let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
        // Where not even the sizes add up to a double, the order would decide what comes out.
        if numbers.iter().map(|number| number.abs()).sum::<f64>().is_finite() {
            let mut sum = Sum::default();
            numbers.iter().for_each(|value| sum.add(*value));
            self.mean = mean(sum.total(), numbers.len());
            self.sum = Some(Amount::Real(sum.total()));
        }
        self.min = numbers.iter().copied().reduce(f64::min).map(Amount::Real);
        self.max = numbers.iter().copied().reduce(f64::max).map(Amount::Real);
        self.zeros = Some(numbers.iter().filter(|value| **value == 0.0).count());
        self.negative = Some(numbers.iter().filter(|value| **value < 0.0).count());
    }
}

/// A mean, unless the sum is past the largest double.
fn mean(sum: f64, count: usize) -> Option<Amount> {
    sum.is_finite().then(|| Amount::Real(sum / count as f64))
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
        assert_eq!(of(&["9007199254740993", &"9".repeat(400)]).kind, Kind::Integer);
        assert_eq!(of(&["1", "2.5"]).kind, Kind::Number);
        assert_eq!(of(&["TRUE", "false"]).kind, Kind::Boolean);
        assert_eq!(of(&["1", "x"]).kind, Kind::Text);
        assert_eq!(of(&["", "NA"]).kind, Kind::Empty);
    }

    #[test]
    fn numbers_are_measured() {
        let column = of(&["0", "-1", "4", "4", "NA"]);
        let column_json = serde_json::json!(column);
        let measures = ["min", "max", "mean", "sum"].map(|key| column_json[key].to_string());
        assert_eq!(measures, ["-1", "4", "1.75", "7"]);
        assert_eq!((column.zeros, column.negative), (Some(1), Some(1)));
        assert_eq!((column.distinct, column.missing), (3, 1));
        let text = of(&["ä", "xyz"]);
        assert_eq!((text.min_length, text.max_length), (Some(1), Some(3)));
    }

    #[test]
    fn integers_keep_every_digit() {
        let column = of(&["9007199254740993", "9007199254740993", "-1"]);
        let json = serde_json::json!(column);
        assert_eq!(json["min"], -1);
        assert_eq!(json["max"], "9007199254740993");
        assert_eq!(json["sum"], "18014398509481985");
        assert_eq!(json["mean"], 6_004_799_503_160_661_i64);
        assert_eq!((&json["negative"], &json["zeros"]), (&1.into(), &0.into()));
    }
}
