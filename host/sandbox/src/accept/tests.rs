use super::*;

fn acceptor(limits: &Limits) -> Acceptor<'_> {
    Acceptor { component: "x", limits }
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
    let file =
        |path: &str| guest::Artifact { path: path.into(), title: String::new(), media_type: String::new() };
    assert_eq!(
        problem(
            acceptor(&limits).outcome(guest::Outcome { artifacts: vec![file("/etc/passwd")], ..outcome() })
        )
        .rule,
        "artifact-path"
    );
    let twice = guest::Outcome { artifacts: vec![file("a"), file("a")], ..outcome() };
    assert_eq!(problem(acceptor(&limits).outcome(twice)).location.unwrap(), "/artifacts/1/path");
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
