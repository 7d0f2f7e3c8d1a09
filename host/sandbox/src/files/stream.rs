//! The streams of files: wasmtime-wasi's, with what is written reserved before it is.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use rustix::io::Errno;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use super::{Held, Quota};

/// Reads; keeps its file among those that count as open.
pub(super) struct Input {
    pub(super) inner: DynInputStream,
    pub(super) _held: Option<Arc<Held>>,
}

#[wasmtime_wasi::async_trait]
impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.inner.blocking_read(size).await
    }

    fn skip(&mut self, count: usize) -> StreamResult<usize> {
        self.inner.skip(count)
    }

    async fn blocking_skip(&mut self, count: usize) -> StreamResult<usize> {
        self.inner.blocking_skip(count).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Input {
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
    pub(super) inner: DynOutputStream,
    pub(super) file: Arc<File>,
    pub(super) at: At,
    pub(super) quota: Quota,
    pub(super) closed: bool,
    pub(super) _held: Option<Arc<Held>>,
}

impl Output {
    /// Reserves what `bytes` more make the file longer, and moves on. A write that is still on its
    /// way has been reserved as well, so that the sum is never too small.
    fn reserve(&mut self, bytes: usize) -> StreamResult<()> {
        if self.closed {
            return Err(StreamError::Closed);
        }
        let bytes = bytes as u64;
        let growth = match &mut self.at {
            At::End => bytes,
            At::Position(position) => {
                let end = position.saturating_add(bytes);
                let growth = growth(&self.file, end).map_err(|error| self.failed(error))?;
                self.at = At::Position(end);
                growth
            }
        };
        self.quota.grow(growth).map_err(|_| self.failed(Errno::NOSPC.into()))
    }

    /// A stream that failed once is closed.
    fn failed(&mut self, error: io::Error) -> StreamError {
        self.closed = true;
        StreamError::LastOperationFailed(error.into())
    }
}

/// By how much a file grows when something is written up to `end`.
pub(super) fn growth(file: &File, end: u64) -> io::Result<u64> {
    Ok(end.saturating_sub(file.metadata()?.len()))
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.reserve(bytes.len())?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.reserve(bytes.len())?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        if self.closed { Err(StreamError::Closed) } else { self.inner.flush() }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.closed { Err(StreamError::Closed) } else { self.inner.check_write() }
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}
