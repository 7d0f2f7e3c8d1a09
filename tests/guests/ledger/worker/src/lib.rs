//! Adds up the numbers up to one, and fails or errs as its arguments say.

use std::time::Duration;

use checkrein_skill::prelude::*;

/// What to do, and what is to go wrong.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Up to which number.
    pub n: u32,
    /// A file under `/in`: the source of the fact.
    pub from: String,
    /// At which attempts it fails.
    #[serde(default)]
    pub fail: Fail,
    /// Whether what it puts forward is wrong.
    #[serde(default)]
    pub reject: bool,
    /// Milliseconds that it takes.
    #[serde(default)]
    pub pause_ms: u32,
    /// Milliseconds after which a failed call is to be made again.
    #[serde(default = "a_moment")]
    pub retry_ms: u32,
}

/// At which attempts it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// At none.
    #[default]
    Never,
    /// At the first.
    First,
    /// At the first and the second.
    Twice,
    /// At each.
    Always,
}

fn a_moment() -> u32 {
    5
}

impl Fail {
    fn at(self, attempt: u32) -> bool {
        match self {
            Fail::Never => false,
            Fail::First => attempt == 1,
            Fail::Twice => attempt <= 2,
            Fail::Always => true,
        }
    }
}

/// The skill.
pub struct Worker;

impl Skill for Worker {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        let args = call.args;
        files::read(&args.from)?;
        if args.pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(u64::from(args.pause_ms)));
        }
        if args.fail.at(call.attempt) {
            return Err(Failure::unavailable(format!("no luck at attempt {}", call.attempt)));
        }
        let sum: u64 = (1..=u64::from(args.n)).sum();
        let content = json!({ "n": args.n, "sum": sum + u64::from(args.reject) });
        let subject = format!("work/{}", args.n);
        let fact = DraftFact::new(subject, "statistic", content.clone(), args.from);
        Ok(Outcome::new(content).fact(fact))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        let performed = submission.performed()?;
        let (args, outcome) = (&performed.call.args, &performed.outcome);
        // Another way than the executor's: from the top down.
        let sum: u64 = (0..args.n).fold(0, |sum, less| sum + u64::from(args.n - less));
        let right = json!({ "n": args.n, "sum": sum });
        let mut verdict = Verdict::new();
        verdict.equal("content", "another content", &right, &outcome.content, "/content");
        verdict.equal("once", "one fact is expected", &1, &outcome.facts.len(), "/facts");
        verdict.equal("files", "no file is expected", &0, &outcome.artifacts.len(), "/artifacts");
        for (n, fact) in outcome.facts.iter().enumerate() {
            let expected = json!([format!("work/{}", args.n), right]);
            let actual = json!([fact.subject, fact.content]);
            if verdict.equal("sum", "another sum", &expected, &actual, format!("/facts/{n}")) {
                verdict.check("sum", [&fact.subject], format!("added up again: {sum}"));
            }
        }
        Ok(verdict)
    }

    fn recover(mishap: &Mishap) -> Advice {
        match &mishap.cause {
            Cause::Failed(failure) if failure.kind == checkrein_skill::FailureKind::Unavailable => {
                let retry = mishap.call.args["retry_ms"].as_u64().and_then(|ms| ms.try_into().ok());
                Advice::new("it was not there", Remedy::RetryAfter(retry.unwrap_or(a_moment())))
            }
            Cause::Rejected(_) if mishap.call.args["reject"] == true => {
                Advice::retry_with("it was asked to err", mishap, json!({ "reject": false }))
            }
            _ => checkrein_skill::advice::by_cause(mishap),
        }
    }
}

export_skill!(Worker);
