//! Components that would run for ever.

use checkrein_contract::limits::LimitKey;

use super::guest::{Guest, LOOP};
use super::{Asked, Attack, Expected, Group};

const HOUR: u64 = 3_600_000_000_000;

pub(super) fn attacks() -> Vec<Attack> {
    [loops(), waits(), calls(), honest()].concat()
}

fn attack(name: &'static str, asked: Asked, expected: impl Into<Expected>, guest: fn() -> Guest) -> Attack {
    Attack::part(Group::Time, name, asked, expected, guest)
}

/// Stopped after so many milliseconds of computing.
fn computes(name: &'static str, asked: Asked, guest: fn() -> Guest) -> Attack {
    attack(name, asked, LimitKey::Cpu, guest).within(LimitKey::Cpu, 20)
}

fn loops() -> Vec<Attack> {
    use Asked::{Assess, Execute, Recover, Verify};
    vec![
        computes("a loop in the executor", Execute, || Guest::executing(LOOP)),
        computes("a loop in the trigger", Assess, || Guest { assess: LOOP.into(), ..Guest::default() }),
        computes("a loop in verification", Verify, || Guest { verify: LOOP.into(), ..Guest::default() }),
        computes("a loop in recovery", Recover, || Guest { recover: LOOP.into(), ..Guest::default() }),
        computes("a loop in a start function", Execute, || Guest { start: LOOP.into(), ..Guest::default() }),
        computes("a loop in realloc", Execute, || Guest { realloc: LOOP.into(), ..Guest::default() }),
        computes("a loop in post-return", Execute, || Guest { post_return: LOOP.into(), ..Guest::default() }),
        computes("a loop in a destructor", Execute, || {
            let mut guest = resource();
            guest.execute = "(call $drop (call $new (i32.const 1))) unreachable".into();
            guest
        }),
        computes("all of the memory filled in a loop", Execute, || {
            Guest::executing(
                "(drop (memory.grow (i32.const 1000)))
                 (loop $again (memory.fill (i32.const 0) (i32.const 7) (i32.const 65000000)) (br $again)) unreachable",
            )
        }),
        computes("a table filled in a loop", Execute, || Guest {
            core: "(table $t 10000 funcref)".into(),
            execute:
                "(loop $again (table.fill $t (i32.const 0) (ref.null func) (i32.const 10000)) (br $again))
                      unreachable"
                    .into(),
            ..Guest::default()
        }),
        attack("computing past its fuel", Execute, LimitKey::Fuel, || Guest::executing(LOOP))
            .within(LimitKey::Fuel, 1_234_567),
        attack("recursion without end", Execute, LimitKey::Stack, || Guest {
            core: "(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))"
                .into(),
            execute: "(call $deep (i32.const 0))".into(),
            ..Guest::default()
        }),
    ]
}

fn waits() -> Vec<Attack> {
    let waits = |name, guest| attack(name, Asked::Execute, LimitKey::Wall, guest).within(LimitKey::Wall, 50);
    vec![
        waits("an hour of sleep through the clock", || sleeper(HOUR)),
        waits("an hour of sleep through poll", || {
            let mut guest = sleeper(0);
            guest.execute = format!(
                "(i32.store (i32.const 65536) (call $subscribe (i64.const {HOUR})))
                 (call $poll (i32.const 65536) (i32.const 1) (i32.const 65544)) unreachable"
            );
            guest
        }),
        waits("sleep for ever", || sleeper(u64::MAX)),
        waits("an hour of sleep in short naps", || {
            let mut guest = sleeper(0);
            guest.execute = "(loop $again (call $nap (i64.const 1000000)) (br $again)) unreachable".into();
            guest
        }),
        waits("a host call that never returns", || {
            let mut guest = Guest::default();
            guest.import_progress();
            guest.execute =
                "(call $report (i32.const 1) (i32.const 2) (i32.const 0) (i32.const 0)) unreachable".into();
            guest
        }),
    ]
}

