//! The report as Markdown: the task's text with its placeholders filled in, then what every
//! report ends with.

use std::cmp::Ordering;

use checkrein_contract::id::covers;
use checkrein_contract::units::{show_bytes, show_count};
use pulldown_cmark::{Event, Parser};
use serde_json::Value;

use super::asks;
use super::course;
use super::escape;
use super::notes::Notes;
use super::number::{self, Format};
use super::sections;
use super::template::{self, Column, Piece, Placeholder, Source, Table};
use super::view::{ArtifactView, FactView, RunView};

/// The most rows of a table that states no limit: a report is read, the rest is data.
const ROWS: usize = 25;

/// Where the report will be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// As a file beside which the figures lie; see [`figures`].
    Markdown,
    /// On the way to a page: figures are named `figure:<place in artifacts>`.
    Html,
}

/// The report as Markdown. Text of skills is escaped; the task's own text is as its author wrote
/// it, with hidden characters shown. Figures are links to the files that [`figures`] names.
pub fn markdown(view: &RunView) -> String {
    let title = escape::markdown(&view.task.report.title);
    let mut out = if view.dry { format!("> **{}**\n\n", course::DRY) } else { String::new() };
    out.push_str(&format!("# {title}\n\n{}\n\n", sections::standing(view)));
    out.push_str(&body(view, Target::Markdown));
    out
}

/// The files that [`markdown`] links to: path relative to the report, and content.
pub fn figures(view: &RunView) -> Vec<(String, &[u8])> {
    let shown = view
        .artifacts
        .iter()
        .filter_map(|artifact| Some((figure_path(artifact), artifact.figure.as_deref().ok()?)));
    shown.collect()
}

fn figure_path(artifact: &ArtifactView) -> String {
    format!("figures/{}", artifact.place())
}

/// The report without its title.
pub(super) fn body(view: &RunView, target: Target) -> String {
    let mut composer = Composer { view, target, notes: Notes::new(view), unresolved: Vec::new() };
    let mut out = asks::waiting(view);
    out.push_str(&match &view.task.report.text {
        Some(text) => composer.fill(&without_html(text)),
        None => composer.everything(),
    });
    out.push_str("\n\n");
    out.push_str(&sections::not_reached(view, &composer.unresolved));
    out.push_str(&sections::failed_attempts(view));
    out.push_str(&sections::refusals(view));
    out.push_str(&course::questions(view));
    out.push_str(&course::unsure_calls(view));
    out.push_str(&course::amendments(view));
    out.push_str(&sections::how_to_check(view));
    out.push_str("## Evidence\n\n");
    out.push_str(
        "Digests are shortened to 12 digits here; they stand in full above and in `checkrein why`.\n\n",
    );
    out.push_str(&composer.notes.definitions());
    out
}

struct Composer<'v> {
    view: &'v RunView,
    target: Target,
    notes: Notes<'v>,
    /// Placeholders that do not resolve, and why.
    unresolved: Vec<(String, String)>,
}

