//! What a guest says: log lines, stdout and stderr in the order they came, bounded.
//!
//! More than the limit is cut in the middle: how it began and how it ended are what explain a
//! failure. Writing never fails, so that a guest's `print` does not either.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// What one write of a stream may carry.
const STREAM_PERMIT: usize = 64 << 10;

/// The bounded log of one call; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LogBook(Arc<Mutex<Pages>>);

#[derive(Debug)]
struct Pages {
    /// Bytes of each half.
    half: usize,
    head: Vec<u8>,
    /// What came after it: its last half is kept, and the rest thrown away from time to time.
    tail: Vec<u8>,
    /// Bytes that were thrown away.
    cut: u64,
}

impl LogBook {
    /// A log that keeps the first and the last half of `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        let half = usize::try_from(limit / 2).unwrap_or(usize::MAX);
        LogBook(Arc::new(Mutex::new(Pages { half, head: Vec::new(), tail: Vec::new(), cut: 0 })))
    }

    /// Adds bytes.
    pub(crate) fn write(&self, bytes: &[u8]) {
        self.pages(|pages| pages.write(bytes));
    }

    /// Adds a line.
    pub(crate) fn line(&self, level: &str, message: &str) {
        self.pages(|pages| {
            pages.write(level.as_bytes());
            pages.write(b": ");
            pages.write(message.as_bytes());
            pages.write(b"\n");
        });
    }

    /// What was kept. Bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        self.pages(|pages| pages.text())
    }

    fn pages<T>(&self, with: impl FnOnce(&mut Pages) -> T) -> T {
        // Bytes stay bytes, whatever panicked while it held the lock.
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Pages {
    fn write(&mut self, bytes: &[u8]) {
        let first = bytes.len().min(self.half.saturating_sub(self.head.len()));
        let (first, rest) = bytes.split_at(first);
        self.head.extend_from_slice(first);
        let skipped = rest.len().saturating_sub(self.half);
        self.tail.extend_from_slice(&rest[skipped..]);
        self.cut += skipped as u64;
        if skipped > 0 || self.tail.len() / 2 > self.half {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let overflow = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..overflow);
        self.cut += overflow as u64;
    }

    fn text(&mut self) -> String {
        self.trim();
        // One text, so that a character on the border of the halves stays whole.
        let whole = [&*self.head, &*self.tail].concat();
        let all = String::from_utf8_lossy(&whole);
        // What is no text is shown as three bytes for one, and must not pass the limit so.
        if self.cut == 0 && all.len() / 2 <= self.half {
            return all.into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        let kept_head = &head[..head.floor_char_boundary(self.half)];
        let kept_tail = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(self.half))..];
        let more = head.len() - kept_head.len() + tail.len() - kept_tail.len();
        format!("{kept_head}\n[… {} bytes cut …]\n{kept_tail}", self.cut + more as u64)
    }
}

impl IsTerminal for LogBook {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogBook {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(Writer(self.clone()))
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Writer(self.clone()))
    }
}

struct Writer(LogBook);

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.write(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(STREAM_PERMIT)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        self.0.write(bytes);
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_half_are_kept() {
        let log = LogBook::new(8);
        for part in ["ab", "cdef", "gh", "ijk", "l"] {
            log.write(part.as_bytes());
        }
        assert_eq!(log.text(), "abcd\n[… 4 bytes cut …]\nijkl");
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let log = LogBook::new(8);
        log.write("aaaä".as_bytes());
        assert_eq!(log.text(), "aaaä");
        log.write(b"123456789");
        assert!(log.text().ends_with("6789"));
    }

    #[test]
    fn what_is_no_text_does_not_pass_the_limit() {
        let log = LogBook::new(20);
        for _ in 0..100 {
            log.write(&[0xff; 7]);
        }
        let few = LogBook::new(20);
        few.write(&[0xff; 20]);
        assert_eq!(few.text().matches('\u{fffd}').count(), 6, "{}", few.text());
        let text = log.text();
        assert_eq!(text.matches('\u{fffd}').count(), 6, "{text}");
        assert!(text.contains("[… 722 bytes cut …]"), "{text}");
    }

    #[test]
    fn no_more_than_twice_the_half_is_held() {
        let log = LogBook::new(1 << 10);
        for size in [1, 511, 512, 513, 100, 5_000, 3] {
            for _ in 0..1_000 {
                log.write(&vec![b'x'; size]);
                assert!(log.pages(|pages| pages.tail.len()) <= 1_025 + 512);
            }
        }
    }

    #[test]
    fn one_write_larger_than_all() {
        let log = LogBook::new(4);
        log.write(&[b'x'; 1000]);
        assert_eq!(log.text(), "xx\n[… 996 bytes cut …]\nxx");
    }
}
