//! Guests that do not end.

use super::*;

#[tokio::test]
async fn a_loop_in_any_part_is_stopped() {
    let (sandbox, _folder) = sandbox();
    let default = Guest::default;
    let limited = |guest: Guest| {
        let mut setting = ready(&sandbox, &guest);
        setting.limits = setting.limits.with(LimitKey::Cpu, 10);
        setting
    };
    let ran = sandbox.execute(limited(Guest::executing(LOOP)), call()).await;
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
        Guest::executing(&format!(
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
async fn fuel_exactly_at_the_limit() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.execute = format!(
        "(local $n i32) (loop $again
           (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
         {}",
        guest.execute
    );
    let setting = ready(&sandbox, &guest);
    let with = async |fuel: u64| {
        let mut setting = setting.clone();
        setting.limits = setting.limits.with(LimitKey::Fuel, fuel);
        sandbox.execute(setting, call()).await
    };
    let used = with(1 << 30).await.used.fuel;
    // It fires when all of it is used and there is more to do: one more than what is used is
    // enough, and so may be what the few operations after the last look do not need.
    let (mut short, mut enough) = (0, used + 1);
    while enough - short > 1 {
        let between = short + (enough - short) / 2;
        match with(between).await.end {
            End::Returned(_) => enough = between,
            _ => short = between,
        }
    }
    assert!(used + 1 - enough < 10, "{used} used, {enough} are enough");
    for _ in 0..3 {
        assert!(matches!(with(enough).await.end, End::Returned(_)));
        let one_less = with(enough - 1).await;
        assert_eq!((hit(&one_less).limit.as_str(), one_less.used.fuel), ("fuel", enough - 1));
    }
}

#[tokio::test]
async fn bulk_memory_in_a_loop_is_stopped() {
    let body = "(loop $again (memory.fill (i32.const 131072) (i32.const 0) (i32.const 131072)) (br $again)) unreachable";
    let ran = executed(&Guest::executing(body), LimitKey::Cpu, 10).await;
    assert_eq!(hit(&ran).limit, "cpu");
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
async fn recursion_without_end_is_a_limit() {
    let guest = Guest {
        core: "(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))"
            .into(),
        execute: "(call $deep (i32.const 0))".into(),
        ..Guest::default()
    };
    // The stack is one for the whole engine: that, and not what was configured, is reported.
    for configured in [4 << 10, 64 << 20] {
        let hit = hit(&executed(&guest, LimitKey::Stack, configured).await);
        assert_eq!((hit.limit.as_str(), hit.allowed), ("stack", 1 << 20));
    }
}

#[tokio::test]
async fn dropping_the_future_ends_the_call_and_frees_its_place() {
    let (sandbox, _folder) = sandbox();
    let setting = ready(&sandbox, &Guest::executing(LOOP));
    let component = sandbox.component(&setting.component).unwrap();
    let free = component.turns.available_permits();
    let calls: Vec<_> = (0..free).map(|_| sandbox.execute(setting.clone(), call())).collect();
    for call in calls {
        assert!(tokio::time::timeout(Duration::from_millis(5), call).await.is_err());
    }
    // Fair: this waits until every one of the dropped calls has given its place back.
    let all = component.turns.acquire_many(free as u32);
    drop(tokio::time::timeout(Duration::from_secs(5), all).await.unwrap().unwrap());
}
