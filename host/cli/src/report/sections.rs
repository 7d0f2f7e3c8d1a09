//! What every report ends with, whatever the task's text says: what was not reached, what failed,
//! and how it can be checked. In Markdown.

use checkrein_contract::event::{Ended, Judgement, Person};
use checkrein_contract::interface::Level;
use checkrein_contract::units::{show_bytes, show_count};

use super::course;
use super::escape::{code, json, markdown, prose, visible};
use super::letters;
use super::notes::component;
use super::view::{CallView, RunView, SubgoalView, VerdictView};
use super::words::{self, many};

/// The most characters of a failure's evidence.
const EVIDENCE_MAX: usize = 400;
/// The most findings of one verdict.
const FINDINGS_MAX: usize = 8;

/// Where verifications ran.
const APART: &str = "in a process of their own";
const NOT_APART: &str = "in the host's own process";

/// How the run stands, in one paragraph.
pub fn standing(view: &RunView) -> String {
    let counted = view.current_facts().filter(|fact| view.counts(fact)).count();
    let failed = view.calls().filter(|call| call.went_wrong()).count();
    format!(
        "**{}** · {}{} · {} · run {} · {}",
        view.state_word(),
        many(counted, "verified fact"),
        not_counted(view),
        many(failed, "failed call"),
        code(view.run.as_str()),
        words::time(view.last),
    )
}

fn not_counted(view: &RunView) -> String {
    match view.current_facts().filter(|fact| !view.counts(fact)).count() {
        0 => String::new(),
        more => format!(" ({} below `{}`, not counted)", many(more, "fact"), view.task.level.as_str()),
    }
}

/// Everything that the task or its report asked for and that is not there.
pub fn not_reached(view: &RunView, unresolved: &[(String, String)]) -> String {
    let mut items = Vec::new();
    if view.status.is_none() {
        items.push(format!("The run has not ended: {}.", not_ended(view)));
    }
    for stage in &view.stages {
        if !stage.entered {
            items.push(format!("Stage {} was not entered.", code(stage.id.as_str())));
            continue;
        }
        items.extend(stage.subgoals.iter().filter_map(open_subgoal));
    }
    items.extend(
        unresolved.iter().map(|(what, why)| format!("The text asks for {}: {}.", code(what), prose(why))),
    );
    items.extend(view.contradictions.iter().map(|found| {
        let (current, call) = (code(found.current.as_str()), code(found.call.as_str()));
        format!(
            "Call {call} contradicts fact {current} with other content, {}.",
            code(&found.other.to_string())
        )
    }));
    let end = match view.reason.as_str() {
        "" => String::new(),
        reason => format!("The run ended as `{}`: {}.\n\n", view.state_word(), prose(reason)),
    };
    let list = match items.is_empty() {
        true => "Everything that was asked for was reached.\n".to_owned(),
        false => items.iter().map(|item| format!("- {item}\n")).collect(),
    };
    format!("## What was not reached, and why\n\n{end}{list}\n")
}

fn not_ended(view: &RunView) -> &'static str {
    match (view.stopped, &view.driver) {
        (Some(because), _) => letters::stop(because),
        (None, Some(_)) => "it is running",
        (None, None) => "its process ended",
    }
}

fn open_subgoal(subgoal: &SubgoalView) -> Option<String> {
    if subgoal.is_met() {
        return None;
    }
    let why = match (&subgoal.closing, subgoal.opened) {
        (Some(closing), _) => prose(&words::closing(closing)),
        (None, Some(_)) => "not closed".to_owned(),
        (None, None) => "not opened".to_owned(),
    };
    let open = subgoal.criteria.iter().filter(|criterion| !criterion.holds);
    let criteria: String = open
        .map(|criterion| {
            format!("\n  - Does not hold: {} ({})", prose(&criterion.text), markdown(&criterion.note))
        })
        .collect();
    Some(format!("Subgoal {}, “{}”: {why}.{criteria}", code(subgoal.id.as_str()), markdown(&subgoal.goal)))
}

