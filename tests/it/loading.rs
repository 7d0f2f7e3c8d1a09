//! Attacks on loading: whatever is handed over, there is one plain answer, in a bounded time.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_contract::problem::Fault;
use checkrein_sandbox::{Loaded, Options, Places, Sandbox, Source, Workers};
use checkrein_tests::{Judge, binary};
use tempfile::TempDir;

/// How long a worker may compile here, so that the bombs are soon over.
const COMPILE: Duration = Duration::from_secs(4);
/// How long anything here may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn sandbox() -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let state = checkrein_store::State::open(folder.path()).unwrap();
    let places = Places { cache: folder.path().join("cache"), scratch: folder.path().join("scratch") };
    let workers = Some(Workers { program: binary().to_owned(), verify: false });
    let options = Options { workers, compile_wall: COMPILE, ..Options::new(places) };
    (Sandbox::new(options, Arc::new(state.blobs())).unwrap(), folder)
}

async fn load(sandbox: &Sandbox, bytes: Vec<u8>) -> Result<Loaded, Vec<Fault>> {
    let began = Instant::now();
    let loaded = sandbox.load(Source::Bytes { name: "c.wasm".into(), bytes }).await;
    assert!(began.elapsed() < PATIENCE, "it took {:?}", began.elapsed());
    if let Err(faults) = &loaded {
        assert!(!faults.is_empty());
        for fault in faults {
            assert!(
                fault.stage != "host" && !fault.expected.is_empty() && !fault.found.is_empty(),
                "{fault}"
            );
            assert_eq!(fault.to_string().lines().count(), 1, "{fault}");
        }
    }
    loaded
}

async fn faults(bytes: Vec<u8>) -> Vec<Fault> {
    let (sandbox, _folder) = sandbox();
    load(&sandbox, bytes).await.unwrap_err()
}

async fn assert_fault(bytes: Vec<u8>, stage: &str, words: &str) {
    let faults = faults(bytes).await;
    let told = faults.iter().any(|fault| fault.stage == stage && fault.to_string().contains(words));
    assert!(told, "`{words}` is in none of {faults:#?}");
}

#[tokio::test]
async fn an_honest_component_loads() {
    let (sandbox, _folder) = sandbox();
    load(&sandbox, Judge::default().assemble()).await.unwrap();
}

#[tokio::test]
async fn empty_file() {
    assert_fault(Vec::new(), "format", "an empty file").await;
}

#[tokio::test]
async fn text() {
    assert_fault(b"(component)".to_vec(), "format", "wasm-tools parse").await;
}

#[tokio::test]
async fn core_module() {
    assert_fault(wat::parse_str("(module)").unwrap(), "format", "wasm-tools component new").await;
}

#[tokio::test]
async fn truncated_at_50_places() {
    let (sandbox, _folder) = sandbox();
    let whole = Judge::default().assemble();
    for part in 0..50 {
        let cut = whole[..whole.len() * part / 50].to_vec();
        assert!(load(&sandbox, cut).await.is_err(), "{part}");
    }
}

#[tokio::test]
async fn single_bit_flips_at_500_seeded_places() {
    let folder = tempfile::tempdir().unwrap();
    let state = checkrein_store::State::open(folder.path()).unwrap();
    let places = Places { cache: folder.path().join("cache"), scratch: folder.path().join("scratch") };
    // A process for each would take minutes; that one is asked at all is shown elsewhere.
    let sandbox = Sandbox::new(Options::new(places), Arc::new(state.blobs())).unwrap();
    let whole = Judge::default().assemble();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut loaded = 0;
    for _ in 0..500 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut flipped = whole.clone();
        flipped[(seed >> 33) as usize % whole.len()] ^= 1 << ((seed >> 13) % 8);
        loaded += usize::from(load(&sandbox, flipped).await.is_ok());
    }
    // Names and texts may change; most of a component may not.
    assert!(loaded < 250, "{loaded} loaded");
}

#[tokio::test]
async fn old_and_future_wit_version() {
    for version in ["0.0.1", "0.3.0"] {
        let bytes = Judge { version, ..Judge::default() }.assemble();
        assert_fault(
            bytes,
            "wit-version",
            &format!("built for checkrein:skill {version}, this host supports 0.1.0"),
        )
        .await;
    }
}

#[tokio::test]
async fn unknown_import() {
    let bytes = Judge::with("(import \"acme:a/b@1.0.0\" (instance)) (import \"acme:c/d@1.0.0\" (instance))")
        .assemble();
    let faults = faults(bytes).await;
    let places: Vec<_> = faults.iter().map(|fault| fault.place.as_str()).collect();
    assert_eq!(places, ["acme:a/b@1.0.0", "acme:c/d@1.0.0"]);
}

