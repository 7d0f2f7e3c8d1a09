//! `trace --follow`: what is appended, as it is.

use std::time::Duration;

use checkrein_tests::{Works, ledger, task, undisturbed, until, worker};
use serde_json::Value;

/// The events that it printed.
fn events(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_that_goes_on_is_followed_to_its_end() {
    let works = Works::new();
    let steps = [worker("a", 3).arg("pause_ms", "1500"), worker("b", 4).arg("pause_ms", "1500").after("a")];
    let run = works.job(&["run", works.task(&task("", &[("", &steps)]))], |_| {});
    until("a call", || works.calls_of("a") == 1);
    let follower = works.job(&["trace", "@last", "--follow", "--json"], |_| {});
    let lines = works.job(&["trace", "@last", "--follow"], |_| {});
    let _ = run.end().expect(0);
    let ran = follower.within(Duration::from_secs(20)).expect(0);
    let seen = events(&ran.out);
    let positions: Vec<i64> = seen.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
    let all: Vec<i64> = works.entries().iter().map(|entry| entry.seq).collect();
    assert_eq!(positions, all, "each event once, in order");
    assert_eq!(seen.last().unwrap()["event"]["event"], "run-ended");
    let lines = lines.within(Duration::from_secs(20)).expect(0).out;
    // Lines that belong to the one above them are indented deeper than a position is.
    let heads = lines.lines().filter(|line| !line.starts_with("        "));
    assert_eq!(heads.count(), all.len(), "{lines}");
}

#[test]
fn a_run_that_waits_is_followed_no_longer() {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&task("", &[("", &[ledger("books", 6)])]))]).expect(4);
    let follower = works.job(&["trace", "@last", "--follow"], |_| {});
    let ran = follower.within(Duration::from_secs(20)).expect(0);
    let run = works.last_run().unwrap();
    assert!((ran.out + &ran.err).contains(&format!("checkrein resume {run}")));
    undisturbed(&works, "task.toml");
    let ran = works.job(&["trace", &run, "--follow", "--json"], |_| {});
    assert_eq!(events(&ran.within(Duration::from_secs(20)).expect(0).out).len(), works.entries().len());
}

#[test]
fn who_follows_can_be_interrupted_and_the_run_goes_on() {
    let works = Works::new();
    let step = worker("slow", 3).arg("pause_ms", "3000");
    let run = works.job(&["run", works.task(&task("", &[("", &[step])]))], |_| {});
    until("a call", || works.calls_of("slow") == 1);
    let follower = works.job(&["trace", "@last", "--follow"], |_| {});
    until("a line", || follower.printed().contains("call-intended"));
    follower.signal("INT");
    let _ = follower.within(Duration::from_secs(20)).expect(130);
    let _ = run.end().expect(0);
}
