//! Runs attacks, and says what stopped each and what it left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::{LimitKey, Limits, Used};
use checkrein_contract::manifest::Manifest;
use checkrein_contract::record::Record;
use serde::Serialize;
use tempfile::TempDir;
use wasmtime::component::Component as Compiled;

use super::asked::{Asked, Ended, Seen, ask, setting};
use super::guest::{CASES, Guest, MANIFEST, embedded};
use super::measure::{Held, forget_peak};
use super::{Attack, Body, Expected, Group, Told};
use crate::bindings::skill::SkillPre;
use crate::component::{Component, Pre};
use crate::load::{LoadReport, Source, StepResult};
use crate::sandbox::Sandbox;
use crate::scratch::{self, Kind};
use crate::text::{excerpt, one_line};
use crate::worker::compiler::NoCode;

/// How long after its limit, or at all, an attack may still run before its wall counts as broken:
/// long, since the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a bomb is compiled: what is honest and as small takes a fraction of it.
const COMPILE: Duration = Duration::from_secs(2);

/// What came of an attack.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What it was after.
    pub group: Group,
    /// What it does.
    pub name: &'static str,
    /// What had to stop it.
    pub expected: String,
    /// What did.
    pub wall: String,
    /// Whether that is what had to, in time.
    pub held: bool,
    /// How long it ran, compiling not counted unless loading is what is attacked.
    pub stopped_ms: u64,
    /// What it left behind: descriptors, threads, processes, folders, memory.
    pub leaked: Vec<String>,
    /// Whether this system tells what is left behind.
    pub measured: bool,
    /// What it used.
    pub used: Used,
}

impl Report {
    /// Whether the wall held and nothing stayed.
    pub fn passed(&self) -> bool {
        self.held && self.leaked.is_empty()
    }
}

/// Runs attacks against a sandbox, one after the other.
pub struct Runner {
    sandbox: Sandbox,
    limits: Limits,
    /// What every component sees, so that there is something to reach beyond.
    input: TempDir,
    artifacts: TempDir,
}

impl Runner {
    /// A runner for these limits. Honest calls go first, so that what the sandbox makes once, such
    /// as its threads, is there before anything is counted.
    ///
    /// # Errors
    ///
    /// If an honest component does not run here: then attacks would show nothing.
    pub async fn start(sandbox: &Sandbox, limits: &Limits) -> Result<Self, String> {
        let folder = || scratch::folder(&sandbox.0.scratch, Kind::Case).map_err(|error| error.to_string());
        let (input, artifacts) = (folder()?, folder()?);
        std::fs::write(input.path().join("given"), "given").map_err(|error| error.to_string())?;
        let runner = Runner { sandbox: sandbox.clone(), limits: limits.clone(), input, artifacts };
        let loaded = runner.sandbox.check(honest()?).await;
        if let Some((stage, found)) = failed(&loaded) {
            return Err(format!("an honest component does not load, at `{stage}`: {found}"));
        }
        for asked in [Asked::Assess, Asked::Execute, Asked::Verify, Asked::Recover] {
            let attack = Attack::part(Group::Time, "nothing", asked, Expected::Nothing, Guest::default);
            let seen = runner.call(&attack, asked, Guest::default).await?.0;
            if !matches!(seen.end, Ended::Returned) {
                return Err(format!("an honest component does not run: {:?}", seen.end));
            }
        }
        Ok(runner)
    }

    /// Runs one attack. It must be awaited on a tokio runtime with time, and nothing else should
    /// run meanwhile: what others take would be counted.
    pub async fn run(&self, attack: &Attack) -> Report {
        let scratch = self.sandbox.0.scratch.as_path();
        let before = forget_peak().and_then(|()| Held::now(scratch));
        let outcome = self.attempt(attack).await;
        // Workers are kept on purpose; one that does not end when it is told to is left over.
        self.sandbox.dismiss_workers();
        let mut leaked = Vec::new();
        if let Ok(before) = &before {
            let memories = attack.limits(&self.limits).get(LimitKey::Memory);
            match (before.peak(memories), before.left_over(scratch).await) {
                (Ok(peak), Ok(left)) => leaked.extend(left.into_iter().chain(peak)),
                (Err(error), _) | (_, Err(error)) => leaked.push(format!("unknown: {error}")),
            }
        }
        let Outcome { wall, held, took, used } = outcome.unwrap_or_else(|why| Outcome {
            wall: format!("the attack could not be tried: {why}"),
            held: false,
            took: Duration::ZERO,
            used: Used::default(),
        });
        Report {
            group: attack.group,
            name: attack.name,
            expected: attack.expected.to_string(),
            wall,
            held,
            stopped_ms: took.as_millis() as u64,
            leaked,
            measured: before.is_ok(),
            used,
        }
    }

