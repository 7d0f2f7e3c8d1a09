//! The contents of facts. The state knows where each is; here they are read from the outcome's
//! blob, once for all facts of a call.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use checkrein_contract::Digest;
use checkrein_contract::interface::{Fact, Level, Outcome};
use checkrein_contract::port::{Blobs, FactSource, StorageError};
use serde_json::Value;

use crate::state::PoolFact;

/// The most memory that outcomes which were read are kept in, in bytes.
const KEPT_MAX: usize = 64 << 20;

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

    /// What was read, or that it could not be.
    fn noted<T>(&self, read: Result<T, StorageError>) -> Option<T> {
        let note = |error| {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        };
        read.map_err(note).ok()
    }
}

impl FactSource for PoolView {
    fn get(&self, id: &str) -> Option<Fact> {
        let (subject, _) = id.rsplit_once('@')?;
        let fact = self.facts.get(subject).filter(|fact| fact.entry.id.as_str() == id)?;
        self.noted(self.contents.fact(fact))
    }

    fn find(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Fact> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let from = self.facts.range::<str, _>((start, Bound::Unbounded));
        let within = from.take_while(|(subject, _)| subject.starts_with(prefix));
        let mut found: Vec<(&PoolFact, Option<Fact>)> =
            within.take(limit as usize).map(|(_, fact)| (fact, None)).collect();
        // Outcome by outcome, so that each is read once, whatever is kept of them.
        let mut by_outcome: Vec<&mut (&PoolFact, Option<Fact>)> = found.iter_mut().collect();
        by_outcome.sort_by_key(|(fact, _)| fact.outcome);
        for same in by_outcome.chunk_by_mut(|(one, _), (other, _)| one.outcome == other.outcome) {
            let Some(outcome) = self.noted(self.contents.outcome(&same[0].0.outcome)) else { continue };
            for (fact, read) in same {
                *read = self.noted(fact_of(&outcome, fact));
            }
        }
        found.into_iter().filter_map(|(_, read)| read).collect()
    }
}

/// Outcomes read from blobs. The last ones stay in memory, up to a bound: a long run stays small.
/// Cheap to clone.
#[derive(Clone)]
pub struct Contents {
    blobs: Arc<dyn Blobs>,
    kept: Arc<Mutex<Kept>>,
}

impl Contents {
    /// Contents out of these blobs.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self::keeping(blobs, KEPT_MAX)
    }

    /// Contents of which at most so many bytes are kept.
    fn keeping(blobs: Arc<dyn Blobs>, most: usize) -> Self {
        Contents { blobs, kept: Arc::new(Mutex::new(Kept { most, ..Kept::default() })) }
    }

    /// An outcome, by the digest of its canonical JSON.
    ///
    /// # Errors
    ///
    /// If it is not there or not what it was.
    pub fn outcome(&self, digest: &Digest) -> Result<Arc<Outcome>, StorageError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = kept.get(digest) {
            return Ok(outcome);
        }
        let damaged = |detail: String| StorageError::Damaged { place: format!("blob {digest}"), detail };
        let bytes = self.blobs.get(digest)?;
        let outcome: Outcome = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let outcome = Arc::new(outcome);
        kept.insert(*digest, &outcome);
        Ok(outcome)
    }

    /// A fact with its content.
    ///
    /// # Errors
    ///
    /// If its content cannot be read back.
    pub fn fact(&self, fact: &PoolFact) -> Result<Fact, StorageError> {
        fact_of(&*self.outcome(&fact.outcome)?, fact)
    }
}