/// The calls that did not lead to an accepted outcome, and the actions that were turned down.
pub fn failed_attempts(view: &RunView) -> String {
    let mut out = "## Attempts that failed, and what was learned\n\n".to_owned();
    let before = out.len();
    for subgoal in view.subgoals() {
        for call in subgoal.calls.iter().filter(|call| call.went_wrong()) {
            out.push_str(&failed_call(call));
            out.push_str(&what_came_next(subgoal, call));
            out.push('\n');
        }
        for refusal in &subgoal.refusals {
            let problems: Vec<String> =
                refusal.problems.iter().map(|problem| prose(&words::problem(problem))).collect();
            out.push_str(&format!(
                "**{}**, an action was refused: {}\n\n",
                markdown(subgoal.id.as_str()),
                problems.join("; ")
            ));
        }
    }
    if out.len() == before {
        let all = view.calls().all(|call| call.accepted == Some(true));
        out.push_str(if all { "None: every call was accepted.\n\n" } else { "None.\n\n" });
    }
    out
}

fn failed_call(call: &CallView) -> String {
    let how = match &call.ended {
        Some(Ended::Outcome { .. }) => "rejected by verification".to_owned(),
        ended => prose(&words::ended(ended.as_ref())),
    };
    let title = format!(
        "**{}, attempt {}** ({} {}, {}): {how}\n\n",
        markdown(call.subgoal.as_str()),
        call.attempt,
        markdown(&call.skill),
        markdown(&call.version),
        code(call.id.as_str())
    );
    let mut items = evidence(call);
    items.extend(refused(call).into_iter().map(|line| format!("Refused, {line}")));
    items.extend(call.verdicts.iter().flat_map(verdict));
    items.extend(advice(call));
    title + &items.iter().map(|item| format!("- {item}\n")).collect::<String>()
}

/// What a call, its judges and its recovery tried at the walls in vain.
fn refused(call: &CallView) -> Vec<String> {
    let own = words::denials(&call.record).into_iter().map(|line| prose(&line));
    let judges = call.verdicts.iter().flat_map(|verdict| {
        let judge = markdown(verdict.judge.name());
        words::denials(&verdict.record).into_iter().map(move |line| format!("of {judge}: {}", prose(&line)))
    });
    let recovery = call.advice.iter().flat_map(|advice| {
        words::denials(&advice.record).into_iter().map(|line| format!("of its recovery: {}", prose(&line)))
    });
    own.chain(judges).chain(recovery).collect()
}

/// What was refused to triggers, and to calls that went well all the same; empty if nothing.
pub fn refusals(view: &RunView) -> String {
    let mut out = String::new();
    for subgoal in view.subgoals() {
        for trigger in &subgoal.triggers {
            let lines = words::denials(&trigger.record);
            if lines.is_empty() {
                continue;
            }
            let (id, skill) = (markdown(subgoal.id.as_str()), markdown(&trigger.skill));
            out.push_str(&format!("**{id}, the trigger of {skill}**\n\n"));
            out.extend(lines.iter().map(|line| format!("- {}\n", prose(line))));
            out.push('\n');
        }
    }
    for call in view.calls().filter(|call| !call.went_wrong()) {
        let lines = refused(call);
        if lines.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "**{}, attempt {}** ({} {}, {})\n\n",
            markdown(call.subgoal.as_str()),
            call.attempt,
            markdown(&call.skill),
            markdown(&call.version),
            code(call.id.as_str())
        ));
        out.extend(lines.iter().map(|line| format!("- {line}\n")));
        out.push('\n');
    }
    if out.is_empty() { out } else { format!("## What was refused\n\n{out}") }
}

fn evidence(call: &CallView) -> Vec<String> {
    match &call.ended {
        Some(Ended::Failed { failure }) if !failure.evidence.is_null() => {
            vec![format!("Evidence: {}", code(&json(&failure.evidence, EVIDENCE_MAX)))]
        }
        _ => Vec::new(),
    }
}

fn verdict(verdict: &VerdictView) -> Vec<String> {
    let findings = verdict.judgement.findings();
    let judge = markdown(verdict.judge.name());
    let shown = findings.iter().take(FINDINGS_MAX);
    let mut items: Vec<String> =
        shown.map(|finding| format!("{judge} found {}", prose(&words::finding(finding)))).collect();
    if findings.len() > FINDINGS_MAX {
        items.push(format!("{judge} found {} more", findings.len() - FINDINGS_MAX));
    }
    if let Judgement::Unavailable { reason } = &verdict.judgement {
        items.push(format!("{judge} could not judge: {}", prose(reason)));
    }
    items
}

