//! The values of secrets: set on the way out, scrubbed on every way back, in no log and no error.

use std::collections::BTreeMap;
use std::fmt;

use checkrein_contract::grant::SecretUse;
use checkrein_contract::network::{Host, Rule, Scheme, Target};
use checkrein_contract::record::Wall;
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::NoAnswer;
use super::check::{Refusal, shown};

/// Bytes of the shortest secret: a shorter one would be found everywhere in what comes back.
pub const SECRET_MIN: usize = 6;
/// Bytes of the longest one: it has to fit into a header.
pub const SECRET_MAX: usize = 8 << 10;

/// Secrets by name. No component, trace or message ever holds a value.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, String>);

/// Why a value is no secret that can be set and scrubbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// It has fewer than [`SECRET_MIN`] bytes.
    #[error("it has {0} bytes, and {SECRET_MIN} are the fewest: a shorter one cannot be scrubbed")]
    Short(usize),
    /// It has more than [`SECRET_MAX`] bytes.
    #[error("it has {0} bytes, and {SECRET_MAX} are the most")]
    Long(usize),
    /// It has characters that no header can have, such as a line break at its end.
    #[error("it has a line break, or another character that a header cannot have")]
    NoHeader,
}

/// Whether a value can be set in a header, and scrubbed from what comes back. To be asked where
/// secrets are read.
///
/// # Errors
///
/// Why not, without the value.
pub fn check_secret(value: &str) -> Result<(), SecretFault> {
    if value.len() < SECRET_MIN {
        return Err(SecretFault::Short(value.len()));
    }
    if value.len() > SECRET_MAX {
        return Err(SecretFault::Long(value.len()));
    }
    HeaderValue::from_str(value).map_err(|_| SecretFault::NoHeader).map(drop)
}

impl Secrets {
    /// These secrets, as name and value; [`check_secret`] says whether a value can be one.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Secrets(secrets.into_iter().collect())
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of one.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        for value in std::mem::take(&mut self.0).into_values() {
            wipe(value.into_bytes());
        }
    }
}

/// Overwrites what is no longer needed.
pub(super) fn wipe(mut bytes: Vec<u8>) {
    bytes.fill(0);
    // So that the compiler does not leave the writing out.
    std::hint::black_box(&bytes);
}

/// Sets the secrets of this host in the place of whatever the guest set there.
///
/// A secret leaves only by TLS; or in the clear, to an address that the rule names: a service on
/// this machine or in its network, which the operator wrote down as such.
pub(super) fn set(
    headers: &mut HeaderMap,
    uses: &[SecretUse],
    secrets: &Secrets,
    rule: &Rule,
    method: &str,
    target: &Target,
) -> Result<(), Refusal> {
    let host = target.host.to_string();
    for granted in uses.iter().filter(|granted| granted.at.host == host) {
        let SecretUse { name, at } = granted;
        let refuse = |why: &str| {
            let what = format!("{}: the secret `{name}` for `{host}` {why}", shown(method, target));
            let told = NoAnswer::Denied(what.clone());
            Refusal { wall: Wall::Secret, what, grant: None, told }
        };
        let named = matches!(target.host, Host::Address(address) if rule.names(address));
        if target.scheme != Scheme::Https && !named {
            return Err(refuse("is only sent by https"));
        }
        // A part of an answer cannot be searched for the whole of a secret.
        if headers.contains_key(RANGE) || headers.contains_key(IF_RANGE) {
            return Err(refuse("is not sent with a request for a part, `Range`; ask for the whole"));
        }
        let value = secrets
            .get(name)
            .ok_or_else(|| refuse("is not there; its source belongs into the operator's own file"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| refuse("has characters that a header cannot have"))?;
        value.set_sensitive(true);
        let header = HeaderName::from_bytes(at.header.as_bytes())
            .map_err(|_| refuse("is granted for something that is no header"))?;
        headers.insert(header, value);
    }
    Ok(())
}
