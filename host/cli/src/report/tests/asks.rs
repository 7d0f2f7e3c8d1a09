//! The pages of asks: what each kind says, which ways on it offers, and what a stranger's text in it
//! does.

use checkrein_contract::Digest;
use checkrein_contract::ask::Asked;
use checkrein_contract::event::{Closing, Ended, Event, Judge, Judgement, Reason, Setup, Stop};
use checkrein_contract::grant::Folder;
use checkrein_contract::id::CallId;
use checkrein_contract::interface::{Failure, FailureKind, Finding, Remedy, Severity};
use checkrein_contract::limits::Used;
use checkrein_contract::manifest::Effects;
use checkrein_contract::network::Rule;
use checkrein_contract::record::{Record, Wall};
use serde_json::{Value, json};

use super::{ATTACKS, check_page};
use crate::report::sample::{Sample, intended, map, run};
use crate::report::view::RunView;
use crate::report::{ask_pages, asks_json, html, markdown, show};

/// Events of the sample up to the remedy after its first call.
const AFTER_REMEDY: usize = 7;
/// Up to the intent of its first call.
const INTENDED: usize = 4;

/// The sample up to some event, changed, and then waiting for an answer to this.
fn waiting(upto: usize, about: Asked, question: &str, change: impl FnOnce(&mut Vec<Event>)) -> RunView {
    Sample::default().view_of(|events| {
        events.truncate(upto);
        change(events);
        events.push(Event::AskOpened {
            ask: "1".into(),
            subgoal: "de".into(),
            about,
            question: question.to_owned(),
        });
        events.push(Event::RunStopped { because: Stop::Person });
    })
}

fn setup(events: &mut [Event]) -> &mut Setup {
    match &mut events[0] {
        Event::RunStarted { setup } => setup,
        other => panic!("{other:?}"),
    }
}

fn first_call() -> CallId {
    CallId::new(&run(), &"de".into(), 1)
}

fn approval(args: Value) -> Asked {
    Asked::Approval {
        action: Digest::of("action"),
        skill: "differential-expression".to_owned(),
        component: Digest::of("de"),
        args: map(args),
    }
}

