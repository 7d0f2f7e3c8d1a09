//! The limits are tried at start: a wall that does not hold is found before a guest does.

use std::time::{Duration, Instant};

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::Kind;
use checkrein_contract::port::End;
use serde::Serialize;
use wasmtime::component::Component as Compiled;

use crate::component::{Component, Pre, bare_manifest};
use crate::invoke::run;
use crate::load::trial_setting;
use crate::parts::Instantiate;
use crate::sandbox::Sandbox;

/// How long after its limit a guest may still run before the wall counts as broken. The limits
/// are 5 ms; a busy machine may schedule this process late.
const PATIENCE: Duration = Duration::from_secs(2);

/// A hostile guest, the limit that must stop it and the value of that limit.
struct Attack {
    name: &'static str,
    component: &'static [u8],
    limit: LimitKey,
    value: u64,
}

/// `tests/guests/self-test-*.wat`, assembled; a test keeps the two the same.
const ATTACKS: [Attack; 4] = [
    Attack {
        name: "loop",
        component: include_bytes!("../../../tests/guests/self-test-loop.wasm"),
        limit: LimitKey::Cpu,
        value: 5,
    },
    Attack {
        name: "sleep",
        component: include_bytes!("../../../tests/guests/self-test-sleep.wasm"),
        limit: LimitKey::Wall,
        value: 5,
    },
    Attack {
        name: "wait",
        component: include_bytes!("../../../tests/guests/self-test-wait.wasm"),
        limit: LimitKey::Wall,
        value: 5,
    },
    Attack {
        name: "grow",
        component: include_bytes!("../../../tests/guests/self-test-grow.wasm"),
        limit: LimitKey::Memory,
        value: 1 << 20,
    },
];

/// A wall that held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// What was tried: `loop`, `sleep`, `wait`, `grow`.
    pub attack: &'static str,
    /// The limit that stopped it.
    pub limit: &'static str,
    /// After how many milliseconds, everything included.
    pub stopped_ms: u64,
}

/// A wall that did not hold. Nothing of a stranger may run here.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the sandbox does not hold here: the attack `{attack}` should end at the limit `{limit}`, but {found}"
)]
pub struct SelfTestError {
    /// What was tried.
    pub attack: &'static str,
    /// The limit that should have stopped it.
    pub limit: &'static str,
    /// What happened instead.
    pub found: String,
}

impl Sandbox {
    /// Runs a looping, a sleeping, a waiting and a growing component under limits of 5 ms and 1 MiB.
    /// Sockets are refused to guests, so the one that waits does so for something else that never
    /// comes: an event that has no timer.
    ///
    /// # Errors
    ///
    /// If one of them is not stopped by its limit and in time.
    pub async fn self_test(&self) -> Result<Vec<Held>, SelfTestError> {
        let mut held = Vec::new();
        for attack in &ATTACKS {
            let result = self.attempt(attack).await;
            let stopped_ms = result.map_err(|found| SelfTestError {
                attack: attack.name,
                limit: attack.limit.as_str(),
                found,
            })?;
            held.push(Held { attack: attack.name, limit: attack.limit.as_str(), stopped_ms });
        }
        Ok(held)
    }

    async fn attempt(&self, attack: &'static Attack) -> Result<u64, String> {
        let sandbox = self.clone();
        let work = async move {
            let component = sandbox.prepare(attack)?;
            let limits = Limits::default().with(attack.limit, attack.value);
            let began = Instant::now();
            let setting = trial_setting(component.digest, limits);
            let ran = run(&sandbox.0, &component, setting, Instantiate).await;
            let took = began.elapsed();
            match ran.end {
                End::Limited(hit) if hit.limit == attack.limit.as_str() && took < PATIENCE => {
                    Ok(took.as_millis() as u64)
                }
                End::Limited(hit) => Err(format!("`{}` stopped it after {} ms", hit.limit, took.as_millis())),
                end => Err(format!("it ended otherwise: {end:?}")),
            }
        };
        self.on_guest_threads(work).await?
    }

    fn prepare(&self, attack: &Attack) -> Result<Component, String> {
        let host = &self.0;
        let pre = Compiled::from_binary(&host.engine, attack.component)
            .and_then(|compiled| host.link(&compiled))
            .map_err(|error| format!("it does not load: {error:#}"))?;
        Ok(Component::new(
            Digest::of(attack.component),
            bare_manifest(attack.name, Kind::Verifier),
            Pre::Bare(pre),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_walls_hold() {
        let (sandbox, _folder) = crate::testing::sandbox();
        let held = sandbox.self_test().await.unwrap();
        assert_eq!(held.len(), ATTACKS.len());
    }

    #[test]
    fn text_and_bytes_agree() {
        for attack in &ATTACKS {
            let path = crate::testing::guests().join(format!("self-test-{}.wat", attack.name));
            let assembled = wat::parse_file(&path).unwrap();
            if std::env::var_os("CHECKREIN_ASSEMBLE").is_some() {
                std::fs::write(path.with_extension("wasm"), &assembled).unwrap();
                continue;
            }
            assert!(
                assembled == attack.component,
                "{}: assemble it again, with CHECKREIN_ASSEMBLE=1",
                path.display()
            );
        }
    }
}
