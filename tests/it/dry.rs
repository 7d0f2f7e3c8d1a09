//! A dry run: everything turns, and nothing leaves.

use checkrein_tests::{Works, answer_all, dry, few, ledger, task, text_of, worker};

/// The few, with what each would answer.
fn text() -> String {
    let steps: Vec<_> = few().into_iter().flatten().collect();
    format!("{}\n{}", text_of(&few()), dry(&steps))
}

fn dry_run(works: &Works, text: &str, more: &[&str]) -> checkrein_tests::Ran {
    works.run(&[&["run", works.task(text), "--dry-run"], more].concat())
}

/// The report as Markdown.
fn report(works: &Works) -> String {
    let html = works.run(&["report", "@last"]).expect(0).out.trim().to_owned();
    let text = std::fs::read_to_string(works.path().join(html.replace(".html", ".md"))).unwrap();
    let page = std::fs::read_to_string(works.path().join(html)).unwrap();
    assert!(page.contains("dry run"), "it is not on the page");
    text
}

#[test]
fn a_dry_run_asks_and_verifies_and_changes_nothing() {
    let works = Works::new();
    let _ = dry_run(&works, &text(), &[]).expect(4);
    assert_eq!(works.open_asks()[0].kind(), "approval", "asks are real");
    answer_all(&works, &mut |args| works.run(args));
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert!(works.book("ledger").is_empty() && works.book("publisher").is_empty(), "something left");
    assert_eq!(works.facts().len(), 6);
    let verdicts = works.entries_of("verdict-given");
    let recounts = verdicts.iter().filter(|verdict| verdict["judge"]["name"] == "recount").count();
    assert_eq!(recounts, 6, "the gateway is real");
    assert_eq!(works.entries_of("run-started")[0]["setup"]["dry"], true);
}

#[test]
fn the_report_says_on_its_face_that_it_was_one() {
    let works = Works::new();
    let steps = [worker("sum", 5)];
    let _ = dry_run(&works, &format!("{}\n{}", task("", &[("", &steps)]), dry(&steps)), &[]).expect(0);
    let report = report(&works);
    let face: Vec<&str> = report.lines().take(12).collect();
    assert!(face.join("\n").to_lowercase().contains("dry run"), "{face:#?}");
    for args in [&["show", "@last"][..], &["runs"]] {
        let out = works.run(args).expect(0).out;
        assert!(out.to_lowercase().contains("dry run"), "{out}");
    }
    let ran = works.run(&["replay", "@last"]).expect(1);
    assert!(ran.err.contains("dry"), "there is nothing to execute again: {}", ran.err);
    // A run that was none does not say so.
    let works = Works::new();
    let _ = works.run(&["run", works.task(&task("", &[("", &steps)]))]).expect(0);
    assert!(!works.run(&["show", "@last"]).expect(0).out.to_lowercase().contains("dry run"));
}

#[test]
fn an_answer_that_is_wrong_is_rejected() {
    let works = Works::new();
    let steps = [worker("sum", 5)];
    let wrong = dry(&steps).replace("sum = 15", "sum = 16");
    let ran = dry_run(&works, &format!("{}\n{wrong}", task("", &[("", &steps)])), &["--no-person"]);
    let _ = ran.expect(3);
    assert!(works.facts().is_empty() && !works.entries_of("outcome-rejected").is_empty());
}

#[test]
fn answers_in_a_row_are_those_of_one_attempt_after_the_other() {
    let works = Works::new();
    let steps = [worker("sum", 5)];
    let last = dry(&steps).replace("[dry.sum]", "[[dry.sum]]");
    let first = "[[dry.sum]]\nfailure = { kind = \"unavailable\", message = \"it is said to be down\" }\n";
    let _ = dry_run(&works, &format!("{}\n{first}{last}", task("", &[("", &steps)])), &[]).expect(0);
    let ended = works.entries_of("call-ended");
    assert_eq!(ended.len(), 2);
    assert_eq!(ended[0]["ended"]["failure"]["message"], "it is said to be down");
}

#[test]
fn what_was_recorded_answers_where_the_task_says_nothing() {
    let works = Works::new();
    let step = [ledger("books", 6)];
    let text = task("", &[("", &step)]);
    let _ = works.run(&["run", works.task(&text)]).expect(4);
    answer_all(&works, &mut |args| works.run(args));
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert_eq!(works.book("ledger").len(), 1);
    let _ = dry_run(&works, &text, &[]).expect(4);
    answer_all(&works, &mut |args| works.run(args));
    let _ = works.run(&["resume", "@last"]).expect(0);
    assert_eq!(works.book("ledger").len(), 1, "something left");
    assert_eq!(works.facts().len(), 1);
}

#[test]
fn cases_answer_where_the_task_says_nothing() {
    let works = Works::new();
    // The number of a case that states its outcome.
    let _ = dry_run(&works, &task("", &[("", &[worker("sum", 4)])]), &["--no-person"]).expect(0);
    assert_eq!(works.facts().len(), 1);
}

#[test]
fn exit_codes_are_real() {
    let works = Works::new();
    let _ = dry_run(&works, &text(), &["--no-person"]).expect(3);
    assert_eq!(works.closing_of("books")["because"], "needs-person");
    assert!(works.book("ledger").is_empty());
    // Without any answer the executor has nothing to say.
    let works = Works::new();
    let ran = dry_run(&works, &task("", &[("", &[worker("sum", 77)])]), &["--no-person"]);
    let ran = ran.expect(3);
    assert!(works.facts().is_empty() && ran.err.contains("[dry.sum]"), "{ran:#?}");
}
