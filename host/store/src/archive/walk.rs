//! A walk along the events of an archive: the same for what is written and for what is read.

use std::collections::BTreeMap;

use checkrein_contract::Digest;
use checkrein_contract::event::Event;
use checkrein_contract::id::RunId;
use checkrein_contract::record::{FolderFile, Record};

use crate::chain::{ChainFault, Links, other_kind};
use crate::rows::RawEvent;

/// The largest number of a letter or an epoch that an export holds: past it JSON of others rounds.
pub(super) const NUMBER_MAX: u64 = 1 << 53;

/// The largest that an import takes over. All runs that are here count on from it, and what they come
/// to must still be one that an export holds.
pub(super) const TAKEN_MAX: u64 = 1 << 40;

/// The events up to some position, each of which was found good.
pub(super) struct Walk {
    chain: Links,
    /// The largest number of a letter or an epoch that is accepted.
    most: u64,
    /// Each blob that they name, with who does first.
    pub(super) named: BTreeMap<Digest, String>,
    /// Those of them that list the files of a folder, which are blobs too.
    pub(super) lists: BTreeMap<Digest, String>,
    /// The last letter that was taken from the inbox.
    pub(super) letter: u64,
    /// The last right to drive the run, and who had it.
    pub(super) lease: Option<(u64, String)>,
}

/// Why the walk does not go on.
pub(super) enum Amiss {
    /// The event is not what was written, or not the next.
    Chain(ChainFault),
    /// This version cannot read it.
    Unreadable(String),
}

impl Walk {
    /// Begins before the first event. `most` is the largest number that a letter or an epoch may have.
    pub(super) fn new(run: &RunId, most: u64) -> Self {
        Walk {
            chain: Links::new(run, 0, Digest::ZERO),
            most,
            named: BTreeMap::new(),
            lists: BTreeMap::new(),
            letter: 0,
            lease: None,
        }
    }

    /// How many events were found good, and the digest of the last.
    pub(super) fn head(&self) -> (u64, Digest) {
        (self.chain.seq(), self.chain.head())
    }

    /// Goes on to the event, if it is the next of the chain and one that this version can read.
    pub(super) fn follow(&mut self, raw: &RawEvent) -> Result<(), Amiss> {
        let digest = self.chain.check(raw).map_err(Amiss::Chain)?;
        let payload = raw.payload.as_deref().unwrap_or_default();
        let read: Result<Event, _> = serde_json::from_str(payload);
        let event = read.map_err(|error| Amiss::Unreadable(error.to_string()))?;
        if raw.kind.as_deref() != Some(event.kind()) {
            return Err(Amiss::Chain(other_kind(raw, event.kind())));
        }
        self.note(&event, &format!("event {} (`{}`)", raw.seq, event.kind()))?;
        self.chain.accept(digest);
        Ok(())
    }

    fn note(&mut self, event: &Event, who: &str) -> Result<(), Amiss> {
        for digest in event.blobs() {
            self.named.entry(digest).or_insert_with(|| who.to_owned());
        }
        for digest in lists(event) {
            self.lists.entry(digest).or_insert_with(|| who.to_owned());
        }
        match event {
            Event::LetterTaken { letter, .. } => self.letter = self.letter.max(self.number(*letter)?),
            Event::LeaseTaken { epoch, holder } => self.lease = Some((self.number(*epoch)?, holder.clone())),
            _ => {}
        }
        Ok(())
    }

    fn number(&self, found: u64) -> Result<u64, Amiss> {
        if found <= self.most {
            return Ok(found);
        }
        let most = self.most;
        Err(Amiss::Unreadable(format!(
            "a letter or an epoch has the number {found}, and the largest is {most}"
        )))
    }
}

/// The content of the files that a list names.
pub(crate) fn files(list: &[u8]) -> Result<Vec<Digest>, serde_json::Error> {
    let files: Vec<FolderFile> = serde_json::from_slice(list)?;
    Ok(files.into_iter().filter_map(|file| file.digest).collect())
}

/// The lists of files of folders that an event names.
pub(crate) fn lists(event: &Event) -> impl Iterator<Item = Digest> + '_ {
    let folders = records(event).into_iter().flat_map(|record| &record.folders);
    folders.filter_map(|folder| folder.files)
}

fn records(event: &Event) -> Vec<&Record> {
    match event {
        Event::CallEnded { record, .. }
        | Event::VerdictGiven { record, .. }
        | Event::RemedyGiven { record, .. } => vec![record],
        Event::SkillsAssessed { assessed, .. } => assessed.iter().map(|one| &one.record).collect(),
        _ => Vec::new(),
    }
}
