//! The skill's four parts.

use checkrein_skill::prelude::*;

use crate::model::{self, Design, Fault};
use crate::table::{Annotation, Counts};
use crate::{recover, report, verify};

/// What to compare.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the counts: a row a gene, a column a sample, whole numbers.
    pub counts: String,
    /// Path of the annotation: a row a sample.
    pub annotation: String,
    /// Its column of sample names.
    #[serde(default = "default_sample_column")]
    pub sample_column: String,
    /// Its column of groups.
    #[serde(default = "default_group_column")]
    pub group_column: String,
    /// The group whose change is reported.
    #[serde(default = "default_treated")]
    pub treated: String,
    /// The group that it is compared with. Samples of other groups are left out.
    #[serde(default = "default_control")]
    pub control: String,
    /// Removed from the end of the annotation's sample names before they are joined by name.
    #[serde(default)]
    pub strip_suffix: String,
    /// Genes with q below this get a fact.
    #[serde(default = "default_alpha")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// Counts per million that a gene has to exceed to be tested.
    #[serde(default = "default_min_cpm")]
    #[schemars(range(min = 0.0))]
    pub min_cpm: f64,
    /// In how many samples it has to exceed them.
    #[serde(default = "default_min_samples")]
    #[schemars(range(min = 1))]
    pub min_samples: usize,
}

fn default_sample_column() -> String {
    "file".into()
}

fn default_group_column() -> String {
    "condition".into()
}

fn default_treated() -> String {
    "treated".into()
}

fn default_control() -> String {
    "untreated".into()
}

fn default_alpha() -> f64 {
    0.05
}

fn default_min_cpm() -> f64 {
    1.0
}

fn default_min_samples() -> usize {
    3
}

/// The skill `differential-expression`.
pub struct DifferentialExpression;

impl Skill for DifferentialExpression {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let args = call.args;
        check_args(&args)?;
        progress::report(0, 3, "reading counts");
        let (counts, design) = read(&args)?;
        progress::report(1, 3, "testing genes");
        let analysis =
            model::analyse(&counts, &design).map_err(|fault| failure(&args, &counts, fault))?;
        progress::report(2, 3, "writing de.csv");
        files::write_work(report::TABLE, report::table(&analysis.genes))?;
        Ok(report::outcome(&args, &counts, &design, &analysis))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        verify::verify(submission)
    }

    fn recover(mishap: &Mishap) -> Advice {
        recover::recover(mishap)
    }
}

/// Reads the two tables and joins them.
pub(crate) fn read(args: &Args) -> Result<(Counts, Design), Failure> {
    let counts = Counts::read(&args.counts, &files::read(&args.counts)?)?;
    let columns = [args.sample_column.as_str(), args.group_column.as_str()];
    let annotation = files::read(&args.annotation)?;
    let annotation = Annotation::read(&args.annotation, &annotation, columns, &args.strip_suffix)?;
    let design = join(args, &counts, &annotation)?;
    Ok((counts, design))
}

fn check_args(args: &Args) -> Result<(), Failure> {
    let wrong = |what: String| Err(Failure::invalid_args(what));
    if !(args.alpha > 0.0 && args.alpha <= 1.0) {
        return wrong(format!("`alpha` is {}: over 0 and at most 1 is possible", args.alpha));
    }
    if !(args.min_cpm >= 0.0 && args.min_cpm.is_finite()) {
        return wrong(format!("`min_cpm` is {}: 0 and more is possible", args.min_cpm));
    }
    if args.min_samples == 0 {
        return wrong("`min_samples` is 0: 1 and more is possible".into());
    }
    if args.treated == args.control {
        return wrong(format!("`treated` and `control` are both `{}`", args.treated));
    }
    Ok(())
}

/// Finds the columns of both groups by name; order does not matter.
fn join(args: &Args, counts: &Counts, annotation: &Annotation) -> Result<Design, Failure> {
    let group_of = |name: &str| {
        annotation
            .samples
            .iter()
            .find(|sample| sample.name == name)
            .map(|sample| sample.group.as_str())
    };
    let missing: Vec<&String> =
        counts.samples.iter().filter(|name| group_of(name).is_none()).collect();
    if !missing.is_empty() {
        let names: Vec<&String> = annotation.samples.iter().map(|sample| &sample.name).collect();
        let message = format!(
            "{} of {} samples of `{}` are not in column `{}` of `{}`, the first is `{}` in row 1",
            missing.len(),
            counts.samples.len(),
            args.counts,
            args.sample_column,
            args.annotation,
            missing[0],
        );
        return Err(Failure::invalid_args(message).with_evidence(json!({
            "file": args.counts,
            "row": 1,
            "column": missing[0],
            "value": missing[0],
            "counts_samples": counts.samples,
            "annotation_samples": names,
            "missing": missing,
        })));
    }
    let columns = |group: &str| -> Vec<usize> {
        (0..counts.samples.len()).filter(|n| group_of(&counts.samples[*n]) == Some(group)).collect()
    };
    let (treated, control) = (columns(&args.treated), columns(&args.control));
    check_group(args, counts, &args.treated, &treated)?;
    check_group(args, counts, &args.control, &control)?;
    Ok(Design { treated, control, min_cpm: args.min_cpm, min_samples: args.min_samples })
}

fn check_group(
    args: &Args,
    counts: &Counts,
    group: &str,
    columns: &[usize],
) -> Result<(), Failure> {
    if columns.len() >= 2 {
        return Ok(());
    }
    let samples: Vec<&String> = columns.iter().map(|column| &counts.samples[*column]).collect();
    let message = format!(
        "group `{group}` of column `{}` in `{}` has {} of the samples, and 2 are needed for a variance",
        args.group_column,
        args.annotation,
        samples.len(),
    );
    let evidence = json!({ "file": args.annotation, "column": args.group_column, "value": group, "samples": samples });
    Err(Failure::invalid_args(message).with_evidence(evidence))
}

/// Why counts cannot be tested, with what was asked for.
pub(crate) fn failure(args: &Args, counts: &Counts, fault: Fault) -> Failure {
    let genes = counts.genes.len();
    match fault {
        Fault::TooFewGenes(kept) => Failure::invalid_args(format!(
            "{kept} of {genes} genes have over {} counts per million in {} samples, and 2 are needed",
            args.min_cpm, args.min_samples,
        )),
        Fault::Constant => Failure::invalid_args(format!(
            "more than half of the genes of `{}` are constant in both groups: nothing can be tested",
            args.counts
        )),
    }
}

#[cfg(feature = "component")]
export_skill!(DifferentialExpression);
