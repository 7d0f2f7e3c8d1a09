//! `run` and `demo`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::digest::{DEPTH_MAX, depth};
use checkrein_contract::event::{Person, Setup};
use checkrein_contract::id::{RunId, SubgoalId, is_segment};
use checkrein_contract::port::{Blobs, Guests, StorageError};
use checkrein_contract::problem::Faults;
use checkrein_contract::task::InputFile;
use checkrein_harness::Driver;
use checkrein_harness::driver::{Clock, World};
use checkrein_sandbox::{Sandbox, Secrets};
use checkrein_store::{EventLog, FileBlobs, State};
use serde_json::json;

use super::ending::{drive, finish};
use crate::args::{Global, RunArgs};
use crate::components::Components;
use crate::config;
use crate::dry;
use crate::error::{CliError, both, fault};
use crate::output;
use crate::progress::Progress;
use crate::report::escape::visible;
use crate::report::{self, RunView};
use crate::standing::{self, Standing};
use crate::task_file::{DryAnswer, TaskFile};
use crate::world::{self, SystemClock};

/// `run` of the pasilla task, with its skills built if their sources are here.
pub(super) async fn demo(global: &Global, args: &RunArgs) -> Result<u8, CliError> {
    let (global, task) = of_demo(global)?;
    let operator = standing::operator(&global)?;
    let sandbox = world::sandbox(&world::open_state(&global)?, &operator, Secrets::default()).await?;
    let folders = crate::build::workspace_skills(&root().join("skills"))?;
    crate::build::build(&sandbox, &folders, None).await?;
    run(&global, &short(&task), args).await
}

/// The flags of the demo with what stands for those that were not given, and its task.
pub(super) fn of_demo(global: &Global) -> Result<(Global, PathBuf), CliError> {
    let folder = root().join("tests/tasks/pasilla");
    let task = folder.join("task.toml");
    if !task.is_file() {
        let hint = "run it in a checkout: `skills/setup && cargo run --release -- demo`";
        return Err(CliError::usage("the demo needs its task and data, which are not here", hint));
    }
    let state = match &global.state {
        Some(state) => state.clone(),
        None => config::current_folder()?.join(config::STATE),
    };
    let config = global.config.clone().unwrap_or_else(|| short(&folder.join(config::FILE)));
    Ok((Global { config: Some(config), state: Some(state), ..global.clone() }, task))
}

/// The checkout that this program was built in.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path as it looks from the current folder, where that is shorter.
pub(super) fn short(path: &Path) -> PathBuf {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let here = config::current_folder().ok().and_then(|here| here.canonicalize().ok());
    here.and_then(|here| full.strip_prefix(here).ok().map(Path::to_owned)).unwrap_or(full)
}

pub(super) async fn run(global: &Global, file: &Path, args: &RunArgs) -> Result<u8, CliError> {
    let (standing, task) = both(Standing::of(global, args.dry_run), TaskFile::read(file, &args.set))?;
    if standing.config.file.is_none() {
        let beside = file.parent().unwrap_or(Path::new(".")).join(config::FILE);
        let hint = if beside.is_file() {
            format!("use the one beside the task: --config {}", beside.display())
        } else {
            "a `checkrein.toml` says which skills to load".to_owned()
        };
        return Err(CliError::usage(
            "no checkrein.toml in this folder or above it, so there are no skills",
            hint,
        ));
    }
    let state = world::open_state(global)?;
    let sandbox = world::sandbox_of(&state, &standing).await?;
    let components = Components::load(&sandbox, &standing, task.task.mode).await?;
    check_skills(file, &task, &components)?;
    let person = if args.no_person { Person::Never } else { standing.config.person };
    let how = How {
        planner: args.planner.clone(),
        person,
        apart: standing.operator.process,
        dry: args.dry_run,
        id: args.run_id.as_deref().map(RunId::from),
    };
    let run = start(&state, sandbox, task, components, how).await?;
    finish(global, &state, &run)
}

