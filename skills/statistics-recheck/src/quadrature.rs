//! Double-exponential quadrature (Takahasi and Mori 1974): the trapezoidal rule after a change of
//! variable that makes any integrand die out at both ends, so that singular ends do no harm.

use std::f64::consts::{FRAC_PI_2, PI};

/// Steps on each side of the middle.
const SIDE: i32 = 128;

/// The width of a step in the new variable.
const STEP: f64 = 1.0 / 32.0;

/// A point of (0, 1).
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Its logarithm, exact near 1 too.
    pub ln: f64,
    /// Its weight.
    pub weight: f64,
}

/// The points for integrals over (0, 1).
#[must_use]
pub fn unit_points() -> Vec<Point> {
    let point = |n: i32| {
        let u = f64::from(n) * STEP;
        let s = PI * u.sinh();
        // v = 1 / (1 + e^-s), and ln v without losing v near 1.
        let ln = -((-s).exp().ln_1p());
        let rest = 1.0 / (1.0 + s.exp());
        Point { ln, weight: STEP * PI * u.cosh() * ln.exp() * rest }
    };
    (-SIDE..=SIDE).map(point).filter(|point| point.weight > 0.0).collect()
}

/// The integral over (0, ∞) of a function that dies out like e^-x.
#[must_use]
pub fn half_line(f: impl Fn(f64) -> f64) -> f64 {
    let term = |n: i32| {
        let u = f64::from(n) * STEP;
        let x = (FRAC_PI_2 * u.sinh()).exp();
        let value = f(x);
        if value == 0.0 { 0.0 } else { value * x * FRAC_PI_2 * u.cosh() }
    };
    STEP * (-SIDE..=SIDE).map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_integrals() {
        assert!((half_line(|x| (-x).exp()) - 1.0).abs() < 1e-14);
        // ∫ v^(-1/2) dv over (0, 1) is 2: singular at an end.
        let sum: f64 =
            unit_points().iter().map(|point| point.weight * (-0.5 * point.ln).exp()).sum();
        assert!((sum - 2.0).abs() < 1e-13, "{sum}");
    }
}
