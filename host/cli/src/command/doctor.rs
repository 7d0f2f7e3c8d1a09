//! `doctor`: what is in force on this machine, and whether the limits hold.

use checkrein_contract::limits::LimitKey;
use checkrein_contract::units::show_bytes;
use checkrein_sandbox::{Hardening, Held, Secrets, SelfTestError, WorkerError};
use serde_json::{Map, Value, json};

use crate::args::Global;
use crate::build::Toolchain;
use crate::error::{CliError, exit};
use crate::operator::Operator;
use crate::output;
use crate::report::escape::visible;
use crate::standing;
use crate::world;

pub(super) async fn doctor(global: &Global) -> Result<u8, CliError> {
    let (config, operator) = standing::files(global)?;
    let state = world::open_state(global)?;
    let sandbox = world::untried_sandbox(&state, &operator, Secrets::default())?;
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let limits = sandbox.self_test().await;
    let walls = sandbox.hardening().await;
    let rows = [
        ("engine", sandbox.describe()),
        ("configuration", file.unwrap_or_else(|| "none: defaults hold".to_owned())),
        ("state", state.dir().display().to_string()),
        ("cache", world::cache_folder(&state).display().to_string()),
        ("operator", operator.describe()),
        ("secrets", secrets(&operator)),
        ("ceilings", ceilings(&operator)),
        ("verification", verification(&walls)),
        ("rust guests", Toolchain::find().describe()),
        ("limits", describe(&limits)),
    ];
    print(global, &rows, limits.is_ok());
    match (limits, walls) {
        (Ok(_), Ok(_)) => Ok(exit::DONE),
        (Err(error), _) => Err(CliError::Ours(format!("the limits do not hold on this machine: {error}"))),
        (Ok(_), Err(error)) => {
            Err(CliError::Ours(format!("no process can be started to verify in: {error}")))
        }
    }
}

/// Each secret by name, with where it comes from and whether that answers; never a value.
fn secrets(operator: &Operator) -> String {
    let each = operator.secrets.iter().map(|(name, source)| {
        let answers =
            source.value().map_or_else(|why| format!("{} {why}", source.describe()), |_| source.describe());
        format!("{name} ({answers})")
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "none".to_owned() } else { each.join("; ") }
}

/// Those that a grant can come near to, and those that the operator changed.
fn ceilings(operator: &Operator) -> String {
    let usual = [LimitKey::Cpu, LimitKey::Wall, LimitKey::Memory, LimitKey::HttpCalls, LimitKey::WorkBytes];
    let shown = LimitKey::ALL
        .iter()
        .filter(|key| usual.contains(key) || operator.ceiling.get(**key) != key.default_ceiling());
    let each: Vec<String> =
        shown.map(|key| format!("{key} {}", key.show(operator.ceiling.get(*key)))).collect();
    each.join(", ")
}

/// Where verifications run, and what stands around that process.
fn verification(walls: &Result<Option<Hardening>, WorkerError>) -> String {
    let walls = match walls {
        Ok(Some(walls)) => walls,
        Ok(None) => {
            return "in the host's own process: [gateway] process = false in the operator's file".to_owned();
        }
        Err(error) => return format!("CANNOT START: {error}"),
    };
    let landlock = match walls.landlock {
        Some(version) if walls.no_tcp => format!("Landlock {version} (files and TCP)"),
        Some(version) => format!("Landlock {version} (files; this kernel cannot keep it from TCP)"),
        None => {
            "no Landlock: this kernel has none, so the user's own rights alone keep it from files".to_owned()
        }
    };
    let limits: Vec<String> =
        walls.limits.iter().map(|(name, value)| format!("{name} {}", show(name, *value))).collect();
    let holds = [
        (walls.no_new_privileges, "no new privileges"),
        (walls.not_dumpable, "not traceable"),
        (walls.ends_with_host, "ends with the host"),
        (walls.variables == 0, "empty environment"),
    ];
    let holds: Vec<&str> = holds.iter().filter(|(holds, _)| *holds).map(|(_, what)| *what).collect();
    format!("in a process of its own: {landlock}, {}; limits: {}", holds.join(", "), limits.join(", "))
}

fn show(name: &str, value: u64) -> String {
    match name {
        "data" | "file-size" | "address-space" => show_bytes(value),
        _ => value.to_string(),
    }
}

fn describe(limits: &Result<Vec<Held>, SelfTestError>) -> String {
    let held = match limits {
        Ok(held) => held.iter(),
        Err(error) => return format!("DO NOT HOLD: {error}"),
    };
    let each =
        held.map(|held| format!("{} stopped by `{}` in {} ms", held.attack, held.limit, held.stopped_ms));
    each.collect::<Vec<_>>().join("; ")
}

fn print(global: &Global, rows: &[(&str, String)], limits_hold: bool) {
    if global.json {
        let found: Map<String, Value> =
            rows.iter().map(|(name, value)| (name.replace(' ', "_"), json!(value))).collect();
        let object = json!({ "schema": "checkrein/doctor@1", "limits_hold": limits_hold, "found": found });
        output::json(&object);
        return;
    }
    for (name, value) in rows {
        output::line(&format!("{name:14} {}", visible(value)));
    }
}
