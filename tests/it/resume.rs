//! Runs that go on: one driver at a time, from a log that may be damaged, with a clock that may be
//! wrong, and with what they began with.

use std::time::Duration;

use checkrein_contract::section;
use checkrein_tests::{
    DAY, KILLED, Step, Works, answer_all, few, ledger, shifted, task, text_of, undisturbed, until, worker,
};
use serde_json::Value;

/// A run of the few that waits for its approval.
fn waiting() -> Works {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&text_of(&few()))]).expect(4);
    works
}

fn approve(works: &Works) {
    answer_all(works, &mut |args| works.run(args));
}

/// The facts of the few, undisturbed.
fn few_facts() -> std::collections::BTreeSet<(String, String)> {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(&few())));
    works.facts()
}

/// A task whose one call takes 20 s, and by then was stopped.
fn slow(works: &Works) -> &'static str {
    works.task(&text_of(&[vec![worker("slow", 3).arg("pause_ms", "20000")]]))
}

#[test]
fn while_one_process_drives_a_run_another_is_refused_and_told_which() {
    let works = Works::new();
    let mut driver = works.job(&["run", slow(&works)], |_| {});
    driver.wait_for("attempt 1 of");
    let ran = works.run(&["resume", "@last"]).expect(1);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.errors()[0].contains(&format!("process {}", driver.pid())), "{}", ran.err);
    driver.signal("INT");
    let _ = driver.within(Duration::from_secs(15)).expect(130);
    assert_eq!(works.entries_of("lease-taken").len(), 1, "the other left a trace");
}

#[test]
fn of_two_that_resume_at_once_one_drives() {
    let works = Works::new();
    let steps = [ledger("books", 6), worker("slow", 3).arg("pause_ms", "3000").after("books")];
    let _ = works.run(&["run", works.task(&task("", &[("", &steps)]))]).expect(4);
    approve(&works);
    let run = works.last_run().unwrap();
    let jobs = [0, 1].map(|_| works.job(&["resume", &run], |_| {}));
    let mut ran = jobs.map(|job| job.end());
    ran.sort_by_key(|ran| ran.code);
    assert_eq!([ran[0].code, ran[1].code], [0, 1], "{ran:#?}");
    assert!(ran[1].errors()[0].contains("process "), "{}", ran[1].err);
    assert_eq!((works.book("ledger").len(), works.calls_of("slow")), (1, 1));
    // One for the start, one for whoever resumed it.
    assert_eq!(works.entries_of("lease-taken").len(), 2);
}

/// One folds the log and is slow; the other comes and goes meanwhile. What the slow one knows is old.
#[test]
fn what_another_did_meanwhile_is_not_done_again() {
    let works = Works::new();
    let steps = [ledger("books", 6), worker("sum", 3).after("books")];
    let _ = works.run(&["run", works.task(&task("", &[("", &steps)]))]).expect(4);
    approve(&works);
    let run = works.last_run().unwrap();
    let lock = rusqlite::Connection::open(works.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // It folds the log, and waits for the right to drive the run as long as the database is locked.
    let slow = works.job(&["resume", &run], |_| {});
    until("it waits for the database", || {
        let fds = format!("/proc/{}/fd", slow.pid());
        let open = std::fs::read_dir(fds).map(|fds| fds.filter_map(Result::ok).collect::<Vec<_>>());
        let of_database = |fd: &std::fs::DirEntry| {
            std::fs::read_link(fd.path()).is_ok_and(|path| path.ends_with("checkrein.db"))
        };
        // One connection reads; the other is the writer's.
        open.is_ok_and(|open| open.iter().filter(|fd| of_database(fd)).count() > 1)
    });
    slow.signal("STOP");
    lock.execute_batch("ROLLBACK").unwrap();
    let _ = works.run(&["resume", &run]).expect(0);
    slow.signal("CONT");
    let ran = slow.end();
    assert!([0, 1].contains(&ran.code), "{ran:?}");
    assert_eq!((works.book("ledger").len(), works.calls_of("books"), works.calls_of("sum")), (1, 1, 1));
    assert_eq!(works.entries_of("run-ended").len(), 1);
    let _ = works.run(&["trace", "verify", "@last"]).expect(0);
}

#[test]
fn a_process_that_was_only_halted_keeps_its_run() {
    let works = Works::new();
    let mut driver = works.job(&["run", slow(&works)], |_| {});
    driver.wait_for("attempt 1 of");
    driver.signal("STOP");
    let _ = works.run(&["resume", "@last"]).expect(1);
    driver.signal("CONT");
    driver.signal("INT");
    let _ = driver.within(Duration::from_secs(15)).expect(130);
}

/// A hundred subgoals and then one that waits: enough events for a snapshot.
fn long() -> Vec<Vec<Step>> {
    let chain = |start: u32| {
        (start..start + 20).map(move |n| {
            let step = worker(&format!("g{n}"), n);
            if n % 5 == 1 { step } else { step.after(&format!("g{}", n - 1)) }
        })
    };
    let mut stages: Vec<Vec<Step>> = (0..5).map(|stage| chain(stage * 20 + 1).collect()).collect();
    stages.push(vec![ledger("books", 6)]);
    stages
}

#[test]
fn a_damaged_snapshot_is_told_and_costs_only_time() {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&text_of(&long()))]).expect(4);
    assert!(works.flip_a_bit_of_the_snapshot(), "there is no snapshot");
    approve(&works);
    let ran = works.run(&["resume", "@last"]).expect(0);
    let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("snapshot")).collect();
    assert_eq!(told.len(), 1, "{}", ran.err);
    assert_eq!(works.facts().len(), 101);
    let _ = works.run(&["trace", "verify", "@last"]).expect(0);
    assert_eq!(works.book("ledger").len(), 1);
}

