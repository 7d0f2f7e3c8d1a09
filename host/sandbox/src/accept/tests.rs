use checkrein_contract::grant::{SecretHeader, SecretUse};

use super::*;
use crate::net::Secrets;

fn acceptor(limits: &Limits) -> Acceptor<'_> {
    Acceptor { component: "x", limits, scrubber: Arc::default() }
}

fn problem<T: std::fmt::Debug>(result: Accepted<T>) -> Problem {
    match result.unwrap_err() {
        Refused::Problem(problem) => *problem,
        Refused::Limit(stop) => panic!("{stop}"),
    }
}

fn outcome() -> guest::Outcome {
    let fact = guest::DraftFact {
        subject: "a/b".into(),
        kind: "k".into(),
        content: "{}".into(),
        source: "/in/x".into(),
        supersedes: None,
    };
    guest::Outcome { content: "1".into(), facts: vec![fact], artifacts: Vec::new() }
}

#[test]
fn no_secret_leaves_with_an_answer() {
    const VALUE: &str = "s3cr3tvalue";
    let uses = [SecretUse {
        name: "KEY".to_owned(),
        at: SecretHeader { host: "a.test".to_owned(), header: "x-key".to_owned() },
    }];
    let limits = Limits::default();
    let scrubber = Scrubber::new(&uses, &Secrets::new([("KEY".to_owned(), VALUE.to_owned())]));
    let acceptor = Acceptor { scrubber: Arc::new(scrubber), ..acceptor(&limits) };
    let told = |answer: String| {
        assert!(answer.contains("[secret KEY]") && !answer.contains(VALUE), "{answer}");
    };

    let check =
        guest::Check { rule: VALUE.into(), about: vec![VALUE.into(), "a/b".into()], note: VALUE.into() };
    let finding = guest::Finding {
        rule: VALUE.into(),
        severity: guest::Severity::Error,
        message: VALUE.into(),
        expected: json!(VALUE).to_string(),
        actual: json!([VALUE]).to_string(),
        location: Some(format!("/facts/{VALUE}")),
        suggestion: Some(VALUE.into()),
    };
    let verdict = guest::Verdict { checks: vec![check], findings: vec![finding] };
    told(format!("{:?}", acceptor.verdict(verdict).unwrap()));

    for remedy in [
        guest::Remedy::RetryWith(json!({ VALUE: VALUE }).to_string()),
        guest::Remedy::Replan(VALUE.into()),
        guest::Remedy::AskPerson(VALUE.into()),
        guest::Remedy::GiveUp(VALUE.into()),
    ] {
        let advice = recovery::Advice { diagnosis: VALUE.into(), remedy };
        told(format!("{:?}", acceptor.advice(advice).unwrap()));
    }
    let other = guest::Remedy::UseSkill(VALUE.into());
    told(format!(
        "{:?}",
        problem(acceptor.advice(recovery::Advice { diagnosis: "d".into(), remedy: other }))
    ));

    let mut raw = outcome();
    raw.facts[0].supersedes = Some(VALUE.into());
    told(format!("{:?}", acceptor.outcome(raw).unwrap()));
    // What names something is refused: under another name it would be something else.
    let mut raw = outcome();
    raw.facts[0].subject = format!("a/{VALUE}");
    told(format!("{:?}", problem(acceptor.outcome(raw))));
    told(format!("{:?}", problem(acceptor.outcome(naming(&[VALUE])))));
    told(format!("{:?}", problem(acceptor.outcome(naming(&[&format!("../{VALUE}")])))));
}

#[test]
fn an_outcome_is_parsed() {
    let limits = Limits::default();
    let accepted = acceptor(&limits).outcome(outcome()).unwrap();
    assert_eq!(accepted.content, json!(1));
    assert_eq!(accepted.facts[0].content, json!({}));
}

#[test]
fn what_is_wrong_with_an_outcome_has_a_place() {
    let limits = Limits::default();
    let place = |change: fn(&mut guest::Outcome)| {
        let mut raw = outcome();
        change(&mut raw);
        problem(acceptor(&limits).outcome(raw)).location.unwrap()
    };
    assert_eq!(place(|raw| raw.content = "{".into()), "/content");
    assert_eq!(place(|raw| raw.facts[0].content = "nope".into()), "/facts/0/content");
    assert_eq!(place(|raw| raw.facts[0].subject = "../x".into()), "/facts/0/subject");
}

fn file(path: &str) -> guest::Artifact {
    guest::Artifact { path: path.into(), title: String::new(), media_type: String::new() }
}

fn naming(paths: &[&str]) -> guest::Outcome {
    guest::Outcome { artifacts: paths.iter().map(|path| file(path)).collect(), ..outcome() }
}

/// Where and how the paths of an outcome are refused: place, expectation.
fn refused_path(paths: &[&str]) -> (String, String) {
    let limits = Limits::default();
    let problem = problem(acceptor(&limits).outcome(naming(paths)));
    assert_eq!((problem.rule.as_str(), problem.stage), ("artifact-path", Stage::Structure));
    (problem.location.unwrap(), problem.expected.as_str().unwrap().to_owned())
}

