//! The streams of files, with what is written reserved before it is.
//!
//! In the host's own folders, reading and writing is done on the spot: no thread is taken, and
//! nothing is still on its way when a call returns. In granted folders, which may keep a reader
//! waiting, wasmtime-wasi's streams do it on threads apart; those count as open files, so that no
//! guest takes all the threads.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::Errno;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use super::{Held, Quota};

/// Bytes of one read or write: what one call of a guest makes the host allocate.
const AT_ONCE: usize = 64 << 10;

/// What keeps a file counted as open.
pub(super) type Kept = Vec<Arc<Held>>;

/// Reads a file of the host's own folders.
pub(super) struct Input {
    pub(super) file: Arc<File>,
    pub(super) position: u64,
    pub(super) closed: bool,
    pub(super) _kept: Kept,
}

#[wasmtime_wasi::async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.closed {
            return Err(StreamError::Closed);
        }
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = vec![0; size.min(AT_ONCE)];
        match self.file.read_at(&mut bytes, self.position) {
            Ok(0) => {
                self.closed = true;
                Err(StreamError::Closed)
            }
            Ok(count) => {
                self.position += count as u64;
                bytes.truncate(count);
                Ok(bytes.into())
            }
            Err(error) => {
                self.closed = true;
                Err(StreamError::LastOperationFailed(error.into()))
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {}
}

/// Reads a file of a granted folder.
pub(super) struct InputApart {
    pub(super) inner: DynInputStream,
    pub(super) _kept: Kept,
}

#[wasmtime_wasi::async_trait]
impl InputStream for InputApart {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.blocking_read(size).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for InputApart {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

/// Where a stream writes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    Position(u64),
    End,
}

/// Writes, within the quota.
pub(super) struct Output {
    pub(super) file: Arc<File>,
    /// What writes to a granted folder; without it, it is done on the spot.
    pub(super) apart: Option<DynOutputStream>,
    pub(super) at: At,
    pub(super) quota: Quota,
    pub(super) closed: bool,
    pub(super) _kept: Kept,
}

impl Output {
    /// Reserves what `bytes` more make the file longer, moves on, and says where they go. A write
    /// that is still on its way was reserved as well, so the sum is never too small.
    fn reserve(&mut self, bytes: usize) -> StreamResult<u64> {
        if self.closed {
            return Err(StreamError::Closed);
        }
        let length = self.file.metadata().map_err(|error| self.failed(error))?.len();
        let (position, growth) = match self.at {
            At::End => (length, bytes as u64),
            At::Position(position) => {
                let end = position.saturating_add(bytes as u64);
                self.at = At::Position(end);
                (position, end.saturating_sub(length))
            }
        };
        self.quota.grow(growth).map_err(|_| self.failed(Errno::NOSPC.into()))?;
        Ok(position)
    }

    fn write_here(&mut self, bytes: &[u8], position: u64) -> StreamResult<()> {
        self.file.write_all_at(bytes, position).map_err(|error| self.failed(error))
    }

    /// A stream that failed once is closed.
    fn failed(&mut self, error: io::Error) -> StreamError {
        self.closed = true;
        StreamError::LastOperationFailed(error.into())
    }

    fn open(&mut self) -> StreamResult<Option<&mut DynOutputStream>> {
        if self.closed { Err(StreamError::Closed) } else { Ok(self.apart.as_mut()) }
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let position = self.reserve(bytes.len())?;
        match &mut self.apart {
            Some(apart) => apart.write(bytes),
            None => self.write_here(&bytes, position),
        }
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        let position = self.reserve(bytes.len())?;
        match &mut self.apart {
            Some(apart) => apart.blocking_write_and_flush(bytes).await,
            None => self.write_here(&bytes, position),
        }
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.open()?.map_or(Ok(()), |apart| apart.flush())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.open()?.map_or(Ok(AT_ONCE), |apart| apart.check_write())
    }

    async fn cancel(&mut self) {
        if let Some(apart) = &mut self.apart {
            apart.cancel().await;
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        if let Some(apart) = &mut self.apart {
            apart.ready().await;
        }
    }
}
