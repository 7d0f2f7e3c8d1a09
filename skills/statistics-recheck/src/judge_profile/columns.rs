//! The facts of the columns, which come in the order of the table.

use std::collections::HashSet;

use checkrein_skill::prelude::*;

use crate::closeness::Closeness;
use crate::csv::Grid;
use crate::profile::{cells, column, slack};

/// The table that was read again.
pub(super) struct Table<'a> {
    pub(super) grid: &'a Grid,
    pub(super) header: bool,
    pub(super) names: &'a [String],
}

/// Kind and source of a fact.
pub(super) fn frame(path: &str, n: usize, fact: &DraftFact, verdict: &mut Verdict) {
    let message = format!("`{}` is another kind of evidence", fact.subject);
    verdict.equal("kind", message, &"statistic", &fact.kind.as_str(), format!("/facts/{n}/kind"));
    let message = format!("`{}` comes from the table", fact.subject);
    verdict.equal("source", message, &path, &fact.source.as_str(), format!("/facts/{n}/source"));
}

pub(super) fn judge(
    path: &str,
    at: usize,
    outcome: &Outcome,
    table: &Table<'_>,
    tolerance: f64,
    verdict: &mut Verdict,
) {
    let facts: Vec<(usize, &DraftFact)> =
        outcome.facts.iter().enumerate().filter(|(n, _)| *n != at).collect();
    let count = facts.len();
    if !verdict.equal(
        "columns",
        "one fact a column is expected",
        &table.names.len(),
        &count,
        "/facts",
    ) {
        return;
    }
    let folder = format!("{}/", outcome.facts[at].subject);
    let mut closeness = Closeness::new(tolerance);
    let mut taken = HashSet::new();
    let mut holding = Vec::new();
    for (column_at, (n, fact)) in facts.into_iter().enumerate() {
        let before = verdict.findings.len();
        let name = &table.names[column_at];
        judge_subject(&folder, name, n, fact, verdict);
        if !taken.insert(fact.subject.as_str()) {
            let message = format!("`{}` has two facts", fact.subject);
            verdict.finding(Finding::error("once", message, 1, 2).at(format!("/facts/{n}")));
        }
        let cells = cells(table.grid, table.header, column_at);
        let mut scale = Scale { closeness: &mut closeness, slack: slack(&cells) };
        judge_content(&column(name, &cells), n, fact, &mut scale, verdict);
        frame(path, n, fact, verdict);
        if verdict.findings.len() == before {
            holding.push(fact.subject.clone());
        }
    }
    let note = closeness.note(holding.len(), "columns");
    verdict.check("columns", holding, note);
}

/// The last segment is the column's name with `-` for what cannot be there, and maybe a number.
fn judge_subject(folder: &str, name: &str, n: usize, fact: &DraftFact, verdict: &mut Verdict) {
    let slug = fact.subject.strip_prefix(folder).unwrap_or_default();
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).take(60).collect()
    };
    let (wanted, found) = (letters(name), letters(slug));
    let numbered =
        found.strip_prefix(&wanted).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    let nameless = wanted.is_empty() && found.starts_with("column");
    if slug.is_empty()
        || !(numbered || nameless || found.starts_with(&wanted) && wanted.len() == 60)
    {
        let message = format!("`{}` is not the subject of column `{name}`", fact.subject);
        let finding = Finding::error("subject", message, format!("{folder}{name}"), &fact.subject);
        verdict.finding(finding.at(format!("/facts/{n}/subject")));
    }
}

/// How sums and means are compared: only they are rounded.
struct Scale<'a> {
    closeness: &'a mut Closeness,
    /// Of the sum.
    slack: f64,
}

impl Scale<'_> {
    fn agree(&mut self, key: &str, right: &Value, found: &Value, values: f64) -> bool {
        // Whole numbers are exact to the last digit, as numbers and as texts.
        if right.is_string() || right.is_i64() && found.is_i64() {
            return right == found;
        }
        let (Some(right), Some(found)) = (right.as_f64(), found.as_f64()) else {
            return right == found;
        };
        match key {
            "sum" => self.closeness.close(right, found, self.slack),
            "mean" => self.closeness.close(right, found, self.slack / values),
            _ => right == found,
        }
    }
}

fn judge_content(
    right: &Value,
    n: usize,
    fact: &DraftFact,
    scale: &mut Scale<'_>,
    verdict: &mut Verdict,
) {
    let place = format!("/facts/{n}/content");
    let empty = serde_json::Map::new();
    let (right, found) =
        (right.as_object().unwrap_or(&empty), fact.content.as_object().unwrap_or(&empty));
    let values = right.get("values").and_then(Value::as_f64).unwrap_or(1.0);
    let keys: HashSet<&String> = right.keys().chain(found.keys()).collect();
    let mut keys: Vec<&String> = keys.into_iter().collect();
    keys.sort_unstable();
    for key in keys {
        let (right, found) = (right.get(key), found.get(key));
        let agree = match (right, found) {
            (Some(right), Some(found)) => scale.agree(key, right, found, values),
            _ => false,
        };
        if !agree {
            let message = format!("`{}`: `{key}` differs", fact.subject);
            verdict.finding(
                Finding::error("column", message, right, found).at(format!("{place}/{key}")),
            );
        }
    }
}