#[test]
fn a_path_is_relative_and_of_bounded_length() {
    assert!(refused_path(&["/etc/passwd"]).1.contains("relative"));
    // Five segments of at most 255 bytes.
    let long = |bytes: usize| format!("{}/", "x".repeat(200)).repeat(4) + &"y".repeat(bytes - 804);
    let deep = |segments: usize| vec!["a"; segments].join("/");
    let limits = Limits::default();
    for good in [long(1024), deep(32)] {
        assert!(acceptor(&limits).outcome(naming(&[&good])).is_ok(), "{good}");
    }
    assert!(refused_path(&[&long(1025)]).1.contains("1024 bytes"));
    assert!(refused_path(&[&deep(33)]).1.contains("32 segments"));
}

#[test]
fn no_path_stands_for_two_things() {
    assert_eq!(refused_path(&["a", "b", "a"]), ("/artifacts/2/path".into(), "each file named once".into()));
    for (paths, at) in [(["a", "a/x/y"], 1), (["a/x/y", "a"], 0), (["a/x/y", "a/x"], 0)] {
        let (place, expected) = refused_path(&paths);
        assert_eq!(place, format!("/artifacts/{at}/path"), "{paths:?}");
        assert!(expected.contains("below another file"), "{expected}");
    }
    let limits = Limits::default();
    assert!(acceptor(&limits).outcome(naming(&["a", "ab", "a.b", "c/a", "c/b"])).is_ok());
}

#[test]
fn no_path_is_the_subject_of_a_fact() {
    let (place, expected) = refused_path(&["x.csv", "a/b"]);
    assert_eq!(place, "/artifacts/1/path");
    assert!(expected.contains("subject of a fact"), "{expected}");
    let limits = Limits::default();
    assert!(acceptor(&limits).outcome(naming(&["a/b.csv"])).is_ok());
}

/// The deepest values that are taken, an array and an object.
fn deepest() -> [String; 2] {
    let nested = |open: &str, close: &str| open.repeat(json::DEPTH) + "1" + &close.repeat(json::DEPTH);
    [nested("[", "]"), nested("{\"k\":", "}")]
}

fn assert_read_back<T>(value: &T)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    // As a value, too: reports and traces read events so.
    serde_json::from_str::<Value>(&text).unwrap();
}

#[test]
fn whatever_is_taken_can_be_read_back_from_what_it_is_stored_in() {
    use checkrein_contract::digest::Digest;
    use checkrein_contract::event::{Assessed, Ended, Event, Judge, Judgement};
    use checkrein_contract::limits::Used;
    use checkrein_contract::record::Record;
    let limits = Limits::default();
    let acceptor = acceptor(&limits);
    let call = || "r/s/1".into();
    let ended = |ended| Event::CallEnded {
        call: call(),
        ended,
        log: Some(Digest::ZERO),
        record: Record::default(),
        attested: false,
    };
    for deep in deepest() {
        let mut raw = outcome();
        (raw.content, raw.facts[0].content) = (deep.clone(), deep.clone());
        assert_read_back(&acceptor.outcome(raw).unwrap());

        let failure = guest::Failure {
            kind: guest::FailureKind::Internal,
            message: "m".into(),
            evidence: deep.clone(),
        };
        assert_read_back(&ended(Ended::Failed { failure: acceptor.failure(failure).unwrap() }));

        let finding = guest::Finding {
            rule: "r".into(),
            severity: guest::Severity::Error,
            message: "m".into(),
            expected: deep.clone(),
            actual: "1".into(),
            location: None,
            suggestion: None,
        };
        let swapped = guest::Finding {
            expected: finding.actual.clone(),
            actual: finding.expected.clone(),
            ..finding.clone()
        };
        let verdict = guest::Verdict { checks: Vec::new(), findings: vec![finding.clone(), swapped] };
        let verdict = acceptor.verdict(verdict).unwrap();
        assert_read_back(&Event::VerdictGiven {
            call: call(),
            judge: Judge::Gateway,
            judgement: Judgement::Rejected { checks: verdict.checks, findings: verdict.findings },
            used: Used::default(),
            record: Record::default(),
        });

        // A refusal quotes what it refuses, one level deeper.
        let same = guest::Finding { actual: finding.expected.clone(), ..finding };
        let refused = problem(acceptor.verdict(guest::Verdict { checks: Vec::new(), findings: vec![same] }));
        assert_read_back(&ended(Ended::Invalid { problem: refused }));
    }
    let [array, object] = deepest();
    let advice = recovery::Advice { diagnosis: "d".into(), remedy: guest::Remedy::RetryWith(object.clone()) };
    let advice = acceptor.advice(advice).unwrap();
    assert_read_back(&Event::RemedyGiven {
        call: call(),
        diagnosis: advice.diagnosis,
        remedy: Some(advice.remedy),
        record: Record::default(),
    });
    let raw = trigger::Assessment { score: 1, reason: "r".into(), args: Some(object.clone()) };
    let Value::Object(args) = acceptor.assessment(raw).unwrap().args.unwrap() else { panic!() };
    let record = Record::default();
    let assessed = Assessed { skill: "s".into(), score: 1, reason: "r".into(), args: Some(args), record };
    assert_read_back(&Event::SkillsAssessed { subgoal: "s".into(), assessed: vec![assessed] });
    // Where an object is due, an array is refused, and quoted.
    let advice = recovery::Advice { diagnosis: "d".into(), remedy: guest::Remedy::RetryWith(array) };
    assert_read_back(&ended(Ended::Invalid { problem: problem(acceptor.advice(advice)) }));
    acceptor.schema(&object).unwrap();
}

