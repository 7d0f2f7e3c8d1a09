//! What was tried for a subgoal, what came of it, and which grants would have allowed what was
//! refused.

use std::collections::BTreeMap;

use checkrein_contract::event::{Ended, Judge, Judgement};
use checkrein_contract::record::Record;
use serde_json::Value;

use super::Line;
use crate::needs::Needs;
use crate::report::escape::{cut, json};
use crate::report::view::{CallView, RunView, SubgoalView, VerdictView};
use crate::report::words;

/// The most calls; of more, the last ones.
const CALLS_MAX: usize = 8;
/// The most findings of one verdict.
const FINDINGS_MAX: usize = 8;
/// The most characters of a line, and of a value in it.
const LINE_MAX: usize = 600;
const VALUE_MAX: usize = 300;

/// Attempts that failures, limits and rejections used up.
pub(super) fn attempts(subgoal: &SubgoalView) -> u32 {
    subgoal.calls.iter().filter(|call| call.went_wrong()).count() as u32
}

/// Each call, how it ended, and what was found of it; then the actions that were refused.
pub(super) fn tried(subgoal: &SubgoalView) -> Vec<Line> {
    let mut lines = Vec::new();
    let left_out = subgoal.calls.len().saturating_sub(CALLS_MAX);
    if left_out > 0 {
        lines.push(Line::new(format!("{} before these, in `checkrein show`", words::many(left_out, "call"))));
    }
    let mut before = &subgoal.args;
    for call in &subgoal.calls[left_out..] {
        let args = if call.args == *before {
            String::new()
        } else {
            format!(" with {}", json(&Value::Object(call.args.clone()), VALUE_MAX))
        };
        before = &call.args;
        let CallView { attempt, skill, version, .. } = call;
        lines.push(Line::new(short(&format!("attempt {attempt}: {skill} {version}{args}: {}", how(call)))));
        lines.extend(found(call).iter().map(|text| Line::deeper(short(text))));
    }
    let refused = subgoal.refusals.iter().flat_map(|refusal| &refusal.problems);
    lines.extend(refused.map(|problem| Line::new(short(&format!("refused: {}", words::problem(problem))))));
    lines
}

fn short(text: &str) -> String {
    cut(text, LINE_MAX)
}

fn how(call: &CallView) -> String {
    let rejected = || format!("rejected: {}", words::reasons_text(&call.reasons));
    match (&call.ended, call.accepted) {
        (Some(Ended::Outcome { .. }), Some(false)) => rejected(),
        (Some(Ended::Outcome { .. }), Some(true)) => "accepted, and not enough".to_owned(),
        (Some(Ended::Outcome { .. }), None) => "an outcome that is not judged".to_owned(),
        (ended, _) => words::ended(ended.as_ref()),
    }
}

fn found(call: &CallView) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(Ended::Failed { failure }) = &call.ended
        && !failure.evidence.is_null()
    {
        lines.push(format!("evidence: {}", json(&failure.evidence, VALUE_MAX)));
    }
    lines.extend(call.verdicts.iter().flat_map(judged));
    lines.extend(denied("", &call.record));
    for verdict in &call.verdicts {
        lines.extend(denied(&format!("{}: ", verdict.judge.name()), &verdict.record));
    }
    if let Some(advice) = &call.advice {
        lines.extend(denied("its recovery: ", &advice.record));
        lines.push(format!("diagnosis: {}", advice.diagnosis));
        lines.extend(advice.remedy.iter().map(|remedy| format!("remedy: {}", words::remedy(remedy))));
    }
    lines
}

fn judged(verdict: &VerdictView) -> Vec<String> {
    let judge = verdict.judge.name();
    if let Judgement::Unavailable { reason } = &verdict.judgement {
        return vec![format!("not judged by {judge}: {reason}")];
    }
    let findings = verdict.judgement.findings();
    let shown = findings.iter().take(FINDINGS_MAX);
    let mut lines: Vec<String> =
        shown.map(|finding| format!("found by {judge}: {}", words::finding(finding))).collect();
    if findings.len() > FINDINGS_MAX {
        lines.push(format!("found by {judge}: {} more", findings.len() - FINDINGS_MAX));
    }
    lines
}

fn denied(who: &str, record: &Record) -> Vec<String> {
    words::denials(record).into_iter().map(|denial| format!("refused, {who}{denial}")).collect()
}

/// What of a subgoal's calls each component would have needed, as it stands in a configuration.
pub(super) fn grants(view: &RunView, subgoal: &SubgoalView) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, needs) in needs(subgoal) {
        if let Some(card) = view.card(name) {
            let asked = &card.manifest.capabilities;
            lines.extend(needs.grant(name, asked, &card.granted, &card.limits).into_iter().map(Line::new));
            let not_asked = needs.not_asked(asked);
            lines.extend(not_asked.into_iter().map(|line| {
                Line::new(format!(
                    "the manifest of {name} does not ask for this, so no grant allows it: {line}"
                ))
            }));
        }
        lines.extend(needs.never().iter().map(|what| Line::new(format!("no grant allows {name}: {what}"))));
    }
    lines
}

/// Whether a grant would allow something that was refused.
pub(super) fn can_be_granted(view: &RunView, subgoal: &SubgoalView) -> bool {
    needs(subgoal).iter().any(|(name, needs)| {
        view.card(name).is_some_and(|card| {
            !needs.grant(name, &card.manifest.capabilities, &card.granted, &card.limits).is_empty()
        })
    })
}

fn needs(subgoal: &SubgoalView) -> BTreeMap<&str, Needs> {
    let mut all = BTreeMap::<&str, Needs>::new();
    for trigger in &subgoal.triggers {
        add(all.entry(&trigger.skill).or_default(), &trigger.record);
    }
    for call in &subgoal.calls {
        let of_skill = all.entry(&call.skill).or_default();
        add(of_skill, &call.record);
        if let Some(Ended::Limited { hit }) = &call.ended {
            of_skill.add_limit(hit);
        }
        call.advice.iter().for_each(|advice| add(of_skill, &advice.record));
        for verdict in &call.verdicts {
            match &verdict.judge {
                Judge::Gateway => {}
                Judge::Own { name, .. } | Judge::Verifier { name, .. } => {
                    add(all.entry(name).or_default(), &verdict.record);
                }
            }
        }
    }
    all.retain(|_, needs| !needs.is_empty());
    all
}

fn add(needs: &mut Needs, record: &Record) {
    needs.add(record);
    record.limit.iter().for_each(|hit| needs.add_limit(hit));
}
