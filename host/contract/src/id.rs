//! Names of runs, stages, subgoals, calls, facts and skills, and what may stand in them.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

name_type!(
    /// One execution of a task.
    RunId
);
name_type!(
    /// A phase of the strategy layer, unique in its task.
    StageId
);
name_type!(
    /// The unit that the strategy layer hands to the task loop, unique in its task.
    SubgoalId
);
name_type!(
    /// One executor invocation: `<run>/<subgoal>/<number>`, the same when it is repeated after a crash.
    CallId
);
name_type!(
    /// `<subject>@<version>`.
    FactId
);
name_type!(
    /// A question to a person: a number, counted up from 1 in its run.
    AskId
);

impl CallId {
    /// The id of the `number`th call (from 1) of a subgoal.
    pub fn new(run: &RunId, subgoal: &SubgoalId, number: u32) -> Self {
        CallId(format!("{run}/{subgoal}/{number}"))
    }
}

impl FactId {
    /// The id of version `version` (from 1) of the fact on `subject`.
    pub fn new(subject: &str, version: u32) -> Self {
        FactId(format!("{subject}@{version}"))
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z. The core never reads a clock: times come in as inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The largest length of a subject, in bytes.
pub const SUBJECT_MAX: usize = 200;

/// Whether `text` is a subject: segments of `[A-Za-z0-9][A-Za-z0-9._-]*` joined by `/`, at most
/// [`SUBJECT_MAX`] bytes.
pub fn is_subject(text: &str) -> bool {
    text.len() <= SUBJECT_MAX && text.split('/').all(is_segment)
}

/// Whether `text` is one segment of a subject; stages, subgoals and skills are named so too.
pub fn is_segment(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Whether `subject` is covered by `pattern`: the subject itself, or a prefix that ends in `/*`
/// and covers everything below it. `*` alone covers every subject.
pub fn covers(pattern: &str, subject: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => subject.starts_with(prefix),
        None => pattern == subject,
    }
}

/// Whether some subject is covered by both patterns.
pub fn overlap(one: &str, other: &str) -> bool {
    match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
        (Some(_), None) => covers(one, other),
        (None, _) => covers(other, one),
    }
}

/// Whether `text` is a pattern that [`covers`] something: a subject, a subject and `/*`, or `*`.
pub fn is_subject_pattern(text: &str) -> bool {
    text == "*" || is_subject(text.strip_suffix("/*").unwrap_or(text))
}

/// Whether `path` is a relative path of ordinary segments: not empty, no `..`, no `.`, no root,
/// no back-slash, no control character, at most 255 bytes a segment.
pub fn is_relative_path(path: &str) -> bool {
    !path.is_empty()
        && path.split('/').all(|part| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.len() <= 255
                && !part.chars().any(|c| c.is_control() || c == '\\')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects() {
        for good in ["de/gene/FBgn0039155", "a", "a/b.c_d-e", "0"] {
            assert!(is_subject(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", "a/../b", "-a", "a b", "ä", &"a".repeat(201)] {
            assert!(!is_subject(bad), "{bad}");
        }
    }

    #[test]
    fn coverage() {
        assert!(covers("de/*", "de/gene/x"));
        assert!(!covers("de/*", "dex"));
        assert!(covers("de/summary", "de/summary"));
        assert!(!covers("de/summary", "de/summary2"));
        assert!(overlap("de/*", "de/*") && overlap("de/*", "de/gene/x") && overlap("de/gene/*", "de/*"));
        assert!(!overlap("de/*", "dex/*") && !overlap("de/a", "de/b") && overlap("*", "a"));
        assert!(is_subject_pattern("de/*") && is_subject_pattern("*"));
        assert!(!is_subject_pattern("de*") && !is_subject_pattern("/*"));
    }

    #[test]
    fn relative_paths() {
        assert!(is_relative_path("a/b.csv"));
        for bad in ["", "/a", "../a", "a/../b", "a//b", "./a", "a\\b", "a\nb"] {
            assert!(!is_relative_path(bad), "{bad:?}");
        }
    }
}
