//! `wasi:http/outgoing-handler`, through the same gate as the `http` import.
//!
//! A redirect is an answer here: its next hop is a request of its own, that the guest makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::is_reserved;
use checkrein_contract::record::Wall;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx,
    WasiHttpHooks,
};

use super::budget::over;
use super::{Gate, NoAnswer, Request, Response};
use crate::recorder::Recorder;

/// Bytes of one write to a body: what every body under way may hold in the host before it is sent.
const CHUNK: usize = 16 << 10;
/// The most bytes of one set of headers that a guest makes.
const FIELDS_MOST: usize = 16 << 10;
/// Bytes that one set may have in any case: room for the headers of an honest request.
const FIELDS_LEAST: usize = 1 << 10;
/// Bytes that all sets of a call may have together, if it holds as many as it has handles.
const FIELDS_TOGETHER: u64 = 64 << 20;

/// The hooks of one call.
pub(crate) struct Outgoing {
    gate: Arc<dyn Gate>,
    collected: Arc<Collected>,
}

/// What was read of all bodies of a call, sent or not: a guest that writes many at once fills no
/// more of the host than one that sends them.
struct Collected {
    bytes: AtomicU64,
    most: u64,
    recorder: Recorder,
}

impl Outgoing {
    pub(crate) fn new(gate: Arc<dyn Gate>, limits: &Limits, recorder: Recorder) -> Self {
        let most = limits.get(LimitKey::HttpOut);
        Outgoing { gate, collected: Arc::new(Collected { bytes: AtomicU64::new(0), most, recorder }) }
    }

    /// The other half of the state of `wasi:http`.
    pub(crate) fn context(limits: &Limits) -> WasiHttpCtx {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(fields(limits.get(LimitKey::Handles)));
        context
    }
}

/// Bytes of one set of headers, where a guest may hold so many of them. The engine counts each set
/// for itself, so the bound of all of them is made of the two.
fn fields(handles: u64) -> usize {
    let share = usize::try_from(FIELDS_TOGETHER / handles.max(1)).unwrap_or(FIELDS_MOST);
    share.clamp(FIELDS_LEAST, FIELDS_MOST)
}

impl Collected {
    fn take(&self, bytes: usize) -> Result<(), Error> {
        let bytes = bytes as u64;
        let used = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if used <= self.most {
            return Ok(());
        }
        let (what, grant) = over(LimitKey::HttpOut, self.most, used);
        self.recorder.deny(Wall::Limit, what, Some(grant));
        Err(Error::HttpRequestBodySize(Some(self.most)))
    }
}

type Sent = (http::Response<WasiBody>, BoxedFuture<Result<(), Error>>);
type BoxedFuture<T> = Box<dyn Future<Output = T> + Send>;

impl WasiHttpHooks for Outgoing {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        // The length is checked against the body by wasmtime, and then set by the gate.
        Arc::new(|name| {
            DEFAULT_FORBIDDEN_HEADERS.contains(name)
                || (*name != CONTENT_LENGTH && is_reserved(name.as_str()))
        })
    }

    /// The gate sets it, from the URL that it has checked.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: BoxedFuture<Result<(), Error>>,
    ) -> BoxedFuture<Result<Sent, Error>> {
        let (gate, collected) = (Arc::clone(&self.gate), Arc::clone(&self.collected));
        Box::new(async move {
            let (head, body) = request.into_parts();
            let headers = head.headers.iter().filter(|(name, _)| *name != CONTENT_LENGTH);
            let request = Request {
                method: head.method.as_str().to_owned(),
                url: head.uri.to_string(),
                headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
                body: collect(body, &collected).await?,
                timeout: options.as_ref().and_then(timeout),
                follow: false,
            };
            let response = gate.fetch(request).await.map_err(to_error)?;
            Ok((to_response(response)?, Box::new(std::future::ready(Ok(()))) as BoxedFuture<_>))
        })
    }
}

/// Reads a body while the guest writes it.
async fn collect(mut body: WasiBody, collected: &Collected) -> Result<Bytes, Error> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers are left out: no part of what an honest request says.
        if let Ok(part) = frame?.into_data() {
            collected.take(part.len())?;
            whole.extend_from_slice(&part);
        }
    }
    Ok(whole.freeze())
}

/// The answer is handed on whole, so the times that a guest gives to its pieces count together.
fn timeout(options: &RequestOptions) -> Option<Duration> {
    let times = [options.connect_timeout, options.first_byte_timeout, options.between_bytes_timeout];
    times.into_iter().flatten().reduce(Duration::saturating_add)
}

fn to_response(response: Response) -> Result<http::Response<WasiBody>, Error> {
    let mut builder = http::Response::builder().status(response.status);
    for (name, value) in &response.headers {
        builder = builder.header(name.as_str(), value.as_slice());
    }
    let body = Full::new(response.body).map_err(|never| match never {});
    builder.body(body.boxed_unsync()).map_err(|error| Error::InternalError(Some(error.to_string())))
}

/// The nearest code; where there is a place for words, they are ours. The record has them in any
/// case.
fn to_error(denied: NoAnswer) -> Error {
    match denied {
        NoAnswer::Denied(_) => Error::HttpRequestDenied,
        NoAnswer::TimedOut => Error::HttpResponseTimeout,
        NoAnswer::TooLarge(most) => Error::HttpResponseBodySize(Some(most)),
        NoAnswer::Invalid(why) | NoAnswer::Transport(why) => Error::InternalError(Some(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sets_of_headers_fill_no_more_than_their_share() {
        let default = LimitKey::Handles.default_value();
        for handles in [default, default / 2, 1 << 13, 1 << 16] {
            assert!(fields(handles) as u64 * handles <= FIELDS_TOGETHER, "{handles}");
        }
        assert_eq!((fields(0), fields(1), fields(u64::MAX)), (FIELDS_MOST, FIELDS_MOST, FIELDS_LEAST));
    }
}
