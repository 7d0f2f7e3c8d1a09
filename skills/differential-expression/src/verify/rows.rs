//! `de.csv` by itself.

use checkrein_skill::prelude::*;

use super::TOLERANCE;
use crate::model::{Gene, Welch, benjamini_hochberg, by_p_then_id};
use crate::report;
use crate::special::t_two_sided;

/// Reads the table back.
pub(super) fn parse(text: &str) -> Result<Vec<Gene>, Box<Finding>> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if header != report::HEADER {
        let finding = Finding::error("table-header", "another first line", report::HEADER, header);
        return Err(Box::new(finding.at(report::TABLE)));
    }
    let row = |(n, line): (usize, &str)| {
        parse_row(line).ok_or_else(|| {
            let message = format!("row {} cannot be read", n + 2);
            Box::new(
                Finding::error("table-row", message, "an id and nine numbers", line)
                    .at(report::TABLE),
            )
        })
    };
    lines.enumerate().map(row).collect()
}

fn parse_row(line: &str) -> Option<Gene> {
    let cells: Vec<&str> = line.split(',').collect();
    let [id, change, mean, t, p, q, welch @ ..] = cells.as_slice() else {
        return None;
    };
    let number = |cell: &&str| cell.parse::<f64>().ok().filter(|number| number.is_finite());
    let welch = match welch {
        ["", "", "", ""] => None,
        [t, df, p, q] => {
            Some(Welch { t: number(t)?, df: number(df)?, p: number(p)?, q: number(q)? })
        }
        _ => return None,
    };
    Some(Gene {
        id: (*id).to_owned(),
        log2_fold_change: number(change)?,
        mean: number(mean)?,
        t: number(t)?,
        p: number(p)?,
        q: number(q)?,
        welch,
    })
}

/// Order, ranges and signs of the rows, p from t, and q from p.
pub(super) fn check(genes: &[Gene], total_df: f64, verdict: &mut Verdict) {
    let before = verdict.findings.len();
    check_order(genes, verdict);
    for gene in genes {
        check_ranges(gene, verdict);
    }
    let mut comparison = Comparison::within(TOLERANCE);
    check_p(genes, total_df, &mut comparison, verdict);
    check_q(genes, &mut comparison, verdict);
    if verdict.findings.len() == before {
        let note =
            format!("{} rows in order, p from t and q from p: {}", genes.len(), comparison.note());
        verdict.check("table", [report::TABLE], note);
    }
}

fn check_order(genes: &[Gene], verdict: &mut Verdict) {
    if let Some(pair) = genes.windows(2).find(|pair| by_p_then_id(&pair[0], &pair[1]).is_ge()) {
        let message = format!(
            "rows `{}` and `{}` are not in the order of p and gene",
            pair[0].id, pair[1].id
        );
        verdict
            .finding(Finding::error("order", message, &pair[1].id, &pair[0].id).at(report::TABLE));
    }
}

fn check_ranges(gene: &Gene, verdict: &mut Verdict) {
    let mut shares = vec![gene.p, gene.q];
    let mut signs = vec![gene.t];
    if let Some(test) = gene.welch {
        shares.extend([test.p, test.q]);
        signs.push(test.t);
    }
    if let Some(share) = shares.into_iter().find(|share| !(0.0..=1.0).contains(share)) {
        let message = format!("gene `{}` has a p or q out of range", gene.id);
        verdict.finding(Finding::error("range", message, "0 to 1", share).at(report::TABLE));
    }
    let change = gene.log2_fold_change;
    if let Some(t) = signs.into_iter().find(|t| t * change < 0.0 || (*t == 0.0) != (change == 0.0))
    {
        let message =
            format!("gene `{}` has a t whose sign is not that of its fold change", gene.id);
        verdict.finding(
            Finding::error("fold-change-sign", message, change.signum(), t).at(report::TABLE),
        );
    }
}

fn check_p(genes: &[Gene], total_df: f64, comparison: &mut Comparison, verdict: &mut Verdict) {
    for gene in genes {
        let moderated = Some(("p", gene.t, total_df, gene.p));
        let welch = gene.welch.map(|test| ("welch_p", test.t, test.df, test.p));
        for (column, t, df, p) in moderated.into_iter().chain(welch) {
            let expected = t_two_sided(t, df);
            if !comparison.agree(expected, p) {
                let message = format!("gene `{}`: `{column}` does not follow from t", gene.id);
                verdict.finding(Finding::error("p-value", message, expected, p).at(report::TABLE));
            }
        }
    }
}

fn check_q(genes: &[Gene], comparison: &mut Comparison, verdict: &mut Verdict) {
    let moderated: Vec<(&str, f64, f64)> =
        genes.iter().map(|gene| (gene.id.as_str(), gene.p, gene.q)).collect();
    let welch: Vec<(&str, f64, f64)> = genes
        .iter()
        .filter_map(|gene| gene.welch.map(|test| (gene.id.as_str(), test.p, test.q)))
        .collect();
    for (column, tests) in [("q", moderated), ("welch_q", welch)] {
        let p: Vec<f64> = tests.iter().map(|(_, p, _)| *p).collect();
        for ((id, _, q), expected) in tests.into_iter().zip(benjamini_hochberg(&p)) {
            if !comparison.agree(expected, q) {
                let message = format!("gene `{id}`: `{column}` does not follow from p");
                verdict.finding(Finding::error("q-value", message, expected, q).at(report::TABLE));
            }
        }
    }
}
