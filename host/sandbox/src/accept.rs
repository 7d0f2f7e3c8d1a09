//! From the guest's types to the contract's: everything that a guest returns is checked here, and
//! nothing past this module handles text that may not be JSON.

mod json;
mod size;

use std::collections::HashSet;
use std::sync::Arc;

use checkrein_contract::id::{is_relative_path, is_segment, is_subject};
use checkrein_contract::interface as ours;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::problem::{Problem, Stage};
use serde_json::{Value, json};

use crate::bindings::{recovery, trigger, types as guest};
use crate::net::Scrubber;
use crate::stop::Stop;
use crate::text::excerpt;

/// The most bytes that the path of an artifact may have.
const PATH_BYTES: usize = 1024;
/// The most segments that it may have.
const PATH_SEGMENTS: usize = 32;

/// Why something that a guest returned is not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is too large.
    Limit(Stop),
    /// The interface does not allow it.
    Problem(Box<Problem>),
}

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Self {
        Refused::Limit(stop)
    }
}

/// Checks what one invocation returned.
pub(crate) struct Acceptor<'a> {
    /// The name of the component, for problems.
    pub(crate) component: &'a str,
    pub(crate) limits: &'a Limits,
    /// No secret of the call leaves it with its answer.
    pub(crate) scrubber: Arc<Scrubber>,
}

type Accepted<T> = Result<T, Refused>;

