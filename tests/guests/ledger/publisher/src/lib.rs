//! Publishes the id of the call: a second time is seen, and does no harm.

use book::Args;
use checkrein_skill::prelude::*;

/// The skill.
pub struct Publisher;

impl Skill for Publisher {
    type Args = Args;

    fn execute(call: Call<Args>) -> Result<Outcome, Failure> {
        book::execute("publisher", &call)
    }

    fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
        book::verify("publisher", submission)
    }

    fn recover(mishap: &Mishap) -> Advice {
        book::recover(mishap)
    }
}

export_skill!(Publisher);
