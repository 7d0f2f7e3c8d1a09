//! Parses JSON that a guest wrote.

use serde_json::Value;

use crate::text::excerpt;

/// How deep arrays and objects may stand in one another. The values are stored inside envelopes
/// (an outcome, an event, a manifest) and must be read back with `serde_json`, which stops at 128
/// levels: half of them are left to the envelopes, and nothing of use nests deeper.
pub(crate) const DEPTH: usize = 64;

/// What is wrong with a text.
#[derive(Debug)]
pub(crate) struct NotJson {
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// The JSON value, nested at most [`DEPTH`] deep.
pub(crate) fn parse(text: &str) -> Result<Value, NotJson> {
    let deepest = depth(text);
    if deepest > DEPTH {
        let expected = format!("JSON nested at most {DEPTH} levels deep");
        return Err(NotJson { expected, found: format!("{deepest} levels") });
    }
    serde_json::from_str(text).map_err(|error| {
        let found = format!("{error}: {}", excerpt(text));
        NotJson { expected: "a JSON document".to_owned(), found }
    })
}

/// Whether two values say the same: `1` and `1.0` do.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() != other.is_f64() && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|there| same(value, there));
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// The deepest nesting of brackets outside of texts.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn depth_is_bounded_and_told() {
        assert!(parse(&nested(DEPTH)).is_ok());
        let wrong = parse(&nested(DEPTH + 1)).unwrap_err();
        assert_eq!(wrong.found, "65 levels");
        assert!(wrong.expected.contains("at most 64 levels"), "{}", wrong.expected);
        assert_eq!(parse(&nested(10_000)).unwrap_err().found, "10000 levels");
        assert!(parse(&format!("\"{}\"", "[\\\"".repeat(500))).is_ok());
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        for number in ["11.62273568825719", "1.848419865439968e-8", "0.1", "5e-324", "2.265478354180797"] {
            let read = parse(number).unwrap().as_f64().unwrap();
            assert_eq!(read.to_bits(), number.parse::<f64>().unwrap().to_bits(), "{number}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_value() {
        let pair = |one: &str, other: &str| same(&parse(one).unwrap(), &parse(other).unwrap());
        for (one, other) in
            [("1", "1.0"), ("[1,{\"a\":2.0}]", "[1.0,{\"a\":2}]"), ("-0.0", "0"), ("\"a\"", "\"a\"")]
        {
            assert!(pair(one, other), "{one} {other}");
        }
        // The two nearest whole numbers that no double tells apart.
        let different = [
            ("1", "1.5"),
            ("9007199254740993", "9007199254740992"),
            ("[1]", "[1,1]"),
            ("1", "\"1\""),
            ("{}", "[]"),
        ];
        for (one, other) in different {
            assert!(!pair(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_json_is_quoted_in_part() {
        let wrong = parse(&"é".repeat(1000)).unwrap_err();
        assert!(wrong.found.len() < 400 && wrong.found.contains("(2000 bytes)"), "{}", wrong.found);
    }
}
