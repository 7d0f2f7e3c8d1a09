//! The events of a file that is being imported, laid aside until all of it is known to be good. They
//! lie there as the columns that the log gets: what is left to do under its lock is to insert them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use checkrein_contract::port::StorageError;

use crate::rows::RawEvent;
use crate::state::make_own;

/// The columns of an event, as the log gets them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) kind: String,
    pub(super) prev: String,
    pub(super) digest: String,
    pub(super) payload: String,
}

impl Row {
    /// `None` if a column does not hold what it should.
    pub(super) fn of(raw: RawEvent) -> Option<Self> {
        let RawEvent { seq, kind, at, prev, digest, payload } = raw;
        let at = i64::try_from(at?.0).ok()?;
        let (prev, digest) = (prev?.to_string(), digest?.to_string());
        Some(Row { seq, at, kind: kind?, prev, digest, payload: payload? })
    }

    /// Two numbers, then each text after its length in bytes.
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Row { seq, at, kind, prev, digest, payload } = self;
        to.write_all(&seq.to_le_bytes())?;
        to.write_all(&at.to_le_bytes())?;
        for text in [kind, prev, digest, payload] {
            to.write_all(&(text.len() as u64).to_le_bytes())?;
            to.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let (seq, at) = (i64::from_le_bytes(eight(from)?), i64::from_le_bytes(eight(from)?));
        let mut text = || {
            let bytes = u64::from_le_bytes(eight(from)?);
            let mut text = String::new();
            if from.take(bytes).read_to_string(&mut text)? as u64 == bytes {
                Ok(text)
            } else {
                Err(io::Error::from(io::ErrorKind::UnexpectedEof))
            }
        };
        Ok(Row { seq, at, kind: text()?, prev: text()?, digest: text()?, payload: text()? })
    }
}

fn eight(from: &mut impl Read) -> io::Result<[u8; 8]> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Rows in a file without a name: it is gone with the process.
pub(super) struct Aside {
    place: PathBuf,
    file: BufWriter<File>,
}

impl Aside {
    pub(super) fn new(folder: &Path) -> Result<Self, StorageError> {
        make_own(folder)?;
        let file = tempfile::tempfile_in(folder).map_err(|error| StorageError::of_io(folder, &error))?;
        Ok(Aside { place: folder.to_owned(), file: BufWriter::new(file) })
    }

    pub(super) fn add(&mut self, row: &Row) -> Result<(), StorageError> {
        row.write(&mut self.file).map_err(|error| StorageError::of_io(&self.place, &error))
    }

    /// Hands the rows to `work`, in the order in which they came.
    pub(super) fn each(
        &mut self,
        mut work: impl FnMut(Row) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let wrong = |error: io::Error| StorageError::of_io(&self.place, &error);
        self.file.flush().and_then(|()| self.file.rewind()).map_err(wrong)?;
        let mut from = BufReader::new(self.file.get_ref());
        while !from.fill_buf().map_err(wrong)?.is_empty() {
            work(Row::read(&mut from).map_err(wrong)?)?;
        }
        Ok(())
    }
}
