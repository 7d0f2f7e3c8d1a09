//! Which time a guest sees.

use checkrein_contract::grant::Clock;
use checkrein_contract::id::Timestamp;

use super::*;

/// A run that began in 2001, in seconds.
const BEGAN: u64 = 1_000_000_000;
/// Long after that, and before this was written.
const SINCE: u64 = 1_700_000_000;

/// The same, as a setting has it.
pub(super) fn began() -> Timestamp {
    Timestamp(BEGAN * 1000)
}

/// Every part traps if the wall clock is not as told.
pub(super) fn wall(real: bool) -> Guest {
    let mut guest = Guest::default();
    let types = r#"(type $t (record (field "seconds" u64) (field "nanoseconds" u32)))
        (export "datetime" (type $datetime (eq $t)))
        (export "now" (func (result $datetime)))"#;
    guest.import("wasi:clocks/wall-clock@0.2.0", types, "now", "(param i32)");
    let unless = |wrong: String, answer: &str| {
        format!("(call $now (i32.const 65536)) (if ({wrong}) (then unreachable)) {answer}")
    };
    let seconds = "(i64.load (i32.const 65536))";
    let stands = format!("i64.ne {seconds} (i64.const {BEGAN})");
    let runs = format!("i64.lt_u {seconds} (i64.const {SINCE})");
    let granted = if real { runs } else { stands.clone() };
    guest.assess = unless(stands.clone(), &guest.assess);
    guest.recover = unless(stands, &guest.recover);
    guest.execute = unless(granted.clone(), &guest.execute);
    guest.verify = unless(granted, &guest.verify);
    guest
}

#[tokio::test]
async fn the_machines_time_is_seen_where_it_is_granted_and_by_no_trigger_or_recovery() {
    for clock in [Clock::Virtual, Clock::Real] {
        let (sandbox, _folder) = sandbox();
        let mut setting = ready(&sandbox, &wall(clock == Clock::Real));
        setting.clock = began();
        setting.granted.clock = clock;
        let ran = sandbox.assess(setting.clone(), subgoal()).await;
        assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
        let ran = sandbox.execute(setting.clone(), call()).await;
        assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
        let ran = sandbox.verify(setting.clone(), submission()).await;
        assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
        let ran = sandbox.recover(setting, mishap()).await;
        assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    }
}

/// Runs this with a clock; it traps where the clock is not as it expects.
async fn monotonic(clock: Clock, body: &str) -> Ran<Execution> {
    let (sandbox, _folder) = sandbox();
    let mut guest = sleeper(0);
    guest.execute = format!("{body} {}", Guest::default().execute);
    // The answer lies in the image of the guest that it was taken from, which is the same.
    let mut setting = ready(&sandbox, &guest);
    setting.granted.clock = clock;
    setting.limits = setting.limits.with(LimitKey::Cpu, 3000);
    sandbox.execute(setting, call()).await
}

/// Waits until the clock has moved by itself.
const UNTIL_IT_MOVES: &str = "(local $began i64) (local.set $began (call $now))
    (loop $again (br_if $again (i64.eq (call $now) (local.get $began))))";

#[tokio::test]
async fn the_virtual_clock_moves_by_what_was_slept_alone() {
    let body = "(if (i64.ne (call $now) (i64.const 0)) (then unreachable))
        (call $block (call $subscribe (i64.const 5000000)))
        (if (i64.ne (call $now) (i64.const 5000000)) (then unreachable))";
    let ran = monotonic(Clock::Virtual, body).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}

#[tokio::test]
async fn the_real_clock_moves_by_itself_and_by_what_was_slept() {
    let body = format!(
        "{UNTIL_IT_MOVES} (local.set $began (call $now))
         (call $block (call $subscribe (i64.const 5000000)))
         (if (i64.lt_u (i64.sub (call $now) (local.get $began)) (i64.const 5000000)) (then unreachable))"
    );
    let ran = monotonic(Clock::Real, &body).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}
