//! The report as data: shapes of `checkrein/report@1`.

use checkrein_contract::ask::Answer;
use checkrein_contract::event::{Ended, Judgement};
use serde_json::{Value, json};

use super::view::{
    AmendmentView, ArtifactView, AskView, CallView, FactView, RunView, StageView, SubgoalView, VerifiedBy,
};
use super::words;

/// The schema of [`report_json`].
pub const SCHEMA: &str = "checkrein/report@1";

/// Everything that the report says, as JSON.
pub fn report_json(view: &RunView) -> Value {
    let current: Vec<Value> = view.current_facts().map(fact_json).collect();
    json!({
        "schema": SCHEMA,
        "run": view.run,
        "task": { "name": view.task.name, "goal": view.task.goal, "digest": view.task_digest, "level": view.task.level },
        "state": view.state_word(),
        "status": view.status.map(|status| status.as_str()),
        "reason": view.reason,
        "dry": view.dry,
        "head": view.head,
        "started": words::time(view.started),
        "last": words::time(view.last),
        "engine": view.engine,
        "verification_apart": view.apart,
        "course": course_json(view),
        "facts": current,
        "artifacts": view.artifacts.iter().map(artifact_json).collect::<Vec<_>>(),
        "stages": stages_json(view),
        "findings": findings_json(view),
        "contradictions": view.contradictions.iter().map(|found| json!({
            "call": found.call, "subject": found.subject, "current": found.current, "other": found.other,
        })).collect::<Vec<_>>(),
    })
}

/// What befell the run beside its stages: questions and answers, changes, resumes, and where it was
/// exported to.
pub fn course_json(view: &RunView) -> Value {
    json!({
        "person": view.person,
        "tokens": view.tokens,
        "engines": view.engines,
        "resumed": view.resumes.iter().map(|resume| json!({
            "at": words::time(resume.at), "engine": resume.engine, "changed": resume.changed,
        })).collect::<Vec<_>>(),
        "asks": view.asks.iter().map(ask_json).collect::<Vec<_>>(),
        "amendments": view.amendments.iter().map(amendment_json).collect::<Vec<_>>(),
        "letters_refused": view.refused.iter().map(|letter| json!({
            "letter": letter.letter, "at": words::time(letter.at), "by": letter.by, "said": letter.said,
            "why": letter.why,
        })).collect::<Vec<_>>(),
        "first_task": view.first_task,
        "abandoned": {
            "calls": view.history.calls.iter().map(call_json).collect::<Vec<_>>(),
            "facts": view.history.facts.iter().map(|fact| &fact.entry.id).collect::<Vec<_>>(),
            "artifacts": view.history.artifacts.iter().map(artifact_json).collect::<Vec<_>>(),
        },
        "export": view.export.as_ref().map(|export| json!({ "file": export.file, "digest": export.digest })),
    })
}

/// A question to a person, and its answer.
pub fn ask_json(ask: &AskView) -> Value {
    let answer = ask.answer.as_ref().map(|given| {
        let mut answer = json!(given.answer);
        if let Answer::Approved { until: Some(until) } = &given.answer {
            answer["until"] = json!(words::time(*until));
        }
        json!({ "said": answer, "by": given.by, "at": words::time(given.at) })
    });
    json!({
        "ask": ask.ask,
        "kind": ask.about.as_str(),
        "subgoal": ask.subgoal,
        "question": ask.question,
        "about": ask.about,
        "opened": words::time(ask.opened),
        "open": ask.is_open(),
        "answer": answer,
    })
}

fn amendment_json(amended: &AmendmentView) -> Value {
    json!({
        "version": amended.version,
        "at": words::time(amended.at),
        "by": amended.by,
        "amendment": amended.amendment,
        "reopened": amended.reopened,
        "evaluated": amended.evaluated,
        "abandoned": { "facts": amended.facts, "artifacts": amended.artifacts },
    })
}

/// A fact, as the design states it.
pub fn fact_json(fact: &FactView) -> Value {
    json!({
        "id": fact.entry.id,
        "subject": fact.entry.subject,
        "version": fact.entry.version,
        "kind": fact.entry.kind,
        "content": fact.content,
        "source": fact.entry.source,
        "level": fact.entry.level,
        "skill": fact.skill,
        "component": fact.component,
        "call": fact.call,
        "verified_by": verified_by_json(&fact.verified_by),
    })
}

/// An artifact: name, content and who checked it.
pub fn artifact_json(artifact: &ArtifactView) -> Value {
    json!({
        "subgoal": artifact.subgoal,
        "path": artifact.file.path,
        "title": artifact.file.title,
        "media_type": artifact.file.media_type,
        "digest": artifact.file.digest,
        "size_bytes": artifact.file.bytes,
        "call": artifact.call,
        "verified_by": verified_by_json(&artifact.verified_by),
    })
}

