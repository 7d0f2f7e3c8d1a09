//! The one way out. Everything that leaves passes a [`Gate`]: the `http` import, `wasi:http`, and
//! the host's own downloads.

mod resolver;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use checkrein_contract::port::BoxFuture;
use checkrein_contract::record::Wall;

use crate::recorder::Recorder;

pub use resolver::{Resolver, SystemResolver};
pub use secrets::Secrets;

/// A request as a guest wants to send it: unchecked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
    /// Within what the call has left.
    pub(crate) timeout: Option<Duration>,
    /// Whether redirects are followed, each hop through the whole check; else they are answers.
    pub(crate) follow: bool,
}

/// An answer, whole and within the limits, with every secret scrubbed.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// Where it came from, after redirects.
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
}

/// Why there is no answer, in words that a guest may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No rule allows it; says which grant is missing.
    Denied(String),
    /// The time of the request or of the call was up.
    TimedOut,
    /// Bytes of the largest body allowed.
    TooLarge(u64),
    /// It cannot be sent as it stands.
    Invalid(String),
    /// The network or the server failed.
    Transport(String),
}

/// What stands between one call and the network. It records what passes and what does not.
pub(crate) trait Gate: Send + Sync {
    /// Sends a request, if everything allows it.
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, Denied>>;
}

/// Lets nothing out.
#[derive(Debug)]
pub(crate) struct Closed(pub(crate) Recorder);

impl Gate for Closed {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, Denied>> {
        let what = format!("{} {}", request.method, request.url);
        self.0.deny(Wall::Network, what.clone(), None);
        Box::pin(std::future::ready(Err(Denied::Denied(format!(
            "nothing here may use the network: `{what}`"
        )))))
    }
}

/// What every gate of a sandbox shares.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) secrets: Arc<Secrets>,
    /// Certificates, in DER, that are trusted besides the system's.
    pub(crate) roots: Vec<Vec<u8>>,
}
