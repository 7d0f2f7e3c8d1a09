//! The prior of the variances: a scaled F distribution fitted to them (Smyth 2004, section 6.2;
//! limma's `fitFDist`).

use crate::special::{digamma, trigamma, trigamma_inverse};

/// A scaled inverse chi-squared prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Degrees of freedom; infinite where the variances differ by no more than chance.
    pub df: f64,
    /// Variance.
    pub variance: f64,
}

/// Why there is no prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// So many genes passed the filter, and two are needed.
    TooFewGenes(usize),
    /// More than half of the genes are constant in both groups.
    Constant,
}

impl Prior {
    /// The variance of a gene, drawn towards the prior.
    #[must_use]
    pub fn posterior(&self, variance: f64, residual_df: f64) -> f64 {
        if self.df.is_infinite() {
            return self.variance;
        }
        (self.df * self.variance + residual_df * variance) / (self.df + residual_df)
    }
}

/// Fits the prior to residual variances that all have `df` degrees of freedom.
///
/// # Errors
///
/// See [`Fault`].
pub(super) fn fit(variances: &[f64], df: f64) -> Result<Prior, Fault> {
    if variances.len() < 2 {
        return Err(Fault::TooFewGenes(variances.len()));
    }
    let median = median(variances);
    if median == 0.0 {
        return Err(Fault::Constant);
    }
    // Zeros have no logarithm; limma moves them to this floor.
    let floor = 1e-5 * median;
    let count = variances.len() as f64;
    let centred = digamma(df / 2.0) - (df / 2.0).ln();
    let logs: Vec<f64> =
        variances.iter().map(|variance| variance.max(floor).ln() - centred).collect();
    let mean = logs.iter().sum::<f64>() / count;
    let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let excess = spread - trigamma(df / 2.0);
    if excess > 0.0 {
        let half = trigamma_inverse(excess);
        Ok(Prior { df: 2.0 * half, variance: (mean + digamma(half) - half.ln()).exp() })
    } else {
        // The variances differ no more than one variance would let them: pool them.
        let pooled = variances.iter().map(|variance| variance.max(floor)).sum::<f64>() / count;
        Ok(Prior { df: f64::INFINITY, variance: pooled })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        0.5 * (sorted[middle - 1] + sorted[middle])
    } else {
        sorted[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_variances_are_pooled() {
        let prior = fit(&[2.0, 2.0, 2.0], 4.0).expect("a prior");
        assert!(prior.df.is_infinite());
        assert_eq!(prior.posterior(7.0, 4.0), 2.0);
    }

    #[test]
    fn constant_or_few_genes_have_no_prior() {
        assert_eq!(fit(&[0.0, 0.0, 1.0], 4.0), Err(Fault::Constant));
        assert_eq!(fit(&[1.0], 4.0), Err(Fault::TooFewGenes(1)));
    }
}
