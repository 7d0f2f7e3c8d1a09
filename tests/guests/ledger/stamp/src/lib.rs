//! States the time that its clock shows. With the machine's clock it is another one each time.

use std::time::{SystemTime, UNIX_EPOCH};

use checkrein_skill::prelude::*;

/// Where the fact is said to come from.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A file under `/in`: the source of the fact.
    pub from: String,
}

/// The skill.
pub struct Stamp;

impl Skill for Stamp {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        files::read(&call.args.from)?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(|error| Failure::internal(error.to_string()))?;
        let content = json!({ "nanos": since.as_nanos().to_string() });
        let fact = DraftFact::new("stamp/now", "statistic", content.clone(), call.args.from);
        Ok(Outcome::new(content).fact(fact))
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        let outcome = &submission.performed()?.outcome;
        let mut verdict = Verdict::new();
        verdict.equal("once", "one fact is expected", &1, &outcome.facts.len(), "/facts");
        for (n, fact) in outcome.facts.iter().enumerate() {
            let place = format!("/facts/{n}");
            let told = json!([fact.subject, fact.content]);
            let same = json!(["stamp/now", outcome.content]);
            let number =
                outcome.content["nanos"].as_str().and_then(|text| text.parse::<u128>().ok());
            let equal = verdict.equal("same", "content and fact differ", &same, &told, place);
            if equal && verdict.equal("time", "no time", &true, &number.is_some(), "/content") {
                verdict.check("time", [&fact.subject], "it is a number");
            }
        }
        Ok(verdict)
    }
}

export_skill!(Stamp);
