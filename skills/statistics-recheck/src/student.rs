//! Student's t by numerical integration.

use std::f64::consts::PI;

use crate::gamma::half_step_ratio;
use crate::quadrature::{Point, unit_points};

/// Two-sided p-values of Student's t.
#[derive(Clone, Debug)]
pub struct Student {
    points: Vec<Point>,
}

impl Default for Student {
    fn default() -> Self {
        Self { points: unit_points() }
    }
}

impl Student {
    /// The two-sided p-value of `t` with `df > 0` degrees of freedom.
    ///
    /// With x = df / (df + t²) and a = df / 2 it is the incomplete beta integral
    /// ∫₀ˣ u^(a−1) (1 − u)^(−1/2) du / B(a, 1/2), and u = x v^(1/a) makes it
    /// x^a / (a B(a, 1/2)) ∫₀¹ (1 − x v^(1/a))^(−1/2) dv.
    #[must_use]
    pub fn two_sided(&self, t: f64, df: f64) -> f64 {
        let ratio = t * t / df;
        if ratio == 0.0 {
            return 1.0;
        }
        let (x, gap) = (1.0 / (1.0 + ratio), ratio / (1.0 + ratio));
        let a = 0.5 * df;
        let integral: f64 = self
            .points
            .iter()
            .map(|point| point.weight / (gap - x * (point.ln / a).exp_m1()).sqrt())
            .sum();
        let front = (-a * ratio.ln_1p()).exp() * half_step_ratio(a) / (a * PI.sqrt());
        front * integral
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_at_one_and_two_degrees() {
        let student = Student::default();
        for t in [1e-3_f64, 0.5, 1.0, 3.0, 40.0, 1e4] {
            let one = 2.0 / PI * (1.0 / t).atan();
            let root = (2.0 + t * t).sqrt();
            let two = 2.0 / (root * (root + t));
            for (df, expected) in [(1.0, one), (2.0, two)] {
                let actual = student.two_sided(-t, df);
                let difference = ((actual - expected) / expected).abs();
                assert!(difference < 1e-11, "t {t}, df {df}: {actual} is not {expected}");
            }
        }
        assert_eq!(student.two_sided(0.0, 3.0), 1.0);
    }

    #[test]
    fn a_value_of_a_statistics_table() {
        // The 97.5 % point at 10 degrees of freedom.
        let p = Student::default().two_sided(2.228_138_851_986_273_5, 10.0);
        assert!((p - 0.05).abs() < 1e-12, "{p}");
    }
}
