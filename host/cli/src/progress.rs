//! What a person sees while a run goes on: live on a terminal, plain lines in a pipe.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checkrein_contract::event::{Closing, Ended, Event, Judgement, Logged, Person, Stop};
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::port::{BoxFuture, Observer, StorageError};
use checkrein_harness::State;
use checkrein_harness::driver::Watcher;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output::{message, one_line};
use crate::report::{asks, letters, words};

/// The longest line of a message in a pipe, in characters.
const WIDTH: usize = 240;

/// Shows what happens, on stderr.
pub struct Progress {
    bars: Option<MultiProgress>,
    width: usize,
    open: Arc<Mutex<BTreeMap<SubgoalId, ProgressBar>>>,
}

impl Progress {
    /// Live if stderr is a terminal.
    pub fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        let width = if bars.is_some() { usize::from(console::Term::stderr().size().1) } else { WIDTH };
        Progress { bars, width, open: Arc::default() }
    }

    fn say(&self, line: &str) {
        match &self.bars {
            // A terminal that cannot be written to has nobody to tell.
            Some(bars) => drop(bars.println(line)),
            None => message(line),
        }
    }

    fn show(&self, event: &Event, state: &State) {
        let Some(bars) = &self.bars else { return };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::SubgoalOpened { subgoal, .. } => {
                open.entry(subgoal.clone()).or_insert_with(|| self.bar(bars, subgoal));
            }
            Event::CallIntended { subgoal, skill, attempt, .. } => {
                // After a resume the subgoal is open already, and has no line yet.
                let bar = open.entry(subgoal.clone()).or_insert_with(|| self.bar(bars, subgoal));
                let attempts = state.attempts(subgoal);
                bar.set_message(one_line(&format!("{skill}, attempt {attempt} of {attempts}"), 80));
            }
            Event::AskOpened { subgoal, .. } => {
                if let Some(bar) = open.get(subgoal) {
                    bar.set_message("waits for a person");
                }
            }
            Event::CallEnded { call, ended: Ended::Outcome { .. }, .. } => {
                if let Some(bar) = state.calls.get(call).and_then(|call| open.get(&call.subgoal)) {
                    bar.set_message("verifying");
                }
            }
            Event::SubgoalClosed { subgoal, .. } => clear(open.remove(subgoal)),
            Event::TaskAmended { reopened, .. } | Event::DependentsReopened { reopened, .. } => {
                reopened.iter().for_each(|subgoal| clear(open.remove(subgoal)));
            }
            Event::RunStopped { .. } => std::mem::take(&mut *open).into_values().map(Some).for_each(clear),
            _ => {}
        }
    }

    fn bar(&self, bars: &MultiProgress, subgoal: &SubgoalId) -> ProgressBar {
        let bar = bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {prefix:14} {wide_msg} {elapsed:>5}") {
            bar.set_style(style);
        }
        bar.set_prefix(one_line(subgoal.as_str(), self.width));
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}

fn clear(bar: Option<ProgressBar>) {
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Watcher for Progress {
    fn appended(&self, events: &[Logged], state: &State) {
        for logged in events {
            self.show(&logged.event, state);
            let answer = ways(&logged.event, state, self.width);
            let refused = refusals(&logged.event, state, self.width);
            for text in line(&logged.event, state, self.width).into_iter().chain(answer).chain(refused) {
                self.say(&text);
            }
        }
    }

    fn troubled(&self, trouble: &StorageError) {
        self.say(&format!("a snapshot or a sign of life was not kept, and the run goes on: {trouble}"));
    }

    fn observer(&self, _: &CallId, subgoal: &SubgoalId) -> Arc<dyn Observer> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(Live { bar: open.get(subgoal).cloned() })
    }
}

/// Shows a call's own progress in the line of its subgoal.
struct Live {
    bar: Option<ProgressBar>,
}

impl Observer for Live {
    fn log(&self, _: &str, _: &str) {}

    fn progress(&self, done: u32, total: u32, text: String) -> BoxFuture<'_, ()> {
        if let Some(bar) = &self.bar {
            let of = if total > 0 { format!("{done}/{total} ") } else { String::new() };
            bar.set_message(format!("{of}{}", one_line(&text, 80)));
        }
        Box::pin(std::future::ready(()))
    }
}

/// The line for an event, if a person wants to see it while the run goes on.
fn line(event: &Event, state: &State, width: usize) -> Option<String> {
    if let Some(text) = of_run(event) {
        return Some(one_line(&text, width));
    }
    let (subgoal, text) = of_subgoal(event, state).or_else(|| of_call(event, state))?;
    Some(one_line(&format!("  {:<14} {text}", subgoal.as_str()), width))
}

/// How an ask is answered, where the run waits for an answer.
fn ways(event: &Event, state: &State, width: usize) -> Option<String> {
    let Event::AskOpened { ask, subgoal, about, .. } = event else { return None };
    let setup = state.setup.as_ref().filter(|setup| setup.person != Person::Never)?;
    let how = asks::how_to_answer(&setup.run, ask, about);
    Some(one_line(&format!("  {:<14} answer with: {how}", subgoal.as_str()), width))
}

