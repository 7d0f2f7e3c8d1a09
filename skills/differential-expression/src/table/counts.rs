//! Read counts, genes by samples.

use std::collections::HashMap;

use checkrein_skill::{Failure, outcome};

use super::lines::{self, Row, fault};

/// The largest count that a double holds exactly.
const MOST: u64 = 1 << 53;

/// Read counts, genes by samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Names of the samples, in the order of the columns.
    pub samples: Vec<String>,
    /// Ids of the genes, in the order of the rows.
    pub genes: Vec<String>,
    /// A row a gene, a column a sample: whole numbers.
    pub rows: Vec<Vec<f64>>,
}

impl Counts {
    /// Reads a table whose first column holds gene ids and whose others hold counts.
    ///
    /// # Errors
    ///
    /// A failure that names row and column: cells that are no whole number of 0 and more, ids that
    /// are doubled or cannot be part of a subject, samples that are doubled or all zeros.
    pub fn read(path: &str, bytes: &[u8]) -> Result<Self, Failure> {
        let rows = lines::read(path, bytes)?;
        let samples = rows[0].cells[1..].to_vec();
        check_samples(path, &rows[0], &samples)?;
        let mut counts = Self { samples, genes: Vec::new(), rows: Vec::new() };
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for row in &rows[1..] {
            let gene = row.cells[0].as_str();
            check_gene(path, row, gene)?;
            if let Some(first) = seen.insert(gene, row.line) {
                let what = format!("gene `{gene}` again, first in row {first}");
                return Err(fault(path, row.line, Some(&rows[0].cells[0]), what));
            }
            counts.genes.push(gene.to_owned());
            counts.rows.push(counts.parse(path, row)?);
        }
        if counts.genes.is_empty() {
            return Err(Failure::invalid_args(format!("`{path}` has a header and no genes")));
        }
        counts.check_libraries(path)?;
        Ok(counts)
    }

    /// Sum of each column over all genes.
    #[must_use]
    pub fn libraries(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.samples.len()];
        for row in &self.rows {
            for (sum, count) in sums.iter_mut().zip(row) {
                *sum += count;
            }
        }
        sums
    }

    fn parse(&self, path: &str, row: &Row) -> Result<Vec<f64>, Failure> {
        let parse = |(sample, cell): (&String, &String)| {
            count(cell).map_err(|what| fault(path, row.line, Some(&format!("`{sample}`")), what))
        };
        self.samples.iter().zip(&row.cells[1..]).map(parse).collect()
    }

    fn check_libraries(&self, path: &str) -> Result<(), Failure> {
        for (sample, sum) in self.samples.iter().zip(self.libraries()) {
            if sum == 0.0 {
                let what = "every count is 0: the sample was not sequenced or its column is wrong";
                let rows = self.genes.len();
                return Err(fault(path, rows + 1, Some(&format!("`{sample}`")), what)
                    .with_evidence(serde_json::json!({ "file": path, "column": sample, "sum": 0, "rows": rows })));
            }
            if sum > MOST as f64 {
                return Err(fault(
                    path,
                    1,
                    Some(&format!("`{sample}`")),
                    "the counts add up to over 2^53",
                ));
            }
        }
        Ok(())
    }
}

fn check_samples(path: &str, header: &Row, samples: &[String]) -> Result<(), Failure> {
    if samples.is_empty() {
        return Err(fault(
            path,
            header.line,
            None,
            "one column: gene ids and a column a sample are needed",
        ));
    }
    for (n, sample) in samples.iter().enumerate() {
        if sample.is_empty() {
            return Err(fault(
                path,
                header.line,
                Some(&format!("number {}", n + 2)),
                "a sample without a name",
            ));
        }
        if samples[..n].contains(sample) {
            return Err(fault(
                path,
                header.line,
                Some(&format!("`{sample}`")),
                "the same sample again",
            ));
        }
    }
    Ok(())
}

fn check_gene(path: &str, row: &Row, gene: &str) -> Result<(), Failure> {
    if outcome::is_segment(gene) && gene.len() <= 150 {
        return Ok(());
    }
    let what = format!(
        "gene id `{gene}`: letters, digits, `.`, `_` and `-` are possible, up to 150, the first a letter or digit"
    );
    Err(fault(path, row.line, Some("number 1"), what))
}

/// A whole number of 0 and more, `12.0` and `1e3` included.
fn count(cell: &str) -> Result<f64, String> {
    if let Ok(whole) = cell.parse::<u64>() {
        return if whole <= MOST {
            Ok(whole as f64)
        } else {
            Err(format!("`{cell}` is too large for a count"))
        };
    }
    match cell.parse::<f64>() {
        _ if cell.is_empty() => Err("no count: the cell is empty".into()),
        Ok(number) if !number.is_finite() => Err(format!("`{cell}` is no count")),
        Ok(number) if number < 0.0 => Err(format!("`{cell}` is negative, and counts are not")),
        Ok(number) if number.fract() != 0.0 => {
            Err(format!("`{cell}` is no whole number: raw counts are needed, not normalised ones"))
        }
        Ok(number) if number > MOST as f64 => Err(format!("`{cell}` is too large for a count")),
        // Not −0: it would come out as a negative zero.
        Ok(number) => Ok(number.abs()),
        Err(_) => Err(format!("`{cell}` is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_any_dialect_are_the_same() {
        let plain = Counts::read("/in/c", b"gene\ta\tb\ng1\t1\t2\ng2\t3\t4\n").expect("plain");
        assert_eq!(plain.libraries(), [4.0, 6.0]);
        let dressed = "\u{feff}\"gene\",\"a\",\"b\"\r\n\"g1\",\"1\",2\r\ng2,3.0,4e0\r\n";
        assert_eq!(Counts::read("/in/c", dressed.as_bytes()).expect("dressed"), plain);
    }

    #[test]
    fn what_is_wrong_is_named_with_row_and_column() {
        for (text, parts) in [
            ("g,a,b\ng1,1\n", ["row 2", "cells"]),
            ("g,a,b\ng1,1,x\n", ["row 2, column `b`", "`x` is no number"]),
            ("g,a,b\ng1,1,\n", ["row 2, column `b`", "empty"]),
            ("g,a,b\ng1,-1,2\n", ["row 2, column `a`", "negative"]),
            ("g,a,b\ng1,1,2\ng2,0.5,2\n", ["row 3, column `a`", "whole"]),
            ("g,a,b\ng1,1,NaN\n", ["row 2, column `b`", "no count"]),
            ("g,a,b\ng1,1,2\ng1,3,4\n", ["row 3, column g", "again"]),
            ("g,a,b\ng1,0,2\ng2,0,4\n", ["column `a`", "every count is 0"]),
            ("g,a,a\ng1,1,2\n", ["row 1, column `a`", "again"]),
            ("g,a,b\n-g/1,1,2\n", ["row 2", "gene id"]),
            ("g\ng1\n", ["row 1", "one column"]),
            ("g,a,b\n", ["no genes", "header"]),
            ("g,a\ng1,99999999999999999999\n", ["row 2, column `a`", "too large"]),
        ] {
            let failure = Counts::read("/in/c", text.as_bytes()).expect_err(text);
            for part in parts {
                assert!(failure.message.contains(part), "{text:?}: {failure}");
            }
        }
    }
}
