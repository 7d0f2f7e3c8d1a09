//! What may be used up is never passed: by one call after the other, side by side, and by what went
//! wrong.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use checkrein_tests::{KILLED, Ran, Step, Works, answer_all, ledger, task, until, worker};
use serde_json::Value;

/// Where a budget stands.
const LEVELS: [&str; 3] = ["run", "stage", "subgoal"];

/// Runs these subgoals in one stage, with a budget at this level; of a subgoal, each has it.
fn run(level: &str, budget: &str, steps: &[Step]) -> (Works, Ran) {
    let works = Works::new();
    let of = |place: &str, table: &str| match level == place {
        true => format!("{table}\n{budget}\n"),
        false => String::new(),
    };
    let own = of("subgoal", "[stage.subgoal.budget]");
    let steps: Vec<Step> = steps.iter().map(|step| step.clone().more(&own)).collect();
    let text = task(&of("run", "[budget]"), &[(&of("stage", "[stage.budget]"), &steps)]);
    let ran = works.run(&["run", works.task(&text), "--no-person"]);
    (works, ran)
}

/// The budgets that subgoals were closed for, in words.
fn used_up(works: &Works) -> Vec<String> {
    let closed = works.entries_of("subgoal-closed");
    let closings = closed.iter().filter(|event| event["closing"]["because"] == "budget-used");
    closings.map(|event| event["closing"]["budget"].as_str().unwrap().to_owned()).collect()
}

/// The largest sum of what was used and what was set aside, over all events.
fn most_fuel(works: &Works) -> u64 {
    let (mut used, mut most) = (0, 0);
    let mut reserved = BTreeMap::<String, u64>::new();
    for entry in works.entries() {
        let call = entry.event["call"].as_str().unwrap_or_default().to_owned();
        match entry.kind.as_str() {
            "budget-reserved" => drop(reserved.insert(call, entry.event["fuel"].as_u64().unwrap())),
            "budget-settled" => {
                reserved.remove(&call);
                used += entry.event["used"]["fuel"].as_u64().unwrap();
            }
            _ => {}
        }
        most = most.max(used + reserved.values().sum::<u64>());
    }
    most
}

/// Three that do not know each other.
fn side_by_side() -> [Step; 3] {
    [worker("a", 3), worker("b", 4), worker("c", 5)]
}

#[test]
fn attempts_are_not_passed() {
    for level in LEVELS {
        let steps = side_by_side().map(|step| step.arg("fail", "\"always\""));
        let (works, ran) = run(level, "attempts = 2", &steps);
        let _ = ran.expect(3);
        let failed = works.entries_of("call-ended").len();
        // Each subgoal has its own, or all of them have two.
        assert_eq!(failed, if level == "subgoal" { 6 } else { 2 }, "{level}");
        let told = used_up(&works);
        assert!(!told.is_empty() && told.iter().all(|told| told.starts_with(level)), "{level}: {told:?}");
        assert!(told.iter().all(|told| told.contains("attempts")), "{told:?}");
    }
}

#[test]
fn calls_are_not_passed() {
    for level in LEVELS {
        let steps = side_by_side().map(|step| step.arg("fail", "\"first\""));
        let (works, ran) = run(level, "calls = 1", &steps);
        let _ = ran.expect(3);
        let calls = works.entries_of("call-intended").len();
        assert_eq!(calls, if level == "subgoal" { 3 } else { 1 }, "{level}");
        let told = used_up(&works);
        assert!(!told.is_empty() && told.iter().all(|told| told.starts_with(level)), "{level}: {told:?}");
        assert!(told.iter().all(|told| told.contains("calls")), "{told:?}");
    }
}

/// What one call of `worker` uses, as it is measured.
fn fuel_of_a_call() -> u64 {
    let (works, ran) = run("run", "calls = 1", &[worker("a", 3)]);
    let _ = ran.expect(0);
    works.entries_of("budget-settled")[0]["used"]["fuel"].as_u64().unwrap()
}