fn advice(call: &CallView) -> Vec<String> {
    let Some(advice) = &call.advice else { return Vec::new() };
    let mut items = vec![format!("Diagnosis: {}", prose(&advice.diagnosis))];
    let remedy = advice.remedy.as_ref().map(words::remedy);
    items.extend(remedy.map(|remedy| format!("Remedy: {}", prose(&remedy))));
    items
}

fn what_came_next(subgoal: &SubgoalView, failed: &CallView) -> String {
    let mut later = subgoal.calls.iter().skip_while(|call| call.id != failed.id).skip(1);
    match later.next() {
        Some(next) if next.accepted == Some(true) => format!("- Attempt {} was accepted.\n", next.attempt),
        Some(_) | None => String::new(),
    }
}

/// All that somebody else needs to check the run.
pub fn how_to_check(view: &RunView) -> String {
    let mut out = "## How this can be checked\n\n".to_owned();
    out.push_str(&format!(
        "Every number above with a footnote was {}, checked by those who stand in its footnote, ",
        origin(view)
    ));
    out.push_str("and recorded in a log of events in which each carries the digest of the one before. This reads all of it again:\n\n");
    out.push_str(&format!(
        "```text\ncheckrein trace verify {} --head {}\n```\n\n",
        visible(view.run.as_str()),
        view.head.hex()
    ));
    out.push_str(&course::export(view));
    out.push_str(&identity(view));
    out.push_str("\n**Components**\n\n");
    out.extend(view.components.iter().map(|card| format!("- {}\n", component(card))));
    out.extend(view.replaced.iter().map(|card| format!("- {}, until a resume\n", component(card))));
    out.push_str("\n**Inputs**\n\n");
    out.extend(view.task.inputs.iter().map(|input| {
        let (file, digest) = (code(&input.file), code(&input.digest.to_string()));
        format!("- {}: {file}, {}, {digest}\n", markdown(&input.name), show_bytes(input.bytes))
    }));
    if view.task.inputs.is_empty() {
        out.push_str("- none\n");
    }
    out.push('\n');
    out
}

/// Where the numbers come from.
fn origin(view: &RunView) -> &'static str {
    let attested = view.current_facts().any(|fact| fact.entry.level == Level::Attested);
    match (view.dry, attested) {
        (true, _) => "stated by a case or the task, or recorded earlier",
        (false, true) => "computed by a sandboxed skill or, where `attested` stands, stated by a person",
        (false, false) => "computed by a sandboxed skill",
    }
}

/// What the run was, as a table without a heading.
fn identity(view: &RunView) -> String {
    let engines: Vec<String> = view.engines.iter().map(|engine| markdown(engine)).collect();
    let mut rows = vec![
        ("run", code(view.run.as_str())),
        ("head digest", code(&view.head.to_string())),
        ("events", view.events.to_string()),
        ("task", format!("{} {}", markdown(&view.task.name), code(&view.task_digest.to_string()))),
        ("seed", view.task.seed.to_string()),
        ("planner", markdown(&view.planner)),
        ("engine", engines.join(", then ")),
        ("verifications ran", if view.apart { APART } else { NOT_APART }.to_owned()),
        ("facts count from", view.task.level.as_str().to_owned()),
        ("started", words::time(view.started)),
        ("last event", words::time(view.last)),
    ];
    rows.extend(befell(view));
    let lines = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n"));
    "| | |\n| --- | --- |\n".to_owned() + &lines.collect::<String>()
}

/// What is told of a run only where there is something to tell.
fn befell(view: &RunView) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(last) = view.amendments.last() {
        rows.push(("goal card", format!("version {}", last.version)));
        rows.push(("task at the start", code(&view.first_task.to_string())));
    }
    if !view.resumes.is_empty() {
        let changed = view.resumes.iter().filter(|resume| resume.changed).count();
        let changed = match changed {
            0 => String::new(),
            changed => format!(", {changed} with other grants"),
        };
        rows.push(("resumed", format!("{}{changed}", many(view.resumes.len(), "time"))));
    }
    if view.tokens > 0 {
        rows.push(("tokens", show_count(view.tokens)));
    }
    match view.person {
        Person::Never => rows.push(("waited for", "nobody".to_owned())),
        Person::Approvals => rows.push(("waited for", "approvals".to_owned())),
        Person::Always => {}
    }
    rows
}
