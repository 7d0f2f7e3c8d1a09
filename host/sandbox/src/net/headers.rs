//! The headers of a request: what a guest may set, and what is dropped on the way to another
//! origin.

use checkrein_contract::grant::SecretUse;
use checkrein_contract::manifest::is_reserved;
use checkrein_contract::record::Wall;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, COOKIE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::NoAnswer;
use super::check::Refusal;
use crate::text::{excerpt, one_line};

/// Reads the headers that a guest set.
pub(super) fn read(headers: &[(String, Vec<u8>)]) -> Result<HeaderMap, Refusal> {
    let mut read = HeaderMap::new();
    for (name, value) in headers {
        let shown = one_line(&excerpt(name));
        if is_reserved(name) {
            return Err(invalid(format!("the header `{shown}` is the host's own, and no component sets it")));
        }
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid(format!("`{shown}` is no name of a header")))?;
        let value = HeaderValue::from_bytes(value).map_err(|_| {
            invalid(format!(
                "the value of the header `{shown}` has a line break or another control character"
            ))
        })?;
        read.try_append(name, value).map_err(|_| invalid("it has too many headers".to_owned()))?;
    }
    Ok(read)
}

/// A request that cannot be sent as it stands.
pub(super) fn invalid(why: String) -> Refusal {
    Refusal { wall: Wall::Request, what: why.clone(), grant: None, told: NoAnswer::Invalid(why) }
}

/// Drops what is meant for one origin alone: credentials, and every header that carries a secret
/// somewhere.
pub(super) fn drop_credentials(headers: &mut HeaderMap, secrets: &[SecretUse]) {
    headers.remove(AUTHORIZATION);
    headers.remove(COOKIE);
    for secret in secrets {
        headers.remove(&secret.at.header);
    }
}

/// Drops what describes a body that is no longer there.
pub(super) fn drop_body_headers(headers: &mut HeaderMap) {
    for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
        headers.remove(name);
    }
}

/// Bytes of headers as they travel: name, colon, space, value, line break.
pub(super) fn size(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}
