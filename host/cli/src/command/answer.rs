//! What a person tells a run: `approve`, `deny`, `answer`, `amend`, `cancel`.
//!
//! Each puts a letter in the run's inbox. Whoever drives the run takes it from there: at once if it
//! is driven now, else after the next `resume`. What nothing would follow from is not put there.

use std::collections::BTreeSet;
use std::path::Path;

use checkrein_contract::ask::{Answer, Asked, Message};
use checkrein_contract::id::{AskId, RunId, Timestamp};
use checkrein_contract::units;
use checkrein_harness::driver::Clock;
use checkrein_harness::state::AskState;
use checkrein_harness::{State, ask};
use checkrein_store::State as Store;
use serde_json::{Map, Value, json};

use super::{read, resume};
use crate::args::Global;
use crate::error::{CliError, exit};
use crate::output;
use crate::report::asks::follows_words;
use crate::report::escape::{shell, visible};
use crate::report::letters;
use crate::world::{SystemClock, read_state};

mod amend;
mod outcome;

pub(super) use amend::amend;

/// The most characters of a line that quotes a person.
const LINE_MAX: usize = 400;
/// The most characters of the name of who tells it.
const USER_MAX: usize = 64;

pub(super) async fn approve(
    global: &Global,
    run: &str,
    ask: Option<&str>,
    for_: Option<&str>,
    resume: bool,
) -> Result<u8, CliError> {
    let desk = Desk::open(global, run)?;
    let now = SystemClock::new().now().max(desk.state.now);
    let until = for_.map(|text| until(text, now)).transpose()?;
    let (ask, about) = desk.ask(ask)?;
    if let Asked::Approval { action, skill, args, .. } = &about.about {
        let args = crate::report::escape::json(&Value::Object(args.clone()), LINE_MAX);
        output::message(&output::one_line(
            &format!("`{skill}` with {args}, action {}", action.short()),
            LINE_MAX,
        ));
    }
    desk.send(Message::Answer { ask, answer: Answer::Approved { until } }, Vec::new(), resume).await
}

pub(super) async fn deny(
    global: &Global,
    run: &str,
    ask: Option<&str>,
    reason: Option<&str>,
    resume: bool,
) -> Result<u8, CliError> {
    let desk = Desk::open(global, run)?;
    let (ask, _) = desk.ask(ask)?;
    let reason = reason.unwrap_or("no reason was given").to_owned();
    desk.send(Message::Answer { ask, answer: Answer::Denied { reason } }, Vec::new(), resume).await
}

pub(super) async fn answer(
    global: &Global,
    run: &str,
    words: &[String],
    outcome: Option<&Path>,
    resume: bool,
) -> Result<u8, CliError> {
    let (ask, text) = match words {
        [text] => (None, text),
        [ask, text] => (Some(ask.as_str()), text),
        _ => return Err(CliError::usage(format!("expected [ASK] TEXT, found {} words", words.len()), "")),
    };
    let desk = Desk::open(global, run)?;
    let (ask, about) = desk.ask(ask)?;
    let mut answer = read_answer(&ask, &about.about, text, desk.planner())?;
    if let Some(file) = outcome {
        answer = desk.with_outcome(&about.about, answer, file)?;
    }
    desk.send(Message::Answer { ask, answer }, Vec::new(), resume).await
}

pub(super) fn cancel(global: &Global, run: &str) -> Result<u8, CliError> {
    let store = read_state(global)?;
    let run = store.resolve(run)?;
    let next = next(global, &run);
    let Some(driving) = store.drives(&run)? else {
        // A letter to nobody would stop the run as soon as it is resumed.
        let word = store.runs()?.iter().find(|summary| summary.run == run).map(|summary| {
            let word = read::state_word(summary);
            (word, summary.status.is_some())
        });
        return match word {
            Some((word, true)) => Err(CliError::usage(format!("run {run} has ended: {word}"), "")),
            Some((_, false)) | None => {
                let lines = vec![format!("no process drives run {run}, so there is nothing to cancel")];
                tell(global, &Told { run: &run, letter: None, driven: None, next: &next, more: &[] }, &lines);
                Ok(exit::DONE)
            }
        };
    };
    let letter = store.post(&run, &user(), SystemClock::new().now(), &Message::Cancel)?;
    let told =
        Told { run: &run, letter: Some(letter), driven: Some(&driving.holder), next: &next, more: &[] };
    tell(global, &told, &[letters::message(&Message::Cancel)]);
    Ok(exit::DONE)
}

