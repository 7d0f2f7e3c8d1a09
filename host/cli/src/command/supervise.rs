//! `run --supervised`: a small process apart from the driver starts it, watches it, and starts it
//! again when it ended without having ended the run.
//!
//! It reads what the driver says of itself: a driver that beats lives, and a call that is made is
//! waited for until its deadline. So an honest long call is not killed, and one that hangs past its
//! own deadline is. A call during which the driver ended again and again is no more its business: the
//! driver itself asks a person about it.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use checkrein_contract::event::Event;
use checkrein_contract::id::RunId;
use checkrein_harness::driver::Clock;
use checkrein_store::{Driving, State};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Global;
use crate::config;
use crate::error::{CliError, exit};
use crate::output;
use crate::world::{self, SystemClock};

/// Restarts without a new event before it is left to a person.
const RESTARTS_MAX: u32 = 3;

/// The pause before the first restart; each further one is three times as long.
const PAUSE: Duration = Duration::from_secs(1);

/// How often the driver is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a beat may stand, and how far behind its deadline a call may be.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts `run` with these words, and `resume` as often as it takes.
///
/// # Errors
///
/// If the driver cannot be started, or was started again and again without a new event.
pub(super) async fn supervise(global: &Global, words: Vec<OsString>) -> Result<u8, CliError> {
    let run = world::new_run_id(SystemClock::new().now());
    let mut words: Vec<OsString> = words.into_iter().filter(|word| word != "--supervised").collect();
    // Right after the verb: behind a `--` it would be no flag.
    let verb = words.iter().position(|word| word == "run" || word == "demo").map_or(words.len(), |at| at + 1);
    words.splice(verb..verb, ["--run-id".into(), run.as_str().into()]);
    let mut asked = Asked::listen()?;
    let (mut restarts, mut events) = (0, 0);
    loop {
        let status = watched(global, &run, start(&words)?, &mut asked).await?;
        if let Some(code) = left_in_order(status) {
            return Ok(code);
        }
        if asked.to_end {
            // Whatever became of the driver, a person wanted it to end.
            return Ok(exit::INTERRUPTED);
        }
        let now = events_of(global, &run)?;
        if now == 0 {
            return Err(CliError::Ours(format!("the driver ended ({status}) before run {run} began")));
        }
        restarts = if now > events { 0 } else { restarts + 1 };
        events = now;
        if restarts >= RESTARTS_MAX {
            return Err(CliError::Ours(format!(
                "the driver of run {run} ended ({status}) {restarts} times in a row without a new event; \
                 `checkrein show {run}` says how far it came, `checkrein resume {run}` goes on"
            )));
        }
        let pause = PAUSE * 3_u32.pow(restarts);
        output::message(&format!(
            "the driver of run {run} ended ({status}); it is started again in {pause:?}"
        ));
        if asked.within(pause).await {
            return Ok(exit::INTERRUPTED);
        }
        words = again(global, &run);
    }
}

/// What a person asks of both processes by a signal. Once it is listened for, a signal ends nobody by
/// itself, so it is listened for to the end.
struct Asked {
    interrupt: Signal,
    terminate: Signal,
    to_end: bool,
}

impl Asked {
    fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|error| CliError::Ours(format!("no signals: {error}")));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Asked { interrupt, terminate, to_end: false })
    }

    /// The next signal: whether the driver has to be told of it. Ctrl-C reaches it by itself, since both
    /// have one terminal.
    async fn next(&mut self) -> bool {
        let tell = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => true,
        };
        self.to_end = true;
        tell
    }

    /// Whether a signal comes within this time.
    async fn within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.next()).await.is_ok()
    }
}

fn start(words: &[OsString]) -> Result<Child, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::Ours(format!("this program does not find itself: {error}")))?;
    Command::new(program)
        .args(words)
        .spawn()
        .map_err(|error| CliError::Ours(format!("the driver cannot be started: {error}")))
}

/// `resume` with the flags of every command.
fn again(global: &Global, run: &RunId) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["resume".into(), run.as_str().into()];
    let files = [("--config", &global.config), ("--state", &global.state), ("--operator", &global.operator)];
    for (flag, file) in files {
        words.extend(file.iter().flat_map(|file| [flag.into(), file.clone().into_os_string()]));
    }
    if global.json {
        words.push("--json".into());
    }
    words
}

/// The exit code of a driver that left its run in order, as the contract has them: all but a fault, a
/// full disk, a panic and a signal.
fn left_in_order(status: ExitStatus) -> Option<u8> {
    let code = u8::try_from(status.code()?).ok()?;
    let in_order = code <= exit::DIFFERENCE || code == exit::INTERRUPTED;
    in_order.then_some(code)
}

