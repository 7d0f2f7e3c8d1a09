//! Runs that are stopped: at once, with their log whole, and to be gone on with.

use std::time::Duration;

use checkrein_tests::{Job, Ran, Works, ledger, task, undisturbed, until, worker};

/// As long as no call here takes.
const SOON: Duration = Duration::from_secs(12);

/// A run with three calls in hand, each of which takes 20 s; a first was accepted.
fn under_way() -> (Works, Job) {
    let works = Works::new();
    let slow = |id: &str, n| worker(id, n).arg("pause_ms", "{ \"$param\" = \"pause\" }");
    let stages: [(&str, &[_]); 2] =
        [("", &[worker("first", 3)]), ("", &[slow("a", 4), slow("b", 5), slow("c", 6)])];
    let job = works.job(&["run", works.task(&task("[parameters]\npause = 20000\n", &stages))], |_| {});
    until("three calls in hand", || works.entries_of("call-intended").len() == 4);
    (works, job)
}

/// It was stopped with its log whole, and goes on.
fn is_stopped(works: &Works, ran: Ran, because: &str) {
    let ran = ran.expect(130);
    let run = works.last_run().unwrap();
    let told = ran.out + &ran.err;
    assert!(told.contains(&format!("checkrein resume {run}")), "{told}");
    let _ = works.run(&["trace", "verify", "@last"]).expect(0);
    let entries = works.entries();
    let last = entries.last().unwrap();
    assert_eq!((last.kind.as_str(), &last.event["because"]), ("run-stopped", &because.into()));
    let ended = works.entries_of("call-ended");
    let cancelled = ended.iter().filter(|event| event["ended"]["status"] == "cancelled").count();
    assert_eq!(cancelled, 3, "each call in hand has an end: {ended:#?}");
    let listed = works.run(&["runs"]).expect(0).out;
    assert!(listed.contains(because), "{listed}");
    // Nobody waits 20 s for the second time.
    let _ = works.run(&["amend", "@last", "--set", "pause=0"]).expect(0);
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert_eq!(works.facts().len(), 4);
    assert_eq!(works.calls_of("first"), 1, "what was accepted stands");
}

#[test]
fn ctrl_c_stops_a_run_at_once() {
    let (works, job) = under_way();
    job.signal("INT");
    is_stopped(&works, job.within(SOON), "interrupted");
}

#[test]
fn a_process_that_is_asked_to_end_stops_its_run() {
    let (works, job) = under_way();
    job.signal("TERM");
    is_stopped(&works, job.within(SOON), "interrupted");
}

#[test]
fn a_run_is_cancelled_from_elsewhere() {
    let (works, job) = under_way();
    let ran = works.run(&["cancel", "@last"]).expect(0);
    assert!(ran.out.contains(&format!("process {}", job.pid())), "{}", ran.out);
    is_stopped(&works, job.within(SOON), "cancelled");
}

#[test]
fn a_run_that_nobody_drives_is_not_cancelled() {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&task("", &[("", &[ledger("books", 6)])]))]).expect(4);
    let ran = works.run(&["cancel", "@last"]).expect(0);
    assert!((ran.out + &ran.err).contains("no process drives"));
    undisturbed(&works, "task.toml");
    let ran = works.run(&["cancel", "@last"]).expect(1);
    assert!(ran.errors()[0].contains("has ended"), "{}", ran.err);
}

/// Of a call that cannot be taken back nobody knows whether it happened when it was stopped.
#[test]
fn a_call_with_effects_that_is_stopped_is_asked_about() {
    let works = Works::new();
    let step = ledger("books", 6).arg("pause_ms", "20000");
    let _ = works.run(&["run", works.task(&task("", &[("", &[step])]))]).expect(4);
    let _ = works.run(&["approve", "@last"]).expect(0);
    let job = works.job(&["resume", "@last"], |_| {});
    until("a line in the ledger", || !works.book("ledger").is_empty());
    job.signal("INT");
    let _ = job.within(SOON).expect(130);
    let _ = works.run(&["resume", "@last"]).expect(4);
    assert_eq!(works.open_asks()[0].kind(), "call-unknown");
    assert_eq!(works.book("ledger").len(), 1);
}
