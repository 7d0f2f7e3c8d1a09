//! The gateway: the only door from quarantine to the fact pool.
//!
//! A submission goes from cheap to dear and stops at the first rejection: the gateway's own
//! checks ([`inspect`]), the skill's own verification, bound verifiers without network, bound
//! verifiers with it ([`judges`]). It is accepted if no finding rejects it and every draft fact and
//! artifact is named in at least one check ([`admit`]). Facts are made here: [`admit`] is the only
//! place that makes a [`FactEntry`], and folding `outcome-accepted` the only one that keeps it.

use std::collections::BTreeSet;

use checkrein_contract::Digest;
use checkrein_contract::event::{
    Binding, Draft, Ended, Event, FactEntry, Judge, Judgement, Reason, StoredArtifact,
};
use checkrein_contract::id::{CallId, FactId, covers, is_subject, overlap};
use checkrein_contract::interface::{Check, Finding, Level, Severity};
use serde_json::{Value, json};

use crate::state::{CallState, State};

/// How often a judge that cannot judge is asked in all before the subgoal is given up.
pub const TRIES: u32 = 2;

/// The judges of a call's submission, in the order in which they are asked.
pub fn judges(state: &State, call: &CallState) -> Vec<Judge> {
    let mut judges = vec![Judge::Own { name: call.skill.clone(), component: call.component }];
    let bound = bound(state, call);
    let needs_network =
        |judge: &&Judge| state.verifier(judge.name()).is_some_and(|card| !card.granted.network.is_empty());
    let (with, without): (Vec<&Judge>, Vec<&Judge>) = bound.iter().partition(needs_network);
    judges.extend(without.into_iter().chain(with).cloned());
    judges
}

/// A verifier that is bound and not there is asked all the same: it cannot judge.
fn bound(state: &State, call: &CallState) -> Vec<Judge> {
    let Some(setup) = &state.setup else { return Vec::new() };
    let bindings = setup.bindings.iter().enumerate().filter(|(_, binding)| is_bound(state, binding, call));
    let judges = bindings.map(|(index, binding)| Judge::Verifier {
        name: binding.verifier.clone(),
        component: state.verifier(&binding.verifier).map_or(Digest::ZERO, |card| card.component),
        binding: index,
    });
    judges.collect()
}

fn is_bound(state: &State, binding: &Binding, call: &CallState) -> bool {
    let by_skill = binding.on.iter().any(|name| name == "*" || *name == call.skill);
    let (drafts, artifacts) = submitted(call);
    let on_subject = |draft: &Draft| binding.on_facts.iter().any(|pattern| covers(pattern, &draft.subject));
    // Files without a fact do not slip past who judges what their skill writes.
    let may_write = || {
        let patterns = state.skill(&call.skill).map(|card| card.facts.as_slice()).unwrap_or_default();
        patterns.iter().any(|own| binding.on_facts.iter().any(|pattern| overlap(own, pattern)))
    };
    by_skill || drafts.iter().any(on_subject) || (drafts.is_empty() && !artifacts.is_empty() && may_write())
}

/// The draft facts and artifacts of a call's submission; none if it has no outcome.
pub fn submitted(call: &CallState) -> (&[Draft], &[StoredArtifact]) {
    match &call.ended {
        Some(Ended::Outcome { drafts, artifacts, .. }) => (drafts, artifacts),
        _ => (&[], &[]),
    }
}

/// The gateway's own checks of a submission, and the contradictions that it found.
pub fn inspect(state: &State, id: &CallId) -> (Judgement, Vec<Event>) {
    let call = &state.calls[id];
    let (drafts, _) = submitted(call);
    let mut findings = Vec::new();
    check_evidence(state, call, drafts, &mut findings);
    check_subjects(state, call, drafts, &mut findings);
    check_sources(state, call, drafts, &mut findings);
    check_artifacts(state, call, &mut findings);
    let (contradicting, events) = contradictions(state, id);
    findings.extend(contradicting);
    (judgement(drafts, findings), events)
}

fn judgement(drafts: &[Draft], findings: Vec<Finding>) -> Judgement {
    if findings.iter().any(|finding| finding.severity == Severity::Error) {
        return Judgement::Rejected { checks: Vec::new(), findings };
    }
    let note = format!(
        "evidence present, subjects granted, sources resolve and nothing contradicts the pool, for {} draft facts",
        drafts.len()
    );
    let check = Check { rule: "gateway".to_owned(), about: Vec::new(), note };
    Judgement::Accepted { checks: vec![check], findings }
}

fn finding(rule: &str, message: String, expected: Value, actual: Value, location: String) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity: Severity::Error,
        message,
        expected,
        actual,
        location: Some(location),
        suggestion: None,
    }
}

