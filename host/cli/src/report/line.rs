//! An event on one line, for `trace`.

use checkrein_contract::event::{Ended, Event, Judge, Judgement, Logged};
use checkrein_contract::record::Record;
use checkrein_contract::units::{show_count, show_millis};
use serde_json::Value;

use super::escape::{cut, json, visible};
use super::words::{self, many};

/// The most characters of arguments and the like.
const VALUE_MAX: usize = 120;
/// The most characters of the line past position, time and kind.
const DETAIL_MAX: usize = 300;

/// Where the lines below an event begin.
const INDENT: usize = 33;

/// Position, time, kind, and what happened.
pub fn event_line(logged: &Logged) -> String {
    let detail = cut(&visible(&detail(&logged.event)), DETAIL_MAX);
    let line =
        format!("{:>5}  {}  {:<19}  {detail}", logged.seq, words::time(logged.at), logged.event.kind());
    line.trim_end().to_owned()
}

fn detail(event: &Event) -> String {
    match event {
        Event::RunStarted { setup } => format!(
            "task {}, {}, {}, planner {}, {}",
            setup.task.name,
            many(setup.skills.len(), "skill"),
            many(setup.verifiers.len(), "verifier"),
            setup.planner,
            setup.engine
        ),
        Event::RestorePointSet { name } => name.clone(),
        Event::StageEntered { stage } => stage.to_string(),
        Event::StageEvaluated { stage, met } => format!("{stage}: {}", if *met { "met" } else { "not met" }),
        Event::RunEnded { status, reason } => format!("{}: {reason}", status.as_str()),
        Event::SubgoalOpened { .. }
        | Event::SkillsAssessed { .. }
        | Event::ActionProposed { .. }
        | Event::ActionRefused { .. }
        | Event::CriteriaEvaluated { .. }
        | Event::TimerSet { .. }
        | Event::TimerReached { .. }
        | Event::AskOpened { .. }
        | Event::SubgoalClosed { .. } => of_subgoal(event),
        Event::BudgetReserved { .. }
        | Event::CallIntended { .. }
        | Event::CallEnded { .. }
        | Event::BudgetSettled { .. }
        | Event::VerdictGiven { .. }
        | Event::OutcomeAccepted { .. }
        | Event::OutcomeRejected { .. }
        | Event::ContradictionFound { .. }
        | Event::RemedyGiven { .. } => of_call(event),
    }
}

fn of_subgoal(event: &Event) -> String {
    match event {
        Event::SubgoalOpened { subgoal, scope, artifacts, args } => format!(
            "{subgoal}: {} and files of {} in scope, {}",
            many(scope.len(), "fact"),
            many(artifacts.len(), "call"),
            json(&Value::Object(args.clone()), VALUE_MAX)
        ),
        Event::SkillsAssessed { subgoal, assessed } => {
            let each: Vec<String> = assessed
                .iter()
                .map(|one| format!("{} {} ({}){}", one.skill, one.score, one.reason, walls(&one.record)))
                .collect();
            format!(
                "{subgoal}: {}",
                if each.is_empty() { "none applies".to_owned() } else { each.join(", ") }
            )
        }
        Event::ActionProposed { subgoal, action } => format!("{subgoal}: {}", json(action, VALUE_MAX)),
        Event::ActionRefused { subgoal, problems } => {
            let each: Vec<String> = problems.iter().map(words::problem).collect();
            format!("{subgoal}: {}", each.join("; "))
        }
        Event::CriteriaEvaluated { subgoal, criteria } => {
            let open: Vec<&str> =
                criteria.iter().filter(|one| !one.holds).map(|one| one.text.as_str()).collect();
            let rest =
                if open.is_empty() { String::new() } else { format!("; not yet: {}", open.join(", ")) };
            format!("{subgoal}: {} of {} hold{rest}", criteria.len() - open.len(), criteria.len())
        }
        Event::TimerSet { subgoal, until } => format!("{subgoal}: until {}", words::time(*until)),
        Event::TimerReached { subgoal } => subgoal.to_string(),
        Event::AskOpened { subgoal, question } => format!("{subgoal}: {question}"),
        Event::SubgoalClosed { subgoal, closing } => format!("{subgoal}: {}", words::closing(closing)),
        other => other.kind().to_owned(),
    }
}

