//! `resume`: a run that stopped, that waits for a person, or whose process ended goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::event::{ComponentCard, InForce, RunStatus, Setup};
use checkrein_contract::id::{RunId, SubgoalId};
use checkrein_contract::port::StorageError;
use checkrein_contract::problem::{Fault, Faults};
use checkrein_harness::driver::World;
use checkrein_harness::{Driver, Resumed, State, ask, due};
use checkrein_sandbox::Loaded;
use checkrein_store::{Kept, State as Store, StoreError};

use super::archive;
use super::ending::{drive, finish, run_json};
use super::run;
use crate::args::Global;
use crate::components;
use crate::error::{CliError, exit, fault};
use crate::grants;
use crate::output;
use crate::pins::{self, Compared};
use crate::progress::Progress;
use crate::report::{self, escape::visible};
use crate::standing::Standing;
use crate::task_file::DryAnswer;
use crate::world::{self, SystemClock};

/// The most characters of a line that tells a difference.
const WIDTH: usize = 240;

pub(super) async fn resume(global: &Global, wanted: &str, accept_config: bool) -> Result<u8, CliError> {
    let store = world::existing_state(global)?;
    let run = store.resolve(wanted)?;
    let (state, seq) = load_at(&store, &run)?;
    let setup = setup_of(&run, &state)?;
    if let Some(driving) = store.drives(&run)? {
        return Err(StoreError::Driven { run, holder: driving.holder }.into());
    }
    if let Some(code) = nothing_to_do(global, &store, &run, &state, accept_config)? {
        return Ok(code);
    }
    let standing = Standing::of(global, setup.dry)?;
    if standing.config.file.is_none() {
        return Err(CliError::usage(
            "no checkrein.toml in this folder or above it, so nothing would be granted to the run's components",
            "name the one that it began with: --config FILE",
        ));
    }
    check_apart(&setup, &standing)?;
    check_folders(&setup, &standing)?;
    let sandbox = world::sandbox_of(&store, &standing).await?;
    let loaded = components::load_pinned(&sandbox, &store.blobs(), &pinned(&setup)).await?;
    check_manifests(&setup, &loaded)?;
    let answers = if setup.dry { dry_answers(&store, &run)? } else { BTreeMap::new() };
    let guests = run::guests(&store, sandbox, &setup, answers)?;
    let log = store.lease(&run)?;
    // Only now does nobody else append. What another process did while the components were loaded is
    // not done again.
    let state = if log.len() == seq { state } else { load(&store, &run)? };
    let imported = store.run_dir(&run)?.join(archive::IMPORTED);
    let from_elsewhere = std::fs::symlink_metadata(&imported).is_ok();
    let in_force = in_force(&setup_of(&run, &state)?, &standing, accept_config, from_elsewhere);
    let accepts = accept_config && in_force.is_some();
    if let Some(code) = nothing_to_do(global, &store, &run, &state, accepts)? {
        return Ok(code);
    }
    output::message(&format!("run {run} goes on: {}", output::one_line(&setup.task.goal, 120)));
    let (clock, watcher) = (Arc::new(SystemClock::new()), Arc::new(Progress::new()));
    let world = World { guests, blobs: Arc::new(store.blobs()), clock, watcher };
    let stop = world::interruption()?;
    let resumed = Resumed { engine: run::engine(), in_force };
    let driver = Driver::resume(world, log, state, resumed)?;
    if from_elsewhere && accept_config {
        std::fs::remove_file(&imported).map_err(|error| StorageError::of_io(&imported, &error))?;
    }
    drive(driver, stop).await?;
    finish(global, &store, &run)
}

/// What the log of a run folds to: from its snapshot on, if there is one that can be used.
///
/// # Errors
///
/// If the log cannot be read, is not what was written, or is none of this program.
pub(super) fn load(store: &Store, run: &RunId) -> Result<State, CliError> {
    load_at(store, run).map(|(state, _)| state)
}

/// That, and the position of the last event.
fn load_at(store: &Store, run: &RunId) -> Result<(State, u64), CliError> {
    let (mut state, mut seq, digest) = match store.snapshot(run)? {
        Kept::None => (State::default(), 0, Digest::ZERO),
        Kept::Damaged(why) => {
            let why = visible(&why);
            output::message(&format!("the snapshot of {run} is not used, and the log is read whole: {why}"));
            (State::default(), 0, Digest::ZERO)
        }
        Kept::At { seq, digest, folded } => match State::of_snapshot(&folded) {
            Some(state) => (state, seq, digest),
            // Of another version: that is no fault.
            None => (State::default(), 0, Digest::ZERO),
        },
    };
    for logged in store.chained_after(run, seq, digest)? {
        state
            .apply(logged.at, &logged.event)
            .map_err(|error| CliError::Storage(format!("event {} of run {run}: {error}", logged.seq)))?;
        seq = logged.seq;
    }
    Ok((state, seq))
}

fn setup_of(run: &RunId, state: &State) -> Result<Setup, CliError> {
    state.setup.as_deref().cloned().ok_or_else(|| {
        CliError::Storage(format!(
            "the log of run {run} has no beginning; `checkrein trace verify {run}` says more"
        ))
    })
}

/// A wall that a run began with stands to its end: its report says so.
fn check_apart(setup: &Setup, standing: &Standing) -> Result<(), CliError> {
    if setup.apart && !standing.operator.process {
        return Err(CliError::usage(
            format!(
                "run {} began with verifications in a process of their own, and now they would not be",
                setup.run
            ),
            "set `[gateway] process = true` in the operator's file to go on with it",
        ));
    }
    Ok(())
}