/// A fact, with its content out of its outcome.
fn fact_of(outcome: &Outcome, fact: &PoolFact) -> Result<Fact, StorageError> {
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

/// Outcomes in memory. The one that was used longest ago makes room.
#[derive(Default)]
struct Kept {
    /// The most bytes that they take together.
    most: usize,
    /// Those that they take.
    bytes: usize,
    /// How often one was used.
    uses: u64,
    outcomes: HashMap<Digest, KeptOutcome>,
    /// Which was used when, the oldest first.
    by_use: BTreeMap<u64, Digest>,
}

struct KeptOutcome {
    outcome: Arc<Outcome>,
    bytes: usize,
    used: u64,
}

impl Kept {
    fn get(&mut self, digest: &Digest) -> Option<Arc<Outcome>> {
        let kept = self.outcomes.get_mut(digest)?;
        self.uses += 1;
        self.by_use.remove(&std::mem::replace(&mut kept.used, self.uses));
        self.by_use.insert(self.uses, *digest);
        Some(kept.outcome.clone())
    }

    /// Keeps one that is not kept yet. One that is larger than all may be together is not.
    fn insert(&mut self, digest: Digest, outcome: &Arc<Outcome>) {
        let bytes = size(outcome);
        if bytes > self.most {
            return;
        }
        while self.bytes > self.most - bytes
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.bytes -= self.outcomes.remove(&oldest).map_or(0, |kept| kept.bytes);
        }
        self.bytes += bytes;
        self.uses += 1;
        self.by_use.insert(self.uses, digest);
        self.outcomes.insert(digest, KeptOutcome { outcome: outcome.clone(), bytes, used: self.uses });
    }
}

/// About how much memory an outcome takes, in bytes: many times its text, if it is made of small
/// values.
fn size(outcome: &Outcome) -> usize {
    let facts = outcome.facts.iter().map(|fact| {
        let supersedes = fact.supersedes.as_ref().map_or(0, String::len);
        let words = fact.subject.len() + fact.kind.len() + fact.source.len() + supersedes;
        size_of_val(fact) + words + below(&fact.content)
    });
    let files = outcome
        .artifacts
        .iter()
        .map(|file| size_of_val(file) + file.path.len() + file.title.len() + file.media_type.len());
    size_of_val(outcome) + below(&outcome.content) + facts.chain(files).sum::<usize>()
}

