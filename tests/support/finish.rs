use serde_json::{Value, json};

use crate::{OpenAsk, Ran, Works};

/// The code of a command that a signal ended.
pub const KILLED: i32 = -1;

/// Commands that it takes at most: more, and the run does not get on.
const TURNS: usize = 2_000;

/// How a command of `checkrein` is performed; the test may kill it on the way.
pub type Go<'g> = dyn FnMut(&[&str]) -> Ran + 'g;

/// Starts the task and goes on until its run is done: what was killed is resumed, what is asked is
/// answered as it is true.
pub fn complete(works: &Works, task: &str, go: &mut Go<'_>) {
    for _ in 0..TURNS {
        let ran = match (works.last_run(), works.status().as_deref()) {
            (_, Some("done")) => return,
            (_, Some(other)) => panic!("it ended as {other}: {:#?}", works.entries_of("subgoal-closed")),
            (Some(run), None) => go(&["resume", &run]),
            (None, None) => go(&["run", task]),
        };
        match ran.code {
            0 | KILLED => {}
            4 => answer_all(works, go),
            _ => panic!("{ran:#?}"),
        }
    }
    panic!("it does not get on: {:#?}", works.open_asks());
}

/// Completes a run that nobody disturbs.
pub fn undisturbed(works: &Works, task: &str) {
    complete(works, task, &mut |args| works.run(args));
}

/// Answers each open ask of the last run: what is to be approved is, and what may have happened is
/// looked up in the book.
pub fn answer_all(works: &Works, go: &mut Go<'_>) {
    let run = works.last_run().unwrap();
    let asks = works.open_asks();
    assert!(!asks.is_empty(), "it waits for a person, and asks nothing");
    for ask in asks {
        let ran = match ask.kind() {
            "approval" => go(&["approve", &run, &ask.ask]),
            "call-unknown" => whether_it_happened(works, &run, &ask, go),
            _ => panic!("nobody knows what to say to {ask:#?}"),
        };
        // Killed before its letter was whole, or after; in the next turn it may be answered already.
        assert!(matches!(ran.code, 0 | 1 | KILLED), "{ran:#?}");
        if ran.code == 1 {
            assert!(ran.err.contains("answered already"), "{ran:#?}");
        }
    }
}

fn whether_it_happened(works: &Works, run: &str, ask: &OpenAsk, go: &mut Go<'_>) -> Ran {
    let call = ask.about["call"].as_str().unwrap();
    if !works.book("ledger").iter().any(|line| line == call) {
        return go(&["answer", run, &ask.ask, "no"]);
    }
    works.write("outcome.json", &outcome_of(works, call).to_string());
    go(&["answer", run, &ask.ask, "yes", "--outcome", "outcome.json"])
}

/// What comes out of a call of `ledger`.
pub fn outcome_of(works: &Works, call: &str) -> Value {
    let calls = works.entries_of("call-intended");
    let call = calls.iter().find(|event| event["call"] == call).unwrap();
    let n = call["args"]["n"].as_u64().unwrap();
    let content = json!({ "n": n, "double": n * 2 });
    let fact = json!({
        "subject": format!("ledger/{n}"), "kind": "entry", "content": content,
        "source": call["args"]["from"],
    });
    json!({ "content": content, "facts": [fact], "artifacts": [] })
}