#[test]
fn a_snapshot_that_is_gone_costs_only_time() {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&text_of(&long()))]).expect(4);
    assert_eq!(works.alter("DELETE FROM snapshot"), 1, "there is no snapshot");
    approve(&works);
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert_eq!(works.facts().len(), 101);
}

#[test]
fn a_log_that_lost_an_event_is_not_gone_on_with() {
    let works = waiting();
    works.alter("DELETE FROM snapshot");
    assert_eq!(works.alter("DELETE FROM event WHERE seq = 20"), 1);
    let before = works.entries().len();
    let ran = works.run(&["resume", "@last"]);
    assert!(matches!(ran.code, 1 | 6 | 74), "{ran:#?}");
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.err.contains("trace verify"), "{}", ran.err);
    assert_eq!(works.entries().len(), before, "something was appended to it");
    let _ = works.run(&["trace", "verify", "@last"]).expect(6);
}

#[test]
fn with_the_clock_back_by_a_day_time_does_not_go_back() {
    let works = waiting();
    approve(&works);
    let ran = works.run_with(&["resume", "@last"], |command| shifted(command, -DAY));
    let _ = ran.expect(0);
    let entries = works.entries();
    let back = entries.windows(2).find(|pair| pair[1].at < pair[0].at);
    assert!(back.is_none(), "{back:#?}");
    let seen = entries.last().unwrap().at - entries[0].at;
    assert!(seen < 600_000, "it took {seen} ms");
    assert_eq!(works.facts(), few_facts());
}

#[test]
fn with_the_clock_back_by_a_day_nobody_waits_for_one() {
    let works = Works::new();
    let step = worker("fails", 3).arg("fail", "\"first\"").arg("retry_ms", "4000");
    let job = works.job(&["run", works.task(&text_of(&[vec![step]]))], |_| {});
    until("a timer", || !works.entries_of("timer-set").is_empty());
    job.signal("INT");
    let _ = job.within(Duration::from_secs(15)).expect(130);
    let job = works.job(&["resume", "@last"], |command| shifted(command, -DAY));
    let _ = job.within(Duration::from_secs(60)).expect(0);
    assert_eq!(works.calls_of("fails"), 2);
}

#[test]
fn components_are_those_that_the_run_began_with() {
    let works = waiting();
    let started = works.entries_of("run-started")[0]["setup"]["skills"].as_array().unwrap().clone();
    for name in ["worker", "ledger", "publisher", "recount"] {
        let other = section::embed(&std::fs::read(works.component(name)).unwrap(), "note", b"other");
        std::fs::write(works.component(name), other.unwrap()).unwrap();
    }
    approve(&works);
    let _ = works.run(&["resume", "@last"]).expect(0);
    let pinned = |skill: &Value| {
        let card = started.iter().find(|card| card["manifest"]["name"] == *skill).unwrap();
        card["component"].clone()
    };
    let calls = works.entries_of("call-intended");
    assert!(calls.iter().any(|call| call["skill"] == "ledger"));
    for call in calls {
        assert_eq!(call["component"], pinned(&call["skill"]), "{call:#}");
    }
    assert_eq!(works.facts(), few_facts());
}