#[tokio::test]
async fn missing_export() {
    let manifest = Judge::default().manifest.replace("verifier", "skill") + "effects = \"none\"\n";
    let bytes = Judge { manifest, ..Judge::default() }.assemble();
    let faults = faults(bytes).await;
    assert_eq!(faults.iter().filter(|fault| fault.stage == "exports").count(), 3, "{faults:#?}");
}

#[tokio::test]
async fn a_manifest_that_is_not_toml() {
    assert_fault(
        Judge { manifest: "{\u{1b}[31m".into(), ..Judge::default() }.assemble(),
        "syntax",
        "[skill.toml]",
    )
    .await;
}

#[tokio::test]
async fn a_manifest_that_asks_for_everything() {
    for rule in ["*", "GET *", "* https://*", "GET https://*/*"] {
        let manifest = format!("{}[capabilities]\nnetwork = [\"{rule}\"]\n", Judge::default().manifest);
        let faults = faults(Judge { manifest, ..Judge::default() }.assemble()).await;
        assert!(faults.iter().any(|fault| fault.file.ends_with("[skill.toml]")), "{rule}: {faults:#?}");
    }
}

#[tokio::test]
async fn a_component_of_64_mib() {
    let mut bytes = Judge::default().assemble();
    let fill = 65 << 20;
    // A custom section of the component that says nothing.
    bytes.push(0);
    let mut length = fill + 2;
    while length >= 0x80 {
        bytes.push((length as u8 & 0x7f) | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend([1, b'x']);
    bytes.resize(bytes.len() + fill, 0);
    assert_fault(bytes, "size", "at most 64 MiB").await;
}

fn bomb(module: &str) -> Vec<u8> {
    Judge::with(format!("(core module $bomb {module})")).assemble()
}

/// What is no bomb on this machine may load; what is one is told as such.
async fn assert_bounded(bytes: Vec<u8>) {
    let (sandbox, _folder) = sandbox();
    if let Err(faults) = load(&sandbox, bytes).await {
        assert!(faults.iter().all(|fault| fault.stage == "compile"), "{faults:#?}");
        let told = faults[0].found.contains("ran out")
            || faults[0].found.contains("invalid")
            || faults[0].expected.contains("at most");
        assert!(told, "{faults:#?}");
    }
    // The host goes on.
    load(&sandbox, Judge::default().assemble()).await.unwrap();
}

#[tokio::test]
async fn one_function_of_a_million_blocks() {
    let bytes = bomb(&format!("(func {})", "block end ".repeat(1_000_000)));
    assert_fault(bytes, "compile", "function 0 of core module 1").await;
}

#[tokio::test]
async fn one_function_of_200_thousand_blocks() {
    assert_bounded(bomb(&format!("(func (local i32) {})", "local.get 0 if end ".repeat(200_000)))).await;
}

#[tokio::test]
async fn five_thousand_locals_in_loops() {
    let mut text = format!("(func (param i32) (local {})", "i64 ".repeat(5_000));
    for at in 1..5_000 {
        write!(
            text,
            "(loop (local.set {at} (i64.add (local.get {}) (local.get {})))
               (br_if 0 (i64.eqz (local.get {at}))) (br_if 0 (i64.eqz (local.get 2500))))",
            at + 1,
            5_001 - at
        )
        .unwrap();
    }
    text.push(')');
    let (sandbox, _folder) = sandbox();
    let faults = load(&sandbox, bomb(&text)).await.unwrap_err();
    assert_eq!(faults[0].stage, "compile");
    assert!(faults[0].found.contains("ran out"), "{faults:#?}");
    load(&sandbox, Judge::default().assemble()).await.unwrap();
}

#[tokio::test]
async fn a_hundred_thousand_functions() {
    assert_bounded(bomb(&"(func (param i32) (result i32) local.get 0 i32.const 3 i32.mul)".repeat(100_000)))
        .await;
}

#[tokio::test]
async fn deep_nesting() {
    // As bytes: the text of it would nest as deep in the assembler.
    let depth = 20_000;
    assert_bounded(bomb(&format!("(func {} {})", "block ".repeat(depth), "end ".repeat(depth)))).await;
}

#[tokio::test]
async fn a_huge_br_table() {
    let targets = "0 ".repeat(60_000);
    assert_bounded(bomb(&format!("(func (param i32) (block local.get 0 br_table {targets} 0))"))).await;
}
