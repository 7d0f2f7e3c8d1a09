use std::collections::HashMap;
use std::io::Read;

use checkrein_contract::event::{Draft, FactEntry};
use checkrein_contract::interface::{Failure, FailureKind, Finding, Level, Severity};
use checkrein_contract::port::Tree;
use checkrein_harness::replay::{Facts, Repetition, Suspect, Suspicion};

use super::*;

#[derive(Default)]
struct Memory(HashMap<Digest, Vec<u8>>);

impl Blobs for Memory {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        Ok(Digest::of(bytes))
    }

    fn put_from(&self, _: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        let missing = || StorageError::Missing { place: digest.to_string() };
        self.0.get(digest).cloned().ok_or_else(missing)
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Err(StorageError::Full { place: "memory".to_owned() })
    }
}

fn outcome(value: &Value) -> Ended {
    Ended::Outcome { outcome: Digest::of_json(value), drafts: Vec::new(), artifacts: Vec::new() }
}

fn failed() -> Ended {
    let failure =
        Failure { kind: FailureKind::NotFound, message: "no table".to_owned(), evidence: json!({}) };
    Ended::Failed { failure }
}

fn call(number: u32, result: Repetition) -> Repeated {
    Repeated {
        call: CallId::new(&"r".into(), &"de".into(), number),
        subgoal: "de".into(),
        skill: "de-skill".to_owned(),
        result,
        admission: None,
    }
}

fn different(expected: Ended, found: Ended) -> Repetition {
    let suspects = vec![Suspicion { suspect: Suspect::Engine, why: "another one".to_owned() }];
    let differs = Differs::Ended { expected, found };
    Repetition::Different(Box::new(Difference { differs, suspects }))
}

fn fact(level: Level) -> FactEntry {
    FactEntry {
        id: "de/a@1".into(),
        subject: "de/a".to_owned(),
        version: 1,
        kind: "statistic".to_owned(),
        source: "/in/a.csv".to_owned(),
        level,
        content: Digest::ZERO,
        index: 0,
    }
}

/// A call that ended the same, of whose outcome the log has an attested fact.
fn relabelled(number: u32, found: Admission) -> Repeated {
    let expected = Admission::Accepted { facts: vec![fact(Level::Attested)], artifacts: Vec::new() };
    let differs = Differs::Admission { expected, found };
    let suspects = vec![Suspicion { suspect: Suspect::Log, why: "it was altered".to_owned() }];
    Repeated { admission: Some(Box::new(Difference { differs, suspects })), ..call(number, Repetition::Same) }
}

fn replayed(calls: Vec<Repeated>, facts: Facts) -> Replayed {
    Replayed { calls, facts, engines: vec!["wasmtime 1".to_owned()] }
}

fn told<'t>(run: &'t RunId, replayed: &'t Replayed, blobs: &'t Memory) -> Told<'t> {
    Told { run, head: Digest::ZERO, engine: "wasmtime 1", replayed, blobs }
}

#[test]
fn what_agrees_is_told_in_three_lines() {
    let calls = (1..=9).map(|number| call(number, Repetition::Same)).collect();
    let (replayed, blobs) = (replayed(calls, Facts { of: 625, agree: 625, attested: 0 }), Memory::default());
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let first = told.first().unwrap();
    assert!(first.is_none());
    let lines = told.lines(first.as_ref());
    let head = format!("head    {}", "0".repeat(64));
    assert_eq!(
        lines,
        [
            "625 of 625 facts, same digests; 9 of 9 calls executed again",
            &head,
            "engine  wasmtime 1, as in the log"
        ]
    );
    let json = told.json(None);
    assert_eq!((&json["schema"], &json["agrees"]), (&json!("checkrein/replay@1"), &json!(true)));
    assert_eq!(json["first"], Value::Null);
}

#[test]
fn another_engine_is_named() {
    let (replayed, blobs) = (replayed(Vec::new(), Facts::default()), Memory::default());
    let run = RunId::from("r");
    let told = Told { engine: "wasmtime 2", ..told(&run, &replayed, &blobs) };
    assert_eq!(told.engines(), "wasmtime 2; in the log wasmtime 1");
}

