//! Hostile guests, each a complete skill with one part replaced, and the wall that stops it.

use checkrein_contract::interface::{
    Body, Call, Cause, FailureKind, LimitHit, Mishap, Subgoal, Submission,
};
use checkrein_contract::port::Guests as _;
use serde_json::json;

use super::*;
use crate::sandbox::Sandbox;
use crate::testing::{Guest, ready, sandbox};

const LOOP: &str = "(loop $again (br $again)) unreachable";

fn subgoal() -> Subgoal {
    Subgoal { id: "s".into(), goal: "g".into(), args: json!({}), evidence: Vec::new(), criteria: Vec::new() }
}

fn call() -> Call {
    Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) }
}

fn submission() -> Submission {
    let outcome = Outcome { content: json!({ "n": 1 }), facts: Vec::new(), artifacts: Vec::new() };
    Submission {
        skill: "test".into(),
        version: "1.0.0".into(),
        subgoal: subgoal(),
        body: Body::Performed { call: call(), outcome },
        inputs: Vec::new(),
        settings: json!({}),
    }
}

fn mishap() -> Mishap {
    Mishap { subgoal: subgoal(), call: call(), cause: Cause::Other("o".into()), earlier: Vec::new() }
}

fn hit<T: std::fmt::Debug>(ran: &Ran<T>) -> LimitHit {
    match &ran.end {
        End::Limited(hit) => hit.clone(),
        end => panic!("{end:?}"),
    }
}

/// Executes the guest with one limit changed.
async fn executed(guest: &Guest, key: LimitKey, value: u64) -> Ran<Execution> {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, guest);
    setting.limits = setting.limits.with(key, value);
    sandbox.execute(setting, call()).await
}

fn executing(body: &str) -> Guest {
    Guest { execute: body.to_owned(), ..Guest::default() }
}

async fn assert_nothing_left(sandbox: &Sandbox) {
    let left: Vec<_> = std::fs::read_dir(&sandbox.0.scratch).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn an_honest_skill_answers_in_every_part() {
    let (sandbox, _folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    let End::Returned(assessment) = sandbox.assess(setting.clone(), subgoal()).await.end else { panic!() };
    assert_eq!((assessment.score, assessment.reason.as_str()), (50, "because"));
    let ran = sandbox.execute(setting.clone(), call()).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.result.unwrap().content, json!({ "n": 1 }));
    assert!(ran.used.fuel > 0 && ran.used.memory_bytes == 4 << 16);
    let ran = sandbox.verify(setting.clone(), submission()).await;
    let End::Returned(Ok(verdict)) = ran.end else { panic!("{ran:?}") };
    assert!(!verdict.rejects());
    let ran = sandbox.recover(setting, mishap()).await;
    let End::Returned(advice) = ran.end else { panic!("{ran:?}") };
    assert_eq!(advice.diagnosis, "d");
    assert_nothing_left(&sandbox).await;
}

#[tokio::test]
async fn a_loop_in_any_part_is_stopped() {
    let (sandbox, _folder) = sandbox();
    let default = Guest::default;
    let limited = |guest: Guest| {
        let mut setting = ready(&sandbox, &guest);
        setting.limits = setting.limits.with(LimitKey::Cpu, 10);
        setting
    };
    let ran = sandbox.execute(limited(executing(LOOP)), call()).await;
    assert_eq!(hit(&ran).limit, "cpu");
    assert!(ran.used.cpu_ms >= 10 && ran.used.fuel > 1_000_000, "{:?}", ran.used);
    let ran = sandbox.assess(limited(Guest { assess: LOOP.into(), ..default() }), subgoal()).await;
    assert_eq!(hit(&ran).limit, "cpu");
    let ran = sandbox.verify(limited(Guest { verify: LOOP.into(), ..default() }), submission()).await;
    assert_eq!(hit(&ran).limit, "cpu");
    let ran = sandbox.recover(limited(Guest { recover: LOOP.into(), ..default() }), mishap()).await;
    assert_eq!(hit(&ran).limit, "cpu");
    let ran = sandbox.execute(limited(Guest { start: LOOP.into(), ..default() }), call()).await;
    assert_eq!(hit(&ran).limit, "cpu", "in the start function");
    let ran = sandbox.execute(limited(Guest { realloc: LOOP.into(), ..default() }), call()).await;
    assert_eq!(hit(&ran).limit, "cpu", "while arguments are lowered");
    let ran = sandbox.execute(limited(Guest { post_return: LOOP.into(), ..default() }), call()).await;
    assert_eq!(hit(&ran).limit, "cpu", "after it returned");
    assert_nothing_left(&sandbox).await;
}

#[tokio::test]
async fn fuel_is_exact() {
    let spin = |times: u32| {
        executing(&format!(
            "(local $n i32) (loop $again
               (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const {times}))))
             unreachable"
        ))
    };
    let first = executed(&spin(1000), LimitKey::Wall, 30_000).await;
    let again = executed(&spin(1000), LimitKey::Wall, 30_000).await;
    assert!(matches!(&first.end, End::Trapped(message) if message.contains("unreachable")), "{first:?}");
    assert_eq!(first.used.fuel, again.used.fuel);
    let enough = executed(&spin(1000), LimitKey::Fuel, first.used.fuel).await;
    assert!(matches!(enough.end, End::Trapped(_)), "{enough:?}");
    // Fuel is looked at where code loops and calls, so a handful of operations may pass it.
    let half = first.used.fuel / 2;
    let short = executed(&spin(1000), LimitKey::Fuel, half).await;
    assert_eq!((hit(&short).limit.as_str(), hit(&short).allowed, short.used.fuel), ("fuel", half, half));
}

