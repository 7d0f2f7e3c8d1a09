//! Reading the file.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::id::RunId;
use checkrein_contract::port::{Beat, Blobs, StorageError};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::Deserialize;

use super::aside::{Aside, Row};
use super::ustar::{Reader, SIZE_MAX};
use super::walk::{Amiss, TAKEN_MAX, Walk, files};
use super::{
    CONTENTS, CONTENTS_MAX, Contents, EVENTS, EVENTS_MAX, Imported, LINE_MAX, LIST_MAX, Line, Listed,
    RUN_MAX, SCHEMA, blob_name, fault, is_run, line_name,
};
use crate::connection;
use crate::error::{StoreError, of_sqlite};
use crate::failpoint;
use crate::rows::{self, START, integer};
use crate::state::State;

impl State {
    /// Reads a run from one file that [`State::export`] wrote, and keeps it. With `expected`, the
    /// digest of the file must be that: nothing else tells a forgery of all of it. Nothing of the
    /// run is stored unless all of the file is good; blobs may be. The run may be here already, if
    /// it is the same.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoExport`] if the file is not as it was written, [`StoreError::OtherEvents`] if
    /// another run of this name is here; others if the file cannot be read or the state not written.
    pub fn import(&self, from: &mut dyn Read, expected: Option<Digest>) -> Result<Imported, StoreError> {
        let mut file = Reader::new(from);
        let contents = read_contents(&mut file)?;
        let mut aside = Aside::new(&self.dir().join("scratch"))?;
        let walk = read_events(&mut file, &contents, &mut aside)?;
        for blob in &contents.blobs {
            self.read_blob(blob, &mut file)?;
        }
        let digest = file.finish()?;
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let (expected, found) = (format!("the digest {expected}"), format!("the digest {digest}"));
            return Err(fault("all of it", expected, found));
        }
        self.check_folders(&contents, &walk)?;
        let fresh = self.keep(&contents, &walk, &mut aside)?;
        let Contents { run, head, events, blobs, .. } = contents;
        Ok(Imported { run, events, blobs: blobs.len() as u64, head, digest, fresh })
    }

    fn read_blob(&self, blob: &Listed, file: &mut Reader<'_>) -> Result<(), StoreError> {
        let name = blob_name(&blob.digest);
        file.exactly(&name, blob.bytes)?;
        let put = self.blobs().put_if(&mut file.body(&name, blob.bytes), Some(&blob.digest));
        let (found, _) = put.map_err(|error| file.why(error.into()))?;
        if found != blob.digest {
            return Err(fault(format!("`{name}`"), "content with the digest of its name", found));
        }
        file.end(&name, blob.bytes)
    }

    /// Whether every file of every folder that the events saw is in the archive.
    fn check_folders(&self, contents: &Contents, walk: &Walk) -> Result<(), StoreError> {
        for (list, who) in &walk.lists {
            let name = format!("`{}`", blob_name(list));
            let size = contents.blob(list).map_or(0, |blob| blob.bytes);
            if size > LIST_MAX {
                return Err(fault(name, format!("at most {LIST_MAX} bytes"), size));
            }
            let files =
                files(&self.blobs().get(list)?).map_err(|error| fault(name, "a list of files", error))?;
            for file in files {
                require(contents, &file, &format!("a folder of {who}"))?;
            }
        }
        Ok(())
    }

    /// Puts the events into the log, as they are; `false` if they are there already. All other runs
    /// wait for the lock for writing: while it is held, nothing is done but that.
    fn keep(&self, contents: &Contents, walk: &Walk, aside: &mut Aside) -> Result<bool, StoreError> {
        let (file, run) = (self.database(), &contents.run);
        let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
        let mut connection = connection::writable(file, self.options().wait)?;
        loop {
            if is_here(&connection, file, contents, aside)? {
                return Ok(false);
            }
            let change =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
            if rows::head(&change, file, run)?.0 > 0 {
                // Another process was faster; what it wrote is compared without the lock.
                continue;
            }
            let mut insert = change.prepare(rows::INSERT).map_err(wrong)?;
            aside.each(|Row { seq, at, kind, prev, digest, payload }| {
                let row = params![run.as_str(), seq, kind, at, prev, digest, payload];
                insert.execute(row).map(drop).map_err(wrong)
            })?;
            drop(insert);
            count_on(&change, file, run, walk)?;
            failpoint::reach("import", "before-commit");
            change.commit().map_err(wrong)?;
            failpoint::reach("import", "after-commit");
            return Ok(true);
        }
    }
}

