//! The one form of tar that an archive has: regular files with headers of the ustar format that say
//! nothing but name and size. It is read by making the header again and comparing, so there are no
//! links, no folders, no extensions, and no two ways to write the same file.

use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::port::StorageError;
use sha2::{Digest as _, Sha256};

use super::fault;
use crate::error::StoreError;

const BLOCK: usize = 512;

/// The largest file: its size has eleven octal digits.
pub(super) const SIZE_MAX: u64 = (1 << 33) - 1;

const NAME: usize = 100;
const SIZE: (usize, usize) = (124, 135);
const CHECKSUM: (usize, usize) = (148, 156);
const KIND: usize = 156;

/// The header of a file. The name has at most 100 bytes, the size is at most [`SIZE_MAX`].
pub(super) fn header(name: &str, size: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    put(&mut block, 0, name);
    put(&mut block, 100, "0000644\0");
    put(&mut block, 108, "0000000\0");
    put(&mut block, 116, "0000000\0");
    put(&mut block, SIZE.0, &format!("{size:011o}\0"));
    put(&mut block, 136, "00000000000\0");
    block[KIND] = b'0';
    put(&mut block, 257, "ustar\x0000");
    put(&mut block, 329, "0000000\0");
    put(&mut block, 337, "0000000\0");
    seal(&mut block);
    block
}

/// Sets the checksum: the sum of all bytes, with spaces in its own place.
pub(super) fn seal(block: &mut [u8; BLOCK]) {
    block[CHECKSUM.0..CHECKSUM.1].fill(b' ');
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    put(block, CHECKSUM.0, &format!("{sum:06o}\0"));
}

fn put(block: &mut [u8; BLOCK], at: usize, text: &str) {
    for (to, from) in block[at..].iter_mut().zip(text.bytes()) {
        *to = from;
    }
}

/// How many zero bytes follow a file of this size.
fn padding(size: u64) -> usize {
    let over = (size % BLOCK as u64) as usize;
    if over == 0 { 0 } else { BLOCK - over }
}

/// Writes entries, and takes the digest of all of it.
pub(super) struct Writer<'a> {
    into: BufWriter<&'a mut dyn Write>,
    hasher: Sha256,
    bytes: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(into: &'a mut dyn Write) -> Self {
        Writer { into: BufWriter::new(into), hasher: Sha256::new(), bytes: 0 }
    }

    /// Begins a file of this size; as many bytes are to be written, then its [`end`](Self::end).
    pub(super) fn begin(&mut self, name: &str, size: u64) -> Result<(), StorageError> {
        self.put(&header(name, size))
    }

    /// Writes a whole file.
    pub(super) fn entry(&mut self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        self.begin(name, bytes.len() as u64)?;
        self.put(bytes)?;
        self.end(bytes.len() as u64)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.write_all(bytes).map_err(|error| unwritten(&error))
    }

    pub(super) fn end(&mut self, size: u64) -> Result<(), StorageError> {
        self.put(&[0; BLOCK][..padding(size)])
    }

    /// Ends the archive; digest and size of all of it.
    pub(super) fn finish(mut self) -> Result<(Digest, u64), StorageError> {
        self.put(&[0; 2 * BLOCK])?;
        self.flush().map_err(|error| unwritten(&error))?;
        Ok((Digest::from_bytes(self.hasher.finalize().into()), self.bytes))
    }
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.into.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

fn unwritten(error: &io::Error) -> StorageError {
    StorageError::of_io(Path::new("the file to export to"), error)
}

