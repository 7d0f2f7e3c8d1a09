//! `policy`: what components may do, and what they were refused. Nothing is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_contract::event::{ComponentCard, Ended, Event, Logged, Setup};
use checkrein_contract::grant::Granted;
use checkrein_contract::id::{CallId, SubgoalId};
use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::{LimitChanges, LimitKey};
use checkrein_contract::manifest::Manifest;
use checkrein_contract::record::Record;
use checkrein_contract::task::Mode;
use serde_json::{Value, json};

use crate::args::{Global, PolicyCommand};
use crate::components::{grant_faults, manifests};
use crate::config::{Config, Grant};
use crate::error::{CliError, exit};
use crate::grants::{self, Effective};
use crate::needs::Needs;
use crate::operator::Operator;
use crate::output::{self, one_line};
use crate::report::words;
use crate::standing;
use crate::world::read_state;

/// The widest cell of a table, in characters.
const CELL: usize = 60;

pub(super) fn perform(global: &Global, command: &PolicyCommand) -> Result<u8, CliError> {
    match command {
        PolicyCommand::Show { name } => show(global, name.as_deref()),
        PolicyCommand::Lint => super::lint::lint(global),
        PolicyCommand::Explain { run, call } => explain(global, run, call.as_deref()),
    }
}

fn show(global: &Global, name: Option<&str>) -> Result<u8, CliError> {
    let (config, operator) = standing::files(global)?;
    let found = manifests(&config)?;
    let known: Vec<&str> = found.iter().map(|(_, manifest)| manifest.name.as_str()).collect();
    if let Some(name) = name.filter(|name| !known.contains(name)) {
        let message = format!("no component `{name}` is configured; there are: {}", known.join(", "));
        let near = checkrein_contract::document::nearest(name, &known);
        return Err(CliError::usage(
            message,
            near.map_or(String::new(), |near| format!("did you mean `{near}`?")),
        ));
    }
    let all: Vec<&Manifest> = found.iter().map(|(_, manifest)| manifest).collect();
    let protected = standing::protected(global, &config, &operator)?;
    let mut faults = grant_faults(&config, &all, &protected);
    faults.extend(standing::above_ceiling(&config, &operator));
    let shown: Vec<Policy<'_>> = found
        .iter()
        .filter(|(_, manifest)| name.is_none_or(|name| manifest.name == name))
        .map(|(file, manifest)| Policy::of(&config, &operator, file, manifest))
        .collect();
    if global.json {
        let components: Vec<Value> = shown.iter().map(Policy::json).collect();
        output::json(&json!({
            "schema": "checkrein/policy@1",
            "operator": operator.file,
            "ceiling": operator.ceiling,
            "verification_apart": operator.process,
            "components": components,
            "faults": faults,
        }));
        return Ok(exit::DONE);
    }
    shown.iter().for_each(Policy::print);
    for fault in faults {
        output::message(&format!("warning: {}", one_line(&fault.to_string(), 2000)));
    }
    Ok(exit::DONE)
}

/// One component: what it asks for, is granted, and gets.
struct Policy<'p> {
    file: &'p Path,
    manifest: &'p Manifest,
    grant: Grant,
    gets: Effective,
}

impl<'p> Policy<'p> {
    fn of(config: &Config, operator: &Operator, file: &'p PathBuf, manifest: &'p Manifest) -> Self {
        let grant = config.grants.get(&manifest.name).cloned().unwrap_or_default();
        let gets = grants::effective(config, operator, &grant, manifest, Mode::ReadWrite);
        Policy { file, manifest, grant, gets }
    }

    fn json(&self) -> Value {
        let Policy { file, manifest, grant, gets } = self;
        json!({
            "name": manifest.name,
            "version": manifest.version,
            "kind": manifest.kind,
            "file": file,
            "requested": {
                "capabilities": manifest.capabilities, "effects": manifest.effects, "facts": manifest.facts,
            },
            "granted": {
                "reach": grant.reach, "limits": grant.limits, "effects": grant.effects, "facts": grant.facts,
                "max_score": grant.max_score,
            },
            "effective": {
                "reach": gets.reach, "limits": gets.limits, "effects": gets.effects, "facts": gets.facts,
                "max_score": grant.max_score,
            },
        })
    }

