//! What a run asks a person, and what follows from each answer.

use checkrein_tests::{
    HOUR, Job, KILLED, Ran, Step, Works, ledger, outcome_of, shifted, task, text_of, undisturbed, until,
    worker,
};
use serde_json::{Value, json};

/// A run with these subgoals in one stage, which waits for a person.
fn waiting(steps: &[Step]) -> Works {
    let works = Works::new();
    let _ = works.run(&["run", works.task(&task("", &[("", steps)]))]).expect(4);
    works
}

/// One that waits for the approval of one entry.
fn one_entry() -> Works {
    waiting(&[ledger("books", 6)])
}

/// One whose subgoal has used up its two attempts.
fn stuck() -> Works {
    let step = worker("hard", 3).goal("add up what is hard to add up").arg("fail", "\"always\"");
    waiting(&[step.more("attempts = 2")])
}

#[test]
fn a_call_that_cannot_be_taken_back_waits_for_its_approval() {
    let works = one_entry();
    let run = works.last_run().unwrap();
    let asks = works.open_asks();
    assert_eq!((asks.len(), asks[0].kind()), (1, "approval"));
    assert_eq!(asks[0].about["args"]["n"], 6);
    assert!(works.book("ledger").is_empty() && works.entries_of("call-intended").is_empty());
    assert_eq!(works.entries_of("run-stopped")[0]["because"], "person");
    let ran = works.run(&["approve", "@last"]).expect(0);
    assert!(ran.out.contains(&format!("checkrein resume {run}")), "{}", ran.out);
    assert!(works.entries_of("ask-answered").is_empty(), "a letter is no event yet");
    let _ = works.run(&["resume", &run]).expect(0);
    let call = &works.entries_of("call-intended")[0];
    assert_eq!(call["ask"], asks[0].ask.as_str());
    assert_eq!(works.book("ledger"), [call["call"].as_str().unwrap()]);
    assert_eq!(works.status().as_deref(), Some("done"));
}

#[test]
fn the_command_that_goes_on_is_told_when_a_run_waits() {
    let works = Works::new();
    let ran = works.run(&["run", works.task(&text_of(&[vec![ledger("books", 6)]]))]).expect(4);
    let run = works.last_run().unwrap();
    let told = ran.out.clone() + &ran.err;
    assert!(told.contains(&format!("checkrein resume {run}")), "{told}");
    assert!(told.contains(&format!("checkrein approve {run}")), "{told}");
    let listed = works.run(&["runs"]).expect(0).out;
    assert!(listed.contains("waiting"), "{listed}");
}

#[test]
fn an_approval_can_go_on_with_the_run_at_once() {
    let works = one_entry();
    let _ = works.run(&["approve", "@last", "--resume"]).expect(0);
    assert_eq!(works.book("ledger").len(), 1);
}

#[test]
fn what_is_denied_is_not_done() {
    let works = one_entry();
    let _ = works.run(&["deny", "@last", "--reason", "not on a Friday", "--resume"]).expect(3);
    assert!(works.book("ledger").is_empty() && works.entries_of("call-intended").is_empty());
    let answered = &works.entries_of("ask-answered")[0];
    assert_eq!(answered["answer"], json!({ "answer": "denied", "reason": "not on a Friday" }));
    let shown = works.run(&["show", "@last"]).expect(0).out;
    assert!(shown.contains("not on a Friday"), "{shown}");
}

#[test]
fn an_approval_that_has_expired_is_asked_for_again() {
    let works = one_entry();
    let _ = works.run(&["approve", "@last", "--for", "1h"]).expect(0);
    let _ = works.run_with(&["resume", "@last"], |command| shifted(command, 2 * HOUR)).expect(4);
    assert!(works.book("ledger").is_empty() && works.entries_of("call-intended").is_empty());
    assert_eq!(works.entries_of("ask-opened").len(), 2);
    // Within its hour, it holds.
    let works = one_entry();
    let _ = works.run(&["approve", "@last", "--for", "3h"]).expect(0);
    let _ = works.run_with(&["resume", "@last"], |command| shifted(command, 2 * HOUR)).expect(0);
    assert_eq!(works.book("ledger").len(), 1);
    for bad in ["soon", "0 s", "-1h"] {
        let works = one_entry();
        let ran = works.run(&["approve", "@last", &format!("--for={bad}")]);
        assert!(matches!(ran.code, 1 | 2) && ran.err.contains(bad), "{ran:#?}");
    }
}

