//! A TOML reader that reports all mistakes of a file at once, each with its place.
//!
//! A [`Document`] holds the text and collects [`Fault`]s; a [`Section`] is one of its tables. A
//! section is read key by key; [`Section::close`] then reports the keys that nobody asked for. A
//! value that is wrong is reported and read as absent, so that reading goes on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::problem::{Fault, Faults};
use crate::units;

/// How much of a wrong text is shown, in characters.
const SHOWN: usize = 60;
/// How much of a place, or of what was found, is told of one fault, in bytes.
const TOLD: usize = 400;
/// How many faults of one file are told; more are counted.
const FAULTS: usize = 100;
/// The longest key that is held against the known ones, in bytes.
const NAME: usize = 100;

/// A value of a document, with the byte where it starts.
#[derive(Clone, Debug)]
pub struct Node {
    at: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Other(String),
    List(Vec<Node>),
    Table(Vec<(String, usize, Node)>),
}

impl Node {
    fn describe(&self) -> String {
        match &self.kind {
            Kind::Text(text) if text.chars().count() > SHOWN => {
                format!("the text {:?}…", text.chars().take(SHOWN).collect::<String>())
            }
            Kind::Text(text) => format!("the text {text:?}"),
            Kind::Integer(number) => format!("the number {number}"),
            Kind::Float(number) => format!("the number {number}"),
            Kind::Bool(value) => format!("{value}"),
            Kind::Other(text) => text.clone(),
            Kind::List(items) => format!("a list of {}", items.len()),
            Kind::Table(_) => "a table".to_owned(),
        }
    }

    /// The value as JSON; TOML's dates become text, numbers that JSON lacks (`nan`, `inf`) too.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Text(text) | Kind::Other(text) => Value::String(text.clone()),
            Kind::Integer(number) => (*number).into(),
            Kind::Float(number) => {
                serde_json::Number::from_f64(*number).map_or_else(|| number.to_string().into(), Value::Number)
            }
            Kind::Bool(value) => (*value).into(),
            Kind::List(items) => items.iter().map(Node::to_json).collect(),
            Kind::Table(entries) => {
                Value::Object(entries.iter().map(|(key, _, node)| (key.clone(), node.to_json())).collect())
            }
        }
    }
}

/// What can be read from one value.
pub trait Field: Sized {
    /// What the value should be, for messages.
    const EXPECTED: &'static str;

    /// The value, or `None` if it is something else.
    fn read(node: &Node) -> Option<Self>;
}

