//! Counts again what `worker`, `ledger` and `publisher` state, from the arguments of the call.

use checkrein_skill::prelude::*;

/// The verifier. It has no settings.
pub struct Recount;

impl Verifier for Recount {
    fn verify(submission: &Submission<Value>) -> Result<Verdict, Failure> {
        let performed = submission.performed()?;
        let n = performed.call.args["n"].as_u64();
        let n = n.ok_or_else(|| Failure::unsupported("the call has no number `n`"))?;
        let mut verdict = Verdict::new();
        let outcome = &performed.outcome;
        verdict.equal("once", "one fact is expected", &1, &outcome.facts.len(), "/facts");
        for (at, fact) in outcome.facts.iter().enumerate() {
            let right = match fact.subject.split_once('/').map(|(head, _)| head) {
                Some("work") => json!({ "n": n, "sum": n * (n + 1) / 2 }),
                Some("ledger" | "publisher") => json!({ "n": n, "double": n << 1 }),
                _ => {
                    return Err(Failure::unsupported(format!(
                        "`{}` is not counted here",
                        fact.subject
                    )));
                }
            };
            let named = fact.subject.rsplit('/').next().and_then(|name| name.parse::<u64>().ok());
            let place = format!("/facts/{at}");
            verdict.equal("content", "another content", &right, &outcome.content, "/content");
            let known = verdict.equal("subject", "another number", &Some(n), &named, &place);
            if known && verdict.equal("number", "counted otherwise", &right, &fact.content, place) {
                verdict.check("number", [&fact.subject], format!("counted again: {right}"));
            }
        }
        Ok(verdict)
    }
}

export_verifier!(Recount);
