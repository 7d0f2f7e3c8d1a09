//! Reading the events that a run goes on from: they are shown to be what was written on the way.

use std::collections::VecDeque;
use std::panic;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use checkrein_contract::Digest;
use checkrein_contract::event::Logged;
use checkrein_contract::id::RunId;
use rusqlite::Connection;

use crate::chain::{ChainFault, Links, other_kind};
use crate::error::StoreError;
use crate::rows::{self, RawEvent};
use crate::state::State;

impl State {
    /// The events of a run past the one at `seq`, whose digest is `digest` ([`Digest::ZERO`] for all
    /// events), in order, each checked against its own digest and the one before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Broken`] if an event is missing or not what was written, or the event at `seq` has
    /// another digest; else as for [`State::events`]. Events lost at the end cannot be seen.
    pub fn chained_after(&self, run: &RunId, seq: u64, digest: Digest) -> Result<Vec<Logged>, StoreError> {
        let (connection, file) = (self.connection(), self.database());
        let broken = |fault| StoreError::Broken { run: run.clone(), fault };
        if let Some(fault) = anchor(&connection, file, run, seq, digest)? {
            return Err(broken(fault));
        }
        let mut links = Links::new(run, seq, digest);
        thread::scope(|scope| {
            let mut parsing = Parsing { run, batches: VecDeque::new(), parsed: Vec::new() };
            let mut batch = Vec::new();
            rows::scan(&connection, file, run, rows::start(seq), |raw| {
                links.follow(&raw).map_err(broken)?;
                batch.push(raw);
                if batch.len() == BATCH {
                    let full = std::mem::take(&mut batch);
                    parsing.hand_over(|| scope.spawn(move || parse(run, &full)))?;
                }
                Ok(())
            })?;
            parsing.finish(batch)
        })
    }
}

/// How many events another thread parses at a time. Parsing costs more than all else, and fewer
/// events than this are not worth a thread.
const BATCH: usize = 4096;

type Parsed = Result<Vec<Logged>, StoreError>;

/// Batches that are parsed elsewhere while the chain is followed.
struct Parsing<'scope, 'run> {
    run: &'run RunId,
    /// Those in hand, in the order of the log.
    batches: VecDeque<ScopedJoinHandle<'scope, Parsed>>,
    parsed: Vec<Logged>,
}

impl<'scope> Parsing<'scope, '_> {
    fn hand_over(
        &mut self,
        begin: impl FnOnce() -> ScopedJoinHandle<'scope, Parsed>,
    ) -> Result<(), StoreError> {
        let most = thread::available_parallelism().map_or(1, usize::from);
        while self.batches.len() >= most {
            self.take_first()?;
        }
        self.batches.push_back(begin());
        Ok(())
    }

    fn take_first(&mut self) -> Result<(), StoreError> {
        let Some(batch) = self.batches.pop_front() else { return Ok(()) };
        self.parsed.extend(batch.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))?);
        Ok(())
    }

    fn finish(mut self, rest: Vec<RawEvent>) -> Parsed {
        while !self.batches.is_empty() {
            self.take_first()?;
        }
        self.parsed.extend(parse(self.run, &rest)?);
        Ok(self.parsed)
    }
}

fn parse(run: &RunId, batch: &[RawEvent]) -> Parsed {
    batch.iter().map(|raw| parse_one(run, raw)).collect()
}

fn parse_one(run: &RunId, raw: &RawEvent) -> Result<Logged, StoreError> {
    let logged = raw.logged(run)?;
    if raw.kind.as_deref() != Some(logged.event.kind()) {
        let fault = other_kind(raw, logged.event.kind());
        return Err(StoreError::Broken { run: run.clone(), fault });
    }
    Ok(logged)
}

/// What is wrong if the event at `seq` is not the one with this digest.
fn anchor(
    connection: &Connection,
    file: &Path,
    run: &RunId,
    seq: u64,
    digest: Digest,
) -> Result<Option<ChainFault>, StoreError> {
    if seq == 0 {
        return Ok(None);
    }
    Ok(match rows::at(connection, file, run, seq)? {
        Some((_, found)) if found == digest.to_string() => None,
        Some((kind, found)) => {
            let detail = format!("its digest is `{found}`, and {digest} was noted");
            Some(ChainFault::Altered { seq: rows::start(seq), kind, detail })
        }
        None => match rows::last(connection, file, run)? {
            after if after < seq => Some(ChainFault::TailLost { after, expected: digest }),
            _ => Some(ChainFault::Lost { first: seq, last: seq }),
        },
    })
}