impl Field for String {
    const EXPECTED: &'static str = "a text";
    fn read(node: &Node) -> Option<Self> {
        match &node.kind {
            Kind::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "true or false";
    fn read(node: &Node) -> Option<Self> {
        match node.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }
}

impl Field for u64 {
    const EXPECTED: &'static str = "a whole number, not negative";
    fn read(node: &Node) -> Option<Self> {
        match node.kind {
            Kind::Integer(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

impl Field for Value {
    const EXPECTED: &'static str = "a value";
    fn read(node: &Node) -> Option<Self> {
        Some(node.to_json())
    }
}

impl<T: Field> Field for Vec<T> {
    const EXPECTED: &'static str = "a list, each item of which is one value of the right kind";
    fn read(node: &Node) -> Option<Self> {
        match &node.kind {
            Kind::List(items) => items.iter().map(T::read).collect(),
            _ => None,
        }
    }
}

/// A TOML file that is being read.
#[derive(Debug)]
pub struct Document {
    file: String,
    text: String,
    root: Node,
    /// Where each line starts.
    lines: Vec<usize>,
    faults: RefCell<Vec<Fault>>,
    /// Faults that were found after as many as are told.
    more: Cell<usize>,
}

impl Document {
    /// Parses `text`; a file that is not TOML has its syntax faults already.
    pub fn parse(file: &str, text: &str) -> Self {
        let (root, errors) = DeTable::parse_recoverable(text);
        let document = Document {
            file: file.to_owned(),
            text: text.to_owned(),
            root: node(root.span().start, table(root.get_ref())),
            lines: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
            faults: RefCell::default(),
            more: Cell::new(0),
        };
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            document.push(at, "", "syntax", "TOML", error.message(), "mend this first");
        }
        document
    }

    /// Parses a text of a stranger, which may have at most so many bytes.
    ///
    /// # Errors
    ///
    /// If it has more.
    pub fn parse_at_most(file: &str, text: &str, most: usize) -> Result<Self, Faults> {
        if text.len() <= most {
            return Ok(Self::parse(file, text));
        }
        Err(Faults(vec![Fault {
            file: file.to_owned(),
            place: String::new(),
            stage: "size".to_owned(),
            expected: format!("at most {}", units::show_bytes(most as u64)),
            found: units::show_bytes(text.len() as u64),
            mend: "shorten it".to_owned(),
        }]))
    }

    /// The table of the whole file.
    pub fn root(&self) -> Section<'_> {
        Section { document: self, path: String::new(), node: &self.root, seen: RefCell::default() }
    }

    /// Ends the reading: the value if nothing was wrong.
    ///
    /// # Errors
    ///
    /// Every fault that was found, in the order of the file.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Faults> {
        let mut faults = self.faults.into_inner();
        // A broken file makes sections end early: what then seems to be missing may only be hidden.
        if faults.iter().any(|fault| fault.stage == "syntax") {
            faults.retain(|fault| fault.stage == "syntax");
        }
        match value {
            Some(value) if faults.is_empty() => Ok(value),
            _ => {
                faults.sort_by_key(|fault| position(&fault.place));
                faults.dedup();
                if self.more.get() > 0 {
                    faults.push(Fault {
                        file: self.file,
                        place: String::new(),
                        stage: "more".to_owned(),
                        expected: format!("at most {FAULTS} faults"),
                        found: format!("{} more", self.more.get()),
                        mend: "mend these first".to_owned(),
                    });
                }
                Err(Faults(faults))
            }
        }
    }

    /// Whether as many faults were found as are told.
    fn is_full(&self) -> bool {
        self.faults.borrow().len() >= FAULTS
    }

    fn push(&self, at: usize, path: &str, stage: &str, expected: &str, found: &str, mend: &str) {
        if self.is_full() {
            self.more.set(self.more.get() + 1);
            return;
        }
        let at = self.text.floor_char_boundary(at);
        let line = self.lines.partition_point(|start| *start <= at).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text[start..at].chars().count() + 1;
        let place = format!("{line}:{column}{}{}", if path.is_empty() { "" } else { " " }, cut(path));
        self.faults.borrow_mut().push(Fault {
            file: self.file.clone(),
            place,
            stage: stage.to_owned(),
            expected: expected.to_owned(),
            found: cut(found),
            mend: mend.to_owned(),
        });
    }
}

/// The beginning of a text, with a mark if there is more.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(TOLD);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

fn position(place: &str) -> (u64, u64) {
    let mut numbers = place.split([':', ' ']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn node(at: usize, kind: Kind) -> Node {
    Node { at, kind }
}

fn table(table: &DeTable<'_>) -> Kind {
    let entries = table.iter();
    Kind::Table(
        entries.map(|(key, value)| (key.get_ref().to_string(), key.span().start, convert(value))).collect(),
    )
}

fn convert(value: &Spanned<DeValue<'_>>) -> Node {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Kind::Other(number.to_string()), Kind::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Kind::Other(number.to_string()), Kind::Float)
        }
        DeValue::Boolean(value) => Kind::Bool(*value),
        DeValue::Datetime(date) => Kind::Other(date.to_string()),
        DeValue::Array(items) => Kind::List(items.iter().map(convert).collect()),
        DeValue::Table(entries) => table(entries),
    };
    node(value.span().start, kind)
}

/// One table of a [`Document`].
#[derive(Debug)]
pub struct Section<'d> {
    document: &'d Document,
    path: String,
    node: &'d Node,
    seen: RefCell<BTreeSet<String>>,
}

impl<'d> Section<'d> {
    fn entries(&self) -> &'d [(String, usize, Node)] {
        match &self.node.kind {
            Kind::Table(entries) => entries,
            _ => &[],
        }
    }

    fn find(&self, key: &str) -> Option<&'d Node> {
        self.seen.borrow_mut().insert(key.to_owned());
        self.entries().iter().find(|(name, ..)| name == key).map(|(.., node)| node)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entries().iter().any(|(name, ..)| name == key)
    }

