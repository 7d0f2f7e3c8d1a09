//! What an executor achieved.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// What an executor achieved: content for the planner, draft facts and artifacts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// A short summary; facts carry what has to be answered for.
    pub content: Value,
    /// What enters the quarantine.
    pub facts: Vec<DraftFact>,
    /// Files under `/work` to be kept; all others are deleted.
    pub artifacts: Vec<Artifact>,
}

/// Something an executor found out.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftFact {
    /// What it is about, such as `de/gene/FBgn0039155`. Segments of `[A-Za-z0-9][A-Za-z0-9._-]*`
    /// joined by `/`, at most 200 bytes; see [`is_subject`].
    pub subject: String,
    /// Which kind of evidence it is.
    pub kind: String,
    /// What was found.
    pub content: Value,
    /// Where it comes from: a path under `/in` or `/artifacts`, a URL that this call fetched, or a
    /// fact id.
    pub source: String,
    /// The id of the fact that it replaces.
    pub supersedes: Option<String>,
}

/// A file that an executor wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Relative to `/work`.
    pub path: String,
    /// What a report calls it.
    pub title: String,
    /// Such as `text/csv`.
    pub media_type: String,
}

impl Outcome {
    /// An outcome with this content and nothing else yet.
    ///
    /// # Panics
    ///
    /// If `content` cannot be written as JSON: a map with keys that are not text.
    #[must_use]
    pub fn new(content: impl Serialize) -> Self {
        Self { content: to_json(content), facts: Vec::new(), artifacts: Vec::new() }
    }

    /// Adds a draft fact.
    #[must_use]
    pub fn fact(mut self, fact: DraftFact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Adds draft facts.
    #[must_use]
    pub fn facts(mut self, facts: impl IntoIterator<Item = DraftFact>) -> Self {
        self.facts.extend(facts);
        self
    }

    /// Adds an artifact that lies under `/work`.
    #[must_use]
    pub fn artifact(
        mut self,
        path: impl Into<String>,
        title: impl Into<String>,
        media_type: impl Into<String>,
    ) -> Self {
        self.artifacts.push(Artifact {
            path: path.into(),
            title: title.into(),
            media_type: media_type.into(),
        });
        self
    }

    /// The draft fact on a subject, with its place in the list.
    #[must_use]
    pub fn find(&self, subject: &str) -> Option<(usize, &DraftFact)> {
        self.facts.iter().enumerate().find(|(_, fact)| fact.subject == subject)
    }
}

impl DraftFact {
    /// A draft fact that replaces no other.
    ///
    /// # Panics
    ///
    /// If `content` cannot be written as JSON: a map with keys that are not text.
    #[must_use]
    pub fn new(
        subject: impl Into<String>,
        kind: impl Into<String>,
        content: impl Serialize,
        source: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            kind: kind.into(),
            content: to_json(content),
            source: source.into(),
            supersedes: None,
        }
    }

    /// Says which fact it replaces, by id.
    #[must_use]
    pub fn superseding(mut self, id: impl Into<String>) -> Self {
        self.supersedes = Some(id.into());
        self
    }

    /// The content as a type.
    ///
    /// # Errors
    ///
    /// [`Failure::invalid_args`] naming the place, if it does not fit.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        crate::call::parse(&self.content.to_string(), &self.subject)
    }
}

/// Whether a text can be a subject.
#[must_use]
pub fn is_subject(text: &str) -> bool {
    text.len() <= 200 && text.split('/').all(is_segment)
}

/// Whether a text can be one segment of a subject: `[A-Za-z0-9][A-Za-z0-9._-]*`.
#[must_use]
pub fn is_segment(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// JSON of a value of our own types.
pub(crate) fn to_json(value: impl Serialize) -> Value {
    #[allow(clippy::expect_used, reason = "a fault of the skill's code, documented as a panic")]
    serde_json::to_value(value).expect("content has a form in JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_segments_of_plain_characters() {
        assert!(is_subject("de/gene/FBgn0039155"));
        assert!(is_subject("profile/a.b_c-d"));
        for bad in ["", "/a", "a/", "a//b", "a/-b", "a/ü", "a b", "a/..", &"x".repeat(201)] {
            assert!(!is_subject(bad), "{bad}");
        }
    }
}
