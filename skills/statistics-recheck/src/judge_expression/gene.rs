//! The numbers of one gene.

use checkrein_skill::prelude::*;

use crate::closeness::Closeness;
use crate::expression::{Gene, Test};

/// What rounding makes of differences of logarithms: a few units in the last place of 20.
const SLACK: f64 = 1e-12;

/// What a submission says of a gene, in a fact or in a row.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Found {
    pub(super) log2_fold_change: f64,
    pub(super) mean: f64,
    pub(super) t: f64,
    pub(super) p: f64,
    pub(super) q: f64,
    pub(super) welch: Option<FoundTest>,
}

/// What a submission says of Welch's test.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FoundTest {
    pub(super) t: f64,
    pub(super) df: f64,
    pub(super) p: f64,
    pub(super) q: f64,
}

/// Holds numbers against one another and keeps score.
pub(super) struct Judge<'a> {
    pub(super) closeness: Closeness,
    pub(super) verdict: &'a mut Verdict,
}

/// From the name of a number to its place in the submission.
type Place<'a> = &'a dyn Fn(&str) -> String;

impl Judge<'_> {
    /// Judges one gene, and says whether all of it holds.
    pub(super) fn gene(&mut self, gene: &Gene, found: &Found, place: Place<'_>) -> bool {
        let before = self.verdict.findings.len();
        let id = &gene.id;
        let change = found.log2_fold_change;
        let sign_holds = change * gene.change > 0.0 || (change - gene.change).abs() <= SLACK;
        if sign_holds {
            self.number("fold-change", id, gene.change, change, SLACK, &place("log2_fold_change"));
        } else {
            let message = format!("gene `{id}`: the fold change has the wrong sign");
            let finding = Finding::error("fold-change-sign", message, gene.change, change);
            self.verdict.finding(finding.at(place("log2_fold_change")));
        }
        self.number("mean", id, gene.mean, found.mean, SLACK, &place("mean"));
        self.statistic("standard-error", gene, &gene.moderated, found.t, sign_holds, &place("t"));
        self.number("p-value", id, gene.moderated.p, found.p, 0.0, &place("p"));
        self.number("q-value", id, gene.moderated.q, found.q, 0.0, &place("q"));
        self.welch(gene, found.welch, sign_holds, place);
        self.verdict.findings.len() == before
    }

    fn welch(&mut self, gene: &Gene, found: Option<FoundTest>, sign_holds: bool, place: Place<'_>) {
        let id = &gene.id;
        let (Some(right), Some(found)) = (gene.welch, found) else {
            if gene.welch.is_some() != found.is_some() {
                let words = |there: bool| if there { "a test" } else { "no test" };
                let message =
                    format!("gene `{id}`: Welch's test is there only where a group varies");
                let finding = Finding::error(
                    "welch",
                    message,
                    words(gene.welch.is_some()),
                    words(found.is_some()),
                );
                self.verdict.finding(finding.at(place("welch")));
            }
            return;
        };
        self.statistic(
            "welch-standard-error",
            gene,
            &right,
            found.t,
            sign_holds,
            &place("welch/t"),
        );
        self.number("welch-df", id, right.df, found.df, 0.0, &place("welch/df"));
        self.number("welch-p-value", id, right.p, found.p, 0.0, &place("welch/p"));
        self.number("welch-q-value", id, right.q, found.q, 0.0, &place("welch/q"));
    }

    /// A t that is off while the fold change is right has another standard error under it.
    fn statistic(
        &mut self,
        rule: &str,
        gene: &Gene,
        right: &Test,
        found: f64,
        sign_holds: bool,
        place: &str,
    ) {
        // t is the fold change in standard errors, and inherits its rounding.
        let slack = SLACK * (right.t / gene.change).abs().max(1.0);
        if self.closeness.close(right.t, found, slack) {
            return;
        }
        let (error, other) = (gene.change / right.t, gene.change / found);
        let message = if !sign_holds || right.t * found < 0.0 {
            format!("gene `{}`: t has the wrong sign or size", gene.id)
        } else {
            format!("gene `{}`: t rests on a standard error of {other}, and it is {error}", gene.id)
        };
        self.verdict.finding(Finding::error(rule, message, right.t, found).at(place));
    }

    fn number(&mut self, rule: &str, id: &str, right: f64, found: f64, slack: f64, place: &str) {
        if !self.closeness.close(right, found, slack) {
            let message = format!("gene `{id}`: {rule} differs");
            self.verdict.finding(Finding::error(rule, message, right, found).at(place));
        }
    }
}
