use checkrein_contract::interface::{Failure, FailureKind};
use serde_json::json;

use super::*;

/// Reads a task of one stage with the subgoals `a` and `b`, and this text behind it.
fn read(more: &str) -> Result<TaskFile, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task.toml");
    let subgoals = ["a", "b"].map(|id| format!("[[stage.subgoal]]\nid = \"{id}\"\ngoal = \"g\"\n")).concat();
    let head =
        format!("schema = \"{SCHEMA}\"\nname = \"t\"\ngoal = \"g\"\n[[stage]]\nid = \"s\"\n{subgoals}");
    std::fs::write(folder.path().join("outcome.json"), "{\"content\":{\"rows\":3}}").unwrap();
    std::fs::write(&file, format!("{head}{more}")).unwrap();
    TaskFile::read(&file, &[]).map_err(|error| error.to_string())
}

fn outcome(answer: &DryAnswer) -> &checkrein_contract::interface::Outcome {
    match answer {
        DryAnswer::Outcome(outcome) => outcome,
        DryAnswer::Failure(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn every_budget_takes_the_same_keys() {
    let budget = "attempts = 2\ncalls = 3\ntokens = 4\nfuel = \"5e3\"\nwall = \"6 s\"\n";
    let all = Budget {
        attempts: Some(2),
        calls: Some(3),
        tokens: Some(4),
        fuel: Some(5_000),
        wall_ms: Some(6_000),
    };
    let of_subgoal = read(&format!("[stage.subgoal.budget]\n{budget}")).unwrap().task;
    assert_eq!(of_subgoal.stages[0].subgoals[1].budget, all);
    let of_stage = read(&format!(
        "[[stage]]\nid = \"t\"\n[stage.budget]\n{budget}[[stage.subgoal]]\nid = \"c\"\ngoal = \"g\"\n"
    ));
    assert_eq!(of_stage.unwrap().task.stages[1].budget, all);
    assert_eq!(read(&format!("[budget]\n{budget}")).unwrap().task.budget, all);
    let error = read("[stage.subgoal.budget]\nwalls = \"6 s\"\n").unwrap_err();
    assert!(error.contains("walls") && error.contains("wall"), "{error}");
}

#[test]
fn a_task_says_what_its_executors_answer_in_a_dry_run() {
    let file = read(
        "[dry.a]\noutcome = \"outcome.json\"\n\
         [[dry.b]]\nfailure = { kind = \"unavailable\", message = \"down\" }\n\
         [[dry.b]]\ncontent = { rows = 4 }\n\
         [[dry.b.facts]]\nsubject = \"b/rows\"\nkind = \"count\"\ncontent = 4\nsource = \"/in/t.csv\"\n",
    )
    .unwrap();
    let (a, b) = (&file.dry[&SubgoalId::from("a")], &file.dry[&SubgoalId::from("b")]);
    assert_eq!(outcome(&a[0]).content, json!({ "rows": 3 }));
    let evidence = json!({});
    let failure = Failure { kind: FailureKind::Unavailable, message: "down".to_owned(), evidence };
    assert_eq!(b[0], DryAnswer::Failure(failure));
    let second = outcome(&b[1]);
    assert_eq!((second.facts.len(), &second.facts[0].content), (1, &json!(4)));
    assert_eq!((a.len(), b.len(), second.artifacts.len()), (1, 2, 0));
    // A run that is resumed reads them back.
    let text = serde_json::to_string(&file.dry).unwrap();
    assert_eq!(serde_json::from_str::<BTreeMap<SubgoalId, Vec<DryAnswer>>>(&text).unwrap(), file.dry);
    assert!(read("").unwrap().dry.is_empty());
}

#[test]
fn mistakes_in_what_is_answered_are_told() {
    for (text, told) in [
        ("[dry.c]\ncontent = {}\n", "expected a subgoal of the task (a, b), found `c`"),
        ("[dry]\na = []\n", "expected at least one answer, found none"),
        ("[dry.a]\n", "expected one of `outcome`, `failure`, and `content` with `facts`, found none"),
        ("[dry.a]\ncontent = {}\noutcome = \"outcome.json\"\n", "found more than one"),
        ("[dry.a]\noutcome = \"none.json\"\n", "a file with an outcome as JSON"),
        ("[dry.a]\nfailure = { kind = \"tired\", message = \"m\" }\n", "\"internal\""),
        ("[dry.a]\nfailure = { kind = \"internal\" }\n", "add `message = …`"),
        ("[dry.a]\nfacts = [{ subject = \"a/x\" }]\n", "missing field"),
        ("[dry.a]\nfacts = [{ subjects = \"a/x\" }]\n", "`subjects`, where these are known: subject"),
        ("[dry.a]\nresult = 1\n", "`result`"),
        ("[dry]\na = 1\n", "expected a table"),
    ] {
        let why = read(text).unwrap_err();
        assert!(why.contains(told), "{text}\n{why}");
    }
}
