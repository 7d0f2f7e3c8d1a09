//! From the contract's types to the guest's. Nothing here can fail: the host's own values are
//! JSON already. The way back is [`crate::accept`], where everything can.

use checkrein_contract::interface as ours;

use crate::bindings::types as guest;

pub(crate) fn subgoal_to_guest(subgoal: ours::Subgoal) -> guest::Subgoal {
    guest::Subgoal {
        id: subgoal.id,
        goal: subgoal.goal,
        args: subgoal.args.to_string(),
        evidence: subgoal.evidence,
        criteria: subgoal.criteria,
    }
}

pub(crate) fn call_to_guest(call: ours::Call) -> guest::Call {
    guest::Call {
        id: call.id,
        args: call.args.to_string(),
        attempt: call.attempt,
        seed: call.seed,
        settings: call.settings.to_string(),
    }
}

pub(crate) fn fact_to_guest(fact: ours::Fact) -> guest::Fact {
    guest::Fact {
        id: fact.id,
        version: fact.version,
        subject: fact.subject,
        kind: fact.kind,
        content: fact.content.to_string(),
        source: fact.source,
        level: match fact.level {
            ours::Level::SelfChecked => guest::Level::SelfChecked,
            ours::Level::Independent => guest::Level::Independent,
            ours::Level::Attested => guest::Level::Attested,
        },
    }
}

pub(crate) fn submission_to_guest(submission: ours::Submission) -> guest::Submission {
    guest::Submission {
        skill: submission.skill,
        version: submission.version,
        subgoal: subgoal_to_guest(submission.subgoal),
        body: match submission.body {
            ours::Body::Performed { call, outcome } => guest::Body::Performed(guest::Performed {
                call: call_to_guest(call),
                outcome: outcome_to_guest(outcome),
            }),
            ours::Body::Statements(statements) => {
                guest::Body::Statements(statements.into_iter().map(statement_to_guest).collect())
            }
        },
        inputs: submission.inputs.into_iter().map(fact_to_guest).collect(),
        settings: submission.settings.to_string(),
    }
}

pub(crate) fn mishap_to_guest(mishap: ours::Mishap) -> guest::Mishap {
    guest::Mishap {
        subgoal: subgoal_to_guest(mishap.subgoal),
        call: call_to_guest(mishap.call),
        cause: cause_to_guest(mishap.cause),
        earlier: mishap.earlier.into_iter().map(cause_to_guest).collect(),
    }
}

fn outcome_to_guest(outcome: ours::Outcome) -> guest::Outcome {
    guest::Outcome {
        content: outcome.content.to_string(),
        facts: outcome.facts.into_iter().map(draft_to_guest).collect(),
        artifacts: outcome.artifacts.into_iter().map(artifact_to_guest).collect(),
    }
}

fn draft_to_guest(draft: ours::DraftFact) -> guest::DraftFact {
    guest::DraftFact {
        subject: draft.subject,
        kind: draft.kind,
        content: draft.content.to_string(),
        source: draft.source,
        supersedes: draft.supersedes,
    }
}

fn artifact_to_guest(artifact: ours::Artifact) -> guest::Artifact {
    guest::Artifact { path: artifact.path, title: artifact.title, media_type: artifact.media_type }
}

fn statement_to_guest(statement: ours::Statement) -> guest::Statement {
    guest::Statement {
        id: statement.id,
        text: statement.text,
        value: statement.value.map(|value| value.to_string()),
        rests_on: statement.rests_on,
    }
}

fn cause_to_guest(cause: ours::Cause) -> guest::Cause {
    match cause {
        ours::Cause::Failed(failure) => guest::Cause::Failed(failure_to_guest(failure)),
        ours::Cause::Rejected(findings) => {
            guest::Cause::Rejected(findings.into_iter().map(finding_to_guest).collect())
        }
        ours::Cause::Limited(hit) => {
            guest::Cause::Limited(guest::LimitHit { limit: hit.limit, allowed: hit.allowed, used: hit.used })
        }
        ours::Cause::Trapped(message) => guest::Cause::Trapped(message),
        ours::Cause::Unmet(criteria) => guest::Cause::Unmet(criteria),
        ours::Cause::Other(reason) => guest::Cause::Other(reason),
    }
}

fn failure_to_guest(failure: ours::Failure) -> guest::Failure {
    guest::Failure {
        kind: match failure.kind {
            ours::FailureKind::InvalidArgs => guest::FailureKind::InvalidArgs,
            ours::FailureKind::NotFound => guest::FailureKind::NotFound,
            ours::FailureKind::Unavailable => guest::FailureKind::Unavailable,
            ours::FailureKind::Denied => guest::FailureKind::Denied,
            ours::FailureKind::Unsupported => guest::FailureKind::Unsupported,
            ours::FailureKind::Internal => guest::FailureKind::Internal,
        },
        message: failure.message,
        evidence: failure.evidence.to_string(),
    }
}

fn finding_to_guest(finding: ours::Finding) -> guest::Finding {
    guest::Finding {
        rule: finding.rule,
        severity: match finding.severity {
            ours::Severity::Error => guest::Severity::Error,
            ours::Severity::Warning => guest::Severity::Warning,
        },
        message: finding.message,
        expected: finding.expected.to_string(),
        actual: finding.actual.to_string(),
        location: finding.location,
        suggestion: finding.suggestion,
    }
}
