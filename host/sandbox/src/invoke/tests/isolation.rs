//! What one call does, no other call feels, and nothing outlives a sandbox.

use std::time::Instant;

use checkrein_contract::port::{BoxFuture, Observer};

use super::*;

/// Breaks where it should tell.
struct Broken;

impl Observer for Broken {
    fn log(&self, _: &str, _: &str) {
        panic!("a fault of the host");
    }

    fn progress(&self, _: u32, _: u32, _: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_panic_in_a_host_function_ends_that_call_alone() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.import_log();
    guest.execute = format!("(call $write (i32.const 1) (i32.const 1024) (i32.const 1)) {}", guest.execute);
    let good = ready(&sandbox, &guest);
    let bad = Setting { observer: Arc::new(Broken), ..good.clone() };
    for _ in 0..20 {
        let (bad, good) =
            tokio::join!(sandbox.execute(bad.clone(), call()), sandbox.execute(good.clone(), call()));
        let End::Fault(why) = &bad.end else { panic!("{bad:?}") };
        assert!(why.contains("panicked in this call: a fault of the host"), "{why}");
        assert!(matches!(good.end, End::Returned(_)), "{good:?}");
    }
    let (host, digest) = (Arc::clone(&sandbox.0), good.component);
    assert_eq!(host.places.available_permits(), crate::engine::CALLS_AT_ONCE as usize);
    let turns = sandbox.component(&digest).unwrap().turns.available_permits();
    assert_eq!(turns, crate::engine::CALLS_AT_ONCE_OF_ONE as usize);
}

/// Eight components that loop, eight calls of each at once, for so long.
fn looping(sandbox: &Sandbox, millis: u64) -> Vec<tokio::task::JoinHandle<Ran<Execution>>> {
    let mut calls = Vec::new();
    for number in 0..8 {
        let mut guest = Guest::executing(LOOP);
        guest.image.text(&format!("guest {number}"));
        let mut setting = ready(sandbox, &guest);
        setting.limits = setting.limits.with(LimitKey::Wall, millis).with(LimitKey::Cpu, millis);
        for _ in 0..8 {
            let (sandbox, setting) = (sandbox.clone(), setting.clone());
            calls.push(tokio::spawn(async move { sandbox.execute(setting, call()).await }));
        }
    }
    calls
}

/// How late timers of 5 ms are on this runtime, sorted, until the calls are over; and how late the
/// wall limit of a guest that sleeps ends it.
async fn lateness(millis: u64) -> (Vec<Duration>, u64) {
    let (sandbox, _folder) = sandbox();
    let mut sleeps = ready(&sandbox, &sleeper(3_600_000_000_000));
    sleeps.limits = sleeps.limits.with(LimitKey::Wall, millis / 2);
    let calls = looping(&sandbox, millis);
    // The sleeper is the sixty-fifth: it waits for a place, which is not charged.
    let asleep = tokio::spawn(async move { sandbox.execute(sleeps, call()).await });
    let mut late = Vec::new();
    let pause = Duration::from_millis(5);
    while calls.iter().any(|call| !call.is_finished()) {
        let began = Instant::now();
        tokio::time::sleep(pause).await;
        late.push(began.elapsed().saturating_sub(pause));
    }
    for call in calls {
        assert_eq!(hit(&call.await.unwrap()).limit, "wall");
    }
    let asleep = hit(&asleep.await.unwrap());
    assert_eq!(asleep.limit, "wall");
    late.sort_unstable();
    (late, asleep.used - asleep.allowed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sixty_four_looping_guests_do_not_make_the_timers_of_others_late() {
    let (late, _) = lateness(1_000).await;
    // Half of them, so that a machine that is busy otherwise shows nothing wrong.
    let median = late[late.len() / 2];
    assert!(median < Duration::from_millis(20), "{median:?} of {}", late.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "a measurement, on a machine that does nothing else"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
async fn lateness_of_timers_beside_64_looping_guests() {
    let (late, wall) = lateness(4_000).await;
    let at = |percent: usize| late[(late.len() * percent / 100).min(late.len() - 1)];
    eprintln!("{} timers: median {:?}, p99 {:?}, most {:?}", late.len(), at(50), at(99), at(100));
    eprintln!("the wall limit of a sleeping guest: {wall} ms late");
    assert!(at(99) < Duration::from_millis(20));
}

/// Threads of this process that are a sandbox's.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path().join("comm")).unwrap_or_default()
    };
    tasks.map(name).filter(|name| name.starts_with("checkrein-")).count()
}

#[test]
fn a_dropped_sandbox_leaves_no_thread() {
    const AGAIN: &str = "CHECKREIN_TEST_ALONE";
    let name = "invoke::tests::isolation::a_dropped_sandbox_leaves_no_thread";
    if std::env::var_os(AGAIN).is_none() {
        // In a process of its own, where no other test has a sandbox.
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let out = alone.args(["--exact", name]).env(AGAIN, "1").output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sandbox, folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    assert!(matches!(runtime.block_on(sandbox.execute(setting, call())).end, End::Returned(_)));
    // One call is under way when it is dropped.
    let mut setting = ready(&sandbox, &Guest::executing(LOOP));
    setting.limits = setting.limits.with(LimitKey::Cpu, 60_000).with(LimitKey::Wall, 60_000);
    let own = sandbox.clone();
    let call = async move { own.execute(setting, call()).await };
    let timeout = async { tokio::time::timeout(Duration::from_millis(50), call).await };
    assert!(runtime.block_on(timeout).is_err());
    assert!(threads() > 0);
    drop((sandbox, folder));
    let until = Instant::now() + Duration::from_secs(30);
    while threads() > 0 {
        assert!(Instant::now() < until, "{} threads are left", threads());
        std::thread::yield_now();
    }
}
