//! What can be seen of a component without compiling it: format, size, sections, names.

use std::path::Path;

use checkrein_contract::limits::LimitKey;
use checkrein_contract::manifest::{Kind, Manifest};
use checkrein_contract::problem::Fault;
use checkrein_contract::section::{self, COMPONENT_MAGIC, MODULE_MAGIC, SectionError};
use wasmparser::{Parser, Payload};

use super::names;
use super::report::LoadReport;
use crate::text::excerpt;

/// Imports of one component, and exports, that are read. Honest ones have some dozens.
const NAMES: usize = 1_000;

/// The names of what a component takes and gives.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

/// What was found in the sections of a component.
#[derive(Debug)]
pub(super) struct Inspected {
    pub(super) manifest: Manifest,
    pub(super) cases: String,
    pub(super) names: Names,
}

/// Looks at all of it and reports everything that is wrong at once.
pub(super) fn inspect(report: &mut LoadReport, bytes: &[u8]) -> Option<Inspected> {
    // What is too large is not read at all.
    let length = match size(report, bytes.len() as u64) {
        Ok(length) => length,
        Err(faults) => {
            report.failed("size", faults);
            return None;
        }
    };
    let names = report.step("format", format(report, bytes), |_| "a component".to_owned())?;
    report.passed("size", LimitKey::Component.show(length));
    let manifest = manifest(report, bytes);
    let cases = cases(report, bytes);
    let manifest =
        report.step("manifest", manifest, |manifest| format!("{} {}", manifest.name, manifest.version));
    report.step("wit-version", version(report, &names), |()| format!("checkrein:skill {}", names::VERSION));
    report.step("imports", imports(report, &names), |()| {
        format!("{} names, all of them here", names.imports.len())
    });
    let exports = manifest.as_ref().map(|manifest| exports(report, &names, manifest.kind));
    match exports {
        Some(exports) => report.step("exports", exports, |()| format!("{} names", names.exports.len())),
        None => {
            report
                .skipped("exports", "without a manifest it is not known whether it is a skill or a verifier");
            None
        }
    };
    let cases = match cases {
        Ok(cases) => cases,
        Err(faults) => {
            report.failed("cases", faults);
            return None;
        }
    };
    Some(Inspected { manifest: manifest?, cases, names })
}

/// Reads the file, if it is one and not larger than any component may be.
pub(super) fn read(report: &LoadReport, path: &Path) -> Result<Vec<u8>, Vec<Fault>> {
    let fault = |found: &str| {
        let mend = "name a `.wasm` file that is there and can be read";
        vec![report.fault("read", "", "a component", found, mend)]
    };
    let metadata = std::fs::metadata(path).map_err(|error| fault(&error.to_string()))?;
    if !metadata.is_file() {
        return Err(fault("something that is no file"));
    }
    size(report, metadata.len())?;
    std::fs::read(path).map_err(|error| fault(&error.to_string()))
}

/// Tells a component from everything else that people hand over.
fn format(report: &LoadReport, bytes: &[u8]) -> Result<Names, Vec<Fault>> {
    let expected = "a WebAssembly component";
    let fault = |found: &str, mend: &str| Err(vec![report.fault("format", "", expected, found, mend)]);
    match bytes.get(..8) {
        None if bytes.is_empty() => return fault("an empty file", "build it again"),
        None => return fault(&format!("{} bytes", bytes.len()), "it was cut off: copy it again"),
        Some(magic) if magic == MODULE_MAGIC => {
            let mend = "make a component of it with `wasm-tools component new MODULE -o COMPONENT`, \
                        or build it for `wasm32-wasip2`";
            return fault("a core module", mend);
        }
        Some(magic) if magic == COMPONENT_MAGIC => {}
        Some(magic) if magic.starts_with(b"\0asm") => {
            return fault("WebAssembly of another version", "build it with current tools");
        }
        Some(_) if std::str::from_utf8(bytes).is_ok() => {
            return fault(
                "a text",
                "name the `.wasm` file; text (`.wat`) is made one with `wasm-tools parse`",
            );
        }
        Some(magic) => {
            return fault(&format!("a file that begins with {magic:02x?}"), "name the `.wasm` file");
        }
    }
    read_names(bytes).map_err(|unread| {
        let Unread { place, found, mend } = unread;
        vec![report.fault("format", &place, expected, &found, mend)]
    })
}

/// Why the names of a component were not read.
struct Unread {
    place: String,
    found: String,
    mend: &'static str,
}

