//! Components that take more than they may.

use checkrein_contract::limits::LimitKey;

use super::guest::Guest;
use super::time::{many, sleeper};
use super::{Asked, Attack, Expected, Group};

const MIB: u64 = 1 << 20;

pub(super) fn attacks() -> Vec<Attack> {
    [memories(), counts(), answers(), floods()].concat()
}

fn attack(name: &'static str, expected: impl Into<Expected>, guest: fn() -> Guest) -> Attack {
    Attack::part(Group::Memory, name, Asked::Execute, expected, guest)
}

fn memories() -> Vec<Attack> {
    let core = |name, key, guest| attack(name, key, guest);
    vec![
        core("growing to 4 GiB", LimitKey::Memory, || {
            Guest::executing(
                "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
            )
        }),
        core("growing to 4 GiB at once", LimitKey::Memory, || {
            Guest::executing("(drop (memory.grow (i32.const 65530))) unreachable")
        }),
        core("a memory of 4 GiB from the start", LimitKey::Memory, || with_core("(memory $big 65536)")),
        core("memories that are too much together", LimitKey::Memory, || {
            with_core("(memory $a 1000) (memory $b 1000) (memory $c 1000)")
        }),
        core("many memories", LimitKey::Memories, || with_core(&"(memory 1)".repeat(5)))
            .within(LimitKey::Memories, 4),
        core("many tables", LimitKey::Tables, || with_core(&"(table 1 funcref)".repeat(10)))
            .within(LimitKey::Tables, 8),
        core("a table of a million", LimitKey::TableElements, || with_core("(table 30000 funcref)")),
        core("a table that grows for ever", LimitKey::TableElements, || {
            Guest {
            core: "(table $t 1 funcref)".into(),
            execute: "(loop $again
                (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1)))) unreachable"
                .into(),
            ..Guest::default()
        }
        }),
        core("many instances", LimitKey::Instances, || Guest {
            imports: format!(
                "(core module $empty) {}",
                (0..20).map(|n| format!("(core instance $e{n} (instantiate $empty))")).collect::<String>()
            ),
            ..Guest::default()
        })
        .within(LimitKey::Instances, 10),
    ]
}

fn with_core(core: &str) -> Guest {
    Guest { core: core.to_owned(), ..Guest::default() }
}

fn counts() -> Vec<Attack> {
    vec![
        attack("a handle ten million times", LimitKey::Handles, || {
            let mut guest = sleeper(0);
            let handles = many("(drop (call $subscribe (i64.const 1)))", 10_000_000);
            guest.execute = format!("(local $n i32) {handles} unreachable");
            guest
        }),
        attack("a gigabyte of random numbers at once", LimitKey::Random, || {
            let mut guest = Guest::default();
            let types = "(export \"get-random-bytes\" (func (param \"len\" u64) (result (list u8))))";
            guest.import("wasi:random/random@0.2.0", types, "get-random-bytes", "(param i64 i32)");
            guest.execute =
                "(call $get-random-bytes (i64.const 1073741824) (i32.const 65536)) unreachable".into();
            guest
        }),
    ]
}

fn answers() -> Vec<Attack> {
    let text = |name, expected, guest| attack(name, expected, guest);
    vec![
        text("a text of 4 GiB as a result", Expected::Trap("out of bounds"), || {
            returning(&[0, u32::MAX, 0, 0, 0, 0])
        }),
        text("a list of 4 GiB as a result", Expected::Trap("out of bounds"), || {
            returning(&[0, 0, 0, 97_000_000, 0, 0])
        }),
        text("a list whose length overflows", Expected::Trap("out of bounds"), || {
            // 44 bytes a fact: the product is 20 past 4 GiB.
            returning(&[0, 0, 0, 97_612_894, 0, 0])
        }),
        text("a list of the largest length", Expected::Trap("out of bounds"), || {
            returning(&[0, 0, 0, u32::MAX, 0, 0])
        }),
        attack("a result of 60 MiB", LimitKey::Transfer, || {
            let mut guest = returning(&[0, 60 << 20, 0, 0, 0, 0]);
            guest.memory = "1000".into();
            guest
        }),
        attack("one text in four thousand facts", LimitKey::Transfer, || facts(4_000, 65_536)),
        attack("a million draft facts", LimitKey::Transfer, || facts(1_000_000, 0)),
        attack("two thousand draft facts", LimitKey::Facts, || facts(2_000, 0)),
        attack("a content of 2 MiB", LimitKey::Outcome, || {
            let mut guest = returning(&[2 << 20, 2 << 20, 0, 0, 0, 0]);
            guest.memory = "100".into();
            guest
        }),
        attack("a realloc that points outside", Expected::Trap("beyond end of memory"), || Guest {
            realloc: "(i32.const -16)".into(),
            ..Guest::default()
        }),
    ]
}

