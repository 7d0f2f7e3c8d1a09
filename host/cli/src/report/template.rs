//! The placeholders of a report's text.
//!
//! ```text
//! placeholder = "{{" ( fact | param | table | figure | artifact ) "}}"
//! fact        = "fact:" SUBJECT [ "#" POINTER ] [ "|" format ]
//! param       = "param:" NAME [ "|" format ]
//! table       = "table:" PATTERN { "|" option }
//! figure      = "figure:" SUBGOAL "/" PATH
//! artifact    = "artifact:" SUBGOAL "/" PATH
//! option      = "columns" column { "," column } | "sort" [ "-" ] source | "limit" NUMBER
//! column      = name "=" source [ format ]
//! source      = "$last" | "$subject" | "$id" | "$level" | POINTER
//! format      = "digits" N | "percent" [ N ] | "count" | "exact"
//! name        = a word, or any text in double quotes
//! ```
//!
//! SUBJECT is a subject; PATTERN a subject, or a prefix that ends in `/*`. POINTER is a JSON
//! Pointer into the fact's content, in double quotes if it holds spaces, commas or bars. `$last`
//! is the last segment of the subject. `digits` is 1 to 17 significant digits, `percent` 0 to 6
//! decimals (1). A table stands on a line of its own and has at most 25 rows unless it says
//! otherwise.

use std::ops::Range;

use checkrein_contract::id::{is_relative_path, is_subject, is_subject_pattern};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::number::Format;

/// A piece of a report's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'t> {
    /// Markdown of the task's author.
    Text(&'t str),
    /// A placeholder, as it stands between the braces.
    Placeholder(&'t str, Placeholder),
    /// Something in braces that is no placeholder, and why not.
    Malformed(&'t str, String),
}

/// What a placeholder asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Placeholder {
    /// A value of a fact.
    Fact {
        /// The subject.
        subject: String,
        /// A JSON Pointer into its content; empty is the whole.
        pointer: String,
        /// How it is written.
        format: Format,
    },
    /// A parameter of the task: no fact, but part of what the task's digest stands for.
    Param(String, Format),
    /// A row for each fact.
    Table(Table),
    /// An image, at `<subgoal>/<path>`.
    Figure(String),
    /// Name, media type, size and digest of a file, at `<subgoal>/<path>`.
    Artifact(String),
}

/// A table of facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Which subjects.
    pub pattern: String,
    /// Its columns; none: one for each key that the first fact's content has.
    pub columns: Vec<Column>,
    /// What the rows are sorted by; by subject without.
    pub sort: Option<Sort>,
    /// The most rows.
    pub limit: Option<usize>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// What stands in it.
    pub source: Source,
    /// How it is written.
    pub format: Format,
}

/// The order of a table's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// By what.
    pub by: Source,
    /// Largest first.
    pub descending: bool,
}

/// Where a cell's value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The last segment of the subject.
    Last,
    /// The subject.
    Subject,
    /// The id of the fact.
    Id,
    /// Who stands for it.
    Level,
    /// A JSON Pointer into its content.
    Pointer(String),
}

/// The text in pieces, in order; all of it.
pub fn parse(text: &str) -> Vec<Piece<'_>> {
    pieces(text).into_iter().map(|(_, piece)| piece).collect()
}

/// What is wrong with the placeholders of a text: where (byte), and what. Run before the task
/// starts, so that a slip does not cost a run.
pub fn check_template(text: &str) -> Vec<(usize, String)> {
    let code = code_ranges(text);
    let mut faults = Vec::new();
    for (at, piece) in pieces(text) {
        match piece {
            Piece::Text(_) => {}
            Piece::Malformed(_, wrong) => faults.push((at, wrong)),
            Piece::Placeholder(inner, _) if code.iter().any(|range| range.contains(&at)) => {
                faults.push((at, format!("`{{{{{inner}}}}}` stands in code, where nothing is filled in")));
            }
            Piece::Placeholder(inner, Placeholder::Table(_)) if !stands_alone(text, at, inner.len() + 4) => {
                faults.push((at, "a table must stand on a line of its own".to_owned()));
            }
            Piece::Placeholder(..) => {}
        }
    }
    faults
}

fn pieces(text: &str) -> Vec<(usize, Piece<'_>)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|found| at + found) {
        if open > at {
            pieces.push((at, Piece::Text(&text[at..open])));
        }
        let Some(length) = text[open..].find("}}") else {
            pieces.push((open, Piece::Malformed(&text[open..], "`{{` without `}}`".to_owned())));
            return pieces;
        };
        let inner = &text[open + 2..open + length];
        at = open + length + 2;
        pieces.push(match placeholder(inner) {
            Ok(placeholder) => (open, Piece::Placeholder(inner, placeholder)),
            Err(wrong) => (open, Piece::Malformed(&text[open..at], wrong)),
        });
    }
    if at < text.len() {
        pieces.push((at, Piece::Text(&text[at..])));
    }
    pieces
}

