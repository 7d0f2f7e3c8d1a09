//! The way out, through the operator's allowlist. Natively everything is denied.

use crate::Failure;

/// A request. Start from [`Request::get`] or [`Request::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// `http` or `https`.
    pub url: String,
    /// Names and values; `Host` and hop-by-hop headers are the host's.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Vec<u8>,
    /// Milliseconds, within what the call has left.
    pub timeout_ms: Option<u32>,
}

/// A response of any status.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Where it came from, after redirects.
    pub url: String,
    /// The status code.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The whole body, decompressed.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Not on the allowlist; says which grant is missing.
    Denied(String),
    /// No answer in time.
    TimedOut,
    /// Larger than so many bytes, the largest response allowed.
    TooLarge(u64),
    /// The request cannot be sent as it stands.
    Invalid(String),
    /// The connection failed.
    Transport(String),
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: None,
        }
    }

    /// A `GET` request.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends it.
    ///
    /// # Errors
    ///
    /// Why there is no response. A status of 400 and more is a response.
    pub fn send(self) -> Result<Response, Error> {
        send(self)
    }
}

/// So that `?` in a skill turns it into the failure whose recovery fits.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(missing) => Self::denied(missing),
            Error::TimedOut => Self::unavailable("no answer in time"),
            Error::TooLarge(most) => {
                Self::unsupported(format!("the response is larger than {most} bytes"))
            }
            Error::Invalid(message) => {
                Self::invalid_args(format!("the request is not valid: {message}"))
            }
            Error::Transport(message) => Self::unavailable(message),
        }
    }
}

#[cfg(target_family = "wasm")]
fn send(request: Request) -> Result<Response, Error> {
    use crate::bindings::skill::checkrein::skill::http;

    let request = http::Request {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body,
        timeout_ms: request.timeout_ms,
    };
    match http::fetch(&request) {
        Ok(response) => Ok(Response {
            url: response.url,
            status: response.status,
            headers: response.headers,
            body: response.body,
        }),
        Err(error) => Err(match error {
            http::Error::Denied(missing) => Error::Denied(missing),
            http::Error::TimedOut => Error::TimedOut,
            http::Error::TooLarge(most) => Error::TooLarge(most),
            http::Error::Invalid(message) => Error::Invalid(message),
            http::Error::Transport(message) => Error::Transport(message),
        }),
    }
}

#[cfg(not(target_family = "wasm"))]
fn send(request: Request) -> Result<Response, Error> {
    Err(Error::Denied(format!("there is no network outside the sandbox: {}", request.url)))
}