impl<'v> Composer<'v> {
    fn fill(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() * 2);
        for piece in template::parse(text) {
            match piece {
                Piece::Text(text) => out.push_str(&escape::visible_lines(text)),
                Piece::Malformed(inner, wrong) => out.push_str(&self.unresolved(inner, wrong)),
                Piece::Placeholder(inner, placeholder) => {
                    let filled = match placeholder {
                        Placeholder::Fact { subject, pointer, format } => {
                            self.fact(&subject, &pointer, format)
                        }
                        Placeholder::Param(name, format) => self.param(&name, format),
                        Placeholder::Table(table) => self.table(&table),
                        Placeholder::Figure(place) => self.figure(&place),
                        Placeholder::Artifact(place) => self.artifact(&place),
                    };
                    out.push_str(&filled.unwrap_or_else(|why| self.unresolved(inner, why)));
                }
            }
        }
        out
    }

    fn unresolved(&mut self, inner: &str, why: String) -> String {
        let inner = inner.split('|').next().unwrap_or(inner).trim().to_owned();
        let mark = format!("**⟦not reached: {}⟧**", escape::markdown(&inner));
        self.unresolved.push((inner, why));
        mark
    }

    fn param(&self, name: &str, format: Format) -> Result<String, String> {
        let value = self.view.task.parameters.get(name);
        let value = value.ok_or_else(|| format!("the task has no parameter `{name}`"))?;
        Ok(escape::markdown(&number::show(value, format)))
    }

    fn fact(&mut self, subject: &str, pointer: &str, format: Format) -> Result<String, String> {
        let fact = self.view.fact(subject).ok_or_else(|| format!("there is no fact on `{subject}`"))?;
        let Some(value) = fact.value(pointer) else {
            // The fact stands, and says something else: that an offer names no price, perhaps.
            let why = format!("`{}` has nothing at `{pointer}`", fact.entry.id);
            self.unresolved.push((format!("fact:{subject}#{pointer}"), why));
            return Ok(format!("⟦nothing there⟧{}{}", self.not_counted(fact), self.notes.fact(fact)));
        };
        let shown = escape::markdown(&number::show(value, format));
        Ok(format!("{shown}{}{}", self.not_counted(fact), self.notes.fact(fact)))
    }

    fn not_counted(&self, fact: &FactView) -> String {
        match self.view.counts(fact) {
            true => String::new(),
            false => format!(" ({}, not counted)", fact.entry.level.as_str()),
        }
    }

    fn table(&mut self, table: &Table) -> Result<String, String> {
        let covered = self.view.current_facts().filter(|fact| covers(&table.pattern, &fact.entry.subject));
        let mut facts: Vec<&'v FactView> = covered.collect();
        if facts.is_empty() {
            return Err(format!("no fact is covered by `{}`", table.pattern));
        }
        if let Some(sort) = &table.sort {
            facts.sort_by(|one, two| {
                let (one, two) = (value_of(one, &sort.by), value_of(two, &sort.by));
                order(one.as_ref(), two.as_ref(), sort.descending)
            });
        }
        let own: Vec<Column>;
        let columns = if table.columns.is_empty() {
            own = columns_of(&facts);
            &own
        } else {
            &table.columns
        };
        let all = facts.len();
        facts.truncate(table.limit.unwrap_or(ROWS));
        Ok(self.rows(columns, &facts, all))
    }

    fn rows(&mut self, columns: &[Column], facts: &[&'v FactView], all: usize) -> String {
        let numeric = |column: &Column| {
            facts.iter().all(|fact| {
                value_of(fact, &column.source).is_none_or(|value| value.is_number() || value.is_null())
            })
        };
        let names: Vec<String> = columns.iter().map(|column| escape::markdown(&column.name)).collect();
        let rules: Vec<&str> =
            columns.iter().map(|column| if numeric(column) { "---:" } else { "---" }).collect();
        let mut out = format!("\n\n| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
        for fact in facts {
            let mut cells: Vec<String> = columns.iter().map(|column| cell(fact, column)).collect();
            if let Some(first) = cells.first_mut() {
                first.push_str(&self.not_counted(fact));
                first.push_str(&self.notes.fact(fact));
            }
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if facts.len() < all {
            let (shown, all) = (show_count(facts.len() as u64), show_count(all as u64));
            out.push_str(&format!(
                "\n*{shown} of {all} rows; all of them are in `checkrein report --json`.*\n"
            ));
        }
        out.push('\n');
        out
    }

    fn figure(&mut self, place: &str) -> Result<String, String> {
        let (at, artifact) =
            self.view.artifact(place).ok_or_else(|| format!("there is no artifact `{place}`"))?;
        if let Err(why) = &artifact.figure {
            return Err(format!("`{place}` is not shown as a figure: {why}"));
        }
        let title = escape::markdown(&artifact.file.title);
        let note = self.notes.artifact(artifact);
        let address = match self.target {
            Target::Markdown => escape::address(&figure_path(artifact)),
            Target::Html => format!("figure:{at}"),
        };
        Ok(format!("![{title}](<{address}>){note}"))
    }

    fn artifact(&mut self, place: &str) -> Result<String, String> {
        let (_, artifact) =
            self.view.artifact(place).ok_or_else(|| format!("there is no artifact `{place}`"))?;
        let note = self.notes.artifact(artifact);
        Ok(format!("{}{note}", described(artifact)))
    }

    /// The report of a task that gives no text: its facts by subgoal, and its figures.
    fn everything(&mut self) -> String {
        let mut out = String::new();
        for subgoal in self.view.subgoals() {
            let of_it = |fact: &&FactView| fact.subgoal == subgoal.id;
            let mut groups: Vec<(String, Vec<&'v FactView>)> = Vec::new();
            for fact in self.view.current_facts().filter(of_it) {
                let shape = shape(fact);
                match groups.iter_mut().find(|(known, _)| *known == shape) {
                    Some((_, facts)) => facts.push(fact),
                    None => groups.push((shape, vec![fact])),
                }
            }
            let files: Vec<&ArtifactView> =
                self.view.artifacts.iter().filter(|artifact| artifact.subgoal == subgoal.id).collect();
            if groups.is_empty() && files.is_empty() {
                continue;
            }
            out.push_str(&format!("## {}\n\n", escape::markdown(&subgoal.goal)));
            for (_, mut facts) in groups {
                let (columns, all) = (columns_of(&facts), facts.len());
                facts.truncate(ROWS);
                out.push_str(&self.rows(&columns, &facts, all));
            }
            for file in files {
                let place = file.place();
                let shown = if file.figure.is_ok() { self.figure(&place) } else { self.artifact(&place) };
                out.push_str(&shown.unwrap_or_else(|why| self.unresolved(&place, why)));
                out.push_str("\n\n");
            }
        }
        out
    }
}

/// Markdown whose raw HTML is text.
fn without_html(text: &str) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (event, range) in Parser::new(text).into_offset_iter() {
        if matches!(event, Event::Html(_) | Event::InlineHtml(_)) {
            out.push_str(&text[done..range.start]);
            out.push_str(&text[range.clone()].replace('<', "\\<"));
            done = range.end;
        }
    }
    out + &text[done..]
}

fn described(artifact: &ArtifactView) -> String {
    let file = &artifact.file;
    format!(
        "{} ({}, {}, {}, {})",
        escape::markdown(&file.title),
        escape::code(&file.path),
        escape::markdown(&file.media_type),
        show_bytes(file.bytes),
        escape::code(&file.digest.to_string())
    )
}

/// Facts of one shape share a table: the keys of their content, or its type.
fn shape(fact: &FactView) -> String {
    match &fact.content {
        Value::Object(map) => map.keys().map(String::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn columns_of(facts: &[&FactView]) -> Vec<Column> {
    let column = |name: &str, source| Column { name: name.to_owned(), source, format: Format::Plain };
    let mut columns = vec![column("subject", Source::Subject)];
    match facts.first().map(|fact| &fact.content) {
        Some(Value::Object(map)) => columns.extend(map.keys().map(|key| {
            let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
            column(key, Source::Pointer(pointer))
        })),
        _ => columns.push(column("value", Source::Pointer(String::new()))),
    }
    columns
}

fn cell(fact: &FactView, column: &Column) -> String {
    match value_of(fact, &column.source) {
        None => "–".to_owned(),
        Some(value) => escape::markdown(&number::show(&value, column.format)),
    }
}

fn value_of(fact: &FactView, source: &Source) -> Option<Value> {
    let subject = &fact.entry.subject;
    match source {
        Source::Last => subject.rsplit('/').next().map(Value::from),
        Source::Subject => Some(subject.as_str().into()),
        Source::Id => Some(fact.entry.id.as_str().into()),
        Source::Level => Some(fact.entry.level.as_str().into()),
        Source::Pointer(pointer) => fact.value(pointer).cloned(),
    }
}

/// Numbers by size, then other values by their text; what is not there comes last either way.
fn order(one: Option<&Value>, two: Option<&Value>, descending: bool) -> Ordering {
    let (Some(one), Some(two)) = (one, two) else { return one.is_none().cmp(&two.is_none()) };
    let (first, second) = (one.as_f64(), two.as_f64());
    let order = match (first, second) {
        (Some(first), Some(second)) => first.total_cmp(&second),
        (None, None) => number::show(one, Format::Exact).cmp(&number::show(two, Format::Exact)),
        (first, second) => return first.is_none().cmp(&second.is_none()),
    };
    if descending { order.reverse() } else { order }
}
