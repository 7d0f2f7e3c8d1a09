//! The skill's four parts.

use checkrein_skill::prelude::*;

use crate::plot::Plot;
use crate::{svg, table, verify};

/// The artifact's path.
pub const FILE: &str = "volcano.svg";

/// The fact's subject.
pub const SUBJECT: &str = "plot/volcano";

/// What to draw.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of a CSV file with the columns `gene`, `log2_fold_change`, `p` and `q`, such as the
    /// `de.csv` of `differential-expression`.
    pub table: String,
    /// Genes with q below this are significant.
    #[serde(default = "default_alpha")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// Log2 fold change that a gene has to reach, up or down, to be coloured.
    #[serde(default = "default_min_fold_change")]
    #[schemars(range(min = 0.0))]
    pub min_fold_change: f64,
    /// How many of the coloured genes are labelled, those of least p.
    #[serde(default = "default_labels")]
    #[schemars(range(max = 50))]
    pub labels: usize,
    /// The title above the plot.
    #[serde(default)]
    pub title: Option<String>,
}

fn default_alpha() -> f64 {
    0.05
}

fn default_min_fold_change() -> f64 {
    1.0
}

fn default_labels() -> usize {
    10
}

/// The skill `volcano-plot`.
pub struct VolcanoPlot;

impl Skill for VolcanoPlot {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let plot = plot(&call.args)?;
        files::write_work(FILE, svg::render(&plot))?;
        let content = content(&plot);
        let fact = DraftFact::new(SUBJECT, "figure", content.clone(), call.args.table);
        Ok(Outcome::new(content).fact(fact).artifact(FILE, plot.title, "image/svg+xml"))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        verify::verify(submission)
    }
}

/// Reads the table and lays out the plot.
pub(crate) fn plot(args: &Args) -> Result<Plot, Failure> {
    let wrong = |what: String| Err(Failure::invalid_args(what));
    if !(args.alpha > 0.0 && args.alpha <= 1.0) {
        return wrong(format!("`alpha` is {}: over 0 and at most 1 is possible", args.alpha));
    }
    if !(args.min_fold_change >= 0.0 && args.min_fold_change.is_finite()) {
        return wrong(format!(
            "`min_fold_change` is {}: 0 and more is possible",
            args.min_fold_change
        ));
    }
    if args.labels > 50 {
        return wrong(format!("`labels` is {}: up to 50 find a place", args.labels));
    }
    let genes = table::read(&args.table, &files::read_text(&args.table)?)?;
    Ok(Plot::new(genes, args))
}

/// Content of the fact.
pub(crate) fn content(plot: &Plot) -> Value {
    let labelled: Vec<&str> = plot.labelled.iter().map(|at| plot.genes[*at].id.as_str()).collect();
    json!({ "points": plot.genes.len(), "up": plot.up, "down": plot.down, "labelled": labelled })
}

export_skill!(VolcanoPlot);
