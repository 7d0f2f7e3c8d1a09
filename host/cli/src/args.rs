//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs long, many-step work with sandboxed skills, so that its result can be answered for.
#[derive(Debug, Parser)]
#[command(name = "checkrein", version, propagate_version = true, disable_help_subcommand = true)]
#[command(
    after_help = "Example:\n  checkrein run task.toml\n  checkrein report @last --open\n\nRUN is an id, a unique prefix of one, or @last."
)]
pub struct Cli {
    /// What is common to all commands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Default, Args)]
pub struct Global {
    /// The configuration, in place of the `checkrein.toml` found upwards from the current folder
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The state folder, in place of `.checkrein` beside the configuration
    #[arg(long, global = true, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The operator's own file, in place of `~/.config/checkrein/operator.toml`
    #[arg(long, global = true, value_name = "FILE")]
    pub operator: Option<PathBuf>,
    /// Print one JSON object with `schema` in place of text
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the pasilla task: real RNA-seq counts in, a report that can be answered for out
    #[command(after_help = "Example:\n  skills/setup && cargo run --release -- demo")]
    Demo(RunArgs),
    /// Run a task
    #[command(
        after_help = "Example:\n  checkrein run task.toml --set alpha=0.1\n\nExit: 0 done, 3 the goal was not reached, 1 a mistake in the task, 5 a component does not load."
    )]
    Run {
        /// The task file
        task: PathBuf,
        /// How to run it
        #[command(flatten)]
        run: RunArgs,
    },
    /// Call one skill: a run of one subgoal, verified like any other
    #[command(
        after_help = "Example:\n  checkrein call table-profile '{\"table\":\"/in/t.csv\"}' --in t=data/t.csv"
    )]
    Call {
        /// The skill
        skill: String,
        /// Its arguments, a JSON object
        args: String,
        /// A file that the call sees at /in/<file name>
        #[arg(long = "in", value_name = "NAME=FILE")]
        inputs: Vec<String>,
    },
    /// List the runs, latest first
    #[command(after_help = "Example:\n  checkrein runs")]
    Runs,
    /// Show a run: stages, subgoals, attempts, and what went wrong
    #[command(after_help = "Example:\n  checkrein show @last")]
    Show {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
    },
    /// Write and print where the report of a run is; with --json, its facts and artifacts
    #[command(after_help = "Example:\n  checkrein report @last --open")]
    Report {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// Open it in the browser
        #[arg(long)]
        open: bool,
    },
    /// Where a fact comes from: verifiers, call, component, inputs
    #[command(after_help = "Example:\n  checkrein why @last de/gene/FBgn0039155#/q")]
    Why {
        /// The run
        run: String,
        /// The subject, and after `#` a JSON Pointer into its content
        subject: String,
    },
    /// Print the event log of a run, a line each; `trace verify` proves it
    #[command(
        after_help = "Example:\n  checkrein trace @last\n  checkrein trace verify @last --head <HEX>",
        args_conflicts_with_subcommands = true
    )]
    Trace(TraceArgs),
    /// Build, check, test and look at skills and verifiers
    #[command(
        subcommand,
        after_help = "Example:\n  checkrein skill build my-skill && checkrein skill test my-skill"
    )]
    Skill(SkillCommand),
    /// Run a stranger's component once, with nothing granted: what it is, what it asked for, and what it would need
    #[command(
        after_help = "Example:\n  checkrein try downloaded.wasm\n  checkrein try downloaded.wasm --args '{\"table\":\"/in/t.csv\"}' --in t=t.csv\n\nNothing is kept. Exit: 0 tried, 5 it does not load, 6 it broke, ran into a limit, or fails its own verification."
    )]
    Try(TryArgs),
    /// Show what components may do, check what is granted, and find the grant that is missing
    #[command(
        subcommand,
        after_help = "Example:\n  checkrein policy show\n  checkrein policy lint\n  checkrein policy explain @last"
    )]
    Policy(PolicyCommand),
    /// Say what is in force on this machine, and try the limits
    #[command(after_help = "Example:\n  checkrein doctor --attack")]
    Doctor {
        /// Run hostile components against this configuration, and say what stopped each
        #[arg(long)]
        attack: bool,
    },
}

/// How a task is run.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArgs {
    /// Give a parameter of the task another value
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Who proposes; in this version, `triggers`: no model, a plain rule
    #[arg(long, default_value = "triggers", value_parser = ["triggers"])]
    pub planner: String,
}

/// How a component is tried.
#[derive(Clone, Debug, Args)]
pub struct TryArgs {
    /// The component
    pub file: PathBuf,
    /// Its arguments, a JSON object; default: those of its own first case
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// A file that the call sees at /in/<file name>
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Let this through, this once: a network rule, or `ro /folder`
    #[arg(long, value_name = "RULE")]
    pub grant_once: Vec<String>,
}

/// What can be asked about what components may do.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// What each component asks for, is granted, and so gets; nothing is run
    #[command(after_help = "Example:\n  checkrein policy show my-skill")]
    Show {
        /// One component
        name: Option<String>,
    },
    /// Each grant, what it matches, and what it nearly matches and does not; exit 6 if one never matches
    #[command(after_help = "Example:\n  checkrein policy lint")]
    Lint,
    /// What was refused in a run, and the smallest grant that would allow it
    #[command(after_help = "Example:\n  checkrein policy explain @last")]
    Explain {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// One of its calls
        call: Option<String>,
    },
}

/// `trace`, and what is below it.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The run
    #[arg(default_value = "@last")]
    pub run: String,
    /// What to do with it
    #[command(subcommand)]
    pub command: Option<TraceCommand>,
}

/// What can be done with a trace besides printing it.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Check the chain of the log and re-hash every blob; exit 6 if anything differs
    #[command(
        after_help = "Example:\n  checkrein trace verify @last --head 3f2a…\n\nThe head is printed when a run ends and stands in its report: with it, a lost tail is found too."
    )]
    Verify {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The digest of the last event, as it was printed when the run ended
        #[arg(long, value_name = "HEX")]
        head: Option<String>,
    },
}

/// What can be done with components.
#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// Compile skills for wasm32-wasip2 and embed manifest and cases
    #[command(after_help = "Example:\n  checkrein skill build skills/table-profile")]
    Build {
        /// Folders with a Cargo.toml and a skill.toml
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Where the components go; default: `dist` beside the folder of a workspace, or in the folder
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Take a component through every step of loading, and print each result
    #[command(after_help = "Example:\n  checkrein skill check downloaded.wasm")]
    Check {
        /// The component
        file: PathBuf,
    },
    /// Say what a component is, without running it
    #[command(after_help = "Example:\n  checkrein skill inspect downloaded.wasm")]
    Inspect {
        /// The component
        file: PathBuf,
    },
    /// List the components of the configuration
    #[command(after_help = "Example:\n  checkrein skill list")]
    List,
    /// Run a component's cases, and change accepted outcomes to see whether verification notices
    #[command(after_help = "Example:\n  checkrein skill test dist/my-skill.wasm --mutate")]
    Test {
        /// A component, or a folder to build first
        target: PathBuf,
        /// Print what each mutation was, and whether it was caught
        #[arg(long)]
        mutate: bool,
    },
}
