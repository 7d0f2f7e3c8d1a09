//! Files that must not load, and components that must be stopped while they do.

use checkrein_contract::limits::LimitKey;

use super::guest::{CASES, Guest, LOOP, MANIFEST, embedded};
use super::{Attack, Body};

pub(super) fn attacks() -> Vec<Attack> {
    [files(), manifests(), components(), bombs()].concat()
}

fn files() -> Vec<Attack> {
    let file = |name, stage, bytes| Attack::loading(name, stage, Body::File(bytes));
    vec![
        file("an empty file", "format", || Ok(Vec::new())),
        file("a text", "format", || Ok(b"#!/bin/sh\necho hello\n".to_vec())),
        file("a core module", "format", || wat::parse_str("(module)").map_err(|error| error.to_string())),
        file("a component cut in half", "format", || {
            let whole = honest(MANIFEST)?;
            Ok(whole[..whole.len() / 2].to_vec())
        }),
        file("a component of 65 MiB", "size", || {
            let name = b"\x07padding";
            let length =
                usize::try_from(LimitKey::Component.default_value()).unwrap_or(usize::MAX) + (1 << 20);
            let mut bytes = honest(MANIFEST)?;
            bytes.push(0);
            let mut size = length + name.len();
            while size >= 0x80 {
                bytes.push((size & 0x7f) as u8 | 0x80);
                size >>= 7;
            }
            bytes.push(size as u8);
            bytes.extend(name);
            bytes.resize(bytes.len() + length, 0);
            Ok(bytes)
        }),
    ]
}

fn manifests() -> Vec<Attack> {
    let file = |name, stage, bytes| Attack::loading(name, stage, Body::File(bytes));
    vec![
        file("no manifest", "manifest", || {
            Guest::default().try_assemble().map_err(|error| error.to_string())
        }),
        file("a manifest that is not TOML", "manifest", || honest("{ \"name\": \"test\" }")),
        file("a manifest that asks for the whole network", "manifest", || {
            honest(&format!("{MANIFEST}\n[capabilities]\nnetwork = [\"*\"]\n"))
        }),
        file("a manifest that asks for a limit that is none", "manifest", || {
            honest(&format!("{MANIFEST}\n[capabilities.limits]\nmemory = \"all\"\n"))
        }),
    ]
}

/// The honest guest under another manifest.
fn honest(manifest: &str) -> Result<Vec<u8>, String> {
    let bytes = Guest::default().try_assemble().map_err(|error| error.to_string())?;
    embedded(&bytes, manifest, CASES).map_err(|error| error.to_string())
}

fn components() -> Vec<Attack> {
    let guest = |name, stage, guest| Attack::loading(name, stage, Body::Load(guest));
    vec![
        guest("a version of the interface to come", "wit-version", || Guest {
            version: "0.9.0",
            ..Guest::default()
        }),
        guest("an import that nobody has", "imports", || Guest {
            imports: "(import \"evil:host/shell@1.0.0\" (instance))".into(),
            ..Guest::default()
        }),
        guest("a hundred memories", "compile", || with_core("(memory 1)")),
        guest("a hundred tables", "compile", || with_core("(table 1 funcref)")),
        guest("a hundred instances", "compile", || Guest {
            imports: format!("(core module $e) {}", "(core instance (instantiate $e))".repeat(100)),
            ..Guest::default()
        }),
        guest("a loop in the start function", "instantiate", || Guest {
            start: LOOP.into(),
            ..Guest::default()
        }),
        guest("a loop in the trigger", "assess", || Guest { assess: LOOP.into(), ..Guest::default() }),
        guest("a loop in the schema", "schema", || {
            let mut guest = Guest::default();
            guest.describes("{}");
            guest.core = guest.core.replace(
                "(func (export \"schema\") (result i32) ",
                "(func (export \"schema\") (result i32) (loop $again (br $again)) ",
            );
            guest
        }),
        guest("a verification that accepts everything", "verification", || {
            let mut guest = Guest::default();
            guest.verify = format!("i32.const {}", guest.accepting());
            guest
        }),
    ]
}

/// Components that are small, valid, and slow to compile; each in a module that is never run.
fn bombs() -> Vec<Attack> {
    vec![
        // Too long to be handed to a compiler at all.
        Attack::loading(
            "a function of more than a megabyte",
            "compile",
            Body::File(|| {
                // Twelve bytes each.
                let constants = "i64.const -9223372036854775808 drop ".repeat(100_000);
                let bytes = bomb(&format!("(func {constants})")).try_assemble();
                embedded(&bytes.map_err(|error| error.to_string())?, MANIFEST, CASES)
                    .map_err(|error| error.to_string())
            }),
        ),
        Attack::compiling("five thousand locals that meet in loops", "time", || bomb(&locals(5_000))),
    ]
}

fn bomb(module: &str) -> Guest {
    Guest { imports: format!("(core module $bomb {module})"), ..Guest::default() }
}

/// A function whose locals each depend on two others at the head of every loop.
fn locals(count: usize) -> String {
    let loops: String = (1..count)
        .map(|at| {
            format!(
                "(loop (local.set {at} (i64.add (local.get {}) (local.get {})))
                   (br_if 0 (i64.eqz (local.get {at}))) (br_if 0 (i64.eqz (local.get {}))))",
                at + 1,
                count + 1 - at,
                count / 2
            )
        })
        .collect();
    format!("(func (param i32) (local {}) {loops})", "i64 ".repeat(count))
}

fn with_core(what: &str) -> Guest {
    Guest { core: what.repeat(100), ..Guest::default() }
}
