//! Network rules: what may leave, in one canonical form.
//!
//! A rule is `[METHOD[,METHOD]] scheme://host[:port][/path/*]`. A rule and a request are brought
//! to the same form, by the URL standard, before they are compared, so that no spelling of a host,
//! port or path slips past.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

/// Bytes of the longest URL that a request may have.
pub const URL_MAX: usize = 8 << 10;
/// The methods that a rule without any allows.
const SAFE: [&str; 2] = ["GET", "HEAD"];

/// A scheme that can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// By TLS.
    Https,
}

impl Scheme {
    fn of(word: &str) -> Option<Self> {
        match word {
            "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            _ => None,
        }
    }

    /// The port where none is named.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}

/// A host, in its canonical form. An IPv6 address that stands for an IPv4 one is that one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name: lower case, IDNA, without a final dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Host {
    fn of(url: &Url) -> Option<Self> {
        Some(match url.host()? {
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                if name.is_empty() || name.ends_with('.') {
                    return None;
                }
                Host::Name(name.to_owned())
            }
            url::Host::Ipv4(address) => Host::Address(address.into()),
            url::Host::Ipv6(address) => Host::Address(plain(address.into())),
        })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The IPv4 address that an IPv6 address stands for (mapped, `::ffff:0:0/96`); any other as it is.
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether an address is one that only a rule which names it can reach: loopback, private,
/// link-local (cloud metadata included), shared, documentation, multicast, reserved, and the IPv6
/// ranges that carry an IPv4 address inside (NAT64, 6to4, Teredo, IPv4-compatible).
///
/// By the IANA special-purpose address registries (RFC 6890 and its updates).
pub fn is_special(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(address) => is_special_v4(address),
        IpAddr::V6(address) => is_special_v6(address),
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 31, 196)
            | (192, 52, 193)
            | (192, 88, 99)
            | (192, 168, _)
            | (192, 175, 48)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224.., _, _)
    )
}

fn is_special_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is handed out; what lies inside it for a purpose is taken out again.
    let global = (a & 0xe000) == 0x2000;
    let special = a == 0x2002
        || (a == 0x2001 && (b < 0x0200 || b == 0x0db8))
        || (a == 0x2620 && b == 0x004f)
        || (a == 0x3fff && b < 0x1000)
        || a == 0x3ffe;
    !global || special
}

/// Where a request goes, in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port, the scheme's own included.
    pub port: u16,
    /// The path, with dots resolved; at least `/`.
    pub path: String,
    /// What follows the `?`.
    pub query: Option<String>,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    ///
    /// Why no request can go there, in words that follow the URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > URL_MAX {
            return Err(format!("it has {} bytes, and {URL_MAX} are the most", text.len()));
        }
        // The standard drops these silently; a request that relies on that is no honest one.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("it has white space or control characters".to_owned());
        }
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        let scheme = Scheme::of(url.scheme()).ok_or("its scheme is neither http nor https")?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it has a user or password in front of the host".to_owned());
        }
        let host = Host::of(&url).ok_or("it has no host")?;
        let port = url.port().unwrap_or_else(|| scheme.port());
        if port == 0 {
            return Err("port 0 is none".to_owned());
        }
        if climbs(url.path()) {
            return Err("its path has an encoded `.` or `..` segment".to_owned());
        }
        let path = canonical_path(url.path());
        Ok(Target { scheme, host, port, path, query: url.query().map(str::to_owned) })
    }

    /// Where a redirect from here leads.
    ///
    /// # Errors
    ///
    /// As [`Target::parse`].
    pub fn join(&self, location: &str) -> Result<Self, String> {
        let base = Url::parse(&self.to_string()).map_err(|error| error.to_string())?;
        let url = base.join(location).map_err(|error| error.to_string())?;
        Target::parse(url.as_str())
    }

    /// Scheme, host and port: what credentials belong to.
    pub fn origin(&self) -> (Scheme, &Host, u16) {
        (self.scheme, &self.host, self.port)
    }

    /// Scheme, host, and the port where it is not the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)?;
        self.query.iter().try_for_each(|query| write!(f, "?{query}"))
    }
}

