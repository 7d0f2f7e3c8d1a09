//! From the component's exports to the traits.

use std::marker::PhantomData;
use std::sync::Once;

use crate::bindings::skill::checkrein::skill::types as wit;
use crate::bindings::skill::exports::checkrein::skill as exports;
use crate::bindings::verifier::exports::checkrein::skill as verifier_exports;
use crate::{Advice, Assessment, Remedy, Skill, Verifier, convert, log};

/// Implements the generated traits for whatever implements ours.
pub struct Exported<T>(PhantomData<T>);

impl<T: Skill> exports::trigger::Guest for Exported<T> {
    fn assess(subgoal: wit::Subgoal) -> exports::trigger::Assessment {
        log_panics();
        let assessment = match convert::subgoal(subgoal) {
            Ok(subgoal) => T::assess(&subgoal),
            Err(failure) => Assessment::new(0, failure.message),
        };
        convert::assessment(assessment)
    }
}

impl<T: Skill> exports::executor::Guest for Exported<T> {
    fn execute(call: wit::Call) -> Result<wit::Outcome, wit::Failure> {
        log_panics();
        convert::call(call).and_then(T::execute).map(convert::outcome).map_err(convert::failure)
    }
}

impl<T: Skill> exports::verification::Guest for Exported<T> {
    fn verify(submission: wit::Submission) -> Result<wit::Verdict, wit::Failure> {
        log_panics();
        convert::submission(submission)
            .and_then(|submission| T::verify(&submission))
            .map(convert::verdict)
            .map_err(convert::failure)
    }
}

impl<T: Skill> exports::recovery::Guest for Exported<T> {
    fn recover(mishap: wit::Mishap) -> exports::recovery::Advice {
        log_panics();
        let advice = match convert::mishap(mishap) {
            Ok(mishap) => T::recover(&mishap),
            Err(failure) => {
                Advice::new("the mishap cannot be read", Remedy::GiveUp(failure.message))
            }
        };
        convert::advice(advice)
    }
}

impl<T: Skill> exports::schema::Guest for Exported<T> {
    fn args() -> wit::Json {
        log_panics();
        schemars::schema_for!(T::Args).as_value().to_string()
    }
}

impl<T: Verifier> verifier_exports::verification::Guest for Exported<T> {
    fn verify(submission: wit::Submission) -> Result<wit::Verdict, wit::Failure> {
        log_panics();
        convert::submission(submission)
            .and_then(|submission| T::verify(&submission))
            .map(convert::verdict)
            .map_err(convert::failure)
    }
}

/// A panic ends in a bare trap; what it was about has to be said before.
fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| log::error(&info.to_string())));
    });
}
