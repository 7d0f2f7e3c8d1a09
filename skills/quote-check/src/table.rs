//! `table.csv` against the facts, which are judged by themselves.

use checkrein_skill::prelude::*;

use crate::cell;
use crate::verifier::Request;

const FILE: &str = "table.csv";

pub(crate) fn judge(
    request: &Request,
    outcome: &Outcome,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    if !outcome.artifacts.iter().any(|artifact| artifact.path == FILE) {
        let message = "the table itself is missing";
        verdict.finding(
            Finding::error("artifact-missing", message, FILE, "no such artifact").at("/artifacts"),
        );
        return Ok(());
    }
    let before = verdict.findings.len();
    let rows = split(&files::read_work(FILE)?);
    let expected = expected(request, outcome);
    verdict.equal("rows", "another number of rows", &expected.len(), &rows.len(), FILE);
    for (n, (right, found)) in expected.iter().zip(&rows).enumerate() {
        verdict.equal("row", format!("row {} differs from the facts", n + 1), right, found, FILE);
    }
    if verdict.findings.len() == before {
        verdict.check("table", [FILE], format!("{} rows say what the facts say", rows.len()));
    }
    Ok(())
}

fn expected(request: &Request, outcome: &Outcome) -> Vec<Vec<String>> {
    let mut header = vec!["document".to_owned()];
    header.extend(request.fields.iter().map(|field| field.name.clone()));
    let row = |file: &String| {
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        let value = |field: &str| {
            let of = |fact: &&DraftFact| {
                fact.content["file"] == file.as_str() && cell::field(fact) == field
            };
            let fact = outcome.facts.iter().find(of);
            fact.and_then(|fact| fact.content["value"].as_str()).unwrap_or_default().to_owned()
        };
        std::iter::once(name).chain(request.fields.iter().map(|field| value(&field.name))).collect()
    };
    std::iter::once(header).chain(request.documents.iter().map(row)).collect()
}

/// Cells of a CSV file whose line ends are single line feeds outside of quotes.
fn split(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    if !row.is_empty() || !cell.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_undone() {
        assert_eq!(split("a,\"b,\n\"\"c\"\"\"\n1,\n"), [["a", "b,\n\"c\""], ["1", ""]]);
    }
}
