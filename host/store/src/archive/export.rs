//! Writing the file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::id::RunId;
use checkrein_contract::port::{Blobs, StorageError};
use rusqlite::Connection;

use super::ustar::{SIZE_MAX, Writer};
use super::walk::{Amiss, NUMBER_MAX, Walk, files};
use super::{
    CONTENTS, CONTENTS_MAX, Contents, EVENTS, EVENTS_MAX, Exported, LINE_MAX, LIST_MAX, Line, Listed, SCHEMA,
    blob_name, is_run,
};
use crate::error::{StoreError, of_sqlite};
use crate::rows::{self, RawEvent, START};
use crate::state::State;

impl State {
    /// Writes a run into one file: its events, every blob that they name, every file of the folders
    /// that they saw, and the blobs in `extra`. The same run gives the same bytes. The chain is
    /// checked before anything is written, each blob while it is written.
    ///
    /// # Errors
    ///
    /// If there is no such run, its events or a blob are not what they were, or `into` cannot be
    /// written. What was written by then is no export.
    pub fn export(
        &self,
        run: &RunId,
        extra: &[Digest],
        into: &mut dyn Write,
    ) -> Result<Exported, StoreError> {
        let mut file = Writer::new(into);
        let Some(contents) = self.write_log(run, extra, &mut file)? else {
            let known = self.runs()?.into_iter().map(|summary| summary.run).collect();
            return Err(StoreError::NoRun { wanted: run.to_string(), known });
        };
        for blob in &contents.blobs {
            self.write_blob(blob, &mut file)?;
        }
        let (digest, bytes) = file.finish()?;
        let Contents { events, head, .. } = contents;
        Ok(Exported { digest, bytes, events, blobs: contents.blobs.len() as u64, head })
    }

    /// Writes what comes before the blobs; `None` if there is no such run.
    fn write_log(
        &self,
        run: &RunId,
        extra: &[Digest],
        file: &mut Writer<'_>,
    ) -> Result<Option<Contents>, StoreError> {
        let connection = self.connection();
        // One transaction: whatever is appended meanwhile, the same events are seen twice.
        let view = connection.unchecked_transaction().map_err(|error| of_sqlite(self.database(), &error))?;
        let (walk, bytes) = survey(&view, self.database(), run)?;
        let (events, head) = walk.head();
        if events == 0 {
            return Ok(None);
        }
        if !is_run(run) {
            let detail = "the id of the run is no name of a folder".to_owned();
            return Err(StorageError::Other { place: format!("{:?}", run.as_str()), detail }.into());
        }
        let blobs = self.listed(&walk, extra)?;
        let contents = Contents { schema: SCHEMA.to_owned(), run: run.clone(), head, events, blobs };
        let text = contents.to_text().map_err(|error| unwritable(CONTENTS, &error))?;
        bounded(CONTENTS, text.len() as u64, CONTENTS_MAX)?;
        file.entry(CONTENTS, text.as_bytes())?;
        file.begin(EVENTS, bytes)?;
        rows::scan(&view, self.database(), run, START, |raw| Ok(file.put(line(run, raw)?.as_bytes())?))?;
        file.end(bytes)?;
        Ok(Some(contents))
    }

    /// The blobs that the file has to hold, with their sizes.
    fn listed(&self, walk: &Walk, extra: &[Digest]) -> Result<Vec<Listed>, StoreError> {
        let mut wanted: BTreeMap<Digest, String> = walk.named.clone();
        for (list, who) in &walk.lists {
            let size = self.size(list, who)?;
            bounded(&named(list, who), size, LIST_MAX)?;
            let bytes = self.blobs().get(list).map_err(|error| at(error, list, who))?;
            let files = files(&bytes).map_err(|error| StorageError::Damaged {
                place: named(list, who),
                detail: format!("it is no list of files: {error}"),
            })?;
            for file in files {
                wanted.entry(file).or_insert_with(|| format!("a folder of {who}"));
            }
        }
        for digest in extra {
            wanted.entry(*digest).or_insert_with(|| "the command".to_owned());
        }
        let sized = wanted.iter().map(|(digest, who)| {
            let bytes = bounded(&named(digest, who), self.size(digest, who)?, SIZE_MAX)?;
            Ok(Listed { digest: *digest, bytes })
        });
        sized.collect()
    }

    fn size(&self, digest: &Digest, who: &str) -> Result<u64, StoreError> {
        let path = self.blobs().path(digest);
        let found = path.metadata().map_err(|error| at(StorageError::of_io(&path, &error), digest, who))?;
        Ok(found.len())
    }

    fn write_blob(&self, blob: &Listed, file: &mut Writer<'_>) -> Result<(), StoreError> {
        file.begin(&blob_name(&blob.digest), blob.bytes)?;
        let bytes = self.blobs().write_to(&blob.digest, file)?;
        if bytes != blob.bytes {
            let detail = format!("it had {} bytes before, and has {bytes} now", blob.bytes);
            return Err(StorageError::Damaged { place: format!("blob {}", blob.digest), detail }.into());
        }
        Ok(file.end(bytes)?)
    }
}

/// Walks along the events, and says how many bytes they come to.
fn survey(view: &Connection, database: &Path, run: &RunId) -> Result<(Walk, u64), StoreError> {
    let (mut walk, mut bytes) = (Walk::new(run, NUMBER_MAX), 0);
    rows::scan(view, database, run, START, |raw| {
        walk.follow(&raw).map_err(|amiss| match amiss {
            Amiss::Chain(fault) => StoreError::Broken { run: run.clone(), fault },
            Amiss::Unreadable(detail) => {
                let kind = raw.kind.clone().unwrap_or_default();
                StoreError::Unreadable { run: run.clone(), seq: raw.seq, kind, detail }
            }
        })?;
        let place = format!("event {} of run {run}", raw.seq);
        bytes += bounded(&place, line(run, raw)?.len() as u64, LINE_MAX)?;
        Ok(())
    })?;
    Ok((walk, bounded(&format!("the log of run {run}"), bytes, EVENTS_MAX)?))
}

/// The line of a row that was found good.
fn line(run: &RunId, raw: RawEvent) -> Result<String, StorageError> {
    let place = format!("event {} of run {run}", raw.seq);
    let none = || StorageError::Damaged { place: place.clone(), detail: "a column of it is none".to_owned() };
    let line = Line::of(raw).ok_or_else(none)?;
    line.to_text().map_err(|error| unwritable(&place, &error))
}

/// The fault of a blob, with who names it.
fn at(error: StorageError, digest: &Digest, who: &str) -> StorageError {
    let place = named(digest, who);
    match error {
        StorageError::Missing { .. } => StorageError::Missing { place },
        StorageError::Damaged { detail, .. } => StorageError::Damaged { place, detail },
        other => other,
    }
}

fn named(digest: &Digest, who: &str) -> String {
    format!("blob {digest}, named by {who},")
}

/// The size, if an export may hold something of it.
fn bounded(place: &str, size: u64, most: u64) -> Result<u64, StorageError> {
    if size <= most {
        return Ok(size);
    }
    let detail = format!("it has {size} bytes, and an export holds at most {most} of it");
    Err(StorageError::Other { place: place.to_owned(), detail })
}

fn unwritable(place: &str, error: &serde_json::Error) -> StorageError {
    StorageError::Other { place: place.to_owned(), detail: error.to_string() }
}
