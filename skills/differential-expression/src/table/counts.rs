//! Read counts, genes by samples.

use std::collections::HashMap;

use checkrein_skill::{Failure, Place, outcome};
use serde_json::json;

use super::lines::{self, Row};

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
        check_samples(path, &rows[0])?;
        let mut counts = Self { samples, genes: Vec::new(), rows: Vec::new() };
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for row in &rows[1..] {
            let gene = row.cells[0].as_str();
            check_gene(path, &rows[0], row)?;
            if let Some(first) = seen.insert(gene, row.number) {
                let what = format!("gene `{gene}` again, first in row {first}");
                return Err(row.cell(path, &rows[0], 0).fault(what));
            }
            counts.genes.push(gene.to_owned());
            counts.rows.push(parse(path, &rows[0], row)?);
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

    fn check_libraries(&self, path: &str) -> Result<(), Failure> {
        for (n, (sample, sum)) in self.samples.iter().zip(self.libraries()).enumerate() {
            let place = Place::new(path, 2).column(sample, n + 2);
            if sum == 0.0 {
                let what = "every count is 0, from here to the last row: the sample was not sequenced or its column is wrong";
                let mut failure = place.value("0").fault(what);
                failure.evidence["last_row"] = json!(self.genes.len() + 1);
                return Err(failure);
            }
            if sum > MOST as f64 {
                return Err(place.fault("the counts from here to the last row add up to over 2^53"));
            }
        }
        Ok(())
    }
}

fn parse(path: &str, header: &Row, row: &Row) -> Result<Vec<f64>, Failure> {
    let parse =
        |at: usize| count(&row.cells[at]).map_err(|what| row.cell(path, header, at).fault(what));
    (1..row.cells.len()).map(parse).collect()
}

fn check_samples(path: &str, header: &Row) -> Result<(), Failure> {
    let samples = &header.cells[1..];
    if samples.is_empty() {
        let what = "one column: gene ids and a column a sample are needed";
        return Err(header.place(path).fault(what));
    }
    for (n, sample) in samples.iter().enumerate() {
        let place = header.cell(path, header, n + 1);
        if sample.is_empty() {
            return Err(place.fault("a sample without a name"));
        }
        if samples[..n].contains(sample) {
            return Err(place.fault("the same sample again"));
        }
    }
    Ok(())
}

fn check_gene(path: &str, header: &Row, row: &Row) -> Result<(), Failure> {
    let gene = row.cells[0].as_str();
    if outcome::is_segment(gene) && gene.len() <= 150 {
        return Ok(());
    }
    let what = format!(
        "gene id `{gene}`: letters, digits, `.`, `_` and `-` are possible, up to 150, the first a letter or digit"
    );
    Err(row.cell(path, header, 0).fault(what))
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
            ("g,a,b\ng1,1,2\ng1,3,4\n", ["row 3, column `g`", "again"]),
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
            assert_eq!(failure.evidence["row"].is_u64(), failure.message.contains("row "));
        }
    }

    #[test]
    fn evidence_has_row_column_and_value() {
        for (text, row, column, value) in [
            ("g,a,b\ng1,1,x\n", 2, "b", "x"),
            ("g,a,b\ng1,-1,2\n", 2, "a", "-1"),
            ("g,a,b\ng1,1,2\ng1,3,4\n", 3, "g", "g1"),
            ("g,a,a\ng1,1,2\n", 1, "a", "a"),
            ("g,a,b\ng1,0,2\ng2,0,4\n", 2, "a", "0"),
            ("g,a,b\n-g/1,1,2\n", 2, "g", "-g/1"),
        ] {
            let evidence = Counts::read("/in/c", text.as_bytes()).expect_err(text).evidence;
            let found = (&evidence["row"], &evidence["column"], &evidence["value"]);
            assert_eq!(found, (&json!(row), &json!(column), &json!(value)), "{text:?}");
        }
    }
}