/// Which hosts a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hosts {
    One(Host),
    /// All names below this one, not itself.
    Below(String),
}

impl Hosts {
    fn allows(&self, host: &Host) -> bool {
        match (self, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(below), Host::Name(name)) => is_below(name, below),
            (Hosts::Below(_), Host::Address(_)) => false,
        }
    }
}

/// Which paths a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Paths {
    One(String),
    /// All that begin with this, which ends in `/`.
    Below(String),
}

impl Paths {
    fn allows(&self, path: &str) -> bool {
        match self {
            Paths::One(one) => one == path,
            Paths::Below(prefix) => path.starts_with(prefix.as_str()),
        }
    }
}

/// What may leave: methods, scheme, host, port and path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    methods: BTreeSet<String>,
    scheme: Scheme,
    hosts: Hosts,
    port: u16,
    paths: Paths,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// What should have been there.
    pub expected: String,
    /// What is there instead.
    pub found: String,
    /// The likely correction, or empty.
    pub mend: String,
}

const SHAPE: &str = "`[METHOD[,METHOD]] scheme://host[:port][/path/*]`";

impl RuleFault {
    fn new(expected: &str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        RuleFault { expected: expected.to_owned(), found: found.into(), mend: mend.into() }
    }
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// If it is none, or could never match a request.
    pub fn parse(text: &str) -> Result<Self, RuleFault> {
        let text = text.trim();
        let (methods, url) = match text.rsplit_once(char::is_whitespace) {
            Some((methods, url)) => (read_methods(methods)?, url),
            None => (SAFE.iter().map(|method| (*method).to_owned()).collect(), text),
        };
        let Some((scheme_word, rest)) = url.split_once("://") else {
            return Err(RuleFault::new(SHAPE, format!("{text:?}"), without_scheme(url)));
        };
        let Some(scheme) = Scheme::of(&scheme_word.to_ascii_lowercase()) else {
            let found = format!("the scheme `{scheme_word}`");
            return Err(RuleFault::new("http or https", found, "only these two can leave"));
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if path.contains(['?', '#']) || authority.contains(['?', '#']) {
            let (before, _) = url.split_once(['?', '#']).unwrap_or((url, ""));
            let found = format!("{url:?}, with a query or fragment");
            return Err(RuleFault::new(
                "a path at most",
                found,
                format!("a rule allows every query: {before:?}"),
            ));
        }
        let (wild, authority) = match authority.strip_prefix("*.") {
            Some(below) => (true, below),
            None => (false, authority),
        };
        if authority.contains('*') {
            let found = format!("the host `{authority}`");
            return Err(RuleFault::new(
                "a host, or `*.` and a host",
                found,
                "`*` stands only for whole labels in front",
            ));
        }
        let (prefix, star) = match path.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('/') => (prefix, true),
            Some(prefix) => {
                let mend = format!("{scheme}://{authority}{prefix}/*");
                return Err(RuleFault::new("`*` after a `/`", format!("the path {path:?}"), mend));
            }
            None => (path, false),
        };
        if prefix.contains('*') {
            return Err(RuleFault::new("`*` at the end alone", format!("the path {path:?}"), ""));
        }
        let target = Target::parse(&format!("{scheme}://{authority}{prefix}"))
            .map_err(|why| RuleFault::new(SHAPE, format!("{url:?}: {why}"), ""))?;
        check_path(prefix, &target.path)?;
        let hosts = match (wild, target.host) {
            (false, host) => Hosts::One(host),
            (true, Host::Name(name)) if name.contains('.') => Hosts::Below(name),
            (true, host) => {
                let found = format!("`*.{host}`");
                let mend = "a wildcard needs a domain of its own, such as `*.example.org`";
                return Err(RuleFault::new("names below a domain", found, mend));
            }
        };
        let paths = if star || path.is_empty() { Paths::Below(target.path) } else { Paths::One(target.path) };
        Ok(Rule { methods, scheme, hosts, port: target.port, paths })
    }