#[tokio::test]
async fn bulk_memory_in_a_loop_is_stopped() {
    let body = "(loop $again (memory.fill (i32.const 131072) (i32.const 0) (i32.const 131072)) (br $again)) unreachable";
    let ran = executed(&executing(body), LimitKey::Cpu, 10).await;
    assert_eq!(hit(&ran).limit, "cpu");
}

fn sleeper(nanos: u64) -> Guest {
    let mut guest = executing(&format!("(call $block (call $subscribe (i64.const {nanos}))) unreachable"));
    guest.imports = r#"
        (import "wasi:io/poll@0.2.0" (instance $poll
          (export "pollable" (type $pollable (sub resource)))
          (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
          (export "now" (func (result u64)))
          (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
        (core func $block (canon lower (func $poll "[method]pollable.block")))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core func $now (canon lower (func $clock "now")))
        (core instance $time
          (export "block" (func $block)) (export "subscribe" (func $subscribe)) (export "now" (func $now)))"#
        .to_owned();
    guest.with = r#"(with "time" (instance $time))"#.to_owned();
    guest.core = r#"(import "time" "block" (func $block (param i32)))
        (import "time" "subscribe" (func $subscribe (param i64) (result i32)))
        (import "time" "now" (func $now (result i64)))"#
        .to_owned();
    guest
}

#[tokio::test]
async fn an_hour_of_sleep_ends_at_the_wall_and_costs_no_cpu() {
    let ran = executed(&sleeper(3_600_000_000_000), LimitKey::Wall, 20).await;
    assert_eq!(hit(&ran).limit, "wall");
    assert!(ran.used.wall_ms >= 20 && ran.used.cpu_ms < 15, "{:?}", ran.used);
}

#[tokio::test]
async fn a_sleep_for_ever_ends_at_the_wall() {
    let ran = executed(&sleeper(u64::MAX), LimitKey::Wall, 10).await;
    assert_eq!(hit(&ran).limit, "wall");
}

#[tokio::test]
async fn the_clock_moves_by_what_was_slept() {
    let mut guest = sleeper(0);
    let good = guest.execute.clone();
    guest.returns("7", &[]);
    let answer = std::mem::replace(&mut guest.execute, good);
    // It answers only if the clock stood at 0 and then shows exactly the sleep of 2 ms.
    guest.execute = format!(
        "(if (i64.ne (call $now) (i64.const 0)) (then unreachable))
         (call $block (call $subscribe (i64.const 2000000)))
         (if (i64.ne (call $now) (i64.const 2000000)) (then unreachable))
         {answer}"
    );
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}

#[tokio::test]
async fn honest_waits_are_not_charged() {
    let mut guest = sleeper(0);
    guest.returns("7", &[]);
    guest.execute = format!(
        "(local $n i32) (loop $again
           (call $block (call $subscribe (i64.const 1000000)))
           (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 40))))
         {}",
        guest.execute
    );
    let ran = executed(&guest, LimitKey::Cpu, 30).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    assert!(ran.used.wall_ms >= 40, "{:?}", ran.used);
}

