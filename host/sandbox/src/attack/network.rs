//! Components that reach for the network.

use checkrein_contract::record::Wall;

use super::guest::Guest;
use super::{Asked, Attack, Expected, Group};

pub(super) fn attacks() -> Vec<Attack> {
    let fetches = |name, asked, guest| {
        Attack::part(Group::Network, name, asked, Expected::Denied(Wall::Network), guest)
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
