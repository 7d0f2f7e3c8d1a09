//! The cases that a component carries: inputs with what must come of them.
//!
//! They are run by `skill test`, and when the component loads: a verification that catches none
//! of the mutations of an accepted outcome is no verification, so the component is refused.

use serde_json::Value;

use crate::document::{Document, Section};
use crate::id::is_relative_path;
use crate::interface::{FailureKind, Outcome};
use crate::problem::Faults;

/// Cases of one component, at most.
pub const CASES_MAX: usize = 100;
/// Bytes of their text, at most.
pub const BYTES_MAX: usize = 1 << 20;

/// Files of one kind in one case, at most.
pub const FILES_MAX: usize = 100;

/// What must come of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// The executor returns an outcome and the component's own verification accepts it.
    Outcome,
    /// The executor fails with this kind; with a submission, the verification cannot judge it.
    Failure(FailureKind),
    /// Verification accepts the submission of the case.
    Accepted,
    /// Verification rejects the submission of the case.
    Rejected,
}

/// A submission stated in a case, in place of one that the executor makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The skill that it is said to come from.
    pub skill: String,
    /// The version of that skill.
    pub version: String,
    /// Its outcome.
    pub outcome: Outcome,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// For people.
    pub name: String,
    /// The goal of the subgoal.
    pub goal: String,
    /// The arguments of the call.
    pub args: Value,
    /// The operator's settings.
    pub settings: Value,
    /// The attempt.
    pub attempt: u32,
    /// The seed.
    pub seed: u64,
    /// Files under `/in`.
    pub input: Vec<(String, String)>,
    /// Files under `/artifacts`, as `<subgoal>/<path>`.
    pub artifacts: Vec<(String, String)>,
    /// Files under `/work`, for a given submission.
    pub work: Vec<(String, String)>,
    /// A submission that is given.
    pub given: Option<Given>,
    /// What must come of it.
    pub expect: Expect,
}

/// Reads `cases.toml`.
///
/// # Errors
///
/// All faults of the text at once; `file` names it in each.
pub fn parse(file: &str, text: &str) -> Result<Vec<Case>, Faults> {
    let document = Document::parse_at_most(file, text, BYTES_MAX)?;
    let root = document.root();
    let sections = root.sections("case");
    if sections.is_empty() {
        root.fault("case", "at least one `[[case]]`", "none", "");
    }
    if sections.len() > CASES_MAX {
        let expected = format!("at most {CASES_MAX} cases");
        let mend = "keep those that differ most; each is run when the component loads";
        root.fault("case", &expected, &sections.len().to_string(), mend);
    }
    let cases = sections.into_iter().filter_map(read).collect();
    root.close();
    document.finish(Some(cases))
}

fn read(section: Section<'_>) -> Option<Case> {
    let given = section.has("submission").then(|| read_given(&section));
    let case = Case {
        name: section.need::<String>("name").unwrap_or_default(),
        goal: section.get("goal").unwrap_or_default(),
        args: section.get("args").unwrap_or_else(|| Value::Object(Default::default())),
        settings: section.get("settings").unwrap_or_else(|| Value::Object(Default::default())),
        attempt: section.get::<u64>("attempt").map_or(1, |attempt| attempt.min(5) as u32),
        seed: section.get("seed").unwrap_or(0),
        input: files(&section, "in"),
        artifacts: files(&section, "artifacts"),
        work: files(&section, "work"),
        expect: read_expect(&section, given.is_some()),
        given: given.flatten(),
    };
    if case.given.is_none() && !case.work.is_empty() {
        section.fault("work", "a `submission` whose artifacts these are", "none", "");
    }
    section.close();
    Some(case)
}

