//! Whole numbers of any length, added digit by digit as on paper.

use checkrein_skill::prelude::*;

/// The largest whole number that a double holds with all smaller ones, 2^53.
const EXACT: u64 = 9_007_199_254_740_992;

/// Whether a value is digits with at most one sign; not a code with leading zeros.
#[must_use]
pub fn is_whole(value: &str) -> bool {
    let size = size(value);
    !size.is_empty()
        && size.chars().all(|c| c.is_ascii_digit())
        && (size.len() == 1 || !size.starts_with('0'))
}

/// Range, sum and mean of whole numbers, one or more. What is past 2^53 either way is a text, so
/// that no digit is lost.
#[must_use]
pub fn measures(values: &[&str]) -> Value {
    let (below, others): (Vec<&str>, Vec<&str>) =
        values.iter().copied().partition(|value| is_negative(value));
    let by_size = |value: &&&str| (size(value).len(), size(value).to_owned());
    let largest = others.iter().max_by_key(by_size).or_else(|| below.iter().min_by_key(by_size));
    let smallest = below.iter().max_by_key(by_size).or_else(|| others.iter().min_by_key(by_size));
    let (negative, sum) = difference(total(&others), total(&below));
    let mut content = json!({
        "min": smallest.map(|value| plain(is_negative(value), size(value))),
        "max": largest.map(|value| plain(is_negative(value), size(value))),
        "sum": plain(negative, &sum),
        "zeros": others.iter().filter(|value| size(value) == "0").count(),
        "negative": below.len(),
    });
    let sign = if negative { -1.0 } else { 1.0 };
    let mean = sum.parse::<f64>().map(|sum| sign * sum / values.len() as f64);
    if let Some(mean) = mean.ok().filter(|mean| mean.is_finite()) {
        content["mean"] = json!(mean);
    }
    content
}

/// The number without its sign.
fn size(value: &str) -> &str {
    value.strip_prefix('-').or_else(|| value.strip_prefix('+')).unwrap_or(value)
}

fn is_negative(value: &str) -> bool {
    value.starts_with('-') && value != "-0"
}

fn plain(negative: bool, size: &str) -> Value {
    let sign = if negative { "-" } else { "" };
    match size.parse::<u64>() {
        Ok(small) if small <= EXACT => {
            let small = i64::try_from(small).unwrap_or_default();
            json!(if negative { -small } else { small })
        }
        _ => json!(format!("{sign}{size}")),
    }
}

/// The digits of a sum of sizes, the last one first.
fn total(values: &[&str]) -> Vec<u8> {
    let mut total: Vec<u8> = Vec::new();
    for value in values {
        let mut carried = 0;
        let mut digits = size(value).bytes().rev();
        let mut at = 0;
        loop {
            let digit = digits.next();
            if digit.is_none() && carried == 0 {
                break;
            }
            if at == total.len() {
                total.push(0);
            }
            let sum = total[at] + digit.map_or(0, |digit| digit - b'0') + carried;
            (total[at], carried) = (sum % 10, sum / 10);
            at += 1;
        }
    }
    total
}

/// Whether `above - below` is negative, and its size as text.
fn difference(above: Vec<u8>, below: Vec<u8>) -> (bool, String) {
    let strip = |mut digits: Vec<u8>| {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        digits
    };
    let (above, below) = (strip(above), strip(below));
    let negative = above.len().cmp(&below.len()).then(above.iter().rev().cmp(below.iter().rev()));
    let negative = negative.is_lt();
    let (mut left, taken) = if negative { (below, above) } else { (above, below) };
    let mut borrowed = 0;
    for (at, digit) in left.iter_mut().enumerate() {
        let take = taken.get(at).copied().unwrap_or(0) + borrowed;
        borrowed = u8::from(*digit < take);
        *digit = *digit + 10 * borrowed - take;
    }
    let text: String =
        strip(left).into_iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    (negative, if text.is_empty() { "0".into() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[&str]) -> Value {
        measures(values)["sum"].clone()
    }

    #[test]
    fn sums_are_exact_at_any_length() {
        assert_eq!(sum(&["9007199254740993", "9007199254740993"]), "18014398509481986");
        assert_eq!(sum(&["1", "-1000000000000000000000000000000"]), format!("-{}", "9".repeat(30)));
        assert_eq!(sum(&["100", "-1", "-0"]), 99);
        assert_eq!(sum(&["-100", "+1"]), -99);
        assert_eq!(sum(&["5", "-5"]), 0);
        assert_eq!(sum(&[&"9".repeat(400), "1"]), format!("1{}", "0".repeat(400)));
    }

    #[test]
    fn ranges_keep_every_digit() {
        let range = |values: &[&str]| {
            let measures = measures(values);
            (measures["min"].clone(), measures["max"].clone())
        };
        assert_eq!(range(&["10", "9", "-3", "-20"]), (json!(-20), json!(10)));
        assert_eq!(range(&["-3", "-20"]), (json!(-20), json!(-3)));
        let ids = ["9007199254740993", "9007199254740992"];
        assert_eq!(range(&ids), (json!(9_007_199_254_740_992_i64), json!("9007199254740993")));
        assert_eq!(measures(&ids)["mean"].as_f64(), Some(9_007_199_254_740_992.0));
        assert!(measures(&[&"9".repeat(400)])["mean"].is_null());
    }

    #[test]
    fn codes_are_not_whole() {
        assert!(["0", "-0", "+7", "99999999999999999999999999"].into_iter().all(is_whole));
        assert!(!["007", "-", "", "+-1", "1.0", "1e3"].into_iter().any(is_whole));
    }
}
