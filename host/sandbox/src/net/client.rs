//! A client that can reach one host, at addresses that were checked, and nothing else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use checkrein_contract::network::{Host, Target};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

/// What a request calls itself unless the guest says otherwise.
const USER_AGENT: &str = concat!("checkrein/", env!("CARGO_PKG_VERSION"));

/// How TLS is spoken: the system's certificates and some more, read when they are first needed.
pub(crate) struct Tls {
    roots: Vec<Vec<u8>>,
    config: OnceLock<Result<ClientConfig, String>>,
}

impl Tls {
    /// `roots` in DER are trusted besides the system's.
    pub(crate) fn new(roots: Vec<Vec<u8>>) -> Self {
        Tls { roots, config: OnceLock::new() }
    }

    fn config(&self) -> Result<ClientConfig, String> {
        self.config.get_or_init(|| configure(&self.roots).map_err(|error| error.to_string())).clone()
    }
}

fn configure(roots: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = roots.iter().map(|root| CertificateDer::from(root.clone()));
    let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(roots, Arc::clone(&provider))?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Makes the client for one exchange. It follows no redirect, asks no proxy, keeps no cookie and
/// no connection.
pub(super) fn client(tls: &Tls, target: &Target, addresses: &[IpAddr]) -> Result<reqwest::Client, String> {
    let pinned = addresses.iter().map(|address| SocketAddr::new(*address, target.port)).collect();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_only()
        .pool_max_idle_per_host(0)
        .user_agent(USER_AGENT)
        .tls_backend_preconfigured(tls.config()?)
        .dns_resolver(Arc::new(Pinned { host: target.host.clone(), addresses: pinned }))
        .build()
        .map_err(explain)
}

/// Knows one name, and for it the addresses that were checked.
struct Pinned {
    host: Host,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let known = matches!(&self.host, Host::Name(host) if host == name.as_str());
        let found = if known {
            Ok(Box::new(self.addresses.clone().into_iter()) as Addrs)
        } else {
            Err(io::Error::other("this name was not checked").into())
        };
        Box::pin(std::future::ready(found))
    }
}

/// What went wrong and why, without the URL, which the message around it names.
pub(super) fn explain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    crate::text::one_line(&text)
}