#[test]
fn the_first_difference_is_told_by_its_places() {
    let (one, two) = (json!({ "content": { "q": 0.01 } }), json!({ "content": { "q": 0.02 } }));
    let blobs = [&one, &two].map(|value| (Digest::of_json(value), value.to_string().into_bytes()));
    let blobs = Memory(HashMap::from(blobs));
    let calls = vec![
        call(1, Repetition::Same),
        call(2, different(outcome(&one), outcome(&two))),
        call(3, different(outcome(&one), failed())),
    ];
    let replayed = replayed(calls, Facts { of: 3, agree: 1, attested: 0 });
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let first = told.first().unwrap();
    let lines = told.lines(first.as_ref()).join("\n");
    for part in [
        "call r/de/2 of de-skill ended otherwise\n",
        "\n/content/q: 0.01 -> 0.02\n",
        "\nsuspect   engine: another one\n",
        "\n1 more call ended otherwise too: r/de/3\n",
    ] {
        assert!(lines.contains(part), "{part:?} is not in {lines}");
    }
    assert_eq!(told.summary(), "1 of 3 facts, same digests; 3 of 3 calls executed again, 2 ended otherwise");
    let json = told.json(first.as_ref());
    let change = json!({ "path": "/content/q", "expected": 0.01, "found": 0.02 });
    assert_eq!(json["first"]["changes"], json!([change]));
    assert_eq!(json["calls"]["different"], json!(["r/de/2", "r/de/3"]));
    assert_eq!(json["first"]["suspects"][0]["suspect"], "engine");
}

#[test]
fn many_places_are_counted() {
    let of = |add: i64| json!({ "content": (0..50).map(|n| n + add).collect::<Vec<i64>>() });
    let (one, two) = (of(0), of(1));
    let blobs = [&one, &two].map(|value| (Digest::of_json(value), value.to_string().into_bytes()));
    let blobs = Memory(HashMap::from(blobs));
    let replayed = replayed(vec![call(1, different(outcome(&one), outcome(&two)))], Facts::default());
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let first = told.first().unwrap();
    let lines = told.lines(first.as_ref());
    assert_eq!(lines.iter().filter(|line| line.starts_with("/content/")).count(), CHANGES_MAX);
    assert!(lines.contains(&"and in 30 more places".to_owned()), "{lines:?}");
    assert_eq!(told.json(first.as_ref())["first"]["more_changes"], 30);
}

#[test]
fn an_outcome_and_a_failure_are_compared_in_words() {
    let one = json!({ "content": {} });
    let blobs = Memory(HashMap::from([(Digest::of_json(&one), one.to_string().into_bytes())]));
    let replayed = replayed(vec![call(1, different(outcome(&one), failed()))], Facts::default());
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let first = told.first().unwrap();
    let lines = told.lines(first.as_ref()).join("\n");
    assert!(
        lines.contains("expected  outcome with") && lines.contains("found     failed (not-found)"),
        "{lines}"
    );
    assert!(!lines.contains("->"), "{lines}");
}

#[test]
fn an_outcome_that_is_lost_is_no_difference() {
    let (one, two, blobs) = (json!({ "content": {} }), json!({ "content": 1 }), Memory::default());
    let replayed = replayed(vec![call(1, different(outcome(&one), outcome(&two)))], Facts::default());
    let run = RunId::from("r");
    assert!(matches!(told(&run, &replayed, &blobs).first(), Err(CliError::Storage(_))));
}

#[test]
fn calls_that_were_not_executed_are_told_together() {
    let apart = |number, why| call(number, Repetition::NotRepeated(why));
    let calls = vec![
        apart(1, NotRepeated::Cancelled),
        apart(2, NotRepeated::Attested),
        apart(3, NotRepeated::Cancelled),
        call(4, Repetition::Same),
    ];
    let (replayed, blobs) = (replayed(calls, Facts { of: 1, agree: 1, attested: 2 }), Memory::default());
    let run = RunId::from("r");
    let lines = told(&run, &replayed, &blobs).lines(None);
    assert_eq!(lines[0], "1 of 1 fact, same digests; 1 of 4 calls executed again");
    let stopped = "2 calls not executed again, because the run was stopped while it was made: r/de/1, r/de/3";
    assert_eq!(lines[1], stopped);
    assert!(lines[2].starts_with("1 call not executed again, because its outcome"), "{}", lines[2]);
    assert_eq!(lines[3], "2 facts are attested and were not executed");
}