#[test]
fn an_approval_does_not_hold_for_another_action() {
    let works = Works::new();
    let step = ledger("books", 6).arg("n", "{ \"$param\" = \"n\" }");
    let text = task("[parameters]\nn = 6\n", &[("", &[step])]);
    let _ = works.run(&["run", works.task(&text)]).expect(4);
    let first = works.open_asks().remove(0);
    // Whoever approves has seen 6, and by then it is to be 7.
    let _ = works.run(&["amend", "@last", "--set", "n=7"]).expect(0);
    let _ = works.run(&["approve", "@last"]).expect(0);
    let _ = works.run(&["resume", "@last"]).expect(4);
    assert!(works.book("ledger").is_empty() && works.entries_of("call-intended").is_empty());
    let second = works.open_asks().remove(0);
    assert_ne!((&first.ask, &first.about["action"]), (&second.ask, &second.about["action"]));
    assert_eq!(second.about["args"]["n"], 7);
    let _ = works.run(&["approve", "@last", "--resume"]).expect(0);
    let facts = works.facts();
    assert!(facts.len() == 1 && facts.iter().all(|(id, _)| id.starts_with("ledger/7@")), "{facts:?}");
}

#[test]
fn an_approval_is_used_once() {
    // The same call twice, in all that an approval binds to but its subgoal.
    let works = waiting(&[ledger("one", 6), ledger("two", 6)]);
    let asks = works.open_asks();
    assert_eq!(asks.len(), 2);
    assert_eq!(asks[0].about["action"], asks[1].about["action"]);
    let ran = works.run(&["approve", "@last"]).expect(1);
    assert!(ran.err.contains("2 open asks"), "{}", ran.err);
    let _ = works.run(&["approve", "@last", &asks[0].ask]).expect(0);
    let ran = works.run(&["approve", "@last", &asks[0].ask]).expect(1);
    assert!(ran.err.contains("answered already"), "{}", ran.err);
    let _ = works.run(&["resume", "@last"]).expect(4);
    assert_eq!(works.book("ledger").len(), 1);
    assert_eq!(works.open_asks()[0].ask, asks[1].ask);
    let ran = works.run(&["approve", "@last", &asks[0].ask]).expect(1);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    let _ = works.run(&["approve", "@last", "99"]).expect(1);
    let _ = works.run(&["answer", "@last", "yes"]).expect(1);
}

#[test]
fn without_a_person_what_would_be_asked_ends_its_subgoal() {
    let works = Works::new();
    let text = text_of(&[vec![ledger("books", 6), worker("hard", 3).arg("fail", "\"always\"")]]);
    let ran = works.run(&["run", works.task(&text), "--no-person"]).expect(3);
    assert!(works.book("ledger").is_empty(), "{ran:#?}");
    assert_eq!(works.closing_of("books")["because"], "needs-person");
    assert_eq!(works.closing_of("hard")["because"], "attempts-used");
    assert!(works.status().as_deref() == Some("not-reached") && works.entries_of("run-stopped").is_empty());
}

#[test]
fn a_run_that_waits_stays_as_it_is() {
    let works = one_entry();
    let asked = works.open_asks();
    for _ in 0..3 {
        let _ = works.run(&["resume", "@last"]).expect(4);
    }
    assert_eq!(works.entries_of("ask-opened").len(), 1);
    assert_eq!(works.open_asks()[0].ask, asked[0].ask);
    assert!(works.entries_of("call-intended").is_empty());
    let driven = works.run(&["runs", "--json"]).expect(0).json()["runs"][0]["driver"].clone();
    assert_eq!(driven, Value::Null, "a run that waits needs no process");
    let _ = works.run(&["approve", "@last", "--resume"]).expect(0);
}

/// A call in hand that waits for so long before and after it writes.
fn under_way(before_ms: u32, pause_ms: u32) -> (Works, Job) {
    let step = ledger("books", 6).arg("before_ms", &before_ms.to_string());
    let works = waiting(&[step.arg("pause_ms", &pause_ms.to_string())]);
    let _ = works.run(&["approve", "@last"]).expect(0);
    let mut job = works.job(&["resume", "@last"], |_| {});
    job.wait_for("attempt 1 of");
    (works, job)
}