#[tokio::test]
async fn memory_is_refused_over_all_memories_together() {
    // 2 MiB are allowed; the guest has 4 pages, 256 KiB, at start.
    let limit = 2 << 20;
    let grow = "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable";
    let ran = executed(&executing(grow), LimitKey::Memory, limit).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).allowed), ("memory", limit));
    assert_eq!(ran.used.memory_bytes, limit);
    let all = executing("(drop (memory.grow (i32.const 65530))) unreachable");
    assert_eq!(hit(&executed(&all, LimitKey::Memory, limit).await).limit, "memory");
    let huge = Guest { core: "(memory $big 65536)".into(), ..Guest::default() };
    assert_eq!(hit(&executed(&huge, LimitKey::Memory, limit).await).limit, "memory");
    let two = Guest { core: "(memory $a 16) (memory $b 16)".into(), ..Guest::default() };
    assert_eq!(hit(&executed(&two, LimitKey::Memory, limit).await).limit, "memory");
}

#[tokio::test]
async fn a_trap_after_a_granted_growth_is_a_trap() {
    let body = "(drop (memory.grow (i32.const 1000))) (drop (memory.grow (i32.const 1))) unreachable";
    let ran = executed(&executing(body), LimitKey::Memory, 2 << 20).await;
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
async fn recursion_without_end_is_a_limit() {
    let guest = Guest {
        core: "(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))".into(),
        execute: "(call $deep (i32.const 0))".into(),
        ..Guest::default()
    };
    assert_eq!(hit(&executed(&guest, LimitKey::Wall, 5_000).await).limit, "stack");
}

#[tokio::test]
async fn a_trap_names_the_functions_and_nothing_of_the_host() {
    let ran = executed(&executing("unreachable"), LimitKey::Wall, 5_000).await;
    let End::Trapped(message) = ran.end else { panic!("{ran:?}") };
    assert!(message.starts_with("wasm trap: wasm `unreachable` instruction executed, in `"), "{message}");
    assert!(message.contains("execute") && !message.contains(".rs") && !message.contains('\n'), "{message}");
}

#[tokio::test]
async fn exit_is_no_return() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.import("wasi:cli/exit@0.2.0", "(export \"exit\" (func (param \"status\" (result))))", "exit", "(param i32)");
    guest.execute = "(call $exit (i32.const 0)) unreachable".into();
    let ran = sandbox.execute(ready(&sandbox, &guest), call()).await;
    assert!(matches!(&ran.end, End::Trapped(message) if message.contains("exit(0)")), "{ran:?}");
}

async fn problem_of(guest: &Guest) -> checkrein_contract::Problem {
    let ran = executed(guest, LimitKey::Wall, 5_000).await;
    match ran.end {
        End::Invalid(problem) => problem,
        end => panic!("{end:?}"),
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let mut guest = Guest::default();
    guest.returns("{nope", &[]);
    let problem = problem_of(&guest).await;
    assert_eq!((problem.rule.as_str(), problem.location.as_deref()), ("json", Some("/content")));
    guest.returns(&"[".repeat(10_000), &[]);
    assert!(problem_of(&guest).await.message.contains("10000 levels"));
    guest.returns_fact("../escape", "{}");
    assert_eq!(problem_of(&guest).await.rule, "subject");
}

#[tokio::test]
async fn a_score_of_255_is_refused() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    let assessment = guest.image.words(&[255, 0, 0, 0, 0, 0]);
    guest.assess = format!("i32.const {assessment}");
    let ran = sandbox.assess(ready(&sandbox, &guest), subgoal()).await;
    assert!(matches!(&ran.end, End::Invalid(problem) if problem.rule == "score"), "{ran:?}");
}

