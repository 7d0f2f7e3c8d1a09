//! Differential expression, computed again from counts and annotation.

mod input;
mod moderate;

use checkrein_skill::Failure;

use crate::student::Student;

pub use input::{Input, Request};

/// What should have come out.
#[derive(Clone, Debug)]
pub struct Expected {
    /// One a gene that passes the filter, by p and then by id.
    pub genes: Vec<Gene>,
    /// Prior degrees of freedom; infinite where variances differ by no more than chance.
    pub prior_df: f64,
    /// Prior variance.
    pub prior_variance: f64,
    /// Degrees of freedom of the moderated test.
    pub total_df: f64,
}

/// The numbers of a gene.
#[derive(Clone, Debug)]
pub struct Gene {
    /// Its id.
    pub id: String,
    /// Log2 fold change.
    pub change: f64,
    /// Mean log-CPM.
    pub mean: f64,
    /// Residual variance.
    pub variance: f64,
    /// The moderated test.
    pub moderated: Test,
    /// Welch's test, none where both groups are constant.
    pub welch: Option<Test>,
}

/// A test of one gene.
#[derive(Clone, Copy, Debug, Default)]
pub struct Test {
    /// The statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
    /// Benjamini-Hochberg's q.
    pub q: f64,
}

/// Computes everything anew.
///
/// # Errors
///
/// [`Failure::invalid_args`] if the inputs give no result to compare with.
pub fn compute(input: &Input) -> Result<Expected, Failure> {
    let mut genes: Vec<Gene> =
        input.kept().map(|(id, treated, control)| fit(id, &treated, &control)).collect();
    let residual = (input.treated.len() + input.control.len()) as f64 - 2.0;
    let variances: Vec<f64> = genes.iter().map(|gene| gene.variance).collect();
    let (prior_df, prior_variance) = moderate::prior(&variances, residual)?;
    let total_df = (residual + prior_df).min(residual * genes.len() as f64);
    let inverse_sizes = 1.0 / input.treated.len() as f64 + 1.0 / input.control.len() as f64;
    let student = Student::default();
    for gene in &mut genes {
        let weight = if prior_df.is_infinite() { 0.0 } else { residual / (residual + prior_df) };
        let variance = weight * gene.variance + (1.0 - weight) * prior_variance;
        let t = gene.change / (variance * inverse_sizes).sqrt();
        gene.moderated = Test { t, df: total_df, p: student.two_sided(t, total_df), q: 0.0 };
        if let Some(welch) = &mut gene.welch {
            welch.p = student.two_sided(welch.t, welch.df);
        }
    }
    step_up(&mut genes.iter_mut().map(|gene| &mut gene.moderated).collect::<Vec<_>>());
    step_up(&mut genes.iter_mut().filter_map(|gene| gene.welch.as_mut()).collect::<Vec<_>>());
    genes.sort_by(|a, b| a.moderated.p.total_cmp(&b.moderated.p).then_with(|| a.id.cmp(&b.id)));
    Ok(Expected { genes, prior_df, prior_variance, total_df })
}

fn fit(id: &str, treated: &[f64], control: &[f64]) -> Gene {
    let (n, m) = (treated.len() as f64, control.len() as f64);
    let (above, below) = (spread(treated), spread(control));
    let (sum, other) = (treated.iter().sum::<f64>(), control.iter().sum::<f64>());
    let change = sum / n - other / m;
    // Squared standard errors of the two means.
    let (a, b) = (above / (n - 1.0) / n, below / (m - 1.0) / m);
    let welch = (a + b > 0.0).then(|| {
        // Satterthwaite's formula, divided through by the squared sum.
        let share = a / (a + b);
        let df = 1.0 / (share * share / (n - 1.0) + (1.0 - share) * (1.0 - share) / (m - 1.0));
        Test { t: change / (a + b).sqrt(), df, ..Test::default() }
    });
    Gene {
        id: id.to_owned(),
        change,
        mean: (sum + other) / (n + m),
        variance: (above + below) / (n + m - 2.0),
        moderated: Test::default(),
        welch,
    }
}

/// The sum of squares about the mean, from the differences of all pairs: exactly 0 for equal values.
fn spread(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (n, a) in values.iter().enumerate() {
        sum += values[n + 1..].iter().map(|b| (a - b) * (a - b)).sum::<f64>();
    }
    sum / values.len() as f64
}

/// Benjamini and Hochberg's step-up procedure, from the least significant up.
fn step_up(tests: &mut [&mut Test]) {
    tests.sort_by(|a, b| a.p.total_cmp(&b.p));
    let all = tests.len() as f64;
    let mut bound = 1.0_f64;
    for (rank, test) in tests.iter_mut().enumerate().rev() {
        bound = bound.min(test.p * all / (rank + 1) as f64);
        test.q = bound;
    }
}
