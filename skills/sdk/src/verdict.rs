//! What a verification says of a submission.

use serde::Serialize;
use serde_json::Value;

use crate::outcome::to_json;

/// What was looked at and holds, and what does not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What was looked at and holds.
    pub checks: Vec<Check>,
    /// What is held against the submission.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at and holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// A few stable words.
    pub rule: String,
    /// Subjects of draft facts, paths of artifacts, or ids of statements.
    pub about: Vec<String>,
    /// What was compared and how close it was.
    pub note: String,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Rejects the submission.
    Error,
    /// Is shown, and rejects nothing.
    Warning,
}

/// One thing held against a submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A few stable words, such as `p-value`.
    pub rule: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub message: String,
    /// What should be there. Neither null nor equal to `actual`.
    pub expected: Value,
    /// What is there.
    pub actual: Value,
    /// A JSON Pointer into the outcome, a statement's id, or a file of `/work`.
    pub location: Option<String>,
    /// How to mend it.
    pub suggestion: Option<String>,
}

impl Verdict {
    /// A verdict that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check: `about` names the subjects and artifacts that were looked at.
    pub fn check<T: Into<String>>(
        &mut self,
        rule: impl Into<String>,
        about: impl IntoIterator<Item = T>,
        note: impl Into<String>,
    ) -> &mut Self {
        self.checks.push(Check {
            rule: rule.into(),
            about: about.into_iter().map(Into::into).collect(),
            note: note.into(),
        });
        self
    }

    /// Adds a finding.
    pub fn finding(&mut self, finding: Finding) -> &mut Self {
        self.findings.push(finding);
        self
    }

    /// Adds an error where two values differ, and says whether they agree.
    pub fn equal<T: Serialize + PartialEq>(
        &mut self,
        rule: &str,
        message: impl Into<String>,
        expected: &T,
        actual: &T,
        location: impl Into<String>,
    ) -> bool {
        let agree = expected == actual;
        if !agree {
            self.finding(Finding::error(rule, message, expected, actual).at(location));
        }
        agree
    }

    /// Whether a finding rejects the submission.
    #[must_use]
    pub fn rejects(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Keeps the first `most` findings and says in a last one how many were left out, so that a
    /// thousand wrong rows do not bury the first.
    pub fn cap_findings(&mut self, most: usize) -> &mut Self {
        let found = self.findings.len();
        if found > most {
            // Errors first: a warning must not crowd out what rejects.
            self.findings.sort_by_key(|finding| finding.severity == Severity::Warning);
            self.findings.truncate(most);
            let more = format!("{} more findings are left out", found - most);
            self.findings.push(Finding::error("more-findings", more, most, found));
        }
        self
    }
}

impl Finding {
    /// A finding that rejects. Null stands for nothing there, and is written as `"nothing"`.
    ///
    /// # Panics
    ///
    /// If a value cannot be written as JSON: a map with keys that are not text.
    #[must_use]
    pub fn error(
        rule: impl Into<String>,
        message: impl Into<String>,
        expected: impl Serialize,
        actual: impl Serialize,
    ) -> Self {
        Self {
            rule: rule.into(),
            severity: Severity::Error,
            message: message.into(),
            expected: not_null(to_json(expected)),
            actual: not_null(to_json(actual)),
            location: None,
            suggestion: None,
        }
    }

    /// A finding that is shown and rejects nothing.
    ///
    /// # Panics
    ///
    /// As [`Finding::error`].
    #[must_use]
    pub fn warning(
        rule: impl Into<String>,
        message: impl Into<String>,
        expected: impl Serialize,
        actual: impl Serialize,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, message, expected, actual) }
    }

    /// Says where: a JSON Pointer into the outcome, or a file of `/work`.
    #[must_use]
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

fn not_null(value: Value) -> Value {
    if value.is_null() { Value::from("nothing") } else { value }
}

/// Compares numbers within a relative tolerance, and remembers the largest difference.
#[derive(Clone, Debug)]
pub struct Comparison {
    tolerance: f64,
    largest: f64,
    compared: usize,
}

impl Comparison {
    /// A comparison within a relative tolerance, such as `1e-9`.
    #[must_use]
    pub fn within(tolerance: f64) -> Self {
        Self { tolerance, largest: 0.0, compared: 0 }
    }

    /// Whether the two agree. NaN agrees with nothing.
    pub fn agree(&mut self, expected: f64, actual: f64) -> bool {
        let scale = expected.abs().max(actual.abs());
        let difference = if expected == actual { 0.0 } else { (expected - actual).abs() / scale };
        self.compared += 1;
        self.largest =
            self.largest.max(if difference.is_nan() { f64::INFINITY } else { difference });
        difference <= self.tolerance
    }

    /// Such as `largest relative difference 3e-13 over 623 numbers`.
    #[must_use]
    pub fn note(&self) -> String {
        format!("largest relative difference {:.0e} over {} numbers", self.largest, self.compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_know_their_largest_difference() {
        let mut comparison = Comparison::within(1e-6);
        assert!(comparison.agree(1.0, 1.0 + 1e-9));
        assert!(comparison.agree(0.0, 0.0));
        assert!(!comparison.agree(0.0, 1e-9));
        assert!(!Comparison::within(1e-6).agree(f64::NAN, f64::NAN));
        assert!(comparison.note().ends_with("over 3 numbers"));
    }

    #[test]
    fn findings_are_capped_with_a_count() {
        let mut verdict = Verdict::new();
        for n in 0..30 {
            verdict.finding(Finding::warning("w", "m", n, n + 1));
        }
        verdict.finding(Finding::error("e", "m", 1, 2));
        verdict.cap_findings(20);
        assert_eq!(verdict.findings.len(), 21);
        assert_eq!(verdict.findings[0].rule, "e");
        assert_eq!(verdict.findings[20].message, "11 more findings are left out");
    }

    #[test]
    fn nothing_is_not_null() {
        assert_eq!(Finding::error("r", "m", Value::Null, 1).expected, Value::from("nothing"));
    }
}
