//! The documents are searched again, in an instance of its own; `quote-check` does so with other
//! code.

use checkrein_skill::prelude::*;

use crate::skill::Args;
use crate::{find, report};

pub(crate) fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let outcome = &performed.outcome;
    let table = find::table(&performed.call.args)?;
    let right = report::outcome(&table);
    let mut verdict = Verdict::new();
    check_cells(&right, outcome, &mut verdict);
    verdict.equal("content", "the summary differs", &right.content, &outcome.content, "/content");
    let (wanted, found) = (right.artifacts.len(), outcome.artifacts.len());
    if verdict.equal("artifacts", "one artifact is expected", &wanted, &found, "/artifacts") {
        check_table(&report::csv(&table), &mut verdict)?;
    }
    verdict.cap_findings(20);
    Ok(verdict)
}

fn check_cells(right: &Outcome, outcome: &Outcome, verdict: &mut Verdict) {
    let mut holding = Vec::new();
    for (n, fact) in outcome.facts.iter().enumerate() {
        let place = format!("/facts/{n}");
        match right.find(&fact.subject) {
            Some((_, same)) if same == fact => holding.push(fact.subject.clone()),
            Some((_, other)) => {
                let message = format!("`{}` is not what the document says", fact.subject);
                let frame = |fact: &DraftFact| json!([fact.kind, fact.content, fact.source]);
                verdict.equal("cell", message, &frame(other), &frame(fact), place);
            }
            None => {
                let message = format!("`{}` is no cell of the table", fact.subject);
                let finding = Finding::error("invented", message, "no such fact", &fact.content);
                verdict.finding(finding.at(place));
            }
        }
    }
    for fact in &right.facts {
        let times = outcome.facts.iter().filter(|other| other.subject == fact.subject).count();
        let message = format!("`{}` has to have one fact", fact.subject);
        verdict.equal("once", message, &1, &times, "/facts");
    }
    verdict.check("cell", holding, "searched again: the same first match, or none");
}

fn check_table(expected: &str, verdict: &mut Verdict) -> Result<(), Failure> {
    let written = files::read_work(report::FILE)?;
    if written == expected {
        verdict.check("table", [report::FILE], "the same to the last byte when written again");
    } else {
        let message = format!("{} is not what the documents say", report::FILE);
        verdict.finding(Finding::error("table", message, expected, written).at(report::FILE));
    }
    Ok(())
}
