//! `de.csv`, row by row.

use std::collections::{HashMap, HashSet};

use checkrein_skill::prelude::*;

use super::gene::{Found, FoundTest, Judge};
use crate::closeness::Closeness;
use crate::csv;
use crate::expression::{Expected, Gene};

const FILE: &str = "de.csv";

const COLUMNS: [&str; 10] = [
    "gene",
    "log2_fold_change",
    "mean",
    "t",
    "p",
    "q",
    "welch_t",
    "welch_df",
    "welch_p",
    "welch_q",
];

pub(super) fn judge(
    expected: &Expected,
    outcome: &Outcome,
    tolerance: f64,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    if !outcome.artifacts.iter().any(|artifact| artifact.path == FILE) {
        verdict.finding(Finding::error(
            "artifact-missing",
            "the whole table is missing",
            FILE,
            "no such artifact",
        ));
        return Ok(());
    }
    let before = verdict.findings.len();
    let table = csv::grid(FILE, &files::read_work(FILE)?, b',')?;
    if !verdict.equal("table-columns", "other columns", &COLUMNS.to_vec(), &strs(&table[0]), FILE) {
        return Ok(());
    }
    let mut judge = Judge { closeness: Closeness::new(tolerance), verdict };
    judge_rows(expected, &table[1..], &mut judge);
    judge_order(&table[1..], judge.verdict);
    let note = judge.closeness.note(table.len() - 1, "rows");
    if verdict.findings.len() == before {
        verdict.check("table", [FILE], note);
    }
    Ok(())
}

fn strs(cells: &[String]) -> Vec<&str> {
    cells.iter().map(String::as_str).collect()
}

fn judge_rows(expected: &Expected, rows: &[Vec<String>], judge: &mut Judge<'_>) {
    let genes: HashMap<&str, &Gene> =
        expected.genes.iter().map(|gene| (gene.id.as_str(), gene)).collect();
    let mut seen = HashSet::new();
    for (n, row) in rows.iter().enumerate() {
        let (id, line) = (row[0].as_str(), n + 2);
        if !seen.insert(id) {
            let message = format!("gene `{id}` is in row {line} again");
            judge.verdict.finding(
                Finding::error("gene-doubled", message, "one row", "another row").at(FILE),
            );
        }
        let Some(gene) = genes.get(id) else {
            let message = format!("gene `{id}` in row {line} is not among the tested genes");
            judge
                .verdict
                .finding(Finding::error("gene-invented", message, "no such gene", row).at(FILE));
            continue;
        };
        match parse(row) {
            Some(found) => {
                judge.gene(gene, &found, &|_| FILE.to_owned());
            }
            None => {
                let message = format!("row {line} of gene `{id}` holds what is no number");
                judge
                    .verdict
                    .finding(Finding::error("table-row", message, "nine numbers", row).at(FILE));
            }
        }
    }
    for gene in expected.genes.iter().filter(|gene| !seen.contains(gene.id.as_str())) {
        let message = format!("gene `{}` passes the filter and has no row", gene.id);
        judge.verdict.finding(Finding::error("gene-missing", message, &gene.id, "no row").at(FILE));
    }
}

fn parse(row: &[String]) -> Option<Found> {
    let number = |at: usize| row[at].parse::<f64>().ok().filter(|number| number.is_finite());
    let welch = if row[6..].iter().all(String::is_empty) {
        None
    } else {
        Some(FoundTest { t: number(6)?, df: number(7)?, p: number(8)?, q: number(9)? })
    };
    let (log2_fold_change, mean, t) = (number(1)?, number(2)?, number(3)?);
    Some(Found { log2_fold_change, mean, t, p: number(4)?, q: number(5)?, welch })
}

/// By the p that each row states, and by gene where two are equal.
fn judge_order(rows: &[Vec<String>], verdict: &mut Verdict) {
    let key = |row: &Vec<String>| row[4].parse::<f64>().unwrap_or(f64::NAN);
    let wrong = rows.windows(2).position(|pair| {
        let (a, b) = (key(&pair[0]), key(&pair[1]));
        a > b || (a == b && pair[0][0] > pair[1][0])
    });
    if let Some(at) = wrong {
        let message = format!("rows {} and {} are not in the order of p and gene", at + 2, at + 3);
        let finding = Finding::error("order", message, &rows[at + 1][0], &rows[at][0]);
        verdict.finding(finding.at(FILE));
    }
}
