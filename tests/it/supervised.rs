//! `run --supervised`: the driver is watched from a process apart, and started again.

use std::time::Duration;

use checkrein_tests::{Works, task, until, worker};

/// The process that drives the last run now.
fn driver(works: &Works) -> Option<i64> {
    let database = rusqlite::Connection::open(works.database()).ok()?;
    database.query_row("SELECT pid FROM lease WHERE pid IS NOT NULL", [], |row| row.get(0)).ok()
}

#[test]
fn a_driver_that_is_killed_is_started_again() {
    let works = Works::new();
    let steps = [worker("first", 3), worker("slow", 4).arg("pause_ms", "4000").after("first")];
    let file = works.task(&task("", &[("", &steps)]));
    let mut supervised = works.job(&["run", file, "--supervised"], |_| {});
    supervised.wait_for("slow");
    let first = driver(&works).unwrap();
    assert_ne!(first, i64::from(supervised.pid()), "the driver is a process of its own");
    let killed = std::process::Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap();
    assert!(killed.success());
    until("another drives it", || driver(&works).is_some_and(|pid| pid != first));
    let ran = supervised.within(Duration::from_secs(60)).expect(0);
    assert!(ran.err.contains("it is started again"), "{}", ran.err);
    assert_eq!(works.facts().len(), 2);
    assert_eq!(works.calls_of("first"), 1, "what was done is not done again");
}

#[test]
fn a_call_that_its_driver_never_survives_is_handed_over() {
    let works = Works::new();
    let slow = [worker("slow", 4).arg("pause_ms", "60000")];
    let file = works.task(&task("", &[("", &slow)]));
    let mut supervised = works.job(&["run", file, "--supervised"], |_| {});
    supervised.wait_for("slow");
    for times in 1..=3 {
        until("the call is made", || works.entries_of("budget-reserved").len() == times);
        let pid = driver(&works).unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    }
    let ran = supervised.within(Duration::from_secs(60)).expect(4);
    assert!(ran.out.contains("the host ended 3 times while the call"), "{}", ran.out);
    assert!(ran.out.contains("the call is made once more"), "{}", ran.out);
}

#[test]
fn what_a_driver_says_in_order_is_not_tried_again() {
    let works = Works::new();
    let steps = [worker("never", 3).arg("fail", "\"always\"")];
    let file = works.task(&task("", &[("", &steps)]));
    let ran = works.run(&["run", file, "--supervised", "--no-person"]).expect(3);
    assert!(!ran.err.contains("started again"), "{}", ran.err);
    let missing = works.run(&["run", "none.toml", "--supervised"]).expect(1);
    assert_eq!(missing.errors().len(), 1, "{}", missing.err);
}
