//! What befalls a run beside its stages: how it stands, resumes, amendments, dry runs, calls that a
//! person answers for, exports.

use std::fs;

use checkrein_contract::Digest;
use checkrein_contract::ask::{Amendment, Answer, Asked, Message};
use checkrein_contract::event::{Ended, Event, InForce, RunStatus, Stop};
use checkrein_contract::id::{CallId, FactId};
use checkrein_contract::interface::Level;
use checkrein_contract::manifest::Kind;
use checkrein_contract::record::Record;
use checkrein_contract::task::Criterion;
use serde_json::json;

use crate::report::sample::{Sample, card, map, run};
use crate::report::show::show_json;
use crate::report::view::RunView;
use crate::report::{figures, html, markdown, report_json, show, why};

/// The events of the sample that begin with the intent of its accepted call, up to its closing.
const ACCEPTED: std::ops::Range<usize> = 7..16;

fn stopped(because: Stop) -> Event {
    Event::RunStopped { because }
}

fn resumed(engine: &str) -> Event {
    Event::RunResumed { engine: engine.to_owned(), in_force: None }
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_run_has_one_word_for_how_it_stands() {
    let word = |end: Vec<Event>, driver: Option<&str>| {
        let view = Sample::default().view_of(|events| {
            events.truncate(7);
            events.extend(end);
        });
        view.driven_by(driver.map(str::to_owned)).state_word()
    };
    let ended = |status| Event::RunEnded { status, reason: "r".to_owned() };
    let holder = "process 7 on here".to_owned();
    for (end, driver, expected) in [
        (vec![ended(RunStatus::Done)], None, "done"),
        (vec![ended(RunStatus::NotReached)], Some("p"), "not-reached"),
        (vec![ended(RunStatus::NeedsPerson)], None, "needs-person"),
        (vec![stopped(Stop::Person)], None, "waiting"),
        (vec![stopped(Stop::Cancelled)], None, "cancelled"),
        (vec![stopped(Stop::Interrupted)], None, "interrupted"),
        (vec![], Some("p"), "running"),
        (vec![], None, "interrupted"),
        // A resume takes the stop back, and a lease alone does not.
        (vec![stopped(Stop::Person), Event::LeaseTaken { epoch: 2, holder }], None, "waiting"),
        (vec![stopped(Stop::Person), resumed("e")], Some("p"), "running"),
        (vec![stopped(Stop::Person), resumed("e")], None, "interrupted"),
        (vec![stopped(Stop::Person), resumed("e"), ended(RunStatus::Done)], None, "done"),
    ] {
        assert_eq!(word(end, driver), expected);
    }
}

#[test]
fn resumes_are_counted_and_what_is_in_force_follows() {
    let other = card("differential-expression", Kind::Skill, "other");
    let view = Sample::default().view_of(|events| {
        let in_force = InForce { skills: vec![other], verifiers: Vec::new(), bindings: Vec::new() };
        events.insert(7, stopped(Stop::Cancelled));
        events.insert(8, resumed("wasmtime 48.0.9"));
        let engine = "wasmtime 48.0.9".to_owned();
        events.insert(9, Event::RunResumed { engine, in_force: Some(Box::new(in_force)) });
    });
    assert_eq!((view.engine.as_str(), view.resumes.len(), view.components.len()), ("wasmtime 48.0.9", 2, 1));
    assert_eq!(view.components[0].component, Digest::of("other"));
    // What was in force before is still known by its digest.
    assert_eq!(view.version_of(&Digest::of("recheck")), Some("1.0.0"));
    let text = markdown(&view);
    has(
        &text,
        &["| engine | wasmtime 48.0.8, then wasmtime 48.0.9 |", "| resumed | 2 times, 1 with other grants |"],
    );
    has(&text, &["until a resume"]);
    has(&show(&view), &["resumed 2 times"]);
    assert_eq!(report_json(&view)["course"]["resumed"][1]["changed"], true);
}

fn amendment() -> Amendment {
    Amendment {
        goal: Some("Which genes?".to_owned()),
        set: map(json!({ "alpha": 0.1 })),
        criteria: vec![(
            "go".into(),
            Criterion { text: "c".to_owned(), check: "count('go/') > 0".to_owned() },
        )],
    }
}

/// The letter of an amendment, and what follows from it for these subgoals.
fn amend(reopened: &[&str], evaluated: &[&str]) -> [Event; 2] {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
    let (amendment, version) = (amendment(), 2);
    let said = Message::Amend { amendment: amendment.clone() };
    [
        Event::LetterTaken { letter: 1, by: "ada".to_owned(), said, refused: None },
        Event::TaskAmended { amendment, version, reopened: ids(reopened), evaluated: ids(evaluated) },
    ]
}

#[test]
fn what_an_amendment_abandons_is_history_and_nothing_else() {
    let before = Sample::default().view();
    let view = Sample::default().view_of(|events| events.extend(amend(&["de", "go"], &[])));
    assert_eq!((view.status, view.state_word(), view.reason.as_str()), (None, "interrupted", ""));
    assert_eq!(view.current_facts().count(), 0);
    assert_eq!((view.history.facts.len(), view.history.artifacts.len(), view.history.calls.len()), (6, 1, 2));
    assert!(view.calls().next().is_none() && figures(&view).is_empty());
    let report = report_json(&view);
    assert_eq!(
        (&report["facts"], &report["artifacts"], &report["findings"]),
        (&json!([]), &json!([]), &json!([]))
    );
    let text = markdown(&view);
    for gone in ["623[^", "![Fold", "[^e1]", "verified fact (", "sample names of the annotation"] {
        assert!(!text.contains(gone), "{gone}\n{text}");
    }
    has(&text, &["**interrupted** · 0 verified facts · 0 failed calls", "**⟦not reached: fact:de/summary"]);
    has(
        &text,
        &[
            "## How the task was changed",
            "Version 2, 2026-",
            ", by ada: goal: Which genes?; `alpha` becomes 0.1; `go` must also hold: c, count('go/')",
            "Open again: `de`, `go`. 6 facts and 1 file abandoned.",
            "| goal card | version 2 |",
        ],
    );
    // The task of the view is the amended one, and the log's own is named.
    assert_eq!((view.task.goal.as_str(), &view.task.parameters["alpha"]), ("Which genes?", &json!(0.1)));
    assert_ne!(view.task_digest, before.task_digest);
    assert_eq!(view.first_task, before.task_digest);
    // An abandoned fact is found by its id, and says what it is.
    assert!(why(&view, "de/summary").is_err());
    let path = why(&view, "de/summary@1").unwrap();
    has(&path.text(), &["abandoned when the task was amended", "/in/samples.csv sha256:"]);
    assert_eq!((&path.json()["abandoned"], &path.json()["counted"]), (&json!(true), &json!(false)));
    has(
        &show(&view),
        &["amended by ada, version 2: goal: Which genes?", "abandoned: 6 facts, 1 artifact", "· de:"],
    );
}

#[test]
fn what_comes_out_after_an_amendment_counts() {
    let view = Sample::default().view_of(|events| {
        let again: Vec<Event> = events[ACCEPTED].iter().cloned().map(once_more).collect();
        events.extend(amend(&["de"], &[]));
        events.extend(again);
    });
    let current: Vec<&str> = view.current_facts().map(|fact| fact.entry.id.as_str()).collect();
    assert!(current.len() == 6 && current.iter().all(|id| id.ends_with("@2")), "{current:?}");
    assert_eq!((view.calls().count(), view.artifacts.len(), view.history.facts.len()), (1, 1, 6));
    has(&markdown(&view), &["**623[^e1]** respond", "`de/summary@2`"]);
    assert!(!markdown(&view).contains("de/summary@1"));
}

/// The event as it is after the subgoal was opened again: of its third call, with second facts.
fn once_more(mut event: Event) -> Event {
    let third = CallId::new(&run(), &"de".into(), 3);
    match &mut event {
        Event::CallIntended { call, .. }
        | Event::CallEnded { call, .. }
        | Event::BudgetSettled { call, .. }
        | Event::VerdictGiven { call, .. } => *call = third,
        Event::OutcomeAccepted { call, facts, .. } => {
            *call = third;
            for fact in facts {
                (fact.version, fact.id) = (2, FactId::new(&fact.subject, 2));
            }
        }
        _ => {}
    }
    event
}

#[test]
fn facts_stand_where_only_criteria_are_evaluated_again() {
    let view = Sample::default().view_of(|events| events.extend(amend(&[], &["de"])));
    assert_eq!((view.current_facts().count(), view.artifacts.len(), view.history.facts.len()), (6, 1, 0));
    let subgoal = view.subgoals().next().unwrap();
    assert!(!subgoal.is_met() && subgoal.closing.is_none() && subgoal.criteria.is_empty());
    assert_eq!(subgoal.calls.len(), 2);
    assert_eq!((view.stages[0].met, view.stages[1].met), (None, Some(false)));
    has(&markdown(&view), &["Criteria evaluated again: `de`."]);
}

#[test]
fn a_subgoal_with_the_goal_of_the_task_gets_its_new_one() {
    let view = Sample::default().view_of(|events| {
        if let Event::RunStarted { setup } = &mut events[0] {
            let goal = setup.task.goal.clone();
            setup.task.stages[1].subgoals[0].goal = goal;
        }
        events.extend(amend(&["go"], &[]));
    });
    let goals: Vec<&str> = view.subgoals().map(|subgoal| subgoal.goal.as_str()).collect();
    assert_eq!(goals, ["test each gene for differential expression", "Which genes?"]);
    assert_eq!(view.task.stages[1].subgoals[0].criteria.len(), 2);
}

#[test]
fn a_letter_from_which_nothing_followed_is_told() {
    let said = Message::Answer { ask: "9".into(), answer: Answer::Retry };
    let view = Sample::default().view_of(|events| {
        let refused = Some("there is no ask 9".to_owned());
        events.insert(7, Event::LetterTaken { letter: 4, by: "bob".to_owned(), said, refused });
        // Nor does a later amendment seem to be his.
        events.extend(amend(&[], &[]).into_iter().skip(1));
    });
    has(&markdown(&view), &["Letter 4 of bob", "ask 9: try again. Nothing followed: there is no ask 9."]);
    has(&show(&view), &["✗ letter 4 of bob: ask 9: try again; nothing followed: there is no ask 9"]);
    assert_eq!(view.amendments[0].by, None);
}

#[test]
fn who_answered_what_and_when_is_in_the_report() {
    let view = Sample::default().view_of(|events| {
        let question = "which pathways?".to_owned();
        let (ask, subgoal) = ("1".into(), "de".into());
        events.insert(7, Event::AskOpened { ask, subgoal, about: Asked::Question, question });
        let answer = Answer::Args { args: map(json!({ "suffix": "fb" })) };
        events.insert(8, Event::AskAnswered { ask: "1".into(), answer, by: "ada".to_owned() });
    });
    has(
        &markdown(&view),
        &["## Questions and answers", "Ask 1 of `de`, question, 2026-", "which pathways? – ada, 2026-"],
    );
    has(&show(&view), &["? ask 1, question: which pathways?", "ada, 2026-"]);
    let json = show_json(&view);
    assert_eq!(json["open_asks"], json!([]));
    let ask = &json["stages"][0]["subgoals"][0]["asks"][0];
    assert_eq!((&ask["ask"], &ask["kind"], &ask["open"]), (&json!("1"), &json!("question"), &json!(false)));
    assert_eq!(ask["answer"]["said"]["args"], json!({ "suffix": "fb" }));
}

#[test]
fn an_approval_is_told_with_what_it_was_for_and_what_used_it() {
    let about = Asked::Approval {
        action: Digest::of("action"),
        skill: "differential-expression".to_owned(),
        component: Digest::of("de"),
        args: map(json!({ "suffix": "fb" })),
    };
    let view = Sample::default().view_of(|events| {
        if let Event::CallIntended { ask, .. } = &mut events[7] {
            *ask = Some("1".into());
        }
        let question = "may it be called?".to_owned();
        events.insert(7, Event::AskOpened { ask: "1".into(), subgoal: "de".into(), about, question });
        let answer = Answer::Approved { until: None };
        events.insert(8, Event::AskAnswered { ask: "1".into(), answer, by: "ada".to_owned() });
    });
    let action = Digest::of("action").short();
    has(
        &markdown(&view),
        &[
            &format!(
                "may it be called? differential-expression with `{{\"suffix\":\"fb\"}}`, action `{action}` – ada, 2026-"
            ),
            &format!(": approved. Used by call `{}/de/2`.", run()),
        ],
    );
    has(&show(&view), &["attempt 2: differential-expression 1.0.0, approved by ask 1"]);
}

#[test]
fn an_answer_to_an_ask_that_was_never_opened_is_an_error() {
    let (events, blobs) = Sample::default().changed(|events| {
        let answer = Answer::Retry;
        events.insert(7, Event::AskAnswered { ask: "1".into(), answer, by: "ada".to_owned() });
    });
    let error = RunView::fold(&events, &blobs).unwrap_err();
    assert!(format!("{error:#}").contains("ask 1 was never opened"), "{error:#}");
}

#[test]
fn a_dry_run_says_so_before_anything_else() {
    let view = Sample::default().view_of(|events| {
        if let Event::RunStarted { setup } = &mut events[0] {
            setup.dry = true;
        }
    });
    let says =
        "This was a dry run: nothing was executed and nothing left. Its numbers are stated or recorded ones.";
    assert!(markdown(&view).starts_with(&format!("> **{says}**\n\n# ")), "{}", markdown(&view));
    assert!(html(&view).contains(&format!("<header>\n<p class=\"dry\">{says}</p>\n<h1>")));
    assert!(show(&view).starts_with(says));
    assert!(!markdown(&view).contains("computed by a sandboxed skill"));
    assert_eq!((&report_json(&view)["dry"], &show_json(&view)["dry"]), (&json!(true), &json!(true)));
    let real = Sample::default().view();
    assert!(!markdown(&real).contains("dry run") && !html(&real).contains("class=\"dry\""));
}

#[test]
fn calls_that_a_person_answers_for_are_named() {
    let attested = Sample { level: Level::Attested, ..Sample::default() }.view_of(|events| {
        let call = CallId::new(&run(), &"de".into(), 2);
        events.insert(8, Event::CallUnknown { call });
        if let Event::CallEnded { attested, .. } = &mut events[9] {
            *attested = true;
        }
    });
    let text = markdown(&attested);
    has(&text, &["the host ended while it was made; its outcome is what a person says of it."]);
    has(&text, &["What came out of it is what a person says.", "stated by a person"]);
    has(&why(&attested, "de/summary").unwrap().text(), &["attempt 2, its outcome as a person says"]);
    let happened = Sample::default().view_of(|events| {
        events.truncate(4);
        let call = CallId::new(&run(), &"de".into(), 1);
        events.push(Event::CallUnknown { call: call.clone() });
        let (ended, record) = (Ended::Happened, Record::default());
        events.push(Event::CallEnded { call, ended, log: None, record, attested: false });
    });
    has(&markdown(&happened), &["a person says that it happened, and what came out of it is not known."]);
    // It is no failure, and no attempt.
    has(&markdown(&happened), &["0 failed calls", "None.\n"]);
    has(&show(&happened), &["? attempt 1: differential-expression"]);
    assert_eq!(show_json(&happened)["stages"][0]["subgoals"][0]["calls"][0]["unknown"], true);
}

#[test]
fn the_report_says_how_an_export_is_executed_again() {
    let folder = tempfile::tempdir().unwrap();
    let view = || Sample::default().view();
    let none = view().with_export(folder.path()).unwrap();
    assert!(none.export.is_none() && !markdown(&none).contains("checkrein replay"));
    let runs = folder.path().join("runs").join(run().as_str());
    fs::create_dir_all(&runs).unwrap();
    let word = runs.join("export.json");
    let digest = Digest::of("export");
    let told = |head: Digest| {
        json!({ "file": "a paper/run.crx", "digest": digest, "head": head, "command": "rm -rf ~" })
            .to_string()
    };
    fs::write(&word, told(Digest::of("an earlier event"))).unwrap();
    let earlier = view().with_export(folder.path()).unwrap();
    assert!(earlier.export.is_none(), "it does not hold what the report says");
    fs::write(&word, told(view().head)).unwrap();
    let text = markdown(&view().with_export(folder.path()).unwrap());
    has(&text, &[&digest.to_string(), "```text\ncheckrein replay 'a paper/run.crx'\n```"]);
    // Only what is ours to say stands there.
    assert!(!text.contains("rm -rf"));
    fs::write(&word, "{").unwrap();
    let error = view().with_export(folder.path()).unwrap_err();
    assert!(format!("{error:#}").contains("export.json does not say what was exported"), "{error:#}");
    fs::remove_file(&word).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &word).unwrap();
    assert!(view().with_export(folder.path()).is_err());
}