/// The first entry.
fn read_contents(file: &mut Reader<'_>) -> Result<Contents, StoreError> {
    let size = file.sized(CONTENTS, CONTENTS_MAX)?;
    let mut text = Vec::new();
    let read = file.body(CONTENTS, size).read_to_end(&mut text);
    read.map_err(|error| file.why(unread(&error)))?;
    file.end(CONTENTS, size)?;
    let place = format!("`{CONTENTS}`");
    let no_json = |error: serde_json::Error| fault(&*place, "the contents of an export", error);
    // A later schema may have other fields, and is to be told by its name.
    let Opening { schema } = serde_json::from_slice(&text).map_err(no_json)?;
    if schema != SCHEMA {
        return Err(fault(place, format!("the schema `{SCHEMA}`"), format!("`{schema}`")));
    }
    let contents: Contents = serde_json::from_slice(&text).map_err(no_json)?;
    if contents.to_text().map_err(no_json)?.as_bytes() != text {
        return Err(fault(place, "the form that checkrein writes", "another"));
    }
    check_contents(&contents, &place)?;
    Ok(contents)
}

#[derive(Deserialize)]
struct Opening {
    schema: String,
}

fn check_contents(contents: &Contents, place: &str) -> Result<(), StoreError> {
    if !is_run(&contents.run) {
        let expected =
            format!("a run whose id is letters, digits, `.`, `_` and `-`, at most {RUN_MAX} of them");
        return Err(fault(place, expected, format!("`{}`", contents.run)));
    }
    if contents.events == 0 {
        return Err(fault(place, "at least one event", "none"));
    }
    for pair in contents.blobs.windows(2) {
        if let [one, next] = pair
            && one.digest >= next.digest
        {
            let found = format!("{} after {}", next.digest, one.digest);
            return Err(fault(place, "each blob once, in the order of their digests", found));
        }
    }
    match contents.blobs.iter().find(|blob| blob.bytes > SIZE_MAX) {
        Some(large) => Err(fault(place, format!("at most {SIZE_MAX} bytes a blob"), large.bytes)),
        None => Ok(()),
    }
}

/// The second entry: its events are checked, and laid aside until all is known to be good.
fn read_events(file: &mut Reader<'_>, contents: &Contents, aside: &mut Aside) -> Result<Walk, StoreError> {
    let size = file.sized(EVENTS, EVENTS_MAX)?;
    let mut walk = Walk::new(&contents.run, TAKEN_MAX);
    let walked = go(&mut BufReader::new(file.body(EVENTS, size)), &mut walk, aside);
    walked.map_err(|error| file.why(error))?;
    file.end(EVENTS, size)?;
    let ((events, head), found) = ((contents.events, contents.head), walk.head());
    if (events, head) != found {
        let expected = format!("{events} events, the last with the digest {head}");
        return Err(fault(format!("`{EVENTS}`"), expected, format_args!("{} and {}", found.0, found.1)));
    }
    for (digest, who) in &walk.named {
        require(contents, digest, who)?;
    }
    Ok(walk)
}

/// Walks along the lines, and lays them aside.
fn go(from: &mut impl BufRead, walk: &mut Walk, aside: &mut Aside) -> Result<(), StoreError> {
    let mut text = Vec::new();
    while next_line(from, &mut text).map_err(|error| unread(&error))? {
        let place = line_name(walk.head().0 + 1);
        if !text.ends_with(b"\n") {
            let expected = format!("a line that ends, after {LINE_MAX} bytes at most");
            return Err(fault(place, expected, "one that does not"));
        }
        let no_line = |error: serde_json::Error| fault(&*place, "an event as JSON", error);
        let line: Line = serde_json::from_slice(&text).map_err(no_line)?;
        if line.to_text().map_err(no_line)?.as_bytes() != text {
            return Err(fault(place, "the form that checkrein writes", "another"));
        }
        let raw =
            line.into_raw().ok_or_else(|| fault(&*place, "numbers that a log can hold", "larger ones"))?;
        walk.follow(&raw).map_err(|amiss| match amiss {
            Amiss::Chain(broken) => fault(&*place, "the next event of the chain", broken),
            Amiss::Unreadable(detail) => fault(&*place, "an event that this checkrein can read", detail),
        })?;
        let row = Row::of(raw).ok_or_else(|| fault(&*place, "a whole event", "one that lacks a column"))?;
        aside.add(&row)?;
    }
    Ok(())
}

