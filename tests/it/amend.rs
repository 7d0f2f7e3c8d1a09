//! A task that is changed while it runs: what depended on the change is open again, the rest stands.

use checkrein_tests::{Works, answer_all, ledger, task, undisturbed, worker};
use serde_json::json;

/// A run that waits in its second stage. `a` uses the parameter, `b` comes after it, `c` beside it.
fn waiting() -> Works {
    let works = Works::new();
    let first =
        [worker("a", 3).arg("n", "{ \"$param\" = \"n\" }"), worker("b", 20).after("a"), worker("c", 9)];
    let text = task("[parameters]\nn = 3\n", &[("", &first), ("", &[ledger("d", 6)])]);
    let _ = works.run(&["run", works.task(&text)]).expect(4);
    works
}

fn calls(works: &Works) -> [usize; 4] {
    ["a", "b", "c", "d"].map(|id| works.calls_of(id))
}

fn subjects(works: &Works) -> Vec<String> {
    let report = works.run(&["report", "@last", "--json"]).expect(0).json();
    let facts = report["facts"].as_array().unwrap().iter();
    facts.map(|fact| fact["subject"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_used_a_parameter_and_what_comes_after_it_is_open_again() {
    let works = waiting();
    assert_eq!(calls(&works), [1, 1, 1, 0]);
    let ran = works.run(&["amend", "@last", "--set", "n=8"]).expect(0);
    assert!(ran.out.contains("checkrein resume"), "{}", ran.out);
    let _ = works.run(&["resume", "@last"]).expect(4);
    let amended = &works.entries_of("task-amended")[0];
    assert_eq!((&amended["version"], &amended["reopened"]), (&2.into(), &json!(["a", "b", "d"])));
    assert_eq!(calls(&works), [2, 2, 1, 0]);
    assert_eq!(works.entries_of("ask-opened").len(), 2, "what was asked before is void");
    undisturbed(&works, "task.toml");
    assert_eq!(subjects(&works), ["ledger/6", "work/20", "work/8", "work/9"]);
    let last = works.entries_of("call-intended");
    let of_a = last.iter().rev().find(|call| call["subgoal"] == "a").unwrap();
    assert_eq!(of_a["args"]["n"], 8);
}

#[test]
fn a_run_that_is_done_can_be_changed() {
    let works = waiting();
    undisturbed(&works, "task.toml");
    let ran = works.run(&["amend", "@last", "--set", "n=8", "--resume"]);
    // It waits again: what came after it cannot be taken back, and is asked for once more.
    let _ = ran.expect(4);
    answer_all(&works, &mut |args| works.run(args));
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert_eq!(subjects(&works), ["ledger/6", "work/20", "work/8", "work/9"]);
    assert_eq!((calls(&works), works.book("ledger").len()), ([2, 2, 1, 2], 2));
}

#[test]
fn a_criterion_more_is_evaluated_over_the_facts_that_stand() {
    let works = waiting();
    let before = works.entries_of("criteria-evaluated").len();
    let check = "fact(\"work/9\").sum > 40";
    let _ = works.run(&["amend", "@last", "--subgoal", "c", "--criterion", check]).expect(0);
    let _ = works.run(&["resume", "@last"]).expect(4);
    let amended = &works.entries_of("task-amended")[0];
    assert!(amended["evaluated"].as_array().unwrap().contains(&"c".into()), "{amended:#}");
    let evaluated = works.entries_of("criteria-evaluated");
    assert_eq!(evaluated.len(), before + 1);
    let criteria = evaluated.last().unwrap()["criteria"].as_array().unwrap().clone();
    assert!(criteria.iter().any(|one| one["text"] == check && one["holds"] == true), "{criteria:#?}");
    assert_eq!(calls(&works)[..3], [1, 1, 1], "nothing is called for it");
    undisturbed(&works, "task.toml");
}

#[test]
fn a_criterion_more_that_does_not_hold_ends_the_run_otherwise() {
    let works = waiting();
    let check = "fact(\"work/9\").sum > 1000";
    let _ = works.run(&["amend", "@last", "--subgoal", "c", "--criterion", check]).expect(0);
    let ran = works.run(&["resume", "@last"]);
    assert!(matches!(ran.code, 3 | 4), "{ran:#?}");
    let show = works.run(&["show", "@last", "--json"]).expect(0).json();
    let subgoal = &show["stages"][0]["subgoals"][2];
    assert_eq!((&subgoal["subgoal"], &subgoal["met"]), (&"c".into(), &false.into()));
    assert!(works.book("ledger").is_empty());
}

#[test]
fn the_goal_is_said_in_other_words() {
    let works = waiting();
    let _ = works.run(&["amend", "@last", "--goal", "see to other numbers"]).expect(0);
    answer_all(&works, &mut |args| works.run(args));
    let _ = works.run(&["resume", "@last"]).expect(0);
    let amended = &works.entries_of("task-amended")[0];
    assert_eq!(amended["amendment"]["goal"], "see to other numbers");
    let report = works.run(&["report", "@last", "--json"]).expect(0).json();
    assert_eq!(report["task"]["goal"], "see to other numbers");
    assert_eq!(calls(&works), [1, 1, 1, 1], "no subgoal has the words of the task");
}

#[test]
fn a_run_that_goes_on_is_changed_as_it_goes() {
    let works = Works::new();
    let slow = worker("slow", 3).arg("pause_ms", "{ \"$param\" = \"pause\" }");
    let text = task("[parameters]\npause = 20000\n", &[("", &[slow, worker("quick", 4)])]);
    let mut job = works.job(&["run", works.task(&text)], |_| {});
    job.wait_for(&format!("{:<14} attempt 1 of", "slow"));
    let ran = works.run(&["amend", "@last", "--set", "pause=0"]).expect(0);
    assert!(ran.out.contains(&format!("process {}", job.pid())), "{}", ran.out);
    let _ = job.within(std::time::Duration::from_secs(15)).expect(0);
    let ended = works.entries_of("call-ended");
    assert!(ended.iter().any(|event| event["ended"]["status"] == "cancelled"), "{ended:#?}");
    assert_eq!((works.calls_of("slow"), works.calls_of("quick")), (2, 1));
}

#[test]
fn mistakes_in_a_change_are_told_before_it_is_sent() {
    let works = waiting();
    for (args, what) in [
        (&["--set", "m=8"][..], "found m"),
        (&["--set", "n=many"], "many"),
        (&["--criterion", "true"], "--subgoal"),
        (&["--subgoal", "e", "--criterion", "true"], "--subgoal"),
        (&["--subgoal", "c", "--criterion", "fact("], "fact("),
        (&["--set", "n=3"], "changes nothing"),
        (&[], "nothing"),
    ] {
        let ran = works.run(&[&["amend", "@last"], args].concat()).expect(1);
        assert!(ran.err.contains(what), "`{what}` is not in {}", ran.err);
    }
    let _ = works.run(&["resume", "@last"]).expect(4);
    assert!(works.entries_of("letter-taken").is_empty());
}