/// A run, as it stands, and its inbox.
struct Desk<'g> {
    global: &'g Global,
    store: Store,
    run: RunId,
    state: State,
    /// Asks that a letter answers which nobody has taken yet.
    answered: BTreeSet<AskId>,
}

impl<'g> Desk<'g> {
    fn open(global: &'g Global, run: &str) -> Result<Self, CliError> {
        let store = read_state(global)?;
        let run = store.resolve(run)?;
        let state = resume::load(&store, &run)?;
        let waiting = store.letters(&run, state.letters)?;
        let answered = waiting.into_iter().filter_map(|letter| match letter.message {
            Message::Answer { ask, .. } => Some(ask),
            Message::Cancel | Message::Amend { .. } | Message::Unreadable { .. } => None,
        });
        let answered = answered.collect();
        Ok(Desk { global, store, run, state, answered })
    }

    fn planner(&self) -> &str {
        self.state.setup.as_ref().map_or("", |setup| setup.planner.as_str())
    }

    /// The ask with this id, or the only one that is open.
    fn ask(&self, named: Option<&str>) -> Result<(AskId, &AskState), CliError> {
        let open: Vec<(&AskId, String)> = self
            .state
            .open_asks()
            .filter(|(id, _)| !self.answered.contains(*id))
            .map(|(id, ask)| (id, format!("{id} ({} of `{}`)", ask.about.as_str(), ask.subgoal)))
            .collect();
        let id = pick(&self.run, named, &open)?;
        if self.answered.contains(&id) {
            let message = format!("ask {id} is answered already, by a letter that nobody has taken yet");
            return Err(CliError::usage(message, format!("go on with: {}", next(self.global, &self.run))));
        }
        match self.state.asks.get(&id) {
            Some(ask) => Ok((id, ask)),
            None => Err(CliError::usage(format!("run {} has no ask {id}", self.run), listed(&open))),
        }
    }

    /// The answer with what came out of the call, as the file says.
    fn with_outcome(&self, about: &Asked, answer: Answer, file: &Path) -> Result<Answer, CliError> {
        let (Asked::CallUnknown { call }, Answer::Happened { .. }) = (about, answer) else {
            return Err(CliError::usage(
                "--outcome says what came out of a call that did happen",
                "it goes with `yes`, to an ask that is about a call",
            ));
        };
        let skill = self.state.calls.get(call).and_then(|call| self.state.skill(&call.skill));
        let limits = skill.map(|card| card.limits.clone()).unwrap_or_default();
        let outcome = outcome::read(file, &limits)?;
        Ok(Answer::Happened { outcome: Some(outcome::attest(&outcome, &self.store.blobs())?) })
    }

    /// Puts the letter in the inbox, unless nothing would follow from it; then tells what comes next,
    /// or goes on with the run. `more` stands in the JSON beside what every letter has.
    async fn send(
        self,
        message: Message,
        more: Vec<(&'static str, Value)>,
        resume: bool,
    ) -> Result<u8, CliError> {
        if let Some(why) = ask::refusal(&self.state, &message) {
            let hint = format!("checkrein show {} has what waits for a person", shell(self.run.as_str()));
            return Err(CliError::usage(why, hint));
        }
        let Desk { global, store, run, .. } = self;
        let letter = store.post(&run, &user(), SystemClock::new().now(), &message)?;
        let driver = store.drives(&run)?.map(|driving| driving.holder);
        drop(store);
        if resume && driver.is_none() {
            output::message(&output::one_line(&letters::message(&message), LINE_MAX));
            return resume::resume(global, run.as_str(), false).await;
        }
        let (next, driven) = (next(global, &run), driver.as_deref());
        let told = Told { run: &run, letter: Some(letter), driven, next: &next, more: &more };
        tell(global, &told, &[letters::message(&message)]);
        Ok(exit::DONE)
    }
}

/// What became of a letter.
struct Told<'t> {
    run: &'t RunId,
    letter: Option<u64>,
    driven: Option<&'t str>,
    next: &'t str,
    more: &'t [(&'static str, Value)],
}