/// Reads entries, and takes the digest of all of it.
pub(super) struct Reader<'a> {
    from: &'a mut dyn Read,
    hasher: Sha256,
    bytes: u64,
    /// Why reading a [`Body`] failed; the error that its reader gives may be another's to word.
    fault: Option<StoreError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(from: &'a mut dyn Read) -> Self {
        Reader { from, hasher: Sha256::new(), bytes: 0, fault: None }
    }

    /// The header of the file that must come next, of whatever size up to `most`; its size.
    pub(super) fn sized(&mut self, name: &str, most: u64) -> Result<u64, StoreError> {
        let block = self.header(name)?;
        let size = size(&block).unwrap_or(0);
        compare(&block, name, size)?;
        if size > most {
            return Err(fault(at(name), format!("at most {most} bytes"), size));
        }
        Ok(size)
    }

    /// The header of the file that must come next, of this size.
    pub(super) fn exactly(&mut self, name: &str, size: u64) -> Result<(), StoreError> {
        let block = self.header(name)?;
        compare(&block, name, size)
    }

    /// What is in the file whose header was read. It must be read to its end, and then the
    /// [`end`](Self::end) of the file.
    pub(super) fn body(&mut self, name: &str, size: u64) -> Body<'_, 'a> {
        Body { file: self, name: name.to_owned(), left: size }
    }

    pub(super) fn end(&mut self, name: &str, size: u64) -> Result<(), StoreError> {
        let mut block = [0; BLOCK];
        let rest = &mut block[..padding(size)];
        self.fill(rest, name)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(fault(format!("the bytes after {}", at(name)), "zeros", "others"));
        }
        Ok(())
    }

    /// The end of the archive; the digest of all of it.
    pub(super) fn finish(mut self) -> Result<Digest, StoreError> {
        let place = "the end of the file";
        let mut blocks = [0; 2 * BLOCK];
        self.fill(&mut blocks, place)?;
        if blocks.iter().any(|byte| *byte != 0) {
            let expected = format!("{} zero bytes after the last blob", 2 * BLOCK);
            return Err(fault(place, expected, "another entry, or other bytes"));
        }
        if self.some(&mut [0])? > 0 {
            return Err(fault(place, format!("nothing after byte {}", self.bytes - 1), "more"));
        }
        Ok(Digest::from_bytes(self.hasher.finalize().into()))
    }

    /// Why reading a [`Body`] failed: what was noted, else `otherwise`.
    pub(super) fn why(&mut self, otherwise: StoreError) -> StoreError {
        self.fault.take().unwrap_or(otherwise)
    }

    fn header(&mut self, name: &str) -> Result<[u8; BLOCK], StoreError> {
        let mut block = [0; BLOCK];
        self.fill(&mut block, name)?;
        Ok(block)
    }

    fn fill(&mut self, buffer: &mut [u8], name: &str) -> Result<(), StoreError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.some(&mut buffer[filled..])? {
                0 => return Err(self.ended(name)),
                read => filled += read,
            }
        }
        Ok(())
    }

    /// Reads some bytes; none is the end.
    fn some(&mut self, buffer: &mut [u8]) -> Result<usize, StoreError> {
        loop {
            match self.from.read(buffer) {
                Ok(read) => {
                    self.hasher.update(&buffer[..read]);
                    self.bytes += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = format!("the file that was to be imported, at byte {}", self.bytes);
                    return Err(StorageError::Other { place, detail: error.to_string() }.into());
                }
            }
        }
    }

    fn ended(&self, name: &str) -> StoreError {
        fault(at(name), "more bytes", format_args!("the end of the file after byte {}", self.bytes))
    }
}

/// What is in one file of the archive.
pub(super) struct Body<'r, 'a> {
    file: &'r mut Reader<'a>,
    name: String,
    left: u64,
}

impl Body<'_, '_> {
    /// An end of the archive before that of the file is a fault: else it would be kept as whole.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, StoreError> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = self.file.some(&mut buffer[..most])?;
        if read == 0 {
            return Err(self.file.ended(&self.name));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

impl Read for Body<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer).map_err(|why| {
            let error = io::Error::other(why.to_string());
            self.file.fault = Some(why);
            error
        })
    }
}

/// Whether the header is the only one that a file of this name and size can have.
fn compare(block: &[u8; BLOCK], name: &str, wanted: u64) -> Result<(), StoreError> {
    if *block == header(name, wanted) {
        return Ok(());
    }
    let end = block[..NAME].iter().position(|byte| *byte == 0).unwrap_or(NAME);
    let other = String::from_utf8_lossy(&block[..end]);
    let found = if block.iter().all(|byte| *byte == 0) {
        "the end of the archive".to_owned()
    } else if other != name {
        format!("the entry `{other}`")
    } else if block[KIND] != b'0' {
        format!("a link, a folder or an extension (type `{}`)", block[KIND].escape_ascii())
    } else {
        match size(block) {
            Some(size) if size == wanted => "a header with other fields than name and size".to_owned(),
            Some(size) => format!("{size} bytes"),
            None => "a size that is no number".to_owned(),
        }
    };
    Err(fault(at(name), format!("a file of this name with {wanted} bytes"), found))
}

fn size(block: &[u8; BLOCK]) -> Option<u64> {
    let digits = std::str::from_utf8(&block[SIZE.0..SIZE.1]).ok()?;
    u64::from_str_radix(digits, 8).ok()
}

fn at(name: &str) -> String {
    format!("`{name}`")
}
