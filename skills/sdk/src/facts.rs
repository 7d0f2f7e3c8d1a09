//! The verified facts in scope, read-only. Natively there are none.

use std::collections::VecDeque;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// A verified, immutable entry of the fact pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// `<subject>@<version>`.
    pub id: String,
    /// 1 for the first fact on a subject, then counted up.
    pub version: u32,
    /// What it is about.
    pub subject: String,
    /// Which kind of evidence it is.
    pub kind: String,
    /// What was found.
    pub content: Value,
    /// Where it comes from.
    pub source: String,
    /// Who stands for it.
    pub level: Level,
}

/// Who stands for a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The skill's own verification alone.
    SelfChecked,
    /// At least one verifier that is not part of the skill.
    Independent,
    /// A person.
    Attested,
}

impl Fact {
    /// The content as a type.
    ///
    /// # Errors
    ///
    /// [`Failure::invalid_args`] naming the place, if it does not fit.
    pub fn content<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        crate::call::parse(&self.content.to_string(), &self.subject)
    }
}

/// The fact with this id, such as `de/summary@1`, if it is in scope.
///
/// # Errors
///
/// [`Failure::internal`] if the host sends content that is no JSON.
pub fn get(id: &str) -> Result<Option<Fact>, Failure> {
    host::get(id)
}

/// The current fact of each subject that starts with `prefix`, in the order of subjects, fetched
/// page by page. A page that cannot be read ends it with its failure.
#[must_use]
pub fn find(prefix: &str) -> Find {
    Find { prefix: prefix.into(), after: None, page: VecDeque::new(), ended: false }
}

/// How many facts are fetched at once.
const PAGE: u32 = 500;

/// The iterator of [`find`].
#[derive(Debug)]
pub struct Find {
    prefix: String,
    after: Option<String>,
    page: VecDeque<Fact>,
    ended: bool,
}

impl Find {
    fn turn(&mut self) -> Result<(), Failure> {
        let page = host::find(&self.prefix, self.after.as_deref(), PAGE)?;
        self.ended = page.len() < PAGE as usize;
        if let Some(last) = page.last() {
            self.after = Some(last.subject.clone());
        }
        self.page = page.into();
        Ok(())
    }
}

impl Iterator for Find {
    type Item = Result<Fact, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty()
            && !self.ended
            && let Err(failure) = self.turn()
        {
            self.ended = true;
            return Some(Err(failure));
        }
        self.page.pop_front().map(Ok)
    }
}

#[cfg(target_family = "wasm")]
mod host {
    use super::{Fact, Failure};
    use crate::bindings::skill::checkrein::skill::facts;
    use crate::convert;

    pub(super) fn get(id: &str) -> Result<Option<Fact>, Failure> {
        facts::get(id).map(convert::fact).transpose()
    }

    pub(super) fn find(
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Fact>, Failure> {
        facts::find(prefix, after, limit).into_iter().map(convert::fact).collect()
    }
}

#[cfg(not(target_family = "wasm"))]
#[allow(clippy::unnecessary_wraps, reason = "the same signatures as on wasm")]
mod host {
    use super::{Fact, Failure};

    pub(super) fn get(_: &str) -> Result<Option<Fact>, Failure> {
        Ok(None)
    }

    pub(super) fn find(_: &str, _: Option<&str>, _: u32) -> Result<Vec<Fact>, Failure> {
        Ok(Vec::new())
    }
}
