//! What each command does.

mod answer;
mod archive;
mod attack;
mod attempt;
mod call;
mod doctor;
mod ending;
mod lint;
mod policy;
mod read;
mod replay;
mod resume;
mod run;
mod skill;
mod supervise;

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
        Command::Demo(args) if args.supervised => {
            supervise::supervise(&run::of_demo(global)?.0, std::env::args_os().skip(1).collect()).await
        }
        Command::Demo(args) => run::demo(global, args).await,
        Command::Run { run, .. } if run.supervised => {
            supervise::supervise(global, std::env::args_os().skip(1).collect()).await
        }
        Command::Run { task, run } => run::run(global, task, run).await,
        Command::Call { skill, args, inputs } => call::call(global, skill, args, inputs).await,
        Command::Resume { run, accept_config } => resume::resume(global, run, *accept_config).await,
        Command::Approve { run, ask, for_, resume } => {
            answer::approve(global, run, ask.as_deref(), for_.as_deref(), *resume).await
        }
        Command::Deny { run, ask, reason, resume } => {
            answer::deny(global, run, ask.as_deref(), reason.as_deref(), *resume).await
        }
        Command::Answer { run, words, outcome, resume } => {
            answer::answer(global, run, words, outcome.as_deref(), *resume).await
        }
        Command::Amend(args) => answer::amend(global, args).await,
        Command::Cancel { run } => answer::cancel(global, run),
        Command::Replay { what } => replay::replay(global, what).await,
        Command::Export { run, out } => archive::export(global, run, out.as_deref()),
        Command::Import { file, digest } => archive::import(global, file, digest.as_deref()),
        Command::Runs => read::runs(global),
        Command::Show { run } => read::show(global, run),
        Command::Report { run, open } => read::report(global, run, *open),
        Command::Why { run, subject } => read::why(global, run, subject),
        Command::Trace(args) => read::trace(global, args).await,
        Command::Skill(command) => skill::perform(global, command).await,
        Command::Try(args) => attempt::attempt(global, args).await,
        Command::Policy(command) => policy::perform(global, command),
        Command::Doctor { attack: false } => doctor::doctor(global).await,
        Command::Doctor { attack: true } => attack::attack(global).await,
    }
}
