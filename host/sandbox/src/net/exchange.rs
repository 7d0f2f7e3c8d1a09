//! One exchange: from a request that is checked to an answer that is whole, and its record.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use checkrein_contract::digest::Digest;
use checkrein_contract::id::Timestamp;
use checkrein_contract::network::{Host, Rule};
use checkrein_contract::record::Exchange;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use tokio::time::timeout_at;

use super::check::{in_the_clear, permit, reachable, shown};
use super::client::{client, explain};
use super::open::{Answer, Exit, Hop};
use super::{Network, NoAnswer, headers, secrets};
use crate::text::one_line;

/// Bytes of all headers of an answer.
const HEADERS_MAX: u64 = 64 << 10;

/// What is recorded of an exchange whose time was up. A call that is executed again is told the
/// same by it, so these words stay as they are.
pub(super) const LATE: &str = "there was no whole answer in time";
/// What is recorded of an exchange that nobody saw the end of.
const CUT_OFF: &str = "the call ended before there was an answer";

/// Why there is no answer, or no whole one.
enum Broken {
    /// A limit or a wall.
    Refused(super::check::Refusal),
    /// The network or the server.
    Failed(String),
}

/// An exchange as it goes on: what is recorded of it, and where.
struct Entry {
    at: usize,
    began: Instant,
    exchange: Exchange,
}

impl Exit {
    /// Checks a request, sends it and records what came of it.
    pub(super) async fn send(&self, network: &Network, hop: &Hop) -> Result<Answer, NoAnswer> {
        let method = hop.method.as_str();
        // Not even a name is looked up any more.
        if self.recorder.is_closed() {
            return Err(too_late(hop));
        }
        let rule = permit(&self.granted.network, method, &hop.target).map_err(|why| self.refuse(why))?;
        in_the_clear(self.clear, method, &hop.target).map_err(|why| self.refuse(why))?;
        let mut headers = hop.headers.clone();
        let uses = &self.granted.secrets;
        secrets::set(&mut headers, uses, &network.secrets, rule, method, &hop.target)
            .and_then(|()| self.budget.calls.take(1))
            .and_then(|()| self.budget.sent.take(sent_size(hop, &headers)))
            .map_err(|why| self.refuse(why))?;
        let addresses = match timeout_at(hop.until.into(), addresses(network, hop, rule)).await {
            Ok(Err(Broken::Refused(refusal))) => return Err(self.refuse(refusal)),
            addresses => addresses,
        };
        let sent = self.store(hop.body.clone()).await?;
        let Some(mut entry) = self.begin(hop, sent) else { return Err(too_late(hop)) };
        let answer = match addresses {
            Ok(Ok(addresses)) => {
                let perform = self.perform(network, hop, &addresses, headers, &mut entry.exchange);
                timeout_at(hop.until.into(), perform).await
            }
            Ok(Err(broken)) => Ok(Err(broken)),
            Err(elapsed) => Err(elapsed),
        };
        match answer {
            Ok(Ok(answer)) => self.end(entry, answer).await,
            Ok(Err(Broken::Refused(refusal))) => {
                entry.fail(self, refusal.what.clone());
                Err(self.refuse(refusal))
            }
            Ok(Err(Broken::Failed(why))) => {
                let why = self.scrubber.string(why);
                entry.fail(self, why.clone());
                Err(NoAnswer::Transport(format!("{}: {why}", shown(method, &hop.target))))
            }
            Err(_) => {
                entry.fail(self, LATE.to_owned());
                Err(NoAnswer::TimedOut)
            }
        }
    }

    /// It is recorded before it leaves: what ends a call does not wait for the answer. `None` if the
    /// record was taken already.
    fn begin(&self, hop: &Hop, sent: Digest) -> Option<Entry> {
        let exchange = Exchange {
            method: hop.method.as_str().to_owned(),
            url: self.scrubber.string(hop.target.to_string()),
            asked: hop.asked.as_ref().map(|asked| self.scrubber.string(asked.to_string())),
            at: now(),
            ms: 0,
            sent,
            sent_bytes: hop.body.len() as u64,
            status: None,
            headers: Vec::new(),
            body: None,
            body_bytes: 0,
            error: Some(CUT_OFF.to_owned()),
        };
        let at = self.recorder.begin(exchange.clone())?;
        Some(Entry { at, began: Instant::now(), exchange })
    }

    async fn end(&self, mut entry: Entry, answer: Answer) -> Result<Answer, NoAnswer> {
        entry.exchange.body_bytes = answer.body.len() as u64;
        let digest = self.store(answer.body.clone()).await?;
        entry.exchange.body = Some(digest);
        entry.exchange.error = None;
        entry.finish(self);
        Ok(answer)
    }

