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
        let right = json!({ "lines": ends + open });

        let (content, facts) = (&performed.outcome.content, &performed.outcome.facts);
        let mut verdict = Verdict::new();
        verdict.equal("content", "another count", &right, content, "/content");
        verdict.equal("once", "one fact is expected", &1, &facts.len(), "/facts");
        for (n, fact) in facts.iter().enumerate() {
            let expected = json!(["lines/total", right]);
            let actual = json!([fact.subject, fact.content]);
            if verdict.equal("lines", "another fact", &expected, &actual, format!("/facts/{n}")) {
                verdict.check("lines", [&fact.subject], format!("counted again: {right}"));
            }
        }
        Ok(verdict)
    }
}

export_skill!(LineCount);
