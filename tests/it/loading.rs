//! Attacks on loading: whatever is handed over, there is one plain answer, in a bounded time.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_contract::limits::Limits;
use checkrein_contract::problem::Fault;
use checkrein_sandbox::attack::{Attack, Runner, corpus};
use checkrein_sandbox::{Loaded, Options, Places, Sandbox, Source, Workers};
use checkrein_tests::{Judge, binary};
use tempfile::TempDir;

/// How long a worker may compile here, so that the bombs are soon over.
const COMPILE: Duration = Duration::from_secs(4);
/// How long anything here may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn sandbox() -> (Sandbox, TempDir) {
    sandbox_for(COMPILE)
}

/// One whose workers may compile for so long.
fn sandbox_for(compile_wall: Duration) -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let state = checkrein_store::State::open(folder.path()).unwrap();
    let places = Places { cache: folder.path().join("cache"), scratch: folder.path().join("scratch") };
    let workers = Some(Workers { program: binary().to_owned(), verify: false });
    let options = Options { workers, compile_wall, ..Options::new(places) };
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

/// How a bomb ends, whatever the machine.
#[derive(Clone, Copy)]
enum Ends {
    /// It is none: in all the time that there is, it loads.
    Loads,
    /// Its time runs out, where it has this much.
    RunsOut(Duration),
    /// It is handed to no compiler, and this says why.
    Refused(&'static str),
}

/// What compiling a bomb may take in this process and, of the processor, in both.
const MEMORY_KIB: u64 = 256 << 10;
const TICKS: u64 = 20 * 100;

/// Loads a bomb in a process of its own, where what it takes can be measured.
async fn assert_ends(test: &str, bytes: impl FnOnce() -> Vec<u8>, ends: Ends) {
    const ALONE: &str = "CHECKREIN_TEST_BOMB";
    if std::env::var_os(ALONE).is_none() {
        // Built here, so that the building is not measured there.
        binary();
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let out = alone.args(["--exact", &format!("loading::{test}")]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let wall = match ends {
        Ends::RunsOut(wall) => wall,
        Ends::Loads | Ends::Refused(_) => PATIENCE,
    };
    let (sandbox, _folder) = sandbox_for(wall);
    let bytes = bytes();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (ticks, resident) = (ticks(), status("VmRSS:"));
    let loaded = load(&sandbox, bytes).await;
    let taken = status("VmHWM:").saturating_sub(resident);
    assert!(taken < MEMORY_KIB, "{taken} KiB of memory at its peak");
    let spent = self::ticks() - ticks;
    match (loaded, ends) {
        (Ok(_), Ends::Loads) => {}
        (Err(faults), Ends::RunsOut(_)) => {
            assert!(spent < TICKS, "{spent} hundredths of a second of the processor");
            assert_eq!((faults.len(), faults[0].stage.as_str()), (1, "compile"), "{faults:#?}");
            assert!(faults[0].found.contains("time ran out"), "{faults:#?}");
        }
        (Err(faults), Ends::Refused(words)) => {
            assert!(spent < TICKS, "{spent} hundredths of a second of the processor");
            assert_eq!((faults.len(), faults[0].stage.as_str()), (1, "compile"), "{faults:#?}");
            assert!(faults[0].to_string().contains(words), "{faults:#?}");
        }
        (Ok(_), _) => panic!("it loaded"),
        (Err(faults), Ends::Loads) => panic!("{faults:#?}"),
    }
    // The host goes on.
    let (sandbox, _folder) = self::sandbox();
    load(&sandbox, Judge::default().assemble()).await.unwrap();
}

/// Hundredths of a second that this process and its children, as far as they ended, computed.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name may hold spaces; after it, the state is the third field and `utime` the fourteenth.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(4).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// A line of this process's status, in KiB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// So short that nothing of a size is compiled in it, on whatever machine.
const AT_ONCE: Duration = Duration::from_millis(20);

#[tokio::test]
async fn one_function_of_a_million_blocks() {
    let bytes = || bomb(&format!("(func {})", "block end ".repeat(1_000_000)));
    let ends = Ends::Refused("function 0 of core module 1");
    assert_ends("one_function_of_a_million_blocks", bytes, ends).await;
}

#[tokio::test]
async fn one_function_of_200_thousand_blocks() {
    let bytes = || bomb(&format!("(func (local i32) {})", "local.get 0 if end ".repeat(200_000)));
    assert_ends("one_function_of_200_thousand_blocks", bytes, Ends::RunsOut(AT_ONCE)).await;
}

#[tokio::test]
async fn five_thousand_locals_in_loops() {
    let bytes = || {
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
        bomb(&text)
    };
    assert_ends("five_thousand_locals_in_loops", bytes, Ends::RunsOut(COMPILE)).await;
}

#[tokio::test]
async fn a_hundred_thousand_functions() {
    let bytes = || bomb(&"(func (param i32) (result i32) local.get 0 i32.const 3 i32.mul)".repeat(100_000));
    assert_ends("a_hundred_thousand_functions", bytes, Ends::RunsOut(AT_ONCE)).await;
}

#[tokio::test]
async fn deep_nesting() {
    // Not in brackets: the text of it would nest as deep in the assembler.
    let depth = 20_000;
    let bytes = || bomb(&format!("(func {} {})", "block ".repeat(depth), "end ".repeat(depth)));
    assert_ends("deep_nesting", bytes, Ends::Loads).await;
}

#[tokio::test]
async fn a_huge_br_table() {
    let targets = "0 ".repeat(60_000);
    let bytes = || bomb(&format!("(func (param i32) (block local.get 0 br_table {targets} 0))"));
    assert_ends("a_huge_br_table", bytes, Ends::Loads).await;
}

/// `doctor --attack` has them compiled as loading does: in a process that is ended.
#[tokio::test]
async fn bombs_of_the_corpus() {
    let (sandbox, _folder) = sandbox();
    let runner = Runner::start(&sandbox, &Limits::default()).await.unwrap();
    let bombs: Vec<_> = corpus().into_iter().filter(Attack::needs_a_worker).collect();
    assert!(!bombs.is_empty());
    for bomb in &bombs {
        // What is left behind cannot be told here, where other tests run at the same time.
        let report = runner.run(bomb).await;
        assert!(report.held, "{report:#?}");
    }
}