/// Judges and their checks.
pub fn verified_by_json(judges: &[VerifiedBy]) -> Value {
    let judge = |judge: &VerifiedBy| {
        let checks: Vec<Value> =
            judge.checks.iter().map(|check| json!({ "rule": check.rule, "note": check.note })).collect();
        json!({ "verifier": judge.verifier, "component": judge.component, "checks": checks })
    };
    judges.iter().map(judge).collect()
}

/// The stages with their subgoals and calls, as `run --json`, `report --json` and `show --json` give them.
pub fn stages_json(view: &RunView) -> Value {
    view.stages.iter().map(|stage| stage_json(view, stage)).collect()
}

fn stage_json(view: &RunView, stage: &StageView) -> Value {
    json!({
        "stage": stage.id,
        "title": stage.title,
        "entered": stage.entered,
        "met": stage.met,
        "subgoals": stage.subgoals.iter().map(|subgoal| subgoal_json(view, subgoal)).collect::<Vec<_>>(),
    })
}

fn subgoal_json(view: &RunView, subgoal: &SubgoalView) -> Value {
    json!({
        "subgoal": subgoal.id,
        "goal": subgoal.goal,
        "met": subgoal.is_met(),
        "opened": subgoal.opened.map(words::time),
        "closed": subgoal.closed.map(words::time),
        "closing": subgoal.closing,
        "criteria": subgoal.criteria,
        "triggers": subgoal.triggers.iter().map(|trigger| json!({
            "skill": trigger.skill, "record": trigger.record,
        })).collect::<Vec<_>>(),
        "refusals": subgoal.refusals.iter().map(|refusal| json!({
            "at": words::time(refusal.at), "problems": refusal.problems,
        })).collect::<Vec<_>>(),
        "asks": view.asks_of(&subgoal.id).map(ask_json).collect::<Vec<_>>(),
        "calls": subgoal.calls.iter().map(call_json).collect::<Vec<_>>(),
    })
}

/// A call, without the drafts of its outcome: those that were accepted are facts.
pub fn call_json(call: &CallView) -> Value {
    let mut ended = json!(call.ended);
    if let (Some(Ended::Outcome { .. }), Some(map)) = (&call.ended, ended.as_object_mut()) {
        map.remove("drafts");
    }
    let verdicts = call.verdicts.iter().map(|verdict| {
        let (word, reason) = match &verdict.judgement {
            Judgement::Accepted { .. } => ("accepted", None),
            Judgement::Rejected { .. } => ("rejected", None),
            Judgement::Unavailable { reason } => ("unavailable", Some(reason)),
        };
        json!({
            "verifier": verdict.judge.name(),
            "component": verdict.judge.component(),
            "verdict": word,
            "reason": reason,
            "checks": verdict.judgement.checks().len(),
            "findings": verdict.judgement.findings(),
            "used": verdict.used,
            "record": verdict.record,
        })
    });
    json!({
        "call": call.id,
        "skill": call.skill,
        "version": call.version,
        "component": call.component,
        "args": call.args,
        "attempt": call.attempt,
        "seed": call.seed,
        "at": words::time(call.at),
        "ask": call.ask,
        "unknown": call.unknown,
        "ended": ended,
        "attested": call.attested,
        "accepted": call.accepted,
        "reasons": call.reasons,
        "used": call.used,
        "record": call.record,
        "verdicts": verdicts.collect::<Vec<_>>(),
        "diagnosis": call.advice.as_ref().map(|advice| &advice.diagnosis),
        "remedy": call.advice.as_ref().map(|advice| &advice.remedy),
        "recovery_record": call.advice.as_ref().map(|advice| &advice.record),
    })
}

/// Every finding of every verdict, with its call and judge: warnings of accepted ones too.
pub fn findings_json(view: &RunView) -> Value {
    let findings = view.calls().flat_map(|call| {
        call.verdicts.iter().flat_map(move |verdict| {
            verdict.judgement.findings().iter().map(move |finding| {
                json!({
                    "call": call.id,
                    "subgoal": call.subgoal,
                    "stage": "verification",
                    "rule": finding.rule,
                    "skill": verdict.judge.name(),
                    "severity": finding.severity,
                    "message": finding.message,
                    "expected": finding.expected,
                    "actual": finding.actual,
                    "location": finding.location,
                    "suggestion": finding.suggestion,
                })
            })
        })
    });
    findings.collect()
}
