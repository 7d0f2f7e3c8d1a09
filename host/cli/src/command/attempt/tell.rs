//! What is told of a component that was tried: one screen, all of it a stranger's text.

use checkrein_contract::grant::{Clock, Granted};
use checkrein_contract::interface::{Failure, Verdict};
use checkrein_contract::limits::{LimitKey, Limits, Used};
use checkrein_contract::manifest::{Capabilities, Kind, Manifest};
use checkrein_contract::port::{End, Execution, Ran};
use checkrein_contract::record::Record;
use checkrein_contract::units::show_bytes;
use checkrein_sandbox::{LoadReport, StepResult};
use serde_json::{Value, json};

use super::portrait::by_package;
use super::{Attempt, Told};
use crate::args::Global;
use crate::command::policy::print_needs;
use crate::command::skill::print_steps;
use crate::grants::write_list;
use crate::needs::Needs;
use crate::output::{self, one_line};
use crate::report::escape;
use crate::report::words::{self, many};

/// The longest line, in characters.
const WIDTH: usize = 240;
/// The most lines of a log.
const LOG_LINES: usize = 4;
/// The most files, exchanges and findings, each.
const LISTED: usize = 8;

pub(super) fn tell(global: &Global, told: &Told<'_>) {
    if global.json {
        output::json(&object(told));
        return;
    }
    identity(told);
    match told.attempt {
        None => {
            output::line("");
            print_steps(told.report);
        }
        Some(attempt) => attempted(told, attempt),
    }
}

fn row(key: &str, text: &str) {
    output::line(one_line(&format!("{key:13} {text}"), WIDTH).trim_end());
}

fn identity(told: &Told<'_>) {
    let portrait = told.portrait;
    row("file", &portrait.file.display().to_string());
    if let Some((digest, bytes)) = &portrait.identity {
        row("", &format!("{}, {digest}", show_bytes(*bytes)));
    }
    let manifest = told.loaded.map(|loaded| &loaded.manifest).or(portrait.manifest.as_ref());
    if let Some(manifest) = manifest {
        row(&manifest.kind.to_string(), &format!("{} {}", manifest.name, manifest.version));
        row("", &manifest.description);
    }
    // Of bytes that are no WebAssembly, the step that finds it says so.
    if portrait.producers.is_ok() {
        row("made with", &portrait.made_with());
    }
    if let Some(loaded) = told.loaded {
        row("imports", &by_package(&loaded.imports));
    }
    if let Some(manifest) = manifest {
        asks_for(manifest);
    }
}

fn asks_for(manifest: &Manifest) {
    let mut lines = asked(&manifest.capabilities);
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    for (at, line) in lines.iter().enumerate() {
        row(if at == 0 { "asks for" } else { "" }, line);
    }
    if manifest.kind == Kind::Skill {
        let facts = manifest.facts.join(", ");
        row("states", &format!("effects `{}`, facts on {facts}", manifest.effects.as_str()));
    }
}

fn asked(capabilities: &Capabilities) -> Vec<String> {
    let Capabilities { network, files, secrets, clock, limits } = capabilities;
    let mut lines = Vec::new();
    if !network.is_empty() {
        lines.push(format!("network = {}", write_list(network)));
    }
    if !files.is_empty() {
        lines.push(format!("files = {}", write_list(files)));
    }
    lines.extend(secrets.iter().map(|at| format!("a secret in `{}` for {}", at.header, at.host)));
    if *clock == Clock::Real {
        lines.push("clock = \"real\"".to_owned());
    }
    if !limits.0.is_empty() {
        let each: Vec<String> =
            limits.0.iter().map(|(key, value)| format!("{key} {}", key.show(*value))).collect();
        lines.push(format!("limits: {}", each.join(", ")));
    }
    lines
}

fn attempted(told: &Told<'_>, attempt: &Attempt) {
    row("loading", &loading(told.report));
    for rule in told
        .once
        .network
        .iter()
        .map(ToString::to_string)
        .chain(told.once.files.iter().map(ToString::to_string))
    {
        row("granted once", &format!("{rule}{}", not_asked_for(told, &rule)));
    }
    let Some(loaded) = told.loaded else { return };
    if loaded.manifest.kind == Kind::Verifier {
        row("tried", "its own cases: a verifier has nothing to call; bind it with [[verifier]]");
        return;
    }
    if let Some(ran) = &attempt.assessed {
        row("trigger", &assessed(ran));
        walls(&ran.record);
    }
    match &attempt.args {
        Ok(prepared) => row(
            "call",
            &format!(
                "arguments {}: {}",
                prepared.from,
                escape::json(&Value::Object(prepared.args.clone()), 160)
            ),
        ),
        Err(why) => row("call", &format!("not made, {why}; hint: --args JSON, --in NAME=FILE")),
    }
    if let Some(ran) = &attempt.executed {
        executed(ran);
        if let Some(gets) = told.gets {
            row("used", &used(&ran.used, &gets.limits));
        }
    }
    if let Some(ran) = &attempt.verified {
        verified(ran);
        walls(&ran.record);
    }
    needed(told, attempt);
}