    fn print(&self) {
        let Policy { file, manifest, .. } = self;
        let title = format!("{} {}, {}, {}", manifest.name, manifest.version, manifest.kind, file.display());
        output::line(&one_line(&title, 200));
        let rows = self.rows();
        let width = |at: usize| {
            let cells = rows.iter().flat_map(|(_, cells)| &cells[at]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).clamp(9, CELL)
        };
        let (first, second) = (width(0), width(1));
        output::line(&format!("  {:9}  {:first$}  {:second$}  effective", "", "requested", "granted"));
        for (key, cells) in &rows {
            for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let key = if at == 0 { *key } else { "" };
                let cell = |column: usize| cells[column].get(at).map_or("", String::as_str);
                let line = format!("  {key:9}  {:first$}  {:second$}  {}", cell(0), cell(1), cell(2));
                output::line(line.trim_end());
            }
        }
    }

    fn rows(&self) -> Vec<(&'static str, [Vec<String>; 3])> {
        let Policy { manifest, grant, gets, .. } = self;
        let asked = &manifest.capabilities;
        let headers = |reach: &Granted| {
            reach
                .secrets
                .iter()
                .map(|secret| format!("{} → {} {}", secret.name, secret.at.host, secret.at.header))
                .collect()
        };
        let requested: Vec<String> =
            asked.secrets.iter().map(|at| format!("? → {} {}", at.host, at.header)).collect();
        let clock = |clock| words::clock(clock).to_owned();
        let effects = grant.effects.map(|effects| effects.as_str().to_owned());
        vec![
            ("network", [cells(&asked.network), cells(&grant.reach.network), cells(&gets.reach.network)]),
            ("files", [cells(&asked.files), cells(&grant.reach.files), cells(&gets.reach.files)]),
            ("secrets", [or_dash(requested), or_dash(headers(&grant.reach)), or_dash(headers(&gets.reach))]),
            (
                "clock",
                [vec![clock(asked.clock)], vec![clock(grant.reach.clock)], vec![clock(gets.reach.clock)]],
            ),
            (
                "effects",
                [
                    vec![manifest.effects.as_str().to_owned()],
                    or_dash(effects.into_iter().collect()),
                    vec![gets.effects.as_str().to_owned()],
                ],
            ),
            (
                "facts",
                [
                    cells(&manifest.facts),
                    cells(grant.facts.as_deref().unwrap_or_default()),
                    cells(&gets.facts),
                ],
            ),
            (
                "max-score",
                [or_dash(Vec::new()), vec![grant.max_score.to_string()], vec![grant.max_score.to_string()]],
            ),
            ("limits", [changes(&asked.limits), changes(&grant.limits), self.limits()]),
        ]
    }

    /// Those that are not the default.
    fn limits(&self) -> Vec<String> {
        let other = |key: &&LimitKey| self.gets.limits.get(**key) != key.default_value();
        let changed: Vec<String> = LimitKey::ALL
            .iter()
            .filter(other)
            .map(|key| format!("{key} {}", key.show(self.gets.limits.get(*key))))
            .collect();
        if changed.is_empty() { vec!["the defaults".to_owned()] } else { changed }
    }
}

fn cells<T: ToString>(items: &[T]) -> Vec<String> {
    or_dash(items.iter().map(|item| one_line(&item.to_string(), CELL)).collect())
}

fn changes(limits: &LimitChanges) -> Vec<String> {
    or_dash(limits.0.iter().map(|(key, value)| format!("{key} {}", key.show(*value))).collect())
}

fn or_dash(cells: Vec<String>) -> Vec<String> {
    if cells.is_empty() { vec!["-".to_owned()] } else { cells }
}

/// What was refused to one component in a run.
#[derive(Default)]
struct Refused {
    lines: Vec<Line>,
    needs: Needs,
}

/// What one of its parts was refused, once.
struct Line {
    part: Part,
    at: At,
    record: Record,
    limit: Option<LimitHit>,
}

/// Which part of a component ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Trigger,
    Executor,
    Verification,
    Recovery,
}

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Part::Trigger => "trigger",
            Part::Executor => "executor",
            Part::Verification => "verification",
            Part::Recovery => "recovery",
        }
    }
}

/// For what it ran: a trigger is asked before there is a call.
#[derive(Debug)]
enum At {
    Call(CallId),
    Subgoal(SubgoalId),
}

impl Line {
    fn place(&self) -> String {
        let at = match &self.at {
            At::Call(call) => call.to_string(),
            At::Subgoal(subgoal) => subgoal.to_string(),
        };
        match self.part {
            Part::Executor | Part::Verification => at,
            Part::Trigger | Part::Recovery => format!("{at}, {}", self.part.as_str()),
        }
    }
}

