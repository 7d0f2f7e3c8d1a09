//! From documents to cells.

use std::collections::HashSet;

use checkrein_skill::outcome::is_segment;
use checkrein_skill::{Failure, files, progress};
use regex::{Regex, RegexBuilder};
use serde_json::json;

use crate::{Args, Field};

/// The compiled size that a pattern may have, in bytes: a pattern is a stranger's.
const PATTERN_SIZE: usize = 4 << 20;

/// All rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub fields: Vec<String>,
    /// One a document.
    pub rows: Vec<Row>,
}

/// One document.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its path.
    pub file: String,
    /// What subjects call it.
    pub slug: String,
    /// One a field, in their order.
    pub cells: Vec<Cell>,
}

/// One field of one document.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// The first place where the pattern matches with a value.
    Found(Quote),
    /// The pattern does not match anywhere, or never with a value.
    Missing {
        /// The pattern.
        pattern: String,
    },
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// Group 1 of the match, or all of it; without white space around.
    pub value: String,
    /// All of the match, as it stands in the file.
    pub text: String,
    /// Its first byte in the file.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// Reads all documents.
///
/// # Errors
///
/// A document that is not there, not UTF-8 or empty, a pattern that cannot be compiled, names that
/// cannot be part of a subject or occur twice.
pub fn table(args: &Args) -> Result<Table, Failure> {
    if args.documents.is_empty() || args.fields.is_empty() {
        return Err(Failure::invalid_args("`documents` and `fields` need one entry at least"));
    }
    let patterns = patterns(&args.fields)?;
    let slugs = slugs(&args.documents)?;
    let total = u32::try_from(args.documents.len()).unwrap_or(u32::MAX);
    let mut rows = Vec::new();
    for (done, (file, slug)) in (0..).zip(args.documents.iter().zip(slugs)) {
        progress::report(done, total, file);
        let text = files::read_text(file)?;
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            let failure = Failure::invalid_args(format!("`{file}` is empty"));
            return Err(failure.with_evidence(json!({ "file": file, "bytes": text.len() })));
        }
        let cells = args
            .fields
            .iter()
            .zip(&patterns)
            .map(|(field, regex)| cell(&text, field, regex))
            .collect();
        rows.push(Row { file: file.clone(), slug, cells });
    }
    Ok(Table { fields: args.fields.iter().map(|field| field.name.clone()).collect(), rows })
}

fn cell(text: &str, field: &Field, regex: &Regex) -> Cell {
    let quotes = regex.captures_iter(text).map(|captures| {
        let whole = captures.get_match();
        let value = captures.get(1).map_or(whole.as_str(), |group| group.as_str());
        Quote {
            value: value.trim().to_owned(),
            text: whole.as_str().to_owned(),
            start: whole.start(),
            end: whole.end(),
        }
    });
    // A match without a value, as of a label with nothing behind it, says nothing.
    match quotes.into_iter().find(|quote| !quote.value.is_empty()) {
        Some(quote) => Cell::Found(quote),
        None => Cell::Missing { pattern: field.pattern.clone() },
    }
}

fn patterns(fields: &[Field]) -> Result<Vec<Regex>, Failure> {
    let mut names = HashSet::new();
    let mut patterns = Vec::new();
    for field in fields {
        let fail = |what: String| {
            Failure::invalid_args(format!("field `{}`: {what}", field.name))
                .with_evidence(json!({ "field": field.name, "pattern": field.pattern }))
        };
        if !is_segment(&field.name) || field.name.len() > 60 {
            let what = "a name of letters, digits, `.`, `_` and `-` is needed, the first a letter or digit";
            return Err(fail(what.into()));
        }
        if !names.insert(field.name.as_str()) {
            return Err(fail("the name is there twice".into()));
        }
        let compiled =
            RegexBuilder::new(&field.pattern).multi_line(true).size_limit(PATTERN_SIZE).build();
        let regex =
            compiled.map_err(|error| fail(format!("the pattern cannot be used: {error}")))?;
        if regex.is_match("") {
            return Err(fail(
                "the pattern matches nothing at all, so there would be nothing to quote".into(),
            ));
        }
        patterns.push(regex);
    }
    Ok(patterns)
}

/// The file's name as a segment; a second one of the same gets `-2`, and so on.
fn slugs(documents: &[String]) -> Result<Vec<String>, Failure> {
    let mut seen = HashSet::new();
    let mut taken = HashSet::new();
    let mut slugs = Vec::new();
    for file in documents {
        if !seen.insert(file) {
            return Err(Failure::invalid_args(format!("`{file}` is there twice")));
        }
        let base = slug(file);
        let mut own = base.clone();
        let mut n = 1;
        while !taken.insert(own.clone()) {
            n += 1;
            own = format!("{base}-{n}");
        }
        slugs.push(own);
    }
    Ok(slugs)
}

fn slug(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let slug: String = stem.chars().map(plain).take(80).collect();
    let slug = slug.trim_matches(['-', '.', '_']);
    if is_segment(slug) { slug.to_owned() } else { "document".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_skill::testing::World;

    fn args(pattern: &str) -> Args {
        let field = Field { name: "year".into(), pattern: pattern.into() };
        Args { documents: vec!["/in/A b.md".into()], fields: vec![field] }
    }

    #[test]
    fn the_first_match_is_quoted_with_its_bytes() {
        let _world = World::new().with("/in/A b.md", "# Über\r\nYear: 1999 \nYear: 2000\n");
        let table = table(&args("^Year: (\\d+)")).expect("a table");
        assert_eq!(table.rows[0].slug, "a-b");
        let quote = Quote { value: "1999".into(), text: "Year: 1999".into(), start: 9, end: 19 };
        assert_eq!(table.rows[0].cells, [Cell::Found(quote)]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let world = World::new().with("/in/A b.md", " \n");
        for (pattern, part) in
            [("(", "cannot be used"), ("x*", "matches nothing"), ("x", "`/in/A b.md` is empty")]
        {
            let failure = table(&args(pattern)).expect_err(pattern);
            assert!(failure.message.contains(part), "{failure}");
        }
        world.write("/in/A b.md", [b'a', 0xff]);
        let failure = table(&args("x")).expect_err("not UTF-8");
        assert!(failure.message.contains("`/in/A b.md` is not UTF-8"), "{failure}");
    }
}
