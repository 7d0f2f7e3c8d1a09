//! Commands that read what was recorded: `runs`, `show`, `report`, `why`, `trace`.

use std::time::Duration;

use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Logged, RunStatus, Stop};
use checkrein_contract::id::RunId;
use checkrein_store::{BlobProblem, ChainFault, HeadCheck, RunSummary, State, Verification};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::run::write_reports;
use crate::args::{Global, TraceArgs, TraceCommand};
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::{shell, visible};
use crate::report::{self, RunView, letters};
use crate::world::read_state;

/// How long a trace that is followed waits before it looks for more.
const POLL: Duration = Duration::from_millis(250);

fn view(state: &State, run: &str) -> Result<RunView, CliError> {
    let run = state.resolve(run)?;
    let driver = state.drives(&run)?.map(|driving| driving.holder);
    let view = super::run::view_of(state, &run)?.driven_by(driver);
    Ok(super::run::with_export(state, view))
}

pub(super) fn runs(global: &Global) -> Result<u8, CliError> {
    let runs = read_state(global)?.runs()?;
    if global.json {
        let list: Vec<_> = runs
            .iter()
            .map(|run| {
                json!({
                    "run": run.run,
                    "task": run.task,
                    "state": state_word(run),
                    "status": run.status.map(RunStatus::as_str),
                    "driver": run.driven,
                    "dry": run.dry,
                    "started": report::words::time(run.started),
                    "events": run.events,
                })
            })
            .collect();
        output::json(&json!({ "schema": "checkrein/runs@1", "runs": list }));
        return Ok(exit::DONE);
    }
    if runs.is_empty() {
        output::message("no runs yet");
    }
    for run in runs {
        let task = output::one_line(run.task.as_deref().unwrap_or("?"), 40);
        let dry = if run.dry { "  (dry run)" } else { "" };
        let (id, started) = (visible(run.run.as_str()), report::words::time(run.started));
        output::line(&format!("{id}  {:12}  {started}  {task}{dry}", state_word(&run)));
    }
    Ok(exit::DONE)
}

/// The word for how a run stands: the same that its report has.
pub(super) fn state_word(run: &RunSummary) -> &'static str {
    report::words::state(run.status, run.stopped, run.driven.is_some())
}

pub(super) fn show(global: &Global, run: &str) -> Result<u8, CliError> {
    let view = view(&read_state(global)?, run)?;
    if global.json {
        output::json(&report::show::show_json(&view));
    } else {
        output::line(report::show(&view).trim_end());
    }
    Ok(exit::DONE)
}

pub(super) fn report(global: &Global, run: &str, open: bool) -> Result<u8, CliError> {
    let state = read_state(global)?;
    let view = view(&state, run)?;
    let html = write_reports(&state, &view)?;
    if global.json {
        output::json(&report::report_json(&view));
    } else {
        output::line(&html.display().to_string());
    }
    if open {
        open_in_browser(&html)?;
    }
    Ok(exit::DONE)
}

fn open_in_browser(file: &std::path::Path) -> Result<(), CliError> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let status = std::process::Command::new(opener).arg(file).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(CliError::usage(
            format!("`{opener}` ended with {status}"),
            format!("open {} by hand", file.display()),
        )),
        Err(error) => {
            Err(CliError::usage(format!("`{opener}`: {error}"), format!("open {} by hand", file.display())))
        }
    }
}

pub(super) fn why(global: &Global, run: &str, subject: &str) -> Result<u8, CliError> {
    let view = view(&read_state(global)?, run)?;
    let why = report::why(&view, subject).map_err(|error| CliError::usage(error.to_string(), ""))?;
    if global.json {
        output::json(&why.json());
    } else {
        output::line(why.text().trim_end());
    }
    Ok(exit::DONE)
}

pub(super) async fn trace(global: &Global, args: &TraceArgs) -> Result<u8, CliError> {
    let state = read_state(global)?;
    if let Some(TraceCommand::Verify { run, head }) = &args.command {
        return verify(global, &state, run, head.as_deref());
    }
    let run = state.resolve(&args.run)?;
    if args.follow {
        return follow(global, &state, &run).await;
    }
    state.events(&run)?.iter().for_each(|logged| tell(global, &run, logged));
    Ok(exit::DONE)
}

fn tell(global: &Global, run: &RunId, logged: &Logged) {
    if global.json {
        output::json(&json!({
            "schema": "checkrein/event@1",
            "run": run,
            "seq": logged.seq,
            "at": report::words::time(logged.at),
            "prev": logged.prev,
            "digest": logged.digest,
            "event": logged.event,
        }));
    } else {
        output::line(&report::event_line(logged));
        report::wall_lines(&logged.event).iter().for_each(|line| output::line(line));
    }
}

