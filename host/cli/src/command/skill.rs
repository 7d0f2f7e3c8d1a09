//! `skill build`, `check`, `inspect`, `list`, `test`.

use std::path::{Path, PathBuf};

use checkrein_contract::manifest::Manifest;
use checkrein_contract::problem::Faults;
use checkrein_contract::task::Mode;
use checkrein_contract::{cases, section, units};
use checkrein_sandbox::probe::ProbeReport;
use checkrein_sandbox::{LoadReport, Sandbox, Secrets, StepResult};
use checkrein_store::State;
use serde_json::json;

use crate::args::{Global, SkillCommand};
use crate::build;
use crate::components::{self, Components};
use crate::error::{CliError, exit, fault};
use crate::output::{self, one_line};
use crate::report::escape::visible;
use crate::standing::{self, Standing};
use crate::world;

/// How many mutants `skill test` tries, always; loading tries fewer, and once.
const MUTANTS_IN_A_TEST: usize = 400;

pub(super) async fn perform(global: &Global, command: &SkillCommand) -> Result<u8, CliError> {
    match command {
        SkillCommand::Build { dirs, out } => {
            let sandbox = plain_sandbox(global, &world::open_state(global)?).await?;
            let built = build::build(&sandbox, dirs, out.as_deref()).await?;
            if global.json {
                let list: Vec<_> = built
                    .iter()
                    .map(|one| json!({ "name": one.name, "file": one.file, "changed": one.changed }))
                    .collect();
                output::json(&json!({ "schema": "checkrein/built@1", "components": list }));
            } else {
                build::tell(&built);
            }
            Ok(exit::DONE)
        }
        SkillCommand::Check { file } => check(global, file).await,
        SkillCommand::Inspect { file } => inspect(global, file),
        SkillCommand::List => list(global).await,
        SkillCommand::Test { target, mutate } => test(global, target, *mutate).await,
    }
}

/// A sandbox for what is granted nothing.
async fn plain_sandbox(global: &Global, state: &State) -> Result<Sandbox, CliError> {
    world::sandbox(state, &standing::operator(global)?, Secrets::default()).await
}

async fn check(global: &Global, file: &Path) -> Result<u8, CliError> {
    let state = world::open_state(global)?;
    let report = components::check(&plain_sandbox(global, &state).await?, file).await;
    if global.json {
        output::json(&json!({ "schema": "checkrein/check@1", "report": report }));
    } else {
        print_steps(&report);
    }
    Ok(if report.faults().is_empty() { exit::DONE } else { exit::LOAD })
}

pub(super) fn print_steps(report: &LoadReport) {
    for step in &report.steps {
        match &step.result {
            StepResult::Passed(seen) => {
                output::line(&format!("ok    {:13} {}", step.name, one_line(seen, 200)))
            }
            StepResult::Skipped(why) => {
                output::line(&format!("-     {:13} {}", step.name, one_line(why, 200)))
            }
            StepResult::Failed(faults) => {
                for fault in faults {
                    output::line(&format!("FAIL  {:13} {}", step.name, one_line(&fault.to_string(), 2000)));
                }
            }
        }
    }
}

