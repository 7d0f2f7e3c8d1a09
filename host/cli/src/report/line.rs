//! An event on one line, for `trace`.

use checkrein_contract::event::{Ended, Event, Judge, Judgement, Logged, Person, Setup};
use checkrein_contract::id::SubgoalId;
use checkrein_contract::record::Record;
use checkrein_contract::units::{show_count, show_millis};
use serde_json::Value;

use super::escape::{cut, json, visible};
use super::letters;
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
        Event::RunStarted { setup } => started(setup),
        Event::LeaseTaken { .. }
        | Event::RunResumed { .. }
        | Event::RunStopped { .. }
        | Event::LetterTaken { .. }
        | Event::TaskAmended { .. }
        | Event::DependentsReopened { .. } => of_run(event),
        Event::RestorePointSet { name } => name.clone(),
        Event::StageEntered { stage } => stage.to_string(),
        Event::StageEvaluated { stage, met } => format!("{stage}: {}", if *met { "met" } else { "not met" }),
        Event::RunEnded { status, reason } => format!("{}: {reason}", status.as_str()),
        Event::SubgoalOpened { .. }
        | Event::SkillsAssessed { .. }
        | Event::ActionProposed { .. }
        | Event::TokensReserved { .. }
        | Event::ActionRefused { .. }
        | Event::CriteriaEvaluated { .. }
        | Event::TimerSet { .. }
        | Event::TimerReached { .. }
        | Event::AskOpened { .. }
        | Event::AskAnswered { .. }
        | Event::SubgoalClosed { .. } => of_subgoal(event),
        Event::BudgetReserved { .. }
        | Event::CallIntended { .. }
        | Event::CallUnknown { .. }
        | Event::CallEnded { .. }
        | Event::BudgetSettled { .. }
        | Event::VerdictGiven { .. }
        | Event::OutcomeAccepted { .. }
        | Event::OutcomeRejected { .. }
        | Event::ContradictionFound { .. }
        | Event::RemedyGiven { .. } => of_call(event),
    }
}

fn started(setup: &Setup) -> String {
    let dry = if setup.dry { ", dry run" } else { "" };
    let person = match setup.person {
        Person::Never => ", waits for nobody",
        Person::Approvals => ", waits for approvals",
        Person::Always => "",
    };
    format!(
        "task {}, {}, {}, planner {}, {}{dry}{person}",
        setup.task.name,
        many(setup.skills.len(), "skill"),
        many(setup.verifiers.len(), "verifier"),
        setup.planner,
        setup.engine
    )
}

fn of_run(event: &Event) -> String {
    match event {
        Event::LeaseTaken { epoch, holder } => format!("lease {epoch} taken by {holder}"),
        Event::RunResumed { engine, in_force } => match in_force {
            None => format!("goes on, {engine}"),
            Some(now) => format!(
                "goes on, {engine}; what components may do has changed: {} and {} in force",
                many(now.skills.len(), "skill"),
                many(now.verifiers.len(), "verifier")
            ),
        },
        Event::RunStopped { because } => format!("{}: {}", because.as_str(), letters::stop(*because)),
        Event::LetterTaken { letter, by, said, refused } => {
            let refused = refused.iter().map(|why| format!("; nothing follows: {why}"));
            format!("letter {letter} of {by}: {}{}", letters::message(said), refused.collect::<String>())
        }
        Event::DependentsReopened { by, reopened } => {
            format!("after `{by}` was evaluated again{}", listed("open again", reopened))
        }
        Event::TaskAmended { amendment, version, reopened, evaluated } => {
            format!(
                "version {version}: {}{}{}",
                letters::amendment(amendment),
                listed("open again", reopened),
                listed("criteria evaluated again", evaluated)
            )
        }
        other => other.kind().to_owned(),
    }
}

fn listed(what: &str, ids: &[SubgoalId]) -> String {
    let ids: Vec<&str> = ids.iter().map(SubgoalId::as_str).collect();
    if ids.is_empty() { String::new() } else { format!("; {what}: {}", ids.join(", ")) }
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
        Event::ActionProposed { subgoal, action, tokens } => {
            let used = if *tokens > 0 { format!(", {} tokens", show_count(*tokens)) } else { String::new() };
            format!("{subgoal}: {}{used}", json(action, VALUE_MAX))
        }
        Event::TokensReserved { subgoal, tokens } => format!("{subgoal}: {} tokens", show_count(*tokens)),
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
        Event::AskOpened { ask, subgoal, about, question } => {
            format!("ask {ask} opened for {subgoal}: {}: {question}", about.as_str())
        }
        Event::AskAnswered { ask, answer, by } => {
            format!("ask {ask} answered by {by}: {}", letters::answer(answer))
        }
        Event::SubgoalClosed { subgoal, closing } => format!("{subgoal}: {}", words::closing(closing)),
        other => other.kind().to_owned(),
    }
}

fn of_call(event: &Event) -> String {
    match event {
        Event::BudgetReserved { call, fuel, wall_ms } => {
            format!("{call}: fuel {}, {}", show_count(*fuel), show_millis(*wall_ms))
        }
        Event::CallIntended { call, skill, version, args, attempt, ask, .. } => {
            let ask = ask.iter().map(|ask| format!(", by the approval of ask {ask}")).collect::<String>();
            format!(
                "{call}: {skill} {version}, attempt {attempt}{ask}, {}",
                json(&Value::Object(args.clone()), VALUE_MAX)
            )
        }
        Event::CallUnknown { call } => format!("call {call} unknown: the host ended while it was made"),
        Event::CallEnded { call, ended, record, attested, .. } => {
            let digest = match ended {
                Ended::Outcome { outcome, .. } => format!(" {}", outcome.short()),
                Ended::Failed { .. }
                | Ended::Limited { .. }
                | Ended::Trapped { .. }
                | Ended::Invalid { .. }
                | Ended::Cancelled
                | Ended::Happened => String::new(),
            };
            let attested = if *attested { ", as a person says" } else { "" };
            format!("{call}: {}{digest}{attested}{}", words::ended(Some(ended)), walls(record))
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