#[test]
fn facts_that_are_other_than_the_log_says_are_told_by_their_places() {
    let made = Admission::Accepted { facts: vec![fact(Level::SelfChecked)], artifacts: Vec::new() };
    let finding = Finding {
        rule: "unchecked".to_owned(),
        severity: Severity::Error,
        message: "the draft fact `de/a` is named in no check".to_owned(),
        expected: json!(1),
        actual: json!(2),
        location: None,
        suggestion: None,
    };
    let calls = vec![
        relabelled(1, made.clone()),
        relabelled(2, Admission::Rejected { findings: vec![finding] }),
        call(3, different(failed(), outcome(&json!({})))),
    ];
    let (replayed, blobs) = (replayed(calls, Facts { of: 2, agree: 0, attested: 0 }), Memory::default());
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let first = told.first().unwrap();
    let lines = told.lines(first.as_ref()).join("\n");
    for part in [
        "call r/de/1 of de-skill has other facts than the log says\n",
        "\nexpected  let in, with 1 fact and 0 files\n",
        "\n/facts/0/level: \"attested\" -> \"self-checked\"\n",
        "\nsuspect   log: it was altered\n",
        "\n1 more call ended otherwise too: r/de/3\n",
        "\n1 more call with other facts than the log says: r/de/2\n",
    ] {
        assert!(lines.contains(part), "{part:?} is not in {lines}");
    }
    let summary = "0 of 2 facts, same digests; 3 of 3 calls executed again, 1 ended otherwise, 2 with other \
                   facts than the log says";
    assert_eq!(told.summary(), summary);
    let json = told.json(first.as_ref());
    assert_eq!((&json["agrees"], &json["first"]["what"]), (&json!(false), &json!("facts")));
    assert_eq!(json["calls"]["different"], json!(["r/de/1", "r/de/2", "r/de/3"]));
    let second = self::replayed(vec![replayed.calls[1].clone()], Facts::default());
    let told = self::told(&run, &second, &blobs);
    let lines = told.lines(told.first().unwrap().as_ref()).join("\n");
    assert!(
        lines.contains("\nfound     not let in: the draft fact `de/a` is named in no check\n"),
        "{lines}"
    );
}

#[test]
fn drafts_that_are_other_than_those_of_the_same_outcome_are_told_by_their_places() {
    let with = |kind: &str| {
        let draft = Draft {
            subject: "de/a".to_owned(),
            kind: kind.to_owned(),
            content: Digest::ZERO,
            source: "/in/a.csv".to_owned(),
            supersedes: None,
        };
        Ended::Outcome { outcome: Digest::ZERO, drafts: vec![draft], artifacts: Vec::new() }
    };
    let calls = vec![call(1, different(with("opinion"), with("statistic")))];
    let (replayed, blobs) = (replayed(calls, Facts::default()), Memory::default());
    let run = RunId::from("r");
    let told = told(&run, &replayed, &blobs);
    let lines = told.lines(told.first().unwrap().as_ref()).join("\n");
    assert!(lines.contains("\n/drafts/0/kind: \"opinion\" -> \"statistic\"\n"), "{lines}");
}

#[test]
fn facts_of_which_none_was_compared_do_not_agree() {
    let attested = call(1, Repetition::NotRepeated(NotRepeated::Attested));
    let blobs = Memory::default();
    let run = RunId::from("r");
    let alone = replayed(vec![attested.clone()], Facts { of: 0, agree: 0, attested: 1 });
    let told = told(&run, &alone, &blobs);
    let summary = "nothing could be executed again: 1 fact is attested and was not executed; 0 of 1 call \
                   executed again";
    assert_eq!(told.lines(None)[0], summary);
    assert!(!told.lines(None)[1..].iter().any(|line| line.contains("attested")));
    assert_eq!(told.json(None)["agrees"], json!(false));
    assert!(matches!(told.tell(false), Err(CliError::Difference(_))));
    assert_eq!(told.tell(true).unwrap(), exit::DIFFERENCE);
    let beside = replayed(vec![attested, call(2, Repetition::Same)], Facts { of: 0, agree: 0, attested: 3 });
    let told = self::told(&run, &beside, &blobs);
    let summary = "nothing with a fact could be executed again: 3 facts are attested and were not executed; \
                   1 of 2 calls executed again";
    assert_eq!(told.summary(), summary);
}
