//! Progress of long work, shown live. Natively it goes nowhere.

/// `done` of `total` units; a total of 0 means unknown.
#[cfg(target_family = "wasm")]
pub fn report(done: u32, total: u32, message: &str) {
    crate::bindings::skill::checkrein::skill::progress::report(done, total, message);
}

/// `done` of `total` units; a total of 0 means unknown.
#[cfg(not(target_family = "wasm"))]
pub fn report(_done: u32, _total: u32, _message: &str) {}