/// Prints what there is of a run, then what comes, until nothing more does.
async fn follow(global: &Global, state: &State, run: &RunId) -> Result<u8, CliError> {
    let interrupted = signal(SignalKind::interrupt());
    let mut interrupted = interrupted.map_err(|error| CliError::Ours(format!("no signals: {error}")))?;
    let (mut seen, mut log) = (0, LogEnd::Open);
    loop {
        // Who drives it is asked before what it wrote is read: nothing comes after that from nobody.
        let driven = state.drives(run)?.is_some();
        for logged in state.events_after(run, seen)? {
            tell(global, run, &logged);
            (seen, log) = (logged.seq, LogEnd::of(&logged.event));
        }
        if output::is_read_no_more() {
            return Ok(exit::DONE);
        }
        if let Some(why) = over(log, driven) {
            let hint = match log {
                LogEnd::Ended(_) => String::new(),
                LogEnd::Stopped(_) | LogEnd::Open => {
                    format!("; go on with: checkrein resume {}", shell(run.as_str()))
                }
            };
            output::message(&format!("{why}{hint}"));
            return Ok(exit::DONE);
        }
        tokio::select! {
            _ = interrupted.recv() => return Ok(exit::INTERRUPTED),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// What stands at the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogEnd {
    /// Something that more should follow.
    Open,
    /// The run ended.
    Ended(RunStatus),
    /// The run stopped.
    Stopped(Stop),
}

impl LogEnd {
    fn of(event: &Event) -> Self {
        match event {
            Event::RunEnded { status, .. } => LogEnd::Ended(*status),
            Event::RunStopped { because } => LogEnd::Stopped(*because),
            _ => LogEnd::Open,
        }
    }
}

/// Why nothing more comes to a log that ends so; `None` if somebody still drives the run.
fn over(log: LogEnd, driven: bool) -> Option<String> {
    if driven {
        return None;
    }
    Some(match log {
        LogEnd::Ended(status) => format!("the run has ended: {}", status.as_str()),
        LogEnd::Stopped(because) => format!("the run has stopped: {}", letters::stop(because)),
        LogEnd::Open => "the run is interrupted: no process drives it".to_owned(),
    })
}

fn verify(global: &Global, state: &State, run: &str, head: Option<&str>) -> Result<u8, CliError> {
    let run = state.resolve(run)?;
    let head = head.map(str::parse::<Digest>).transpose();
    let head =
        head.map_err(|error| CliError::usage(format!("--head: {error}"), "it is printed when a run ends"))?;
    let found = state.verify(&run, head)?;
    if global.json {
        output::json(&verification_json(&found));
        return Ok(if found.holds() { exit::DONE } else { exit::DIFFERENCE });
    }
    tell_faults(&found);
    if !found.holds() {
        return Err(CliError::Difference(format!("the log of {run} is not what was written")));
    }
    output::line(&format!(
        "{} events and {} blobs are what was written, head {}",
        found.events,
        found.blobs,
        found.head.hex()
    ));
    tell_head(&found.head_check);
    Ok(exit::DONE)
}

fn tell_faults(found: &Verification) {
    if let Some(fault) = &found.fault {
        output::line(&visible(&chain_fault(fault)));
    }
    for fault in &found.blob_faults {
        let what = match &fault.problem {
            BlobProblem::Missing => "is missing".to_owned(),
            BlobProblem::Altered => "was altered".to_owned(),
            BlobProblem::Unreadable(detail) => format!("cannot be read: {detail}"),
        };
        output::line(&visible(&format!(
            "blob {} {what}, named first by event {} ({})",
            fault.digest, fault.seq, fault.kind
        )));
    }
    for unknown in &found.unknown {
        output::message(&visible(&format!(
            "event {} ({}) is not known to this version: {}",
            unknown.seq, unknown.kind, unknown.detail
        )));
    }
}

fn tell_head(check: &HeadCheck) {
    match check {
        HeadCheck::NotGiven => {
            output::message("hint: with --head, which the run printed at its end, a lost tail is found too")
        }
        HeadCheck::Passed { seq } => {
            output::message(&format!("the head given is that of event {seq}; the run went on after it"))
        }
        HeadCheck::Last | HeadCheck::NotFound => {}
    }
}

fn chain_fault(fault: &ChainFault) -> String {
    match fault {
        ChainFault::Altered { seq, kind, detail } => format!("event {seq} ({kind}) was altered: {detail}"),
        ChainFault::Lost { first, last } if first == last => format!("event {first} was lost"),
        ChainFault::Lost { first, last } => format!("events {first} to {last} were lost"),
        ChainFault::Reordered { seq, kind, from } => {
            format!("events were reordered: event {seq} ({kind}) was written as event {from}")
        }
        ChainFault::TailLost { after, expected } => {
            format!("events after {after} were lost: no event has the head {}", expected.hex())
        }
    }
}

fn verification_json(found: &Verification) -> serde_json::Value {
    json!({
        "schema": "checkrein/verification@1",
        "run": found.run,
        "holds": found.holds(),
        "events": found.events,
        "head": found.head,
        "blobs": found.blobs,
        "fault": found.fault.as_ref().map(chain_fault),
        "blob_faults": found.blob_faults.iter().map(|fault| json!({ "seq": fault.seq, "digest": fault.digest })).collect::<Vec<_>>(),
        "unknown": found.unknown.iter().map(|unknown| json!({ "seq": unknown.seq, "kind": unknown.kind })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_followed_until_nobody_can_add_to_it() {
        let ends = [
            Event::RunEnded { status: RunStatus::Done, reason: String::new() },
            Event::RunStopped { because: Stop::Person },
            Event::RunStopped { because: Stop::Cancelled },
            Event::LeaseTaken { epoch: 2, holder: "process 1 on a".to_owned() },
        ];
        let told = ["done", "waits for a person", "cancelled", "interrupted"];
        for (event, word) in ends.iter().zip(told) {
            // Whoever drives it may still resume, amend or report.
            assert_eq!(over(LogEnd::of(event), true), None, "{event:?}");
            let why = over(LogEnd::of(event), false).unwrap();
            assert!(why.contains(word), "{why}");
        }
        // What follows a stop takes it back.
        assert_eq!(LogEnd::of(&Event::LeaseTaken { epoch: 2, holder: String::new() }), LogEnd::Open);
    }
}
