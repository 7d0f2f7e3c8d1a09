//! The compiling worker: reads one component, answers with its code, and ends. It compiles what a
//! stranger wrote, and the compiler cannot be interrupted: so it has a process that can be.

use std::io::{stdin, stdout};

use super::Role;
use super::frame::{self, Frame};
use super::harden::harden;
use super::wire::Compiled;

pub(super) fn main() -> Result<(), String> {
    let hardening = harden(Role::Compile, None)?;
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let mut send = |message: &Compiled, raw: &[u8]| {
        frame::write(&mut output, message, raw, Role::Compile.most_out()).map_err(|error| error.to_string())
    };
    send(&Compiled::Ready(hardening), &[])?;
    let Frame { message: (), raw } =
        frame::read(&mut input, Role::Compile.most_in()).map_err(|error| error.to_string())?;
    let engine = crate::engine::build_for_compiling().map_err(|error| error.to_string())?;
    match engine.precompile_component(&raw) {
        Ok(code) => send(&Compiled::Done, &code),
        Err(error) => send(&Compiled::Refused(format!("{error:#}")), &[]),
    }
}
