//! Numbers as doubles: which cells are some, and their sum.

use serde::{Serialize, Serializer};

use super::whole::Whole;

/// A number of a statistic.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// To the last digit.
    Whole(Whole),
    /// As a double.
    Real(f64),
}

impl Serialize for Amount {
    /// Doubles without a fraction are whole in JSON too, so that a report says 3 and not 3.0.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(whole) => whole.serialize(serializer),
            Self::Real(number) if number.fract() == 0.0 && number.abs() <= MOST_EXACT => {
                // Exact: a whole number within the range of a double's own integers.
                #[allow(clippy::cast_possible_truncation, reason = "in range, see above")]
                serializer.serialize_i64(*number as i64)
            }
            Self::Real(number) => serializer.serialize_f64(*number),
        }
    }
}

/// 2^53: up to here a double holds every whole number.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A finite decimal number, with or without exponent. Words such as `inf` are text.
pub(super) fn number(cell: &str) -> Option<f64> {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let code = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if code || !cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
        return None;
    }
    cell.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// A sum whose rounding error does not grow with the number of terms (Neumaier 1974).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - total) + value
        } else {
            (value - total) + self.sum
        };
        self.sum = total;
    }

    pub(super) fn total(self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_are_no_numbers() {
        assert_eq!(number("1e3"), Some(1000.0));
        assert_eq!(number("0.5"), Some(0.5));
        for cell in ["007", "inf", "NaN", "1e999", "e", "1.2.3"] {
            assert_eq!(number(cell), None, "{cell}");
        }
    }

    #[test]
    fn sums_are_exact_where_plain_ones_are_not() {
        let mut sum = Sum::default();
        [1e16, 1.0, 1.0, -1e16].into_iter().for_each(|value| sum.add(value));
        assert_eq!(sum.total(), 2.0);
    }
}
