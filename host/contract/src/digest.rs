//! Content digests, and the canonical form of JSON that they are taken over.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest; written `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, thiserror::Error)]
#[error("expected `sha256:` and 64 hexadecimal digits, found `{0}`")]
pub struct NotADigest(pub String);

impl Digest {
    /// The digest that stands before the first event of a run.
    pub const ZERO: Digest = Digest([0; 32]);

    /// The digest of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Digest(Sha256::digest(bytes.as_ref()).into())
    }

    /// The digest of a JSON value's [`canonical`] form.
    pub fn of_json(value: &Value) -> Self {
        Self::of(canonical(value))
    }

    /// A digest that was computed elsewhere, as by a streaming hasher.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 hexadecimal digits, without the `sha256:` before them.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first 12 hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }

    /// The first 8 bytes as a big-endian number, as a seed.
    pub fn seed(&self) -> u64 {
        self.0[..8].iter().fold(0, |seed, byte| (seed << 8) | u64::from(*byte))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.short())
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        let wrong = || NotADigest(text.to_owned());
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[index * 2..index * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Digest(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// JSON without spaces and with the keys of every object sorted by their bytes: two values that
/// are equal have one canonical form, in whatever order they were written.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

/// How deep arrays and objects are nested in a value that comes from outside, at most. What is
/// kept is wrapped in events and outcomes, and a JSON reader stops at 128.
pub const DEPTH_MAX: usize = 64;

/// How deep arrays and objects are nested: 0 for a scalar.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_does_not_change_a_digest() {
        let one: Value = serde_json::from_str(r#"{"b":[1,{"z":1,"y":2}],"a":null}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a":null,"b":[1,{"y":2,"z":1}]}"#).unwrap();
        assert_eq!(Digest::of_json(&one), Digest::of_json(&two));
        assert_ne!(Digest::of_json(&one), Digest::of_json(&json!({"a": null})));
    }

    #[test]
    fn text_form_goes_both_ways() {
        let digest = Digest::of("x");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert!("sha256:zz".parse::<Digest>().is_err());
        // 64 bytes that are not 64 ASCII digits must not split a character.
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }
}
