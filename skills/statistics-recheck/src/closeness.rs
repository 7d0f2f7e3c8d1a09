//! How close two numbers are, and how far apart the farthest were.

/// Compares numbers and remembers the largest relative difference.
#[derive(Clone, Debug)]
pub struct Closeness {
    tolerance: f64,
    largest: f64,
    count: usize,
}

impl Closeness {
    /// Within a relative tolerance.
    #[must_use]
    pub fn new(tolerance: f64) -> Self {
        Self { tolerance, largest: 0.0, count: 0 }
    }

    /// Whether `found` is `right`, give or take the tolerance and `slack`: what rounding alone makes
    /// of a number that is a difference of others, and could be 0.
    pub fn close(&mut self, right: f64, found: f64, slack: f64) -> bool {
        self.count += 1;
        let apart = (right - found).abs();
        if apart <= slack {
            return true;
        }
        let relative = apart / right.abs().max(found.abs());
        if relative <= self.tolerance {
            self.largest = self.largest.max(relative);
            return true;
        }
        // NaN comes here too.
        self.largest = f64::INFINITY;
        false
    }

    /// Such as `largest relative difference 3e-13 over 623 genes`.
    #[must_use]
    pub fn note(&self, things: usize, name: &str) -> String {
        let numbers = self.count;
        format!(
            "largest relative difference {:.0e} over {things} {name} ({numbers} numbers)",
            self.largest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_close_to_nothing() {
        let mut closeness = Closeness::new(1e-6);
        assert!(!closeness.close(1.0, f64::NAN, 1e-12));
        assert!(!closeness.close(1.0, 1.001, 1e-12));
        assert!(closeness.close(1e-17, -1e-17, 1e-12));
        assert!(closeness.close(1.0, 1.0 + 1e-9, 0.0));
    }
}