fn inspect(global: &Global, file: &Path) -> Result<u8, CliError> {
    let bytes = std::fs::read(file).map_err(|error| CliError::unreadable(file, &error))?;
    let shown = file.display().to_string();
    let text = |name: &str| -> Result<Option<String>, CliError> {
        let found = section::find(&bytes, name).map_err(|error| {
            CliError::Load(Faults(vec![fault(&shown, "format", "a component", &error.to_string(), "")]))
        })?;
        Ok(found.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    };
    let (manifest, cases) = (text(section::MANIFEST)?, text(section::CASES)?);
    let parsed =
        manifest.as_deref().map(|text| Manifest::parse(&format!("{shown}#{}", section::MANIFEST), text));
    let parsed = parsed.transpose().map_err(CliError::Load)?;
    let digest = checkrein_contract::Digest::of(&bytes);
    if global.json {
        let object = json!({
            "schema": "checkrein/component@1",
            "file": shown,
            "digest": digest,
            "size_bytes": bytes.len(),
            "manifest": parsed,
            "cases": cases,
        });
        output::json(&object);
        return Ok(exit::DONE);
    }
    output::line(&format!("file         {}", visible(&shown)));
    output::line(&format!("digest       {digest}"));
    output::line(&format!("size         {}", units::show_bytes(bytes.len() as u64)));
    match parsed {
        Some(manifest) => print_manifest(&manifest, cases.as_deref()),
        None => output::line("manifest     none: it is not a skill; `checkrein skill build` embeds one"),
    }
    Ok(exit::DONE)
}

fn print_manifest(manifest: &Manifest, cases: Option<&str>) {
    let list = |items: &[String]| {
        if items.is_empty() { "none".to_owned() } else { one_line(&items.join(", "), 200) }
    };
    output::line(&format!("{:12} {} {}", manifest.kind.to_string(), manifest.name, manifest.version));
    output::line(&format!("description  {}", one_line(&manifest.description, 400)));
    output::line(&format!("effects      {}", json!(manifest.effects).as_str().unwrap_or_default()));
    output::line(&format!("facts        {}", list(&manifest.facts)));
    output::line(&format!("evidence     {}", list(&manifest.evidence)));
    output::line(&format!("terms        {}", list(&manifest.terms)));
    output::line(&format!(
        "network      {}",
        list(&manifest.capabilities.network.iter().map(ToString::to_string).collect::<Vec<_>>())
    ));
    let limits: Vec<String> = manifest
        .capabilities
        .limits
        .0
        .iter()
        .map(|(key, value)| format!("{key} {}", key.show(*value)))
        .collect();
    output::line(&format!("limits       {}", list(&limits)));
    let count = cases.map_or(0, |text| text.matches("[[case]]").count());
    output::line(&format!("cases        {count}"));
}

async fn list(global: &Global) -> Result<u8, CliError> {
    let standing = Standing::find(global)?;
    let state = world::open_state(global)?;
    let sandbox = world::sandbox_of(&state, &standing).await?;
    let components = Components::load(&sandbox, &standing, Mode::ReadWrite).await?;
    if global.json {
        let list: Vec<_> = components
            .files
            .iter()
            .map(|(file, loaded)| json!({ "file": file, "digest": loaded.digest, "manifest": loaded.manifest, "size_bytes": loaded.bytes }))
            .collect();
        output::json(
            &json!({ "schema": "checkrein/components@1", "components": list, "bindings": components.bindings }),
        );
        return Ok(exit::DONE);
    }
    for (_, loaded) in &components.files {
        let manifest = &loaded.manifest;
        output::line(&format!(
            "{:9} {:24} {:8} {}  {}",
            manifest.kind.to_string(),
            manifest.name,
            manifest.version,
            loaded.digest.short(),
            one_line(&manifest.description, 80)
        ));
    }
    for binding in &components.bindings {
        let on: Vec<&str> = binding.on.iter().chain(&binding.on_facts).map(String::as_str).collect();
        output::line(&visible(&format!("{} verifies {}", binding.verifier, on.join(", "))));
    }
    Ok(exit::DONE)
}

async fn test(global: &Global, target: &Path, mutate: bool) -> Result<u8, CliError> {
    let state = world::open_state(global)?;
    let sandbox = plain_sandbox(global, &state).await?;
    let file = component_of(&sandbox, target).await?;
    let mut report = components::check(&sandbox, file.as_path()).await;
    if report.loaded.is_some() {
        // What it was asked when it loaded, perhaps long ago, was less.
        report.probe = Some(trial(&sandbox, &file).await?);
    }
    if global.json {
        output::json(&json!({ "schema": "checkrein/test@1", "report": report }));
    } else {
        print_failures(&report);
        if let Some(trial) = &report.probe {
            print_trial(trial, mutate);
        }
    }
    Ok(verdict(&report))
}

/// A case that fails is a difference; whatever else is wrong keeps it from being tested at all.
fn verdict(report: &LoadReport) -> u8 {
    let failing = report.probe.as_ref().is_some_and(|trial| trial.passed() < trial.cases.len());
    match (failing, &report.loaded) {
        (true, _) => exit::DIFFERENCE,
        (false, None) => exit::LOAD,
        (false, Some(_)) => exit::DONE,
    }
}

async fn trial(sandbox: &Sandbox, file: &Path) -> Result<ProbeReport, CliError> {
    let loaded = sandbox.load(file).await.map_err(|faults| CliError::Load(Faults(faults)))?;
    let cases = cases::parse(&format!("{}#{}", file.display(), section::CASES), &loaded.cases)
        .map_err(CliError::Load)?;
    let report = sandbox.probe(&loaded.digest, cases, MUTANTS_IN_A_TEST).await;
    report.map_err(|error| CliError::Ours(error.to_string()))
}

fn print_failures(report: &LoadReport) {
    for fault in report.faults() {
        output::line(&format!("FAIL  {}", one_line(&fault.to_string(), 2000)));
    }
}

async fn component_of(sandbox: &Sandbox, target: &Path) -> Result<PathBuf, CliError> {
    if !target.is_dir() {
        return Ok(target.to_owned());
    }
    let built = build::build(sandbox, &[target.to_owned()], None).await?;
    build::tell(&built);
    let first = built.into_iter().next().map(|built| built.file);
    first.ok_or_else(|| CliError::Ours("nothing was built".to_owned()))
}

fn print_trial(trial: &ProbeReport, mutate: bool) {
    for case in &trial.cases {
        match &case.difference {
            None => output::line(&format!("ok    case  {}", one_line(&case.name, 100))),
            Some(difference) => output::line(&format!(
                "FAIL  case  {}: {}",
                one_line(&case.name, 100),
                one_line(difference, 2000)
            )),
        }
    }
    let share = |caught: usize, of: usize| if of == 0 { 0.0 } else { 100.0 * caught as f64 / of as f64 };
    let percent = share(trial.caught, trial.mutants);
    output::line(&format!(
        "{} of {} changed outcomes rejected by its verification ({percent:.0} %)",
        trial.caught, trial.mutants
    ));
    if mutate {
        for (kind, of) in &trial.by_kind {
            let percent = share(of.caught, of.mutants);
            output::line(&format!(
                "  {:8} {:3} of {:3} ({percent:.0} %)",
                kind.as_str(),
                of.caught,
                of.mutants
            ));
        }
        for survivor in &trial.survivors {
            let text = format!("{}, in case {}: {}", survivor.description, survivor.case, survivor.because);
            output::line(&format!("  not caught, {}: {}", survivor.kind.as_str(), one_line(&text, 300)));
        }
    } else if trial.caught < trial.mutants {
        output::message("hint: --mutate shows which got through");
    }
}