/// Every kind of evidence that the subgoal asks for is in this submission, or was accepted before.
fn check_evidence(state: &State, call: &CallState, drafts: &[Draft], findings: &mut Vec<Finding>) {
    let accepted = state.accepted(&call.subgoal).flat_map(|(_, call)| &call.facts);
    let accepted = accepted.filter_map(|id| Some(state.facts.get(id)?.entry.kind.as_str()));
    let kinds: BTreeSet<&str> = drafts.iter().map(|draft| draft.kind.as_str()).chain(accepted).collect();
    for kind in state.spec(&call.subgoal).evidence.iter().filter(|kind| !kinds.contains(kind.as_str())) {
        let message = format!("the subgoal asks for evidence of kind `{kind}`, and there is none");
        findings.push(finding("evidence", message, json!(kind), json!(kinds), "/facts".to_owned()));
    }
}

/// Every subject is one, is granted to the skill, and occurs once.
fn check_subjects(state: &State, call: &CallState, drafts: &[Draft], findings: &mut Vec<Finding>) {
    let granted = state.skill(&call.skill).map(|card| card.facts.clone()).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (index, draft) in drafts.iter().enumerate() {
        let subject = &draft.subject;
        let place = format!("/facts/{index}/subject");
        if !is_subject(subject) {
            let message = format!("`{}` is not a subject", subject.escape_debug());
            let expected =
                json!("segments of letters, digits, `.`, `_`, `-`, joined by `/`, at most 200 bytes");
            findings.push(finding("subject", message, expected, json!(subject), place));
        } else if !granted.iter().any(|pattern| covers(pattern, subject)) {
            let message = format!("`{}` may not write facts on `{subject}`", call.skill);
            findings.push(finding("subject-granted", message, json!(granted), json!(subject), place));
        } else if !seen.insert(subject) {
            let message = format!("two draft facts on `{subject}` in one outcome");
            findings.push(finding("subject-once", message, json!("one"), json!("more than one"), place));
        }
    }
}

/// Every source is an input, an artifact in scope, a fact in scope, or a URL that this very call
/// was answered from.
fn check_sources(state: &State, call: &CallState, drafts: &[Draft], findings: &mut Vec<Finding>) {
    let goal = state.subgoal(&call.subgoal);
    let artifacts = state.artifacts_in_scope(goal);
    let scope: BTreeSet<&str> = goal.scope.iter().map(FactId::as_str).collect();
    let inputs: BTreeSet<&str> =
        state.setup.iter().flat_map(|setup| &setup.task.inputs).map(|input| input.file.as_str()).collect();
    let resolves = |source: &str| {
        source.strip_prefix("/in/").is_some_and(|file| inputs.contains(file))
            || source.strip_prefix("/artifacts/").is_some_and(|path| artifacts.contains_key(path))
            || scope.contains(source)
            || call.record.fetched(source)
    };
    for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| !resolves(&draft.source)) {
        let message = format!("the source of `{}` does not resolve", draft.subject);
        let expected = json!(
            "an input under /in, an artifact under /artifacts, a fact in scope, or a URL that this call fetched"
        );
        findings.push(finding(
            "source",
            message,
            expected,
            json!(draft.source),
            format!("/facts/{index}/source"),
        ));
    }
}

/// Checks name facts and files in one list, so no file is called as a fact is; and the files of a
/// subgoal fit into one folder.
fn check_artifacts(state: &State, call: &CallState, findings: &mut Vec<Finding>) {
    let (drafts, artifacts) = submitted(call);
    let earlier = state.accepted(&call.subgoal).flat_map(|(_, call)| &call.artifacts);
    let earlier: Vec<&str> = earlier.map(|file| file.path.as_str()).collect();
    let below = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    for file in artifacts {
        let path = file.path.as_str();
        if drafts.iter().any(|draft| draft.subject == path) {
            let message = format!("the file `{path}` has the name of a draft fact");
            findings.push(finding(
                "artifact-path",
                message,
                json!("a name of its own"),
                json!(path),
                path.to_owned(),
            ));
        }
        if let Some(other) = earlier.iter().find(|other| below(path, other) || below(other, path)) {
            let message = format!("the file `{path}` does not fit beside `{other}` of an earlier call");
            findings.push(finding(
                "artifact-path",
                message,
                json!("another name"),
                json!(path),
                path.to_owned(),
            ));
        }
    }
}

/// Other content on a subject that has a current fact, unless it is superseded by its own skill
/// or the task allows it.
fn contradictions(state: &State, id: &CallId) -> (Vec<Finding>, Vec<Event>) {
    let call = &state.calls[id];
    let allowed = state.setup.as_ref().is_some_and(|setup| setup.task.allow_contradictions);
    let (mut findings, mut events) = (Vec::new(), Vec::new());
    for (index, draft) in submitted(call).0.iter().enumerate() {
        check_supersedes(state, call, index, draft, &mut findings);
        let Some(current) = state.current.get(&draft.subject).map(|id| &state.facts[id]) else { continue };
        let replaced = draft.supersedes.as_deref() == Some(current.entry.id.as_str());
        if current.entry.content == draft.content || replaced {
            continue;
        }
        if !call.contradictions.contains(&(draft.subject.clone(), current.entry.id.clone())) {
            events.push(Event::ContradictionFound {
                call: id.clone(),
                subject: draft.subject.clone(),
                current: current.entry.id.clone(),
                other: draft.content,
            });
        }
        let message = format!("`{}` has other content on `{}`", current.entry.id, draft.subject);
        let mut finding = finding(
            "contradiction",
            message,
            json!(current.entry.content),
            json!(draft.content),
            format!("/facts/{index}/content"),
        );
        if allowed {
            finding.severity = Severity::Warning;
        }
        findings.push(finding);
    }
    (findings, events)
}

