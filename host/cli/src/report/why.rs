//! The path behind a value, in the terminal: from the value back to the files that were read.

use anyhow::{Result, bail};
use checkrein_contract::document;
use serde_json::{Value, json};

use super::escape::{self, visible};
use super::json::verified_by_json;
use super::number::{self, Format};
use super::view::{CallView, FactView, RunView};
use super::words;

/// The schema of [`Why::json`].
pub const SCHEMA: &str = "checkrein/why@1";

/// The most characters of a value or of arguments on one line.
const LINE_MAX: usize = 400;
/// How many subjects are proposed for one that is not there.
const NEAREST: usize = 5;

/// The path behind one value.
#[derive(Clone, Copy, Debug)]
pub struct Why<'v> {
    view: &'v RunView,
    fact: &'v FactView,
    call: Option<&'v CallView>,
    value: &'v Value,
    /// Whether an amendment of the task abandoned the fact.
    abandoned: bool,
}

/// The path behind `target`: `SUBJECT`, `SUBJECT#/pointer`, or the same with the id of a fact,
/// `SUBJECT@VERSION`. An abandoned fact is found by its id alone.
///
/// # Errors
///
/// If there is no such fact (the message names the nearest subjects), or nothing at the pointer.
pub fn why<'v>(view: &'v RunView, target: &str) -> Result<Why<'v>> {
    let (subject, pointer) = target.split_once('#').unwrap_or((target, ""));
    let is_it = |fact: &&FactView| fact.entry.id.as_str() == subject;
    let current = view.fact(subject).or_else(|| view.facts.iter().find(is_it));
    let before = || view.history.facts.iter().find(is_it);
    let Some(fact) = current.or_else(before) else {
        if view.facts.is_empty() {
            bail!("run {} has no facts", view.run);
        }
        let nearest = nearest(view, subject);
        let hint = if nearest.is_empty() {
            "`checkrein report --json` has them all".to_owned()
        } else {
            format!("nearest: {}", nearest.join(", "))
        };
        bail!("no fact on `{}`; {hint}", visible(subject));
    };
    let Some(value) = fact.value(pointer) else {
        let there: Vec<String> = match &fact.content {
            Value::Object(map) => map.keys().map(|key| format!("`#/{}`", visible(key))).collect(),
            _ => Vec::new(),
        };
        let hint = if there.is_empty() {
            "it is one value".to_owned()
        } else {
            format!("it has {}", there.join(", "))
        };
        bail!("fact {} has nothing at `{}`; {hint}", fact.entry.id, visible(pointer));
    };
    Ok(Why { view, fact, call: view.call(&fact.call), value, abandoned: current.is_none() })
}

impl Why<'_> {
    /// The path as text, one step a line.
    pub fn text(&self) -> String {
        let Why { view, fact, value, .. } = self;
        let entry = &fact.entry;
        let counted = match (self.abandoned, view.counts(fact)) {
            (true, _) => ", abandoned when the task was amended",
            (false, true) => "",
            (false, false) => ", not counted by this task",
        };
        let mut out = vec![
            escape::cut(&number::show(value, Format::Exact), LINE_MAX),
            format!("  is in fact    {} ({}), {}{counted}", entry.id, entry.kind, entry.level.as_str()),
            format!("  source        {}", entry.source),
        ];
        for judge in &fact.verified_by {
            let component = judge.component.map_or_else(String::new, |digest| {
                format!(" {} {digest}", view.version_of(&digest).unwrap_or_default())
            });
            out.push(format!("  checked by    {}{component}", judge.verifier));
            out.extend(judge.checks.iter().map(|check| match check.note.as_str() {
                "" => format!("                  {}", check.rule),
                note => format!("                  {}: {note}", check.rule),
            }));
        }
        if let Some(call) = self.call {
            let attested = if call.attested { ", its outcome as a person says" } else { "" };
            out.push(format!("  from call     {}, attempt {}{attested}", call.id.as_str(), call.attempt));
            out.push(format!("    skill       {} {}", call.skill, call.version));
            out.push(format!("    component   {}", call.component));
            out.push(format!(
                "    arguments   {}",
                escape::json(&Value::Object(call.args.clone()), LINE_MAX)
            ));
            out.extend(
                view.files_of(call)
                    .iter()
                    .map(|file| format!("    read        {} {}", file.place, file.digest)),
            );
        }
        out.push(format!("  for subgoal   {}", fact.subgoal.as_str()));
        out.push(format!("  of task       {} {}", view.task.name, view.task_digest));
        out.push(format!("  in run        {}, {}", view.run.as_str(), words::time(view.started)));
        out.push(format!("  head          {}", view.head));
        let lines: Vec<String> = out.iter().map(|line| visible(line)).collect();
        lines.join("\n") + "\n"
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let Why { view, fact, value, .. } = self;
        let call = self.call.map(|call| {
            let read: Vec<Value> = view
                .files_of(call)
                .iter()
                .map(|file| json!({ "path": file.place, "digest": file.digest }))
                .collect();
            json!({
                "id": call.id, "skill": call.skill, "version": call.version, "component": call.component,
                "attempt": call.attempt, "args": call.args, "seed": call.seed, "read": read,
            })
        });
        json!({
            "schema": SCHEMA,
            "value": value,
            "fact": super::json::fact_json(fact),
            "counted": view.counts(fact) && !self.abandoned,
            "abandoned": self.abandoned,
            "verified_by": verified_by_json(&fact.verified_by),
            "call": call,
            "subgoal": fact.subgoal,
            "task": { "name": view.task.name, "digest": view.task_digest },
            "run": view.run,
            "head": view.head,
        })
    }
}

/// The subjects that `wanted` may have meant, best first.
fn nearest(view: &RunView, wanted: &str) -> Vec<String> {
    let mut left: Vec<&str> = view.by_subject.keys().map(String::as_str).collect();
    let mut found = Vec::new();
    while found.len() < NEAREST
        && let Some(near) = document::nearest(wanted, &left)
    {
        left.retain(|subject| *subject != near);
        found.push(format!("`{near}`"));
    }
    found
}