fn explain(global: &Global, run: &str, call: Option<&str>) -> Result<u8, CliError> {
    let state = read_state(global)?;
    let run = state.resolve(run)?;
    let events = state.events(&run)?;
    let Some(Event::RunStarted { setup }) = events.first().map(|logged| &logged.event) else {
        return Err(CliError::Storage(format!("the log of {run} does not begin with its start")));
    };
    let refused = refusals(&events, call)?;
    if global.json {
        let components: Vec<Value> =
            refused.iter().map(|(name, one)| explained_json(setup, name, one)).collect();
        output::json(&json!({ "schema": "checkrein/explanation@1", "run": run, "components": components }));
        return Ok(exit::DONE);
    }
    if refused.is_empty() {
        output::line("nothing was refused, and no limit fired");
    }
    for (name, one) in &refused {
        print_explained(setup, name, one);
    }
    Ok(exit::DONE)
}

/// What was refused, by the name of the component.
fn refusals(events: &[Logged], only: Option<&str>) -> Result<BTreeMap<String, Refused>, CliError> {
    let mut skills: BTreeMap<CallId, String> = BTreeMap::new();
    let mut refused: BTreeMap<String, Refused> = BTreeMap::new();
    let mut add = |name: String, part: Part, at: At, record: &Record, ended_by: Option<&LimitHit>| {
        let asked = match &at {
            At::Call(call) => only.is_none_or(|only| only == call.as_str()),
            At::Subgoal(_) => only.is_none(),
        };
        let limit = ended_by.or(record.limit.as_ref()).cloned();
        if !asked || (record.denials.is_empty() && limit.is_none()) {
            return;
        }
        let one = refused.entry(name).or_default();
        one.needs.add(record);
        limit.iter().for_each(|hit| one.needs.add_limit(hit));
        one.lines.push(Line { part, at, record: record.clone(), limit });
    };
    for logged in events {
        match &logged.event {
            Event::SkillsAssessed { subgoal, assessed } => {
                for one in assessed {
                    let at = At::Subgoal(subgoal.clone());
                    add(one.skill.clone(), Part::Trigger, at, &one.record, None);
                }
            }
            Event::CallIntended { call, skill, .. } => {
                skills.insert(call.clone(), skill.clone());
            }
            Event::CallEnded { call, ended, record, .. } => {
                let hit = match ended {
                    Ended::Limited { hit } => Some(hit),
                    _ => None,
                };
                let name = skills.get(call).cloned().unwrap_or_default();
                add(name, Part::Executor, At::Call(call.clone()), record, hit);
            }
            Event::VerdictGiven { call, judge, record, .. } => {
                let at = At::Call(call.clone());
                add(judge.name().to_owned(), Part::Verification, at, record, None);
            }
            Event::RemedyGiven { call, record, .. } => {
                let name = skills.get(call).cloned().unwrap_or_default();
                add(name, Part::Recovery, At::Call(call.clone()), record, None);
            }
            _ => {}
        }
    }
    match only {
        Some(only) if !skills.keys().any(|call| call.as_str() == only) => {
            let known: Vec<&str> = skills.keys().map(CallId::as_str).collect();
            let message = format!("the run has no call `{only}`; there are: {}", known.join(", "));
            Err(CliError::usage(message, "`checkrein trace` shows what each did"))
        }
        _ => Ok(refused),
    }
}

fn card<'s>(setup: &'s Setup, name: &str) -> Option<&'s ComponentCard> {
    setup.skills.iter().chain(&setup.verifiers).find(|card| card.name() == name)
}

fn grant_of(setup: &Setup, name: &str, needs: &Needs) -> (Vec<String>, Vec<String>) {
    let Some(card) = card(setup, name) else { return Default::default() };
    let asked = &card.manifest.capabilities;
    (needs.grant(name, asked, &card.granted, &card.limits), needs.not_asked(asked))
}

fn explained_json(setup: &Setup, name: &str, one: &Refused) -> Value {
    let (grant, not_asked) = grant_of(setup, name, &one.needs);
    let calls: Vec<Value> = one
        .lines
        .iter()
        .map(|line| {
            let (call, subgoal) = match &line.at {
                At::Call(call) => (Some(call), None),
                At::Subgoal(subgoal) => (None, Some(subgoal)),
            };
            json!({
                "call": call,
                "subgoal": subgoal,
                "part": line.part.as_str(),
                "denials": line.record.denials,
                "more_denials": line.record.more_denials,
                "limit": line.limit,
            })
        })
        .collect();
    json!({
        "name": name,
        "calls": calls,
        "grant": (!grant.is_empty()).then(|| grant.join("\n")),
        "not_asked": not_asked,
        "never": one.needs.never(),
    })
}

