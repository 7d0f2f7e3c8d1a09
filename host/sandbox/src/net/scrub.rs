//! Finds the secrets of a call in what comes back, in the spellings that servers give them.
//!
//! A server that works with the guest can always encode a secret in a way that nobody knows; it
//! had the secret anyway. What is found here is what servers do by themselves: echo it, in
//! headers, JSON, HTML, URLs, basic authentication and hexadecimal dumps.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use checkrein_contract::grant::SecretUse;

use super::secrets::{SECRET_MIN, Secrets, wipe};

/// How what stands for a secret begins.
pub(super) const MARK: &str = "[secret ";

/// Replaces the secrets of one call by `[secret NAME]`.
#[derive(Default)]
pub(crate) struct Scrubber(Vec<Needle>);

/// One secret in one form.
struct Needle {
    name: String,
    bytes: Vec<u8>,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is, or any of its bytes escaped as in URLs, JSON, JavaScript or HTML.
    Text,
    /// Two digits a byte, in either case.
    Hex,
    /// The characters that depend on the secret alone; and whether the ones in front and behind
    /// depend on it in part.
    Base64 { before: bool, after: bool },
}

impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.iter().map(|needle| &needle.name)).finish()
    }
}

impl Drop for Needle {
    fn drop(&mut self) {
        wipe(std::mem::take(&mut self.bytes));
    }
}

impl Scrubber {
    /// For the secrets that a call may send.
    pub(crate) fn new(uses: &[SecretUse], secrets: &Secrets) -> Self {
        let mut names: Vec<&str> = uses.iter().map(|granted| granted.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut needles = Vec::new();
        for name in names {
            let Some(value) = secrets.get(name) else { continue };
            for part in parts(value) {
                needles.extend(forms(name, &part));
                wipe(part);
            }
        }
        // The longest first: a part of a secret is not replaced inside of the whole one.
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.bytes.len()));
        Scrubber(needles)
    }

    /// Whether there is nothing to scrub.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without secrets.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for a text that is owned.
    pub(crate) fn string(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(scrubbed) => scrubbed,
        }
    }

    /// The bytes without secrets.
    pub(crate) fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let begins = self.beginnings();
        let (mut clean, mut at, mut copied) = (Vec::new(), 0, 0);
        while at < bytes.len() {
            let found = if begins[usize::from(bytes[at])] { self.find(bytes, at) } else { None };
            let Some((needle, end)) = found else {
                at += 1;
                continue;
            };
            clean.extend_from_slice(&bytes[copied..at]);
            let mut end = end;
            if let Form::Base64 { before, after } = needle.form {
                if before && at > copied && is_base64(bytes[at - 1]) {
                    clean.pop();
                }
                end += usize::from(after && bytes.get(end).is_some_and(|byte| is_base64(*byte)));
                while bytes.get(end) == Some(&b'=') {
                    end += 1;
                }
            }
            clean.extend_from_slice(format!("{MARK}{}]", needle.name).as_bytes());
            (at, copied) = (end, end);
        }
        if copied == 0 && clean.is_empty() {
            return Cow::Borrowed(bytes);
        }
        clean.extend_from_slice(&bytes[copied..]);
        Cow::Owned(clean)
    }

    fn find(&self, bytes: &[u8], at: usize) -> Option<(&Needle, usize)> {
        self.0.iter().find_map(|needle| needle.at(bytes, at).map(|end| (needle, end)))
    }

    /// The bytes that a secret can begin with.
    fn beginnings(&self) -> [bool; 256] {
        let mut begins = [false; 256];
        for escape in *b"%\\&+-/_" {
            begins[usize::from(escape)] = true;
        }
        for first in self.0.iter().filter_map(|needle| needle.bytes.first()) {
            begins[usize::from(first.to_ascii_lowercase())] = true;
            begins[usize::from(first.to_ascii_uppercase())] = true;
        }
        begins
    }
}

/// What of a value is secret by itself: the whole, what follows a scheme such as `Bearer`, and of
/// `Basic` what is encoded there and the password in it.
fn parts(value: &str) -> Vec<Vec<u8>> {
    let mut parts = vec![value.as_bytes().to_vec()];
    if let Some((scheme, rest)) = value.split_once(' ')
        && scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        let rest = rest.trim();
        parts.push(rest.as_bytes().to_vec());
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(decoded) = STANDARD.decode(rest)
        {
            if let Some(colon) = decoded.iter().position(|byte| *byte == b':') {
                parts.push(decoded[colon + 1..].to_vec());
            }
            parts.push(decoded);
        }
    }
    parts.retain(|part| part.len() >= SECRET_MIN);
    parts
}