#[test]
fn fuel_is_not_passed() {
    let call = fuel_of_a_call();
    assert!(call > 1_000, "{call}");
    for level in LEVELS {
        // Not enough for one, or enough for one and a half.
        for allowed in [call / 2, call + call / 2] {
            let (works, ran) = run(level, &format!("fuel = {allowed}"), &side_by_side());
            let enough = level == "subgoal" && allowed > call;
            let _ = ran.expect(if enough { 0 } else { 3 });
            let sum: u64 = works
                .entries_of("budget-settled")
                .iter()
                .map(|event| event["used"]["fuel"].as_u64().unwrap())
                .sum();
            let all = if level == "subgoal" { allowed * 3 } else { allowed };
            assert!(sum <= all && most_fuel(&works) <= all, "{level}: {sum}, {} of {all}", most_fuel(&works));
            let met = works.entries_of("outcome-accepted").len();
            let expected = if enough { 3 } else { usize::from(allowed > call) };
            assert_eq!(met, if level == "subgoal" && !enough { 0 } else { expected }, "{level}, {allowed}");
        }
    }
}

#[test]
fn wall_time_is_not_passed() {
    for level in LEVELS {
        let steps = [worker("a", 3).arg("pause_ms", "25000"), worker("b", 4).after("a")];
        let begun = Instant::now();
        let (works, ran) = run(level, "wall = \"2 s\"", &steps);
        let _ = ran.expect(3);
        assert!(begun.elapsed() < Duration::from_secs(15), "{level}: {:?}", begun.elapsed());
        let ended = &works.entries_of("call-ended")[0]["ended"];
        assert_eq!(
            (&ended["status"], &ended["hit"]["limit"]),
            (&"limited".into(), &"wall".into()),
            "{level}"
        );
        assert_eq!(works.calls_of("a"), 1, "{level}: nothing more was begun");
        assert_eq!(works.calls_of("b"), 0, "{level}");
    }
}

#[test]
fn what_a_run_waits_for_a_person_does_not_count() {
    let works = Works::new();
    let steps = [ledger("books", 6)];
    let text = task("[budget]\nwall = \"30 min\"\n", &[("", &steps)]);
    let _ = works.run(&["run", works.task(&text)]).expect(4);
    answer_all(&works, &mut |args| works.run(args));
    let later = |command: &mut std::process::Command| checkrein_tests::shifted(command, checkrein_tests::DAY);
    let _ = works.run_with(&["resume", "@last"], later).expect(0);
}

/// A call that was in hand when the host ended is charged whole: nobody knows what it used.
#[test]
fn what_an_unknown_call_may_have_used_is_charged_whole() {
    let works = Works::new();
    let step = worker("slow", 3).arg("pause_ms", "3000");
    let text = task("[budget]\nfuel = \"60e9\"\n", &[("", &[step])]);
    let mut job = works.job(&["run", works.task(&text), "--no-person"], |_| {});
    job.wait_for("attempt 1 of");
    until("a reservation", || !works.entries_of("budget-reserved").is_empty());
    job.signal("KILL");
    let _ = job.end().expect(KILLED);
    let _ = works.run(&["resume", "@last"]).expect(0);
    let reserved = works.entries_of("budget-reserved");
    let settled = works.entries_of("budget-settled");
    let fuel = |event: &Value| event["fuel"].as_u64().unwrap();
    assert_eq!(settled[0]["used"]["fuel"].as_u64().unwrap(), fuel(&reserved[0]));
    // For the second time there is only what is left.
    assert!(fuel(&reserved[0]) + fuel(&reserved[1]) <= 60_000_000_000, "{reserved:#?}");
    assert!(most_fuel(&works) <= 60_000_000_000);
    assert_eq!(works.calls_of("slow"), 1, "it was made again under its id");
}