/// What a draft supersedes is the current fact on its subject, and came from the same skill.
fn check_supersedes(
    state: &State,
    call: &CallState,
    index: usize,
    draft: &Draft,
    findings: &mut Vec<Finding>,
) {
    let Some(supersedes) = &draft.supersedes else { return };
    let current = state.current.get(&draft.subject).map(|id| &state.facts[id]);
    let good = current.is_some_and(|current| {
        current.entry.id.as_str() == supersedes && state.calls[&current.call].skill == call.skill
    });
    if !good {
        let message = format!("`{supersedes}` is not the current fact of this skill on `{}`", draft.subject);
        let own = current.filter(|current| state.calls[&current.call].skill == call.skill);
        let expected = own.map_or_else(
            || format!("nothing superseded: no current fact on `{}` is of `{}`", draft.subject, call.skill),
            |own| own.entry.id.to_string(),
        );
        let expected = json!(expected);
        findings.push(finding(
            "supersedes",
            message,
            expected,
            json!(supersedes),
            format!("/facts/{index}/supersedes"),
        ));
    }
}

/// Lets a submission through that every judge accepted: the facts that it becomes, or the gateway's
/// last word, if the pool has changed since or something was named in no check. The events tell of
/// contradictions that were not found before.
pub fn admit(state: &State, id: &CallId) -> (Result<Vec<FactEntry>, Judgement>, Vec<Event>) {
    let call = &state.calls[id];
    let (drafts, artifacts) = submitted(call);
    let (mut findings, events) = contradictions(state, id);
    findings.retain(|finding| finding.severity == Severity::Error);
    let named = named(call, |_| true);
    let subjects = drafts.iter().map(|draft| (&draft.subject, "draft fact"));
    let paths = artifacts.iter().map(|artifact| (&artifact.path, "artifact"));
    for (what, kind) in subjects.chain(paths).filter(|(what, _)| !named.contains(what.as_str())) {
        let message = format!("the {kind} `{what}` is named in no check");
        findings.push(finding(
            "unchecked",
            message,
            json!("at least one check"),
            json!("none"),
            what.clone(),
        ));
    }
    if !findings.is_empty() {
        return (Err(Judgement::Rejected { checks: Vec::new(), findings }), events);
    }
    let independent = self::named(call, |judge| matches!(judge, Judge::Verifier { .. }));
    let facts = drafts
        .iter()
        .enumerate()
        .map(|(index, draft)| entry(state, index, draft, &independent, call.attested));
    (Ok(facts.collect()), events)
}

/// What the judges that `of` picks named in a check.
fn named(call: &CallState, of: impl Fn(&Judge) -> bool) -> BTreeSet<&str> {
    let verdicts = call.verdicts.iter().filter(|(judge, _)| of(judge));
    let checks = verdicts.flat_map(|(_, judgement)| judgement.checks());
    checks.flat_map(|check| &check.about).map(String::as_str).collect()
}

fn entry(
    state: &State,
    index: usize,
    draft: &Draft,
    independent: &BTreeSet<&str>,
    attested: bool,
) -> FactEntry {
    let version =
        (1..).find(|version| !state.facts.contains_key(&FactId::new(&draft.subject, *version))).unwrap_or(1);
    let by_others = independent.contains(draft.subject.as_str());
    FactEntry {
        id: FactId::new(&draft.subject, version),
        subject: draft.subject.clone(),
        version,
        kind: draft.kind.clone(),
        source: draft.source.clone(),
        // A person's word stands above a verifier's, and it was verified all the same.
        level: match (attested, by_others) {
            (true, _) => Level::Attested,
            (false, true) => Level::Independent,
            (false, false) => Level::SelfChecked,
        },
        content: draft.content,
        index: index as u32,
    }
}

/// Why a judge rejected: the set of verifier, rule and place, by which two rejections compare.
pub fn reasons(judge: &Judge, findings: &[Finding]) -> Vec<Reason> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let reasons: BTreeSet<Reason> = errors
        .map(|finding| Reason {
            verifier: judge.name().to_owned(),
            rule: finding.rule.clone(),
            place: finding.location.clone().unwrap_or_default(),
        })
        .collect();
    reasons.into_iter().collect()
}