    /// The narrowest rule for one request.
    pub fn exactly(method: &str, target: &Target) -> Self {
        Rule {
            methods: BTreeSet::from([method.to_owned()]),
            scheme: target.scheme,
            hosts: Hosts::One(target.host.clone()),
            port: target.port,
            paths: Paths::One(target.path.clone()),
        }
    }

    /// Whether it allows this request. `method` as it is sent.
    pub fn allows(&self, method: &str, target: &Target) -> bool {
        self.differs(method, target).is_empty()
    }

    /// In what a request differs from what it allows: `host`, `scheme`, `port`, `method`, `path`.
    pub fn differs(&self, method: &str, target: &Target) -> Vec<&'static str> {
        let parts = [
            ("host", self.hosts.allows(&target.host)),
            ("scheme", self.scheme == target.scheme),
            ("port", self.port == target.port),
            ("method", self.methods.contains(method)),
            ("path", self.paths.allows(&target.path)),
        ];
        parts.into_iter().filter(|(_, same)| !same).map(|(part, _)| part).collect()
    }

    /// Whether it is about this origin, whatever the method and path.
    pub fn reaches(&self, target: &Target) -> bool {
        self.hosts.allows(&target.host) && self.scheme == target.scheme && self.port == target.port
    }

    /// Whether it is about this host, whatever else it says. `host` in canonical form.
    pub fn is_about(&self, host: &str) -> bool {
        match &self.hosts {
            Hosts::One(one) => one.to_string() == host,
            Hosts::Below(below) => is_below(host, below),
        }
    }

    /// Whether it names this very address: only then a special one may be reached.
    pub fn names(&self, address: IpAddr) -> bool {
        self.hosts == Hosts::One(Host::Address(plain(address)))
    }

    /// Whether it allows a request that changes something: any method but GET and HEAD.
    pub fn changes(&self) -> bool {
        self.methods.iter().any(|method| !SAFE.contains(&method.as_str()))
    }

    /// What both allow; `None` if that is nothing.
    pub fn and(&self, other: &Rule) -> Option<Rule> {
        let methods: BTreeSet<String> = self.methods.intersection(&other.methods).cloned().collect();
        if methods.is_empty() || self.scheme != other.scheme || self.port != other.port {
            return None;
        }
        let hosts = match (&self.hosts, &other.hosts) {
            (one, two) if one == two => one.clone(),
            (Hosts::One(Host::Name(name)), Hosts::Below(below))
            | (Hosts::Below(below), Hosts::One(Host::Name(name)))
                if is_below(name, below) =>
            {
                Hosts::One(Host::Name(name.clone()))
            }
            (Hosts::Below(one), Hosts::Below(two)) if is_below(one, two) => Hosts::Below(one.clone()),
            (Hosts::Below(one), Hosts::Below(two)) if is_below(two, one) => Hosts::Below(two.clone()),
            _ => return None,
        };
        let paths = match (&self.paths, &other.paths) {
            (one @ Paths::One(path), any) | (any, one @ Paths::One(path)) if any.allows(path) => one.clone(),
            (Paths::Below(one), Paths::Below(two)) if one.starts_with(two.as_str()) => {
                Paths::Below(one.clone())
            }
            (Paths::Below(one), Paths::Below(two)) if two.starts_with(one.as_str()) => {
                Paths::Below(two.clone())
            }
            _ => return None,
        };
        Some(Rule { methods, scheme: self.scheme, hosts, port: self.port, paths })
    }

    /// Whether it allows all that the other does.
    pub fn covers(&self, other: &Rule) -> bool {
        self.and(other).as_ref() == Some(other)
    }

    /// This rule for reading alone: GET and HEAD; `None` if it allows neither.
    pub fn reading(&self) -> Option<Rule> {
        let methods: BTreeSet<String> =
            self.methods.iter().filter(|method| SAFE.contains(&method.as_str())).cloned().collect();
        (!methods.is_empty()).then(|| Rule { methods, ..self.clone() })
    }

    /// A request that it allows, as method and URL.
    pub fn example(&self) -> (String, String) {
        let path = match &self.paths {
            Paths::One(path) => path.clone(),
            Paths::Below(prefix) => format!("{prefix}x"),
        };
        let host = match &self.hosts {
            Hosts::One(host) => host.to_string(),
            Hosts::Below(below) => format!("a.{below}"),
        };
        (self.methods.iter().next().cloned().unwrap_or_default(), self.url(&host, &path))
    }

    /// Requests that look alike and that it does not allow, as method, URL and what differs.
    pub fn near_misses(&self) -> Vec<(String, String, &'static str)> {
        let (method, url) = self.example();
        let other_method = ["GET", "POST", "DELETE", "PUT"]
            .into_iter()
            .find(|method| !self.methods.contains(*method))
            .unwrap_or("TRACE");
        let host = match &self.hosts {
            Hosts::One(Host::Name(name)) => format!("{name}.evil.example"),
            Hosts::One(host) => host.to_string(),
            Hosts::Below(below) => below.clone(),
        };
        let path = match &self.paths {
            Paths::One(path) => format!("{path}x"),
            Paths::Below(prefix) => prefix.trim_end_matches('/').to_owned() + "x",
        };
        let mut misses = vec![(other_method.to_owned(), url, "method")];
        if !matches!(&self.hosts, Hosts::One(Host::Address(_))) {
            misses.push((method.clone(), self.url(&host, "/"), "host"));
        }
        if !matches!(&self.paths, Paths::Below(prefix) if prefix == "/") {
            let host = match &self.hosts {
                Hosts::One(host) => host.to_string(),
                Hosts::Below(below) => format!("a.{below}"),
            };
            misses.push((method.clone(), self.url(&host, &path), "path"));
        }
        let scheme = if self.scheme == Scheme::Https { Scheme::Http } else { Scheme::Https };
        let swapped = Rule { scheme, ..self.clone() }.example().1;
        misses.push((method.clone(), swapped, "scheme"));
        let port = if self.port == u16::MAX { 1 } else { self.port + 1 };
        misses.push((method, Rule { port, ..self.clone() }.example().1, "port"));
        misses
    }

    fn url(&self, host: &str, path: &str) -> String {
        let port = if self.port == self.scheme.port() { String::new() } else { format!(":{}", self.port) };
        format!("{}://{host}{port}{path}", self.scheme)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(String::as_str).collect();
        let host = match &self.hosts {
            Hosts::One(host) => host.to_string(),
            Hosts::Below(below) => format!("*.{below}"),
        };
        let path = match &self.paths {
            Paths::One(path) => path.clone(),
            Paths::Below(prefix) => format!("{prefix}*"),
        };
        write!(f, "{} {}", methods.join(","), self.url(&host, &path))
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Rule::parse(&text).map_err(|fault| {
            serde::de::Error::custom(format!("expected {}, found {}", fault.expected, fault.found))
        })
    }
}