/// Waits for the driver's end, and ends it if it hangs.
async fn watched(
    global: &Global,
    run: &RunId,
    mut driver: Child,
    asked: &mut Asked,
) -> Result<ExitStatus, CliError> {
    let mut look = tokio::time::interval(LOOK);
    let mut seen = Seen { beats: 0, since: Instant::now(), late: None };
    let lost = |error: std::io::Error| CliError::Ours(format!("the driver is lost: {error}"));
    loop {
        tokio::select! {
            status = driver.wait() => return status.map_err(lost),
            tell = asked.next() => if tell { pass_on(&driver) },
            _ = look.tick() => {
                if let Some(why) = seen.hangs(driving(global, run)) {
                    output::message(&format!("the driver of run {run} is ended: {why}"));
                    driver.start_kill().map_err(lost)?;
                }
            }
        }
    }
}

/// Asks the driver to end.
fn pass_on(driver: &Child) {
    let pid = driver.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // One that has ended already is waited for next.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The driver as it was seen last. How long ago is measured here: the two clocks need not agree.
struct Seen {
    beats: u64,
    since: Instant,
    /// Since when a call that should have ended is in hand.
    late: Option<Instant>,
}

impl Seen {
    /// Why the driver hangs, if it does.
    fn hangs(&mut self, driving: Option<Driving>) -> Option<String> {
        // Before it drives, and when it is done, its process alone says how it is.
        let Some(Driving { beats, beat, .. }) = driving else {
            (self.since, self.late) = (Instant::now(), None);
            return None;
        };
        if beats != self.beats {
            (self.beats, self.since) = (beats, Instant::now());
        } else if self.since.elapsed() > PATIENCE {
            return Some(format!("it has not said that it lives for {PATIENCE:?}"));
        }
        let Some((call, _)) = beat.calls.iter().find(|(_, left)| *left == 0) else {
            self.late = None;
            return None;
        };
        let late = self.late.get_or_insert_with(Instant::now);
        (late.elapsed() > PATIENCE)
            .then(|| format!("the call {call} is more than {PATIENCE:?} past its deadline"))
    }
}

fn driving(global: &Global, run: &RunId) -> Option<Driving> {
    // Until the driver has made it, there is no state to be read; and a look that fails is no reason
    // to end anybody.
    let state = State::open_existing(&config::state_folder(global).ok()?).ok()?;
    state.drives(run).ok().flatten()
}

/// How many events say that the run came further.
fn events_of(global: &Global, run: &RunId) -> Result<usize, CliError> {
    let Ok(state) = world::read_state(global) else { return Ok(0) };
    // What each driver writes that takes up where another ended, and makes its calls once more.
    let again = |event: &Event| {
        matches!(
            event,
            Event::LeaseTaken { .. }
                | Event::RunResumed { .. }
                | Event::CallUnknown { .. }
                | Event::BudgetSettled { .. }
                | Event::BudgetReserved { .. }
        )
    };
    Ok(state.events(run)?.iter().filter(|logged| !again(&logged.event)).count())
}

#[cfg(test)]
mod tests {
    use checkrein_contract::port::Beat;

    use super::*;

    fn driving(beats: u64, left: u64) -> Option<Driving> {
        let beat = Beat { events: 1, calls: vec![("r/a/1".into(), left)] };
        Some(Driving { holder: "process 7".to_owned(), beats, beat })
    }

    fn long_ago() -> Instant {
        Instant::now().checked_sub(PATIENCE * 2).unwrap()
    }

    #[test]
    fn an_honest_long_call_is_waited_for() {
        let mut seen = Seen { beats: 1, since: long_ago(), late: None };
        // It beats, and its call has an hour.
        assert_eq!(seen.hangs(driving(2, 3_600_000)), None);
        assert_eq!(seen.hangs(driving(3, 0)), None, "it may be about to end");
        seen.late = Some(long_ago());
        assert!(seen.hangs(driving(4, 0)).unwrap().contains("r/a/1"));
        assert_eq!(seen.hangs(driving(5, 1)), None);
        assert_eq!(seen.late, None, "another call is late from now on");
    }

    #[test]
    fn one_that_does_not_beat_is_ended() {
        let mut seen = Seen { beats: 1, since: long_ago(), late: None };
        assert!(seen.hangs(driving(1, u64::MAX)).is_some());
        let mut seen = Seen { beats: 1, since: long_ago(), late: None };
        assert_eq!(seen.hangs(None), None);
    }
}
