//! From numbers to places.

/// A linear axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The number at the axis' start and at its end.
    pub domain: [f64; 2],
    /// Their places, in pixels.
    pub range: [f64; 2],
    /// Numbers with a tick.
    pub ticks: Vec<f64>,
    /// Digits behind the point that the ticks need.
    pub digits: usize,
}

impl Scale {
    /// An axis over `domain` with about `wanted` ticks at round numbers.
    #[must_use]
    pub fn new(domain: [f64; 2], range: [f64; 2], wanted: f64) -> Self {
        let step = round_step((domain[1] - domain[0]) / wanted);
        let mut ticks = Vec::new();
        let mut n = (domain[0] / step).ceil();
        while n * step <= domain[1] + 1e-9 * step {
            // Not −0, which would be written with its sign.
            ticks.push(n * step + 0.0);
            n += 1.0;
        }
        let mut digits = 0;
        while digits < 6 && (step * 10_f64.powi(digits)).fract().abs() > 1e-9 {
            digits += 1;
        }
        Self { domain, range, ticks, digits: usize::try_from(digits).unwrap_or(0) }
    }

    /// The place of a number.
    #[must_use]
    pub fn place(&self, number: f64) -> f64 {
        let share = (number - self.domain[0]) / (self.domain[1] - self.domain[0]);
        self.range[0] + share * (self.range[1] - self.range[0])
    }
}

/// 1, 2 or 5 times a power of ten, the nearest from above.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let scale = Scale::new([-4.9, 4.9], [0.0, 98.0], 8.0);
        assert_eq!(scale.ticks, [-4.0, -2.0, 0.0, 2.0, 4.0]);
        assert_eq!((scale.place(0.0), scale.digits), (49.0, 0));
        let scale = Scale::new([0.0, 0.9], [10.0, 0.0], 5.0);
        assert_eq!((scale.ticks.len(), scale.digits), (5, 1));
    }
}