#[tokio::test]
async fn a_silent_verdict_is_refused() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    let verdict = guest.image.words(&[0, 0, 0, 0, 0]);
    guest.verify = format!("i32.const {verdict}");
    let ran = sandbox.verify(ready(&sandbox, &guest), submission()).await;
    assert!(matches!(&ran.end, End::Invalid(problem) if problem.rule == "verdict-empty"), "{ran:?}");
}

#[tokio::test]
async fn artifacts_outside_of_work_or_not_there_are_refused() {
    for (path, rule) in [("/etc/passwd", "artifact-path"), ("../x", "artifact-path"), ("absent.csv", "artifact-file")] {
        let mut guest = Guest::default();
        guest.returns("1", &[path]);
        assert_eq!(problem_of(&guest).await.rule, rule, "{path}");
    }
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
    assert!(ran.log.starts_with("info: all work") && ran.log.contains(" bytes cut …]") && ran.log.len() < 1200);
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

#[tokio::test]
async fn dropping_the_future_ends_the_call_and_frees_its_place() {
    let (sandbox, _folder) = sandbox();
    let setting = ready(&sandbox, &executing(LOOP));
    let component = sandbox.component(&setting.component).unwrap();
    let free = component.turns.available_permits();
    let calls: Vec<_> = (0..free).map(|_| sandbox.execute(setting.clone(), call())).collect();
    for call in calls {
        assert!(tokio::time::timeout(Duration::from_millis(5), call).await.is_err());
    }
    // Fair: this waits until every one of the dropped calls has given its place back.
    let all = component.turns.acquire_many(free as u32);
    tokio::time::timeout(Duration::from_secs(5), all).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_not_loaded_or_has_no_such_part_is_a_fault() {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, &Guest::default());
    setting.component = checkrein_contract::Digest::ZERO;
    assert!(matches!(sandbox.execute(setting, call()).await.end, End::Fault(_)));
    let manifest = "schema = \"checkrein/skill@1\"\nkind = \"verifier\"\nname = \"v\"\nversion = \"1.0.0\"\ndescription = \"d\"\n";
    let setting = crate::testing::force(&sandbox, &Guest { memory: "5".into(), ..Guest::default() }.assemble(), manifest);
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(&ran.end, End::Fault(why) if why.contains("verifier")), "{ran:?}");
    let End::Returned(Ok(_)) = sandbox.verify(setting, submission()).await.end else { panic!() };
}

#[tokio::test]
async fn a_panicking_host_function_ends_its_call_alone() {
    struct Panics;
    impl checkrein_contract::port::Observer for Panics {
        fn log(&self, _: &str, _: &str) {
            panic!("on purpose");
        }
        fn progress(&self, _: u32, _: u32, _: String) -> checkrein_contract::port::BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.import_log();
    guest.execute = format!("(call $write (i32.const 1) (i32.const 0) (i32.const 1)) {}", guest.execute);
    let mut setting = ready(&sandbox, &guest);
    setting.observer = Arc::new(Panics);
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(&ran.end, End::Fault(why) if why.contains("on purpose")), "{ran:?}");
    setting.observer = Arc::new(checkrein_contract::port::NoObserver);
    assert!(matches!(sandbox.execute(setting, call()).await.end, End::Returned(_)));
}

#[tokio::test]
async fn a_failure_of_the_executor_is_an_answer() {
    let mut guest = Guest::default();
    let message = guest.image.text("no such gene");
    let null = guest.image.text("null");
    let failure = guest.image.words(&[1, 1, message[0], message[1], null[0], null[1]]);
    guest.execute = format!("i32.const {failure}");
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.result.unwrap_err().kind, FailureKind::NotFound);
}
