//! How a run is driven from here, and what is said of it when it ends or stops.

use std::path::Path;

use checkrein_contract::event::{RunStatus, Stop};
use checkrein_contract::id::RunId;
use checkrein_contract::units;
use checkrein_harness::Driver;
use checkrein_store::{EventLog, State};
use serde_json::{Value, json};

use super::run::{short, view_of, with_export, write_reports};
use crate::args::Global;
use crate::config;
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::shell;
use crate::report::{self, RunView};

/// Drives a run until it ends, stops, or is asked to.
pub(super) async fn drive(
    driver: Driver<EventLog>,
    stop: impl Future<Output = Stop>,
) -> Result<(), CliError> {
    driver.run(stop).await?;
    Ok(())
}

/// Writes the reports, and says how the run ended, or why it stopped and how it goes on.
pub(super) fn finish(global: &Global, state: &State, run: &RunId) -> Result<u8, CliError> {
    let view = with_export(state, view_of(state, run)?);
    let html = write_reports(state, &view)?;
    if global.json {
        output::json(&run_json(&view));
    } else {
        let pages = report::ask_pages(&view);
        if !pages.is_empty() {
            output::line(pages.trim_end());
            output::line("");
        }
        output::line(&summary(global, &view, &html));
    }
    Ok(code(&view))
}

/// How a command about this run ends.
pub(super) fn code(view: &RunView) -> u8 {
    match (view.status, view.stopped) {
        (Some(RunStatus::Done), _) => exit::DONE,
        (Some(RunStatus::NotReached | RunStatus::NeedsPerson), _) => exit::NOT_REACHED,
        (None, Some(Stop::Person)) => exit::WAITS,
        (None, Some(Stop::Cancelled | Stop::Interrupted) | None) => exit::INTERRUPTED,
    }
}

/// `run --json`.
pub(super) fn run_json(view: &RunView) -> Value {
    json!({
        "schema": "checkrein/run@1",
        "run": view.run,
        "status": view.state_word(),
        "dry": view.dry,
        "reason": view.reason,
        "head": view.head,
        "stages": report::json::stages_json(view),
        "findings": report::json::findings_json(view),
        "asks": report::asks_json(view),
    })
}

fn summary(global: &Global, view: &RunView, html: &Path) -> String {
    let took = units::show_millis(view.last.0.saturating_sub(view.started.0));
    let dry = if view.dry { ", a dry run" } else { "" };
    let how = match (view.status, view.stopped) {
        (Some(_), _) => format!(" in {took}: {}", output::one_line(&view.reason, 300)),
        (None, Some(Stop::Person)) => format!(" for a person after {took}"),
        (None, _) => format!(" after {took}; what was done is in the log"),
    };
    let mut lines = vec![format!("run {} {}{how}{dry}", view.run, view.state_word())];
    let all = view.current_facts().count();
    let counted = view.current_facts().filter(|fact| view.counts(fact)).count();
    let below = if counted < all {
        format!(" ({} below `{}`, not counted)", all - counted, view.task.level.as_str())
    } else {
        String::new()
    };
    lines.push(format!("facts   {}{below}", units::show_count(counted as u64)));
    lines.push(format!("head    {}", view.head.hex()));
    lines.push(format!("report  {}", short(html).display()));
    let next = if view.status.is_some() { "show" } else { "resume" };
    lines.push(format!("next    checkrein {next} {}{}", view.run, flags(global, next == "resume")));
    lines.join("\n")
}

/// The flags that the next command needs, where it would look elsewhere without them.
pub(super) fn flags(global: &Global, with_config: bool) -> String {
    let mut flags = String::new();
    let mut push = |name: &str, path: &Path| {
        flags.push_str(&format!(" {name} {}", shell(&path.display().to_string())));
    };
    if let Some(config) = global.config.as_deref().filter(|_| with_config) {
        push("--config", config);
    }
    if let Some(operator) = global.operator.as_deref().filter(|_| with_config) {
        push("--operator", operator);
    }
    let of = |global: &Global| config::state_folder(global).ok();
    let next = Global { config: global.config.clone().filter(|_| with_config), ..Global::default() };
    if let Some(state) = of(global).filter(|state| Some(state) != of(&next).as_ref()) {
        push("--state", &short(&state));
    }
    flags
}