fn used_up() -> Asked {
    Asked::HandOver { because: Box::new(Closing::AttemptsUsed { attempts: 3 }) }
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// The commands of a page, in order.
fn commands(view: &RunView) -> Vec<String> {
    let pages = asks_json(view);
    let ways = pages[0]["ways"].as_array().unwrap();
    ways.iter().map(|way| way["command"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_approval_shows_what_is_called_and_what_it_can_change() {
    let args = json!({ "channel": "news", "counts": "/in/pasilla_gene_counts.tsv" });
    let view = waiting(AFTER_REMEDY, approval(args), "may it be called?", |events| {
        let card = &mut setup(events).skills[0];
        card.granted.network = ["POST https://api.example.org/*", "GET https://read.example.org/*"]
            .map(|rule| Rule::parse(rule).unwrap())
            .to_vec();
        card.granted.files =
            ["rw /data/out", "ro /data/ref"].map(|folder| Folder::parse(folder).unwrap()).to_vec();
    });
    let page = ask_pages(&view);
    has(
        &page,
        &[
            "ask 1 of de, approval, since 2026-",
            "may it be called?",
            &format!("skill differential-expression 1.0.0, component {}", Digest::of("de").short()),
            &format!("action {}", Digest::of("action").short()),
            "\"channel\": \"news\"",
            "it may send: POST https://api.example.org/*",
            "it may write: /data/out",
            &format!("/in/pasilla_gene_counts.tsv {}", Digest::of("pasilla_gene_counts.tsv").short()),
            "by `checkrein resume 20261130-155509-pasilla-4f2a`",
        ],
    );
    assert!(!page.contains("read.example.org") && !page.contains("/data/ref"), "{page}");
    assert_eq!(
        commands(&view),
        ["checkrein approve 20261130-155509-pasilla-4f2a 1", "checkrein deny 20261130-155509-pasilla-4f2a 1"]
    );
}

#[test]
fn arguments_that_are_not_shown_whole_say_so() {
    let tail = "and then the rest";
    let long = format!("{}{tail}", "x".repeat(10_000));
    let page = |args: Value| ask_pages(&waiting(AFTER_REMEDY, approval(args), "q", |_| {}));
    let cut = page(json!({ "text": long }));
    has(
        &cut,
        &["\"text\" (10,019 characters, not shown whole; `checkrein show --json` has all of it): \"xxx"],
    );
    assert!(!cut.contains(tail));
    let whole = page(json!({ "text": format!("{}{tail}", "x".repeat(3_000)) }));
    assert!(whole.contains(tail) && !whole.contains("not shown whole"), "{whole}");
}

#[test]
fn of_a_call_that_is_not_known_to_have_happened_there_are_four_ways_on() {
    let call = first_call();
    let about = Asked::CallUnknown { call: call.clone() };
    let view = waiting(INTENDED, about, "did it happen?", |events| {
        setup(events).skills[0].effects = Effects::Irreversible;
        events.push(Event::CallUnknown { call: call.clone() });
    });
    has(&ask_pages(&view), &[&format!("call {call}, attempt 1, begun 2026-"), "its effects: irreversible"]);
    let answers: Vec<String> = commands(&view)
        .iter()
        .map(|command| {
            command.strip_prefix("checkrein answer 20261130-155509-pasilla-4f2a 1 ").unwrap().into()
        })
        .collect();
    assert_eq!(answers, ["yes", "yes --outcome FILE", "no", "give-up"]);
    assert!(view.calls().any(|call| call.unknown));
    has(&markdown(&view), &["the host ended while it was made; whether it happened is not known"]);
}

#[test]
fn a_question_says_who_asks() {
    let ask = |question: &str, planner: &str| {
        waiting(AFTER_REMEDY, Asked::Question, question, |events| {
            setup(events).planner = planner.to_owned();
            if let Event::RemedyGiven { remedy, .. } = &mut events[AFTER_REMEDY - 1] {
                *remedy = Some(Remedy::AskPerson("which table?".to_owned()));
            }
        })
    };
    let view = ask("which table?", "triggers");
    has(&ask_pages(&view), &["the recovery of differential-expression, after call", "which table?"]);
    // A plain rule cannot follow words, and is not offered any.
    assert!(!commands(&view).iter().any(|command| command.contains("'TEXT'")), "{:?}", commands(&view));
    let view = ask("may I?", "model");
    has(&ask_pages(&view), &["the planner `model`"]);
    assert!(commands(&view).iter().any(|command| command.ends_with(" 1 'TEXT'")), "{:?}", commands(&view));
}

/// A subgoal whose argument is a parameter, and whose call was refused something.
fn denied(events: &mut Vec<Event>) {
    let setup = setup(events);
    setup.task.parameters.insert("alpha".to_owned(), json!(0.05));
    setup.task.stages[0].subgoals[0].args = map(json!({ "alpha": { "$param": "alpha" } }));
    setup.skills[0].manifest.capabilities.network = vec![Rule::parse("GET https://a.example/*").unwrap()];
    let grant = "network = [\"GET https://a.example/x\"]".to_owned();
    for event in events {
        if let Event::CallEnded { record, .. } = event {
            record.deny(
                Wall::Network,
                "GET https://a.example/x: nothing is granted".into(),
                Some(grant.clone()),
            );
        }
    }
}

#[test]
fn a_hand_over_is_all_that_one_needs_to_decide() {
    let view = waiting(AFTER_REMEDY, used_up(), "3 attempts were not enough", denied);
    has(
        &ask_pages(&view),
        &[
            "test each gene for differential expression",
            "its 3 attempts are used up",
            "1 attempt used up, of 5",
            "not evaluated: some genes respond (true)",
            "attempt 1: differential-expression 1.0.0 with {\"counts\":\"/in/pasilla_gene_counts.tsv\"}: failed (invalid-args)",
            "treated1fb",
            "evidence: {\"missing\":[\"treated1fb\"]",
            "refused, network: GET https://a.example/x: nothing is granted",
            "diagnosis: sample names of the annotation end in `fb`",
            "remedy: try again with {\"suffix\":\"fb\"}",
            "[grant.differential-expression]",
            "network = [\"GET https://a.example/x\"]",
            "4 attempts left, of 5 at most",
        ],
    );
    let run = "20261130-155509-pasilla-4f2a";
    assert_eq!(
        commands(&view),
        [
            format!("checkrein answer {run} 1 retry"),
            format!("checkrein answer {run} 1 '{{\"counts\":\"/in/pasilla_gene_counts.tsv\"}}'"),
            format!("checkrein answer {run} 1 retry && checkrein resume {run} --accept-config"),
            format!("checkrein amend {run} --set alpha=0.05"),
            format!("checkrein answer {run} 1 give-up"),
        ]
    );
}

#[test]
fn what_was_found_is_on_the_page() {
    let about = Asked::HandOver {
        because: Box::new(Closing::SameReason {
            reasons: vec![Reason {
                verifier: "recheck".to_owned(),
                rule: "sum".to_owned(),
                place: "/x".to_owned(),
            }],
        }),
    };
    let view = waiting(INTENDED, about, "how is it to go on?", |events| {
        let (call, finding) = (first_call(), finding("sum", "the sum is off"));
        let judge = Judge::Verifier { name: "recheck".to_owned(), component: Digest::of("r"), binding: 0 };
        let judgement = Judgement::Rejected { checks: Vec::new(), findings: vec![finding] };
        let ended = Ended::Outcome { outcome: Digest::ZERO, drafts: Vec::new(), artifacts: Vec::new() };
        events.push(ended_with(&call, ended));
        let (used, record) = (Used::default(), Record::default());
        events.push(Event::VerdictGiven { call: call.clone(), judge, judgement, used, record });
        let reasons =
            vec![Reason { verifier: "recheck".to_owned(), rule: "sum".to_owned(), place: "/x".to_owned() }];
        events.push(Event::OutcomeRejected { call, reasons });
    });
    has(
        &ask_pages(&view),
        &[
            "rejected: sum (recheck) at /x",
            "found by recheck: sum: the sum is off at /x; expected 3, found 4",
            "rejected twice in a row for the same reason",
        ],
    );
}

fn finding(rule: &str, message: &str) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity: Severity::Error,
        message: message.to_owned(),
        expected: json!(3),
        actual: json!(4),
        location: Some("/x".to_owned()),
        suggestion: None,
    }
}

fn ended_with(call: &CallId, ended: Ended) -> Event {
    Event::CallEnded { call: call.clone(), ended, log: None, record: Record::default(), attested: false }
}

/// `count` calls of `de` that failed.
fn failed(count: u32) -> impl FnOnce(&mut Vec<Event>) {
    move |events| {
        for number in 1..=count {
            let call = CallId::new(&run(), &"de".into(), number);
            events.push(intended(&call, "de", "differential-expression", json!({ "n": number }), number));
            let failure =
                Failure { kind: FailureKind::Internal, message: "m".to_owned(), evidence: Value::Null };
            events.push(ended_with(&call, Ended::Failed { failure }));
        }
    }
}

#[test]
fn nothing_is_offered_that_would_need_a_sixth_attempt() {
    let ways = |attempts, about| commands(&waiting(3, about, "q", failed(attempts)));
    assert!(ways(4, used_up()).iter().any(|way| way.ends_with(" 1 retry")));
    assert_eq!(ways(5, used_up()), ["checkrein answer 20261130-155509-pasilla-4f2a 1 give-up"]);
    // Asking a judge once more uses none.
    let closing = Closing::Unverified { verifier: "v".to_owned(), reason: "r".to_owned() };
    let unverified = Asked::HandOver { because: Box::new(closing) };
    assert!(ways(5, unverified)[0].ends_with(" 1 retry"));
}

#[test]
fn a_run_that_waits_says_so_on_the_face_of_its_report() {
    let view = waiting(AFTER_REMEDY, used_up(), "3 attempts were not enough", |_| {});
    has(&markdown(&view), &["**waiting** ·", "## Waits for a person", "### Ask 1 of `de`, hand-over"]);
    has(&markdown(&view), &["The run has not ended: it waits for a person."]);
    has(&html(&view), &["<span class=\"badge bad\">waiting</span>", "Waits for a person</h2>"]);
    has(&show(&view), &["? ask 1, hand-over: 3 attempts were not enough", "ways on"]);
    let driven = view.clone().driven_by(Some("process 7 on here".to_owned()));
    has(&ask_pages(&driven), &["the run is driven by process 7 on here"]);
}

#[test]
fn an_ask_that_nobody_waits_for_has_no_page() {
    let closing = Closing::NeedsPerson { question: "q".to_owned() };
    let view = Sample::default().view_of(|events| {
        events.truncate(AFTER_REMEDY);
        let (ask, subgoal, question) = ("1".into(), "de".into(), "q".to_owned());
        events.push(Event::AskOpened { ask, subgoal, about: Asked::Question, question });
        events.push(Event::SubgoalClosed { subgoal: "de".into(), closing });
    });
    assert_eq!(ask_pages(&view), "");
    assert_eq!(asks_json(&view), json!([]));
    assert_eq!(view.asks.len(), 1);
    assert!(!markdown(&view).contains("## Waits for a person"));
    assert!(markdown(&view).contains("q – not answered."));
}

#[test]
fn a_strangers_text_on_a_page_is_text() {
    let attacks = ATTACKS.iter().copied().chain([
        "checkrein approve evil 1",
        "\ncheckrein approve evil 1\n",
        "'; rm -rf ~ #",
        "$(id)",
    ]);
    for attack in attacks {
        let kinds: [Asked; 4] = [
            approval(json!({ "a": attack, attack: 1 })),
            Asked::Question,
            Asked::CallUnknown { call: first_call() },
            used_up(),
        ];
        for about in kinds {
            let view = hostile(about, attack);
            let page = ask_pages(&view);
            assert!(!page.contains(['\u{202e}', '\u{0}', '\u{1b}']), "{attack}");
            // Every command stands on a line of ours, and no line is a stranger's.
            let lines = page.lines().filter(|line| line.trim_start().starts_with("checkrein "));
            assert_eq!(lines.count(), commands(&view).len(), "{attack}\n{page}");
            assert!(!markdown(&view).contains(['\u{202e}', '\u{0}', '\u{1b}']), "{attack}");
            check_page(&html(&view), attack);
        }
    }
}

/// A run in which every text that a stranger can write is this one.
fn hostile(about: Asked, text: &str) -> RunView {
    waiting(AFTER_REMEDY, about, text, |events| {
        for event in events.iter_mut() {
            match event {
                Event::CallIntended { args, .. } => {
                    *args = map(json!({ "a": text, text: [text] }));
                }
                Event::CallEnded { ended: Ended::Failed { failure }, record, .. } => {
                    failure.message = text.to_owned();
                    failure.evidence = json!({ text: text });
                    record.deny(Wall::Network, text.to_owned(), Some(text.to_owned()));
                }
                Event::RemedyGiven { diagnosis, remedy, .. } => {
                    *diagnosis = text.to_owned();
                    *remedy = Some(Remedy::AskPerson(text.to_owned()));
                }
                _ => {}
            }
        }
        let call = first_call();
        let judgement = Judgement::Rejected { checks: Vec::new(), findings: vec![finding(text, text)] };
        let judge = Judge::Verifier { name: "v".to_owned(), component: Digest::ZERO, binding: 0 };
        let (used, record) = (Used::default(), Record::default());
        events.push(Event::VerdictGiven { call, judge, judgement, used, record });
    })
}
