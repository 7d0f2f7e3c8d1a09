//! How numbers are written.

use checkrein_contract::units::show_count;
use serde_json::{Number, Value};

use super::escape;

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Whole numbers in full, others with 4 significant digits.
    #[default]
    Plain,
    /// So many significant digits, 1 to 17.
    Digits(usize),
    /// As a share of 100, with so many decimals, 0 to 6.
    Percent(usize),
    /// Rounded to a whole number, thousands set apart.
    Count,
    /// As in the fact, digit for digit.
    Exact,
}

/// Significant digits of a number that is not whole, when nothing else is said.
const DIGITS: usize = 4;
/// From here on whole numbers have their thousands set apart; below are years and the like.
const GROUPED: u64 = 10_000;
/// The most characters of a list or an object in running text.
const INLINE_MAX: usize = 200;

/// A value as plain text, not yet escaped.
pub fn show(value: &Value, format: Format) -> String {
    match value {
        Value::Number(number) => show_number(number, format),
        Value::String(text) => escape::visible(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Array(_) | Value::Object(_) => escape::json(value, INLINE_MAX),
    }
}

fn show_number(number: &Number, format: Format) -> String {
    let float = number.as_f64().unwrap_or(f64::NAN);
    match format {
        Format::Exact => number.to_string(),
        Format::Plain if number.is_f64() => digits(float, DIGITS),
        Format::Plain => whole(number, GROUPED),
        Format::Count if number.is_f64() => format_count(float),
        Format::Count => whole(number, 0),
        Format::Digits(_) if float == 0.0 => "0".to_owned(),
        Format::Digits(places) => digits(float, places),
        // A share that is too large to be one is shown as it is.
        Format::Percent(_) if !(float * 100.0).is_finite() => digits(float, DIGITS),
        Format::Percent(decimals) => format!("{:.decimals$} %", float * 100.0),
    }
}

fn whole(number: &Number, grouped: u64) -> String {
    let sign = if number.as_i64().is_some_and(|number| number < 0) { "-" } else { "" };
    let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    match size {
        Some(size) if size >= grouped => format!("{sign}{}", show_count(size)),
        _ => number.to_string(),
    }
}

fn format_count(float: f64) -> String {
    let rounded = float.round();
    // 2^53: beyond it a float does not hold every whole number.
    if rounded.abs() > 9_007_199_254_740_992.0 {
        return float.to_string();
    }
    let sign = if rounded < 0.0 { "-" } else { "" };
    format!("{sign}{}", show_count(rounded.abs() as u64))
}

/// `places` significant digits; very large and very small numbers with a power of ten.
fn digits(float: f64, places: usize) -> String {
    let scientific = format!("{:.*e}", places.clamp(1, 17) - 1, float);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if !(-4..7).contains(&exponent) {
        return format!("{mantissa} × 10{}", superscript(exponent));
    }
    let decimals = (places as i32 - 1 - exponent).max(0) as usize;
    format!("{float:.decimals$}")
}

fn superscript(number: i32) -> String {
    let raise = |c| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    };
    number.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_as_people_read_them() {
        for (value, format, text) in [
            (json!(623), Format::Plain, "623"),
            (json!(2011), Format::Plain, "2011"),
            (json!(14599), Format::Plain, "14,599"),
            (json!(2011), Format::Count, "2,011"),
            (json!(-13972512), Format::Plain, "-13,972,512"),
            (json!(-4.528309), Format::Plain, "-4.528"),
            (json!(1.3921458e-9), Format::Digits(3), "1.39 × 10⁻⁹"),
            (json!(0.0292817285), Format::Digits(2), "0.029"),
            (json!(2.573136989), Format::Digits(4), "2.573"),
            (json!(1.5e300), Format::Plain, "1.500 × 10³⁰⁰"),
            (json!(0.0), Format::Digits(3), "0"),
            (json!(0.4267), Format::Percent(1), "42.7 %"),
            (json!(1e308), Format::Percent(1), "1.000 × 10³⁰⁸"),
            (json!(2.573136989), Format::Exact, "2.573136989"),
            (json!(true), Format::Plain, "yes"),
            (json!([1, 2]), Format::Plain, "[1,2]"),
        ] {
            assert_eq!(show(&value, format), text, "{value} {format:?}");
        }
    }
}
