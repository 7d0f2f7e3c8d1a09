//! Why something was not achieved.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::outcome::to_json;

/// What kind of obstacle it was; recovery decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The arguments make no sense to this skill: change them.
    InvalidArgs,
    /// What was asked for does not exist.
    NotFound,
    /// Something outside is down or busy: the same call may work later.
    Unavailable,
    /// The host refused a capability.
    Denied,
    /// The skill cannot do this at all: use another.
    Unsupported,
    /// A fault of the skill's own.
    Internal,
}

impl FailureKind {
    /// Its name in the WIT, such as `invalid-args`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgs => "invalid-args",
            Self::NotFound => "not-found",
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        }
    }
}

/// Why something was not achieved.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The kind of obstacle.
    pub kind: FailureKind,
    /// What was wrong, where, and with which value: lower case, no final period.
    pub message: String,
    /// What was seen: a status, a line, a row. Null if the message says all.
    pub evidence: Value,
}

impl Failure {
    /// A failure without evidence.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), evidence: Value::Null }
    }

    /// The arguments, or what they point at, make no sense.
    #[must_use]
    pub fn invalid_args(message: impl Into<String>) -> Self {
        Self::new(FailureKind::InvalidArgs, message)
    }

    /// What was asked for does not exist.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureKind::NotFound, message)
    }

    /// Something outside is down or busy.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unavailable, message)
    }

    /// The host refused a capability.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Denied, message)
    }

    /// This component cannot do that at all.
    #[must_use]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unsupported, message)
    }

    /// A fault of the skill's own.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    /// Adds what was seen.
    ///
    /// # Panics
    ///
    /// If `evidence` cannot be written as JSON: a map with keys that are not text.
    #[must_use]
    pub fn with_evidence(mut self, evidence: impl Serialize) -> Self {
        self.evidence = to_json(evidence);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Failure {}
