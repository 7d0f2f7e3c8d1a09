//! From a file to a component that can be called. `Sandbox::check` tells every step;
//! `Sandbox::load` runs the same ones.

mod inspect;
pub(crate) mod names;
mod report;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_contract::cases::{self, Case};
use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Granted;
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::Subgoal;
use checkrein_contract::limits::Limits;
use checkrein_contract::manifest::{Kind, Manifest};
use checkrein_contract::port::{End, NoFacts, NoObserver, Ran, Setting, StorageError};
use checkrein_contract::problem::Fault;
use serde_json::{Map, Value, json};
use wasmtime::component::Component as Compiled;

use crate::cache::load_fresh;
use crate::component::{Component, Pre};
use crate::invoke::run;
use crate::parts::{Assess, Describe, Instantiate, Part};
use crate::sandbox::Sandbox;
use crate::worker::compiler::NoCode;

use inspect::{Inspected, inspect};
pub use report::{LoadReport, Loaded, Step, StepResult};

/// The stage of a fault of the disk, which says nothing of the component. Whoever reports faults
/// tells it from the others by this word.
pub const STORAGE: &str = "storage";

/// Where a component comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Bytes, with the name that faults call them by.
    Bytes {
        /// The name.
        name: String,
        /// The component.
        bytes: Vec<u8>,
    },
}

impl Source {
    /// What faults call it.
    fn name(&self) -> String {
        match self {
            Source::File(path) => path.display().to_string(),
            Source::Bytes { name, .. } => name.clone(),
        }
    }
}

impl From<&Path> for Source {
    fn from(path: &Path) -> Self {
        Source::File(path.to_owned())
    }
}

impl Sandbox {
    /// Loads a component: from now on its parts can be called by its digest.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, each fault with its place and how to mend it. Nothing of
    /// it is kept then.
    pub async fn load(&self, source: impl Into<Source>) -> Result<Loaded, Vec<Fault>> {
        let (report, component) = self.try_load(source.into()).await;
        match (report.loaded, component) {
            (Some(loaded), Some(component)) => {
                self.register(component);
                Ok(loaded)
            }
            (loaded, component) => {
                Err(LoadReport { loaded, ..report }.faults_or_unknown(component.is_some()))
            }
        }
    }

    /// Runs the steps of loading and tells each. Nothing is kept but compiled code and the memory
    /// that its trial was passed.
    pub async fn check(&self, source: impl Into<Source>) -> LoadReport {
        self.try_load(source.into()).await.0
    }

    /// The JSON Schema of the arguments, as the component itself says it; `None` if it says none.
    /// Its cases are not run.
    ///
    /// # Errors
    ///
    /// What keeps it from being asked.
    pub async fn schema(&self, source: impl Into<Source>) -> Result<Option<Value>, Vec<Fault>> {
        let (sandbox, source) = (self.clone(), source.into());
        let name = source.name();
        let work = async move {
            let mut loader = Loader { sandbox, report: LoadReport::new(&name) };
            let asked = loader.ask_schema(source).await;
            asked.ok_or_else(|| loader.report.faults())
        };
        self.on_guest_threads(work).await.unwrap_or_else(|why| {
            let report = LoadReport::new("component");
            Err(vec![report.fault("host", "", "a host that can load", &why, "this is a fault of ours")])
        })
    }

    async fn try_load(&self, source: Source) -> (LoadReport, Option<Arc<Component>>) {
        let name = source.name();
        let mut lost = LoadReport::new(&name);
        let sandbox = self.clone();
        let work = async move { Loader { sandbox, report: LoadReport::new(&name) }.run(source).await };
        self.on_guest_threads(work).await.unwrap_or_else(|why| {
            lost.failed(
                "host",
                vec![lost.fault("host", "", "a host that can load", &why, "this is a fault of ours")],
            );
            (lost, None)
        })
    }
}