fn forms(name: &str, secret: &[u8]) -> Vec<Needle> {
    let needle = |bytes: Vec<u8>, form| Needle { name: name.to_owned(), bytes, form };
    let hex = secret.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let mut needles = vec![needle(secret.to_vec(), Form::Text), needle(hex.into_bytes(), Form::Hex)];
    for shift in 0..3 {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(secret);
        let encoded = STANDARD.encode(&padded).trim_end_matches('=').to_owned();
        let after = padded.len() % 3 != 0;
        // Characters in front that other bytes have a part in: none, two or three.
        let front = if shift == 0 { 0 } else { shift + 1 };
        let core = &encoded.as_bytes()[front..encoded.len() - usize::from(after)];
        needles.push(needle(core.to_vec(), Form::Base64 { before: shift > 0, after }));
        wipe(padded);
        wipe(encoded.into_bytes());
    }
    needles
}

impl Needle {
    /// Where it ends, if it begins here.
    fn at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let (first, rest) = self.bytes.split_first()?;
        // An escaped byte can look like a plain one, so all places are followed that it could end at.
        // Nothing is allocated until a first byte is there.
        let mut ends = Vec::new();
        self.step(bytes, at, *first, &mut ends);
        for wanted in rest {
            if ends.is_empty() {
                return None;
            }
            let mut next = Vec::new();
            for end in ends {
                self.step(bytes, end, *wanted, &mut next);
            }
            next.dedup();
            ends = next;
        }
        ends.into_iter().max()
    }

    /// Where the byte after this place ends, if it stands for the one that is wanted.
    fn step(&self, bytes: &[u8], at: usize, wanted: u8, ends: &mut Vec<usize>) {
        let Some(&byte) = bytes.get(at) else { return };
        match self.form {
            Form::Hex => {
                if byte.eq_ignore_ascii_case(&wanted) {
                    ends.push(at + 1);
                }
            }
            Form::Text => {
                // Hosts and names of headers come back in lower case.
                if byte.eq_ignore_ascii_case(&wanted) || (byte == b'+' && wanted == b' ') {
                    ends.push(at + 1);
                }
                ends.extend(escaped(bytes, at, wanted));
            }
            Form::Base64 { .. } => {
                let at = at + bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                let same = |byte: u8| match wanted {
                    b'+' | b'-' => matches!(byte, b'+' | b'-'),
                    b'/' | b'_' => matches!(byte, b'/' | b'_'),
                    _ => byte == wanted,
                };
                if bytes.get(at).is_some_and(|byte| same(*byte)) {
                    ends.push(at + 1);
                }
                ends.extend(escaped(bytes, at, wanted));
            }
        }
    }
}

/// Where the escape ends that stands here for this byte: `%41`, `\u0041`, `\x41`, `\"`, `&#65;`,
/// `&#x41;`, `&quot;`.
fn escaped(bytes: &[u8], at: usize, wanted: u8) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let is = |value: Option<u32>| value == Some(u32::from(wanted));
    match rest {
        [b'%', ..] => is(number(rest.get(1..3), 16)).then_some(at + 3),
        [b'\\', b'u', ..] => is(number(rest.get(2..6), 16)).then_some(at + 6),
        [b'\\', b'x', ..] if is(number(rest.get(2..4), 16)) => Some(at + 4),
        [b'\\', byte, ..] => (*byte == wanted && byte.is_ascii_punctuation()).then_some(at + 2),
        [b'&', ..] => {
            let end = rest.iter().take(10).position(|byte| *byte == b';')?;
            let found = match &rest[1..end] {
                [b'#', b'x' | b'X', digits @ ..] => number(Some(digits), 16),
                [b'#', digits @ ..] => number(Some(digits), 10),
                b"amp" => Some(u32::from(b'&')),
                b"lt" => Some(u32::from(b'<')),
                b"gt" => Some(u32::from(b'>')),
                b"quot" => Some(u32::from(b'"')),
                b"apos" => Some(u32::from(b'\'')),
                _ => None,
            };
            is(found).then_some(at + end + 1)
        }
        _ => None,
    }
}

fn number(digits: Option<&[u8]>, radix: u32) -> Option<u32> {
    let digit = |digit: &u8| char::from(*digit).to_digit(radix);
    digits?.iter().try_fold(0u32, |number, byte| number.checked_mul(radix)?.checked_add(digit(byte)?))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
