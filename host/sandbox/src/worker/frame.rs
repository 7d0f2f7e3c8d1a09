//! Frames: what goes through a pipe between host and worker.
//!
//! A frame is the length of its JSON and the length of its raw part, both `u32` in little endian,
//! then the two. Each length is held against a maximum of its own before anything is allocated, and
//! room is made only as bytes come in.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes of the two lengths.
const HEAD: usize = 8;
/// What the first of them measures, in words.
const JSON: &str = "JSON";
/// What the second one measures.
const RAW: &str = "raw data";

/// Why a frame could not be read or sent. Whoever reads one of these ends the conversation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// The pipe was closed between two frames.
    #[error("it closed the pipe")]
    Closed,
    /// The pipe was closed inside of a frame, or failed.
    #[error("the pipe failed: {0}")]
    Pipe(#[from] io::Error),
    /// More than may be sent.
    #[error("a frame of {found} bytes of {part}, where at most {most} are allowed")]
    TooLong { part: &'static str, found: u64, most: u32 },
    /// JSON that does not fit.
    #[error("a frame that cannot be read: {0}")]
    Malformed(#[source] serde_json::Error),
}

/// Bytes of the longest frame. JSON becomes many small objects when it is read, so that it is
/// bounded apart from raw bytes, which stay what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    pub(crate) json: u32,
    pub(crate) raw: u32,
}

/// A message with its raw part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<T> {
    pub(crate) message: T,
    pub(crate) raw: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Lengths {
    json: u32,
    raw: u32,
}

impl Lengths {
    fn parse(head: [u8; HEAD], most: Most) -> Result<Self, FrameError> {
        let [a, b, c, d, e, f, g, h] = head;
        let lengths =
            Lengths { json: u32::from_le_bytes([a, b, c, d]), raw: u32::from_le_bytes([e, f, g, h]) };
        lengths.check(most)
    }

    fn of(json: &[u8], raw: &[u8], most: Most) -> Result<Self, FrameError> {
        let length = |part, bytes: &[u8], most| {
            let found = bytes.len() as u64;
            u32::try_from(bytes.len()).map_err(|_| FrameError::TooLong { part, found, most })
        };
        Lengths { json: length(JSON, json, most.json)?, raw: length(RAW, raw, most.raw)? }.check(most)
    }

    fn check(self, most: Most) -> Result<Self, FrameError> {
        for (part, found, most) in [(JSON, self.json, most.json), (RAW, self.raw, most.raw)] {
            if found > most {
                return Err(FrameError::TooLong { part, found: found.into(), most });
            }
        }
        Ok(self)
    }

    fn bytes(self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&self.json.to_le_bytes());
        head[4..].copy_from_slice(&self.raw.to_le_bytes());
        head
    }
}

fn parse<T: DeserializeOwned>(json: &[u8], raw: Vec<u8>) -> Result<Frame<T>, FrameError> {
    let message = serde_json::from_slice(json).map_err(FrameError::Malformed)?;
    Ok(Frame { message, raw })
}

fn head_and_json<T: Serialize>(message: &T, raw: &[u8], most: Most) -> Result<Vec<u8>, FrameError> {
    let json = serde_json::to_vec(message).map_err(FrameError::Malformed)?;
    let mut bytes = Lengths::of(&json, raw, most)?.bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

/// Reads a frame of at most `most`.
pub(crate) fn read<T: DeserializeOwned>(pipe: &mut impl Read, most: Most) -> Result<Frame<T>, FrameError> {
    let mut head = [0; HEAD];
    match pipe.read(&mut head)? {
        0 => return Err(FrameError::Closed),
        read => pipe.read_exact(&mut head[read..])?,
    }
    let lengths = Lengths::parse(head, most)?;
    let json = read_part(pipe, lengths.json)?;
    let raw = read_part(pipe, lengths.raw)?;
    parse(&json, raw)
}

fn read_part(pipe: &mut impl Read, length: u32) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::new();
    pipe.take(length.into()).read_to_end(&mut bytes)?;
    whole(bytes, length)
}

fn whole(bytes: Vec<u8>, length: u32) -> Result<Vec<u8>, FrameError> {
    if bytes.len() as u64 == u64::from(length) {
        return Ok(bytes);
    }
    let error = format!("it was closed after {} of {length} bytes", bytes.len());
    Err(FrameError::Pipe(io::Error::new(io::ErrorKind::UnexpectedEof, error)))
}

/// Sends a frame of at most `most`; nothing of a longer one is sent.
pub(crate) fn write<T: Serialize>(
    pipe: &mut impl Write,
    message: &T,
    raw: &[u8],
    most: Most,
) -> Result<(), FrameError> {
    pipe.write_all(&head_and_json(message, raw, most)?)?;
    pipe.write_all(raw)?;
    Ok(pipe.flush()?)
}

