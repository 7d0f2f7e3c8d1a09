//! Guests that return what the interface does not allow, or do not return.

use super::*;

#[tokio::test]
async fn a_trap_names_the_functions_and_nothing_of_the_host() {
    let ran = executed(&Guest::executing("unreachable"), LimitKey::Wall, 5_000).await;
    let End::Trapped(message) = ran.end else { panic!("{ran:?}") };
    assert!(message.starts_with("wasm trap: wasm `unreachable` instruction executed, in `"), "{message}");
    assert!(message.contains("execute") && !message.contains(".rs") && !message.contains('\n'), "{message}");
}

#[tokio::test]
async fn exit_is_no_return() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.import(
        "wasi:cli/exit@0.2.0",
        "(export \"exit\" (func (param \"status\" (result))))",
        "exit",
        "(param i32)",
    );
    guest.execute = "(call $exit (i32.const 0)) unreachable".into();
    let ran = sandbox.execute(ready(&sandbox, &guest), call()).await;
    assert!(matches!(&ran.end, End::Trapped(message) if message.contains("exit(0)")), "{ran:?}");
}

async fn problem_of(guest: &Guest) -> checkrein_contract::Problem {
    let ran = executed(guest, LimitKey::Wall, 5_000).await;
    match ran.end {
        End::Invalid(problem) => problem,
        end => panic!("{end:?}"),
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let mut guest = Guest::default();
    guest.returns("{nope", &[]);
    let problem = problem_of(&guest).await;
    assert_eq!((problem.rule.as_str(), problem.location.as_deref()), ("json", Some("/content")));
    guest.returns(&"[".repeat(10_000), &[]);
    assert!(problem_of(&guest).await.message.contains("10000 levels"));
    guest.returns_fact("../escape", "{}");
    assert_eq!(problem_of(&guest).await.rule, "subject");
}

#[tokio::test]
async fn a_score_of_255_is_refused() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    let assessment = guest.image.words(&[255, 0, 0, 0, 0, 0]);
    guest.assess = format!("i32.const {assessment}");
    let ran = sandbox.assess(ready(&sandbox, &guest), subgoal()).await;
    assert!(matches!(&ran.end, End::Invalid(problem) if problem.rule == "score"), "{ran:?}");
}

#[tokio::test]
async fn a_silent_verdict_is_refused() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    let verdict = guest.image.words(&[0, 0, 0, 0, 0]);
    guest.verify = format!("i32.const {verdict}");
    let ran = sandbox.verify(ready(&sandbox, &guest), submission()).await;
    assert!(matches!(&ran.end, End::Invalid(problem) if problem.rule == "verdict-empty"), "{ran:?}");
}

#[tokio::test]
async fn artifacts_outside_of_work_or_not_there_are_refused() {
    for (path, rule) in
        [("/etc/passwd", "artifact-path"), ("../x", "artifact-path"), ("absent.csv", "artifact-file")]
    {
        let mut guest = Guest::default();
        guest.returns("1", &[path]);
        assert_eq!(problem_of(&guest).await.rule, rule, "{path}");
    }
}

#[tokio::test]
async fn a_failure_of_the_executor_is_an_answer() {
    let mut guest = Guest::default();
    let message = guest.image.text("no such gene");
    let null = guest.image.text("null");
    let failure = guest.image.words(&[1, 1, message[0], message[1], null[0], null[1]]);
    guest.execute = format!("i32.const {failure}");
    let ran = executed(&guest, LimitKey::Wall, 5_000).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.result.unwrap_err().kind, FailureKind::NotFound);
}
