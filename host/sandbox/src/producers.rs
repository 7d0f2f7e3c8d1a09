//! What a component was made with, as its toolchain wrote it into the `producers` sections.

use serde::Serialize;
use wasmparser::{KnownCustom, Parser, Payload};

use crate::text::{excerpt, one_line};

/// How many are told of one component.
const PRODUCERS_MAX: usize = 32;

/// A language or a tool that a component was made with. Whoever made it chose the words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Producer {
    /// `language`, `processed-by` or `sdk`.
    pub field: String,
    /// Its name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
}

/// The producers of a component and of everything nested in it, each once, in the order of the
/// file.
///
/// # Errors
///
/// Where the bytes are no component, or a section is not what it should be.
pub fn producers(component: &[u8]) -> Result<Vec<Producer>, String> {
    let mut found: Vec<Producer> = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(|error| one_line(&error.to_string()))?;
        let Payload::CustomSection(section) = payload else { continue };
        let KnownCustom::Producers(fields) = section.as_known() else { continue };
        for field in fields {
            let field = field.map_err(|error| one_line(&error.to_string()))?;
            for value in field.values {
                let value = value.map_err(|error| one_line(&error.to_string()))?;
                let [field, name, version] =
                    [field.name, value.name, value.version].map(|text| one_line(&excerpt(text)));
                let producer = Producer { field, name, version };
                if found.len() < PRODUCERS_MAX && !found.contains(&producer) {
                    found.push(producer);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A custom section `producers` with one language.
    fn module(language: &str) -> String {
        let mut body = vec![1, 8];
        body.extend_from_slice(b"language");
        body.push(1);
        body.push(language.len() as u8);
        body.extend_from_slice(language.as_bytes());
        body.extend_from_slice(b"\x041.95");
        let bytes: String = body.iter().map(|byte| format!("\\{byte:02x}")).collect();
        format!("(core module (@custom \"producers\" \"{bytes}\"))")
    }

    #[test]
    fn they_are_found_at_any_depth_and_told_once() {
        let text = format!(
            "(component {} {} (component {}))",
            module("Rust"),
            module("Rust"),
            module("C\u{1b}[2J\u{202e}")
        );
        let found = producers(&wat::parse_str(text).unwrap()).unwrap();
        let names: Vec<&str> = found.iter().map(|producer| producer.name.as_str()).collect();
        assert_eq!(names, ["Rust", "C\\u{1b}[2J\\u{202e}"]);
        assert_eq!((found[0].field.as_str(), found[0].version.as_str()), ("language", "1.95"));
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let bytes = wat::parse_str(format!("(component {})", module("Rust"))).unwrap();
        assert!(producers(&bytes[..bytes.len() / 2]).is_err());
        for length in 0..bytes.len() {
            // A cut between two sections leaves a component, with less in it.
            assert!(!producers(&bytes[..length]).is_ok_and(|found| found.len() > 1), "{length}");
        }
        assert!(producers(b"text").is_err());
    }
}