fn files(section: &Section<'_>, key: &str) -> Vec<(String, String)> {
    let files: Vec<(String, String)> = section.map(key);
    if files.len() > FILES_MAX {
        section.fault(key, &format!("at most {FILES_MAX} files"), &files.len().to_string(), "");
    }
    for (path, _) in files.iter().filter(|(path, _)| !is_relative_path(path)) {
        section.fault(key, "relative paths without `..`", &format!("{path:?}"), "");
    }
    files
}

fn read_expect(section: &Section<'_>, given: bool) -> Expect {
    let default = if given { Expect::Accepted } else { Expect::Outcome };
    let words =
        "\"outcome\" or a failure kind; with a submission \"accepted\", \"rejected\" or a failure kind";
    let expect = section.parsed("expect", words, |word| match (word, given) {
        ("accepted", true) => Some(Expect::Accepted),
        ("rejected", true) => Some(Expect::Rejected),
        ("outcome", false) => Some(Expect::Outcome),
        ("accepted" | "rejected" | "outcome", _) => None,
        (kind, _) => serde_json::from_value(kind.into()).ok().map(Expect::Failure),
    });
    expect.unwrap_or(default)
}

/// What the text leaves out is empty.
fn outcome_of(text: &str) -> Option<Outcome> {
    let mut outcome: Value = serde_json::from_str(text).ok()?;
    let map = outcome.as_object_mut()?;
    map.entry("content").or_insert_with(|| serde_json::json!({}));
    for list in ["facts", "artifacts"] {
        map.entry(list).or_insert_with(|| serde_json::json!([]));
    }
    serde_json::from_value(outcome).ok()
}

fn read_given(section: &Section<'_>) -> Option<Given> {
    let given = section.section("submission")?;
    let skill = given.need::<String>("skill");
    let version = given.get::<String>("version").unwrap_or_else(|| "0.0.0".to_owned());
    let expected = "JSON text of an outcome: content, facts, artifacts";
    section.need::<String>("outcome");
    let outcome = section.parsed("outcome", expected, outcome_of);
    given.close();
    Some(Given { skill: skill?, version, outcome: outcome? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_case() {
        let cases = parse(
            "cases.toml",
            r#"
            [[case]]
            name = "a table"
            args = { table = "/in/t.csv" }
            in = { "t.csv" = "a,b\n1,2\n" }
            [[case]]
            name = "a lie"
            expect = "rejected"
            submission = { skill = "x" }
            outcome = '{"content":{},"facts":[],"artifacts":[]}'
            [[case]]
            name = "nothing there"
            expect = "not-found"
            "#,
        )
        .unwrap();
        assert_eq!(cases[0].expect, Expect::Outcome);
        assert_eq!(cases[1].expect, Expect::Rejected);
        assert_eq!(cases[2].expect, Expect::Failure(FailureKind::NotFound));
    }

    #[test]
    fn cases_have_bounds() {
        let of = |count: usize| "[[case]]\nname = \"a\"\n".repeat(count);
        assert_eq!(parse("cases.toml", &of(CASES_MAX)).unwrap().len(), CASES_MAX);
        let faults = parse("cases.toml", &of(CASES_MAX + 1)).unwrap_err().0;
        assert_eq!((faults.len(), faults[0].found.as_str()), (1, "101"), "{faults:?}");
        let files: String = (0..=FILES_MAX).map(|number| format!("\"f{number}\" = \"\"\n")).collect();
        let faults = parse("cases.toml", &format!("{}[case.in]\n{files}", of(1))).unwrap_err().0;
        assert_eq!((faults.len(), faults[0].found.as_str()), (1, "101"), "{faults:?}");
        let long = format!("{}#{}", of(1), "x".repeat(BYTES_MAX));
        assert_eq!(parse("cases.toml", &long).unwrap_err().0[0].stage, "size");
    }

    #[test]
    fn mistakes_are_named() {
        let text = "[[case]]\nname = \"a\"\nexpect = \"acepted\"\nin = { \"../x\" = \"\" }\n";
        let faults = parse("cases.toml", text).unwrap_err().0;
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