impl Sandbox {
    /// Compiles: in a process of its own, if there are any.
    async fn compile(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Uncompiled> {
        if let Some(compiler) = self.0.compiler.clone() {
            let compiled = self.on_host_threads(async move { compiler.compile(bytes).await });
            return compiled.await.map_err(Uncompiled::Lost)?.map_err(Uncompiled::Told);
        }
        let engine = self.0.engine.clone();
        let compiled = tokio::task::spawn_blocking(move || engine.precompile_component(&bytes));
        match compiled.await {
            Ok(Ok(code)) => Ok(code),
            Ok(Err(error)) => Err(Uncompiled::Told(NoCode::Refused(format!("{error:#}")))),
            Err(error) => Err(Uncompiled::Lost(error.to_string())),
        }
    }
}

/// Why a component was not compiled.
#[derive(Debug)]
enum Uncompiled {
    /// The compiler says why.
    Told(NoCode),
    /// The host lost the task, which says nothing of the component.
    Lost(String),
}

fn not_compiled(report: &LoadReport, error: &Uncompiled) -> Fault {
    let error = match error {
        Uncompiled::Told(error) => error,
        Uncompiled::Lost(why) => {
            return report.fault("host", "", "a host that can compile", why, "this is a fault of ours");
        }
    };
    let (expected, mend) = match error {
        NoCode::Refused(_) => {
            ("a valid component", "check it with `wasm-tools validate`, and build it again".to_owned())
        }
        NoCode::Time(_) | NoCode::Memory => (
            "a component that compiles within its time and 4 GiB",
            "split its largest functions, or build it with less inlining; one that is built to be slow \
             to compile is an attack"
                .to_owned(),
        ),
        NoCode::Worker(_) => (
            "a worker that compiles",
            "`checkrein doctor` shows whether workers start; else this is a fault of ours".to_owned(),
        ),
    };
    report.fault("compile", "", expected, &error.to_string(), &mend)
}

impl LoadReport {
    /// The faults; a load without a component always has one.
    fn faults_or_unknown(self, has_component: bool) -> Vec<Fault> {
        let mut faults = self.faults();
        if faults.is_empty() {
            let found = if has_component { "no report" } else { "no component" };
            faults.push(self.fault("host", "", "a loaded component", found, "this is a fault of ours"));
        }
        faults
    }
}

/// What can be seen of a component before it is compiled.
struct Seen {
    bytes: Vec<u8>,
    digest: Digest,
    inspected: Inspected,
}

fn see(report: &mut LoadReport, source: Source) -> Option<Seen> {
    let bytes = match source {
        Source::Bytes { bytes, .. } => bytes,
        Source::File(path) => {
            let read = inspect::read(report, &path);
            report.step("read", read, |bytes| format!("{} bytes", bytes.len()))?
        }
    };
    let inspected = inspect(report, &bytes)?;
    Some(Seen { digest: Digest::of(&bytes), bytes, inspected })
}

/// One load under way.
struct Loader {
    sandbox: Sandbox,
    report: LoadReport,
}

impl Loader {
    async fn run(mut self, source: Source) -> (LoadReport, Option<Arc<Component>>) {
        let component = self.steps(source).await;
        let sound = self.report.sound();
        (self.report, component.filter(|_| sound))
    }

    async fn steps(&mut self, source: Source) -> Option<Arc<Component>> {
        let Seen { bytes, digest, inspected } = self.see(source).await?;
        let Inspected { manifest, cases, names } = inspected;
        let parsed = self.parse_cases(&cases);
        if !self.report.sound() {
            return None;
        }
        let length = bytes.len() as u64;
        let compiled = self.compile(&digest, bytes).await?;
        let described = names.exports.iter().any(|name| name == names::SCHEMA);
        let mut component = self.link(digest, manifest, &compiled)?;
        self.instantiate(&component).await?;
        self.assess(&component).await?;
        self.schema(&mut component, described).await?;
        let component = self.probe(Arc::new(component), &parsed?, &names.imports).await?;
        self.report.loaded = Some(Loaded {
            digest,
            manifest: component.manifest.clone(),
            cases,
            bytes: length,
            imports: names.imports,
            exports: names.exports,
        });
        Some(component)
    }

    async fn ask_schema(&mut self, source: Source) -> Option<Option<Value>> {
        let Seen { bytes, digest, inspected } = self.see(source).await?;
        let Inspected { manifest, names, .. } = inspected;
        if !self.report.sound() {
            return None;
        }
        let compiled = self.compile(&digest, bytes).await?;
        let described = names.exports.iter().any(|name| name == names::SCHEMA);
        let mut component = self.link(digest, manifest, &compiled)?;
        self.schema(&mut component, described).await?;
        Some(component.manifest.args)
    }

    /// Reads and inspects, on a thread where nobody else waits for it.
    async fn see(&mut self, source: Source) -> Option<Seen> {
        let mut report = self.report.clone();
        let work = move || {
            let seen = see(&mut report, source);
            (report, seen)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok((report, seen)) => {
                self.report = report;
                seen
            }
            Err(error) => self.lost(&error),
        }
    }

    /// A step that the host did not end, which says nothing of the component.
    fn lost<T>(&mut self, error: &tokio::task::JoinError) -> Option<T> {
        let (expected, mend) = ("a host that can load", "this is a fault of ours");
        let fault = self.report.fault("host", "", expected, &error.to_string(), mend);
        self.report.failed("host", vec![fault]);
        None
    }

