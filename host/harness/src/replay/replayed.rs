//! What came of executing a run again.

use checkrein_contract::event::{Ended, FactEntry, StoredArtifact};
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::interface::Finding;
use serde::Serialize;

use super::suspect::Suspicion;

/// What came of executing a run again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Every call of the run, in the order in which they first ended; those that did not end come last.
    pub calls: Vec<Repeated>,
    /// The facts of its accepted outcomes.
    pub facts: Facts,
    /// The engines that wrote the log, each once.
    pub engines: Vec<String>,
}

impl Replayed {
    /// Whether all that was compared is as the log says, and facts were compared, if there are any.
    pub fn agrees(&self) -> bool {
        !self.compares_nothing() && self.differences().next().is_none()
    }

    /// Whether no call was executed again, or there are facts of which none could be compared.
    pub fn compares_nothing(&self) -> bool {
        self.executed() == 0 || (self.facts.of == 0 && self.facts.attested > 0)
    }

    /// Calls that were executed again.
    pub fn executed(&self) -> usize {
        self.calls.iter().filter(|call| !matches!(call.result, Repetition::NotRepeated(_))).count()
    }

    /// What is other than the log says, each with its call: how it ended, and then what was let in of
    /// its outcome.
    pub fn differences(&self) -> impl Iterator<Item = (&Repeated, &Difference)> {
        self.calls.iter().flat_map(|call| {
            let ended = match &call.result {
                Repetition::Different(difference) => Some(&**difference),
                Repetition::Same | Repetition::NotRepeated(_) => None,
            };
            ended.into_iter().chain(call.admission.as_deref()).map(move |difference| (call, difference))
        })
    }

    /// Calls that were not executed again, each with why.
    pub fn not_repeated(&self) -> impl Iterator<Item = (&Repeated, &NotRepeated)> {
        self.calls.iter().filter_map(|call| match &call.result {
            Repetition::NotRepeated(why) => Some((call, why)),
            Repetition::Same | Repetition::Different(_) => None,
        })
    }
}

/// Facts, by what became of the calls that they came out of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Facts that are to come out of a call that is executed again.
    pub of: u64,
    /// Those of them whose call ended the same, and that the gateway makes of its outcome.
    pub agree: u64,
    /// Facts that are what a person says: their call was not executed again.
    pub attested: u64,
}

/// One call, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The call.
    pub call: CallId,
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// The skill.
    pub skill: String,
    /// What came of it.
    pub result: Repetition,
    /// Where the log has other facts or files of its outcome than the gateway lets in.
    pub admission: Option<Box<Difference>>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Repetition {
    /// It ended the same.
    Same,
    /// It ended otherwise.
    Different(Box<Difference>),
    /// It was not executed again.
    NotRepeated(NotRepeated),
}

/// What is other than the log says.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is.
    pub differs: Differs,
    /// What may be to blame, the likeliest first.
    pub suspects: Vec<Suspicion>,
}

/// What of a call is other than the log says: what stands there, and what was found.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it lies in the box of its `Difference`")]
pub enum Differs {
    /// How it ended.
    Ended {
        /// As the log says.
        expected: Ended,
        /// Here.
        found: Ended,
    },
    /// What was let in of its outcome.
    Admission {
        /// As the log says.
        expected: Admission,
        /// Here.
        found: Admission,
    },
}

/// What the gateway makes of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Admission {
    /// It lets it in.
    Accepted {
        /// As these facts.
        facts: Vec<FactEntry>,
        /// With these files.
        artifacts: Vec<StoredArtifact>,
    },
    /// It does not.
    Rejected {
        /// Why not.
        findings: Vec<Finding>,
    },
}

/// Why a call was not executed again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRepeated {
    /// A limit of time ended it, and time is not the same anywhere else: `cpu` or `wall`.
    Timed(String),
    /// The run was stopped while it was made.
    Cancelled,
    /// A person says that it happened; what came out of it is not known.
    Happened,
    /// Its outcome is what a person says of it.
    Attested,
    /// The log does not say how it ended.
    Unended,
}

impl NotRepeated {
    /// Why, in words that follow `because`.
    pub fn why(&self) -> String {
        match self {
            NotRepeated::Timed(limit) => {
                format!("the limit `{limit}` ended it, and time is another on every machine")
            }
            NotRepeated::Cancelled => "the run was stopped while it was made".to_owned(),
            NotRepeated::Happened => {
                "a person says that it happened, and what came out of it is not known".to_owned()
            }
            NotRepeated::Attested => "its outcome is what a person says of it".to_owned(),
            NotRepeated::Unended => "the log does not say how it ended".to_owned(),
        }
    }
}