/// What lies below a value. Of a list or an object half may be room to grow.
fn below(value: &Value) -> usize {
    /// What a map keeps of an entry beside its key and value: its hash, and its place.
    const ENTRY: usize = 4 * size_of::<usize>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => 2 * size_of_val(items.as_slice()) + items.iter().map(below).sum::<usize>(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| key.len() + below(value));
            2 * map.len() * (size_of::<(String, Value)>() + ENTRY) + entries.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use checkrein_contract::digest::canonical;
    use checkrein_contract::event::FactEntry;
    use checkrein_contract::id::{CallId, FactId};
    use checkrein_contract::port::Tree;
    use serde_json::json;

    use super::*;
    use crate::testing::{Memory, draft};

    /// Blobs that note what was read.
    #[derive(Default)]
    struct Noted {
        inner: Memory,
        read: Mutex<Vec<Digest>>,
    }

    impl Noted {
        /// The outcome with these facts.
        fn with(&self, facts: &[(&str, Value)]) -> Digest {
            let facts = facts.iter().map(|(subject, content)| draft(subject, content.clone()));
            let outcome = json!({ "content": {}, "facts": facts.collect::<Vec<_>>(), "artifacts": [] });
            self.inner.put(canonical(&outcome).as_bytes()).unwrap()
        }

        fn reads(&self) -> Vec<Digest> {
            std::mem::take(&mut self.read.lock().unwrap())
        }
    }

    impl Blobs for Noted {
        fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
            self.inner.put(bytes)
        }

        fn put_from(&self, reader: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
            self.inner.put_from(reader)
        }

        fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
            self.read.lock().unwrap().push(*digest);
            self.inner.get(digest)
        }

        fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
            self.inner.tree(files)
        }
    }

    fn fact(subject: &str, outcome: Digest, index: u32) -> PoolFact {
        let entry = FactEntry {
            id: FactId::new(subject, 1),
            subject: subject.to_owned(),
            version: 1,
            kind: "statistic".to_owned(),
            source: "/in/in.csv".to_owned(),
            level: Level::SelfChecked,
            content: Digest::ZERO,
            index,
        };
        PoolFact { entry, call: CallId::from("r/a/1"), outcome, abandoned: false }
    }

    fn text(length: usize) -> Value {
        json!("x".repeat(length))
    }

    fn kept(contents: &Contents) -> (usize, usize) {
        let kept = contents.kept.lock().unwrap();
        assert!(kept.bytes <= kept.most, "{} of {}", kept.bytes, kept.most);
        assert_eq!(kept.bytes, kept.outcomes.values().map(|one| size(&one.outcome)).sum::<usize>());
        assert_eq!(kept.by_use.len(), kept.outcomes.len());
        (kept.outcomes.len(), kept.bytes)
    }

    #[test]
    fn what_is_kept_stays_below_its_bound_and_is_read_again() {
        let blobs = Arc::new(Noted::default());
        let all: Vec<Digest> =
            (0..10).map(|n| blobs.with(&[("s/a", text(10_000)), ("s/b", json!(n))])).collect();
        let contents = Contents::keeping(blobs.clone(), 35_000);
        for digest in &all {
            let outcome = contents.outcome(digest).unwrap();
            assert_eq!(outcome.facts.len(), 2);
            let _ = kept(&contents);
        }
        assert_eq!((kept(&contents).0, blobs.reads()), (3, all.clone()));
        // The last three are there; the first is not, and is what it was.
        for digest in &all[7..] {
            let _ = contents.outcome(digest).unwrap();
        }
        assert!(blobs.reads().is_empty());
        assert_eq!(contents.outcome(&all[0]).unwrap().facts[1].content, json!(0));
        assert_eq!((kept(&contents).0, blobs.reads()), (3, vec![all[0]]));
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let blobs = Arc::new(Noted::default());
        let [one, two, three] = [1, 2, 3].map(|n| blobs.with(&[("s/a", text(10_000)), ("s/b", json!(n))]));
        let contents = Contents::keeping(blobs.clone(), 25_000);
        for digest in [one, two, one, three] {
            let _ = contents.outcome(&digest).unwrap();
        }
        assert_eq!(blobs.reads(), [one, two, three]);
        let _ = contents.outcome(&one).unwrap();
        assert!(blobs.reads().is_empty(), "it was used after the other");
        let _ = contents.outcome(&two).unwrap();
        assert_eq!((blobs.reads(), kept(&contents).0), (vec![two], 2));
    }

    #[test]
    fn what_is_larger_than_the_bound_is_read_each_time_and_pushes_nothing_out() {
        let blobs = Arc::new(Noted::default());
        let (small, large) = (blobs.with(&[("s/a", json!(1))]), blobs.with(&[("s/a", text(10_000))]));
        let contents = Contents::keeping(blobs.clone(), 5_000);
        for digest in [small, large, large, small] {
            assert_eq!(contents.outcome(&digest).unwrap().facts.len(), 1);
        }
        assert_eq!((blobs.reads(), kept(&contents).0), (vec![small, large, large], 1));
    }

    #[test]
    fn small_values_are_counted_with_what_they_take_in_memory() {
        let of = |content: Value| Outcome { content, facts: Vec::new(), artifacts: Vec::new() };
        let small = of(json!(vec![json!({ "a": 1 }); 1000]));
        let text = serde_json::to_string(&small).unwrap().len();
        assert!(size(&small) > 10 * text, "{} of {text}", size(&small));
        let long = of(self::text(100_000));
        assert!((100_000..101_000).contains(&size(&long)), "{}", size(&long));
    }

    #[test]
    fn a_search_reads_each_outcome_once_though_none_is_kept() {
        let blobs = Arc::new(Noted::default());
        let odd = blobs.with(&[("s/1", json!(1)), ("s/3", json!(3))]);
        let even = blobs.with(&[("s/2", json!(2)), ("s/4", json!(4))]);
        let facts = [fact("s/1", odd, 0), fact("s/2", even, 0), fact("s/3", odd, 1), fact("s/4", even, 1)];
        let view = PoolView::new(&facts, Contents::keeping(blobs.clone(), 0));
        let found: Vec<Value> = view.find("s/", None, 10).into_iter().map(|fact| fact.content).collect();
        assert_eq!(found, [1, 2, 3, 4].map(Value::from));
        assert_eq!(blobs.reads().len(), 2);
        assert!(view.whole().is_ok());
    }

    #[test]
    fn a_fact_that_cannot_be_read_is_not_found_and_the_view_is_not_whole() {
        let blobs = Arc::new(Noted::default());
        let there = blobs.with(&[("s/1", json!(1))]);
        let lost = Digest::of("lost");
        for wrong in [fact("s/2", there, 7), fact("s/2", lost, 0)] {
            let facts = [fact("s/1", there, 0), wrong];
            let view = PoolView::new(&facts, Contents::new(blobs.clone()));
            assert_eq!(view.find("s/", None, 10).len(), 1);
            assert!(view.whole().is_err());
        }
    }
}
