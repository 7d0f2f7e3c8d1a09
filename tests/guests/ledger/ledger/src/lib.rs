//! Appends the id of the call to a ledger: what was written there stays.

use book::Args;
use checkrein_skill::prelude::*;

/// The skill.
pub struct Ledger;

impl Skill for Ledger {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        book::execute("ledger", &call)
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        book::verify("ledger", submission)
    }

    fn recover(mishap: &Mishap) -> Advice {
        book::recover(mishap)
    }
}

export_skill!(Ledger);