    /// The cases; every component has some, or nothing says that its verification works.
    fn parse_cases(&mut self, text: &str) -> Option<Vec<Case>> {
        if text.trim().is_empty() {
            let mend = "write `cases.toml` beside `skill.toml` and embed it with `checkrein skill build`";
            let expected = "at least one case in the section `checkrein:cases`";
            let fault = self.report.fault("cases", "", expected, "none", mend);
            self.report.failed("cases", vec![fault]);
            return None;
        }
        let file = format!("{}[cases.toml]", self.report.file);
        cases::parse(&file, text).map_err(|faults| self.report.failed("cases", faults.0)).ok()
    }

    async fn compile(&mut self, digest: &Digest, bytes: Vec<u8>) -> Option<Compiled> {
        let host = Arc::clone(&self.sandbox.0);
        if let Some(compiled) = host.cache.as_ref().and_then(|cache| cache.code(&host.engine, digest)) {
            self.report.passed("compile", "from the cache");
            return Some(compiled);
        }
        let report = self.report.clone();
        let bodies = tokio::task::spawn_blocking(move || {
            let bodies = inspect::bodies(&report, &bytes);
            (bytes, bodies)
        });
        let bytes = match bodies.await {
            Ok((bytes, Ok(()))) => bytes,
            Ok((_, Err(faults))) => {
                self.report.failed("compile", faults);
                return None;
            }
            Err(error) => return self.lost(&error),
        };
        let compiled = match self.sandbox.compile(bytes).await {
            Ok(code) => {
                if let Some(cache) = &host.cache {
                    cache.keep_code(digest, &code);
                }
                // Mapped from the cache where that holds it: its pages can then be given back.
                let cached = host.cache.as_ref().and_then(|cache| cache.code(&host.engine, digest));
                cached.map_or_else(|| load_fresh(&host.engine, &code), Ok).map_err(|error| {
                    let found = format!("{error:#}");
                    vec![self.report.fault(
                        "compile",
                        "",
                        "code that loads",
                        &found,
                        "this is a fault of ours",
                    )]
                })
            }
            Err(error) => Err(vec![not_compiled(&self.report, &error)]),
        };
        let how = if host.compiler.is_some() { "compiled, in a process of its own" } else { "compiled" };
        self.report.step("compile", compiled, |_| how.to_owned())
    }

    fn link(&mut self, digest: Digest, manifest: Manifest, compiled: &Compiled) -> Option<Component> {
        let linked = self.sandbox.0.link(compiled);
        let pre = linked.and_then(|pre| Pre::of(manifest.kind, pre));
        match pre {
            Ok(pre) => Some(Component::new(digest, manifest, pre)),
            Err(error) => {
                self.refuse(
                    "instantiate",
                    "imports and exports as in the WIT",
                    &format!("{error:#}"),
                    REBUILD,
                );
                None
            }
        }
    }

    async fn instantiate(&mut self, component: &Component) -> Option<()> {
        let ran = self.trial(component, Instantiate).await;
        self.returned(
            "instantiate",
            "an instance within the limits, its exports as in the WIT",
            REBUILD,
            ran,
        )?;
        self.report.passed("instantiate", "within the limits");
        Some(())
    }

    async fn assess(&mut self, component: &Component) -> Option<()> {
        if component.manifest.kind == Kind::Verifier {
            self.report.skipped("assess", "a verifier has no trigger");
            return Some(());
        }
        let subgoal = Subgoal {
            id: "load".to_owned(),
            goal: component.manifest.description.clone(),
            args: json!({}),
            evidence: Vec::new(),
            criteria: Vec::new(),
        };
        let ran = self.trial(component, Assess(subgoal)).await;
        let mend = "the trigger must answer any subgoal, within the limits: 0 where it does not apply";
        let assessment = self.returned("assess", "an assessment", mend, ran)?;
        self.report.passed("assess", format!("{} for its own description", assessment.score));
        Some(())
    }

    /// Holds the manifest's schema of the arguments against the one that the component says.
    async fn schema(&mut self, component: &mut Component, described: bool) -> Option<()> {
        if !described {
            self.report.skipped("schema", "the component does not export `checkrein:skill/schema`");
            return Some(());
        }
        let ran = self.trial(component, Describe).await;
        let said = self.returned("schema", "a JSON Schema", "`args` must return a JSON document", ran)?;
        let said = without_nulls(said);
        match &component.manifest.args {
            Some(stated) if *stated != said => {
                let found = difference(stated, &said, String::new());
                let mend = "remove `[args]` from `skill.toml`, and the component's own is taken";
                self.refuse("schema", "the same schema in `skill.toml` and in the component", &found, mend);
                return None;
            }
            Some(_) => self.report.passed("schema", "the same in manifest and component"),
            None => {
                component.manifest.args = Some(said);
                self.report.passed("schema", "taken from the component");
            }
        }
        Some(())
    }