fn is_below(name: &str, below: &str) -> bool {
    name.strip_suffix(below).is_some_and(|front| front.ends_with('.') && front.len() > 1)
}

/// Whether a method can leave, and so stand in a rule: one word in upper case, neither CONNECT nor
/// TRACE.
pub fn is_method(method: &str) -> bool {
    let word = !method.is_empty() && method.chars().all(|c| c.is_ascii_uppercase());
    word && !matches!(method, "CONNECT" | "TRACE")
}

fn read_methods(text: &str) -> Result<BTreeSet<String>, RuleFault> {
    let methods: Vec<&str> = text.split(',').map(str::trim).collect();
    for method in &methods {
        let upper = method.to_ascii_uppercase();
        if *method != upper {
            let mend = format!("a method is compared as it is sent: `{upper}`");
            return Err(RuleFault::new("methods in upper case", format!("`{method}`"), mend));
        }
        if !is_method(method) {
            let mend = "such as `GET,POST https://api.example.org/*`; CONNECT and TRACE never leave";
            return Err(RuleFault::new("methods, with commas between", format!("`{method}`"), mend));
        }
    }
    Ok(methods.into_iter().map(str::to_owned).collect())
}

/// A path that is not canonical would never be met by a request, which always is.
fn check_path(written: &str, canonical: &str) -> Result<(), RuleFault> {
    if written.is_empty() || written == canonical {
        return Ok(());
    }
    let found = format!("the path {written:?}, which no request has");
    Err(RuleFault::new("a path as it is sent", found, format!("write {canonical:?}")))
}

