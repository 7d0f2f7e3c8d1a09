//! Relatives of the gamma function, from their integrals (Abramowitz and Stegun 1964, 6.3.21 and
//! 6.4.1) and from an asymptotic series.

use crate::quadrature::half_line;

/// Digamma less logarithm, for `z > 0`.
#[must_use]
pub fn digamma_less_ln(z: f64) -> f64 {
    // Binet: ∫ (1/t − 1/(1 − e^−t)) e^−zt dt, with t = x / z.
    let kernel = |t: f64| {
        if t < 1e-2 {
            // The difference of two large numbers, as a series.
            -0.5 - t / 12.0 + t.powi(3) / 720.0 - t.powi(5) / 30_240.0
        } else {
            1.0 / t + 1.0 / (-t).exp_m1()
        }
    };
    half_line(|x| kernel(x / z) * (-x).exp()) / z
}

/// Trigamma, for `z > 0`.
#[must_use]
pub fn trigamma(z: f64) -> f64 {
    // ∫ t e^−zt / (1 − e^−t) dt, with t = x / z.
    half_line(|x| {
        let t = x / z;
        (-x).exp() * t / -(-t).exp_m1()
    }) / z
}

/// The `z` with `trigamma(z) = y`, for `y > 0`: bisection, as trigamma only falls.
#[must_use]
pub fn trigamma_inverse(y: f64) -> f64 {
    // 1/z < trigamma(z) < 1/z + 1/z² brackets it.
    let mut low = 1.0 / y;
    let mut high = (1.0 + (1.0 + 4.0 * y).sqrt()) / (2.0 * y);
    while high - low > 4.0 * f64::EPSILON * high {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if trigamma(middle) > y { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Γ(a + 1/2) / Γ(a) for `a > 0`: the asymptotic series from 60 up (Tricomi and Erdélyi 1951),
/// the recurrence below.
#[must_use]
pub fn half_step_ratio(a: f64) -> f64 {
    let mut factor = 1.0;
    let mut z = a;
    while z < 60.0 {
        factor *= z / (z + 0.5);
        z += 1.0;
    }
    let coefficients = [
        1.0,
        -1.0 / 8.0,
        1.0 / 128.0,
        5.0 / 1_024.0,
        -21.0 / 32_768.0,
        -399.0 / 262_144.0,
        869.0 / 4_194_304.0,
    ];
    let series = coefficients.iter().rev().fold(0.0, |sum, c| sum / z + c);
    factor * z.sqrt() * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    fn close(actual: f64, expected: f64) {
        assert!(((actual - expected) / expected).abs() < 1e-12, "{actual} is not {expected}");
    }

    #[test]
    fn known_values() {
        close(digamma_less_ln(1.0), -0.577_215_664_901_532_9);
        close(digamma_less_ln(2.5), 0.703_156_640_645_243_2 - 2.5_f64.ln());
        close(trigamma(1.0), PI * PI / 6.0);
        close(trigamma(0.5), PI * PI / 2.0);
        close(trigamma_inverse(PI * PI / 6.0), 1.0);
        close(trigamma_inverse(trigamma(300.0)), 300.0);
        close(half_step_ratio(0.5), 1.0 / PI.sqrt());
        close(half_step_ratio(2.5), 8.0 / (3.0 * PI.sqrt()));
        // A large one from its recurrence: R(a) R(a + 1/2) = a.
        close(half_step_ratio(1e4) * half_step_ratio(1e4 + 0.5), 1e4);
    }
}