fn tell(global: &Global, told: &Told<'_>, lines: &[String]) {
    let next = told.driven.is_none().then_some(told.next);
    if global.json {
        let mut object = json!({
            "schema": "checkrein/letter@1",
            "run": told.run,
            "letter": told.letter,
            "driven": told.driven,
            "next": next,
        });
        told.more.iter().for_each(|(key, value)| object[*key] = value.clone());
        output::json(&object);
        return;
    }
    lines.iter().for_each(|line| output::line(&output::one_line(line, LINE_MAX)));
    match told.driven {
        Some(driver) => output::line(&visible(&format!("told; {driver} drives the run"))),
        None => output::line(&visible(&format!("go on with: {}", told.next))),
    }
}

/// The command that goes on with the run, where the files are that this one was told of.
fn next(global: &Global, run: &RunId) -> String {
    let flags = [("config", &global.config), ("state", &global.state), ("operator", &global.operator)];
    let flags = flags.into_iter().filter_map(|(name, path)| {
        Some(format!(" --{name} {}", shell(&path.as_ref()?.display().to_string())))
    });
    format!("checkrein resume {}{}", shell(run.as_str()), flags.collect::<String>())
}

/// The ask that is meant, of those that are open.
fn pick(run: &RunId, named: Option<&str>, open: &[(&AskId, String)]) -> Result<AskId, CliError> {
    match (named, open) {
        (Some(named), _) => Ok(AskId::from(named)),
        (None, [(only, _)]) => Ok((*only).clone()),
        (None, []) => Err(CliError::usage(format!("run {run} asks nothing"), "")),
        (None, several) => {
            let message = format!("run {run} has {} open asks, and none is named", several.len());
            Err(CliError::usage(message, listed(open)))
        }
    }
}

fn listed(open: &[(&AskId, String)]) -> String {
    let each: Vec<&str> = open.iter().map(|(_, ask)| ask.as_str()).collect();
    match each.is_empty() {
        true => "none is open".to_owned(),
        false => format!("open are: {}", each.join(", ")),
    }
}

/// Until when an approval holds that is given for so long: by the time of the run, which is ahead where
/// the clock was set back.
fn until(text: &str, now: Timestamp) -> Result<Timestamp, CliError> {
    let millis = units::millis(text).filter(|millis| *millis > 0);
    let millis = millis.ok_or_else(|| {
        CliError::usage(
            format!("--for {text}: expected a time such as `1h` or `30 min`, found `{text}`"),
            "without --for the approval holds until it is used",
        )
    })?;
    Ok(Timestamp(now.0.saturating_add(millis)))
}

/// What the words say to an ask of this kind.
fn read_answer(ask: &AskId, about: &Asked, text: &str, planner: &str) -> Result<Answer, CliError> {
    let given_up = || Answer::GiveUp { reason: format!("{} said so", user()) };
    match about {
        Asked::Approval { .. } => Err(CliError::usage(
            format!("ask {ask} is an approval"),
            "`checkrein approve` or `checkrein deny` answers it",
        )),
        Asked::CallUnknown { .. } => match text {
            "yes" => Ok(Answer::Happened { outcome: None }),
            "no" => Ok(Answer::NotHappened),
            "give-up" => Ok(given_up()),
            other => Err(CliError::usage(
                format!("ask {ask} is about a call: expected `yes`, `no` or `give-up`, found `{other}`"),
                "`yes --outcome FILE` says what came out of it",
            )),
        },
        Asked::Question | Asked::HandOver { .. } => match text {
            "retry" => Ok(Answer::Retry),
            "give-up" => Ok(given_up()),
            object if object.trim_start().starts_with('{') => read_args(object),
            words if follows_words(planner) => Ok(Answer::Said { text: words.to_owned() }),
            words => Err(CliError::usage(
                format!("the planner `{planner}` is a plain rule, and cannot follow the words `{words}`"),
                "it can follow a JSON object (arguments for the skill), `retry` or `give-up`",
            )),
        },
    }
}

fn read_args(text: &str) -> Result<Answer, CliError> {
    let args: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        CliError::usage(
            format!("the arguments are not a JSON object: {error}"),
            "write them as '{\"key\": \"value\"}'",
        )
    })?;
    Ok(Answer::Args { args })
}

/// Who tells it: the name of a user of this machine.
fn user() -> String {
    let named = std::env::var("USER").ok().filter(|name| !name.trim().is_empty());
    let name = named.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    output::one_line(&name, USER_MAX)
}