/// Reads a line, or the beginning of one that is too long; `false` if there is none.
fn next_line(from: &mut impl BufRead, text: &mut Vec<u8>) -> std::io::Result<bool> {
    text.clear();
    Ok(from.take(LINE_MAX).read_until(b'\n', text)? > 0)
}

/// The blob must be in the archive.
fn require(contents: &Contents, digest: &Digest, who: &str) -> Result<(), StoreError> {
    if contents.blob(digest).is_some() {
        return Ok(());
    }
    let expected = format!("blob {digest}, which {who} names");
    Err(fault(format!("the blobs of `{CONTENTS}`"), expected, "none such"))
}

fn unread(error: &std::io::Error) -> StoreError {
    let place = "the file that was to be imported".to_owned();
    StorageError::Other { place, detail: error.to_string() }.into()
}

/// Whether the run is here already; it must be the same.
fn is_here(
    connection: &Connection,
    database: &Path,
    contents: &Contents,
    aside: &mut Aside,
) -> Result<bool, StoreError> {
    match rows::head(connection, database, &contents.run)? {
        (0, _) => Ok(false),
        here if here == (contents.events, contents.head) => Ok(true),
        _ => {
            let detail = differs(connection, database, contents, aside)?;
            Err(StoreError::OtherEvents { run: contents.run.clone(), detail })
        }
    }
}

/// How the run that is here is not the one in the file.
fn differs(
    connection: &Connection,
    database: &Path,
    contents: &Contents,
    aside: &mut Aside,
) -> Result<String, StoreError> {
    let mut here = Vec::new();
    rows::scan(connection, database, &contents.run, START, |raw| {
        here.push(raw.digest);
        Ok(())
    })?;
    let (mut rows, mut same, mut parted) = (here.iter(), 0_u64, false);
    aside.each(|row| {
        parted |=
            rows.next().and_then(|digest| *digest).is_none_or(|digest| digest.to_string() != row.digest);
        same += u64::from(!parted);
        Ok(())
    })?;
    let counts = format!("{} events here, {} in the file", here.len(), contents.events);
    Ok(match same {
        0 => format!("{counts}, and none is the same"),
        same => format!("{counts}, and only the first {same} are the same"),
    })
}

/// The run knows by number which letter was its last, and which right to drive it. Those that it is
/// given here must have larger ones: it passes over letters up to its last.
fn count_on(change: &Transaction<'_>, file: &Path, run: &RunId, walk: &Walk) -> Result<(), StorageError> {
    let wrong = |error: rusqlite::Error| of_sqlite(file, &error);
    if walk.letter > 0 {
        let letter = integer(walk.letter).map_err(wrong)?;
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'inbox'";
        if change.execute(raise, [letter]).map_err(wrong)? == 0 {
            let begin = "INSERT INTO sqlite_sequence (name, seq) VALUES ('inbox', ?1)";
            change.execute(begin, [letter]).map_err(wrong)?;
        }
    }
    if let Some((epoch, holder)) = &walk.lease {
        let told = serde_json::to_string(&Beat::default()).map_err(|error| StorageError::Other {
            place: format!("the lease of run {run}"),
            detail: error.to_string(),
        })?;
        let lease = params![run.as_str(), integer(*epoch).map_err(wrong)?, holder, told];
        let begin = "INSERT OR IGNORE INTO lease (run, epoch, holder, beat, told) VALUES (?1, ?2, ?3, 0, ?4)";
        change.execute(begin, lease).map_err(wrong)?;
    }
    Ok(())
}