    async fn attempt(&self, attack: &Attack) -> Result<Outcome, String> {
        match attack.body {
            Body::Part(asked, guest) => {
                let (seen, took) = self.call(attack, asked, guest).await?;
                Ok(self.judge(attack, &seen, took))
            }
            Body::Load(guest) => {
                let bytes = guest().try_assemble().map_err(|error| error.to_string())?;
                let bytes = embedded(&bytes, MANIFEST, CASES).map_err(|error| error.to_string())?;
                Ok(self.load(attack, bytes).await)
            }
            Body::File(bytes) => Ok(self.load(attack, bytes()?).await),
            Body::Bomb(guest) => {
                let bytes = guest().try_assemble().map_err(|error| error.to_string())?;
                self.compile_apart(attack, bytes).await
            }
        }
    }

    /// Has a component compiled as loading does, in a process of its own, for a short time.
    async fn compile_apart(&self, attack: &Attack, bytes: Vec<u8>) -> Result<Outcome, String> {
        let mut compiler = self.sandbox.0.compiler.clone().ok_or(
            "components are compiled in this process here, and nothing would end the compiler; \
             give the sandbox workers",
        )?;
        compiler.wall = COMPILE;
        let began = Instant::now();
        let compiled = self.sandbox.on_host_threads(async move { compiler.compile(bytes).await }).await?;
        let took = began.elapsed();
        let stopped = match compiled {
            Ok(_) => Err("nothing: it was compiled".to_owned()),
            Err(NoCode::Time(_)) => Ok("time"),
            Err(NoCode::Memory) => Ok("memory"),
            Err(other) => Err(format!("compiling, {}", one_line(&excerpt(&other.to_string())))),
        };
        let held = matches!(stopped, Ok(what) if attack.expected == Expected::Compile(what));
        let wall = match stopped {
            Ok(what) => format!("compiling, `{what}`"),
            Err(other) => other,
        };
        Ok(Outcome { wall, held: held && took < PATIENCE, took, used: Used::default() })
    }

    /// Calls a part of a component that was never loaded: loading would not let many of them in.
    async fn call(
        &self,
        attack: &Attack,
        asked: Asked,
        guest: fn() -> Guest,
    ) -> Result<(Seen, Duration), String> {
        let bytes = guest().try_assemble().map_err(|error| error.to_string())?;
        let component = compile(&self.sandbox, bytes).await?;
        let digest = component.digest;
        self.sandbox.register(component);
        let began = Instant::now();
        let mut setting = setting(digest, attack.limits(&self.limits), attack.granted.clone());
        setting.input = Some(self.input.path().to_owned());
        setting.artifacts = Some(self.artifacts.path().to_owned());
        let seen = ask(&self.sandbox, asked, setting).await;
        let took = began.elapsed();
        self.sandbox.forget(&digest);
        Ok((seen, took))
    }

    async fn load(&self, attack: &Attack, bytes: Vec<u8>) -> Outcome {
        let began = Instant::now();
        let report = self.sandbox.check(Source::Bytes { name: attack.slug(), bytes }).await;
        let took = began.elapsed();
        let (wall, held) = match failed(&report) {
            Some((stage, found)) => {
                let wall = format!("loading, at `{stage}`");
                let held = attack.expected == Expected::Load(stage);
                (if held { wall } else { format!("{wall}: {found}") }, held)
            }
            None => ("nothing: it loaded".to_owned(), false),
        };
        Outcome { wall, held: held && took < PATIENCE, took, used: Used::default() }
    }

    fn judge(&self, attack: &Attack, seen: &Seen, took: Duration) -> Outcome {
        let limits = attack.limits(&self.limits);
        // Cut to the limit, and a line that says so.
        let log_holds = seen.log.len() as u64 <= limits.get(LimitKey::Log) + 100;
        // What is honest has its limits alone.
        let in_time = took < PATIENCE || attack.expected == Expected::Nothing;
        let as_told = was_told(attack, seen);
        let held = log_holds && in_time && as_told && is_expected(attack, seen, &self.limits);
        let late = if in_time { "" } else { ", too late" };
        let otherwise = if as_told { String::new() } else { otherwise(seen) };
        Outcome { wall: format!("{}{late}{otherwise}", told(seen)), held, took, used: seen.used }
    }
}

