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
        after_help = "Example:\n  checkrein run task.toml --set alpha=0.1\n  checkrein run task.toml --dry-run\n\nExit: 0 done, 3 the goal was not reached, 4 it waits for a person, 130 it was stopped, 1 a mistake in the task, 5 a component does not load."
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
    /// Go on with a run that stopped, that waits for a person, or whose process ended
    #[command(
        after_help = "Example:\n  checkrein resume @last\n\nIts components are those that it began with. What the configuration allows less by now holds at once; what it allows more, with --accept-config."
    )]
    Resume {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// Take what the configuration allows more than when the run began
        #[arg(long)]
        accept_config: bool,
    },
    /// Allow a call that cannot be taken back, once
    #[command(
        after_help = "Example:\n  checkrein approve @last\n  checkrein approve @last 2 --for 1h --resume\n\nThe approval holds for this skill with these arguments and inputs, and for nothing else."
    )]
    Approve {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The ask; it can be left out if one alone is open
        ask: Option<String>,
        /// How long the approval holds, such as `1h`; default: until it is used
        #[arg(long = "for", value_name = "TIME")]
        for_: Option<String>,
        /// Go on with the run
        #[arg(long)]
        resume: bool,
    },
    /// Refuse a call that cannot be taken back
    #[command(after_help = "Example:\n  checkrein deny @last --reason \"not on a Friday\"")]
    Deny {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The ask; it can be left out if one alone is open
        ask: Option<String>,
        /// Why not: the planner is told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Go on with the run
        #[arg(long)]
        resume: bool,
    },
    /// Answer a question of a run
    #[command(
        override_usage = "checkrein answer [OPTIONS] <RUN> [ASK] <TEXT>",
        after_help = "Example:\n  checkrein answer @last '{\"alpha\":0.1}' --resume\n  checkrein answer @last 2 retry\n  checkrein answer @last yes --outcome outcome.json\n\nTEXT is words for a planner that follows them, a JSON object (arguments for the skill), `retry` or `give-up`.\nTo \"did it happen?\": `yes`, `no` or `give-up`."
    )]
    Answer {
        /// The run
        run: String,
        /// The ask, which can be left out if one alone is open, and the answer
        #[arg(required = true, num_args = 1..=2, value_name = "TEXT")]
        words: Vec<String>,
        /// With `yes`: what came out of the call, a file with an outcome as JSON
        #[arg(long, value_name = "FILE")]
        outcome: Option<PathBuf>,
        /// Go on with the run
        #[arg(long)]
        resume: bool,
    },
    /// Change the task of a run: what depended on the changed part is open again, the rest stands
    #[command(
        after_help = "Example:\n  checkrein amend @last --set alpha=0.1 --resume\n  checkrein amend @last --subgoal de --criterion 'fact(\"de/summary\").significant > 100'"
    )]
    Amend(AmendArgs),
    /// Stop a run that a process drives; its log stays whole, and `resume` goes on
    #[command(after_help = "Example:\n  checkrein cancel @last")]
    Cancel {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
    },
    /// Execute every call of a run again from what was recorded, and compare what comes out
    #[command(
        after_help = "Example:\n  checkrein replay @last\n  checkrein replay pasilla.checkrein\n\nNothing leaves and nobody is asked. Exit: 0 all agree, 6 something differs."
    )]
    Replay {
        /// A run, or a file of `export`
        #[arg(value_name = "RUN|FILE")]
        what: String,
    },
    /// Write a run with all that it takes to replay it elsewhere into one file
    #[command(after_help = "Example:\n  checkrein export @last --out supplement.checkrein")]
    Export {
        /// The run
        #[arg(default_value = "@last")]
        run: String,
        /// The file; default: named after the run, in the current folder
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take in a run that was exported; one that was altered is refused
    #[command(after_help = "Example:\n  checkrein import supplement.checkrein --digest <HEX>")]
    Import {
        /// The file
        file: PathBuf,
        /// The digest of the file, as it was printed when it was exported
        #[arg(long, value_name = "HEX")]
        digest: Option<String>,
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
        after_help = "Example:\n  checkrein trace @last --follow\n  checkrein trace verify @last --head <HEX>",
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
    /// Wait for nobody: what a person would be asked ends its subgoal
    #[arg(long)]
    pub no_person: bool,
    /// Everything turns and nothing leaves: executors do not run, and answer as the task, their cases or recorded calls say
    #[arg(long)]
    pub dry_run: bool,
    /// Watch the driver from a process of its own, and start it again if it ends without having ended the run
    #[arg(long)]
    pub supervised: bool,
    /// The id of the run, where who starts it must know it beforehand
    #[arg(long, hide = true, value_name = "ID")]
    pub run_id: Option<String>,
}

/// What is changed about a task.
#[derive(Clone, Debug, Default, Args)]
pub struct AmendArgs {
    /// The run
    #[arg(default_value = "@last")]
    pub run: String,
    /// The goal, in other words
    #[arg(long, value_name = "TEXT")]
    pub goal: Option<String>,
    /// Give a parameter another value
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// One more criterion of a subgoal
    #[arg(long, value_name = "CEL")]
    pub criterion: Vec<String>,
    /// The subgoal of the criteria; it can be left out if the task has one alone
    #[arg(long, value_name = "ID")]
    pub subgoal: Option<String>,
    /// Go on with the run
    #[arg(long)]
    pub resume: bool,
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
    /// Go on printing what is appended, until the run ends or stops
    #[arg(long)]
    pub follow: bool,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(words: &[&str]) -> Command {
        Cli::try_parse_from([&["checkrein"][..], words].concat())
            .unwrap_or_else(|error| panic!("{error}"))
            .command
    }

    fn refused(words: &[&str]) -> String {
        match Cli::try_parse_from([&["checkrein"][..], words].concat()) {
            Err(error) => error.to_string(),
            Ok(cli) => panic!("{:?}", cli.command),
        }
    }

    #[test]
    fn the_commands_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_run_may_be_left_out_where_nothing_must_follow_it() {
        for word in ["resume", "approve", "deny", "cancel", "export", "trace", "amend"] {
            let run = match parsed(&[word]) {
                Command::Resume { run, accept_config: false }
                | Command::Approve { run, ask: None, for_: None, resume: false }
                | Command::Deny { run, ask: None, reason: None, resume: false }
                | Command::Cancel { run }
                | Command::Export { run, out: None }
                | Command::Trace(TraceArgs { run, follow: false, command: None })
                | Command::Amend(AmendArgs { run, resume: false, .. }) => run,
                other => panic!("{other:?}"),
            };
            assert_eq!(run, "@last");
        }
        assert!(refused(&["answer", "@last"]).contains("<TEXT>"));
        assert!(refused(&["replay"]).contains("RUN|FILE"));
    }

    #[test]
    fn an_answer_is_one_word_or_two() {
        let of = |words: &[&str]| match parsed(words) {
            Command::Answer { run, words, outcome, resume } => (run, words, outcome, resume),
            other => panic!("{other:?}"),
        };
        let (run, words, outcome, resume) = of(&["answer", "r", "yes", "--outcome", "o.json", "--resume"]);
        assert_eq!((run.as_str(), words.as_slice(), resume), ("r", ["yes".to_owned()].as_slice(), true));
        assert_eq!(outcome, Some(PathBuf::from("o.json")));
        assert_eq!(of(&["answer", "r", "2", "{\"x\":-1}"]).1, ["2", "{\"x\":-1}"]);
        assert!(refused(&["answer", "r", "1", "2", "3"]).contains('3'));
    }

    #[test]
    fn how_a_task_is_run() {
        let Command::Run { run, .. } = parsed(&["run", "t.toml", "--no-person", "--dry-run"]) else {
            panic!()
        };
        assert!(run.no_person && run.dry_run);
        let Command::Demo(run) = parsed(&["demo"]) else { panic!() };
        assert!(!run.no_person && !run.dry_run);
        let Command::Approve { ask, for_, .. } = parsed(&["approve", "r", "2", "--for", "1h"]) else {
            panic!()
        };
        assert_eq!((ask.as_deref(), for_.as_deref()), (Some("2"), Some("1h")));
        let Command::Amend(args) = parsed(&["amend", "--set", "a=1", "--set", "b=2", "--criterion", "true"])
        else {
            panic!()
        };
        assert_eq!((args.set.len(), args.criterion.len(), args.run.as_str()), (2, 1, "@last"));
    }
}
