//! A page for each question that waits for a person: what is asked, what it rests on, and the ways
//! on. What strangers said stands in it as data, and is escaped where it is written.

use checkrein_contract::ask::Asked;
use checkrein_contract::id::{AskId, RunId};
use serde_json::{Value, json};

use super::escape::{code, cut, markdown, prose, shell, visible};
use super::json::ask_json;
use super::view::{AskView, RunView};
use super::words;

mod evidence;
mod page;
mod ways;

/// The most characters of a line. Arguments that a person approves are longer than what else is
/// quoted: what is cut there is approved unseen, and so the cut is told.
const LINE_MAX: usize = 5_000;

/// A page for each open ask, for the terminal; empty without one.
pub fn ask_pages(view: &RunView) -> String {
    let pages: Vec<String> = pages(view).iter().map(Page::text).collect();
    if pages.is_empty() {
        return String::new();
    }
    format!("{}\n{}\n", pages.join("\n"), visible(&then(view)))
}

/// The same as JSON: an array, empty without one.
pub fn asks_json(view: &RunView) -> Value {
    pages(view).iter().map(Page::json).collect()
}

/// The same as a section of the report; empty without one.
pub(super) fn waiting(view: &RunView) -> String {
    let pages: String = pages(view).iter().map(Page::markdown).collect();
    if pages.is_empty() {
        return pages;
    }
    format!("## Waits for a person\n\n{pages}{}\n\n", prose(&then(view)))
}

/// By which commands an ask of this kind is answered, in a few words.
pub fn how_to_answer(run: &RunId, ask: &AskId, about: &Asked) -> String {
    let (run, ask) = (shell(run.as_str()), shell(ask.as_str()));
    match about {
        Asked::Approval { .. } => format!("checkrein approve {run} {ask}, or deny {run} {ask}"),
        Asked::CallUnknown { .. } => format!("checkrein answer {run} {ask} yes, no or give-up"),
        Asked::Question | Asked::HandOver { .. } => {
            format!("checkrein answer {run} {ask} …; what it rests on: checkrein show {run}")
        }
    }
}

/// Whether a planner can follow what a person says in words: a plain rule cannot.
pub fn follows_words(planner: &str) -> bool {
    planner != "triggers"
}

/// A page about one ask, as plain text.
struct Page<'v> {
    ask: &'v AskView,
    parts: Vec<Part>,
    ways: Vec<Way>,
}

/// What stands under one heading.
struct Part {
    title: &'static str,
    lines: Vec<Line>,
}

/// A line, or one that belongs to the line above it.
struct Line {
    deeper: bool,
    text: String,
}

/// A command, and what follows from it.
struct Way {
    command: String,
    means: String,
}

impl Line {
    fn new(text: impl Into<String>) -> Self {
        Line { deeper: false, text: text.into() }
    }

    fn deeper(text: impl Into<String>) -> Self {
        Line { deeper: true, text: text.into() }
    }
}

/// What others wrote stands in quotes, or behind a word of ours: no line of a page begins as they
/// want it to, and so none is taken for a command.
fn quoted(text: &str) -> String {
    format!("“{text}”")
}

fn pages(view: &RunView) -> Vec<Page<'_>> {
    view.open_asks().map(|ask| page::page(view, ask)).collect()
}

/// How an answer comes to the run.
fn then(view: &RunView) -> String {
    match &view.driver {
        Some(driver) => format!("the run is driven by {driver}, and an answer is taken at once"),
        None => format!(
            "an answer is taken when the run goes on: with `--resume` at once, else by `checkrein resume {}`",
            shell(view.run.as_str())
        ),
    }
}

impl Page<'_> {
    fn text(&self) -> String {
        let AskView { ask, subgoal, about, question, opened, .. } = self.ask;
        let since = words::time(*opened);
        let mut lines = vec![
            (0, format!("ask {ask} of {subgoal}, {}, since {since}", about.as_str())),
            (1, quoted(question)),
        ];
        for part in &self.parts {
            lines.push((1, part.title.to_owned()));
            lines.extend(part.lines.iter().map(|line| (2 + usize::from(line.deeper), line.text.clone())));
        }
        lines.push((1, "ways on".to_owned()));
        for way in &self.ways {
            lines.extend([(2, way.command.clone()), (3, way.means.clone())]);
        }
        let line = |(depth, text): &(usize, String)| {
            format!("{}{}\n", "  ".repeat(*depth), cut(&visible(text), LINE_MAX))
        };
        lines.iter().map(line).collect()
    }

    fn markdown(&self) -> String {
        let AskView { ask, subgoal, about, question, opened, .. } = self.ask;
        let mut out = format!(
            "### Ask {} of {}, {}\n\n{} (since {})\n\n",
            markdown(ask.as_str()),
            code(subgoal.as_str()),
            about.as_str(),
            prose(&quoted(question)),
            words::time(*opened)
        );
        for part in &self.parts {
            out.push_str(&format!("**{}**\n\n", part.title));
            out.extend(part.lines.iter().map(|line| {
                let indent = if line.deeper { "  " } else { "" };
                format!("{indent}- {}\n", prose(&cut(&line.text, LINE_MAX)))
            }));
            out.push('\n');
        }
        out.push_str("**ways on**\n\n");
        out.extend(self.ways.iter().map(|way| format!("- {}: {}\n", code(&way.command), prose(&way.means))));
        out.push('\n');
        out
    }

    fn json(&self) -> Value {
        let parts = self.parts.iter().map(|part| {
            let lines: Vec<&str> = part.lines.iter().map(|line| line.text.as_str()).collect();
            json!({ "title": part.title, "lines": lines })
        });
        let ways = self.ways.iter().map(|way| json!({ "command": way.command, "means": way.means }));
        let mut page = ask_json(self.ask);
        page["parts"] = parts.collect();
        page["ways"] = ways.collect();
        page
    }
}