/// Whether what had to stop an attack did, where limits of `base` are configured.
pub(super) fn is_expected(attack: &Attack, seen: &Seen, base: &Limits) -> bool {
    match (attack.expected, &seen.end) {
        (Expected::Limit(LimitKey::Fuel), Ended::Limit(hit)) if hit.limit == "fuel" => {
            seen.used.fuel == attack.limits(base).get(LimitKey::Fuel)
        }
        (Expected::Limit(key), Ended::Limit(hit)) => {
            hit.limit == key.as_str() || is_first_by_configuration(attack, key, &hit.limit, base)
        }
        (Expected::Denied(wall), Ended::Returned | Ended::Failed | Ended::Answer(_)) => {
            denied(&seen.record, wall)
        }
        (Expected::Answer(rule), Ended::Answer(by)) => rule == by,
        (Expected::Trap(what), Ended::Trap(message)) => message.contains(what),
        (Expected::Nothing, Ended::Returned) => true,
        _ => false,
    }
}

/// Whether a limit may fire before the one that is expected: it was configured lower than it is by
/// default, or the expected one higher. Neither goes for limits that the attack sets itself.
fn is_first_by_configuration(attack: &Attack, expected: LimitKey, hit: &str, base: &Limits) -> bool {
    let configured = |key: LimitKey| attack.limits.iter().all(|(own, _)| *own != key);
    let Some(hit) = LimitKey::parse(hit) else { return false };
    let lowered = configured(hit) && base.get(hit) < hit.default_value();
    let raised = configured(expected) && base.get(expected) > expected.default_value();
    lowered || raised
}

/// Whether each of its steps ended as it must, where it says how they ended.
pub(super) fn was_told(attack: &Attack, seen: &Seen) -> bool {
    match &attack.told {
        None => true,
        Some(Told::Content(content)) => seen.content.as_ref() == Some(content),
        Some(Told::Line(line)) => seen.log.lines().any(|said| said == *line),
    }
}

/// How its steps ended, where that is not as it must be.
fn otherwise(seen: &Seen) -> String {
    let said = seen.content.as_ref().map_or_else(|| seen.log.clone(), ToString::to_string);
    format!(", but not every step ended as it must: {}", one_line(&excerpt(&said)))
}

struct Outcome {
    wall: String,
    held: bool,
    took: Duration,
    used: Used,
}

fn denied(record: &Record, wall: super::Wall) -> bool {
    record.exchanges.is_empty() && record.denials.iter().any(|denial| denial.wall == wall)
}

fn told(seen: &Seen) -> String {
    let denied = seen.record.denials.first().map(|denial| format!("wall `{}`", denial.wall.as_str()));
    let what = match &seen.end {
        Ended::Limit(hit) => format!("limit `{}`", hit.limit),
        Ended::Trap(message) => format!("trap, {message}"),
        Ended::Answer(rule) => denied.unwrap_or_else(|| format!("answer refused, `{rule}`")),
        Ended::Host(why) => format!("a fault of ours: {why}"),
        Ended::Returned | Ended::Failed => denied.unwrap_or_else(|| "nothing: it succeeded".to_owned()),
    };
    one_line(&excerpt(&what))
}

/// The first step that failed, and what it found.
fn failed(report: &LoadReport) -> Option<(&'static str, String)> {
    report.steps.iter().find_map(|step| match &step.result {
        StepResult::Failed(faults) => {
            let found = faults.first().map(|fault| excerpt(&fault.found)).unwrap_or_default();
            Some((step.name, found))
        }
        StepResult::Passed(_) | StepResult::Skipped(_) => None,
    })
}

fn honest() -> Result<Source, String> {
    let bytes = Guest::default().try_assemble().map_err(|error| error.to_string())?;
    let bytes = embedded(&bytes, MANIFEST, CASES).map_err(|error| error.to_string())?;
    Ok(Source::Bytes { name: "honest".to_owned(), bytes })
}

/// Compiles and links a skill, without the steps of loading.
pub(super) async fn compile(sandbox: &Sandbox, bytes: Vec<u8>) -> Result<Arc<Component>, String> {
    let host = Arc::clone(&sandbox.0);
    let compile = move || {
        let compiled = Compiled::from_binary(&host.engine, &bytes).map_err(|error| format!("{error:#}"))?;
        let pre = host.link(&compiled).and_then(SkillPre::new);
        let pre = pre.map_err(|error| format!("{error:#}"))?;
        let manifest = Manifest::parse("skill.toml", MANIFEST).map_err(|faults| faults.to_string())?;
        Ok(Arc::new(Component::new(Digest::of(&bytes), manifest, Pre::Skill(pre))))
    };
    let work = async move { tokio::task::spawn_blocking(compile).await };
    sandbox.on_guest_threads(work).await?.unwrap_or_else(|error| Err(error.to_string()))
}