    async fn perform(
        &self,
        network: &Network,
        hop: &Hop,
        addresses: &[IpAddr],
        headers: HeaderMap,
        exchange: &mut Exchange,
    ) -> Result<Answer, Broken> {
        let client = client(&network.tls, &hop.target, addresses).map_err(Broken::Failed)?;
        let request = client.request(hop.method.clone(), hop.target.to_string()).headers(headers);
        let failed = |error| Broken::Failed(explain(error));
        let mut response = request.body(hop.body.clone()).send().await.map_err(failed)?;
        let (status, mut headers) = (response.status().as_u16(), response.headers().clone());
        exchange.status = Some(status);
        let size = headers::size(&headers);
        if size > HEADERS_MAX {
            return Err(Broken::Failed(format!(
                "its headers have {size} bytes, and {HEADERS_MAX} are the most"
            )));
        }
        exchange.headers = recorded(&self.headers(&headers));
        // What was decoded has no such header any more.
        if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|_| !self.scrubber.is_empty())
            && encoding.as_bytes() != b"identity"
        {
            let why = "its body is encoded in a way that cannot be searched for secrets";
            return Err(Broken::Failed(why.to_owned()));
        }
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await.map_err(failed)? {
            exchange.body_bytes += part.len() as u64;
            self.budget.received.take(part.len() as u64).map_err(Broken::Refused)?;
            body.extend_from_slice(&part);
        }
        let received = body.freeze();
        let body = self.search(received.clone()).await?;
        if body.len() != received.len() {
            headers.remove(CONTENT_LENGTH);
        }
        Ok(Answer { status, headers, body })
    }

    /// A body without secrets. To search a large one takes its time, and so a thread that no
    /// connection waits for.
    async fn search(&self, body: Bytes) -> Result<Bytes, Broken> {
        if self.scrubber.is_empty() {
            return Ok(body);
        }
        let scrubber = Arc::clone(&self.scrubber);
        let clean = move || match scrubber.bytes(&body) {
            Cow::Borrowed(_) => body,
            Cow::Owned(clean) => clean.into(),
        };
        tokio::task::spawn_blocking(clean).await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Broken::Failed("the host is shutting down".to_owned()),
        })
    }

    /// Stores a body. What cannot be stored cannot be answered for: the call ends with the disk's
    /// failure.
    async fn store(&self, body: Bytes) -> Result<Digest, NoAnswer> {
        let blobs = Arc::clone(&self.blobs);
        let stored = tokio::task::spawn_blocking(move || blobs.put(&body)).await;
        match stored {
            Ok(Ok(digest)) => Ok(digest),
            Ok(Err(error)) => {
                let told = NoAnswer::Transport("the host cannot record what is sent".to_owned());
                self.recorder.fail(error);
                Err(told)
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(NoAnswer::Transport("the host is shutting down".to_owned())),
            },
        }
    }
}

impl Entry {
    fn fail(mut self, exit: &Exit, why: String) {
        self.exchange.error = Some(why);
        self.finish(exit);
    }

    fn finish(mut self, exit: &Exit) {
        self.exchange.ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        exit.recorder.amend(self.at, self.exchange);
    }
}

/// The addresses to connect to, all of them checked.
async fn addresses(network: &Network, hop: &Hop, rule: &Rule) -> Result<Vec<IpAddr>, Broken> {
    let addresses = match &hop.target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => network.resolver.resolve(name).await.map_err(|error| {
            Broken::Failed(format!("`{name}` cannot be resolved: {}", one_line(&error.to_string())))
        })?,
    };
    if addresses.is_empty() {
        return Err(Broken::Failed(format!("`{}` has no address", hop.target.host)));
    }
    reachable(rule, hop.method.as_str(), &hop.target, addresses).map_err(Broken::Refused)
}

/// What a request is told that outlived its call.
pub(super) fn too_late(hop: &Hop) -> NoAnswer {
    let what = shown(hop.method.as_str(), &hop.target);
    NoAnswer::Denied(format!("{what}: the call is over, nothing more is sent"))
}

/// What counts as sent: request line, headers, body.
pub(super) fn sent_size(hop: &Hop, headers: &HeaderMap) -> u64 {
    let line = hop.method.as_str().len() + hop.target.to_string().len();
    (line + hop.body.len()) as u64 + headers::size(headers)
}

fn recorded(headers: &[(String, Vec<u8>)]) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