    /// Reports a fault at `key` (or at the section, if it has none such).
    pub fn fault(&self, key: &str, expected: &str, found: &str, mend: &str) {
        let at =
            self.entries().iter().find(|(name, ..)| name == key).map_or(self.node.at, |(.., node)| node.at);
        self.document.push(at, &self.path_of(key), "semantics", expected, found, mend);
    }

    fn wrong(&self, key: &str, node: &Node, expected: &str) {
        self.document.push(node.at, &self.path_of(key), "schema", expected, &node.describe(), "");
    }

    /// The value of `key`, if it is there and right.
    pub fn get<T: Field>(&self, key: &str) -> Option<T> {
        let node = self.find(key)?;
        let value = T::read(node);
        if value.is_none() {
            self.wrong(key, node, T::EXPECTED);
        }
        value
    }

    /// The value of `key`, which must be there.
    pub fn need<T: Field>(&self, key: &str) -> Option<T> {
        if !self.has(key) {
            self.seen.borrow_mut().insert(key.to_owned());
            let mend = format!("add `{key} = …`");
            self.document.push(self.node.at, &self.path_of(key), "schema", T::EXPECTED, "nothing", &mend);
            return None;
        }
        self.get(key)
    }

    /// The text of `key`, turned into something else by `parse`; what `parse` refuses is reported
    /// as not being `expected`. Numbers are handed over as they are written.
    pub fn parsed<T>(&self, key: &str, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let node = self.find(key)?;
        let text = match &node.kind {
            Kind::Text(text) => text.clone(),
            Kind::Integer(number) => number.to_string(),
            Kind::Float(number) => number.to_string(),
            _ => String::new(),
        };
        let value = parse(&text);
        if value.is_none() {
            self.wrong(key, node, expected);
        }
        value
    }

    /// The value of `key` must be exactly `expected`, as for `schema`.
    pub fn need_exactly(&self, key: &str, expected: &str) {
        if let Some(found) = self.need::<String>(key).filter(|found| found != expected) {
            self.fault(key, &format!("{expected:?}"), &format!("{found:?}"), "");
        }
    }

    /// The table at `key`, if there is one.
    pub fn section(&self, key: &str) -> Option<Section<'d>> {
        let node = self.find(key)?;
        self.table(key, node)
    }

    fn table(&self, key: &str, node: &'d Node) -> Option<Section<'d>> {
        if !matches!(node.kind, Kind::Table(_)) {
            self.wrong(key, node, "a table");
            return None;
        }
        Some(Section { document: self.document, path: self.path_of(key), node, seen: RefCell::default() })
    }

    /// The tables of the list at `key` (`[[key]]`), none if it is absent.
    pub fn sections(&self, key: &str) -> Vec<Section<'d>> {
        match self.find(key) {
            None => Vec::new(),
            Some(Node { kind: Kind::List(items), .. }) => items
                .iter()
                .enumerate()
                .filter_map(|(index, node)| self.table(&format!("{key}[{index}]"), node))
                .collect(),
            Some(node) => {
                self.wrong(key, node, &format!("a list of tables, `[[{key}]]`"));
                Vec::new()
            }
        }
    }

    /// The names and tables of the table at `key`, none if it is absent.
    pub fn named_sections(&self, key: &str) -> Vec<(String, Section<'d>)> {
        let Some(parent) = self.section(key) else { return Vec::new() };
        let entries = parent.entries().iter();
        entries.filter_map(|(name, _, node)| Some((name.clone(), parent.table(name, node)?))).collect()
    }

    /// The names and values of the table at `key`, none if it is absent.
    pub fn map<T: Field>(&self, key: &str) -> Vec<(String, T)> {
        let Some(parent) = self.section(key) else { return Vec::new() };
        let entries = parent.entries().iter();
        let read = entries.filter_map(|(name, _, node)| {
            let value = T::read(node);
            if value.is_none() {
                parent.wrong(name, node, T::EXPECTED);
            }
            Some((name.clone(), value?))
        });
        read.collect()
    }

    /// The keys of this table, in the order of the file.
    pub fn keys(&self) -> Vec<String> {
        self.entries().iter().map(|(name, ..)| name.clone()).collect()
    }

    /// The table as JSON.
    pub fn to_json(&self) -> Value {
        self.node.to_json()
    }

    /// Ends the reading of this table: a key that nobody asked for is a fault.
    pub fn close(self) {
        let seen = self.seen.borrow();
        for (name, at, _) in self.entries().iter().filter(|(name, ..)| !seen.contains(name)) {
            if self.document.is_full() {
                self.document.more.set(self.document.more.get() + 1);
                continue;
            }
            let known: Vec<&str> = seen.iter().map(String::as_str).collect();
            let mend = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("remove it; known here: {}", known.join(", ")),
            };
            self.document.push(
                *at,
                &self.path_of(name),
                "schema",
                "a known key",
                &format!("`{name}`"),
                &mend,
            );
        }
    }
}