/// [`read`], for the host. Not to be dropped in the midst of a frame that is still wanted.
pub(crate) async fn read_async<T: DeserializeOwned>(
    pipe: &mut (impl AsyncRead + Unpin),
    most: Most,
) -> Result<Frame<T>, FrameError> {
    read_async_when(pipe, || most).await
}

/// [`read_async`], with the maximum that holds when the frame begins to come.
pub(crate) async fn read_async_when<T: DeserializeOwned>(
    pipe: &mut (impl AsyncRead + Unpin),
    most: impl Fn() -> Most,
) -> Result<Frame<T>, FrameError> {
    let mut head = [0; HEAD];
    match pipe.read(&mut head).await? {
        0 => return Err(FrameError::Closed),
        read => pipe.read_exact(&mut head[read..]).await?,
    };
    let lengths = Lengths::parse(head, most())?;
    let mut parts = [Vec::new(), Vec::new()];
    for (part, length) in parts.iter_mut().zip([lengths.json, lengths.raw]) {
        pipe.take(length.into()).read_to_end(part).await?;
        *part = whole(std::mem::take(part), length)?;
    }
    let [json, raw] = parts;
    parse(&json, raw)
}

/// [`write`], for the host.
pub(crate) async fn write_async<T: Serialize>(
    pipe: &mut (impl AsyncWrite + Unpin),
    message: &T,
    raw: &[u8],
    most: Most,
) -> Result<(), FrameError> {
    pipe.write_all(&head_and_json(message, raw, most)?).await?;
    pipe.write_all(raw).await?;
    Ok(pipe.flush().await?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: Most = Most { json: 2048, raw: 3072 };

    fn sent(text: &str, raw: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &text, raw, MOST).unwrap();
        bytes
    }

    fn gist(read: &Result<Frame<String>, FrameError>) -> String {
        match read {
            // Each way has its own words for the end of a pipe.
            Err(FrameError::Pipe(error)) => error.kind().to_string(),
            other => format!("{other:?}"),
        }
    }

    /// Reads by both ways, which never say different things.
    fn both(bytes: &[u8], most: Most) -> Result<Frame<String>, FrameError> {
        let now = read::<String>(&mut &*bytes, most);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let later = runtime.block_on(read_async::<String>(&mut &*bytes, most));
        assert_eq!(gist(&now), gist(&later));
        now
    }

    #[test]
    fn a_length_is_refused_before_anything_is_read() {
        let mut bytes = vec![0xff; HEAD];
        assert!(matches!(both(&bytes, MOST), Err(FrameError::TooLong { part: JSON, most: 2048, .. })));
        for (json, raw, told) in [(2049, 0, JSON), (0, 3073, RAW), (2048, 3073, RAW)] {
            bytes = Lengths { json, raw }.bytes().to_vec();
            let Err(FrameError::TooLong { part, .. }) = both(&bytes, MOST) else { panic!("{json} {raw}") };
            assert_eq!(part, told);
        }
    }

    #[test]
    fn nothing_of_a_frame_that_is_too_long_is_sent() {
        let (text, raw) = ("x".repeat(2048), vec![0; 3073]);
        for (text, raw) in [(text.as_str(), &raw[..1]), ("a", &raw[..])] {
            let mut bytes = Vec::new();
            let error = write(&mut bytes, &text, raw, MOST).unwrap_err();
            assert!(matches!(error, FrameError::TooLong { .. }), "{error}");
            assert!(bytes.is_empty());
        }
    }

    #[test]
    fn an_end_between_frames_is_told_from_one_inside() {
        assert!(matches!(both(&[], MOST), Err(FrameError::Closed)));
        let bytes = sent("text", b"raw");
        for end in 1..bytes.len() {
            assert!(matches!(both(&bytes[..end], MOST), Err(FrameError::Pipe(_))), "{end}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(text in ".{0,200}", raw in prop::collection::vec(any::<u8>(), 0..500)) {
            let frame = both(&sent(&text, &raw), MOST).unwrap();
            prop_assert_eq!(frame, Frame { message: text, raw });
        }

        #[test]
        fn any_bytes_are_read_or_refused_and_take_no_more_room_than_allowed(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            json in 0u32..300,
            raw in any::<u32>(),
            small in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if small {
                let head = Lengths { json, raw: raw % 300 }.bytes();
                bytes.splice(..bytes.len().min(HEAD), head);
            }
            let frame = both(&bytes, MOST);
            if let Ok(frame) = frame {
                prop_assert!(frame.raw.len() <= bytes.len() && frame.raw.capacity() <= 2 * MOST.raw as usize);
            }
        }
    }
}
