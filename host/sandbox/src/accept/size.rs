//! Bytes of text in what a guest returned, counted before anything of it is parsed.

use crate::bindings::{recovery, trigger, types as guest};

pub(super) fn assessment(raw: &trigger::Assessment) -> usize {
    raw.reason.len() + optional(&raw.args)
}

pub(super) fn outcome(raw: &guest::Outcome) -> usize {
    let facts = raw.facts.iter().map(|fact| {
        fact.subject.len()
            + fact.kind.len()
            + fact.content.len()
            + fact.source.len()
            + optional(&fact.supersedes)
    });
    let artifacts =
        raw.artifacts.iter().map(|file| file.path.len() + file.title.len() + file.media_type.len());
    raw.content.len() + facts.sum::<usize>() + artifacts.sum::<usize>()
}

pub(super) fn failure(raw: &guest::Failure) -> usize {
    raw.message.len() + raw.evidence.len()
}

pub(super) fn verdict(raw: &guest::Verdict) -> usize {
    let checks = raw.checks.iter().map(|check| {
        check.rule.len() + check.note.len() + check.about.iter().map(String::len).sum::<usize>()
    });
    let findings = raw.findings.iter().map(|finding| {
        finding.rule.len()
            + finding.message.len()
            + finding.expected.len()
            + finding.actual.len()
            + optional(&finding.location)
            + optional(&finding.suggestion)
    });
    checks.sum::<usize>() + findings.sum::<usize>()
}

pub(super) fn advice(raw: &recovery::Advice) -> usize {
    let remedy = match &raw.remedy {
        guest::Remedy::RetryAfter(_) => 0,
        guest::Remedy::RetryWith(text)
        | guest::Remedy::UseSkill(text)
        | guest::Remedy::Replan(text)
        | guest::Remedy::AskPerson(text)
        | guest::Remedy::GiveUp(text) => text.len(),
    };
    raw.diagnosis.len() + remedy
}

fn optional(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}
