//! From a folder of Rust source to a component: compile for `wasm32-wasip2`, embed manifest and
//! cases. What the toolchain is and how it is called stands in `skills/guest-cargo` alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use checkrein_contract::manifest::Manifest;
use checkrein_contract::port::StorageError;
use checkrein_contract::problem::{Fault, Faults};
use checkrein_contract::{cases, section};
use checkrein_sandbox::Sandbox;
use serde_json::Value;

use crate::error::{CliError, fault};
use crate::output;

/// The script that runs cargo for guests.
const GUEST_CARGO: &str = include_str!("../../../skills/guest-cargo");

/// A component that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub file: PathBuf,
    /// Whether its bytes differ from what was there.
    pub changed: bool,
}

/// The toolchain for Rust guests, as far as it is there.
#[derive(Clone, Debug)]
pub struct Toolchain(Result<String, String>);

impl Toolchain {
    /// Asks the script what it would use.
    pub fn find() -> Self {
        let asked = guest_cargo(&["--which"], Path::new("."));
        Toolchain(match asked {
            Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned()),
            Ok(out) => Err(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// What it is, or what to do.
    pub fn describe(&self) -> String {
        match &self.0 {
            Ok(version) => version.clone(),
            Err(why) => format!("cannot be built here: {why}"),
        }
    }
}

/// The folders of a guest workspace that hold a component.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn workspace_skills(workspace: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error| CliError::unreadable(workspace, &error);
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(workspace).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join("skill.toml").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Builds components, each workspace at once, and only what changed.
///
/// # Errors
///
/// What is wrong with their manifests and cases; the compiler's own words if one does not build;
/// what keeps a component from saying its argument schema.
pub async fn build(
    sandbox: &Sandbox,
    folders: &[PathBuf],
    out: Option<&Path>,
) -> Result<Vec<Built>, CliError> {
    let sources = read_sources(folders)?;
    let mut workspaces = BTreeMap::<PathBuf, Vec<&Source>>::new();
    for source in &sources {
        workspaces.entry(source.workspace.clone()).or_default().push(source);
    }
    let mut built = Vec::new();
    for (workspace, sources) in workspaces {
        let dist = out.map_or_else(|| workspace.join("dist"), Path::to_owned);
        let artifacts = compile(&workspace, &sources)?;
        for source in sources {
            let core = artifacts.get(&source.package).ok_or_else(|| CliError::Build {
                message: format!("{}: it built, and no component came out", source.folder.display()),
                hint: "its Cargo.toml needs `[lib] crate-type = [\"cdylib\"]`".to_owned(),
            })?;
            built.push(embed(sandbox, source, core, &dist).await?);
        }
    }
    Ok(built)
}

/// One folder, with what is embedded from it.
struct Source {
    folder: PathBuf,
    workspace: PathBuf,
    package: String,
    name: String,
    manifest: String,
    cases: Option<String>,
    /// Whether the manifest states the argument schema itself.
    states_args: bool,
}

/// What stands between the manifest and the schema that was taken from the code.
const DERIVED: &str = "\n# Derived from the code.\n";

/// What a component that can say its argument schema exports.
const SCHEMA: &[u8] = b"checkrein:skill/schema@";

impl Source {
    /// Whether an embedded manifest is made from this one: as it is, or, where the component says
    /// a schema and this states none, with that.
    fn made(&self, embedded: &str, says_args: bool) -> bool {
        let derived = says_args && !self.states_args;
        let rest = embedded.strip_prefix(&self.manifest);
        rest.is_some_and(|rest| if derived { rest.starts_with(DERIVED) } else { rest.is_empty() })
    }
}

fn read_sources(folders: &[PathBuf]) -> Result<Vec<Source>, CliError> {
    let (mut sources, mut faults, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for folder in folders {
        match read_source(folder) {
            Ok(source) => {
                if !names.insert(source.name.clone()) {
                    let place = folder.display().to_string();
                    faults.push(fault(
                        &place,
                        "name",
                        "a name of its own",
                        &format!("`{}` twice", source.name),
                        "",
                    ));
                }
                sources.push(source);
            }
            Err(mut more) => faults.append(&mut more),
        }
    }
    if faults.is_empty() { Ok(sources) } else { Err(CliError::Input(Faults(faults))) }
}

fn read_source(folder: &Path) -> Result<Source, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut read = |name: &str, what: &str| {
        let file = folder.join(name);
        std::fs::read_to_string(&file)
            .map_err(|error| {
                faults.push(fault(&file.display().to_string(), "file", what, &error.to_string(), ""))
            })
            .ok()
    };
    let cargo = read("Cargo.toml", "a Rust package");
    let manifest = read("skill.toml", "a manifest");
    let cases_text =
        read("cases.toml", "cases: without one that its verification can be tried on, it would not load");
    let shown = |name: &str| folder.join(name).display().to_string();
    let package = cargo.and_then(|text| package_name(&shown("Cargo.toml"), &text, &mut faults));
    let parsed = manifest.as_deref().and_then(|text| {
        Manifest::parse(&shown("skill.toml"), text).map_err(|more| faults.extend(more.0)).ok()
    });
    if let Some(Err(more)) = cases_text.as_deref().map(|text| cases::parse(&shown("cases.toml"), text)) {
        faults.extend(more.0);
    }
    match (package, manifest, parsed) {
        (Some(package), Some(manifest), Some(parsed)) if faults.is_empty() => Ok(Source {
            folder: folder.to_owned(),
            workspace: workspace_of(folder),
            package,
            states_args: parsed.args.is_some(),
            name: parsed.name,
            manifest,
            cases: cases_text,
        }),
        _ => Err(faults),
    }
}

fn package_name(file: &str, text: &str, faults: &mut Vec<Fault>) -> Option<String> {
    let name = text.parse::<toml::Table>().map(|table| {
        table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(|name| name.as_str())
            .map(str::to_owned)
    });
    let found = match name {
        Ok(Some(name)) => return Some(name),
        Ok(None) => "no `package.name`".to_owned(),
        Err(error) => error.message().to_owned(),
    };
    faults.push(fault(file, "syntax", "a Rust package", &found, ""));
    None
}

/// The folder of the workspace that a package is in: its parent, if that is one.
fn workspace_of(folder: &Path) -> PathBuf {
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let parent = full.parent().filter(|parent| {
        std::fs::read_to_string(parent.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
    });
    parent.map_or(full.clone(), Path::to_owned)
}

/// Compiles the packages; gives the component of each.
fn compile(workspace: &Path, sources: &[&Source]) -> Result<BTreeMap<String, PathBuf>, CliError> {
    let manifest = workspace.join("Cargo.toml").display().to_string();
    let mut args =
        vec!["build", "--release", "--message-format=json-render-diagnostics", "--manifest-path", &manifest];
    for source in sources {
        args.extend(["-p", &source.package]);
    }
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    tracing::info!(?names, "compiling guests");
    let out = guest_cargo(&args, workspace).map_err(|error| CliError::Build {
        message: format!("the guest toolchain does not start: {error}"),
        hint: String::new(),
    })?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return Err(CliError::Build {
            message: said,
            hint: "`skills/setup` installs what guests need".to_owned(),
        });
    }
    let lines = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok(lines.lines().filter_map(|line| artifact(line, sources)).collect())
}

/// The package and component that a line of cargo's messages tells of.
fn artifact(line: &str, sources: &[&Source]) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let wasm = message["filenames"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .find(|file| file.ends_with(".wasm"))?;
    let manifest = Path::new(message["manifest_path"].as_str()?).parent()?.canonicalize().ok()?;
    let source =
        sources.iter().find(|source| source.folder.canonicalize().is_ok_and(|folder| folder == manifest))?;
    Some((source.package.clone(), PathBuf::from(wasm)))
}

/// Runs the script. What is compiled is shown while it goes on, since the first time takes
/// minutes; what the compiler has to say comes with the error.
fn guest_cargo(args: &[&str], folder: &Path) -> std::io::Result<Output> {
    let mut script = tempfile::NamedTempFile::new()?;
    script.write_all(GUEST_CARGO.as_bytes())?;
    let mut child = Command::new("sh")
        .arg(script.path())
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let messages = child.stderr.take().map(|stderr| std::thread::spawn(move || tell_progress(stderr)));
    let mut out = child.wait_with_output()?;
    if let Some(messages) = messages {
        out.stderr = messages.join().unwrap_or_default();
    }
    Ok(out)
}

/// Passes on what cargo is doing, and gives the rest.
fn tell_progress(stderr: impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let text = String::from_utf8_lossy(&line);
        let word = text.split_whitespace().next().unwrap_or_default();
        match word {
            "Compiling" | "Downloading" | "Downloaded" | "Updating" | "Blocking" => output::message(&text),
            "Finished" | "Locking" | "Adding" => {}
            _ => {
                rest.extend(&line);
                rest.push(b'\n');
            }
        }
    }
    rest
}

async fn embed(sandbox: &Sandbox, source: &Source, core: &Path, dist: &Path) -> Result<Built, CliError> {
    let bytes = std::fs::read(core).map_err(|error| CliError::unreadable(core, &error))?;
    let file = dist.join(format!("{}.wasm", source.name));
    let built = |changed| Built { name: source.name.clone(), file: file.clone(), changed };
    if is_up_to_date(source, &bytes, &file) {
        return Ok(built(false));
    }
    // What the component says of itself is asked of it before it is written down.
    let name = source.folder.display().to_string();
    let plain = with_sections(&bytes, &source.manifest, source.cases.as_deref())
        .map_err(|why| not_one(core, &why))?;
    let args = sandbox.schema(checkrein_sandbox::Source::Bytes { name, bytes: plain }).await;
    let manifest = match args.map_err(|faults| CliError::Load(Faults(faults)))? {
        Some(args) if !source.states_args => with_args(&source.manifest, &args)?,
        _ => source.manifest.clone(),
    };
    let component =
        with_sections(&bytes, &manifest, source.cases.as_deref()).map_err(|why| not_one(core, &why))?;
    write(&file, &component)?;
    Ok(built(true))
}

fn not_one(core: &Path, why: &section::SectionError) -> CliError {
    CliError::Build {
        message: format!("{}: {why}", core.display()),
        hint: "the toolchain made something else than a component".to_owned(),
    }
}

/// Whether the file has these bytes, and sections made from the same manifest and cases.
fn is_up_to_date(source: &Source, bytes: &[u8], file: &Path) -> bool {
    let Ok(before) = std::fs::read(file) else { return false };
    let Ok(Some(manifest)) = section::find(&before, section::MANIFEST) else { return false };
    let Ok(manifest) = std::str::from_utf8(manifest) else { return false };
    let says_args = bytes.windows(SCHEMA.len()).any(|part| part == SCHEMA);
    source.made(manifest, says_args)
        && with_sections(bytes, manifest, source.cases.as_deref()).is_ok_and(|now| now == before)
}

fn with_sections(
    bytes: &[u8],
    manifest: &str,
    cases: Option<&str>,
) -> Result<Vec<u8>, section::SectionError> {
    let with_manifest = section::embed(bytes, section::MANIFEST, manifest.as_bytes())?;
    match cases {
        Some(cases) => section::embed(&with_manifest, section::CASES, cases.as_bytes()),
        None => Ok(with_manifest),
    }
}

/// The manifest with the schema that the component says.
fn with_args(manifest: &str, args: &Value) -> Result<String, CliError> {
    let table = serde_json::json!({ "args": args });
    let text = toml::to_string(&table).map_err(|error| CliError::Build {
        message: format!("the argument schema cannot be written as TOML: {error}"),
        hint: "state it in skill.toml as [args]".to_owned(),
    })?;
    Ok(format!("{manifest}{DERIVED}{text}"))
}

/// Written aside and renamed, so that nobody reads half a component.
fn write(file: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let storage = |error: std::io::Error| CliError::from(StorageError::of_io(file, &error));
    let dir = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(storage)?;
    let mut aside = tempfile::NamedTempFile::new_in(dir).map_err(storage)?;
    aside.write_all(bytes).map_err(storage)?;
    aside.persist(file).map_err(|error| storage(error.error))?;
    Ok(())
}

/// Says what was built.
pub fn tell(built: &[Built]) {
    for component in built {
        let what = if component.changed { "built" } else { "unchanged" };
        output::line(&format!("{what:9} {}", component.file.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "name = \"a\"\nfacts = [\"a/*\"]\n";

    fn source(manifest: &str, states_args: bool) -> Source {
        Source {
            folder: PathBuf::new(),
            workspace: PathBuf::new(),
            package: "a".to_owned(),
            name: "a".to_owned(),
            manifest: manifest.to_owned(),
            cases: None,
            states_args,
        }
    }

    #[test]
    fn a_manifest_that_lost_lines_is_another() {
        let derived = with_args(MANIFEST, &serde_json::json!({ "type": "object" })).unwrap();
        let less = MANIFEST.split_inclusive('\n').next().unwrap();
        let made =
            |manifest: &str, states, embedded: &str, says| source(manifest, states).made(embedded, says);
        // As it is, or with what was derived: each only where it belongs.
        assert!(made(MANIFEST, false, MANIFEST, false) && made(MANIFEST, false, &derived, true));
        assert!(made(MANIFEST, true, MANIFEST, true) && made(MANIFEST, true, MANIFEST, false));
        assert!(!made(MANIFEST, false, MANIFEST, true), "built before schemas were derived");
        assert!(!made(MANIFEST, true, &derived, true) && !made(MANIFEST, false, &derived, false));
        let more = format!("{MANIFEST}terms = []\n");
        for (embedded, says) in [(MANIFEST, false), (&derived, true)] {
            for other in [less, "", MANIFEST.trim_end(), &more] {
                assert!(!made(other, false, embedded, says), "{other:?} of {embedded:?}");
            }
        }
    }

    #[test]
    fn a_component_is_built_again_when_its_manifest_lost_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        let bytes = section::embed(&section::COMPONENT_MAGIC, "export", SCHEMA).unwrap();
        let derived = with_args(MANIFEST, &serde_json::json!({ "type": "object" })).unwrap();
        std::fs::write(&file, with_sections(&bytes, &derived, None).unwrap()).unwrap();
        assert!(is_up_to_date(&source(MANIFEST, false), &bytes, &file));
        assert!(!is_up_to_date(&source("name = \"a\"\n", false), &bytes, &file));
    }
}
