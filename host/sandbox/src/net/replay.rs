//! The gate of a call that is executed again: it answers from what was recorded, and nothing leaves.
//!
//! A request goes the way that it went before: the same checks of what it asks for, the same
//! redirects hop by hop, the same limits. Only where it would be sent, the exchange is looked up:
//! the first that no request had yet, with the same method, URL, place in its chain of redirects,
//! and body. So requests that ran side by side may come in another order.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use checkrein_contract::digest::Digest;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::network::Target;
use checkrein_contract::port::{BoxFuture, StorageError};
use checkrein_contract::record::{Denial, Exchange, Record, Wall};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::budget::passed;
use super::check::{Refusal, permit, shown};
use super::exchange::{LATE, sent_size, too_late};
use super::open::{Answer, Exit, Hop, Source};
use super::{Gate, NoAnswer, Pass, Request, Response};
use crate::replay::UNRECORDED;

/// Answers from a record.
pub(crate) struct Replay(Arc<Exit>);

/// The record, and what of it was used.
pub(super) struct Recorded {
    record: Arc<Record>,
    used: Mutex<Vec<bool>>,
}

impl Replay {
    /// The gate of a call that did this before. It needs no secret: what came back has none.
    pub(crate) fn open(pass: Pass<'_>, record: Arc<Record>) -> Self {
        let used = Mutex::new(vec![false; record.exchanges.len()]);
        Replay(Arc::new(Exit::new(Source::Record(Recorded { record, used }), pass, Arc::default())))
    }
}

impl Gate for Replay {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let exit = Arc::clone(&self.0);
        Box::pin(async move { exit.fetch(request).await })
    }
}

impl Recorded {
    /// Uses up the exchange that this hop had.
    fn take(&self, hop: &Hop) -> Option<Exchange> {
        let (url, sent) = (hop.target.to_string(), Digest::of(&hop.body));
        let asked = hop.asked.as_ref().map(Target::to_string);
        let same = |exchange: &Exchange| {
            exchange.method == hop.method.as_str()
                && exchange.url == url
                && exchange.asked == asked
                && exchange.sent == sent
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let free = |(at, exchange): &(usize, &Exchange)| !used[*at] && same(exchange);
        let (at, exchange) = self.record.exchanges.iter().enumerate().find(free)?;
        used[at] = true;
        Some(exchange.clone())
    }

    /// How this request was turned down, by one of these walls.
    fn denial(&self, walls: &[Wall], hop: &Hop) -> Option<Refusal> {
        let request = shown(hop.method.as_str(), &hop.target);
        let about = format!("{request}: ");
        let same = |denial: &&Denial| walls.contains(&denial.wall) && denial.what.starts_with(&about);
        let Denial { wall, what, grant, .. } = self.record.denials.iter().find(same)?.clone();
        let told = match (wall, &grant) {
            (Wall::Address, _) => {
                format!("{request}: `{}` leads to a private or special address", hop.target.host)
            }
            (_, Some(grant)) => format!("{what}; the grant `{grant}` would allow it"),
            (_, None) => what.clone(),
        };
        Some(Refusal { wall, what, grant, told: NoAnswer::Denied(told) })
    }
}

impl Exit {
    /// Answers one hop as it was answered, and records that again.
    pub(super) async fn recall(&self, recorded: &Recorded, hop: &Hop) -> Result<Answer, NoAnswer> {
        if self.recorder.is_closed() {
            return Err(too_late(hop));
        }
        let Some(exchange) = recorded.take(hop) else {
            return Err(self.refuse(self.unanswered(recorded, hop)));
        };
        self.charge(hop).map_err(|why| self.refuse(why))?;
        // Who receives nothing passes no limit, even one that was passed before.
        let again = match exchange.body_bytes {
            0 => Ok(()),
            bytes => self.budget.received.take(bytes),
        };
        let seen = match &again {
            Ok(()) => exchange.clone(),
            Err(refusal) => Exchange { body: None, error: Some(refusal.what.clone()), ..exchange.clone() },
        };
        self.recorder.begin(seen).ok_or_else(|| too_late(hop))?;
        again.map_err(|why| self.refuse(why))?;
        match (exchange.status, exchange.body, &exchange.error) {
            (Some(status), Some(body), None) => {
                let body = self.recorded_body(body).await?;
                let headers = headers(&exchange, body.len()).map_err(|error| self.damaged(error))?;
                Ok(Answer { status, headers, body })
            }
            (_, _, error) => Err(self.again(error.as_deref(), hop)),
        }
    }

    /// Counts a request, as if it left.
    fn charge(&self, hop: &Hop) -> Result<(), Refusal> {
        self.budget.calls.take(1)?;
        self.budget.sent.take(sent_size(hop, &hop.headers))
    }

    /// Why a request that has no exchange has no answer: what turned it down before, in the order in
    /// which it would have met that; or that nobody asked for it.
    fn unanswered(&self, recorded: &Recorded, hop: &Hop) -> Refusal {
        let method = hop.method.as_str();
        if let Some(refusal) = recorded.denial(&[Wall::Network, Wall::Secret], hop) {
            return refusal;
        }
        if let Err(refusal) = permit(&self.granted.network, method, &hop.target) {
            return refusal;
        }
        if let Err(refusal) = self.charge(hop) {
            return refusal;
        }
        recorded.denial(&[Wall::Address, Wall::Request], hop).unwrap_or_else(|| {
            let what = format!("{}: {UNRECORDED}", shown(method, &hop.target));
            Refusal { wall: Wall::Network, what: what.clone(), grant: None, told: NoAnswer::Denied(what) }
        })
    }

    /// What the guest was told of an exchange without a whole answer. The record has it in words,
    /// and those of our own tell its kind.
    fn again(&self, error: Option<&str>, hop: &Hop) -> NoAnswer {
        match error {
            Some(LATE) => NoAnswer::TimedOut,
            Some(why) if why.starts_with(&passed(LimitKey::HttpIn)) => {
                NoAnswer::TooLarge(self.budget.received.allowed())
            }
            why => {
                let why = why.unwrap_or("the record says neither an answer nor why there was none");
                NoAnswer::Transport(format!("{}: {why}", shown(hop.method.as_str(), &hop.target)))
            }
        }
    }

    async fn recorded_body(&self, digest: Digest) -> Result<Bytes, NoAnswer> {
        let blobs = Arc::clone(&self.blobs);
        match tokio::task::spawn_blocking(move || blobs.get(&digest)).await {
            Ok(Ok(body)) => Ok(body.into()),
            Ok(Err(error)) => Err(self.damaged(error)),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(NoAnswer::Transport("the host is shutting down".to_owned())),
            },
        }
    }

    /// A record that cannot be read answers for nothing: the call ends with that.
    fn damaged(&self, error: StorageError) -> NoAnswer {
        self.recorder.fail(error);
        NoAnswer::Transport("the host cannot read what was recorded".to_owned())
    }
}

/// The headers of an answer, as the guest saw them.
fn headers(exchange: &Exchange, length: usize) -> Result<HeaderMap, StorageError> {
    let mut read = HeaderMap::new();
    for (name, value) in &exchange.headers {
        let damaged = || StorageError::Damaged {
            place: format!("the record of {} {}", exchange.method, exchange.url),
            detail: format!("`{name}` is no header that an answer can have"),
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| damaged())?;
        // It is that of the body before a secret was taken out.
        if key == CONTENT_LENGTH && length > 0 && *value != length.to_string() {
            continue;
        }
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| damaged())?;
        read.try_append(key, value).map_err(|_| damaged())?;
    }
    Ok(read)
}
