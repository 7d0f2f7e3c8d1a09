//! The contents of facts. The state knows where each is; here they are read from the outcome's
//! blob, once for all facts of a call.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_contract::Digest;
use checkrein_contract::interface::{Fact, Level, Outcome};
use checkrein_contract::port::{Blobs, FactSource, StorageError};

use crate::state::PoolFact;

/// The facts of a set, readable by id and by subject.
pub struct PoolView {
    facts: BTreeMap<String, PoolFact>,
    contents: Contents,
    failed: Mutex<Option<StorageError>>,
}

impl PoolView {
    /// A view of these facts; of each subject the latest version is the current one.
    pub fn new<'f>(facts: impl IntoIterator<Item = &'f PoolFact>, contents: Contents) -> Self {
        let mut current = BTreeMap::<String, PoolFact>::new();
        for fact in facts {
            let newer =
                current.get(&fact.entry.subject).is_none_or(|other| fact.entry.replaces(&other.entry));
            if newer {
                current.insert(fact.entry.subject.clone(), fact.clone());
            }
        }
        PoolView { facts: current, contents, failed: Mutex::default() }
    }

    /// Only those of this level or above.
    #[must_use]
    pub fn at_least(mut self, level: Level) -> Self {
        self.facts.retain(|_, fact| fact.entry.level >= level);
        self
    }

    /// Whether every content that was asked for could be read. A fact that could not is not
    /// there for who asked, so what they make of it must not count.
    ///
    /// # Errors
    ///
    /// The first that could not.
    pub fn whole(&self) -> Result<(), StorageError> {
        match &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The current fact on a subject.
    ///
    /// # Errors
    ///
    /// If its content cannot be read back.
    pub fn on(&self, subject: &str) -> Result<Option<Fact>, StorageError> {
        self.facts.get(subject).map(|fact| self.contents.fact(fact)).transpose()
    }

    fn read(&self, fact: &PoolFact) -> Option<Fact> {
        match self.contents.fact(fact) {
            Ok(fact) => Some(fact),
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }
}

impl FactSource for PoolView {
    fn get(&self, id: &str) -> Option<Fact> {
        let (subject, _) = id.rsplit_once('@')?;
        self.facts.get(subject).filter(|fact| fact.entry.id.as_str() == id).and_then(|fact| self.read(fact))
    }

    fn find(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Fact> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let from = self.facts.range::<str, _>((start, Bound::Unbounded));
        let within = from.take_while(|(subject, _)| subject.starts_with(prefix));
        within.take(limit as usize).filter_map(|(_, fact)| self.read(fact)).collect()
    }
}

/// Outcomes read from blobs, kept while this lives. Cheap to clone.
#[derive(Clone)]
pub struct Contents {
    blobs: Arc<dyn Blobs>,
    outcomes: Arc<Mutex<HashMap<Digest, Arc<Outcome>>>>,
}

impl Contents {
    /// Contents out of these blobs.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Contents { blobs, outcomes: Arc::default() }
    }

    /// An outcome, by the digest of its canonical JSON.
    ///
    /// # Errors
    ///
    /// If it is not there or not what it was.
    pub fn outcome(&self, digest: &Digest) -> Result<Arc<Outcome>, StorageError> {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = outcomes.get(digest) {
            return Ok(outcome.clone());
        }
        let damaged = |detail: String| StorageError::Damaged { place: format!("blob {digest}"), detail };
        let bytes = self.blobs.get(digest)?;
        let outcome: Outcome = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let outcome = Arc::new(outcome);
        outcomes.insert(*digest, outcome.clone());
        Ok(outcome)
    }

    /// A fact with its content.
    ///
    /// # Errors
    ///
    /// If its content cannot be read back.
    pub fn fact(&self, fact: &PoolFact) -> Result<Fact, StorageError> {
        let outcome = self.outcome(&fact.outcome)?;
        let entry = &fact.entry;
        let draft = outcome.facts.get(entry.index as usize).ok_or_else(|| StorageError::Damaged {
            place: format!("blob {}", fact.outcome),
            detail: format!("it has no draft fact {}", entry.index),
        })?;
        Ok(Fact {
            id: entry.id.to_string(),
            version: entry.version,
            subject: entry.subject.clone(),
            kind: entry.kind.clone(),
            content: draft.content.clone(),
            source: entry.source.clone(),
            level: entry.level,
        })
    }
}
