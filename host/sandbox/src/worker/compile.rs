//! The compiling worker: reads one component, answers with its code, and ends. It compiles what a
//! stranger wrote, and the compiler cannot be interrupted: so it has a process that can be.

use std::ffi::OsString;
use std::io::{stdin, stdout};

use super::Role;
use super::frame::{self, Frame};
use super::harden::harden;
use super::wire::Compiled;
use crate::text::at_most;

/// Bytes of the engine's words that are told: they may quote the component.
const TOLD: usize = 16 << 10;

/// `seconds` is how much processor time it may use.
pub(super) fn main(seconds: Option<OsString>) -> Result<(), String> {
    let seconds = seconds.and_then(|text| text.to_str().and_then(|text| text.parse().ok()));
    let seconds = seconds.ok_or("no seconds of processor time were named")?;
    let hardening = harden(Role::Compile, None, Some(seconds))?;
    let engine = crate::engine::build_for_compiling().map_err(|error| error.to_string())?;
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let mut send = |message: &Compiled, raw: &[u8]| {
        frame::write(&mut output, message, raw, Role::Compile.most_out()).map_err(|error| error.to_string())
    };
    send(&Compiled::Ready { build: crate::cache::build(&engine), hardening }, &[])?;
    let Frame { message: (), raw } =
        frame::read(&mut input, Role::Compile.most_in()).map_err(|error| error.to_string())?;
    match engine.precompile_component(&raw) {
        Ok(code) => send(&Compiled::Done, &code),
        Err(error) => send(&Compiled::Refused(at_most(&format!("{error:#}"), TOLD)), &[]),
    }
}
