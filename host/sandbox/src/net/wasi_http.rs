//! `wasi:http/outgoing-handler`, through the same gate as the `http` import.
//!
//! A redirect is an answer here: its next hop is a request of its own, that the guest makes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::is_reserved;
use http::header::CONTENT_LENGTH;
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use super::{Denied, Gate, Request, Response};

/// The hooks of one call.
pub(crate) struct Outgoing {
    gate: Arc<dyn Gate>,
    /// Bytes of a body at which it is certainly too large.
    body_max: usize,
}

impl Outgoing {
    pub(crate) fn new(gate: Arc<dyn Gate>, limits: &Limits) -> Self {
        Outgoing { gate, body_max: usize::try_from(limits.get(LimitKey::HttpOut)).unwrap_or(usize::MAX) }
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

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: BoxedFuture<Result<(), Error>>,
    ) -> BoxedFuture<Result<Sent, Error>> {
        let (gate, body_max) = (Arc::clone(&self.gate), self.body_max);
        Box::new(async move {
            let (head, body) = request.into_parts();
            let headers = head.headers.iter().filter(|(name, _)| *name != CONTENT_LENGTH);
            let request = Request {
                method: head.method.as_str().to_owned(),
                url: head.uri.to_string(),
                headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
                body: collect(body, body_max).await?,
                timeout: options.as_ref().and_then(timeout),
                follow: false,
            };
            let response = gate.fetch(request).await.map_err(to_error)?;
            Ok((to_response(response)?, Box::new(std::future::ready(Ok(()))) as BoxedFuture<_>))
        })
    }
}

/// Reads a body while the guest writes it, up to where the gate is bound to refuse it.
async fn collect(mut body: WasiBody, most: usize) -> Result<Bytes, Error> {
    let mut collected = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers are left out: no part of what an honest request says.
        if let Ok(part) = frame?.into_data() {
            collected.extend_from_slice(&part);
        }
        if collected.len() > most {
            break;
        }
    }
    Ok(collected.freeze())
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
fn to_error(denied: Denied) -> Error {
    match denied {
        Denied::Denied(_) => Error::HttpRequestDenied,
        Denied::TimedOut => Error::HttpResponseTimeout,
        Denied::TooLarge(most) => Error::HttpResponseBodySize(Some(most)),
        Denied::Invalid(why) | Denied::Transport(why) => Error::InternalError(Some(why)),
    }
}
