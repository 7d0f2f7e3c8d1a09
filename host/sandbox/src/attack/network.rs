//! Components that reach for the network.

use checkrein_contract::record::Wall;

use super::guest::{Guest, network};
use super::{Asked, Attack, Expected, Group};

pub(super) fn attacks() -> Vec<Attack> {
    let fetches = |name, asked, guest| {
        Attack::part(Group::Network, name, asked, Expected::Denied(Wall::Network), guest)
    };
    let socket = |name, guest| {
        Attack::part(Group::Network, name, Asked::Execute, Expected::Denied(Wall::Socket), guest)
    };
    vec![
        fetches("a request without a grant", Asked::Execute, || {
            let (mut guest, fetch) = fetching("https://example.org/");
            guest.execute = format!("{fetch} {}", guest.execute);
            guest
        }),
        fetches("a request from the trigger", Asked::Assess, || {
            let (mut guest, fetch) = fetching("https://example.org/");
            guest.assess = format!("{fetch} {}", guest.assess);
            guest
        }),
        fetches("a request from the recovery", Asked::Recover, || {
            let (mut guest, fetch) = fetching("https://example.org/");
            guest.recover = format!("{fetch} {}", guest.recover);
            guest
        }),
        fetches("a request through wasi http", Asked::Execute, || {
            network::gets_by_wasi_http("example.org", "/")
        })
        .logging("error: denied"),
        fetches("other spellings of what is granted", Asked::Execute, || fetching_all(&SPELLINGS))
            .granting("GET https://granted.invalid/public/*"),
        fetches("addresses in other spellings", Asked::Execute, || fetching_all(&ADDRESSES))
            .granting("GET http://granted.invalid/*"),
        fetches("methods that are not granted", Asked::Execute, || {
            let mut guest = Guest::default();
            guest.import_fetch();
            let url = "https://granted.invalid/public/a";
            let methods = ["POST", "PUT", "DELETE", "HEAD", "get", "GET ", "CONNECT", "TRACE"];
            let fetch = methods.map(|method| fetch(&mut guest, method, url)).concat();
            guest.execute = format!("{fetch} {}", guest.execute);
            guest
        })
        .granting("GET https://granted.invalid/public/*"),
        socket("a raw socket", network::opens_a_raw_tcp_socket),
        socket("a name looked up", || network::looks_up_a_name("secret.example.org")),
        // It traps if there is anything in them.
        Attack::part(
            Group::Secrets,
            "reading the environment and arguments",
            Asked::Execute,
            Expected::Nothing,
            network::reads_the_environment,
        ),
    ]
}

/// URLs that look as if `https://granted.invalid/public/*` allowed them. The name leads nowhere, so
/// that one that was let through would reach nobody, and fail in another way than it must.
const SPELLINGS: [&str; 12] = [
    "https://granted.invalid/public",
    "https://granted.invalid/public/../secret",
    "https://granted.invalid/public/%2e%2e/secret",
    "https://granted.invalid/public/.%2E/secret",
    "https://granted.invalid/public\\..\\secret",
    "https://granted.invalid/PUBLIC/a",
    "http://granted.invalid/public/a",
    "https://granted.invalid:444/public/a",
    "https://granted.invalid.other.invalid/public/a",
    "https://other.invalid/https://granted.invalid/public/a",
    "https://granted.invalid@other.invalid/public/a",
    "https://user:word@granted.invalid/public/a",
];

/// This machine and those near it, in spellings of which most look like no address.
const ADDRESSES: [&str; 10] = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://2130706433/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://0.0.0.0/",
    "http://169.254.169.254/latest/meta-data/",
    "http://localhost/",
];

/// A guest that can fetch, and the instructions that do.
fn fetching(url: &str) -> (Guest, String) {
    let mut guest = Guest::default();
    guest.import_fetch();
    let fetch = fetch(&mut guest, "GET", url);
    (guest, fetch)
}

/// A guest that fetches each of these.
fn fetching_all(urls: &[&str]) -> Guest {
    let mut guest = Guest::default();
    guest.import_fetch();
    let fetch: String = urls.iter().map(|url| fetch(&mut guest, "GET", url)).collect();
    guest.execute = format!("{fetch} {}", guest.execute);
    guest
}

/// The instructions that fetch, and trap unless the host says `denied` or `invalid`: one request
/// that is let through then shows, however many others are refused.
fn fetch(guest: &mut Guest, method: &str, url: &str) -> String {
    let (method, url) = (guest.image.text(method), guest.image.text(url));
    // A `result`, and at 8 the case of its error: the first is `denied`, the fourth `invalid`.
    format!(
        "(call $fetch (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {})
           (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 65536))
         (if (i32.ne (i32.load8_u (i32.const 65536)) (i32.const 1)) (then unreachable))
         (if (i32.and (i32.ne (i32.load8_u offset=8 (i32.const 65536)) (i32.const 0))
             (i32.ne (i32.load8_u offset=8 (i32.const 65536)) (i32.const 3))) (then unreachable))",
        method[0], method[1], url[0], url[1]
    )
}
