//! The prior of the variances: moments of their logarithms (Smyth 2004, section 6.2).

use checkrein_skill::Failure;

use crate::gamma::{digamma_less_ln, trigamma, trigamma_inverse};

/// Degrees of freedom and variance of the prior.
pub(super) fn prior(variances: &[f64], residual: f64) -> Result<(f64, f64), Failure> {
    let count = variances.len() as f64;
    let mut sorted = variances.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = match sorted.len() {
        0 | 1 => {
            return Err(Failure::invalid_args("fewer than two genes pass the filter"));
        }
        n => 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]),
    };
    if median <= 0.0 {
        return Err(Failure::invalid_args("more than half of the genes are constant"));
    }
    // Zeros are moved to limma's floor.
    let moved: Vec<f64> = sorted.into_iter().map(|variance| variance.max(1e-5 * median)).collect();
    // One pass after another from a fixed origin: the median, near to which most logarithms lie.
    let logs: Vec<f64> = moved.iter().map(|variance| (variance / median).ln()).collect();
    let mean = logs.iter().sum::<f64>() / count;
    let squares = logs.iter().map(|log| log * log).sum::<f64>();
    let spread = (squares - count * mean * mean) / (count - 1.0);
    let excess = spread - trigamma(0.5 * residual);
    if excess <= 0.0 {
        return Ok((f64::INFINITY, moved.iter().sum::<f64>() / count));
    }
    let half = trigamma_inverse(excess);
    let shift = digamma_less_ln(half) - digamma_less_ln(0.5 * residual);
    Ok((2.0 * half, median * (mean + shift).exp()))
}
