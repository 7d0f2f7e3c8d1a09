//! `doctor`: what is in force on this machine, and whether the limits hold.

use serde_json::json;

use crate::args::Global;
use crate::build::Toolchain;
use crate::config::Config;
use crate::error::{CliError, exit};
use crate::output;
use crate::world;

pub(super) async fn doctor(global: &Global) -> Result<u8, CliError> {
    let state = world::open_state(global)?;
    let sandbox = world::sandbox(&state)?;
    let config = Config::find(global)?;
    let file = config
        .file
        .as_ref()
        .map_or_else(|| "none: defaults hold".to_owned(), |file| file.display().to_string());
    let limits = sandbox.self_test().await;
    let toolchain = Toolchain::find();
    let rows = [
        ("engine", sandbox.describe()),
        ("configuration", file),
        ("state", state.dir().display().to_string()),
        ("network", "refused to every component in this version".to_owned()),
        ("rust guests", toolchain.describe()),
        (
            "limits",
            match &limits {
                Ok(held) => {
                    let each = held.iter().map(|held| {
                        format!("{} stopped by `{}` in {} ms", held.attack, held.limit, held.stopped_ms)
                    });
                    each.collect::<Vec<_>>().join("; ")
                }
                Err(error) => format!("DO NOT HOLD: {error}"),
            },
        ),
    ];
    if global.json {
        let object: serde_json::Map<String, serde_json::Value> =
            rows.iter().map(|(name, value)| ((*name).replace(' ', "_"), json!(value))).collect();
        output::line(
            &json!({ "schema": "checkrein/doctor@1", "limits_hold": limits.is_ok(), "found": object })
                .to_string(),
        );
    } else {
        for (name, value) in &rows {
            output::line(&format!("{name:14} {value}"));
        }
    }
    match limits {
        Ok(_) => Ok(exit::DONE),
        Err(error) => Err(CliError::Ours(format!("the limits do not hold on this machine: {error}"))),
    }
}