/// How a run is made.
pub(super) struct How {
    /// Who proposes.
    pub(super) planner: String,
    /// What may wait for a person.
    pub(super) person: Person,
    /// Whether verifications run in a process of their own.
    pub(super) apart: bool,
    /// Whether nothing leaves.
    pub(super) dry: bool,
    /// Its id, where somebody has to know it beforehand.
    pub(super) id: Option<RunId>,
}

/// The skills that the task names are loaded.
fn check_skills(file: &Path, task: &TaskFile, components: &Components) -> Result<(), CliError> {
    let known: Vec<&str> = components.skills.iter().map(|card| card.name()).collect();
    let named = task.task.subgoals().filter_map(|(_, spec)| Some((spec, spec.skill.as_deref()?)));
    let faults: Vec<_> = named
        .filter(|(_, skill)| !known.contains(skill))
        .map(|(spec, skill)| {
            let mend = checkrein_contract::document::nearest(skill, &known)
                .map(|near| format!("did you mean `{near}`?"));
            let expected = format!("a skill that is loaded ({})", known.join(", "));
            let found = format!("`{skill}` in the subgoal `{}`", spec.id);
            fault(&file.display().to_string(), "semantics", &expected, &found, &mend.unwrap_or_default())
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(CliError::Input(Faults(faults))) }
}

/// Copies inputs and components to blobs, and drives a run to its end, or to where it stops.
pub(super) async fn start(
    state: &State,
    sandbox: Sandbox,
    file: TaskFile,
    components: Components,
    how: How,
) -> Result<RunId, CliError> {
    check_depth(&file, &components)?;
    let blobs = state.blobs();
    keep_components(&blobs, &components)?;
    let TaskFile { mut task, inputs, dry: answers } = file;
    for (name, path) in &inputs {
        let mut reader = std::fs::File::open(path).map_err(|error| CliError::unreadable(path, &error))?;
        let (digest, bytes) = blobs.put_from(&mut reader)?;
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        task.inputs.push(InputFile { name: name.clone(), file, digest, bytes });
    }
    let clock = SystemClock::new();
    let (run, log) = new_run(state, &clock, how.id)?;
    let setup = Setup {
        run: run.clone(),
        task,
        skills: components.skills,
        verifiers: components.verifiers,
        bindings: components.bindings,
        planner: how.planner,
        engine: engine(),
        clock: clock.now(),
        apart: how.apart,
        person: how.person,
        dry: how.dry,
        proposal_tokens: 0,
    };
    output::message(&format!("run {run}: {}", output::one_line(&setup.task.goal, 120)));
    if how.dry {
        // Whoever resumes it answers the same.
        let answers = serde_json::to_vec(&answers).map_err(|error| CliError::Ours(error.to_string()))?;
        write_below(&state.run_dir(&run)?, DRY, &answers)?;
    }
    let guests = guests(state, sandbox, &setup, answers)?;
    let world =
        World { guests, blobs: Arc::new(blobs), clock: Arc::new(clock), watcher: Arc::new(Progress::new()) };
    // Before the first event: from then on an interruption leaves a run that can be looked at.
    let stop = world::interruption()?;
    drive(Driver::start(world, log, setup)?, stop).await?;
    Ok(run)
}

/// The file, beside the reports of a dry run, with what the task says its executors answer.
pub(super) const DRY: &str = "dry.json";

/// The engine and its version: fuel depends on it.
pub(super) fn engine() -> String {
    format!("wasmtime {}", checkrein_sandbox::WASMTIME)
}

/// What runs components: the sandbox, or, in a dry run, what answers in the place of executors.
pub(super) fn guests(
    state: &State,
    sandbox: Sandbox,
    setup: &Setup,
    answers: BTreeMap<SubgoalId, Vec<DryAnswer>>,
) -> Result<Arc<dyn Guests>, CliError> {
    if setup.dry { dry::guests(state, sandbox, setup, answers) } else { Ok(Arc::new(sandbox)) }
}

/// A run that is resumed, replayed or exported has its components with it, whatever becomes of their
/// files.
fn keep_components(blobs: &FileBlobs, components: &Components) -> Result<(), CliError> {
    for (path, loaded) in &components.files {
        // Most are there since the last run, and are not written again.
        if blobs.get(&loaded.digest).is_ok() {
            continue;
        }
        let mut file = std::fs::File::open(path).map_err(|error| CliError::unreadable(path, &error))?;
        let (digest, _) = blobs.put_from(&mut file)?;
        if digest != loaded.digest {
            let found = format!("{digest}: it was changed while it was loaded");
            let expected = format!("the component {}", loaded.digest);
            let fault = fault(&path.display().to_string(), "file", &expected, &found, "run it again");
            return Err(CliError::Load(Faults(vec![fault])));
        }
    }
    Ok(())
}

/// What goes into the log can be read back.
fn check_depth(file: &TaskFile, components: &Components) -> Result<(), CliError> {
    let args =
        file.task.subgoals().map(|(_, spec)| (format!("the arguments of `{}`", spec.id), json!(spec.args)));
    let settings = components
        .skills
        .iter()
        .map(|card| (format!("the settings of `{}`", card.name()), card.settings.clone()));
    let parameters = [("the parameters".to_owned(), json!(file.task.parameters))];
    let too_deep = args.chain(settings).chain(parameters).find(|(_, value)| depth(value) > DEPTH_MAX);
    match too_deep {
        None => Ok(()),
        Some((what, _)) => Err(CliError::usage(
            format!("{what} are nested deeper than {DEPTH_MAX} levels"),
            "make them flatter",
        )),
    }
}

/// An id that no run in this state has, and its log.
fn new_run(state: &State, clock: &SystemClock, id: Option<RunId>) -> Result<(RunId, EventLog), CliError> {
    let mut wanted = id.filter(|id| is_segment(id.as_str()));
    loop {
        let run = wanted.take().unwrap_or_else(|| world::new_run_id(clock.now()));
        let log = state.lease(&run)?;
        if log.is_empty() {
            return Ok((run, log));
        }
    }
}

/// What the log says of a run, if it is what was written: what is shown stands beside its head.
pub(super) fn view_of(state: &State, run: &RunId) -> Result<RunView, CliError> {
    RunView::fold(&state.chained_after(run, 0, Digest::ZERO)?, &state.blobs())
        .map_err(|error| CliError::Storage(format!("{error:#}")))
}

/// The view with the word of the run's export, if there is one that can be read.
pub(super) fn with_export(state: &State, view: RunView) -> RunView {
    match view.clone().with_export(state.dir()) {
        Ok(view) => view,
        Err(error) => {
            output::message(&visible(&format!("the report names no export of the run: {error:#}")));
            view
        }
    }
}

/// Writes `report.md` and `report.html`, and gives the path of the latter.
pub(super) fn write_reports(state: &State, view: &RunView) -> Result<PathBuf, CliError> {
    let dir = state.run_dir(&view.run)?;
    write_below(&dir, "report.md", report::markdown(view).as_bytes())?;
    for (name, bytes) in report::figures(view) {
        write_below(&dir, &name, bytes)?;
    }
    write_below(&dir, "report.html", report::html(view).as_bytes())
}

/// Writes a file below a folder, aside and renamed. A state folder may come from a stranger: a
/// link in it is not followed, wherever it leads.
pub(super) fn write_below(dir: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, CliError> {
    let storage = |path: &Path, error: std::io::Error| CliError::from(StorageError::of_io(path, &error));
    let file = dir.join(name);
    let parent = file.parent().unwrap_or(dir).to_owned();
    std::fs::create_dir_all(&parent).map_err(|error| storage(&parent, error))?;
    let mut folder = parent.as_path();
    loop {
        let metadata = std::fs::symlink_metadata(folder).map_err(|error| storage(folder, error))?;
        if metadata.is_symlink() {
            return Err(CliError::Storage(format!(
                "{} is a link, and reports are not written through one",
                folder.display()
            )));
        }
        match folder.parent() {
            Some(above) if folder != dir => folder = above,
            _ => break,
        }
    }
    let mut aside = tempfile::NamedTempFile::new_in(&parent).map_err(|error| storage(&file, error))?;
    aside.write_all(bytes).map_err(|error| storage(&file, error))?;
    aside.persist(&file).map_err(|error| storage(&file, error.error))?;
    Ok(file)
}