impl Acceptor<'_> {
    /// A trigger's answer: a score of at most 100, arguments that are an object.
    pub(crate) fn assessment(&self, raw: trigger::Assessment) -> Accepted<ours::Assessment> {
        self.size(size::assessment(&raw))?;
        if raw.score > 100 {
            return self.refuse("score", "/score", "a score from 0 to 100".into(), json!(raw.score));
        }
        let args = raw.args.map(|text| self.json("/args", &text)).transpose()?;
        if args.as_ref().is_some_and(|args| !args.is_object()) {
            return self.refuse("args", "/args", "a JSON object".into(), args.unwrap_or_default());
        }
        Ok(ours::Assessment { score: raw.score, reason: self.clean(raw.reason), args })
    }

    /// An executor's outcome. Its artifacts are only named here; whether they are files is seen
    /// when they are stored.
    pub(crate) fn outcome(&self, raw: guest::Outcome) -> Accepted<ours::Outcome> {
        self.count(LimitKey::Facts, raw.facts.len())?;
        self.count(LimitKey::WorkFiles, raw.artifacts.len())?;
        self.size(size::outcome(&raw))?;
        let content = self.json("/content", &raw.content)?;
        let facts: Vec<_> = raw
            .facts
            .into_iter()
            .enumerate()
            .map(|(at, fact)| self.draft(at, fact))
            .collect::<Accepted<_>>()?;
        let artifacts: Vec<_> = raw
            .artifacts
            .into_iter()
            .enumerate()
            .map(|(at, file)| self.artifact(at, file))
            .collect::<Accepted<_>>()?;
        self.paths(&facts, &artifacts)?;
        Ok(ours::Outcome { content, facts, artifacts })
    }

    fn draft(&self, at: usize, raw: guest::DraftFact) -> Accepted<ours::DraftFact> {
        // A subject with a secret in it is none any more once that is replaced.
        let subject = self.clean(raw.subject);
        if !is_subject(&subject) {
            let expected = "segments of letters, digits, `.`, `_`, `-` joined by `/`, at most 200 bytes";
            return self.refuse("subject", &format!("/facts/{at}/subject"), expected.into(), json!(subject));
        }
        let content = self.json(&format!("/facts/{at}/content"), &raw.content)?;
        Ok(ours::DraftFact {
            subject,
            kind: self.clean(raw.kind),
            content,
            source: self.clean(raw.source),
            supersedes: raw.supersedes.map(|id| self.clean(id)),
        })
    }

    fn artifact(&self, at: usize, raw: guest::Artifact) -> Accepted<ours::Artifact> {
        let wanted = if !is_relative_path(&raw.path) {
            "a path relative to `/work`".to_owned()
        } else if self.scrubber.text(&raw.path) != raw.path {
            "a path without a secret in it".to_owned()
        } else if raw.path.len() > PATH_BYTES {
            format!("a path of at most {PATH_BYTES} bytes")
        } else if raw.path.split('/').count() > PATH_SEGMENTS {
            format!("a path of at most {PATH_SEGMENTS} segments")
        } else {
            let (title, media_type) = (self.clean(raw.title), self.clean(raw.media_type));
            return Ok(ours::Artifact { path: raw.path, title, media_type });
        };
        self.refuse("artifact-path", &format!("/artifacts/{at}/path"), wanted.into(), json!(raw.path))
    }

    /// Each artifact is a file of its own, and no name stands for two things: the checks of a
    /// verdict name subjects and paths in one list.
    fn paths(&self, facts: &[ours::DraftFact], artifacts: &[ours::Artifact]) -> Accepted<()> {
        let subjects: HashSet<&str> = facts.iter().map(|fact| fact.subject.as_str()).collect();
        let paths: HashSet<&str> = artifacts.iter().map(|file| file.path.as_str()).collect();
        let mut earlier = HashSet::new();
        for (at, artifact) in artifacts.iter().enumerate() {
            let path = artifact.path.as_str();
            let wanted = if !earlier.insert(path) {
                "each file named once"
            } else if parents(path).any(|parent| paths.contains(parent)) {
                "a path that is not below another file of the outcome"
            } else if subjects.contains(path) {
                "a path that is not the subject of a fact of the outcome"
            } else {
                continue;
            };
            let place = format!("/artifacts/{at}/path");
            return self.refuse("artifact-path", &place, wanted.into(), json!(path));
        }
        Ok(())
    }

    /// A failure of an executor or a verification.
    pub(crate) fn failure(&self, raw: guest::Failure) -> Accepted<ours::Failure> {
        self.size(size::failure(&raw))?;
        let kind = match raw.kind {
            guest::FailureKind::InvalidArgs => ours::FailureKind::InvalidArgs,
            guest::FailureKind::NotFound => ours::FailureKind::NotFound,
            guest::FailureKind::Unavailable => ours::FailureKind::Unavailable,
            guest::FailureKind::Denied => ours::FailureKind::Denied,
            guest::FailureKind::Unsupported => ours::FailureKind::Unsupported,
            guest::FailureKind::Internal => ours::FailureKind::Internal,
        };
        let evidence = self.json("/evidence", &raw.evidence)?;
        Ok(ours::Failure { kind, message: self.clean(raw.message), evidence })
    }

    /// Whether an answer of a verification is small enough to be sent on.
    pub(crate) fn small(&self, raw: &Result<guest::Verdict, guest::Failure>) -> Accepted<()> {
        self.size(raw.as_ref().map_or_else(size::failure, size::verdict))
    }

    /// A verdict: something was looked at, and every finding says what differs.
    pub(crate) fn verdict(&self, raw: guest::Verdict) -> Accepted<ours::Verdict> {
        self.size(size::verdict(&raw))?;
        if raw.checks.is_empty() && raw.findings.is_empty() {
            let expected = "at least one check or finding: silence is no agreement";
            return self.refuse("verdict-empty", "", expected.into(), json!([]));
        }
        let findings = raw
            .findings
            .into_iter()
            .enumerate()
            .map(|(at, one)| self.finding(at, one))
            .collect::<Accepted<_>>()?;
        let checks = raw
            .checks
            .into_iter()
            .map(|check| ours::Check {
                rule: self.clean(check.rule),
                about: check.about.into_iter().map(|name| self.clean(name)).collect(),
                note: self.clean(check.note),
            })
            .collect();
        Ok(ours::Verdict { checks, findings })
    }

    fn finding(&self, at: usize, raw: guest::Finding) -> Accepted<ours::Finding> {
        let place = format!("/findings/{at}");
        let expected = self.json(&format!("{place}/expected"), &raw.expected)?;
        let actual = self.json(&format!("{place}/actual"), &raw.actual)?;
        if expected.is_null() || actual.is_null() || json::same(&expected, &actual) {
            let wanted = "`expected` and `actual` that are not null and not equal";
            let found = json!({ "expected": expected, "actual": actual });
            return self.refuse("finding-says-nothing", &place, wanted.into(), found);
        }
        Ok(ours::Finding {
            rule: self.clean(raw.rule),
            severity: match raw.severity {
                guest::Severity::Error => ours::Severity::Error,
                guest::Severity::Warning => ours::Severity::Warning,
            },
            message: self.clean(raw.message),
            expected,
            actual,
            location: raw.location.map(|text| self.clean(text)),
            suggestion: raw.suggestion.map(|text| self.clean(text)),
        })
    }

    /// A recovery's advice: a remedy that names what to do.
    pub(crate) fn advice(&self, raw: recovery::Advice) -> Accepted<ours::Advice> {
        self.size(size::advice(&raw))?;
        let remedy = match raw.remedy {
            guest::Remedy::RetryWith(args) => {
                ours::Remedy::RetryWith(self.object("/remedy/retry-with", &args)?)
            }
            guest::Remedy::RetryAfter(millis) => ours::Remedy::RetryAfter(millis),
            guest::Remedy::UseSkill(name) => {
                let name = self.clean(name);
                if !is_segment(&name) {
                    let wanted = "the name of a skill".into();
                    return self.refuse("remedy", "/remedy/use-skill", wanted, json!(name));
                }
                ours::Remedy::UseSkill(name)
            }
            guest::Remedy::Replan(hint) => ours::Remedy::Replan(self.words("/remedy/replan", hint)?),
            guest::Remedy::AskPerson(question) => {
                ours::Remedy::AskPerson(self.words("/remedy/ask-person", question)?)
            }
            guest::Remedy::GiveUp(reason) => ours::Remedy::GiveUp(self.words("/remedy/give-up", reason)?),
        };
        Ok(ours::Advice { diagnosis: self.clean(raw.diagnosis), remedy })
    }

    /// The schema that a component says its arguments have.
    pub(crate) fn schema(&self, text: &str) -> Accepted<Value> {
        self.size(text.len())?;
        self.json("", text)
    }

    fn words(&self, place: &str, text: String) -> Accepted<String> {
        if text.trim().is_empty() {
            return self.refuse("remedy", place, "words".into(), json!(text));
        }
        Ok(self.clean(text))
    }

    fn object(&self, place: &str, text: &str) -> Accepted<Value> {
        let value = self.json(place, text)?;
        if !value.is_object() {
            return self.refuse("remedy", place, "a JSON object of arguments".into(), value);
        }
        Ok(value)
    }

    fn clean(&self, text: String) -> String {
        self.scrubber.string(text)
    }

    fn json(&self, place: &str, text: &str) -> Accepted<Value> {
        json::parse(&self.scrubber.text(text))
            .or_else(|wrong| self.refuse("json", place, wrong.expected.into(), json!(wrong.found)))
    }

    fn size(&self, bytes: usize) -> Accepted<()> {
        self.count(LimitKey::Outcome, bytes)
    }

    fn count(&self, key: LimitKey, used: usize) -> Accepted<()> {
        let (allowed, used) = (self.limits.get(key), used as u64);
        if used > allowed { Err(Stop::at(key, allowed, used).into()) } else { Ok(()) }
    }

    /// Refuses what stands at `place`. JSON of a guest was scrubbed before it was parsed; a text that
    /// stands for itself is scrubbed here.
    pub(crate) fn refuse<T>(&self, rule: &str, place: &str, expected: Value, actual: Value) -> Accepted<T> {
        let actual = match actual {
            Value::String(text) => Value::String(self.clean(text)),
            other => other,
        };
        let wanted = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
        let found = excerpt(&actual.to_string());
        Err(Refused::Problem(Box::new(Problem {
            stage: Stage::Structure,
            rule: rule.to_owned(),
            skill: self.component.to_owned(),
            severity: ours::Severity::Error,
            message: format!("`{}` returned {found} where {wanted} was expected", self.component),
            expected,
            actual: if found.len() < actual.to_string().len() { json!(found) } else { actual },
            location: Some(place.to_owned()),
            suggestion: None,
        })))
    }
}

/// The folders that a file with this path stands in.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests;
