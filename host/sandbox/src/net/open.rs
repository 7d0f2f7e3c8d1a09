//! The gate of a call that may use the network: every hop of every request is checked, limited
//! and recorded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use checkrein_contract::grant::Granted;
use checkrein_contract::limits::Limits;
use checkrein_contract::network::{Scheme, Target, is_method};
use checkrein_contract::port::{Blobs, BoxFuture};
use checkrein_contract::record::Wall;
use http::header::LOCATION;
use http::{HeaderMap, Method};

use super::budget::Budget;
use super::check::{Refusal, shown};
use super::headers;
use super::replay::Recorded;
use super::runtime::NetworkThreads;
use super::scrub::{MARK, Scrubber};
use super::{Gate, Network, NoAnswer, Request, Response};
use crate::recorder::Recorder;
use crate::text::{excerpt, one_line};

/// Redirects of one request.
const REDIRECTS: usize = 10;
/// How much later than the call's own end a request is over: the call ends it, and says so; this
/// holds where the call runs in another process.
const GRACE: Duration = Duration::from_millis(200);

/// What a gate is made from.
pub(crate) struct Pass<'a> {
    /// What the component may reach.
    pub(crate) granted: &'a Granted,
    /// Its limits.
    pub(crate) limits: &'a Limits,
    /// When its call is over.
    pub(crate) deadline: Instant,
    /// What may be asked without TLS.
    pub(crate) clear: Clear,
    /// Where everything is recorded.
    pub(crate) recorder: Recorder,
    /// Where bodies are stored.
    pub(crate) blobs: Arc<dyn Blobs>,
}

/// What may be asked without TLS, of that which the rules allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clear {
    /// Whatever a rule states with `http`.
    ByRule,
    /// Addresses alone: anybody on the way could answer for a name.
    Addresses,
}

/// Lets out what the rules of one call allow.
pub(crate) struct Open {
    pub(super) exit: Arc<Exit>,
    threads: Arc<NetworkThreads>,
}

/// Where answers come from.
pub(super) enum Source {
    /// From the network.
    Network(Network),
    /// From what was recorded of the same call.
    Record(Recorded),
}

/// What all requests of one call share.
pub(super) struct Exit {
    pub(super) source: Source,
    pub(super) granted: Granted,
    pub(super) budget: Budget,
    pub(super) scrubber: Arc<Scrubber>,
    pub(super) recorder: Recorder,
    pub(super) blobs: Arc<dyn Blobs>,
    deadline: Instant,
    pub(super) clear: Clear,
}

/// One request on its way, checked as far as it can be without its rule.
#[derive(Clone)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) target: Target,
    /// As the guest set them, without secrets.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What was asked for, if a redirect led here.
    pub(super) asked: Option<Target>,
    /// When there must be an answer.
    pub(super) until: Instant,
}

/// What came back: the body without secrets, the headers as they were.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Network {
    /// The gate for one call.
    pub(crate) fn open(&self, pass: Pass<'_>) -> Open {
        let scrubber = Arc::new(Scrubber::new(&pass.granted.secrets, &self.secrets));
        let exit = Arc::new(Exit::new(Source::Network(self.clone()), pass, scrubber));
        Open { exit, threads: Arc::clone(&self.threads) }
    }
}

impl Gate for Open {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let exit = Arc::clone(&self.exit);
        let done = self.threads.run(async move { exit.fetch(request).await });
        Box::pin(async move {
            done.await.unwrap_or_else(|| Err(NoAnswer::Transport("the host is shutting down".to_owned())))
        })
    }
}

impl Exit {
    pub(super) fn new(source: Source, pass: Pass<'_>, scrubber: Arc<Scrubber>) -> Self {
        let Pass { granted, limits, deadline, clear, recorder, blobs } = pass;
        let (granted, budget) = (granted.clone(), Budget::new(limits));
        Exit { source, granted, budget, scrubber, recorder, blobs, deadline, clear }
    }

    /// Answers a request, and follows redirects where it should.
    pub(super) async fn fetch(&self, request: Request) -> Result<Response, NoAnswer> {
        let follow = request.follow;
        let mut hop = self.first(request).map_err(|refusal| self.refuse(refusal))?;
        for _ in 0..=REDIRECTS {
            let answer = match &self.source {
                Source::Network(network) => self.send(network, &hop).await?,
                Source::Record(recorded) => self.recall(recorded, &hop).await?,
            };
            let location = answer.headers.get(LOCATION).filter(|_| follow);
            match location.filter(|_| matches!(answer.status, 301 | 302 | 303 | 307 | 308)) {
                None => return Ok(self.response(&hop, answer)),
                Some(location) => {
                    let next = self.next(&hop, answer.status, location.as_bytes());
                    hop = next.map_err(|refusal| self.refuse(refusal))?;
                }
            }
        }
        let asked = hop.asked.as_ref().unwrap_or(&hop.target);
        let what = format!("{}: more than {REDIRECTS} redirects", shown(hop.method.as_str(), asked));
        let told = NoAnswer::Transport(what.clone());
        Err(self.refuse(Refusal { wall: Wall::Request, what, grant: None, told }))
    }

