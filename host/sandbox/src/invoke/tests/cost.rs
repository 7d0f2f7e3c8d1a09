//! What calls cost: measurements, read by a person.
//! `cargo test --release -- --ignored --nocapture cost`

use std::time::Instant;

use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

use super::*;
use crate::bindings::skill::SkillPre;
use crate::component::Pre;
use crate::testing::guest::files::{READ, Script, WORK};

/// What a fresh call costs, for the README.
#[tokio::test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
async fn cost_of_a_call() {
    let (sandbox, folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    let time = |name: &'static str, count: u32, began: Instant| {
        eprintln!("{name}: {:.1} µs", began.elapsed().as_secs_f64() * 1e6 / f64::from(count));
    };
    for round in 0..2 {
        let began = Instant::now();
        for _ in 0..2000 {
            assert!(matches!(sandbox.assess(setting.clone(), subgoal()).await.end, End::Returned(_)));
        }
        time("assess", 2000, began);
        let began = Instant::now();
        for _ in 0..1000 {
            assert!(matches!(sandbox.execute(setting.clone(), call()).await.end, End::Returned(_)));
        }
        time("execute, with its /work", 1000, began);
        eprintln!("round {round}");
    }
    let began = Instant::now();
    sandbox.self_test().await.unwrap();
    time("self-test", 1, began);
    let began = Instant::now();
    let other = crate::testing::sandbox_in(&folder);
    time("a second sandbox", 1, began);
    drop(other);
}

/// Which host serves the files of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    ByTheGate,
    /// By wasmtime-wasi as it is, with all that it allows.
    Plainly,
}

/// One call of a guest, from its store on.
async fn timed(sandbox: &Sandbox, component: &Component, setting: &Setting, served: Served) -> Duration {
    let host = &sandbox.0;
    let own = Own::prepare(host, setting).await.unwrap();
    let work = &own.work;
    let log = LogBook::new(setting.limits.get(LimitKey::Log));
    let mut state =
        state::<Execute>(host, setting, &log, Some(&own), Instant::now() + Duration::from_secs(30)).unwrap();
    if served == Served::Plainly {
        let mut wasi = WasiCtxBuilder::new();
        wasi.allow_blocking_current_thread(true);
        for name in ["/in", "/artifacts", "/work"] {
            wasi.preopened_dir(work.path(), name, FsPerms::ReadWrite).unwrap();
        }
        state.wasi = wasi.build();
    }
    let meter = Meter::start(&setting.limits);
    let mut store = store(host, state, &setting.limits, &meter).unwrap();
    let began = Instant::now();
    let outcome = Execute(call()).call(component, &mut store).await.unwrap();
    let took = began.elapsed();
    assert!(!outcome.unwrap().content.contains(|c: char| c.is_ascii_digit()), "a step failed");
    took
}

/// What the file gate costs: the same guest, served by it and by wasmtime-wasi alone, in turns.
#[tokio::test]
#[ignore = "a measurement"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
async fn cost_of_the_file_gate() {
    let (sandbox, _folder) = sandbox();
    let mut plain = wasmtime::component::Linker::new(&sandbox.0.engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut plain).unwrap();
    crate::bindings::skill::Skill::add_to_linker::<State, wasmtime::component::HasSelf<State>>(
        &mut plain,
        |state| state,
    )
    .unwrap();
    let scripts = [
        ("2,000 writes of 4 KiB to a stream", {
            Script::new().create(WORK, "a").append().repeat(2000, |script| script.blocking_write(4096))
        }),
        ("2,000 reads of 4 KiB", {
            Script::new().create(WORK, "a").write(8192, 0).repeat(2000, |script| {
                script
                    .raw("(call $read (global.get $file) (i64.const 4096) (i64.const 0) (global.get $ret))")
                    .raw("(call $forget)")
            })
        }),
        ("2,000 files opened and closed", {
            Script::new()
                .create(WORK, "a")
                .drop_file()
                .repeat(2000, |script| script.open(WORK, "a", 0, READ).drop_file())
        }),
        ("2,000 files made", { Script::new().repeat(2000, |script| script.create_numbered(WORK)) }),
    ];
    for (name, script) in scripts {
        let mut guest = script.guest(&[]);
        // The heap of these guests is never given back otherwise.
        guest.core.push_str("(func $forget)");
        guest.realloc = "(i32.const 131072)".to_owned();
        let mut setting = ready(&sandbox, &guest);
        let gated = sandbox.component(&setting.component).unwrap();
        let compiled = gated.pre.instance_pre().component().clone();
        let pre = SkillPre::new(plain.instantiate_pre(&compiled).unwrap()).unwrap();
        let plain = Component::new(gated.digest, gated.manifest.clone(), Pre::Skill(pre));
        let empty = tempfile::tempdir().unwrap();
        (setting.input, setting.artifacts) = (Some(empty.path().to_owned()), Some(empty.path().to_owned()));
        let (mut with, mut without) = (Duration::MAX, Duration::MAX);
        for _ in 0..7 {
            with = with.min(timed(&sandbox, &gated, &setting, Served::ByTheGate).await);
            without = without.min(timed(&sandbox, &plain, &setting, Served::Plainly).await);
        }
        let ratio = with.as_secs_f64() / without.as_secs_f64();
        eprintln!("{name}: {with:.1?} with the gate, {without:.1?} without, {ratio:.2} times");
    }
}
