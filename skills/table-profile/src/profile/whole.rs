//! Whole numbers of any length, to the last digit.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

/// Up to 2^53 either way every reader of JSON holds a whole number exactly.
const MOST_EXACT: u64 = 1 << 53;

/// Digits that a limb holds.
const LIMB: usize = 18;

/// What a limb counts up to.
const BASE: i128 = 10_i128.pow(18);

/// A whole number of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    negative: bool,
    /// Without leading zeros; `0` alone for zero.
    digits: String,
}

impl Whole {
    /// A cell that is a whole number, see [`is_whole`].
    pub(super) fn parse(cell: &str) -> Option<Self> {
        is_whole(cell).then(|| {
            let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
            Self { negative: cell.starts_with('-') && digits != "0", digits: digits.to_owned() }
        })
    }

    /// The exact sum.
    pub(super) fn sum(numbers: &[Self]) -> Self {
        // Signed limbs, the least first. Carrying once at the end is enough: a limb has room for
        // more terms than there are bytes in memory.
        let mut limbs: Vec<i128> = vec![0];
        for number in numbers {
            let sign = if number.negative { -1 } else { 1 };
            for (at, chunk) in number.digits.as_bytes().rchunks(LIMB).enumerate() {
                let limb = chunk.iter().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
                if at == limbs.len() {
                    limbs.push(0);
                }
                limbs[at] += sign * limb;
            }
        }
        carry(&mut limbs);
        let negative = limbs.last().is_some_and(|top| *top < 0);
        if negative {
            limbs.iter_mut().for_each(|limb| *limb = -*limb);
            carry(&mut limbs);
        }
        let digits: String = limbs.iter().rev().map(|limb| format!("{limb:018}")).collect();
        let digits = digits.trim_start_matches('0');
        Self { negative, digits: if digits.is_empty() { "0" } else { digits }.to_owned() }
    }

    /// The nearest double; infinite past the largest one.
    pub(super) fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::INFINITY)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits == "0"
    }

    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }
}

/// Brings all limbs but the last into 0 to `BASE`; the last has the sign of the number.
fn carry(limbs: &mut Vec<i128>) {
    let mut carried = 0;
    for limb in limbs.iter_mut() {
        let all = *limb + carried;
        (*limb, carried) = (all.rem_euclid(BASE), all.div_euclid(BASE));
    }
    limbs.push(carried);
}

/// Digits with or without a sign, as many as there are. Not with leading zeros: such a cell is a
/// code (a postal code, an id) and not an amount.
pub(super) fn is_whole(cell: &str) -> bool {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits == "0" || !digits.starts_with('0'))
}

impl Ord for Whole {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |a: &Self, b: &Self| {
            a.digits.len().cmp(&b.digits.len()).then_with(|| a.digits.cmp(&b.digits))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Whole {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.negative { "-" } else { "" }, self.digits)
    }
}

impl Serialize for Whole {
    /// A number up to 2^53 either way, a text beyond.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        match text.parse::<i64>() {
            Ok(number) if number.unsigned_abs() <= MOST_EXACT => serializer.serialize_i64(number),
            _ => serializer.serialize_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wholes(cells: &[&str]) -> Vec<Whole> {
        cells.iter().map(|cell| Whole::parse(cell).expect("whole")).collect()
    }

    #[test]
    fn codes_and_words_are_not_whole() {
        for cell in ["0", "-0", "+5", "-12", "99999999999999999999"] {
            assert!(is_whole(cell), "{cell}");
        }
        for cell in ["007", "-00", "", "-", "+-1", "inf", "1,5", "1.0", "0x10"] {
            assert!(!is_whole(cell), "{cell}");
        }
    }

    #[test]
    fn sums_are_exact_at_any_length() {
        let nines = "9".repeat(400);
        for (cells, sum) in [
            (vec!["9007199254740993", "9007199254740993"], "18014398509481986".to_owned()),
            (vec!["-1", "1", "-0"], "0".into()),
            (vec!["1000000000000000000", "-1"], "999999999999999999".into()),
            (
                vec!["1", "-1000000000000000000000000000000"],
                "-999999999999999999999999999999".into(),
            ),
            (vec!["-5", "3"], "-2".into()),
            (vec![&nines, "1"], format!("1{}", "0".repeat(400))),
            (vec![], "0".into()),
        ] {
            assert_eq!(Whole::sum(&wholes(&cells)).to_string(), sum, "{cells:?}");
        }
    }

    #[test]
    fn order_is_that_of_numbers() {
        let mut numbers = wholes(&["10", "-10", "9", "-9", "0", "123456789012345678901234567890"]);
        numbers.sort();
        let texts: Vec<String> = numbers.iter().map(Whole::to_string).collect();
        assert_eq!(texts, ["-10", "-9", "0", "9", "10", "123456789012345678901234567890"]);
    }

    #[test]
    fn past_2_to_the_53_they_are_texts() {
        for (cell, json) in [
            ("9007199254740992", json!(9_007_199_254_740_992_i64)),
            ("-9007199254740993", json!("-9007199254740993")),
            ("-9223372036854775808", json!("-9223372036854775808")),
            ("9223372036854775808", json!("9223372036854775808")),
            ("-0", json!(0)),
        ] {
            assert_eq!(json!(Whole::parse(cell)), json);
        }
    }
}
