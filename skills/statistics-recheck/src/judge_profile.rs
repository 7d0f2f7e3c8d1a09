//! Everything under `profile/*`, held against the table.

mod columns;
mod dialect;
mod document;

use checkrein_skill::prelude::*;

use crate::csv::{self, Grid};
use crate::profile::{cells, doubled_rows, names};

/// What the judged call was asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    table: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    delimiter: Option<char>,
    #[serde(default)]
    header: Option<bool>,
}

/// What the submission says of the table as a whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    rows: usize,
    columns: usize,
    missing: usize,
    duplicate_rows: usize,
    duplicate_keys: usize,
    delimiter: String,
    header: bool,
    names: Vec<String>,
}

pub(crate) fn judge(
    args: &Value,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let request = Request::deserialize(args).map_err(|error| {
        Failure::unsupported(format!("not the arguments of such a call: {error}"))
    })?;
    let Some((at, summary)) = find_summary(outcome, verdict) else { return Ok(()) };
    let fact = &outcome.facts[at];
    let place = format!("/facts/{at}/content");
    let text = files::read_text(&request.table)?;
    let Some(delimiter) = dialect::delimiter(&request, &summary, &text, &place, verdict) else {
        return Ok(());
    };
    let grid = csv::grid(&request.table, &text, delimiter)?;
    let before = verdict.findings.len();
    judge_name(&request, fact, verdict);
    dialect::header(&request, &summary, &grid, &place, verdict);
    let names = names(&grid, summary.header);
    judge_numbers(&summary, &grid, &names, &place, verdict);
    columns::frame(&request.table, at, fact, verdict);
    document::content(&request, &summary, fact, outcome, verdict);
    if verdict.findings.len() == before {
        verdict.check("table", [&fact.subject], format!("{} rows counted again", summary.rows));
    }
    columns::judge(
        &request.table,
        at,
        outcome,
        &columns::Table { grid: &grid, header: summary.header, names: &names },
        tolerance,
        verdict,
    );
    document::judge(&request, at, outcome, verdict)
}

/// The one fact on the table itself, and its content.
fn find_summary(outcome: &Outcome, verdict: &mut Verdict) -> Option<(usize, Summary)> {
    let tables: Vec<usize> = (0..outcome.facts.len())
        .filter(|n| outcome.facts[*n].subject.split('/').count() == 2)
        .collect();
    let [at] = tables[..] else {
        let message = "one fact on the table itself is expected";
        verdict.finding(Finding::error("once", message, 1, tables.len()).at("/facts"));
        return None;
    };
    let found = &outcome.facts[at].content;
    let summary = Summary::deserialize(found).ok();
    if summary.is_none() {
        let expected =
            "rows, columns, missing, duplicate_rows, duplicate_keys, delimiter, header, names";
        let finding = Finding::error("content-shape", "not a table", expected, found);
        verdict.finding(finding.at(format!("/facts/{at}/content")));
    }
    summary.map(|summary| (at, summary))
}

fn judge_name(request: &Request, fact: &DraftFact, verdict: &mut Verdict) {
    let found = fact.subject.trim_start_matches("profile/");
    if let Some(asked) = &request.name {
        verdict.equal("subject", "another name was asked for", &asked.as_str(), &found, "/facts");
    }
}

fn judge_numbers(
    summary: &Summary,
    grid: &Grid,
    names: &[String],
    place: &str,
    verdict: &mut Verdict,
) {
    let data = &grid[usize::from(summary.header)..];
    let columns: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(n, name)| crate::profile::column(name, &cells(grid, summary.header, n)))
        .collect();
    let of = |column: &Value, key: &str| {
        column[key].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    };
    let missing: usize = columns.iter().map(|column| of(column, "missing")).sum();
    let keys = columns.first().map_or(0, |first| of(first, "values") - of(first, "distinct"));
    let numbers = [
        ("rows", data.len(), summary.rows),
        ("columns", names.len(), summary.columns),
        ("missing", missing, summary.missing),
        ("duplicate_rows", doubled_rows(data), summary.duplicate_rows),
        ("duplicate_keys", keys, summary.duplicate_keys),
    ];
    for (key, right, found) in numbers {
        verdict.equal(key, format!("`{key}` differs"), &right, &found, format!("{place}/{key}"));
    }
    verdict.equal(
        "names",
        "the columns have other names",
        &names.to_vec(),
        &summary.names,
        format!("{place}/names"),
    );
}