fn placeholder(inner: &str) -> Result<Placeholder, String> {
    let expected = "expected `fact:`, `param:`, `table:`, `figure:` or `artifact:`";
    let parts = split(inner, '|')?;
    let head = parts[0].trim();
    let (kind, target) = head.split_once(':').ok_or_else(|| format!("{expected}, found `{head}`"))?;
    let (target, options) = (target.trim(), &parts[1..]);
    match kind.trim() {
        "fact" => fact(target, options),
        "param" => param(target, options),
        "table" => table(target, options).map(Placeholder::Table),
        "figure" => file(target, options).map(Placeholder::Figure),
        "artifact" => file(target, options).map(Placeholder::Artifact),
        other => Err(format!("{expected}, found `{other}:`")),
    }
}

fn fact(target: &str, options: &[&str]) -> Result<Placeholder, String> {
    let (subject, pointer) = target.split_once('#').unwrap_or((target, ""));
    if !is_subject(subject.trim()) {
        return Err(format!("expected a subject, found `{subject}`"));
    }
    let format = one_format(options)?;
    let pointer = pointer_of(&unquote(pointer.trim()))?;
    Ok(Placeholder::Fact { subject: subject.trim().to_owned(), pointer, format })
}

fn param(name: &str, options: &[&str]) -> Result<Placeholder, String> {
    if name.is_empty() {
        return Err("expected the name of a parameter, found nothing".to_owned());
    }
    Ok(Placeholder::Param(name.to_owned(), one_format(options)?))
}

fn one_format(options: &[&str]) -> Result<Format, String> {
    match options {
        [] => Ok(Format::Plain),
        [one] => format(&words(one)?),
        _ => Err("a value takes one format".to_owned()),
    }
}

fn file(target: &str, options: &[&str]) -> Result<String, String> {
    if !options.is_empty() {
        return Err("it takes no options".to_owned());
    }
    if !target.contains('/') || !is_relative_path(target) {
        return Err(format!("expected `SUBGOAL/PATH`, found `{target}`"));
    }
    Ok(target.to_owned())
}

fn table(target: &str, options: &[&str]) -> Result<Table, String> {
    if !is_subject_pattern(target) {
        return Err(format!("expected a subject, or a subject and `/*`, found `{target}`"));
    }
    let mut table = Table { pattern: target.to_owned(), columns: Vec::new(), sort: None, limit: None };
    for option in options {
        let option = option.trim();
        let (word, rest) = option.split_once(char::is_whitespace).unwrap_or((option, ""));
        match word {
            "columns" => {
                table.columns = split(rest, ',')?.into_iter().map(column).collect::<Result<_, _>>()?
            }
            "sort" => table.sort = Some(sort(rest.trim())?),
            "limit" => {
                let limit = rest.trim().parse().ok().filter(|limit| *limit > 0);
                table.limit =
                    Some(limit.ok_or_else(|| {
                        format!("expected a number of rows from 1, found `{}`", rest.trim())
                    })?);
            }
            other => return Err(format!("expected `columns`, `sort` or `limit`, found `{other}`")),
        }
    }
    Ok(table)
}

fn column(text: &str) -> Result<Column, String> {
    let parts = split(text, '=')?;
    let [name, rest @ ..] = parts.as_slice() else { return Err("an empty column".to_owned()) };
    if rest.is_empty() {
        return Err(format!("expected NAME=SOURCE, found `{}`", text.trim()));
    }
    let name = unquote(name.trim());
    // A pointer may hold an `=` itself.
    let words = words(&rest.join("="))?;
    let (source_word, format_words) =
        words.split_first().ok_or_else(|| format!("column `{name}` has no source"))?;
    Ok(Column { name, source: source(source_word)?, format: format(format_words)? })
}