#[test]
fn one_level_more_is_refused_wherever_json_is_returned() {
    let limits = Limits::default();
    let acceptor = acceptor(&limits);
    let deeper = format!("{{\"k\":{}}}", deepest()[1]);
    let found = |problem: Problem| {
        assert_eq!((problem.rule.as_str(), &problem.actual), ("json", &json!("65 levels")));
        problem.location.unwrap()
    };
    let raw = guest::Outcome { content: deeper.clone(), ..outcome() };
    assert_eq!(found(problem(acceptor.outcome(raw))), "/content");
    let mut raw = outcome();
    raw.facts[0].content = deeper.clone();
    assert_eq!(found(problem(acceptor.outcome(raw))), "/facts/0/content");
    let failure = guest::Failure {
        kind: guest::FailureKind::Internal,
        message: String::new(),
        evidence: deeper.clone(),
    };
    assert_eq!(found(problem(acceptor.failure(failure))), "/evidence");
    for (expected, actual, place) in
        [(&*deeper, "1", "/findings/0/expected"), ("1", &*deeper, "/findings/0/actual")]
    {
        let finding = guest::Finding {
            rule: "r".into(),
            severity: guest::Severity::Error,
            message: String::new(),
            expected: expected.into(),
            actual: actual.into(),
            location: None,
            suggestion: None,
        };
        let verdict = guest::Verdict { checks: Vec::new(), findings: vec![finding] };
        assert_eq!(found(problem(acceptor.verdict(verdict))), place);
    }
    let raw = trigger::Assessment { score: 1, reason: String::new(), args: Some(deeper.clone()) };
    assert_eq!(found(problem(acceptor.assessment(raw))), "/args");
    let advice = recovery::Advice { diagnosis: "d".into(), remedy: guest::Remedy::RetryWith(deeper.clone()) };
    assert_eq!(found(problem(acceptor.advice(advice))), "/remedy/retry-with");
    assert_eq!(found(problem(acceptor.schema(&deeper))), "");
}

#[test]
fn too_many_facts_and_too_much_content_are_limits() {
    let limits = Limits::default().with(LimitKey::Facts, 1).with(LimitKey::Outcome, 40);
    let mut many = outcome();
    many.facts.push(many.facts[0].clone());
    let Err(Refused::Limit(stop)) = acceptor(&limits).outcome(many) else { panic!() };
    assert_eq!((stop.0.limit.as_str(), stop.0.used), ("facts", 2));
    let large = guest::Outcome { content: format!("\"{}\"", "x".repeat(40)), ..outcome() };
    let Err(Refused::Limit(stop)) = acceptor(&limits).outcome(large) else { panic!() };
    assert_eq!(stop.0.limit, "outcome");
}

#[test]
fn a_verdict_says_something() {
    let limits = Limits::default();
    let empty = guest::Verdict { checks: Vec::new(), findings: Vec::new() };
    assert_eq!(problem(acceptor(&limits).verdict(empty)).rule, "verdict-empty");
    for (expected, actual) in [("1", "1"), ("null", "1"), ("1", "null"), ("1", "1 ")] {
        let finding = guest::Finding {
            rule: "r".into(),
            severity: guest::Severity::Warning,
            message: String::new(),
            expected: expected.into(),
            actual: actual.into(),
            location: None,
            suggestion: None,
        };
        let verdict = guest::Verdict { checks: Vec::new(), findings: vec![finding] };
        assert_eq!(problem(acceptor(&limits).verdict(verdict)).rule, "finding-says-nothing");
    }
}

#[test]
fn a_remedy_names_something() {
    let limits = Limits::default();
    for remedy in [
        guest::Remedy::UseSkill(String::new()),
        guest::Remedy::UseSkill("../x".into()),
        guest::Remedy::GiveUp(" ".into()),
        guest::Remedy::RetryWith("[]".into()),
    ] {
        let advice = recovery::Advice { diagnosis: "d".into(), remedy };
        assert_eq!(problem(acceptor(&limits).advice(advice)).rule, "remedy");
    }
}

#[test]
fn a_score_past_100_is_refused() {
    let limits = Limits::default();
    let raw = trigger::Assessment { score: 255, reason: String::new(), args: None };
    assert_eq!(problem(acceptor(&limits).assessment(raw)).actual, json!(255));
}
