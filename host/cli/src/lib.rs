//! The `checkrein` command line: commands, configuration, reports. The only crate with a
//! terminal and an environment.
//!
//! Reading order:
//!
//! * [`args`]: what can be typed; [`command`]: what each command does.
//! * [`config`], [`task_file`]: the operator's files, checked whole before anything runs.
//! * [`operator`]: the operator's own file; [`standing`]: both, with the secrets that are named.
//! * [`components`]: from the configuration to components; [`grants`]: what each asks for, is
//!   granted, and gets; [`needs`]: the grant that would allow what was refused.
//! * [`pins`]: what a configuration allows more or less than when a run began.
//! * [`world`], [`progress`]: what a run needs from outside, and what a person sees of it.
//! * [`report`]: what is told of a run afterwards.
//! * [`build`]: from a folder of source to a component.
//! * [`error`], [`output`]: the one place for errors and exit codes, and the one that prints.

pub mod args;
pub mod build;
pub mod command;
pub mod components;
pub mod config;
pub mod dry;
pub mod error;
pub mod grants;
pub mod needs;
pub mod operator;
pub mod output;
pub mod pins;
pub mod progress;
pub mod report;
pub mod standing;
pub mod task_file;
pub mod world;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // A worker process is no command: it gives up its rights before anything else is set up.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "worker") {
        return checkrein_sandbox::worker::main(words);
    }
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Clap knows whether this is help for stdout or a mistake for stderr.
            drop(error.print());
            return ExitCode::from(if error.use_stderr() { error::exit::USAGE } else { error::exit::DONE });
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("CHECKREIN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    let json = cli.global.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return error::CliError::Ours(format!("no runtime: {error}")).report(json),
    };
    let performed = runtime.block_on(command::perform(cli));
    // A criterion that is still being evaluated when a person has interrupted must not hold us.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match performed {
        Ok(code) => output::finish(code, json),
        Err(error) => error.report(json),
    }
}
