//! `doctor`: what is in force on this machine, and whether the limits hold.

use checkrein_sandbox::{Held, SelfTestError};
use serde_json::{Map, Value, json};

use crate::args::Global;
use crate::build::Toolchain;
use crate::config::Config;
use crate::error::{CliError, exit};
use crate::output;
use crate::report::escape::visible;
use crate::world;

pub(super) async fn doctor(global: &Global) -> Result<u8, CliError> {
    let state = world::open_state(global)?;
    let sandbox = world::untried_sandbox(&state)?;
    let config = Config::find(global)?;
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let limits = sandbox.self_test().await;
    let rows = [
        ("engine", sandbox.describe()),
        ("configuration", file.unwrap_or_else(|| "none: defaults hold".to_owned())),
        ("state", state.dir().display().to_string()),
        ("network", "refused to every component in this version".to_owned()),
        ("rust guests", Toolchain::find().describe()),
        ("limits", describe(&limits)),
    ];
    print(global, &rows, limits.is_ok());
    match limits {
        Ok(_) => Ok(exit::DONE),
        Err(error) => Err(CliError::Ours(format!("the limits do not hold on this machine: {error}"))),
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