/// The path in the one spelling that it has here: what needs no encoding stands as it is, what is
/// encoded in upper case. `*` is always encoded: in a rule it stands for all paths, and the rule that
/// is proposed for one request must not allow more than it.
fn canonical_path(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut canonical = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let encoded = encoded(bytes, at);
        at += if encoded.is_some() { 3 } else { 1 };
        match encoded {
            Some(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') => {
                canonical.push(char::from(byte));
            }
            Some(byte) => canonical.push_str(&format!("%{byte:02X}")),
            None if *byte == b'*' => canonical.push_str("%2A"),
            // Left alone, it would be read as one with what is decoded behind it: `%3%30` as `%30`.
            None if *byte == b'%' => canonical.push_str("%25"),
            None => canonical.push(char::from(*byte)),
        }
    }
    canonical
}

/// Times that a path is decoded in search of `..`; one that is encoded more often is no honest one.
const DECODED_MAX: usize = 4;

/// Whether a server that decodes the path, once or again, might see a segment that leads upwards:
/// `..%2F`, `%252e%252e`, `..\\`, `..;x`, `..%3F`, `..%00`; in other letters for dots, or in a UTF-8
/// longer than it need be. What follows two dots in an honest name is a letter, a digit or `-_.`.
fn climbs(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..DECODED_MAX {
        if bytes.iter().any(|byte| byte.is_ascii_control() || matches!(byte, 0xc0 | 0xc1)) {
            return true;
        }
        // The encoding of scripts, which no standard knows and some servers decode.
        if bytes.windows(2).any(|pair| pair.eq_ignore_ascii_case(b"%u")) {
            return true;
        }
        let text = String::from_utf8_lossy(&bytes).replace(['\u{ff0e}', '\u{2024}', '\u{fe52}'], ".");
        let text =
            text.replace('\u{2025}', "..").replace(['\u{ff0f}', '\u{2044}', '\u{2215}', '\u{ff3c}'], "/");
        if text.split(['/', '\\']).any(leads_upwards) {
            return true;
        }
        let decoded = decoded(&bytes);
        if decoded == bytes {
            return false;
        }
        bytes = decoded;
    }
    true
}

/// Whether a segment is one or two dots, by itself or in front of what a server may cut off.
fn leads_upwards(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('.') else { return false };
    let rest = rest.strip_prefix('.').unwrap_or(rest);
    rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'))
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let encoded = encoded(bytes, at);
        at += if encoded.is_some() { 3 } else { 1 };
        decoded.push(encoded.unwrap_or(*byte));
    }
    decoded
}

/// The byte that `%XX` at this place stands for.
fn encoded(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = bytes.get(at..at + 3)? else { return None };
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    Some(digit(high)? * 16 + digit(low)?)
}

fn without_scheme(url: &str) -> String {
    let host = url.split(['/', ':']).next().unwrap_or_default();
    let local = matches!(host, "localhost" | "127.0.0.1") || url.starts_with("[::1]");
    if url.is_empty() || url.contains("*") && !url.contains('.') {
        return "name the host: there is no rule for every one".to_owned();
    }
    let scheme = if local { "http" } else { "https" };
    let url = if host == "localhost" { url.replacen("localhost", "127.0.0.1", 1) } else { url.to_owned() };
    format!("did you mean \"{scheme}://{url}\"?")
}

#[cfg(test)]
mod tests;
