//! A server on loopback that answers by a script and keeps what it was sent.

use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A request as it came over the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Seen {
    pub(super) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What is written back, piece by piece.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// Nothing more comes, and the connection stays open.
    Silence,
    /// One byte a second, without end.
    Drip,
}

pub(super) struct Server {
    address: &'static str,
    scheme: &'static str,
    pub(super) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    /// Answers each request in the clear.
    pub(super) async fn start(answer: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        Self::listen("127.0.0.1", None, answer).await
    }

    /// Answers each request in the clear, on another address of this machine.
    pub(super) async fn start_elsewhere(
        address: &'static str,
        answer: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(address, None, answer).await
    }

    /// Answers each request by TLS, with a certificate for this host.
    pub(super) async fn start_tls(
        authority: &Authority,
        host: &str,
        answer: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Self {
        Self::listen("127.0.0.1", Some(authority.acceptor(host)), answer).await
    }

    async fn listen(
        address: &'static str,
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer, tls) = (Arc::clone(&kept), Arc::clone(&answer), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &kept, &*answer).await,
                        // A client that does not trust the certificate hangs up.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &kept, &*answer).await;
                            }
                        }
                    }
                });
            }
        });
        Server { address, port, scheme, seen, accepting }
    }

    /// Scheme, address and port.
    pub(super) fn url(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.address, self.port)
    }

    /// A rule for reading anything there.
    pub(super) fn reading(&self) -> String {
        format!("GET,HEAD {}/*", self.url())
    }

    /// A rule for anything there.
    pub(super) fn anything(&self) -> String {
        format!("GET,HEAD,POST,PUT {}/*", self.url())
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request.
    pub(super) fn one(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    kept: &Mutex<Vec<Seen>>,
    answer: &(impl Fn(&Seen) -> Vec<Piece> + ?Sized),
) {
    let Some(seen) = read(&mut stream).await else { return };
    kept.lock().unwrap().push(seen.clone());
    for piece in answer(&seen) {
        match piece {
            Piece::Bytes(bytes) => {
                // The gate hangs up on what is too large.
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
            Piece::Silence => std::future::pending().await,
            Piece::Drip => loop {
                if stream.write_all(b"x").await.is_err() || stream.flush().await.is_err() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            },
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let body = bytes[end + 4..].to_vec();
            let mut seen = Seen { head, body };
            let length: usize = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
            while seen.body.len() < length {
                let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
                seen.body.extend_from_slice(&part[..read]);
            }
            return Some(seen);
        }
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
    }
}

/// A whole answer.
pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<Piece> {
    let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    vec![Piece::Bytes(bytes)]
}

pub(super) fn ok(body: &str) -> Vec<Piece> {
    answer(200, &[], body.as_bytes())
}

pub(super) fn redirect(status: u16, to: &str) -> Vec<Piece> {
    answer(status, &[("location", to)], b"")
}

/// Whoever signs the certificates of the test's servers.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn der(&self) -> Vec<u8> {
        self.0.der().to_vec()
    }

    fn acceptor(&self, host: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
