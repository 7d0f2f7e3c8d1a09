//! The tree of what was tried, for the terminal.

use std::fmt::Write as _;

use checkrein_contract::event::{Ended, Judgement};
use checkrein_contract::id::{SubgoalId, Timestamp};
use checkrein_contract::record::Record;
use checkrein_contract::units::show_millis;
use serde_json::{Value, json};

use super::asks;
use super::course;
use super::escape::{cut, visible};
use super::json::{course_json, stages_json};
use super::letters;
use super::view::{AmendmentView, AskView, CallView, RunView, StageView, SubgoalView};
use super::words::{self, many};

/// The schema of [`show_json`].
pub const SCHEMA: &str = "checkrein/show@1";

/// The most characters of a line.
const LINE_MAX: usize = 240;
/// The most findings of a verdict.
const FINDINGS_MAX: usize = 5;
/// The most exchanges of a call.
const EXCHANGES_MAX: usize = 10;

/// Stages, subgoals and attempts as an indented tree: `✓` met or accepted, `✗` not, `…` open,
/// `?` not known, `·` not begun. Then a page for each question that waits.
pub fn show(view: &RunView) -> String {
    let mut tree = Tree(String::new());
    tree.head(view);
    for stage in &view.stages {
        tree.stage(view, stage);
    }
    let counted = view.current_facts().filter(|fact| view.counts(fact)).count();
    let all = view.current_facts().count();
    let below = if counted == all { String::new() } else { format!(" ({} counted)", many(counted, "fact")) };
    tree.line(0, &format!("{}{below}, {}", many(all, "fact"), many(view.artifacts.len(), "artifact")));
    for found in &view.contradictions {
        tree.line(0, &format!("✗ {} contradicts {} in call {}", found.subject, found.current, found.call));
    }
    for letter in &view.refused {
        let said = letters::message(&letter.said);
        tree.line(
            0,
            &format!("✗ letter {} of {}: {said}; nothing followed: {}", letter.letter, letter.by, letter.why),
        );
    }
    if !view.reason.is_empty() {
        tree.line(0, &format!("ended: {}", view.reason));
    }
    tree.line(0, &format!("head {}, {}", view.head, many(view.events as usize, "event")));
    match asks::ask_pages(view) {
        pages if pages.is_empty() => tree.0,
        pages => format!("{}\n{pages}", tree.0),
    }
}

/// The same as JSON.
pub fn show_json(view: &RunView) -> Value {
    json!({
        "schema": SCHEMA,
        "run": view.run,
        "task": { "name": view.task.name, "goal": view.task.goal, "digest": view.task_digest },
        "state": view.state_word(),
        "driver": view.driver,
        "status": view.status.map(|status| status.as_str()),
        "reason": view.reason,
        "dry": view.dry,
        "head": view.head,
        "events": view.events,
        "verification_apart": view.apart,
        "started": words::time(view.started),
        "last": words::time(view.last),
        "stages": stages_json(view),
        "course": course_json(view),
        "open_asks": asks::asks_json(view),
        "facts": view.current_facts().count(),
        "artifacts": view.artifacts.len(),
    })
}

fn elapsed(from: Timestamp, to: Timestamp) -> String {
    show_millis(to.0.saturating_sub(from.0))
}

struct Tree(String);

