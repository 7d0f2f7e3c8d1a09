//! `replay`: every call of a run, executed again from what was recorded and compared.
//!
//! No configuration is read, and no secret: a call gets what the log says that it was granted, its
//! requests are answered from the record, and nothing leaves. A file may come from a stranger; it is
//! read into a folder for temporary files, and the user's own state is not touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::event::{ComponentCard, Event, Logged};
use checkrein_contract::id::RunId;
use checkrein_contract::limits::LimitKey;
use checkrein_harness::driver::{NoWatcher, World};
use checkrein_harness::replay::{Progress, ReplayError, components, replay as execute};
use checkrein_sandbox::Secrets;
use checkrein_store::{BlobProblem, State};
use tempfile::TempDir;

use super::archive;
use crate::args::Global;
use crate::components::load_pinned;
use crate::error::{CliError, exit};
use crate::operator::Operator;
use crate::output::{self, one_line};
use crate::world::{self, SystemClock};

mod diff;
mod tell;

/// The most characters of a line of progress.
const WIDTH: usize = 240;

pub(super) async fn replay(global: &Global, what: &str) -> Result<u8, CliError> {
    let interrupted = world::interruption()?;
    tokio::select! {
        told = compared(global, what) => told,
        _ = interrupted => Ok(exit::INTERRUPTED),
    }
}

async fn compared(global: &Global, what: &str) -> Result<u8, CliError> {
    let recorded = Recorded::find(global, what)?;
    let needed = components(&recorded.events).map_err(unplayable)?;
    let operator = operator(global)?;
    below_ceiling(&recorded.events, &needed, &operator)?;
    let blobs = Arc::new(recorded.state.blobs());
    let sandbox = world::sandbox(&recorded.state, &operator, Secrets::default()).await?;
    load_pinned(&sandbox, &*blobs, &needed).await?;
    let engine = format!("wasmtime {}", checkrein_sandbox::WASMTIME);
    let world = World {
        guests: Arc::new(sandbox),
        blobs: blobs.clone(),
        clock: Arc::new(SystemClock::new()),
        watcher: Arc::new(NoWatcher),
    };
    let replayed = execute(&world, &recorded.events, &engine, progress).await.map_err(unplayable)?;
    let head = recorded.events.last().map_or(Digest::ZERO, |logged| logged.digest);
    let told = tell::Told { run: &recorded.run, head, engine: &engine, replayed: &replayed, blobs: &*blobs };
    told.tell(global.json)
}

/// A run that was recorded, with the state that its blobs are in.
struct Recorded {
    run: RunId,
    events: Vec<Logged>,
    state: State,
    /// The folder of that state, if it is one for this replay alone. Dropped last.
    _folder: Option<TempDir>,
}

impl Recorded {
    /// The file of this name, or else the run.
    fn find(global: &Global, what: &str) -> Result<Self, CliError> {
        let file = Path::new(what);
        if file.is_file() {
            let archive::Aside { state, imported, folder } = archive::aside(file, None)?;
            let events = chained(&state, &imported.run)?;
            return Ok(Recorded { run: imported.run, events, state, _folder: Some(folder) });
        }
        if what.contains('/') || file.extension().is_some_and(|extension| extension == archive::EXTENSION) {
            let hint = "name a file that `checkrein export` wrote, or a run";
            return Err(CliError::usage(format!("{what} is no file"), hint));
        }
        let state = world::existing_state(global)?;
        let run = state.resolve(what)?;
        whole(&state, &run)?;
        let events = chained(&state, &run)?;
        Ok(Recorded { run, events, state, _folder: None })
    }
}

/// What is executed again writes its outcomes to the same blobs, and would mend one that was altered
/// without a word: so that is looked for before.
fn whole(state: &State, run: &RunId) -> Result<(), CliError> {
    let verified = state.verify(run, None).map_err(archive::altered)?;
    let altered = verified.blob_faults.iter().find(|fault| fault.problem == BlobProblem::Altered);
    match altered {
        Some(fault) => {
            Err(CliError::Difference(format!("{fault}; `checkrein trace verify {run}` says more")))
        }
        None => Ok(()),
    }
}

/// The events of a run, whose chain holds.
fn chained(state: &State, run: &RunId) -> Result<Vec<Logged>, CliError> {
    state.chained_after(run, 0, Digest::ZERO).map_err(archive::altered)
}

/// A replay is held to the ceilings of an operator's file only if one is named: what stands in the
/// user's own folder is not read for the file of a stranger.
fn operator(global: &Global) -> Result<Operator, CliError> {
    match &global.operator {
        Some(file) => Operator::find(Some(file), None),
        None => Ok(Operator::default()),
    }
}

/// What a file says that its calls may use is held to the ceilings: it may come from a stranger, and
/// nobody here granted it. Times are not, for they are off.
fn below_ceiling(
    events: &[Logged],
    needed: &BTreeMap<Digest, String>,
    operator: &Operator,
) -> Result<(), CliError> {
    let cards = events.iter().flat_map(|logged| cards(&logged.event));
    let of_cards = cards.filter(|card| needed.contains_key(&card.component)).flat_map(|card| {
        let keys = LimitKey::ALL.iter().copied().filter(|key| !is_time(*key));
        keys.map(move |key| (card.name(), key, card.limits.get(key)))
    });
    let of_calls = events.iter().filter_map(|logged| match &logged.event {
        Event::BudgetReserved { call, fuel, .. } => Some((call.as_str(), LimitKey::Fuel, *fuel)),
        _ => None,
    });
    match of_cards.chain(of_calls).find(|(_, key, value)| *value > operator.ceiling.get(*key)) {
        None => Ok(()),
        Some((who, key, value)) => {
            let ceiling = key.show(operator.ceiling.get(key));
            let message =
                format!("`{who}` was given `{key}` = {}, and the ceiling here is {ceiling}", key.show(value));
            let raise = format!("`[ceiling] {key} = {}`", key.write(value));
            let hint = format!("if you trust the file, raise it: --operator FILE, with {raise} in it");
            Err(CliError::usage(message, hint))
        }
    }
}

fn is_time(key: LimitKey) -> bool {
    matches!(key, LimitKey::Cpu | LimitKey::Wall)
}

/// The skills that come into force with an event.
fn cards(event: &Event) -> &[ComponentCard] {
    match event {
        Event::RunStarted { setup } => &setup.skills,
        Event::RunResumed { in_force: Some(in_force), .. } => &in_force.skills,
        _ => &[],
    }
}

fn unplayable(error: ReplayError) -> CliError {
    match error {
        ReplayError::Dry => CliError::usage(error.to_string(), "replay a run that executed its calls"),
        // The chain holds, and yet no program of ours wrote it.
        ReplayError::Unfoldable(_) => CliError::Difference(error.to_string()),
        ReplayError::Drive(error) => error.into(),
    }
}

fn progress(progress: &Progress<'_>) {
    let line = match progress {
        Progress::Begins { subgoal, skill, number, of, .. } => {
            format!("  {:<14} {number} of {of}: {skill}", subgoal.as_str())
        }
        Progress::Ended { same: true, .. } => return,
        Progress::Ended { subgoal, .. } => format!("  {:<14} ended otherwise", subgoal.as_str()),
    };
    output::message(&one_line(&line, WIDTH));
}

#[cfg(test)]
mod tests;