/// A run that waits for the approval of one call of `ledger`, which is granted this.
fn one_entry(grant: impl Fn(&Works) -> String) -> Works {
    let works = Works::new();
    works.configure_works(&grant(&works), "");
    let _ = works.run(&["run", works.task(&text_of(&[vec![ledger("books", 6)]]))]).expect(4);
    works
}

#[test]
fn a_narrower_grant_holds_at_once() {
    let works = one_entry(Works::usual);
    works.configure_works("", "");
    approve(&works);
    let _ = works.run(&["resume", "@last"]).expect(3);
    assert!(works.book("ledger").is_empty(), "it wrote where it was no longer allowed to");
    let resumed = works.entries_of("run-resumed");
    let ledger = resumed[0]["in_force"]["skills"].as_array().unwrap().iter();
    let ledger = ledger.clone().find(|card| card["manifest"]["name"] == "ledger").unwrap();
    assert_eq!(ledger["granted"]["files"], serde_json::json!([]), "{ledger:#}");
}

#[test]
fn a_wider_grant_is_told_and_holds_only_when_it_is_accepted() {
    let works = one_entry(|_| String::new());
    works.configure_works(&works.usual(), "");
    approve(&works);
    let ran = works.run(&["resume", "@last"]).expect(3);
    assert!(ran.err.contains("--accept-config"), "{}", ran.err);
    assert!(ran.err.contains(&works.usual()[10..works.usual().len() - 2]), "what is new: {}", ran.err);
    assert!(works.book("ledger").is_empty(), "it wrote where it had not been allowed to");

    let works = one_entry(|_| String::new());
    works.configure_works(&works.usual(), "");
    approve(&works);
    let _ = works.run(&["resume", "@last", "--accept-config"]).expect(0);
    assert_eq!(works.book("ledger").len(), 1);
}

#[test]
fn an_imported_run_is_granted_nothing_until_a_person_says_so() {
    let works = one_entry(Works::usual);
    let _ = works.run(&["export", "@last", "--out", "run.checkrein"]).expect(0);
    let file = works.path().join("run.checkrein");
    let elsewhere = Works::new();
    elsewhere.configure_works(&elsewhere.usual(), "");
    let run =
        elsewhere.run(&["import", &file.display().to_string(), "--json"]).expect(0).json()["run"].clone();
    let run = run.as_str().unwrap();
    approve(&elsewhere);
    let ran = elsewhere.run(&["resume", run]).expect(3);
    assert!(ran.err.contains("wider than before, not in force"), "{}", ran.err);
    assert!(elsewhere.book("ledger").is_empty(), "nobody here granted it anything");
}

#[test]
fn a_run_that_has_ended_does_not_go_on() {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(&few())));
    let (entries, book) = (works.entries().len(), works.book("ledger").len());
    let ran = works.run(&["resume", "@last"]);
    assert!(ran.expect(0).err.contains("has ended"));
    assert_eq!((works.entries().len(), works.book("ledger").len()), (entries, book));
}

#[test]
fn a_run_that_was_killed_says_how_it_goes_on() {
    let works = Works::new();
    let mut job = works.job(&["run", slow(&works)], |_| {});
    job.wait_for("attempt 1 of");
    job.signal("KILL");
    let _ = job.end().expect(KILLED);
    let run = works.last_run().unwrap();
    let followed = works.job(&["trace", "@last", "--follow"], |_| {}).end().expect(0);
    assert!(followed.err.contains(&format!("checkrein resume {run}")), "{}", followed.err);
    let listed = works.run(&["runs", "--json"]).expect(0).json();
    let listed = &listed["runs"][0];
    assert_eq!((&listed["run"], &listed["state"]), (&run.into(), &"interrupted".into()));
    assert_eq!((&listed["status"], &listed["driver"]), (&Value::Null, &Value::Null));
}
