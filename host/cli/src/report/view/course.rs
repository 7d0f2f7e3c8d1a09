//! What befalls a run beside its stages: questions and their answers, changes of its task, stops
//! and resumes, the file that it was exported to.

use std::io::{ErrorKind, Read};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use checkrein_contract::Digest;
use checkrein_contract::ask::{Amendment, Answer, Asked, Message};
use checkrein_contract::event::RunStatus;
use checkrein_contract::id::{AskId, SubgoalId, Timestamp, is_segment};
use serde::Deserialize;

use super::RunView;
use crate::report::words;

/// A question to a person.
#[derive(Clone, Debug)]
pub struct AskView {
    /// Its id.
    pub ask: AskId,
    /// For which subgoal.
    pub subgoal: SubgoalId,
    /// What is asked.
    pub about: Asked,
    /// In words.
    pub question: String,
    /// When it was opened.
    pub opened: Timestamp,
    /// The answer, once there is one.
    pub answer: Option<AnswerView>,
    /// Whether its subgoal was closed, or opened again, before there was one.
    pub dropped: bool,
}

/// What a person said to an ask.
#[derive(Clone, Debug)]
pub struct AnswerView {
    /// What.
    pub answer: Answer,
    /// Who.
    pub by: String,
    /// When it was taken.
    pub at: Timestamp,
}

/// A change of the task.
#[derive(Clone, Debug)]
pub struct AmendmentView {
    /// The version of the goal card, from 2.
    pub version: u32,
    /// When it was taken.
    pub at: Timestamp,
    /// Who asked for it.
    pub by: Option<String>,
    /// What was changed.
    pub amendment: Amendment,
    /// Subgoals that were opened again.
    pub reopened: Vec<SubgoalId>,
    /// Subgoals whose criteria were evaluated again.
    pub evaluated: Vec<SubgoalId>,
    /// How many facts it abandoned.
    pub facts: usize,
    /// How many artifacts it abandoned.
    pub artifacts: usize,
}

/// A process that went on with the run.
#[derive(Clone, Debug)]
pub struct ResumeView {
    /// When.
    pub at: Timestamp,
    /// Its engine.
    pub engine: String,
    /// Whether what components may do was another from then on.
    pub changed: bool,
}

/// A letter from which nothing followed.
#[derive(Clone, Debug)]
pub struct RefusedLetter {
    /// Its place in the inbox.
    pub letter: u64,
    /// When it was taken.
    pub at: Timestamp,
    /// Who put it there.
    pub by: String,
    /// What it says.
    pub said: Message,
    /// Why nothing followed.
    pub why: String,
}

/// The one file that holds a run, as `checkrein export` left word of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Export {
    /// Where it was put.
    pub file: String,
    /// Its digest.
    pub digest: Digest,
    /// The last event that is in it.
    pub head: Digest,
}

/// The most bytes that the word of an export has.
const EXPORT_MAX: u64 = 64 << 10;

impl Export {
    /// The word of an export in a run's folder; `None` if there is none.
    fn read(file: &Path) -> Result<Option<Self>> {
        let place = || file.display().to_string();
        match std::fs::symlink_metadata(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(place),
            Ok(found) if !found.is_file() => bail!("{} is no ordinary file", place()),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).with_context(place)?;
        opened.take(EXPORT_MAX).read_to_end(&mut bytes).with_context(place)?;
        let export = serde_json::from_slice(&bytes);
        export.map(Some).with_context(|| format!("{} does not say what was exported", place()))
    }
}

impl AskView {
    /// Whether an answer would still be taken.
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && !self.dropped
    }
}

impl RunView {
    /// The word for how the run stands.
    pub fn state_word(&self) -> &'static str {
        words::state(self.status, self.stopped, self.driver.is_some())
    }

    /// Whether it reached all that it was to reach.
    pub fn is_done(&self) -> bool {
        self.status == Some(RunStatus::Done)
    }

    /// The questions that wait for an answer.
    pub fn open_asks(&self) -> impl Iterator<Item = &AskView> {
        let over = self.status.is_some();
        self.asks.iter().filter(move |ask| !over && ask.is_open())
    }

    /// The questions of a subgoal, open or not.
    pub fn asks_of<'v>(&'v self, subgoal: &'v SubgoalId) -> impl Iterator<Item = &'v AskView> {
        self.asks.iter().filter(move |ask| ask.subgoal == *subgoal)
    }

    /// The run, with who drives it now.
    #[must_use]
    pub fn driven_by(mut self, driver: Option<String>) -> Self {
        self.driver = driver;
        self
    }

    /// The run, with the file that it was exported to, if `state` (a state folder) has word of one.
    ///
    /// # Errors
    ///
    /// If there is word of one, and it cannot be read.
    pub fn with_export(mut self, state: &Path) -> Result<Self> {
        // A log may come from a stranger, and an id that leads elsewhere names no folder of ours.
        if is_segment(self.run.as_str()) {
            let file = state.join("runs").join(self.run.as_str()).join("export.json");
            // One of an earlier state does not hold what the report says.
            self.export = Export::read(&file)?.filter(|export| export.head == self.head);
        }
        Ok(self)
    }
}
