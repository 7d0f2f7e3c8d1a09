//! Between the generated types and those of this crate.
//!
//! JSON that the host sends is parsed here, once; text that is no JSON is the host's fault and
//! says so.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::skill::checkrein::skill::types as wit;
use crate::bindings::skill::exports::checkrein::skill::{recovery, trigger};
use crate::{
    Advice, Artifact, Assessment, Body, Call, Cause, Check, DraftFact, Fact, Failure, FailureKind,
    Finding, Level, LimitHit, Mishap, Outcome, Performed, Remedy, Severity, Statement, Subgoal,
    Submission, Verdict, call,
};

fn json(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::internal(format!("the host sent {what} that is no JSON: {error}"))
    })
}

pub(crate) fn subgoal(from: wit::Subgoal) -> Result<Subgoal, Failure> {
    Ok(Subgoal {
        args: json(&from.args, "subgoal arguments")?,
        id: from.id,
        goal: from.goal,
        evidence: from.evidence,
        criteria: from.criteria,
    })
}

pub(crate) fn call<A: DeserializeOwned>(from: wit::Call) -> Result<Call<A>, Failure> {
    Ok(Call {
        args: call::parse(&from.args, "arguments")?,
        settings: json(&from.settings, "settings")?,
        id: from.id,
        attempt: from.attempt,
        seed: from.seed,
    })
}

pub(crate) fn submission<A: DeserializeOwned>(
    from: wit::Submission,
) -> Result<Submission<A>, Failure> {
    let body = match from.body {
        wit::Body::Performed(performed) => Body::Performed(Box::new(Performed {
            call: call(performed.call)?,
            outcome: outcome_in(performed.outcome)?,
        })),
        wit::Body::Statements(statements) => {
            Body::Statements(statements.into_iter().map(statement).collect::<Result<_, _>>()?)
        }
    };
    Ok(Submission {
        skill: from.skill,
        version: from.version,
        subgoal: subgoal(from.subgoal)?,
        body,
        inputs: from.inputs.into_iter().map(fact).collect::<Result<_, _>>()?,
        settings: json(&from.settings, "settings")?,
    })
}

fn statement(from: wit::Statement) -> Result<Statement, Failure> {
    Ok(Statement {
        value: from.value.map(|text| json(&text, "a statement's value")).transpose()?,
        id: from.id,
        text: from.text,
        rests_on: from.rests_on,
    })
}

pub(crate) fn fact(from: wit::Fact) -> Result<Fact, Failure> {
    Ok(Fact {
        content: json(&from.content, "a fact's content")?,
        level: match from.level {
            wit::Level::SelfChecked => Level::SelfChecked,
            wit::Level::Independent => Level::Independent,
            wit::Level::Attested => Level::Attested,
        },
        id: from.id,
        version: from.version,
        subject: from.subject,
        kind: from.kind,
        source: from.source,
    })
}

fn outcome_in(from: wit::Outcome) -> Result<Outcome, Failure> {
    let draft = |from: wit::DraftFact| -> Result<DraftFact, Failure> {
        Ok(DraftFact {
            content: json(&from.content, "a draft fact's content")?,
            subject: from.subject,
            kind: from.kind,
            source: from.source,
            supersedes: from.supersedes,
        })
    };
    let artifact = |from: wit::Artifact| Artifact {
        path: from.path,
        title: from.title,
        media_type: from.media_type,
    };
    Ok(Outcome {
        content: json(&from.content, "an outcome's content")?,
        facts: from.facts.into_iter().map(draft).collect::<Result<_, _>>()?,
        artifacts: from.artifacts.into_iter().map(artifact).collect(),
    })
}

pub(crate) fn outcome(from: Outcome) -> wit::Outcome {
    let draft = |from: DraftFact| wit::DraftFact {
        subject: from.subject,
        kind: from.kind,
        content: from.content.to_string(),
        source: from.source,
        supersedes: from.supersedes,
    };
    let artifact = |from: Artifact| wit::Artifact {
        path: from.path,
        title: from.title,
        media_type: from.media_type,
    };
    wit::Outcome {
        content: from.content.to_string(),
        facts: from.facts.into_iter().map(draft).collect(),
        artifacts: from.artifacts.into_iter().map(artifact).collect(),
    }
}

