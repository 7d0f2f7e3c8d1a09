//! `[dry]`: what executors answer in a dry run, where the task says it.

use std::collections::BTreeMap;
use std::path::Path;

use checkrein_contract::digest::{DEPTH_MAX, depth};
use checkrein_contract::document::{Section, nearest};
use checkrein_contract::id::SubgoalId;
use checkrein_contract::interface::{Failure, FailureKind, Outcome};
use checkrein_contract::task::Task;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What an outcome has, and what each of its facts and artifacts has.
const OUTCOME: [&str; 3] = ["content", "facts", "artifacts"];
const FACT: [&str; 5] = ["subject", "kind", "content", "source", "supersedes"];
const ARTIFACT: [&str; 3] = ["path", "title", "media_type"];

/// What one call of an executor answers in a dry run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DryAnswer {
    /// This came out.
    Outcome(Outcome),
    /// It failed so.
    Failure(Failure),
}

/// Reads `[dry]`: for each subgoal one answer, or several in a row.
pub(super) fn read(root: &Section<'_>, folder: &Path, task: &Task) -> BTreeMap<SubgoalId, Vec<DryAnswer>> {
    let Some(dry) = root.section("dry") else { return BTreeMap::new() };
    let known: Vec<&str> = task.subgoals().map(|(_, spec)| spec.id.as_str()).collect();
    let mut answers = BTreeMap::new();
    for id in dry.keys() {
        let stated = stated(&dry, &id);
        if !known.contains(&id.as_str()) {
            let mend = nearest(&id, &known).map(|near| format!("did you mean `{near}`?")).unwrap_or_default();
            let expected = format!("a subgoal of the task ({})", known.join(", "));
            dry.fault(&id, &expected, &format!("`{id}`"), &mend);
        } else if stated.is_empty() {
            dry.fault(&id, "at least one answer", "none", "");
        }
        let each = stated.into_iter().filter_map(|answer| read_answer(answer, folder)).collect();
        answers.insert(SubgoalId(id), each);
    }
    dry.close();
    answers
}

/// `[dry.ID]`, or `[[dry.ID]]` for several answers in a row.
fn stated<'d>(dry: &Section<'d>, id: &str) -> Vec<Section<'d>> {
    match dry.get::<Value>(id) {
        Some(Value::Array(_)) => dry.sections(id),
        _ => dry.section(id).into_iter().collect(),
    }
}

fn read_answer(section: Section<'_>, folder: &Path) -> Option<DryAnswer> {
    let inline = OUTCOME.iter().any(|key| section.has(key));
    let ways = [inline, section.has("outcome"), section.has("failure")];
    let ways = ways.into_iter().filter(|there| *there).count();
    if ways != 1 {
        let expected = "one of `outcome`, `failure`, and `content` with `facts`";
        section.fault("outcome", expected, if ways == 0 { "none" } else { "more than one" }, "");
    }
    // Each is read, or its keys would be told as unknown.
    let answers = [read_inline(&section), read_file(&section, folder), read_failure(&section)];
    section.close();
    answers.into_iter().flatten().next()
}

/// `content`, `[[facts]]` and `[[artifacts]]`, as they stand there.
fn read_inline(section: &Section<'_>) -> Option<DryAnswer> {
    let stated = OUTCOME.iter().filter_map(|key| Some(((*key).to_owned(), section.get::<Value>(key)?)));
    let stated: Map<String, Value> = stated.collect();
    let (key, _) = stated.iter().next()?;
    outcome(section, &key.clone(), Value::Object(stated))
}

/// `outcome = "file.json"`.
fn read_file(section: &Section<'_>, folder: &Path) -> Option<DryAnswer> {
    let path = section.get::<String>("outcome")?;
    let wrong = |why: &str| section.fault("outcome", "a file with an outcome as JSON", why, "");
    let text = crate::config::read_text(&folder.join(&path));
    let text = text.inspect_err(|error| wrong(&error.to_string())).ok()?;
    let value = serde_json::from_str(&text).inspect_err(|error| wrong(&format!("{path:?}: {error}"))).ok()?;
    outcome(section, "outcome", value)
}

/// An outcome; what it leaves out is empty.
fn outcome(section: &Section<'_>, key: &str, mut value: Value) -> Option<DryAnswer> {
    let read = match unknown(&value) {
        Some(why) => Err(why),
        None if depth(&value) > DEPTH_MAX => Err(format!("more than {DEPTH_MAX} levels of nesting")),
        None => {
            if let Some(map) = value.as_object_mut() {
                map.entry("content").or_insert_with(|| json!({}));
                map.entry("facts").or_insert_with(|| json!([]));
                map.entry("artifacts").or_insert_with(|| json!([]));
            }
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
    };
    let expected = "an outcome: content, facts, artifacts";
    read.inspect_err(|why| section.fault(key, expected, why, "")).ok().map(DryAnswer::Outcome)
}

/// A key that no outcome has, and no fact or artifact of one.
fn unknown(outcome: &Value) -> Option<String> {
    let strange = |value: &Value, known: &[&str]| {
        let key = value.as_object()?.keys().find(|key| !known.contains(&key.as_str()))?;
        Some(format!("`{key}`, where these are known: {}", known.join(", ")))
    };
    let of = |list: &str, known: &[&str]| {
        outcome[list].as_array().into_iter().flatten().find_map(|item| strange(item, known))
    };
    strange(outcome, &OUTCOME).or_else(|| of("facts", &FACT)).or_else(|| of("artifacts", &ARTIFACT))
}

/// `failure = { kind, message, evidence }`.
fn read_failure(section: &Section<'_>) -> Option<DryAnswer> {
    let failure = section.section("failure")?;
    failure.need::<String>("kind");
    let words =
        "\"invalid-args\", \"not-found\", \"unavailable\", \"denied\", \"unsupported\" or \"internal\"";
    let read = |word: &str| serde_json::from_value::<FailureKind>(word.into()).ok();
    let kind = failure.parsed("kind", words, read);
    let message = failure.need::<String>("message");
    let evidence = failure.get("evidence").unwrap_or_else(|| json!({}));
    failure.close();
    Some(DryAnswer::Failure(Failure { kind: kind?, message: message?, evidence }))
}