/// A run of which nobody knows whether its only call happened; it did, or did not.
fn unknown(happened: bool) -> Works {
    let (works, job) = if happened { under_way(0, 20_000) } else { under_way(4_000, 0) };
    until("a line in the ledger", || works.book("ledger").len() == usize::from(happened));
    job.signal("KILL");
    let _ = job.end().expect(KILLED);
    let ran = works.run(&["resume", "@last"]).expect(4);
    assert!((ran.out + &ran.err).contains("did it happen?"));
    let asks = works.open_asks();
    assert_eq!((asks.len(), asks[0].kind()), (1, "call-unknown"), "{asks:#?}");
    works
}

#[test]
fn a_call_that_happened_with_what_came_out_of_it() {
    let works = unknown(true);
    let call = works.open_asks()[0].about["call"].as_str().unwrap().to_owned();
    works.write("outcome.json", &outcome_of(&works, &call).to_string());
    let _ = works.run(&["answer", "@last", "yes", "--outcome", "outcome.json", "--resume"]).expect(0);
    assert_eq!(works.book("ledger"), [call]);
    assert_eq!(works.entries_of("call-ended")[0]["attested"], true);
    let report = works.run(&["report", "@last", "--json"]).expect(0).json();
    assert_eq!(
        (&report["facts"][0]["subject"], &report["facts"][0]["level"]),
        (&"ledger/6".into(), &"attested".into())
    );
}

#[test]
fn what_a_person_says_of_a_call_is_verified_like_any_other() {
    let works = unknown(true);
    let call = works.open_asks()[0].about["call"].as_str().unwrap().to_owned();
    let told = outcome_of(&works, &call).to_string().replace("12", "13");
    works.write("outcome.json", &told);
    let ran = works.run(&["answer", "@last", "yes", "--outcome", "outcome.json", "--resume"]);
    assert!(matches!(ran.code, 3 | 4), "{ran:#?}");
    assert!(works.facts().is_empty() && works.entries_of("outcome-rejected").len() == 1);
    assert_eq!(works.book("ledger").len(), 1);
    let works = unknown(true);
    works.write("outcome.json", "{\"contents\":1}");
    let ran = works.run(&["answer", "@last", "yes", "--outcome", "outcome.json"]).expect(1);
    assert!(ran.err.contains("contents"), "{}", ran.err);
}

#[test]
fn a_call_that_happened_without_a_word_of_what_came_out_of_it() {
    let works = unknown(true);
    let ran = works.run(&["answer", "@last", "yes", "--resume"]);
    assert!(matches!(ran.code, 3 | 4), "nothing is known, so nothing is met: {ran:#?}");
    assert!(works.facts().is_empty());
    assert_eq!((works.book("ledger").len(), works.calls_of("books")), (1, 1));
    assert_eq!(works.entries_of("call-ended")[0]["ended"]["status"], "happened");
}

#[test]
fn a_call_that_did_not_happen_is_made_again_under_its_id() {
    let works = unknown(false);
    let call = works.open_asks()[0].about["call"].as_str().unwrap().to_owned();
    let job = works.job(&["answer", "@last", "no", "--resume"], |_| {});
    // It takes its time again, but no approval: nothing was done with the first.
    let _ = job.end().expect(0);
    assert_eq!(works.book("ledger"), [call]);
    assert_eq!(works.entries_of("ask-opened").len(), 2);
}

#[test]
fn a_call_of_which_nobody_says_anything_is_given_up() {
    for happened in [true, false] {
        let works = unknown(happened);
        let _ = works.run(&["answer", "@last", "give-up", "--resume"]).expect(3);
        assert_eq!(works.book("ledger").len(), usize::from(happened));
        assert_eq!(works.closing_of("books")["because"], "gave-up");
    }
}

#[test]
fn whether_it_happened_is_not_answered_otherwise() {
    let works = unknown(true);
    for bad in ["retry", "perhaps", "{}"] {
        let ran = works.run(&["answer", "@last", bad]).expect(1);
        assert!(ran.err.contains("`yes`") && ran.err.contains("`no`"), "{}", ran.err);
    }
    let _ = works.run(&["approve", "@last"]).expect(1);
    let ran = works.run(&["run", "task.toml", "--no-person"]).expect(3);
    assert!(ran.out.contains("not-reached"), "{}", ran.out);
}

