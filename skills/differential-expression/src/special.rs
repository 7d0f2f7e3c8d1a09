//! Special functions, to about 1 × 10⁻¹³ relative in the ranges used here.
//!
//! Sources: Lanczos (1964) for the gamma function; Abramowitz and Stegun (1964), 6.3 and 6.4, for
//! digamma and trigamma; Lentz's method for the continued fraction of the incomplete beta function
//! (Press et al., Numerical Recipes, section 6.4); Smyth (2004) for the inverse of trigamma.

use std::f64::consts::PI;

/// Natural logarithm of the gamma function for `x > 0`.
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    // Lanczos' coefficients for g = 7 and 9 terms.
    const G: f64 = 7.0;
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection: the series is for x ≥ 0.5.
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series = C.iter().enumerate().skip(1).fold(C[0], |sum, (i, c)| sum + c / (x + i as f64));
    let t = x + G + 0.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// Derivative of [`ln_gamma`] for `x > 0`.
#[must_use]
pub fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let tail = r
        * (1.0 / 12.0
            - r * (1.0 / 120.0
                - r * (1.0 / 252.0
                    - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * 691.0 / 32_760.0)))));
    sum + x.ln() - 0.5 / x - tail
}

/// Derivative of [`digamma`] for `x > 0`.
#[must_use]
pub fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = 1.0 / 6.0
        - r * (1.0 / 30.0
            - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * (5.0 / 66.0 - r * 691.0 / 2_730.0))));
    sum + 1.0 / x + 0.5 * r + series * r / x
}

/// Derivative of [`trigamma`] for `x > 0`.
fn tetragamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = 0.5 - r * (1.0 / 6.0 - r * (1.0 / 6.0 - r * (3.0 / 10.0 - r * (5.0 / 6.0))));
    sum - r - r / x - r * r * series
}

/// The `x > 0` with `trigamma(x) = y`, for `y > 0`: Newton's method on `1 / trigamma`, which is
/// nearly linear, as in the appendix of Smyth (2004).
#[must_use]
pub fn trigamma_inverse(y: f64) -> f64 {
    // Far out the asymptotic forms are exact to double precision, and Newton's steps are not.
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..60 {
        let value = trigamma(x);
        let step = value * (1.0 - value / y) / tetragamma(x);
        x += step;
        if (step / x).abs() < 1e-15 {
            break;
        }
    }
    x
}

/// Two-sided p-value of Student's t with `df > 0` degrees of freedom:
/// the regularised incomplete beta function at `df / (df + t²)` with parameters df/2 and 1/2.
#[must_use]
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    let square = t * t;
    // Both halves from the square, so that neither loses digits as 1 − x would.
    let (x, rest) = (df / (df + square), square / (df + square));
    incomplete_beta(0.5 * df, 0.5, x, rest)
}

/// `I_x(a, b)`, with `rest = 1 - x` given apart.
fn incomplete_beta(a: f64, b: f64, x: f64, rest: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if rest <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() + b * rest.ln() - ln_beta(a, b)).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, rest) / b
    }
}

/// `ln B(a, b)` for `b = 1/2` or `a = 1/2` of any size, and small others.
fn ln_beta(a: f64, b: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if large < 100.0 || small != 0.5 {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    // ln Γ(z) − ln Γ(z + 1/2) in powers of 1/z: the difference of two large logarithms would lose
    // digits.
    let r = 1.0 / large;
    let series = r * (0.125 + r * r * (-1.0 / 192.0 + r * r * (1.0 / 640.0)));
    0.5 * PI.ln() - 0.5 * large.ln() + series
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / keep(1.0 + even * d);
        c = keep(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / keep(1.0 + odd * d);
        c = keep(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: f64, expected: f64, tolerance: f64) {
        let difference = ((actual - expected) / expected).abs();
        assert!(difference <= tolerance, "{actual} is not {expected}: {difference:e}");
    }

    #[test]
    fn gamma_and_its_derivatives_at_known_points() {
        close(ln_gamma(0.5), PI.sqrt().ln(), 1e-14);
        close(ln_gamma(10.0), 362_880_f64.ln(), 1e-14);
        close(digamma(1.0), -0.577_215_664_901_532_9, 1e-14);
        close(digamma(0.5), -1.963_510_026_021_423_5, 1e-14);
        close(trigamma(1.0), PI * PI / 6.0, 1e-14);
        close(trigamma(0.5), PI * PI / 2.0, 1e-14);
        close(tetragamma(1.0), -2.404_113_806_319_188_6, 1e-13);
    }

    #[test]
    fn trigamma_inverse_inverts() {
        for x in [1e-3, 0.1, 0.5, 1.0, 1.286_568, 2.5, 10.0, 1e3, 1e5] {
            close(trigamma_inverse(trigamma(x)), x, 1e-12);
        }
        close(trigamma_inverse(1e-9), 1e9, 1e-8);
    }

    #[test]
    fn p_values_have_closed_forms_at_one_and_two_degrees() {
        for t in [0.01, 0.5, 1.0, 3.0, 40.0, 1e4] {
            close(t_two_sided(t, 1.0), 2.0 / PI * (1.0_f64 / t).atan(), 1e-12);
            let root = (2.0 + t * t).sqrt();
            // 1 − t/√(2 + t²), without the cancellation.
            close(t_two_sided(-t, 2.0), 2.0 / (root * (root + t)), 1e-12);
        }
        close(t_two_sided(0.0, 5.0), 1.0, 1e-15);
    }

    #[test]
    fn many_degrees_of_freedom_tend_to_the_normal_distribution() {
        close(t_two_sided(1.959_963_984_540_054, 1e9), 0.05, 1e-7);
        let below = t_two_sided(2.0, 199.999_999);
        let above = t_two_sided(2.0, 200.000_001);
        close(below, above, 1e-8);
    }
}