fn calls() -> Vec<Attack> {
    vec![
        attack("ten million cheap calls of the host", Asked::Execute, LimitKey::HostCalls, || {
            let mut guest = Guest::default();
            guest.import_log();
            let calls = many("(call $write (i32.const 0) (i32.const 0) (i32.const 0))", 10_000_000);
            guest.execute = format!("(local $n i32) {calls} unreachable");
            guest
        }),
        attack("ten million cheap calls of WASI", Asked::Execute, LimitKey::WasiCalls, || {
            let mut guest = sleeper(0);
            guest.execute = format!("(local $n i32) {} unreachable", many("(drop (call $now))", 10_000_000));
            guest
        })
        .within(LimitKey::WasiCalls, 100_000),
    ]
}

fn honest() -> Vec<Attack> {
    let honest = |name, guest| attack(name, Asked::Execute, Expected::Nothing, guest);
    vec![
        // Charged by ticks of the clock, these waits would be 100 ms of computing.
        honest("a hundred waits of 20 ms", || {
            let mut guest = sleeper(0);
            let answer = Guest::default().execute;
            let naps = many("(call $nap (i64.const 20000000))", 100);
            guest.execute = format!("(local $n i32) {naps} {answer}");
            guest
        })
        .within(LimitKey::Cpu, 80),
        // It is dropped with its store, and its destructor is never entered.
        honest("a resource left behind with a loop as destructor", || {
            let mut guest = resource();
            guest.execute = format!("(drop (call $new (i32.const 1))) {}", guest.execute);
            guest
        })
        .within(LimitKey::Cpu, 500),
    ]
}

/// Does something so often; `$n` is a local that counts.
pub(super) fn many(what: &str, times: u32) -> String {
    format!(
        "(loop $again {what}
           (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const {times}))))"
    )
}

/// A guest with a resource of its own, whose destructor never ends: `$new`, `$drop`.
fn resource() -> Guest {
    let imports = format!(
        r#"(core module $destructor (func (export "destroy") (param i32) {LOOP}))
        (core instance $destroys (instantiate $destructor))
        (type $thing (resource (rep i32) (dtor (func $destroys "destroy"))))
        (core func $new (canon resource.new $thing))
        (core func $drop (canon resource.drop $thing))
        (core instance $things (export "new" (func $new)) (export "drop" (func $drop)))"#
    );
    let core = r#"(import "things" "new" (func $new (param i32) (result i32)))
        (import "things" "drop" (func $drop (param i32)))"#;
    let with = r#"(with "things" (instance $things))"#;
    Guest { imports, core: core.to_owned(), with: with.to_owned(), ..Guest::default() }
}

/// A guest that sleeps for so many nanoseconds; it can `$subscribe`, `$block`, `$poll`, `$release`
/// and look at `$now`, and `$nap`, which does all of it.
pub(crate) fn sleeper(nanos: u64) -> Guest {
    let mut guest =
        Guest::executing(&format!("(call $block (call $subscribe (i64.const {nanos}))) unreachable"));
    guest.imports = r#"
        (import "wasi:io/poll@0.2.0" (instance $poll
          (export "pollable" (type $pollable (sub resource)))
          (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
          (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
          (export "now" (func (result u64)))
          (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
        (core func $block (canon lower (func $poll "[method]pollable.block")))
        (core func $polls (canon lower (func $poll "poll") (memory $mem) (realloc $mrealloc)))
        (core func $release (canon resource.drop $pollable))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core func $now (canon lower (func $clock "now")))
        (core instance $time (export "block" (func $block)) (export "poll" (func $polls))
          (export "release" (func $release)) (export "subscribe" (func $subscribe)) (export "now" (func $now)))"#
        .to_owned();
    guest.with = r#"(with "time" (instance $time))"#.to_owned();
    guest.core = r#"(import "time" "block" (func $block (param i32)))
        (import "time" "poll" (func $poll (param i32 i32 i32)))
        (import "time" "release" (func $release (param i32)))
        (import "time" "subscribe" (func $subscribe (param i64) (result i32)))
        (import "time" "now" (func $now (result i64)))
        (func $nap (param i64) (local $sleep i32)
          (local.set $sleep (call $subscribe (local.get 0)))
          (call $block (local.get $sleep)) (call $release (local.get $sleep)))"#
        .to_owned();
    guest
}