    /// Reads what the guest wants to send.
    fn first(&self, request: Request) -> Result<Hop, Refusal> {
        let left = self.deadline + GRACE;
        let until = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let target = Target::parse(&request.url)
            .map_err(|why| headers::invalid(format!("the URL `{}`: {why}", quoted(&request.url))))?;
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|_| is_method(&request.method))
            .ok_or_else(|| {
                let method = quoted(&request.method);
                headers::invalid(format!(
                    "the method `{method}`: one word in upper case is expected, neither CONNECT nor TRACE"
                ))
            })?;
        Ok(Hop {
            method,
            target,
            headers: headers::read(&request.headers)?,
            body: request.body,
            asked: None,
            until: until.map_or(left, |until| until.min(left)),
        })
    }

    /// The request that a redirect asks for, as browsers make it.
    fn next(&self, hop: &Hop, status: u16, location: &[u8]) -> Result<Hop, Refusal> {
        let from = shown(hop.method.as_str(), &hop.target);
        let refuse = |wall, why: String, told: fn(String) -> NoAnswer| {
            let what = format!("{from}: {why}");
            Refusal { wall, what: what.clone(), grant: None, told: told(what) }
        };
        let location = std::str::from_utf8(location).map_err(|_| {
            refuse(Wall::Request, "it redirects to a place that is not UTF-8".to_owned(), NoAnswer::Transport)
        })?;
        // In a record the secret is no longer there, and its mark is.
        let replayed = matches!(self.source, Source::Record(_)) && !self.granted.secrets.is_empty();
        let scrubbed = replayed && location.contains(MARK);
        if scrubbed || !self.scrubber.is_empty() && self.scrubber.text(location) != location {
            let why = "it redirects to a URL with a secret in it".to_owned();
            return Err(refuse(Wall::Secret, why, NoAnswer::Denied));
        }
        let target = hop.target.join(location).map_err(|why| {
            let why = format!("it redirects to `{}`: {why}", quoted(location));
            refuse(Wall::Request, why, NoAnswer::Transport)
        })?;
        if hop.target.scheme == Scheme::Https && target.scheme == Scheme::Http {
            let why = format!("it redirects from https to {}", shown(hop.method.as_str(), &target));
            return Err(refuse(Wall::Network, why, NoAnswer::Denied));
        }
        let mut next = Hop { target, asked: hop.asked.clone().or(Some(hop.target.clone())), ..hop.clone() };
        let reads = matches!(status, 303) && next.method != Method::HEAD
            || matches!(status, 301 | 302) && next.method == Method::POST;
        if reads {
            next.method = Method::GET;
            next.body = Bytes::new();
            headers::drop_body_headers(&mut next.headers);
        }
        if next.target.origin() != hop.target.origin() {
            headers::drop_credentials(&mut next.headers, &self.granted.secrets);
        }
        Ok(next)
    }

    fn response(&self, hop: &Hop, answer: Answer) -> Response {
        Response {
            url: self.scrubber.string(hop.target.to_string()),
            status: answer.status,
            headers: self.headers(&answer.headers),
            body: answer.body,
        }
    }

    /// The headers of an answer that tell the guest something, scrubbed. Those of the connection
    /// are over, and the length is that of the body, if there is one.
    pub(super) fn headers(&self, headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
        let kept = headers.iter().filter(|(name, _)| {
            let over = matches!(name.as_str(), "connection" | "keep-alive" | "transfer-encoding" | "trailer");
            !over && self.scrubber.text(name.as_str()) == name.as_str()
        });
        kept.map(|(name, value)| {
            (name.as_str().to_owned(), self.scrubber.bytes(value.as_bytes()).into_owned())
        })
        .collect()
    }

    /// Records what is turned down, and says what the guest is told.
    pub(super) fn refuse(&self, refusal: Refusal) -> NoAnswer {
        let Refusal { wall, what, grant, told } = refusal;
        self.recorder.deny(wall, self.scrubber.string(what), grant);
        match told {
            NoAnswer::Denied(why) => NoAnswer::Denied(self.scrubber.string(why)),
            NoAnswer::Invalid(why) => NoAnswer::Invalid(self.scrubber.string(why)),
            NoAnswer::Transport(why) => NoAnswer::Transport(self.scrubber.string(why)),
            other => other,
        }
    }
}

/// What a stranger wrote, in a message.
fn quoted(text: &str) -> String {
    one_line(&excerpt(text))
}
