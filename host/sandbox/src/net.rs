//! The one way out. Everything that leaves passes a [`Gate`]: the `http` import, `wasi:http`, and
//! the host's own downloads.

mod budget;
mod check;
mod client;
mod download;
mod exchange;
mod headers;
mod open;
mod replay;
mod resolver;
mod runtime;
mod scrub;
mod secrets;
pub(crate) mod sockets;
pub(crate) mod wasi_http;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use checkrein_contract::grant::Granted;
use checkrein_contract::port::BoxFuture;
use checkrein_contract::record::Wall;

use crate::recorder::Recorder;
use crate::text::{excerpt, one_line};

use client::Tls;
use runtime::NetworkThreads;

pub use download::DownloadError;
pub(crate) use open::{Clear, Pass};
pub(crate) use replay::Replay;
pub use resolver::{Resolver, SystemResolver};
pub(crate) use scrub::Scrubber;
pub use secrets::{SECRET_MAX, SECRET_MIN, SecretFault, Secrets, check_secret};

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
pub(crate) enum NoAnswer {
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
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>>;

    /// The gate of the call that begins, where the one that is shared has more than one.
    fn of_call(&self) -> Option<Arc<dyn Gate>> {
        None
    }
}

/// Lets nothing out.
#[derive(Debug)]
pub(crate) struct Closed(pub(crate) Recorder);

impl Gate for Closed {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let word = |text: &str| one_line(&excerpt(text));
        let what = format!("{} {}", word(&request.method), word(&request.url));
        self.0.deny(Wall::Network, what.clone(), None);
        Box::pin(std::future::ready(Err(NoAnswer::Denied(format!(
            "nothing here may use the network: `{what}`"
        )))))
    }
}

/// What every gate of a sandbox shares.
#[derive(Clone)]
pub(crate) struct Network {
    resolver: Arc<dyn Resolver>,
    secrets: Arc<Secrets>,
    tls: Arc<Tls>,
    threads: Arc<NetworkThreads>,
}

impl Network {
    /// Starts the threads of the network. `roots` are certificates, in DER, that are trusted
    /// besides the system's.
    pub(crate) fn start(
        resolver: Arc<dyn Resolver>,
        secrets: Secrets,
        roots: Vec<Vec<u8>>,
    ) -> io::Result<Self> {
        Ok(Network {
            resolver,
            secrets: Arc::new(secrets),
            tls: Arc::new(Tls::new(roots)),
            threads: Arc::new(NetworkThreads::start()?),
        })
    }
}

/// Where the gates of a sandbox lead.
pub(crate) enum WayOut {
    /// To the network.
    Network(Network),
    /// In a worker process: to the gate of its host, at the other end of the pipe.
    Host(Arc<dyn Gate>),
}

impl WayOut {
    /// The gate of one call.
    pub(crate) fn gate(&self, pass: Pass<'_>) -> Arc<dyn Gate> {
        match self {
            WayOut::Network(network) => Arc::new(network.open(pass)),
            WayOut::Host(gate) => gate.of_call().unwrap_or_else(|| Arc::clone(gate)),
        }
    }

    /// What scrubs the secrets that a call may send; a worker process has none.
    pub(crate) fn scrubber(&self, granted: &Granted) -> Arc<Scrubber> {
        match self {
            WayOut::Network(network) => Arc::new(Scrubber::new(&granted.secrets, &network.secrets)),
            WayOut::Host(_) => Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests;
