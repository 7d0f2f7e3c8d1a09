//! What stands on the page of each kind of ask.

use checkrein_contract::Digest;
use checkrein_contract::ask::Asked;
use checkrein_contract::event::{Closing, ComponentCard};
use checkrein_contract::grant::Access;
use checkrein_contract::id::CallId;
use checkrein_contract::interface::Remedy;
use checkrein_contract::task::ATTEMPTS_MAX;
use checkrein_contract::units::show_count;
use serde_json::{Map, Value};

use super::{Line, Page, Part, evidence, quoted, ways};
use crate::report::escape::{cut, visible};
use crate::report::view::{AskView, RunView, SubgoalView};
use crate::report::words;

/// The most characters of one argument: what a person approves is shown whole, or is told not to be.
const ARGUMENT_MAX: usize = 4_000;
/// The most files that are listed.
const FILES_MAX: usize = 20;

pub(super) fn page<'v>(view: &'v RunView, ask: &'v AskView) -> Page<'v> {
    let subgoal = view.subgoal(&ask.subgoal);
    let parts = match &ask.about {
        Asked::Approval { action, skill, component, args } => approval(view, action, skill, component, args),
        Asked::CallUnknown { call } => unknown(view, call),
        Asked::Question => question(view, subgoal, &ask.question),
        Asked::HandOver { because } => hand_over(view, subgoal, because),
    };
    let parts = parts.into_iter().filter(|part| !part.lines.is_empty()).collect();
    Page { ask, parts, ways: ways::ways(view, ask) }
}

fn approval(
    view: &RunView,
    action: &Digest,
    skill: &str,
    component: &Digest,
    args: &Map<String, Value>,
) -> Vec<Part> {
    let version = view.version_of(component).unwrap_or_default();
    let called = vec![
        Line::new(format!("skill {skill} {version}, component {}", component.short())),
        Line::new(format!(
            "action {}: the approval is for this skill, component, arguments and inputs alone, and is used once",
            action.short()
        )),
    ];
    vec![
        Part { title: "what is called", lines: called },
        Part { title: "with", lines: arguments(args) },
        Part { title: "what it can change", lines: changes(card(view, skill, component)) },
        Part { title: "what it reads", lines: files(view, args) },
    ]
}

fn unknown(view: &RunView, id: &CallId) -> Vec<Part> {
    let Some(call) = view.call(id) else {
        let lines = vec![Line::new(format!("call {id}, of which the log says nothing else"))];
        return vec![Part { title: "what was called", lines }];
    };
    let card = card(view, &call.skill, &call.component);
    let effects = card.map_or("not known any more", |card| card.effects.as_str());
    let called = vec![
        Line::new(format!("skill {} {}, component {}", call.skill, call.version, call.component.short())),
        Line::new(format!("call {id}, attempt {}, begun {}", call.attempt, words::time(call.at))),
        Line::new(format!("its effects: {effects}")),
    ];
    vec![
        Part { title: "what was called", lines: called },
        Part { title: "with", lines: arguments(&call.args) },
        Part { title: "what it may have changed", lines: changes(card) },
    ]
}

fn question(view: &RunView, subgoal: Option<&SubgoalView>, question: &str) -> Vec<Part> {
    let asks = |remedy: &Option<Remedy>| matches!(remedy, Some(Remedy::AskPerson(text)) if text == question);
    let calls = subgoal.map(|subgoal| subgoal.calls.as_slice()).unwrap_or_default();
    let by = calls.iter().rev().find_map(|call| {
        let advice = call.advice.as_ref().filter(|advice| asks(&advice.remedy))?;
        Some(format!("the recovery of {}, after call {}: {}", call.skill, call.id, advice.diagnosis))
    });
    let by = by.unwrap_or_else(|| format!("the planner `{}`", view.planner));
    let mut parts = vec![Part { title: "who asks", lines: vec![Line::new(by)] }];
    if let Some(subgoal) = subgoal {
        parts.push(Part { title: "the goal", lines: vec![Line::new(quoted(&subgoal.goal))] });
        parts.push(Part { title: "what was tried", lines: evidence::tried(subgoal) });
        parts.push(Part {
            title: "the grants that would allow what was refused",
            lines: evidence::grants(view, subgoal),
        });
    }
    parts
}

