//! Many tests at once.

/// Adjusted p-values of Benjamini and Hochberg (1995), in the order given: the share of false
/// discoveries among all genes that are at least as significant. Every p lies in 0 to 1.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut least = 1.0_f64;
    for (from_last, at) in order.into_iter().enumerate() {
        let rank = (p.len() - from_last) as f64;
        least = least.min(p.len() as f64 / rank * p[at]);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_as_r_does() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "BH")
        let q = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005, 0.9]);
        for (actual, expected) in q.iter().zip([0.025, 0.05, 0.05, 0.025, 0.9]) {
            assert!((actual - expected).abs() < 1e-15, "{q:?}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
