//! The one shape for what is wrong with an action or a submission, and the one for what stops a
//! start.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interface::Severity;

/// Where in its life an action or a submission was turned down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It does not parse.
    Structure,
    /// It does not fit the skill's JSON Schema.
    Schema,
    /// It is not allowed in this state.
    Semantics,
    /// A limit fired.
    Limit,
    /// A verification found it wanting.
    Verification,
}

/// A refusal, a finding, or a limit that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Where it was turned down.
    pub stage: Stage,
    /// A stable word for the rule.
    pub rule: String,
    /// The skill or verifier concerned, or `gateway`, `planner`.
    pub skill: String,
    /// Whether it rejects.
    pub severity: Severity,
    /// For people and planners.
    pub message: String,
    /// What should have been there.
    pub expected: Value,
    /// What was there.
    pub actual: Value,
    /// A JSON Pointer, a file, a name.
    pub location: Option<String>,
    /// How to mend it.
    pub suggestion: Option<String>,
}

/// Something that stops the start: one line, with all that is needed to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file concerned.
    pub file: String,
    /// The place in it: `line:column key`, a name of an import, empty for the whole.
    pub place: String,
    /// The step that found it, such as `syntax`, `schema`, `imports`, `compile`.
    pub stage: String,
    /// What should have been there.
    pub expected: String,
    /// What was there.
    pub found: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if !self.place.is_empty() {
            write!(f, ":{}", self.place)?;
        }
        write!(f, ": {}: expected {}, found {}", self.stage, self.expected, self.found)?;
        if !self.mend.is_empty() {
            write!(f, "; {}", self.mend)?;
        }
        Ok(())
    }
}

/// Some faults, all that there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
