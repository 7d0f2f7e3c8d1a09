//! What says again what the facts say: the outcome's content, and `profile.json`.

use checkrein_skill::prelude::*;

use super::{Request, Summary};

const FILE: &str = "profile.json";

/// The content is all of it counted again, and has nothing else.
pub(super) fn content(
    request: &Request,
    summary: &Summary,
    fact: &DraftFact,
    outcome: &Outcome,
    verdict: &mut Verdict,
) {
    let right = json!({
        "table": request.table,
        "name": fact.subject.trim_start_matches("profile/"),
        "rows": summary.rows,
        "columns": summary.columns,
    });
    let message = "the outcome's content is not what the facts say";
    verdict.equal("content", message, &right, &outcome.content, "/content");
}

/// The facts were judged: the document has to say the same.
pub(super) fn judge(
    request: &Request,
    at: usize,
    outcome: &Outcome,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    if !outcome.artifacts.iter().any(|artifact| artifact.path == FILE) {
        let message = "the profile as a document is missing";
        let finding = Finding::error("artifact-missing", message, FILE, "no such artifact");
        verdict.finding(finding.at("/artifacts"));
        return Ok(());
    }
    let columns: Vec<&Value> = outcome
        .facts
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != at)
        .map(|(_, fact)| &fact.content)
        .collect();
    let right =
        json!({ "table": request.table, "summary": outcome.facts[at].content, "columns": columns });
    match serde_json::from_str::<Value>(&files::read_work(FILE)?) {
        Ok(found) if found == right => {
            verdict.check("document", [FILE], "says what the facts say");
        }
        Ok(found) => {
            let message = "it says something else than the facts";
            verdict.equal("document", message, &right, &found, FILE);
        }
        Err(error) => {
            let message = format!("no JSON: {error}");
            let finding = Finding::error("document", message, "a JSON document", "something else");
            verdict.finding(finding.at(FILE));
        }
    }
    Ok(())
}