fn print_explained(setup: &Setup, name: &str, one: &Refused) {
    let version = card(setup, name).map_or("", |card| card.manifest.version.as_str());
    output::line(&one_line(&format!("{name} {version} was refused"), 200));
    for line in &one.lines {
        let place = line.place();
        for denial in words::denials(&line.record) {
            output::line(&one_line(&format!("  {place}  {denial}"), 400));
        }
        if let Some(hit) = &line.limit {
            output::line(&one_line(&format!("  {place}  limit: {}", words::limit_hit(hit)), 400));
        }
    }
    let (grant, not_asked) = grant_of(setup, name, &one.needs);
    print_needs(&grant, &not_asked, one.needs.never());
}

/// The grant that would allow it, what its manifest would have to ask for first, and the rest.
pub(super) fn print_needs(grant: &[String], not_asked: &[String], never: &[String]) {
    if !grant.is_empty() {
        output::line("the smallest grant that would allow it:");
        grant.iter().for_each(|line| output::line(&format!("  {}", one_line(line, 4000))));
    }
    if !not_asked.is_empty() {
        output::line(
            "its manifest does not ask for this, so no grant allows it; its author would state it under [capabilities]:",
        );
        not_asked.iter().for_each(|line| output::line(&format!("  {}", one_line(line, 4000))));
    }
    if !never.is_empty() {
        output::line("no grant allows:");
        never.iter().for_each(|line| output::line(&format!("  {}", one_line(line, 400))));
    }
}

#[cfg(test)]
mod tests {
    use checkrein_contract::digest::Digest;
    use checkrein_contract::event::{Assessed, Judge, Judgement};
    use checkrein_contract::id::{RunId, Timestamp};
    use checkrein_contract::limits::Used;
    use checkrein_contract::record::Wall;

    use super::*;

    fn log(events: Vec<Event>) -> Vec<Logged> {
        let logged =
            |(seq, event)| Logged { seq, at: Timestamp(0), prev: Digest::ZERO, digest: Digest::ZERO, event };
        (1..).zip(events).map(logged).collect()
    }

    #[test]
    fn what_triggers_verifications_and_recoveries_were_refused_is_explained() {
        let call = CallId::new(&RunId("20261130-abcdef".into()), &SubgoalId("a".into()), 1);
        let mut socket = Record::default();
        socket.deny(Wall::Socket, "a TCP socket (IPv4)".into(), None);
        let hit = LimitHit { limit: "fuel".into(), allowed: 10, used: 11 };
        let limited = Record { limit: Some(hit.clone()), ..Record::default() };
        let assessed =
            Assessed { skill: "s".into(), score: 0, reason: "r".into(), args: None, record: socket.clone() };
        let judge = Judge::Verifier { name: "v".into(), component: Digest::ZERO, binding: 0 };
        let events = log(vec![
            Event::SkillsAssessed { subgoal: "a".into(), assessed: vec![assessed] },
            Event::CallIntended {
                call: call.clone(),
                subgoal: "a".into(),
                skill: "s".into(),
                version: "1.0.0".into(),
                component: Digest::ZERO,
                args: Default::default(),
                attempt: 1,
                seed: 0,
                ask: None,
            },
            Event::VerdictGiven {
                call: call.clone(),
                judge,
                judgement: Judgement::Unavailable { reason: "r".into() },
                used: Used::default(),
                record: limited,
            },
            Event::RemedyGiven { call: call.clone(), diagnosis: "d".into(), remedy: None, record: socket },
        ]);
        let refused = refusals(&events, None).unwrap();
        let parts = |name: &str| refused[name].lines.iter().map(|line| line.part).collect::<Vec<_>>();
        assert_eq!(parts("s"), [Part::Trigger, Part::Recovery]);
        assert_eq!(parts("v"), [Part::Verification]);
        assert_eq!(refused["v"].lines[0].limit, Some(hit));
        assert!(!refused["v"].needs.is_empty() && refused["s"].needs.never().len() == 1);
        // A trigger belongs to no call.
        let of_call = refusals(&events, Some(call.as_str())).unwrap();
        assert_eq!(of_call["s"].lines.len(), 1);
    }
}