/// The one of `known` that `name` is most likely a slip of, if any is near enough.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > NAME {
        return None;
    }
    let with_distance = known.iter().map(|word| (distance(name, word), *word));
    with_distance.min().filter(|(far, word)| *far <= 1 + word.len() / 4).map(|(_, word)| word)
}

/// Levenshtein's distance, in bytes.
fn distance(one: &str, two: &str) -> usize {
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in two.bytes().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_at_once_with_their_places() {
        let document = Document::parse("x.toml", "name = 3\nnmae = \"a\"\n[budget]\ncalls = -1\n");
        let root = document.root();
        let name = root.get::<String>("name");
        let budget = root.section("budget").unwrap();
        budget.get::<u64>("calls");
        budget.need::<String>("wall");
        budget.close();
        root.close();
        let faults = document.finish(name).unwrap_err().0;
        let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(
            lines,
            [
                "x.toml:1:8 name: schema: expected a text, found the number 3",
                "x.toml:2:1 nmae: schema: expected a known key, found `nmae`; did you mean `name`?",
                "x.toml:3:1 budget.wall: schema: expected a text, found nothing; add `wall = …`",
                "x.toml:4:9 budget.calls: schema: expected a whole number, not negative, found the number -1",
            ]
        );
    }

    #[test]
    fn broken_toml_names_only_what_is_broken() {
        let document = Document::parse("x.toml", "a = \n[b\nc = 1");
        document.root().need::<String>("zzz");
        let faults = document.finish(Some(())).unwrap_err().0;
        assert!(!faults.is_empty());
        assert!(faults.iter().all(|fault| fault.stage == "syntax"), "{faults:?}");
    }

    #[test]
    fn a_file_full_of_mistakes_tells_the_first_of_them_and_counts_the_others() {
        let text: String = (0..20_000).map(|number| format!("k{number} = 1\n")).collect();
        let document = Document::parse("x.toml", &text);
        let root = document.root();
        root.get::<String>("name");
        root.close();
        let faults = document.finish(Some(())).unwrap_err().0;
        assert_eq!(faults.len(), FAULTS + 1);
        assert_eq!(faults.last().unwrap().found, "19900 more");
        assert!(faults[..FAULTS].iter().all(|fault| fault.stage == "schema"), "{faults:?}");
    }

    #[test]
    fn what_is_told_of_a_fault_is_cut() {
        let key = "k".repeat(100_000);
        let document = Document::parse("x.toml", &format!("\n\"é\" = 1\n  {key} = 1\n"));
        document.root().close();
        let faults = document.finish(Some(())).unwrap_err().0;
        let places: Vec<&str> = faults.iter().map(|fault| fault.place.as_str()).collect();
        assert!(places[0].starts_with("2:1 é") && places[1].starts_with("3:3 kkk"), "{places:?}");
        assert!(faults.iter().all(|fault| fault.to_string().len() < 3 * TOLD), "{faults:?}");
    }

    #[test]
    fn a_text_of_a_stranger_has_a_bound() {
        assert!(Document::parse_at_most("x.toml", "a = 1", 5).is_ok());
        let faults = Document::parse_at_most("x.toml", "a = 11", 5).unwrap_err().0;
        assert_eq!((faults.len(), faults[0].stage.as_str()), (1, "size"));
    }
}
