//! Guests that take more than they may: memory, tables, transfers, calls, log.

use super::*;

#[tokio::test]
async fn memory_is_refused_over_all_memories_together() {
    // 2 MiB are allowed; the guest has 4 pages, 256 KiB, at start.
    let limit = 2 << 20;
    let grow = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let ran = executed(&Guest::executing(grow), LimitKey::Memory, limit).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).allowed), ("memory", limit));
    assert_eq!(ran.used.memory_bytes, limit);
    let all = Guest::executing("(drop (memory.grow (i32.const 65530))) unreachable");
    assert_eq!(hit(&executed(&all, LimitKey::Memory, limit).await).limit, "memory");
    let huge = Guest { core: "(memory $big 65536)".into(), ..Guest::default() };
    assert_eq!(hit(&executed(&huge, LimitKey::Memory, limit).await).limit, "memory");
    let two = Guest { core: "(memory $a 16) (memory $b 16)".into(), ..Guest::default() };
    assert_eq!(hit(&executed(&two, LimitKey::Memory, limit).await).limit, "memory");
}

#[tokio::test]
async fn a_trap_after_a_granted_growth_is_a_trap() {
    let body = "(drop (memory.grow (i32.const 1000))) (drop (memory.grow (i32.const 1))) unreachable";
    let ran = executed(&Guest::executing(body), LimitKey::Memory, 2 << 20).await;
    assert!(matches!(ran.end, End::Trapped(_)), "{ran:?}");
}

#[tokio::test]
async fn many_memories_tables_and_elements_are_refused() {
    let (sandbox, _folder) = sandbox();
    let run = |core: String, key: LimitKey, value: u64| {
        let guest = Guest { core, ..Guest::default() };
        let mut setting = ready(&sandbox, &guest);
        setting.limits = setting.limits.with(key, value);
        sandbox.execute(setting, call())
    };
    let ran = run("(memory 1)".repeat(3), LimitKey::Memories, 3).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).used), ("memories", 4));
    let ran = run("(table 1 funcref)".repeat(5), LimitKey::Tables, 4).await;
    assert_eq!(hit(&ran).limit, "tables");
    let ran = run("(table 30000 funcref)".into(), LimitKey::Wall, 1000).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).allowed), ("table-elements", 20_000));
    let ran = run(String::new(), LimitKey::Instances, 1).await;
    assert_eq!(hit(&ran).limit, "instances");
}

#[tokio::test]
async fn a_result_of_a_gigabyte_is_stopped_before_it_is_copied() {
    let mut guest = Guest { memory: "1000".into(), ..Guest::default() };
    let outcome = guest.image.words(&[0, 0, 60 << 20, 0, 0, 0, 0]);
    guest.execute = format!("i32.const {outcome}");
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    assert_eq!(hit(&ran).limit, "transfer");
    let facts = guest.image.words(&[0, 0, 0, 0, u32::MAX, 0, 0]);
    guest.execute = format!("i32.const {facts}");
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    assert!(!matches!(ran.end, End::Returned(_) | End::Fault(_)), "{ran:?}");
}

#[tokio::test]
async fn a_flood_of_log_lines_is_counted_and_cut() {
    let mut guest = Guest::default();
    guest.import_log();
    let line = guest.image.text("all work and no play");
    guest.execute = format!(
        "(loop $again (call $write (i32.const 1) (i32.const {}) (i32.const {})) (br $again)) unreachable",
        line[0], line[1]
    );
    let ran = executed(&guest, LimitKey::Log, 1 << 10).await;
    let hit = hit(&ran);
    assert_eq!((hit.limit.as_str(), hit.used, ran.used.host_calls), ("host-calls", 10_001, 10_001));
    assert!(
        ran.log.starts_with("info: all work") && ran.log.contains(" bytes cut …]") && ran.log.len() < 1200
    );
}

#[tokio::test]
async fn one_huge_log_line_is_a_transfer() {
    let mut guest = Guest { memory: "1000".into(), ..Guest::default() };
    guest.import_log();
    guest.execute = "(call $write (i32.const 1) (i32.const 0) (i32.const 60000000)) unreachable".into();
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    assert_eq!(hit(&ran).limit, "transfer");
}

#[tokio::test]
async fn wasi_calls_are_counted() {
    let mut guest = sleeper(0);
    guest.execute = "(loop $again (drop (call $now)) (br $again)) unreachable".into();
    let ran = executed(&guest, LimitKey::WasiCalls, 1000).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).used), ("wasi-calls", 1001));
}

#[tokio::test]
async fn handles_and_random_are_bounded() {
    let mut guest = sleeper(0);
    guest.execute = "(loop $again (drop (call $subscribe (i64.const 1))) (br $again)) unreachable".into();
    let ran = executed(&guest, LimitKey::Handles, 100).await;
    assert_eq!(hit(&ran).limit, "handles");
    let mut guest = Guest::default();
    let types = "(export \"get-random-bytes\" (func (param \"len\" u64) (result (list u8))))";
    guest.import("wasi:random/random@0.2.0", types, "get-random-bytes", "(param i64 i32)");
    guest.execute = "(call $get-random-bytes (i64.const 5000000) (i32.const 65536)) unreachable".into();
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).used), ("random", 5_000_000));
}
