//! The call's arguments and files, read anew.

use std::collections::{HashMap, HashSet};

use checkrein_skill::{Failure, Place, files};
use serde::Deserialize;

use crate::csv::{self, Grid};

/// What the judged call was asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Path of the counts.
    pub counts: String,
    /// Path of the annotation.
    pub annotation: String,
    /// Column of sample names.
    pub sample_column: String,
    /// Column of groups.
    pub group_column: String,
    /// The one group.
    pub treated: String,
    /// The other group.
    pub control: String,
    /// Removed from the annotation's sample names.
    pub strip_suffix: String,
    /// Genes with q below it have a fact.
    pub alpha: f64,
    /// Counts per million to exceed.
    pub min_cpm: f64,
    /// In so many samples.
    pub min_samples: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            counts: String::new(),
            annotation: String::new(),
            sample_column: "file".into(),
            group_column: "condition".into(),
            treated: "treated".into(),
            control: "untreated".into(),
            strip_suffix: String::new(),
            alpha: 0.05,
            min_cpm: 1.0,
            min_samples: 3,
        }
    }
}

/// Counts by gene, and which columns belong to which group.
#[derive(Clone, Debug)]
pub struct Input {
    /// Genes in the table.
    pub tested: usize,
    /// Columns of treated samples.
    pub treated: Vec<usize>,
    /// Columns of control samples.
    pub control: Vec<usize>,
    genes: Vec<(String, Vec<u64>)>,
    libraries: Vec<u64>,
    min_cpm: f64,
    min_samples: usize,
}

impl Input {
    /// Reads what the request names.
    ///
    /// # Errors
    ///
    /// [`Failure::invalid_args`] if it cannot be judged: files that cannot be read as such tables.
    pub fn read(request: &Request) -> Result<Self, Failure> {
        let table = load(&request.counts)?;
        let groups = groups(request)?;
        let samples = &table[0][1..];
        let of = |group: &str| -> Vec<usize> {
            let belongs =
                |at: &usize| groups.get(&samples[*at]).is_some_and(|found| found == group);
            (0..samples.len()).filter(belongs).collect()
        };
        let (treated, control) = (of(&request.treated), of(&request.control));
        if samples.iter().any(|name| !groups.contains_key(name))
            || treated.len() < 2
            || control.len() < 2
        {
            return Err(Failure::invalid_args(
                "samples and groups do not join, so there is nothing to compare with",
            ));
        }
        let genes = (1..table.len())
            .map(|at| parse_row(request, &table, at))
            .collect::<Result<Vec<_>, _>>()?;
        if genes.iter().map(|(id, _)| id).collect::<HashSet<_>>().len() != genes.len() {
            return Err(Failure::invalid_args(format!(
                "`{}`: a gene is there twice",
                request.counts
            )));
        }
        let libraries: Vec<u64> =
            (0..samples.len()).map(|at| genes.iter().map(|(_, row)| row[at]).sum()).collect();
        if libraries.contains(&0) {
            return Err(Failure::invalid_args(format!(
                "`{}`: a sample of all zeros",
                request.counts
            )));
        }
        let (min_cpm, min_samples) = (request.min_cpm, request.min_samples);
        Ok(Self { tested: genes.len(), treated, control, genes, libraries, min_cpm, min_samples })
    }

    /// Log-CPM of treated and control samples, of each gene that passes the filter.
    pub fn kept(&self) -> impl Iterator<Item = (&str, Vec<f64>, Vec<f64>)> {
        self.genes.iter().filter(|(_, row)| self.passes(row)).map(|(id, row)| {
            (id.as_str(), self.log_cpm(row, &self.treated), self.log_cpm(row, &self.control))
        })
    }

    fn passes(&self, row: &[u64]) -> bool {
        let over =
            |at: &&usize| row[**at] as f64 / self.libraries[**at] as f64 * 1e6 > self.min_cpm;
        self.treated.iter().chain(&self.control).filter(over).count() >= self.min_samples
    }

    fn log_cpm(&self, row: &[u64], columns: &[usize]) -> Vec<f64> {
        let ln = |at: &usize| {
            (1e6_f64).ln() + (row[*at] as f64 + 0.5).ln() - (self.libraries[*at] as f64 + 1.0).ln()
        };
        columns.iter().map(|at| ln(at) / std::f64::consts::LN_2).collect()
    }
}

fn load(path: &str) -> Result<Grid, Failure> {
    let text = files::read_text(path)?;
    let width = |delimiter: &u8| csv::even_width(&text, *delimiter).unwrap_or(0);
    let widest = [b'\t', b',', b';'].into_iter().max_by_key(width).unwrap_or(b'\t');
    csv::grid(path, &text, widest)
}

fn groups(request: &Request) -> Result<HashMap<String, String>, Failure> {
    let table = load(&request.annotation)?;
    let column = |name: &String| {
        table[0].iter().position(|cell| cell == name).ok_or_else(|| {
            Failure::invalid_args(format!("`{}` has no column `{name}`", request.annotation))
        })
    };
    let (sample, group) = (column(&request.sample_column)?, column(&request.group_column)?);
    let name = |row: &Vec<String>| {
        row[sample].strip_suffix(request.strip_suffix.as_str()).unwrap_or(&row[sample]).to_owned()
    };
    Ok(table[1..].iter().map(|row| (name(row), row[group].clone())).collect())
}

fn parse_row(request: &Request, table: &Grid, at: usize) -> Result<(String, Vec<u64>), Failure> {
    let row = &table[at];
    let parse = |(n, cell): (usize, &String)| {
        let number =
            cell.parse::<f64>().ok().filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x < 9e15);
        // A whole number below 2^53, see the line above.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        number.map(|x| x as u64).ok_or_else(|| {
            let place = Place::new(&request.counts, at + 1).column(&table[0][n], n + 1);
            place.value(cell).fault(format!("`{cell}` is no count"))
        })
    };
    let counts = row.iter().enumerate().skip(1).map(parse).collect::<Result<_, _>>()?;
    Ok((row[0].clone(), counts))
}