impl Tree {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{:width$}{}", "", cut(&visible(text), LINE_MAX), width = depth * 2);
    }

    fn head(&mut self, view: &RunView) {
        if view.dry {
            self.line(0, course::DRY);
        }
        let took = elapsed(view.started, view.last);
        self.line(0, &format!("run {}  {}  {took}", view.run, view.state_word()));
        if let Some(driver) = &view.driver {
            self.line(0, &format!("driven by {driver}"));
        }
        self.line(0, &format!("task {}: {}", view.task.name, view.task.goal));
        let (started, engines) = (words::time(view.started), view.engines.join(", then "));
        self.line(0, &format!("started {started}, planner {}, {engines}", view.planner));
        if !view.resumes.is_empty() {
            self.line(0, &format!("resumed {}", many(view.resumes.len(), "time")));
        }
        if !view.apart {
            self.line(0, "verifications ran in the host's own process");
        }
        for amended in &view.amendments {
            self.amended(amended);
        }
    }

    fn amended(&mut self, amended: &AmendmentView) {
        let by = amended.by.iter().map(|by| format!(" by {by}")).collect::<String>();
        let what = letters::amendment(&amended.amendment);
        self.line(0, &format!("amended{by}, version {}: {what}", amended.version));
        for (word, ids) in
            [("open again", &amended.reopened), ("criteria evaluated again", &amended.evaluated)]
        {
            let ids: Vec<&str> = ids.iter().map(SubgoalId::as_str).collect();
            if !ids.is_empty() {
                self.line(1, &format!("{word}: {}", ids.join(", ")));
            }
        }
        if amended.facts + amended.artifacts > 0 {
            let files = many(amended.artifacts, "artifact");
            self.line(1, &format!("abandoned: {}, {files}", many(amended.facts, "fact")));
        }
    }

    fn stage(&mut self, view: &RunView, stage: &StageView) {
        let mark = match (stage.met, stage.entered) {
            (Some(true), _) => '✓',
            (Some(false), _) => '✗',
            (None, true) => '…',
            (None, false) => '·',
        };
        let title =
            if stage.title == stage.id.as_str() { String::new() } else { format!("  {}", stage.title) };
        self.line(0, &format!("{mark} stage {}{title}", stage.id));
        for subgoal in &stage.subgoals {
            self.subgoal(view, subgoal);
        }
    }

    fn subgoal(&mut self, view: &RunView, subgoal: &SubgoalView) {
        let mark = match (&subgoal.closing, subgoal.opened) {
            (Some(_), _) if subgoal.is_met() => '✓',
            (Some(_), _) => '✗',
            (None, Some(_)) => '…',
            (None, None) => '·',
        };
        let time = match (subgoal.opened, subgoal.closed) {
            (Some(from), Some(to)) => format!("  {}", elapsed(from, to)),
            _ => String::new(),
        };
        self.line(1, &format!("{mark} {}: {}{time}", subgoal.id, subgoal.goal));
        for trigger in &subgoal.triggers {
            self.line(2, &format!("trigger of {}", trigger.skill));
            self.walls(&trigger.record);
        }
        for call in &subgoal.calls {
            self.call(call);
        }
        for problem in subgoal.refusals.iter().flat_map(|refusal| &refusal.problems) {
            self.line(2, &format!("✗ action refused: {}", words::problem(problem)));
        }
        for ask in view.asks_of(&subgoal.id) {
            self.ask(ask);
        }
        for criterion in &subgoal.criteria {
            let mark = if criterion.holds { '✓' } else { '✗' };
            let note =
                if criterion.note.is_empty() { String::new() } else { format!(" ({})", criterion.note) };
            self.line(2, &format!("{mark} {}{note}", criterion.text));
        }
        if let Some(closing) = subgoal.closing.as_ref().filter(|_| !subgoal.is_met()) {
            self.line(2, &format!("closed: {}", words::closing(closing)));
        }
    }

    fn ask(&mut self, ask: &AskView) {
        let AskView { ask: id, about, question, .. } = ask;
        self.line(2, &format!("? ask {id}, {}: {question}", about.as_str()));
        if let Some(given) = &ask.answer {
            self.line(
                3,
                &format!("{}, {}: {}", given.by, words::time(given.at), letters::answer(&given.answer)),
            );
        }
    }

    fn call(&mut self, call: &CallView) {
        let mark = match (call.accepted, call.went_wrong()) {
            (Some(true), _) => '✓',
            (_, true) => '✗',
            (_, false) if call.unknown && matches!(call.ended, None | Some(Ended::Happened)) => '?',
            (_, false) => '…',
        };
        let used = call.used.as_ref().map_or_else(String::new, |used| format!("  [{}]", words::used(used)));
        let ask = call.ask.iter().map(|ask| format!(", approved by ask {ask}")).collect::<String>();
        self.line(2, &format!("{mark} attempt {}: {} {}{ask}{used}", call.attempt, call.skill, call.version));
        self.line(3, &ended(call));
        self.walls(&call.record);
        for verdict in &call.verdicts {
            self.verdict(verdict.judge.name(), &verdict.judgement);
            self.walls(&verdict.record);
        }
        if call.accepted == Some(false) && !call.reasons.is_empty() {
            self.line(3, &format!("rejected: {}", words::reasons_text(&call.reasons)));
        }
        if let Some(advice) = &call.advice {
            self.line(3, &format!("diagnosis: {}", advice.diagnosis));
            if let Some(remedy) = &advice.remedy {
                self.line(3, &format!("remedy: {}", words::remedy(remedy)));
            }
            self.walls(&advice.record);
        }
    }

    fn walls(&mut self, record: &Record) {
        for exchange in record.exchanges.iter().take(EXCHANGES_MAX) {
            self.line(3, &format!("→ {}", words::exchange(exchange)));
        }
        if record.exchanges.len() > EXCHANGES_MAX {
            self.line(3, &format!("→ and {} more, in the trace", record.exchanges.len() - EXCHANGES_MAX));
        }
        for denial in words::denials(record) {
            self.line(3, &format!("✗ refused, {denial}"));
        }
    }

    fn verdict(&mut self, judge: &str, judgement: &Judgement) {
        match judgement {
            Judgement::Accepted { checks, .. } => {
                self.line(3, &format!("✓ {judge}: {}", many(checks.len(), "check")))
            }
            Judgement::Rejected { findings, .. } => {
                self.line(3, &format!("✗ {judge}: {}", many(findings.len(), "finding")))
            }
            Judgement::Unavailable { reason } => {
                self.line(3, &format!("? {judge} could not judge: {reason}"))
            }
        }
        let findings = judgement.findings();
        for finding in findings.iter().take(FINDINGS_MAX) {
            self.line(4, &words::finding(finding));
        }
        if findings.len() > FINDINGS_MAX {
            self.line(4, &format!("and {} more", findings.len() - FINDINGS_MAX));
        }
    }
}

fn ended(call: &CallView) -> String {
    let text = words::ended(call.ended.as_ref());
    match &call.ended {
        Some(Ended::Outcome { outcome, .. }) if call.attested => {
            format!("{text}, {}, as a person says", outcome.short())
        }
        Some(Ended::Outcome { outcome, .. }) => format!("{text}, {}", outcome.short()),
        None if call.unknown => "the host ended while it was made".to_owned(),
        _ => text,
    }
}