/// What the person lets through although nobody asked for it.
fn not_asked_for(told: &Told<'_>, rule: &str) -> &'static str {
    let Some(loaded) = told.loaded else { return "" };
    let capabilities = &loaded.manifest.capabilities;
    let network = told.once.network.iter().filter(|one| one.to_string() == rule);
    let files = told.once.files.iter().filter(|one| one.to_string() == rule);
    let asked = network.into_iter().any(|one| capabilities.network.iter().any(|own| own.and(one).is_some()))
        || files.into_iter().any(|one| capabilities.files.iter().any(|own| own.and(one).is_some()));
    if asked {
        ""
    } else {
        "; its manifest does not ask for it, so a grant in a configuration would not let it through"
    }
}

fn loading(report: &LoadReport) -> String {
    let passed = report.steps.iter().filter(|step| matches!(step.result, StepResult::Passed(_))).count();
    let trial = report.probe.as_ref().map_or_else(String::new, |probe| {
        let cases = many(probe.cases.len(), "case");
        format!(
            "; {cases}, {} of {} changed outcomes noticed by its own verification",
            probe.caught, probe.mutants
        )
    });
    format!("all {} steps passed{trial}", passed)
}

fn assessed(ran: &Ran<checkrein_contract::interface::Assessment>) -> String {
    match &ran.end {
        End::Returned(said) => format!("score {}: {}", said.score, said.reason),
        end => ended_badly(end),
    }
}

fn ended_badly<T>(end: &End<T>) -> String {
    match end {
        End::Returned(_) => "returned".to_owned(),
        End::Limited(hit) => format!("stopped at the limit {}", words::limit_hit(hit)),
        End::Trapped(message) => format!("trapped: {message}"),
        End::Invalid(problem) => {
            format!("returned what the interface does not allow: {}", words::problem(problem))
        }
        End::Storage(error) => error.to_string(),
        End::Fault(message) => message.clone(),
    }
}

fn executed(ran: &Ran<Execution>) {
    let ended = match &ran.end {
        End::Returned(Execution { result: Ok(outcome), .. }) => {
            let content = escape::json(&outcome.content, 120);
            format!("an outcome with {}, content {content}", many(outcome.facts.len(), "draft fact"))
        }
        End::Returned(Execution { result: Err(failure), .. }) => failed(failure),
        end => ended_badly(end),
    };
    row("ended", &ended);
    walls(&ran.record);
    if let End::Returned(Execution { artifacts, .. }) = &ran.end {
        for (at, file) in artifacts.iter().take(LISTED).enumerate() {
            let text = format!("/work/{}, {}, {}", file.path, show_bytes(file.bytes), file.media_type);
            row(if at == 0 { "wrote" } else { "" }, &text);
        }
        more(artifacts.len());
    }
    let lines: Vec<&str> = ran.log.lines().filter(|line| !line.trim().is_empty()).collect();
    for (at, line) in lines.iter().take(LOG_LINES).enumerate() {
        row(if at == 0 { "said" } else { "" }, line);
    }
    if lines.len() > LOG_LINES {
        row(
            "",
            &format!(
                "and {} more, {} in all",
                many(lines.len() - LOG_LINES, "line"),
                show_bytes(ran.log.len() as u64)
            ),
        );
    }
}

fn failed(failure: &Failure) -> String {
    format!("it failed ({}): {}", failure.kind.as_str(), failure.message)
}

fn more(count: usize) {
    if count > LISTED {
        row("", &format!("and {} more", count - LISTED));
    }
}

fn walls(record: &Record) {
    for (at, exchange) in record.exchanges.iter().take(LISTED).enumerate() {
        row(if at == 0 { "sent" } else { "" }, &words::exchange(exchange));
    }
    more(record.exchanges.len());
    let denials = words::denials(record);
    for (at, denial) in denials.iter().take(LISTED).enumerate() {
        row(if at == 0 { "refused" } else { "" }, denial);
    }
    more(denials.len());
}

/// What was used, beside what it could have used.
fn used(used: &Used, limits: &Limits) -> String {
    let of =
        |key: LimitKey, value: u64| format!("{} {} of {}", key, key.show(value), key.show(limits.get(key)));
    [
        of(LimitKey::Cpu, used.cpu_ms),
        of(LimitKey::Wall, used.wall_ms),
        of(LimitKey::Memory, used.memory_bytes),
        of(LimitKey::Fuel, used.fuel),
        of(LimitKey::HostCalls, used.host_calls),
    ]
    .join(", ")
}

fn verified(ran: &Ran<Result<Verdict, Failure>>) {
    let verdict = match &ran.end {
        End::Returned(Ok(verdict)) => verdict,
        End::Returned(Err(failure)) => {
            return row(
                "verification",
                &format!("could not judge ({}): {}", failure.kind.as_str(), failure.message),
            );
        }
        end => return row("verification", &ended_badly(end)),
    };
    let word = if verdict.rejects() { "rejects its own outcome" } else { "accepts" };
    let (checks, findings) = (many(verdict.checks.len(), "check"), many(verdict.findings.len(), "finding"));
    row("verification", &format!("{word}: {checks}, {findings}"));
    verdict.findings.iter().take(LISTED).for_each(|finding| row("", &words::finding(finding)));
    more(verdict.findings.len());
}

fn needs(attempt: &Attempt) -> Needs {
    let mut needs = Needs::default();
    if let Some(ran) = &attempt.executed {
        needs.add(&ran.record);
        if let End::Limited(hit) = &ran.end {
            needs.add_limit(hit);
        }
    }
    if let Some(ran) = &attempt.verified {
        needs.add(&ran.record);
        if let End::Limited(hit) = &ran.end {
            needs.add_limit(hit);
        }
    }
    needs
}

fn needed(told: &Told<'_>, attempt: &Attempt) {
    let (Some(loaded), Some(gets)) = (told.loaded, told.gets) else { return };
    let needs = needs(attempt);
    output::line("");
    if needs.is_empty() {
        let rest = if *told.once != Granted::default() {
            ", with what was granted once"
        } else if asked(&loaded.manifest.capabilities).is_empty() {
            ": it needs no grant for this"
        } else {
            ": it needs no grant for this; what it asks for was not needed in this call"
        };
        return output::line(&format!("it was refused nothing{rest}"));
    }
    let manifest = &loaded.manifest;
    let grant = needs.grant(&manifest.name, &manifest.capabilities, told.once, &gets.limits);
    print_needs(&grant, &needs.not_asked(&manifest.capabilities), needs.never());
}

fn object(told: &Told<'_>) -> Value {
    let portrait = told.portrait;
    let manifest = told.loaded.map(|loaded| &loaded.manifest).or(portrait.manifest.as_ref());
    json!({
        "schema": "checkrein/try@1",
        "file": portrait.file,
        "digest": portrait.identity.map(|(digest, _)| digest),
        "size_bytes": portrait.identity.map(|(_, bytes)| bytes),
        "manifest": manifest,
        "producers": portrait.producers.as_ref().ok(),
        "imports": told.loaded.map(|loaded| &loaded.imports),
        "steps": told.report.steps,
        "faults": told.report.faults(),
        "granted_once": told.once,
        "trigger": told.attempt.and_then(|attempt| attempt.assessed.as_ref()).map(|ran| ran_json(ran, assessed(ran))),
        "args": told.attempt.and_then(|attempt| attempt.args.as_ref().ok()).map(|prepared| &prepared.args),
        "call": told.attempt.and_then(|attempt| attempt.executed.as_ref()).map(executed_json),
        "verification": told.attempt.and_then(|attempt| attempt.verified.as_ref()).map(verified_json),
        "needs": told.attempt.and_then(|attempt| needs_json(told, attempt)),
    })
}

fn ran_json<T>(ran: &Ran<T>, ended: String) -> Value {
    let way = match &ran.end {
        End::Returned(_) => "returned",
        End::Limited(_) => "limited",
        End::Trapped(_) => "trapped",
        End::Invalid(_) => "invalid",
        End::Storage(_) | End::Fault(_) => "fault",
    };
    json!({ "end": way, "ended": ended, "used": ran.used, "record": ran.record, "log": ran.log })
}

fn executed_json(ran: &Ran<Execution>) -> Value {
    match &ran.end {
        End::Returned(Execution { result: Ok(outcome), artifacts }) => {
            let mut object = ran_json(ran, "outcome".to_owned());
            object["outcome"] = json!(outcome);
            object["artifacts"] = json!(artifacts);
            object
        }
        End::Returned(Execution { result: Err(failure), .. }) => {
            let mut object = ran_json(ran, failed(failure));
            object["failure"] = json!(failure);
            object
        }
        end => ran_json(ran, ended_badly(end)),
    }
}

fn verified_json(ran: &Ran<Result<Verdict, Failure>>) -> Value {
    match &ran.end {
        End::Returned(Ok(verdict)) => {
            let mut object =
                ran_json(ran, if verdict.rejects() { "rejected" } else { "accepted" }.to_owned());
            object["verdict"] = json!(verdict);
            object
        }
        End::Returned(Err(failure)) => ran_json(ran, format!("could not judge: {}", failure.message)),
        end => ran_json(ran, ended_badly(end)),
    }
}

fn needs_json(told: &Told<'_>, attempt: &Attempt) -> Option<Value> {
    let (manifest, gets) = (&told.loaded?.manifest, told.gets?);
    let needs = needs(attempt);
    let grant = needs.grant(&manifest.name, &manifest.capabilities, told.once, &gets.limits);
    Some(json!({
        "grant": (!grant.is_empty()).then(|| grant.join("\n")),
        "not_asked": needs.not_asked(&manifest.capabilities),
        "never": needs.never(),
    }))
}