/// The folders that the components are granted can be given. What else a grant says may be meant for
/// a newer component than the run's.
fn check_folders(setup: &Setup, standing: &Standing) -> Result<(), CliError> {
    let Standing { config, protected, .. } = standing;
    let file = config.place();
    let of = |card: &ComponentCard| match config.grants.get(card.name()) {
        Some(grant) => grants::folder_faults(&file, grant, &card.manifest, protected),
        None => Vec::new(),
    };
    let faults: Vec<Fault> = setup.skills.iter().chain(&setup.verifiers).flat_map(of).collect();
    if faults.is_empty() { Ok(()) } else { Err(CliError::Input(Faults(faults))) }
}

/// A run that has ended, or that waits for an answer which has not come, is left as it is; one that
/// waits goes on where what its components may do is `accepted` anew.
fn nothing_to_do(
    global: &Global,
    store: &Store,
    run: &RunId,
    state: &State,
    accepted: bool,
) -> Result<Option<u8>, CliError> {
    let letters = store.letters(run, state.letters)?;
    if let Some(status) = state.ended {
        // A letter that came too late, such as `cancel`, opens nothing again.
        if letters.iter().any(|letter| ask::refusal(state, &letter.message).is_none()) {
            return Ok(None);
        }
        output::message(&format!(
            "run {run} has ended; `checkrein amend {run}` changes its task and opens it again"
        ));
        if global.json {
            output::json(&run_json(&run::view_of(store, run)?));
        }
        let code = if status == RunStatus::Done { exit::DONE } else { exit::NOT_REACHED };
        return Ok(Some(code));
    }
    if accepted || !letters.is_empty() {
        return Ok(None);
    }
    let mut driven = state.clone();
    driven.stopped = None;
    let in_hand = driven.open.iter().any(|id| is_in_hand(&driven, id));
    if in_hand || !due(&driven).is_empty() || driven.open_asks().next().is_none() {
        return Ok(None);
    }
    // It would stop at once, with two more events and nothing done.
    if state.stopped.is_none() {
        return Ok(None);
    }
    let view = run::view_of(store, run)?;
    if global.json {
        output::json(&run_json(&view));
    } else {
        output::line(report::ask_pages(&view).trim_end());
    }
    Ok(Some(exit::WAITS))
}

/// Whether something of the subgoal follows as soon as the run is driven.
fn is_in_hand(state: &State, id: &SubgoalId) -> bool {
    use checkrein_harness::state::Phase;
    matches!(state.subgoal(id).phase, Phase::Unknown(_) | Phase::Checking(_) | Phase::Quarantined(_))
}

/// What the log says of a component stands in the component: grants are given by its name, and held
/// against its manifest.
fn check_manifests(setup: &Setup, loaded: &[Loaded]) -> Result<(), CliError> {
    let cards = setup.skills.iter().chain(&setup.verifiers);
    let other = |card: &&ComponentCard| {
        loaded.iter().any(|one| one.digest == card.component && one.manifest != card.manifest)
    };
    let faults: Vec<Fault> = cards
        .filter(other)
        .map(|card| {
            let name = format!("{} ({})", card.name(), card.component.short());
            let found = "another: the log was not written by this program, or by another version of it";
            fault(&name, "manifest", "the manifest that the log of the run has", found, "begin a new run")
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(CliError::load(faults)) }
}

/// The components that the run began with.
fn pinned(setup: &Setup) -> BTreeMap<Digest, String> {
    let cards = setup.skills.iter().chain(&setup.verifiers);
    cards.map(|card| (card.component, card.name().to_owned())).collect()
}

/// What the components may do from here on, where that is another thing than before; said a line
/// each.
fn in_force(
    setup: &Setup,
    standing: &Standing,
    accept_config: bool,
    from_elsewhere: bool,
) -> Option<Box<InForce>> {
    let logged = InForce {
        skills: setup.skills.clone(),
        verifiers: setup.verifiers.clone(),
        bindings: setup.bindings.clone(),
    };
    // What was granted elsewhere is granted by nobody here.
    let before = if from_elsewhere { pins::granted_nothing(&logged) } else { logged.clone() };
    let mode = setup.task.mode;
    let now =
        |cards: &[ComponentCard]| cards.iter().map(|card| components::again(standing, card, mode)).collect();
    let now = InForce {
        skills: now(&setup.skills),
        verifiers: now(&setup.verifiers),
        bindings: components::bound(&standing.config),
    };
    let Compared { narrower, wider, apart, narrowed } = pins::compare(&before, &now);
    let word = if accept_config { "in force" } else { "not in force" };
    let told = [
        ("narrower than before, in force".to_owned(), &narrower),
        (format!("wider than before, {word}"), &wider),
        ("not in force, for runs that begin from now on".to_owned(), &apart),
    ];
    for (how, lines) in &told {
        for line in *lines {
            output::message(&output::one_line(&format!("{how}: {line}"), WIDTH));
        }
    }
    if !wider.is_empty() && !accept_config {
        output::message("hint: --accept-config takes what is wider");
    }
    let chosen = if accept_config { pins::taken(&before, &now) } else { narrowed };
    (chosen != logged).then(|| Box::new(chosen))
}

/// What the task says that the executors of a dry run answer.
fn dry_answers(store: &Store, run: &RunId) -> Result<BTreeMap<SubgoalId, Vec<DryAnswer>>, CliError> {
    let file = store.run_dir(run)?.join(run::DRY);
    let bytes = std::fs::read(&file).map_err(|error| StorageError::of_io(&file, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let what = format!("{}: these are no answers of a dry run: {error}", file.display());
        CliError::usage(what, "begin it anew: checkrein run TASK --dry-run")
    })
}