    /// Runs the cases, unless this component passed them before. In a dry run those of a component
    /// that may use the network are not run: what it imports for that is not there.
    async fn probe(
        &mut self,
        component: Arc<Component>,
        cases: &[Case],
        imports: &[String],
    ) -> Option<Arc<Component>> {
        let host = &self.sandbox.0;
        if host.cache.as_ref().is_some_and(|cache| cache.passed(&component.digest)) {
            self.report.passed("cases", "passed before");
            self.report.passed("verification", "passed before");
            return Some(component);
        }
        // Language runtimes import sockets and use none.
        let leaves = |name: &String| crate::imports::has_effect(name) && !name.starts_with("wasi:sockets/");
        if let Some(name) = imports.iter().find(|name| host.dry && leaves(name)) {
            let why = format!("not tried yet, and not in a dry run, which has no `{name}`");
            self.report.skipped("cases", &why);
            self.report.skipped("verification", &why);
            return Some(component);
        }
        let probed = self.sandbox.probe_component(&component, cases, crate::probe::MUTANTS).await;
        let probed = match probed {
            Ok(probed) => probed,
            Err(error) => return self.unstored("cases", &error),
        };
        let (cases, verification) = probed.faults(&self.report.file);
        let share = format!("catches {} of {} mutants", probed.caught, probed.mutants);
        let passed = format!("{} of {} pass", probed.passed(), probed.cases.len());
        self.report.step("cases", cases.map_or(Ok(()), Err), |()| passed);
        self.report.step("verification", verification.map_or(Ok(()), Err), |()| share);
        self.report.probe = Some(probed);
        if !self.report.sound() {
            return None;
        }
        if let Some(cache) = &self.sandbox.0.cache {
            cache.keep_passed(&component.digest);
        }
        Some(component)
    }

    async fn trial<P: Part>(&self, component: &Component, part: P) -> Ran<P::Answer> {
        let setting = trial_setting(component.digest, component.start_limits());
        run(&self.sandbox.0, component, setting, part).await
    }

    fn returned<T>(&mut self, step: &'static str, expected: &str, mend: &str, ran: Ran<T>) -> Option<T> {
        let found = match ran.end {
            End::Returned(value) => return Some(value),
            End::Limited(hit) => format!("limit `{}`: {} allowed, {} used", hit.limit, hit.allowed, hit.used),
            End::Storage(error) => return self.unstored(step, &error),
            End::Trapped(message) | End::Fault(message) => message,
            End::Invalid(problem) => problem.message,
        };
        self.refuse(step, expected, &found, mend);
        None
    }

    /// A step that the disk kept from being tried.
    fn unstored<T>(&mut self, step: &'static str, error: &StorageError) -> Option<T> {
        let mend = "see to the disk and run the command again; the component is not at fault";
        let fault = self.report.fault(STORAGE, "", "a disk that can be used", &error.to_string(), mend);
        self.report.failed(step, vec![fault]);
        None
    }

    fn refuse(&mut self, step: &'static str, expected: &str, found: &str, mend: &str) {
        let fault = self.report.fault(step, "", expected, found, mend);
        self.report.failed(step, vec![fault]);
    }
}

const REBUILD: &str = "build it against the `wit/` of this host, without side effects at start";

/// A setting that reaches nothing.
pub(crate) fn trial_setting(component: Digest, limits: Limits) -> Setting {
    Setting {
        component,
        limits,
        input: None,
        artifacts: None,
        work: None,
        granted: Granted::default(),
        facts: Arc::new(NoFacts),
        observer: Arc::new(NoObserver),
        clock: Timestamp(0),
        seed: 0,
        recorded: None,
    }
}

/// The first place where two JSON values differ, as a pointer and both values.
fn difference(stated: &Value, said: &Value, at: String) -> String {
    if let (Value::Object(stated), Value::Object(said)) = (stated, said) {
        let mut keys = stated.keys().chain(said.keys());
        if let Some(key) = keys.find(|key| stated.get(*key) != said.get(*key)) {
            let null = Value::Null;
            let of = |map: &Map<String, Value>| map.get(key).unwrap_or(&null).clone();
            return difference(&of(stated), &of(said), format!("{at}/{key}"));
        }
    }
    let short = |value: &Value| crate::text::excerpt(&value.to_string());
    format!("at `{at}` {} in the manifest, {} in the component", short(stated), short(said))
}

/// A schema without its nulls, which `skill.toml` cannot state: a default of null says nothing.
fn without_nulls(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let entries = map.into_iter().filter(|(_, value)| !value.is_null());
            entries.map(|(key, value)| (key, without_nulls(value))).collect::<Map<String, Value>>().into()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}