/// The names of the component itself; those of components nested in it are its own affair.
fn read_names(bytes: &[u8]) -> Result<Names, Unread> {
    let mut names = Names::default();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(explain)? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    let import = import.map_err(explain)?;
                    keep(&mut names.imports, import.name.name, "imports")?;
                }
            }
            Payload::ComponentExportSection(exports) if depth == 1 => {
                for export in exports {
                    let export = export.map_err(explain)?;
                    keep(&mut names.exports, export.name.name, "exports")?;
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Keeps a name, cut where it is longer than any that this host knows.
fn keep(names: &mut Vec<String>, name: &str, what: &str) -> Result<(), Unread> {
    if names.len() == NAMES {
        let found = format!("more than {NAMES} {what}");
        let mend = "build it against the `wit/` of this host, which has some dozens";
        return Err(Unread { place: what.to_owned(), found, mend });
    }
    names.push(excerpt(name));
    Ok(())
}

/// Bytes of the longest function that is compiled. The time that one takes grows faster than its
/// size; the largest of honest tools (a Python interpreter) has 427 kB.
const BODY: u64 = 1 << 20;

/// Finds functions that are too long to be compiled.
pub(super) fn bodies(report: &LoadReport, bytes: &[u8]) -> Result<(), Vec<Fault>> {
    let (mut module, mut function, mut faults) = (0u32, 0u32, Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        // What cannot be read was told as a fault of the format.
        let Ok(payload) = payload else { break };
        match payload {
            Payload::CodeSectionStart { .. } => (module, function) = (module + 1, 0),
            Payload::CodeSectionEntry(body) => {
                let length = body.range().len() as u64;
                if length > BODY {
                    let place = format!("function {function} of core module {module}");
                    let expected = format!("functions of at most {}", LimitKey::Component.show(BODY));
                    let mend = "split it, or build it with less inlining";
                    let found = LimitKey::Component.show(length);
                    faults.push(report.fault("compile", &place, &expected, &found, mend));
                }
                function += 1;
            }
            _ => {}
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn explain(error: wasmparser::BinaryReaderError) -> Unread {
    Unread {
        place: format!("byte {}", error.offset()),
        found: error.message().to_owned(),
        mend: "it is cut off or damaged: copy or build it again",
    }
}

fn size(report: &LoadReport, used: u64) -> Result<u64, Vec<Fault>> {
    let allowed = LimitKey::Component.default_value();
    if used <= allowed {
        return Ok(used);
    }
    let expected = format!("at most {}", LimitKey::Component.show(allowed));
    let mend = "build it in release mode and without debug information, with `checkrein skill build DIR`";
    Err(vec![report.fault("size", "", &expected, &LimitKey::Component.show(used), mend)])
}

fn manifest(report: &LoadReport, bytes: &[u8]) -> Result<Manifest, Vec<Fault>> {
    let expected = "a manifest in the section `checkrein:manifest`";
    let found = section_text(report, bytes, section::MANIFEST, "manifest", expected)?;
    let Some(text) = found else {
        let mend = "build it with `checkrein skill build DIR`, which embeds `skill.toml` and `cases.toml`; \
                    `wasm-tools strip` removes both";
        return Err(vec![report.fault("manifest", "", expected, "none", mend)]);
    };
    Manifest::parse(&format!("{}[skill.toml]", report.file), &text).map_err(|faults| faults.0)
}

fn cases(report: &LoadReport, bytes: &[u8]) -> Result<String, Vec<Fault>> {
    let expected = "cases in the section `checkrein:cases`";
    let text = section_text(report, bytes, section::CASES, "cases", expected)?;
    Ok(text.unwrap_or_default())
}

fn section_text(
    report: &LoadReport,
    bytes: &[u8],
    name: &str,
    stage: &str,
    expected: &str,
) -> Result<Option<String>, Vec<Fault>> {
    let fault = |found: &str, mend: &str| vec![report.fault(stage, name, expected, found, mend)];
    let contents = section::find(bytes, name).map_err(|error| match error {
        SectionError::Twice(_) => fault("two of them", "build it again: each is embedded once"),
        other => fault(&other.to_string(), "build it again"),
    })?;
    let text = contents.map(|contents| std::str::from_utf8(contents).map(str::to_owned)).transpose();
    text.map_err(|error| fault(&format!("bytes that are not UTF-8: {error}"), "save it as UTF-8"))
}

fn version(report: &LoadReport, names: &Names) -> Result<(), Vec<Fault>> {
    let mut others: Vec<&str> =
        names.imports.iter().chain(&names.exports).filter_map(|name| names::other_version(name)).collect();
    others.sort_unstable();
    others.dedup();
    let mend = format!("build it against `wit/` of checkrein:skill {}", names::VERSION);
    let faults: Vec<Fault> = others
        .into_iter()
        .map(|other| {
            let found = format!("built for checkrein:skill {other}, this host supports {}", names::VERSION);
            let expected = format!("checkrein:skill {}", names::VERSION);
            report.fault("wit-version", "", &expected, &found, &mend)
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn imports(report: &LoadReport, names: &Names) -> Result<(), Vec<Fault>> {
    let missing =
        names.imports.iter().filter(|name| !names::is_given(name) && names::other_version(name).is_none());
    let faults: Vec<Fault> = missing
        .map(|name| {
            let mend = if name.starts_with("wasi:http/") {
                "of `wasi:http`, version 0.2 of `types` and `outgoing-handler` is here"
            } else {
                "build it without this import"
            };
            report.fault("imports", name, "an import that this host has", "one that it lacks", mend)
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn exports(report: &LoadReport, names: &Names, kind: Kind) -> Result<(), Vec<Fault>> {
    let needed = match kind {
        Kind::Skill => names::SKILL_EXPORTS,
        Kind::Verifier => names::VERIFIER_EXPORTS,
    };
    // One that is there in another version was told already.
    let same_interface = |have: &str, need: &str| have.split('@').next() == need.split('@').next();
    let missing = needed.iter().filter(|need| !names.exports.iter().any(|have| same_interface(have, need)));
    let expected = format!("an export of every {kind}");
    let mend = format!("build it for the world `{kind}` of checkrein:skill {}", names::VERSION);
    let faults: Vec<Fault> =
        missing.map(|name| report.fault("exports", name, &expected, "not exported", &mend)).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
