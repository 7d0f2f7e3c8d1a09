//! What each command does.

mod attack;
mod attempt;
mod call;
mod doctor;
mod lint;
mod policy;
mod read;
mod run;
mod skill;

use crate::args::{Cli, Command};
use crate::error::CliError;

/// Performs a command, and gives its exit code.
///
/// # Errors
///
/// Why it did not do what it was asked.
pub async fn perform(cli: Cli) -> Result<u8, CliError> {
    let global = &cli.global;
    match &cli.command {
        Command::Demo(args) => run::demo(global, args).await,
        Command::Run { task, run } => run::run(global, task, run).await,
        Command::Call { skill, args, inputs } => call::call(global, skill, args, inputs).await,
        Command::Runs => read::runs(global),
        Command::Show { run } => read::show(global, run),
        Command::Report { run, open } => read::report(global, run, *open),
        Command::Why { run, subject } => read::why(global, run, subject),
        Command::Trace(args) => read::trace(global, args),
        Command::Skill(command) => skill::perform(global, command).await,
        Command::Try(args) => attempt::attempt(global, args).await,
        Command::Policy(command) => policy::perform(global, command),
        Command::Doctor { attack: false } => doctor::doctor(global).await,
        Command::Doctor { attack: true } => attack::attack(global).await,
    }
}
