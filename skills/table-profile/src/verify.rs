//! The table is read and counted again, in an instance of its own, and held against what the
//! executor said; `statistics-recheck` does so with other code.

use checkrein_skill::prelude::*;

use crate::report;
use crate::skill::{Args, read};

pub(crate) fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let outcome = &performed.outcome;
    let (table, profile) = read(&performed.call.args)?;
    let mut verdict = Verdict::new();
    check_facts(&report::facts(&table, &profile), outcome, profile.rows, &mut verdict);
    let content = report::content(&table, &profile);
    let message = "the outcome's content is not what the table holds";
    verdict.equal("outcome-content", message, &content, &outcome.content, "/content");
    check_document(outcome, &report::document(&table, &profile), &mut verdict)?;
    verdict.cap_findings(20);
    Ok(verdict)
}

fn check_facts(expected: &[DraftFact], outcome: &Outcome, rows: usize, verdict: &mut Verdict) {
    let mut holding = Vec::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let place = format!("/facts/{n}");
        let Some(right) = expected.iter().find(|right| right.subject == fact.subject) else {
            let message = format!("`{}` is neither the table nor a column of it", fact.subject);
            verdict.finding(
                Finding::error("invented", message, "no such fact", &fact.content).at(place),
            );
            continue;
        };
        let message = format!("`{}` is not what the table holds", fact.subject);
        if right == fact {
            holding.push(fact.subject.clone());
        } else if right.content == fact.content {
            let frame = |fact: &DraftFact| json!({ "kind": fact.kind, "source": fact.source });
            verdict.equal("kind-or-source", message, &frame(right), &frame(fact), place);
        } else {
            verdict.equal(
                "content",
                message,
                &right.content,
                &fact.content,
                format!("{place}/content"),
            );
        }
    }
    for right in expected {
        let times = outcome.facts.iter().filter(|fact| fact.subject == right.subject).count();
        let message = format!("`{}` has to have one fact", right.subject);
        verdict.equal("once", message, &1, &times, "/facts");
    }
    verdict.check("content", holding, format!("{rows} rows counted again"));
}

fn check_document(outcome: &Outcome, expected: &str, verdict: &mut Verdict) -> Result<(), Failure> {
    let paths: Vec<&str> =
        outcome.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    if !verdict.equal(
        "artifacts",
        "one artifact is expected",
        &vec![report::FILE],
        &paths,
        "/artifacts",
    ) {
        return Ok(());
    }
    let written = files::read_work(report::FILE)?;
    if written == expected {
        verdict.check("document", [report::FILE], "the same to the last byte when written again");
        return Ok(());
    }
    let line = expected.lines().zip(written.lines()).find(|(right, found)| right != found);
    let (right, found) = line.unwrap_or(("the whole document", "a part of it, or more"));
    let message = format!("{} is not what the table holds", report::FILE);
    verdict
        .finding(Finding::error("document", message, right.trim(), found.trim()).at(report::FILE));
    Ok(())
}
