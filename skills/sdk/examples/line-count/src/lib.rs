//! Counts the lines of a text file.

use checkrein_skill::prelude::*;

/// What to count.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A text file under `/in` or `/artifacts`.
    file: String,
}

/// The skill.
pub struct LineCount;

impl Skill for LineCount {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let lines = files::read_text(&call.args.file)?.lines().count();
        let fact =
            DraftFact::new("lines/total", "statistic", json!({ "lines": lines }), call.args.file);
        Ok(Outcome::new(json!({ "lines": lines })).fact(fact))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        let performed = submission.performed()?;
        // Another way to count than the executor's: a slip would have to be made twice.
        let text = files::read(&performed.call.args.file)?;
        let ends = text.iter().filter(|byte| **byte == b'\n').count();
        let open = usize::from(text.last().is_some_and(|byte| *byte != b'\n'));

        let mut verdict = Verdict::new();
        for (n, fact) in performed.outcome.facts.iter().enumerate() {
            let place = format!("/facts/{n}/content/lines");
            let counted = json!(ends + open);
            if fact.subject != "lines/total" {
                verdict.finding(Finding::error(
                    "subject",
                    "no such fact",
                    "lines/total",
                    &fact.subject,
                ));
            } else if verdict.equal(
                "lines",
                "another count",
                &counted,
                &fact.content["lines"],
                place,
            ) {
                verdict.check("lines", [&fact.subject], format!("counted again: {counted}"));
            }
        }
        Ok(verdict)
    }
}

export_skill!(LineCount);