#[test]
fn a_hand_over_is_one_page_with_a_way_on() {
    let works = stuck();
    let run = works.last_run().unwrap();
    let asks = works.open_asks();
    assert_eq!(asks[0].kind(), "hand-over");
    assert_eq!(asks[0].about["because"], json!({ "because": "attempts-used", "attempts": 2 }));
    let page = works.run(&["show", "@last"]).expect(0).out;
    let retry = format!("checkrein answer {run} {} retry", asks[0].ask);
    let give_up = format!("checkrein answer {run} {} give-up", asks[0].ask);
    for what in
        ["add up what is hard to add up", "no luck at attempt 1", "no luck at attempt 2", &retry, &give_up]
    {
        assert!(page.contains(what), "`{what}` is not in\n{page}");
    }
    assert_eq!(works.run(&["show", "@last", "--json"]).expect(0).json()["course"]["asks"][0]["open"], true);
}

/// Every command that a page offers is one that is understood.
#[test]
fn the_ways_on_of_a_page_go_on() {
    let works = stuck();
    let page = works.run(&["show", "@last"]).expect(0).out;
    let ways: Vec<&str> =
        page.lines().map(str::trim).filter(|line| line.starts_with("checkrein answer")).collect();
    assert!(ways.len() >= 2, "{page}");
    for way in ways {
        let works = stuck();
        let run = works.last_run().unwrap();
        let words: Vec<&str> = way.splitn(4, ' ').collect();
        let (ask, answer) = words[3].split_once(' ').unwrap();
        let ran: Ran = works.run(&["answer", &run, ask, answer.trim_matches('\'')]);
        assert_eq!(ran.code, 0, "{way}: {ran:#?}");
    }
}

#[test]
fn a_subgoal_that_is_handed_over_goes_on_as_it_is_told() {
    let right = json!({ "n": 3, "from": "/in/numbers.txt" }).to_string();
    let works = stuck();
    let _ = works.run(&["answer", "@last", &right, "--resume"]).expect(0);
    assert_eq!(works.facts().len(), 1);

    let works = stuck();
    let ran = works.run(&["answer", "@last", "{\"n\":\"three\"}"]).expect(1);
    assert!(ran.err.contains("worker"), "a slip of the pen costs nothing: {}", ran.err);
    let ran = works.run(&["answer", "@last", "add up more slowly"]).expect(1);
    for what in ["`retry`", "`give-up`", "JSON object"] {
        assert!(ran.err.contains(what), "`{what}` is not in {}", ran.err);
    }
    let _ = works.run(&["answer", "@last", "give-up", "--resume"]).expect(3);
    assert_eq!(works.closing_of("hard")["because"], "gave-up");
}

#[test]
fn no_subgoal_has_more_than_five_attempts_however_often_it_is_told_to_try() {
    let works = stuck();
    let mut told = 0;
    let last = loop {
        let ran = works.run(&["answer", "@last", "retry", "--resume"]);
        if ran.code != 4 {
            break ran;
        }
        told += 1;
        assert!(told < 10, "it goes on and on");
    };
    assert_eq!((last.code, told), (1, 3), "{last:#?}");
    assert!(last.err.contains("attempts"), "{}", last.err);
    assert_eq!(works.calls_of("hard"), 5);
    let _ = works.run(&["answer", "@last", "give-up", "--resume"]).expect(3);
}

#[test]
fn answers_reach_a_run_that_goes_on() {
    let works = Works::new();
    let steps = [ledger("books", 6), worker("slow", 3).arg("pause_ms", "5000")];
    let mut job = works.job(&["run", works.task(&task("", &[("", &steps)]))], |_| {});
    job.wait_for("attempt 1 of");
    until("an ask", || !works.open_asks().is_empty());
    let ran = works.run(&["approve", "@last"]).expect(0);
    assert!(ran.out.contains(&format!("process {}", job.pid())), "{}", ran.out);
    // Taken while the other call is still being made.
    until("a line in the ledger", || !works.book("ledger").is_empty());
    assert!(
        works.entries_of("call-ended").iter().all(|event| !event["call"].as_str().unwrap().contains("slow"))
    );
    let _ = job.end().expect(0);
}

#[test]
fn several_asks_of_one_run_are_answered_one_by_one() {
    let works = waiting(&[ledger("one", 6), ledger("two", 7), ledger("three", 8)]);
    undisturbed(&works, "task.toml");
    assert_eq!(works.book("ledger").len(), 3);
    assert_eq!(works.entries_of("ask-answered").len(), 3);
}