fn sort(text: &str) -> Result<Sort, String> {
    let (descending, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    Ok(Sort { by: source(&unquote(rest))?, descending })
}

fn source(word: &str) -> Result<Source, String> {
    match word {
        "$last" => Ok(Source::Last),
        "$subject" => Ok(Source::Subject),
        "$id" => Ok(Source::Id),
        "$level" => Ok(Source::Level),
        pointer if pointer.starts_with('/') => pointer_of(pointer).map(Source::Pointer),
        other => {
            Err(format!("expected `$last`, `$subject`, `$id`, `$level` or a JSON Pointer, found `{other}`"))
        }
    }
}

fn pointer_of(text: &str) -> Result<String, String> {
    if !text.is_empty() && !text.starts_with('/') {
        return Err(format!("expected a JSON Pointer such as `/p`, found `{text}`"));
    }
    Ok(text.to_owned())
}

fn format(words: &[String]) -> Result<Format, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let within = |word: &str, range: Range<usize>| {
        let number = word.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected {} to {}, found `{word}`", range.start, range.end - 1))
    };
    match words.as_slice() {
        [] => Ok(Format::Plain),
        ["count"] => Ok(Format::Count),
        ["exact"] => Ok(Format::Exact),
        ["percent"] => Ok(Format::Percent(1)),
        ["percent", decimals] => within(decimals, 0..7).map(Format::Percent),
        ["digits", places] | [places, "digits"] => within(places, 1..18).map(Format::Digits),
        other => {
            Err(format!("expected `digits N`, `percent`, `count` or `exact`, found `{}`", other.join(" ")))
        }
    }
}

/// The parts between `separator`s that do not stand in double quotes; at least one.
fn split(text: &str, separator: char) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
        } else if c == separator && !quoted {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    if quoted {
        return Err(format!("a `\"` without its second in `{}`", text.trim()));
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn words(text: &str) -> Result<Vec<String>, String> {
    let parts = split(text.trim(), ' ')?;
    Ok(parts.into_iter().filter(|part| !part.is_empty()).map(unquote).collect())
}

fn unquote(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut block = None;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Code(_) => ranges.push(range),
            Event::Start(Tag::CodeBlock(_)) => block = Some(range.start),
            Event::End(TagEnd::CodeBlock) => ranges.extend(block.take().map(|start| start..range.end)),
            _ => {}
        }
    }
    ranges
}

fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let before = text[..at].rsplit('\n').next().unwrap_or_default();
    let after = text[at + length..].split('\n').next().unwrap_or_default();
    before.trim().is_empty() && after.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Placeholder {
        match parse(text).remove(0) {
            Piece::Placeholder(_, placeholder) => placeholder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn facts() {
        let fact = |pointer: &str, format| Placeholder::Fact {
            subject: "de/prior".to_owned(),
            pointer: pointer.to_owned(),
            format,
        };
        assert_eq!(only("{{fact:de/prior#/df|3 digits}}"), fact("/df", Format::Digits(3)));
        assert_eq!(only("{{ fact:de/prior#/df | digits 4 }}"), fact("/df", Format::Digits(4)));
        assert_eq!(only("{{fact:de/prior | count}}"), fact("", Format::Count));
        assert_eq!(only("{{fact:de/prior#\"/a | b\"|percent 2}}"), fact("/a | b", Format::Percent(2)));
    }

    #[test]
    fn tables() {
        let text = "{{table:de/gene/* | columns gene=$last, \"log2, fold\"=/l digits 3, p=/p | sort -/p | limit 10}}";
        let Placeholder::Table(table) = only(text) else { panic!("no table") };
        assert_eq!(table.columns.len(), 3);
        assert_eq!(table.columns[1].name, "log2, fold");
        assert_eq!(table.columns[1].format, Format::Digits(3));
        assert_eq!(table.sort, Some(Sort { by: Source::Pointer("/p".to_owned()), descending: true }));
        assert_eq!(table.limit, Some(10));
    }

    #[test]
    fn every_fault_has_its_place() {
        let text = "a {{fact:De x}} b {{fct:x}} `{{fact:a}}` {{table:a/*}} c\n{{table:a/* | limit 0}}\n{{fact:a | 99 digits}} {{figure:x}} {{";
        let faults = check_template(text);
        let places: Vec<&str> =
            faults.iter().map(|(at, _)| text[*at..].split_inclusive("}}").next().unwrap()).collect();
        assert_eq!(
            places,
            [
                "{{fact:De x}}",
                "{{fct:x}}",
                "{{fact:a}}",
                "{{table:a/*}}",
                "{{table:a/* | limit 0}}",
                "{{fact:a | 99 digits}}",
                "{{figure:x}}",
                "{{"
            ]
        );
        assert!(faults[0].1.contains("expected a subject"), "{faults:?}");
    }

    #[test]
    fn good_text_has_no_faults() {
        assert_eq!(
            check_template("# x\n\n{{fact:a/b#/c}} and\n\n{{table:a/*}}\n\n{{figure:plot/v.svg}} }} {x}"),
            []
        );
    }
}