/// An outcome of content, facts and artifacts, each as pointer and length.
fn returning(outcome: &[u32; 6]) -> Guest {
    let mut guest = Guest::default();
    let mut words = vec![0];
    words.extend(outcome);
    guest.execute = format!("i32.const {}", guest.image.words(&words));
    guest
}

/// So many draft facts, all with one content of so many bytes.
fn facts(count: u32, length: u32) -> Guest {
    const LIST: u32 = 1 << 20;
    const CONTENT: u32 = 46 << 20;
    let mut guest = Guest { memory: "800".into(), ..Guest::default() };
    let subject = guest.image.text("test/a");
    let outcome = guest.image.words(&[0, 0, 0, LIST, count, 0, 0]);
    guest.execute = format!(
        "(local $at i32) (local.set $at (i32.const {LIST}))
         (loop $again
           (i32.store offset=0 (local.get $at) (i32.const {}))
           (i32.store offset=4 (local.get $at) (i32.const {}))
           (i32.store offset=16 (local.get $at) (i32.const {CONTENT}))
           (i32.store offset=20 (local.get $at) (i32.const {length}))
           (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 44)))
             (i32.const {}))))
         i32.const {outcome}",
        subject[0],
        subject[1],
        LIST + count * 44,
    );
    guest
}

fn floods() -> Vec<Attack> {
    let flood = |name, guest| {
        let flood = attack(name, Expected::Nothing, guest).within(LimitKey::Memory, 8 * MIB);
        // What is measured is memory; without optimisation this takes many seconds.
        flood.within(LimitKey::Wall, 120_000).within(LimitKey::Cpu, 60_000)
    };
    vec![
        // Cut and marked, and never held in full.
        flood("a gigabyte of log lines", || {
            let mut guest = Guest { memory: "20".into(), ..Guest::default() };
            guest.import_log();
            let answer = guest.execute.clone();
            let lines = many("(call $write (i32.const 1) (i32.const 131072) (i32.const 1048576))", 1_024);
            guest.execute = format!("(local $n i32) {lines} {answer}");
            guest
        }),
        flood("a gigabyte of standard output", || {
            let mut guest = printer();
            let answer = guest.execute.clone();
            let write = "(call $print (local.get $out) (i32.const 131072) (i32.const 65536) (i32.const 65536))";
            let lines = many(write, 16_384);
            guest.execute =
                format!("(local $n i32) (local $out i32) (local.set $out (call $stdout)) {lines} {answer}");
            guest
        }),
        attack("refusals of two megabytes each", LimitKey::HostCalls, || {
            let mut guest = Guest { memory: "120".into(), realloc: "(i32.const 4194304)".into(), ..Guest::default() };
            guest.import_fetch();
            // Each URL is another one.
            let fetch = "(i32.store16 (i32.const 1048576) (i32.add (i32.const 0x3030) (local.get $n)))
                (call $fetch (i32.const 1048576) (i32.const 1) (i32.const 1048576) (i32.const 2000000)
                  (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 65536))";
            guest.execute = format!(
                "(local $n i32) (memory.fill (i32.const 1048576) (i32.const 120) (i32.const 2000000)) {} unreachable",
                many(fetch, 10_000)
            );
            guest
        })
        .within(LimitKey::HostCalls, 75)
        .within(LimitKey::Memory, 8 * MIB),
    ]
}

/// A guest that can `$print` to the stream `$stdout`.
fn printer() -> Guest {
    let imports = r#"
        (import "wasi:io/error@0.2.0" (instance $wrongs (export "error" (type (sub resource)))))
        (alias export $wrongs "error" (type $wrong))
        (import "wasi:io/streams@0.2.0" (instance $streams
          (export "output-stream" (type $o (sub resource)))
          (type $s (variant (case "last-operation-failed" (own $wrong)) (case "closed")))
          (export "stream-error" (type $stream-error (eq $s)))
          (export "[method]output-stream.write" (func (param "self" (borrow $o)) (param "contents" (list u8))
            (result (result (error $stream-error)))))))
        (alias export $streams "output-stream" (type $output))
        (import "wasi:cli/stdout@0.2.0" (instance $out (export "get-stdout" (func (result (own $output))))))
        (core func $print (canon lower (func $streams "[method]output-stream.write") (memory $mem) (realloc $mrealloc)))
        (core func $stdout (canon lower (func $out "get-stdout")))
        (core instance $terminal (export "print" (func $print)) (export "stdout" (func $stdout)))"#;
    let core = r#"(import "terminal" "print" (func $print (param i32 i32 i32 i32)))
        (import "terminal" "stdout" (func $stdout (result i32)))"#;
    let with = r#"(with "terminal" (instance $terminal))"#;
    Guest { imports: imports.to_owned(), core: core.to_owned(), with: with.to_owned(), ..Guest::default() }
}
