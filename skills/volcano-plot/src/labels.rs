//! Where labels go: next to their points, over no other label and few points.

/// A rectangle, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Top edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    fn right(&self) -> f64 {
        self.left + self.width
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Whether a point lies in it.
    #[must_use]
    pub fn holds(&self, [x, y]: [f64; 2]) -> bool {
        x >= self.left && x <= self.right() && y >= self.top && y <= self.bottom()
    }

    /// Whether two overlap.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }

    fn within(&self, other: &Self) -> bool {
        self.left >= other.left
            && self.top >= other.top
            && self.right() <= other.right()
            && self.bottom() <= other.bottom()
    }

    /// The place in it that is nearest to a point.
    #[must_use]
    pub fn nearest(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [x.clamp(self.left, self.right()), y.clamp(self.top, self.bottom())]
    }
}

/// Distances from the point that are tried, in pixels.
const RINGS: [f64; 6] = [8.0, 14.0, 22.0, 34.0, 50.0, 72.0];

/// Directions that are tried on each ring.
const DIRECTIONS: u32 = 16;

/// Places a label of each width beside its point, in the order given: of the places on rings around
/// the point the one that hides least. `points` are all that could be hidden.
#[must_use]
pub fn place(
    anchors: &[[f64; 2]],
    widths: &[f64],
    height: f64,
    frame: &Area,
    points: &[[f64; 2]],
) -> Vec<Area> {
    let mut placed: Vec<Area> = Vec::new();
    for (anchor, width) in anchors.iter().zip(widths) {
        let mut best: Option<(f64, Area)> = None;
        for (distance, area) in candidates(*anchor, *width, height) {
            let cost = cost(distance, &area, &placed, frame, anchors, points);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, area));
            }
        }
        placed.extend(best.map(|(_, area)| area));
    }
    placed
}

fn candidates([x, y]: [f64; 2], width: f64, height: f64) -> impl Iterator<Item = (f64, Area)> {
    RINGS.into_iter().flat_map(move |distance| {
        (0..DIRECTIONS).map(move |n| {
            let turn = f64::from(n) / f64::from(DIRECTIONS) * std::f64::consts::TAU;
            // The near edge touches the ring: to the side of the point, above it or below it.
            let (sin, cos) = turn.sin_cos();
            let left = x + distance * cos - width * (1.0 - cos) / 2.0;
            let top = y - distance * sin - height * (1.0 + sin) / 2.0;
            (distance, Area { left, top, width, height })
        })
    })
}

fn cost(
    distance: f64,
    area: &Area,
    placed: &[Area],
    frame: &Area,
    anchors: &[[f64; 2]],
    points: &[[f64; 2]],
) -> f64 {
    let count = |holds: usize, weight: f64| holds as f64 * weight;
    let outside = if area.within(frame) { 0.0 } else { 1e6 };
    let over_labels = count(placed.iter().filter(|other| area.overlaps(other)).count(), 1e4);
    let over_anchors = count(anchors.iter().filter(|point| area.holds(**point)).count(), 200.0);
    let over_points = count(points.iter().filter(|point| area.holds(**point)).count(), 3.0);
    outside + over_labels + over_anchors + over_points + distance * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_points_close_together_do_not_overlap() {
        let frame = Area { left: 0.0, top: 0.0, width: 400.0, height: 300.0 };
        let anchors = [[200.0, 150.0], [203.0, 152.0], [198.0, 148.0], [201.0, 149.0]];
        let areas = place(&anchors, &[80.0; 4], 15.0, &frame, &anchors);
        for (n, area) in areas.iter().enumerate() {
            assert!(area.within(&frame));
            assert!(areas[..n].iter().all(|other| !area.overlaps(other)));
            assert!(!anchors.iter().any(|anchor| area.holds(*anchor)));
        }
    }

    #[test]
    fn labels_at_the_edge_stay_inside() {
        let frame = Area { left: 0.0, top: 0.0, width: 100.0, height: 100.0 };
        let areas = place(&[[99.0, 1.0]], &[60.0], 15.0, &frame, &[]);
        assert!(areas[0].within(&frame), "{areas:?}");
    }
}