fn of_call(event: &Event) -> String {
    match event {
        Event::BudgetReserved { call, fuel, wall_ms } => {
            format!("{call}: fuel {}, {}", show_count(*fuel), show_millis(*wall_ms))
        }
        Event::CallIntended { call, skill, version, args, attempt, .. } => {
            format!(
                "{call}: {skill} {version}, attempt {attempt}, {}",
                json(&Value::Object(args.clone()), VALUE_MAX)
            )
        }
        Event::CallEnded { call, ended, record, .. } => {
            let digest = match ended {
                Ended::Outcome { outcome, .. } => format!(" {}", outcome.short()),
                Ended::Failed { .. }
                | Ended::Limited { .. }
                | Ended::Trapped { .. }
                | Ended::Invalid { .. } => String::new(),
            };
            format!("{call}: {}{digest}{}", words::ended(Some(ended)), walls(record))
        }
        Event::BudgetSettled { call, used } => format!("{call}: {}", words::used(used)),
        Event::VerdictGiven { call, judge, judgement, record, .. } => {
            format!("{call}: {}{}", verdict(judge, judgement), walls(record))
        }
        Event::OutcomeAccepted { call, facts, artifacts } => {
            format!("{call}: {}, {}", many(facts.len(), "fact"), many(artifacts.len(), "file"))
        }
        Event::OutcomeRejected { call, reasons } => format!("{call}: {}", words::reasons_text(reasons)),
        Event::ContradictionFound { call, subject, current, .. } => {
            format!("{call}: other content on {subject}, which has {current}")
        }
        Event::RemedyGiven { call, diagnosis, remedy, record } => {
            let remedy = remedy.as_ref().map_or_else(|| "no remedy".to_owned(), words::remedy);
            format!("{call}: {diagnosis}; {remedy}{}", walls(record))
        }
        other => other.kind().to_owned(),
    }
}

/// How much there is to see at the walls; [`wall_lines`] shows it.
fn walls(record: &Record) -> String {
    let mut text = String::new();
    if !record.exchanges.is_empty() {
        text.push_str(&format!(", {}", many(record.exchanges.len(), "exchange")));
    }
    if !record.denials.is_empty() {
        text.push_str(&format!(", {}", many(record.denials.len(), "refusal")));
    }
    text
}

/// What a trigger, a call, a judge or a recovery did at its walls, a line for each exchange and each
/// refusal.
pub fn wall_lines(event: &Event) -> Vec<String> {
    let lines = match event {
        Event::CallEnded { record, .. }
        | Event::VerdictGiven { record, .. }
        | Event::RemedyGiven { record, .. } => lines_of(record),
        Event::SkillsAssessed { assessed, .. } => {
            let named = |skill: &str, lines: Vec<String>| {
                lines.into_iter().map(|line| format!("{skill}: {line}")).collect::<Vec<_>>()
            };
            assessed.iter().flat_map(|one| named(&one.skill, lines_of(&one.record))).collect()
        }
        _ => Vec::new(),
    };
    let indent = " ".repeat(INDENT);
    lines.iter().map(|text| format!("{indent}{}", cut(&visible(text), DETAIL_MAX))).collect()
}

fn lines_of(record: &Record) -> Vec<String> {
    let exchanges = record.exchanges.iter().map(words::exchange);
    let refusals = words::denials(record).into_iter().map(|denial| format!("refused, {denial}"));
    exchanges.chain(refusals).collect()
}

fn verdict(judge: &Judge, judgement: &Judgement) -> String {
    let who = match judge {
        Judge::Gateway => "gateway".to_owned(),
        Judge::Own { name, .. } => format!("{name} (its own)"),
        Judge::Verifier { name, .. } => name.clone(),
    };
    match judgement {
        Judgement::Accepted { checks, findings } => {
            let warnings = if findings.is_empty() {
                String::new()
            } else {
                format!(", {}", many(findings.len(), "warning"))
            };
            format!("{who} accepts, {}{warnings}", many(checks.len(), "check"))
        }
        Judgement::Rejected { findings, .. } => {
            let each: Vec<String> = findings.iter().map(words::finding).collect();
            format!("{who} rejects: {}", each.join("; "))
        }
        Judgement::Unavailable { reason } => format!("{who} could not judge: {reason}"),
    }
}
