//! What is told of a run, from its events alone: the report, the path behind a number, the tree
//! of what was tried, and the log line by line.
//!
//! Everything here is a pure function of a [`RunView`], which is folded from the events; only the
//! fold reads blobs, and [`RunView::with_export`] a file beside the reports. Nothing here knows a skill: what the report shows is in the task. Text of
//! skills is data: [`escape`] is the one place where it is made harmless.
//!
//! Reading order:
//!
//! * [`view`], [`fold`]: the read model, and how the events become it.
//! * [`template`]: the placeholders of a task's report, and their faults.
//! * [`escape`], [`number`], [`words`], [`letters`]: how text, numbers, endings and answers are
//!   written.
//! * [`figure`]: what of an artifact may be drawn.
//! * [`asks`]: a page for each question that waits for a person.
//! * [`compose`], [`sections`], [`course`], [`notes`]: the report as Markdown.
//! * [`html`]: the same as a page that needs nothing else.
//! * [`json`]: the same as data.
//! * [`why`], [`show`], [`line`]: the same in the terminal.

pub mod asks;
pub mod compose;
pub mod course;
pub mod escape;
mod figure;
pub mod fold;
pub mod html;
pub mod json;
pub mod letters;
pub mod line;
pub mod notes;
pub mod number;
pub mod sections;
pub mod show;
pub mod template;
pub mod view;
pub mod why;
pub mod words;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use asks::{ask_pages, asks_json};
pub use compose::{figures, markdown};
pub use html::html;
pub use json::report_json;
pub use line::{event_line, wall_lines};
pub use show::show;
pub use template::check_template;
pub use view::RunView;
pub use why::why;
