//! The attacks on the network and on secrets, each against servers of its own on loopback.

mod attacks;
mod guests;
mod limits;
mod redirects;
mod replay;
mod secrets;
mod server;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use checkrein_contract::grant::{Granted, SecretHeader, SecretUse};
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::network::Rule;
use checkrein_contract::port::{Blobs as _, BoxFuture};
use checkrein_contract::record::{Record, Wall};
use server::{Authority, Server};

use super::*;
use crate::testing::MemoryBlobs;

/// Names as a test gives them; every other one does not exist. It keeps what it was asked.
#[derive(Clone, Default)]
struct Names {
    known: HashMap<String, Vec<IpAddr>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn with(mut self, name: &str, addresses: &[&str]) -> Self {
        self.known.insert(name.to_owned(), addresses.iter().map(|one| one.parse().unwrap()).collect());
        self
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such name");
        Box::pin(std::future::ready(self.known.get(name).cloned().ok_or_else(missing)))
    }
}

/// What one call may do, and what came of it.
struct Call {
    gate: open::Open,
    recorder: Recorder,
    blobs: Arc<MemoryBlobs>,
    asked: Arc<Mutex<Vec<String>>>,
    limits: Limits,
}

/// How a call is set up.
#[derive(Default)]
struct Setup {
    rules: Vec<String>,
    names: Names,
    secrets: Vec<(&'static str, &'static str)>,
    uses: Vec<SecretUse>,
    limits: Limits,
    roots: Vec<Vec<u8>>,
}

impl Setup {
    fn granting(rules: &[String]) -> Self {
        Setup { rules: rules.to_vec(), ..Setup::default() }
    }

    fn resolving(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    fn limited(mut self, key: LimitKey, value: u64) -> Self {
        self.limits = self.limits.with(key, value);
        self
    }

    fn secret(mut self, name: &'static str, value: &'static str, host: &str, header: &str) -> Self {
        self.secrets.push((name, value));
        self.using(name, host, header)
    }

    /// Grants a secret that is not there.
    fn using(mut self, name: &str, host: &str, header: &str) -> Self {
        let at = SecretHeader { host: host.to_owned(), header: header.to_owned() };
        self.uses.push(SecretUse { name: name.to_owned(), at });
        self
    }

    fn trusting(mut self, authority: &Authority) -> Self {
        self.roots.push(authority.der());
        self
    }

    fn call(self) -> Call {
        let asked = Arc::clone(&self.names.asked);
        let secrets = self.secrets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let network = Network::start(Arc::new(self.names), Secrets::new(secrets), self.roots).unwrap();
        let network_rules = self.rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
        let granted = Granted { network: network_rules, secrets: self.uses, ..Granted::default() };
        let (recorder, blobs) = (Recorder::default(), Arc::new(MemoryBlobs::default()));
        let deadline = Instant::now() + Duration::from_millis(self.limits.get(LimitKey::Wall));
        let gate = network.open(Pass {
            granted: &granted,
            limits: &self.limits,
            deadline,
            clear: Clear::ByRule,
            recorder: recorder.clone(),
            blobs: Arc::clone(&blobs) as Arc<dyn checkrein_contract::port::Blobs>,
        });
        Call { gate, recorder, blobs, asked, limits: self.limits }
    }
}

impl Call {
    async fn get(&self, url: &str) -> Result<Response, NoAnswer> {
        self.gate.fetch(get(url)).await
    }

    fn record(&self) -> Record {
        self.recorder.take()
    }

    /// The only denial: its wall, what it says and its grant.
    fn denial(&self) -> (Wall, String, Option<String>) {
        let record = self.record();
        let [denial] = record.denials.as_slice() else { panic!("{record:?}") };
        (denial.wall, denial.what.clone(), denial.grant.clone())
    }
}

fn get(url: &str) -> Request {
    Request {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Bytes::new(),
        timeout: None,
        follow: true,
    }
}

fn post(url: &str, body: &[u8]) -> Request {
    Request { method: "POST".to_owned(), body: Bytes::copy_from_slice(body), ..get(url) }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let found = response.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
}