fn hand_over(view: &RunView, subgoal: Option<&SubgoalView>, because: &Closing) -> Vec<Part> {
    let mut why = vec![Line::new(words::closing(because))];
    let Some(subgoal) = subgoal else { return vec![Part { title: "why", lines: why }] };
    let used = evidence::attempts(subgoal);
    let used = words::many(used as usize, "attempt");
    why.push(Line::new(format!("{used} used up, of {ATTEMPTS_MAX} that a subgoal has at most")));
    vec![
        Part { title: "the goal", lines: vec![Line::new(quoted(&subgoal.goal))] },
        Part { title: "why it does not get on", lines: why },
        Part { title: "what must hold", lines: criteria(view, subgoal) },
        Part { title: "what was tried", lines: evidence::tried(subgoal) },
        Part {
            title: "the grants that would allow what was refused",
            lines: evidence::grants(view, subgoal),
        },
    ]
}

fn criteria(view: &RunView, subgoal: &SubgoalView) -> Vec<Line> {
    let evaluated = subgoal.criteria.iter().map(|criterion| {
        let word = if criterion.holds { "holds" } else { "does not hold" };
        Line::new(format!("{word}: {} ({})", criterion.text, criterion.note))
    });
    let evaluated: Vec<Line> = evaluated.collect();
    if !evaluated.is_empty() {
        return evaluated;
    }
    let stated = view.spec(&subgoal.id).into_iter().flat_map(|spec| {
        let kinds = spec.evidence.iter().map(|kind| format!("not evaluated: evidence of kind `{kind}`"));
        let criteria = spec.criteria.iter().map(|one| format!("not evaluated: {} ({})", one.text, one.check));
        kinds.chain(criteria)
    });
    stated.map(Line::new).collect()
}

fn arguments(args: &Map<String, Value>) -> Vec<Line> {
    let argument = |(key, value): (&String, &Value)| {
        let (key, text) = (Value::from(key.as_str()), visible(&value.to_string()));
        let length = text.chars().count();
        if length <= ARGUMENT_MAX {
            return Line::new(format!("{key}: {text}"));
        }
        let length = show_count(length as u64);
        let whole = format!("{length} characters, not shown whole; `checkrein show --json` has all of it");
        Line::new(format!("{key} ({whole}): {}", cut(&text, ARGUMENT_MAX - 200)))
    };
    if args.is_empty() { vec![Line::new("no arguments")] } else { args.iter().map(argument).collect() }
}

/// The card of a component as it is in force, or of the skill where that is another by now.
fn card<'v>(view: &'v RunView, skill: &str, component: &Digest) -> Option<&'v ComponentCard> {
    let mut all = view.components.iter().chain(&view.replaced);
    all.find(|card| card.component == *component).or_else(|| view.card(skill))
}

/// On what the component could change something outside.
fn changes(card: Option<&ComponentCard>) -> Vec<Line> {
    let Some(card) = card else { return vec![Line::new("nothing is known of its grants any more")] };
    let stated = format!("its manifest says that its effects are `{}`", card.manifest.effects.as_str());
    let sends = card.granted.network.iter().filter(|rule| rule.changes());
    let sends = sends.map(|rule| format!("it may send: {rule}"));
    let writes = card.granted.files.iter().filter(|folder| folder.access == Access::ReadWrite);
    let writes = writes.map(|folder| format!("it may write: {}", folder.path));
    let mut lines: Vec<Line> = std::iter::once(stated).chain(sends).chain(writes).map(Line::new).collect();
    if lines.len() == 1 {
        lines.push(Line::new("nothing that is granted to it changes anything outside"));
    }
    lines
}

fn files(view: &RunView, args: &Map<String, Value>) -> Vec<Line> {
    let files = view.files_in(args);
    let mut lines: Vec<Line> = files
        .iter()
        .take(FILES_MAX)
        .map(|file| Line::new(format!("{} {}", file.place, file.digest.short())))
        .collect();
    if files.len() > FILES_MAX {
        lines.push(Line::new(format!("and {} more", files.len() - FILES_MAX)));
    }
    lines
}
