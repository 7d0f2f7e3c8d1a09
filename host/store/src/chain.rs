//! The chain of a run's events: each carries the digest of the one before it.

use std::fmt;

use checkrein_contract::Digest;
use checkrein_contract::id::{RunId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::rows::RawEvent;

/// What is wrong with the chain; only the first fault is named, since all after it rests on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// The event is not what was written.
    Altered {
        /// Its position.
        seq: i64,
        /// What the log calls it.
        kind: String,
        /// What shows it.
        detail: String,
    },
    /// Events are missing between two others, or before the first.
    Lost {
        /// The position of the first that is missing.
        first: u64,
        /// The position of the last that is missing.
        last: u64,
    },
    /// The event was written at another position.
    Reordered {
        /// Where it stands.
        seq: u64,
        /// What the log calls it.
        kind: String,
        /// Where it was written.
        from: u64,
    },
    /// No event has the head digest that was given: events were lost at the end, or all replaced.
    TailLost {
        /// The position of the last event that stands in the log; 0 is none.
        after: u64,
        /// The head digest that was given.
        expected: Digest,
    },
}

/// A walk along the chain, from some event on.
pub(crate) struct Links {
    /// What the text that a digest is over begins with.
    opening: String,
    /// The position of the last event that was found good.
    seq: u64,
    /// Its digest.
    head: Digest,
}

impl Links {
    /// Begins after the event at `seq`, which has the digest `head`.
    pub(crate) fn new(run: &RunId, seq: u64, head: Digest) -> Self {
        let opening = format!("[{},", serde_json::Value::from(run.as_str()));
        Links { opening, seq, head }
    }

    /// The position of the last event that was found good.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Its digest.
    pub(crate) fn head(&self) -> Digest {
        self.head
    }

    /// Goes on to this event, if it is the next of the chain and what was written.
    pub(crate) fn follow(&mut self, raw: &RawEvent) -> Result<(), ChainFault> {
        let digest = self.check(raw)?;
        self.accept(digest);
        Ok(())
    }

    /// The digest of the event, if it is the next of the chain and what was written. Its kind, which
    /// no digest covers, is not looked at.
    pub(crate) fn check(&self, raw: &RawEvent) -> Result<Digest, ChainFault> {
        let next = self.seq + 1;
        let altered = |detail: &str| altered(raw.seq, raw.kind.as_deref().unwrap_or_default(), detail);
        let seq = u64::try_from(raw.seq).ok().filter(|seq| *seq >= next);
        let seq = seq.ok_or_else(|| altered("the log has no such position"))?;
        if seq > next {
            return Err(ChainFault::Lost { first: next, last: seq - 1 });
        }
        let at = raw.at.ok_or_else(|| altered("its time is none"))?;
        let prev = raw.prev.ok_or_else(|| altered("the digest before it is none"))?;
        let stored = raw.digest.ok_or_else(|| altered("its digest is none"))?;
        let payload = raw.payload.as_deref().ok_or_else(|| altered("its payload is no text"))?;
        if self.digest(seq, at, &prev, payload) != stored {
            return Err(altered("time, digest before it or payload do not give its digest"));
        }
        if prev != self.head {
            // Its digest covers its position, so it was made for this one, but after another event.
            return Err(altered("it was made after another event than the one that stands before it"));
        }
        Ok(stored)
    }

    /// Notes that the next event has this digest.
    pub(crate) fn accept(&mut self, digest: Digest) {
        (self.seq, self.head) = (self.seq + 1, digest);
    }

    /// How many bytes at most the [`digest`](Self::digest) of an event with this payload is taken over.
    pub(crate) fn hashed(&self, payload: &str) -> u64 {
        // Two numbers of 20 digits, a digest, what stands between them, and the padding of SHA-256.
        const REST: usize = 256;
        (self.opening.len() + payload.len() + REST) as u64
    }

    /// What [`checkrein_contract::event::chain`] gives, without a copy of the payload.
    pub(crate) fn digest(&self, seq: u64, at: Timestamp, prev: &Digest, payload: &str) -> Digest {
        let mut head = self.opening.clone();
        head.push_str(&seq.to_string());
        head.push(',');
        head.push_str(&at.0.to_string());
        head.push_str(",\"sha256:");
        for byte in prev.as_bytes() {
            head.push(char::from(HEX[usize::from(byte >> 4)]));
            head.push(char::from(HEX[usize::from(byte & 15)]));
        }
        head.push_str("\"]\n");
        let mut hasher = Sha256::new();
        hasher.update(head);
        hasher.update(payload);
        Digest::from_bytes(hasher.finalize().into())
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The fault of an event whose payload says that it is another one.
pub(crate) fn other_kind(raw: &RawEvent, named: &str) -> ChainFault {
    altered(raw.seq, raw.kind.as_deref().unwrap_or_default(), &named_otherwise(named))
}

fn named_otherwise(named: &str) -> String {
    format!("its kind is that of another event: its payload says `{named}`")
}

fn altered(seq: i64, kind: &str, detail: &str) -> ChainFault {
    ChainFault::Altered { seq, kind: kind.to_owned(), detail: detail.to_owned() }
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainFault::Altered { seq, kind, detail } => {
                write!(f, "event {seq} (`{kind}`) was altered: {detail}")
            }
            ChainFault::Lost { first, last } if first == last => write!(f, "event {first} was lost"),
            ChainFault::Lost { first, last } => write!(f, "events {first} to {last} were lost"),
            ChainFault::Reordered { seq, kind, from } => {
                write!(f, "event {seq} (`{kind}`) was reordered: it was written as event {from}")
            }
            ChainFault::TailLost { after, expected } => {
                write!(f, "events after {after} were lost: none that is there has the head {expected}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_digest_is_the_contracts(run in ".*", seq: u64, at: u64, prev: [u8; 32], payload in ".*") {
            let (run, at, prev) = (RunId::from(run), Timestamp(at), Digest::from_bytes(prev));
            let digest = Links::new(&run, 0, Digest::ZERO).digest(seq, at, &prev, &payload);
            prop_assert_eq!(digest, checkrein_contract::event::chain(&run, seq, at, &prev, &payload));
        }
    }
}
