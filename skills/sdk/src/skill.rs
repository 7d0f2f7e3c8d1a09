//! The two kinds of component, and how a type becomes one.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Advice, Call, Failure, Mishap, Outcome, Subgoal, Submission, Verdict, advice};

/// A skill: when it applies, what it does, what must hold of the result, and what to do when it
/// did not work out.
///
/// Each function runs in a fresh instance, so nothing can be kept between calls.
pub trait Skill {
    /// The arguments. Their JSON Schema is derived and becomes part of the manifest, so document
    /// the fields, and put `#[serde(deny_unknown_fields)]` on the type.
    type Args: DeserializeOwned + JsonSchema;

    /// How well the skill fits a subgoal. It is asked only where a term of the manifest's trigger
    /// occurs in the goal, or the task names the skill; the default says that this is enough.
    ///
    /// Runs without network, files and facts.
    #[must_use]
    fn assess(subgoal: &Subgoal) -> Assessment {
        let _ = subgoal;
        Assessment::new(
            50,
            "a term of the manifest occurs in the goal, or the task names the skill",
        )
    }

    /// Does the work: reads `/in` and `/artifacts`, writes artifacts to `/work`.
    ///
    /// # Errors
    ///
    /// What stood in the way, by kind; [`Skill::recover`] is asked what to do about it.
    fn execute(call: Call<Self::Args>) -> Result<Outcome, Failure>;

    /// Judges an outcome of this skill, in an instance of its own: `/work` holds the artifacts.
    /// Every draft fact and artifact has to be named in a check, or the outcome is not accepted.
    /// There is no default, because nothing holds by default.
    ///
    /// # Errors
    ///
    /// A failure says that the outcome could not be judged: never a pass, and not its fault.
    fn verify(submission: &Submission<Self::Args>) -> Result<Verdict, Failure>;

    /// What to do about a call that did not lead to a met subgoal. The default decides by the kind
    /// of the cause, see [`advice::by_cause`].
    ///
    /// Runs without network, files and facts.
    #[must_use]
    fn recover(mishap: &Mishap) -> Advice {
        advice::by_cause(mishap)
    }
}

/// A verifier: judges what skills of others put forward.
pub trait Verifier {
    /// Judges a submission. The arguments are those of the skill that made it.
    ///
    /// # Errors
    ///
    /// A failure says that the submission could not be judged: never a pass, and not its fault.
    /// What it does not know how to judge is [`Failure::unsupported`].
    fn verify(submission: &Submission<Value>) -> Result<Verdict, Failure>;
}

/// How well a skill fits a subgoal.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// 0 does not apply, 100 made for it.
    pub score: u8,
    /// Why, in a sentence.
    pub reason: String,
    /// Arguments that the skill draws from the subgoal by itself; they fill only absent keys.
    pub args: Option<Value>,
}

impl Assessment {
    /// An assessment without arguments. A score over 100 counts as 100.
    #[must_use]
    pub fn new(score: u8, reason: impl Into<String>) -> Self {
        Self { score: score.min(100), reason: reason.into(), args: None }
    }

    /// Adds arguments, an object.
    #[must_use]
    pub fn with_args(mut self, args: Value) -> Self {
        self.args = Some(args);
        self
    }
}

/// Exports a type that implements [`Skill`] as the component's skill.
#[macro_export]
macro_rules! export_skill {
    ($skill:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "the exported functions of a component are unsafe by nature")]
        const _: () = {
            type CheckreinExport = $crate::macros::Exported<$skill>;
            $crate::macros::__export_checkrein_skill!(
                CheckreinExport with_types_in $crate::macros::skill_bindings
            );
        };
    };
}

/// Exports a type that implements [`Verifier`] as the component's verifier.
#[macro_export]
macro_rules! export_verifier {
    ($verifier:ty) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "the exported functions of a component are unsafe by nature")]
        const _: () = {
            type CheckreinExport = $crate::macros::Exported<$verifier>;
            $crate::macros::__export_checkrein_verifier!(
                CheckreinExport with_types_in $crate::macros::verifier_bindings
            );
        };
    };
}