pub(crate) fn failure(from: Failure) -> wit::Failure {
    wit::Failure {
        kind: match from.kind {
            FailureKind::InvalidArgs => wit::FailureKind::InvalidArgs,
            FailureKind::NotFound => wit::FailureKind::NotFound,
            FailureKind::Unavailable => wit::FailureKind::Unavailable,
            FailureKind::Denied => wit::FailureKind::Denied,
            FailureKind::Unsupported => wit::FailureKind::Unsupported,
            FailureKind::Internal => wit::FailureKind::Internal,
        },
        message: from.message,
        evidence: from.evidence.to_string(),
    }
}

fn failure_in(from: wit::Failure) -> Result<Failure, Failure> {
    Ok(Failure {
        kind: match from.kind {
            wit::FailureKind::InvalidArgs => FailureKind::InvalidArgs,
            wit::FailureKind::NotFound => FailureKind::NotFound,
            wit::FailureKind::Unavailable => FailureKind::Unavailable,
            wit::FailureKind::Denied => FailureKind::Denied,
            wit::FailureKind::Unsupported => FailureKind::Unsupported,
            wit::FailureKind::Internal => FailureKind::Internal,
        },
        evidence: json(&from.evidence, "a failure's evidence")?,
        message: from.message,
    })
}

pub(crate) fn verdict(from: Verdict) -> wit::Verdict {
    let check = |from: Check| wit::Check { rule: from.rule, about: from.about, note: from.note };
    wit::Verdict {
        checks: from.checks.into_iter().map(check).collect(),
        findings: from.findings.into_iter().map(finding).collect(),
    }
}

fn finding(from: Finding) -> wit::Finding {
    wit::Finding {
        rule: from.rule,
        severity: match from.severity {
            Severity::Error => wit::Severity::Error,
            Severity::Warning => wit::Severity::Warning,
        },
        message: from.message,
        expected: from.expected.to_string(),
        actual: from.actual.to_string(),
        location: from.location,
        suggestion: from.suggestion,
    }
}

fn finding_in(from: wit::Finding) -> Result<Finding, Failure> {
    Ok(Finding {
        severity: match from.severity {
            wit::Severity::Error => Severity::Error,
            wit::Severity::Warning => Severity::Warning,
        },
        expected: json(&from.expected, "a finding's expected value")?,
        actual: json(&from.actual, "a finding's actual value")?,
        rule: from.rule,
        message: from.message,
        location: from.location,
        suggestion: from.suggestion,
    })
}

fn cause(from: wit::Cause) -> Result<Cause, Failure> {
    Ok(match from {
        wit::Cause::Failed(failure) => Cause::Failed(failure_in(failure)?),
        wit::Cause::Rejected(findings) => {
            Cause::Rejected(findings.into_iter().map(finding_in).collect::<Result<_, _>>()?)
        }
        wit::Cause::Limited(hit) => {
            Cause::Limited(LimitHit { limit: hit.limit, allowed: hit.allowed, used: hit.used })
        }
        wit::Cause::Trapped(message) => Cause::Trapped(message),
        wit::Cause::Unmet(criteria) => Cause::Unmet(criteria),
        wit::Cause::Other(message) => Cause::Other(message),
    })
}

pub(crate) fn mishap(from: wit::Mishap) -> Result<Mishap, Failure> {
    Ok(Mishap {
        subgoal: subgoal(from.subgoal)?,
        call: call(from.call)?,
        cause: cause(from.cause)?,
        earlier: from.earlier.into_iter().map(cause).collect::<Result<_, _>>()?,
    })
}

pub(crate) fn assessment(from: Assessment) -> trigger::Assessment {
    trigger::Assessment {
        score: from.score,
        reason: from.reason,
        args: from.args.map(|args| args.to_string()),
    }
}

pub(crate) fn advice(from: Advice) -> recovery::Advice {
    recovery::Advice {
        diagnosis: from.diagnosis,
        remedy: match from.remedy {
            Remedy::RetryWith(args) => wit::Remedy::RetryWith(args.to_string()),
            Remedy::RetryAfter(ms) => wit::Remedy::RetryAfter(ms),
            Remedy::UseSkill(name) => wit::Remedy::UseSkill(name),
            Remedy::Replan(hint) => wit::Remedy::Replan(hint),
            Remedy::AskPerson(question) => wit::Remedy::AskPerson(question),
            Remedy::GiveUp(reason) => wit::Remedy::GiveUp(reason),
        },
    }
}
