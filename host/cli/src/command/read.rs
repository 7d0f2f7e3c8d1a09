//! Commands that read what was recorded: `runs`, `show`, `report`, `why`, `trace`.

use checkrein_contract::Digest;
use checkrein_contract::event::RunStatus;
use checkrein_store::{BlobProblem, ChainFault, HeadCheck, State, Verification};
use serde_json::json;

use super::run::write_reports;
use crate::args::{Global, TraceArgs, TraceCommand};
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::visible;
use crate::report::{self, RunView};
use crate::world::read_state;

fn view(state: &State, run: &str) -> Result<RunView, CliError> {
    super::run::view_of(state, &state.resolve(run)?)
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
                    "status": run.status.map(RunStatus::as_str),
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
        let status = run.status.map_or("interrupted", RunStatus::as_str);
        let task = output::one_line(run.task.as_deref().unwrap_or("?"), 40);
        let (run, started) = (visible(run.run.as_str()), report::words::time(run.started));
        output::line(&format!("{run}  {status:12}  {started}  {task}"));
    }
    Ok(exit::DONE)
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

pub(super) fn trace(global: &Global, args: &TraceArgs) -> Result<u8, CliError> {
    let state = read_state(global)?;
    if let Some(TraceCommand::Verify { run, head }) = &args.command {
        return verify(global, &state, run, head.as_deref());
    }
    let run = state.resolve(&args.run)?;
    for logged in state.events(&run)? {
        if global.json {
            let object = json!({
                "schema": "checkrein/event@1",
                "run": run,
                "seq": logged.seq,
                "at": report::words::time(logged.at),
                "prev": logged.prev,
                "digest": logged.digest,
                "event": logged.event,
            });
            output::json(&object);
        } else {
            output::line(&report::event_line(&logged));
            report::wall_lines(&logged.event).iter().for_each(|line| output::line(line));
        }
    }
    Ok(exit::DONE)
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
