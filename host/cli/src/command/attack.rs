//! `doctor --attack`: hostile components against the user's own configuration.

use std::time::{Duration, Instant};

use checkrein_contract::limits::Limits;
use checkrein_sandbox::Secrets;
use checkrein_sandbox::attack::{Attack, Report, Runner, corpus};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::args::Global;
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::visible;
use crate::{standing, world};

pub(super) async fn attack(global: &Global) -> Result<u8, CliError> {
    let (config, operator) = standing::files(global)?;
    let state = world::open_state(global)?;
    // No attack is given a secret.
    let sandbox = world::sandbox(&state, &operator, Secrets::default()).await?;
    let limits = Limits::default().overlay(&config.limits);
    let began = Instant::now();
    let runner = Runner::start(&sandbox, &limits).await.map_err(CliError::Ours)?;
    let attacks = corpus();
    let progress = Progress::new(attacks.len());
    let mut reports = Vec::new();
    for attack in &attacks {
        progress.at(attack);
        reports.push(runner.run(attack).await);
    }
    progress.finish();
    print(global, &reports, began.elapsed());
    verdict(&reports)
}

/// Done if every wall held; else a fault of ours, whatever else is right.
fn verdict(reports: &[Report]) -> Result<u8, CliError> {
    let through = reports.iter().filter(|report| !report.passed()).count();
    if through == 0 && !reports.is_empty() {
        return Ok(exit::DONE);
    }
    let message = format!(
        "{through} of {} attacks were not stopped as they must be; run nothing of a stranger here",
        reports.len()
    );
    Err(CliError::Ours(message))
}

/// Which attack is under way, on stderr if that is a terminal.
struct Progress(ProgressBar);

impl Progress {
    fn new(attacks: usize) -> Self {
        let bar = ProgressBar::new(attacks as u64);
        if let Ok(style) = ProgressStyle::with_template("  {pos}/{len} {wide_msg} {elapsed:>5}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(bar)
    }

    fn at(&self, attack: &Attack) {
        self.0.set_message(format!("{}: {}", attack.group.as_str(), attack.name));
        self.0.inc(1);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn print(global: &Global, reports: &[Report], took: Duration) {
    let held = reports.iter().all(Report::passed);
    if global.json {
        output::json(&json!({
            "schema": "checkrein/attacks@1",
            "walls_hold": held,
            "took_ms": took.as_millis() as u64,
            "attacks": reports,
        }));
        return;
    }
    let name = reports.iter().map(|report| report.name.len()).max().unwrap_or(0);
    output::line(&format!("{:8} {:name$} {:>10}  {:10} stopped by", "", "attack", "stopped in", "left over"));
    for report in reports {
        output::line(&row(report, name));
    }
    let passed = reports.iter().filter(|report| report.passed()).count();
    let verdict = if held { "every wall holds" } else { "A WALL DOES NOT HOLD" };
    output::line(&format!(
        "{passed} of {} as they must be, in {:.1} s: {verdict}",
        reports.len(),
        took.as_secs_f64()
    ));
}

fn row(report: &Report, name: usize) -> String {
    let left = match (report.measured, report.leaked.as_slice()) {
        (false, _) => "unknown".to_owned(),
        (true, []) => "nothing".to_owned(),
        (true, leaked) => leaked.join(", ").to_uppercase(),
    };
    let wall = if report.held {
        report.wall.clone()
    } else {
        format!("NOT STOPPED AS IT MUST BE: {}; expected: {}", report.wall, report.expected)
    };
    let time = format!("{} ms", report.stopped_ms);
    visible(&format!("{:8} {:name$} {time:>10}  {left:10} {wall}", report.group.as_str(), report.name))
}

#[cfg(test)]
mod tests {
    use checkrein_contract::limits::Used;
    use checkrein_sandbox::attack::Group;

    use super::*;

    fn stopped() -> Report {
        Report {
            group: Group::Time,
            name: "a loop",
            expected: "limit `cpu`".to_owned(),
            wall: "limit `cpu`".to_owned(),
            held: true,
            stopped_ms: 20,
            leaked: Vec::new(),
            measured: true,
            used: Used::default(),
        }
    }

    #[test]
    fn one_that_gets_through_or_leaves_something_is_a_fault_of_ours() {
        assert_eq!(verdict(&[stopped()]).unwrap(), exit::DONE);
        let through = Report { held: false, wall: "nothing: it succeeded".to_owned(), ..stopped() };
        let leaking = Report { leaked: vec!["1 descriptors of /etc/passwd".to_owned()], ..stopped() };
        for bad in [through, leaking] {
            let row = row(&bad, 10);
            assert!(row.contains("NOT STOPPED") || row.contains("1 DESCRIPTORS OF"), "{row}");
            let error = verdict(&[stopped(), bad]).unwrap_err();
            assert!(matches!(&error, CliError::Ours(why) if why.starts_with("1 of 2 attacks")), "{error}");
        }
        assert!(verdict(&[]).is_err());
    }

    #[test]
    fn a_row_says_what_stopped_it_and_what_is_left() {
        let row = row(&stopped(), 10);
        assert_eq!(row, "time     a loop          20 ms  nothing    limit `cpu`");
    }
}
