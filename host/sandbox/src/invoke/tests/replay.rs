//! Time is no part of a call that is executed again.

use std::sync::Arc;

use checkrein_contract::grant::Clock;

use super::*;

#[tokio::test]
async fn it_is_not_ended_by_its_time_and_by_its_fuel_as_ever() {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, &Guest::executing(LOOP));
    setting.limits = setting.limits.with(LimitKey::Cpu, 1).with(LimitKey::Fuel, 300_000_000);
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert_eq!(hit(&ran).limit, "cpu");
    setting.recorded = Some(Arc::default());
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert_eq!((hit(&ran).limit.as_str(), hit(&ran).used), ("fuel", 300_000_000));
    assert!(ran.used.cpu_ms > 1, "{:?}", ran.used);

    let mut setting = ready(&sandbox, &sleeper(50_000_000));
    setting.limits = setting.limits.with(LimitKey::Wall, 1);
    assert_eq!(hit(&sandbox.execute(setting.clone(), call()).await).limit, "wall");
    setting.recorded = Some(Arc::default());
    // It sleeps to the end, and traps then.
    let ran = sandbox.execute(setting, call()).await;
    assert!(matches!(&ran.end, End::Trapped(why) if why.contains("unreachable")), "{ran:?}");
}

#[tokio::test]
async fn every_part_of_it_is_without_limits_of_time() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    for part in [&mut guest.assess, &mut guest.verify, &mut guest.recover] {
        *part = LOOP.to_owned();
    }
    let mut setting = ready(&sandbox, &guest);
    setting.limits = setting.limits.with(LimitKey::Cpu, 1).with(LimitKey::Fuel, 300_000_000);
    setting.recorded = Some(Arc::default());
    assert_eq!(hit(&sandbox.assess(setting.clone(), subgoal()).await).limit, "fuel");
    assert_eq!(hit(&sandbox.verify(setting.clone(), submission()).await).limit, "fuel");
    assert_eq!(hit(&sandbox.recover(setting, mishap()).await).limit, "fuel");
}

#[tokio::test]
async fn the_machines_clock_is_not_seen_by_it() {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, &super::clock::wall(false));
    setting.clock = super::clock::began();
    setting.granted.clock = Clock::Real;
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(ran.end, End::Trapped(_)), "{ran:?}");
    setting.recorded = Some(Arc::default());
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    let ran = sandbox.verify(setting, submission()).await;
    assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
}
