//! What goes out: facts, `de.csv` and a short summary.

use std::fmt::Write as _;

use checkrein_skill::{DraftFact, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Args;
use crate::model::{Analysis, Design, Gene, Prior};
use crate::table::Counts;

/// The artifact's path.
pub const TABLE: &str = "de.csv";

/// Its first line.
pub const HEADER: &str = "gene,log2_fold_change,mean,t,p,q,welch_t,welch_df,welch_p,welch_q";

/// Content of `de/summary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Genes that passed the filter.
    pub kept: usize,
    /// Genes with q below alpha.
    pub significant: usize,
    /// Those of them with a positive fold change.
    pub up: usize,
    /// Those of them with a negative fold change.
    pub down: usize,
    /// Genes with Welch's q below alpha.
    pub significant_welch: usize,
}

/// Content of `de/prior`. An infinite prior has no `df`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorContent {
    /// Degrees of freedom; null if infinite.
    pub df: Option<f64>,
    /// Variance.
    pub variance: f64,
}

/// Content of `de/gene/<id>`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneContent {
    /// Mean log-CPM of treated less that of control.
    pub log2_fold_change: f64,
    /// Mean log-CPM over all samples.
    pub mean: f64,
    /// Moderated t.
    pub t: f64,
    /// Its two-sided p.
    pub p: f64,
    /// That p adjusted.
    pub q: f64,
    /// Welch's test; null where both groups are constant.
    pub welch: Option<WelchContent>,
}

/// Welch's test in [`GeneContent`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WelchContent {
    /// The statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
    /// That p adjusted.
    pub q: f64,
}

impl Summary {
    /// Counts what is significant.
    #[must_use]
    pub fn of(genes: &[Gene], alpha: f64) -> Self {
        let significant: Vec<&Gene> = genes.iter().filter(|gene| gene.q < alpha).collect();
        let with_sign = |sign: f64| {
            significant.iter().filter(|gene| gene.log2_fold_change * sign > 0.0).count()
        };
        Self {
            kept: genes.len(),
            significant: significant.len(),
            up: with_sign(1.0),
            down: with_sign(-1.0),
            significant_welch: genes
                .iter()
                .filter(|gene| gene.welch.is_some_and(|test| test.q < alpha))
                .count(),
        }
    }
}

impl From<Prior> for PriorContent {
    fn from(prior: Prior) -> Self {
        Self { df: prior.df.is_finite().then_some(prior.df), variance: prior.variance }
    }
}

impl From<&Gene> for GeneContent {
    fn from(gene: &Gene) -> Self {
        Self {
            log2_fold_change: gene.log2_fold_change,
            mean: gene.mean,
            t: gene.t,
            p: gene.p,
            q: gene.q,
            welch: gene.welch.map(|test| WelchContent {
                t: test.t,
                df: test.df,
                p: test.p,
                q: test.q,
            }),
        }
    }
}

/// The subject of a gene's fact.
#[must_use]
pub fn subject(gene: &str) -> String {
    format!("de/gene/{gene}")
}

/// All kept genes as CSV, every number to its last bit; Welch's cells are empty where there is no
/// such test.
#[must_use]
pub fn table(genes: &[Gene]) -> String {
    let mut text = String::with_capacity(200 * (genes.len() + 1));
    text.push_str(HEADER);
    text.push('\n');
    for gene in genes {
        // Debug, unlike Display, writes 1e-9 as such, and both read back to the same bits.
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{},{:?},{:?},{:?},{:?},{:?},",
            gene.id, gene.log2_fold_change, gene.mean, gene.t, gene.p, gene.q
        );
        let _ = match gene.welch {
            Some(test) => writeln!(text, "{:?},{:?},{:?},{:?}", test.t, test.df, test.p, test.q),
            None => writeln!(text, ",,,"),
        };
    }
    text
}

/// The outcome's content.
#[must_use]
pub fn content(
    args: &Args,
    counts: &Counts,
    design: &Design,
    genes: &[Gene],
    total_df: f64,
) -> Value {
    json!({
        "tested": counts.genes.len(),
        "treated_samples": design.treated.len(),
        "control_samples": design.control.len(),
        "total_df": total_df,
        "summary": Summary::of(genes, args.alpha),
    })
}

/// The outcome: a fact for the summary, the prior and each significant gene.
#[must_use]
pub fn outcome(args: &Args, counts: &Counts, design: &Design, analysis: &Analysis) -> Outcome {
    let fact = |subject: String, content: Value| {
        DraftFact::new(subject, "statistic", content, args.counts.clone())
    };
    let summary = Summary::of(&analysis.genes, args.alpha);
    let significant = analysis.genes.iter().filter(|gene| gene.q < args.alpha);
    Outcome::new(content(args, counts, design, &analysis.genes, analysis.total_df))
        .fact(fact("de/summary".into(), json!(summary)))
        .fact(fact("de/prior".into(), json!(PriorContent::from(analysis.prior))))
        .facts(significant.map(|gene| fact(subject(&gene.id), json!(GeneContent::from(gene)))))
        .artifact(TABLE, "Differential expression of all tested genes", "text/csv")
}
