//! What is where: classes, axes, thresholds, labels.

use crate::labels::{self, Area};
use crate::scale::Scale;
use crate::skill::Args;
use crate::table::Gene;

/// The picture's width in pixels.
pub const WIDTH: f64 = 960.0;
/// The picture's height in pixels.
pub const HEIGHT: f64 = 720.0;
/// The part of it that holds the points.
pub const FRAME: Area = Area { left: 76.0, top: 104.0, width: 856.0, height: 548.0 };
/// Size of the labels' type, in pixels.
pub const LABEL_SIZE: f64 = 13.0;

/// The least p that is drawn at its own place; those below are drawn there too.
const LEAST_P: f64 = 1e-300;

/// What becomes of a gene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Significant, and up by the fold change asked for or more.
    Up,
    /// Significant, and down by it or more.
    Down,
    /// Neither.
    Neither,
}

/// A laid-out plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The points, in the order of the table.
    pub genes: Vec<Gene>,
    /// The class of each.
    pub classes: Vec<Class>,
    /// The place of each, in pixels.
    pub places: Vec<[f64; 2]>,
    /// How many are up.
    pub up: usize,
    /// How many are down.
    pub down: usize,
    /// The genes with a label, by p.
    pub labelled: Vec<usize>,
    /// Where their labels are.
    pub areas: Vec<Area>,
    /// From log2 fold change to place.
    pub x: Scale,
    /// From −log10 p to place.
    pub y: Scale,
    /// q below this is significant.
    pub alpha: f64,
    /// The least fold change of a coloured gene.
    pub min_fold_change: f64,
    /// The p at which q reaches alpha, if any gene is significant.
    pub threshold: Option<f64>,
}

impl Plot {
    /// Lays out at least one gene.
    #[must_use]
    pub fn new(genes: Vec<Gene>, args: &Args) -> Self {
        let class = |gene: &Gene| match () {
            () if gene.q >= args.alpha || gene.change == 0.0 => Class::Neither,
            () if gene.change >= args.min_fold_change => Class::Up,
            () if gene.change <= -args.min_fold_change => Class::Down,
            () => Class::Neither,
        };
        let classes: Vec<Class> = genes.iter().map(class).collect();
        let (x, y) = scales(&genes, args.min_fold_change);
        let places: Vec<[f64; 2]> =
            genes.iter().map(|gene| [x.place(gene.change), y.place(height(gene.p))]).collect();
        let labelled = labelled(&genes, &classes, args.labels);
        let anchors: Vec<[f64; 2]> = labelled.iter().map(|at| places[*at]).collect();
        let widths: Vec<f64> = labelled.iter().map(|at| text_width(&genes[*at].id)).collect();
        let areas = labels::place(&anchors, &widths, LABEL_SIZE * 1.25, &FRAME, &places);
        let count = |wanted: Class| classes.iter().filter(|class| **class == wanted).count();
        Self {
            title: args
                .title
                .clone()
                .unwrap_or_else(|| "Change and significance of each gene".into()),
            up: count(Class::Up),
            down: count(Class::Down),
            threshold: threshold(&genes, args.alpha),
            alpha: args.alpha,
            min_fold_change: args.min_fold_change,
            genes,
            classes,
            places,
            labelled,
            areas,
            x,
            y,
        }
    }
}

/// −log10 p.
#[must_use]
pub fn height(p: f64) -> f64 {
    // Not −0 for a p of 1.
    0.0 - p.max(LEAST_P).log10()
}

fn scales(genes: &[Gene], min_fold_change: f64) -> (Scale, Scale) {
    let side =
        genes.iter().map(|gene| gene.change.abs()).fold(1.25 * min_fold_change, f64::max).max(0.5)
            * 1.06;
    let top = genes.iter().map(|gene| height(gene.p)).fold(1.0, f64::max) * 1.06;
    let x = Scale::new([-side, side], [FRAME.left, FRAME.left + FRAME.width], 10.0);
    let y = Scale::new([0.0, top], [FRAME.top + FRAME.height, FRAME.top], 8.0);
    (x, y)
}

/// Half way between the last significant p and the first that is not: any place between them is
/// where q reaches alpha.
fn threshold(genes: &[Gene], alpha: f64) -> Option<f64> {
    let significant =
        genes.iter().filter(|gene| gene.q < alpha).map(|gene| height(gene.p)).reduce(f64::min)?;
    let other =
        genes.iter().filter(|gene| gene.q >= alpha).map(|gene| height(gene.p)).reduce(f64::max);
    Some(other.map_or(significant, |other| 0.5 * (significant + other)))
}

/// The coloured genes of least p; of equal ones by id.
fn labelled(genes: &[Gene], classes: &[Class], most: usize) -> Vec<usize> {
    let mut coloured: Vec<usize> =
        (0..genes.len()).filter(|at| classes[*at] != Class::Neither).collect();
    coloured.sort_by(|a, b| {
        let (a, b) = (&genes[*a], &genes[*b]);
        a.p.total_cmp(&b.p).then_with(|| a.id.cmp(&b.id))
    });
    coloured.truncate(most);
    coloured
}

/// About what a sans-serif face needs; a little more, so that labels keep their distance.
fn text_width(text: &str) -> f64 {
    let em = |c: char| {
        if matches!(c, 'i' | 'j' | 'l' | '.' | '-' | '1') { 0.42 } else { 0.62 }
    };
    text.chars().map(em).sum::<f64>() * LABEL_SIZE + 4.0
}
