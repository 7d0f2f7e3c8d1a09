//! The method: log-CPM, filter, two-group linear model, empirical Bayes, and Welch's test.
//!
//! Sources: Law et al. (2014), voom, for the log-CPM; Smyth (2004), "Linear models and empirical
//! Bayes methods for assessing differential expression in microarray experiments", as limma's
//! `eBayes` without trend and not robust; Welch (1947) with Satterthwaite's (1946) degrees of
//! freedom; Benjamini and Hochberg (1995) for q.

mod adjust;
mod prior;

use std::cmp::Ordering;

use crate::special::t_two_sided;
use crate::table::Counts;

pub use adjust::benjamini_hochberg;
pub use prior::{Fault, Prior};

/// What the analysis is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Column of each treated sample in the counts.
    pub treated: Vec<usize>,
    /// Column of each control sample in the counts.
    pub control: Vec<usize>,
    /// Counts per million that a gene has to exceed.
    pub min_cpm: f64,
    /// In how many samples it has to.
    pub min_samples: usize,
}

impl Design {
    fn residual_df(&self) -> f64 {
        (self.treated.len() + self.control.len() - 2) as f64
    }
}

/// All that comes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The kept genes, by p and then by name.
    pub genes: Vec<Gene>,
    /// The prior of the variances.
    pub prior: Prior,
    /// Degrees of freedom of the moderated t.
    pub total_df: f64,
}

/// One gene's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Gene {
    /// Its id.
    pub id: String,
    /// Mean log-CPM of treated less that of control.
    pub log2_fold_change: f64,
    /// Mean log-CPM over all samples.
    pub mean: f64,
    /// Moderated t.
    pub t: f64,
    /// Its two-sided p.
    pub p: f64,
    /// That p adjusted over all kept genes.
    pub q: f64,
    /// Welch's test; none where both groups are constant.
    pub welch: Option<Welch>,
}

/// Welch's test of one gene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The statistic.
    pub t: f64,
    /// Satterthwaite's degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
    /// That p adjusted over all kept genes that have one.
    pub q: f64,
}

/// Runs the whole analysis. Both groups need two samples or more.
///
/// # Errors
///
/// Fewer than two genes pass the filter, or all of them are constant.
pub fn analyse(counts: &Counts, design: &Design) -> Result<Analysis, Fault> {
    let fits = fit_genes(counts, design);
    let residual_df = design.residual_df();
    let (prior, total_df) = moderate(&fits, residual_df)?;
    let unscaled = (1.0 / design.treated.len() as f64 + 1.0 / design.control.len() as f64).sqrt();
    let mut genes: Vec<Gene> = fits
        .into_iter()
        .map(|fit| {
            let posterior = prior.posterior(fit.variance, residual_df);
            let t = fit.log2_fold_change / (posterior.sqrt() * unscaled);
            Gene {
                id: fit.id,
                log2_fold_change: fit.log2_fold_change,
                mean: fit.mean,
                t,
                p: t_two_sided(t, total_df),
                q: f64::NAN,
                welch: fit.welch,
            }
        })
        .collect();
    adjust_all(&mut genes);
    genes.sort_by(by_p_then_id);
    Ok(Analysis { genes, prior, total_df })
}

/// The prior alone, and the degrees of freedom of the moderated t.
///
/// # Errors
///
/// As [`analyse`].
pub fn prior(counts: &Counts, design: &Design) -> Result<(Prior, f64), Fault> {
    moderate(&fit_genes(counts, design), design.residual_df())
}

fn moderate(fits: &[Fit], residual_df: f64) -> Result<(Prior, f64), Fault> {
    let variances: Vec<f64> = fits.iter().map(|fit| fit.variance).collect();
    let prior = prior::fit(&variances, residual_df)?;
    // As limma has it: not more than all residuals together have.
    Ok((prior, (residual_df + prior.df).min(residual_df * fits.len() as f64)))
}

/// The order of the table.
#[must_use]
pub fn by_p_then_id(a: &Gene, b: &Gene) -> Ordering {
    a.p.total_cmp(&b.p).then_with(|| a.id.cmp(&b.id))
}

struct Fit {
    id: String,
    log2_fold_change: f64,
    mean: f64,
    variance: f64,
    welch: Option<Welch>,
}

/// Fits each gene that passes the filter.
fn fit_genes(counts: &Counts, design: &Design) -> Vec<Fit> {
    let libraries = counts.libraries();
    let used: Vec<usize> = design.treated.iter().chain(&design.control).copied().collect();
    let mut fits = Vec::new();
    for (id, row) in counts.genes.iter().zip(&counts.rows) {
        let cpm = |column: usize| row[column] / libraries[column] * 1e6;
        let passing = used.iter().filter(|column| cpm(**column) > design.min_cpm).count();
        if passing < design.min_samples {
            continue;
        }
        let log_cpm =
            |column: &usize| ((row[*column] + 0.5) / (libraries[*column] + 1.0) * 1e6).log2();
        let treated: Vec<f64> = design.treated.iter().map(log_cpm).collect();
        let control: Vec<f64> = design.control.iter().map(log_cpm).collect();
        fits.push(fit(id, &treated, &control));
    }
    fits
}

fn fit(id: &str, treated: &[f64], control: &[f64]) -> Fit {
    let (first, second) = (Group::of(treated), Group::of(control));
    let samples = first.size + second.size;
    Fit {
        id: id.to_owned(),
        log2_fold_change: first.mean - second.mean,
        mean: (first.mean * first.size + second.mean * second.size) / samples,
        variance: (first.squares + second.squares) / (samples - 2.0),
        welch: welch(&first, &second),
    }
}

/// Mean and sum of squares about it.
struct Group {
    size: f64,
    mean: f64,
    squares: f64,
}

impl Group {
    fn of(values: &[f64]) -> Self {
        let size = values.len() as f64;
        // A constant group has no variance at all; the rounding of its mean must not make one.
        if values.iter().all(|value| *value == values[0]) {
            return Self { size, mean: values[0], squares: 0.0 };
        }
        let mean = values.iter().sum::<f64>() / size;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { size, mean, squares }
    }

    /// The squared standard error of the mean.
    fn error(&self) -> f64 {
        self.squares / (self.size - 1.0) / self.size
    }
}

fn welch(first: &Group, second: &Group) -> Option<Welch> {
    let (a, b) = (first.error(), second.error());
    let error = a + b;
    if error == 0.0 {
        return None;
    }
    let t = (first.mean - second.mean) / error.sqrt();
    let df = error * error / (a * a / (first.size - 1.0) + b * b / (second.size - 1.0));
    // Squares that underflow leave no degrees of freedom to speak of.
    (t.is_finite() && df.is_finite()).then(|| Welch { t, df, p: t_two_sided(t, df), q: f64::NAN })
}

fn adjust_all(genes: &mut [Gene]) {
    let moderated: Vec<f64> = genes.iter().map(|gene| gene.p).collect();
    for (gene, q) in genes.iter_mut().zip(benjamini_hochberg(&moderated)) {
        gene.q = q;
    }
    let mut tests: Vec<&mut Welch> =
        genes.iter_mut().filter_map(|gene| gene.welch.as_mut()).collect();
    let welch: Vec<f64> = tests.iter().map(|test| test.p).collect();
    for (test, q) in tests.iter_mut().zip(benjamini_hochberg(&welch)) {
        test.q = q;
    }
}