#[cfg(test)]
mod tests {
    use checkrein_contract::event::Closing;
    use checkrein_contract::id::CallId;

    use super::*;

    fn said(about: &Asked, text: &str, planner: &str) -> Result<Answer, String> {
        read_answer(&"2".into(), about, text, planner).map_err(|error| error.to_string())
    }

    fn unknown() -> Asked {
        Asked::CallUnknown { call: CallId::from("r/a/1") }
    }

    #[test]
    fn whether_it_happened_is_yes_no_or_neither() {
        assert_eq!(said(&unknown(), "yes", "triggers"), Ok(Answer::Happened { outcome: None }));
        assert_eq!(said(&unknown(), "no", "triggers"), Ok(Answer::NotHappened));
        assert!(matches!(said(&unknown(), "give-up", "triggers"), Ok(Answer::GiveUp { .. })));
        for other in ["retry", "maybe", "{}", "Yes", ""] {
            let why = said(&unknown(), other, "model").unwrap_err();
            assert!(why.contains("expected `yes`, `no` or `give-up`"), "{why}");
        }
    }

    #[test]
    fn a_plain_rule_is_told_no_words() {
        let hand_over = Asked::HandOver { because: Box::new(Closing::AttemptsUsed { attempts: 3 }) };
        for about in [Asked::Question, hand_over] {
            let args = json!({ "x": 1 }).as_object().cloned().unwrap();
            assert_eq!(said(&about, " {\"x\":1}", "triggers"), Ok(Answer::Args { args }));
            assert_eq!(said(&about, "retry", "triggers"), Ok(Answer::Retry));
            let why = said(&about, "try the other table", "triggers").unwrap_err();
            assert!(why.contains("`triggers`") && why.contains("try the other table"), "{why}");
            let text = "try the other table".to_owned();
            assert_eq!(said(&about, "try the other table", "model"), Ok(Answer::Said { text }));
            // A slip in an object is not taken for words.
            assert!(said(&about, "{\"x\":", "model").unwrap_err().contains("not a JSON object"));
        }
    }

    #[test]
    fn an_approval_is_not_answered_in_words() {
        let about = Asked::Approval {
            action: checkrein_contract::Digest::ZERO,
            skill: "s".to_owned(),
            component: checkrein_contract::Digest::ZERO,
            args: Map::new(),
        };
        assert!(said(&about, "yes", "model").is_err());
    }

    #[test]
    fn an_ask_is_named_unless_there_is_one() {
        let (run, one, two) = (RunId::from("r"), AskId::from("1"), AskId::from("2"));
        let open = |ids: &[&'static str]| -> Vec<String> {
            ids.iter().map(|id| format!("{id} (question of `a`)")).collect()
        };
        let texts = open(&["1", "2"]);
        let both = [(&one, texts[0].clone()), (&two, texts[1].clone())];
        assert_eq!(pick(&run, None, &both[..1]).unwrap(), one);
        assert_eq!(pick(&run, Some("7"), &both).unwrap(), AskId::from("7"));
        assert!(pick(&run, None, &[]).unwrap_err().to_string().contains("asks nothing"));
        let CliError::Usage { message, hint } = pick(&run, None, &both).unwrap_err() else {
            panic!("not a mistake in usage")
        };
        assert!(
            message.contains("2 open asks") && hint.contains("1 (question of `a`), 2 (question"),
            "{hint}"
        );
    }

    #[test]
    fn an_approval_ends_when_it_is_said_to() {
        assert_eq!(until("1h", Timestamp(5)).unwrap(), Timestamp(3_600_005));
        assert_eq!(until("30 min", Timestamp(0)).unwrap(), Timestamp(1_800_000));
        for wrong in ["", "1", "0 s", "-1h", "soon"] {
            assert!(until(wrong, Timestamp(0)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_that_goes_on_finds_what_this_one_found() {
        let run = RunId::from("20261130-abcdef");
        assert_eq!(next(&Global::default(), &run), "checkrein resume 20261130-abcdef");
        let global = Global { state: Some("/tmp/a b".into()), ..Global::default() };
        assert_eq!(next(&global, &run), "checkrein resume 20261130-abcdef --state '/tmp/a b'");
    }
}
