//! What came of executing a run again.

use checkrein_contract::event::Ended;
use checkrein_contract::id::{CallId, SubgoalId};

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
    /// Whether every call that was executed again ended as it did.
    pub fn agrees(&self) -> bool {
        self.differences().next().is_none()
    }

    /// Calls that were executed again.
    pub fn executed(&self) -> usize {
        self.calls.iter().filter(|call| !matches!(call.result, Repetition::NotRepeated(_))).count()
    }

    /// Calls that ended otherwise, each with what differs.
    pub fn differences(&self) -> impl Iterator<Item = (&Repeated, &Difference)> {
        self.calls.iter().filter_map(|call| match &call.result {
            Repetition::Different(difference) => Some((call, &**difference)),
            Repetition::Same | Repetition::NotRepeated(_) => None,
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
    /// Facts of calls that were executed again.
    pub of: u64,
    /// Those of them whose call ended the same.
    pub agree: u64,
    /// Facts of calls that were not executed again.
    pub apart: u64,
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

/// How a call ended otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// How it ended, as the log says.
    pub expected: Ended,
    /// How it ended here.
    pub found: Ended,
    /// What may be to blame, the likeliest first.
    pub suspects: Vec<Suspicion>,
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