fn of_run(event: &Event) -> Option<String> {
    match event {
        Event::StageEntered { stage } => Some(format!("stage {stage}")),
        Event::RunResumed { engine, in_force } => {
            let changed = if in_force.is_some() { "; what components may do has changed" } else { "" };
            Some(format!("the run goes on, {engine}{changed}"))
        }
        Event::RunStopped { because } => Some(match because {
            Stop::Person => "stopped: nothing is left to do until a person answers".to_owned(),
            Stop::Cancelled | Stop::Interrupted => format!("stopped: {}", because.as_str()),
        }),
        Event::LetterTaken { letter, by, said, refused: Some(why) } => {
            Some(format!("letter {letter} of {by}, {}: nothing follows: {why}", letters::message(said)))
        }
        Event::TaskAmended { amendment, version, .. } => {
            Some(format!("the task is amended, version {version}: {}", letters::amendment(amendment)))
        }
        _ => None,
    }
}

fn of_subgoal<'e>(event: &'e Event, state: &'e State) -> Option<(&'e SubgoalId, String)> {
    match event {
        Event::CallIntended { subgoal, skill, version, attempt, .. } => {
            let attempts = state.attempts(subgoal);
            Some((subgoal, format!("attempt {attempt} of {attempts}: {skill} {version}")))
        }
        Event::ActionRefused { subgoal, problems } => {
            let why: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
            Some((subgoal, format!("refused before any call: {}", why.join("; "))))
        }
        Event::CriteriaEvaluated { subgoal, criteria } => {
            let unmet: Vec<&str> =
                criteria.iter().filter(|state| !state.holds).map(|state| state.text.as_str()).collect();
            (!unmet.is_empty()).then(|| (subgoal, format!("not met yet: {}", unmet.join("; "))))
        }
        Event::AskOpened { subgoal, question, .. } => Some((subgoal, format!("asks a person: {question}"))),
        Event::AskAnswered { ask, answer, by } => {
            let subgoal = &state.asks.get(ask)?.subgoal;
            Some((subgoal, format!("ask {ask} is answered by {by}: {}", letters::answer(answer))))
        }
        Event::SubgoalClosed { subgoal, closing: Closing::Met } => Some((subgoal, "met".to_owned())),
        Event::SubgoalClosed { subgoal, closing } => {
            Some((subgoal, format!("not met: {}", words::closing(closing))))
        }
        _ => None,
    }
}

fn of_call<'s>(event: &Event, state: &'s State) -> Option<(&'s SubgoalId, String)> {
    let (call, text) = match event {
        Event::CallEnded { ended: Ended::Outcome { .. }, .. } => return None,
        Event::CallUnknown { call } => {
            (call, "the host ended while a call was made; whether it happened is not known".to_owned())
        }
        Event::CallEnded { call, ended, .. } => (call, words::ended(Some(ended))),
        Event::VerdictGiven { call, judge, judgement, .. } => {
            (call, format!("{} {}", judge.name(), judged(judgement)?))
        }
        Event::OutcomeAccepted { call, facts, artifacts } => {
            let facts = words::many(facts.len(), "fact");
            (call, format!("accepted: {facts}, {}", words::many(artifacts.len(), "file")))
        }
        Event::RemedyGiven { call, diagnosis, remedy, .. } => {
            let advice =
                remedy.as_ref().map_or_else(String::new, |remedy| format!("; {}", words::remedy(remedy)));
            (call, format!("diagnosis: {diagnosis}{advice}"))
        }
        _ => return None,
    };
    Some((&state.calls.get(call)?.subgoal, text))
}

/// A line for each thing that a trigger, a call, its judge or its recovery was refused.
fn refusals(event: &Event, state: &State, width: usize) -> Vec<String> {
    let subgoal_of = |call: &CallId| state.calls.get(call).map(|call| &call.subgoal);
    let (subgoal, records) = match event {
        Event::CallEnded { call, record, .. } => (subgoal_of(call), vec![(String::new(), record)]),
        Event::VerdictGiven { call, record, judge, .. } => {
            (subgoal_of(call), vec![(format!("{}: ", judge.name()), record)])
        }
        Event::RemedyGiven { call, record, .. } => {
            (subgoal_of(call), vec![("its recovery: ".to_owned(), record)])
        }
        Event::SkillsAssessed { subgoal, assessed } => {
            let each = assessed.iter().map(|one| (format!("the trigger of {}: ", one.skill), &one.record));
            (Some(subgoal), each.collect())
        }
        _ => return Vec::new(),
    };
    let Some(subgoal) = subgoal else { return Vec::new() };
    let lines = records.into_iter().flat_map(|(who, record)| {
        let text = move |denial: String| format!("  {:<14} refused, {who}{denial}", subgoal.as_str());
        words::denials(record).into_iter().map(text)
    });
    lines.map(|text| one_line(&text, width)).collect()
}

fn judged(judgement: &Judgement) -> Option<String> {
    match judgement {
        Judgement::Accepted { .. } => None,
        Judgement::Rejected { findings, .. } => {
            let first = findings.first().map(|finding| finding.message.as_str()).unwrap_or_default();
            Some(format!("rejects it, {}: {first}", words::many(findings.len(), "finding")))
        }
        Judgement::Unavailable { reason } => Some(format!("could not judge: {reason}")),
    }
}
