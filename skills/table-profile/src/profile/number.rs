//! Which cells are numbers.

/// A whole number of up to 53 bits, so that a double holds it exactly. A sign is possible; leading
/// zeros are not, because such a cell is a code (a postal code, an id) and not an amount.
pub(super) fn integer(cell: &str) -> Option<f64> {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    cell.parse::<i64>()
        .ok()
        .filter(|whole| whole.unsigned_abs() <= 1 << 53)
        .map(|whole| whole as f64)
}

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
        assert_eq!(integer("-12"), Some(-12.0));
        assert_eq!(number("1e3"), Some(1000.0));
        assert_eq!(number("0.5"), Some(0.5));
        for cell in ["007", "", "-", "inf", "1,5", "0x10", "99999999999999999999"] {
            assert_eq!(integer(cell), None, "{cell}");
        }
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
