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
        }),
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

/// A guest that can fetch, and the instructions that do.
fn fetching(url: &str) -> (Guest, String) {
    let mut guest = Guest::default();
    guest.import_fetch();
    let (method, url) = (guest.image.text("GET"), guest.image.text(url));
    let fetch = format!(
        "(call $fetch (i32.const {}) (i32.const {}) (i32.const {}) (i32.const {})
           (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 65536))",
        method[0], method[1], url[0], url[1]
    );
    (guest, fetch)
}
