//! Hostile and honest calls at once: no honest one suffers, and all that was taken is given back.

use std::path::Path;
use std::time::{Duration, Instant};

use checkrein_contract::port::{End, Guests as _, Setting};
use tokio::task::JoinSet;

use super::*;
use crate::attack::asked::{Ended, ask, setting};
use crate::attack::measure::Held;
use crate::attack::run::compile;
use crate::load::trial_setting;
use crate::sandbox::Sandbox;

/// As many as the sandbox runs.
const AT_ONCE: usize = 64;
/// Different honest components: each runs eight times at once at most.
const HONEST: usize = 8;
/// How long the threads and memories of the first calls may take to be given back.
const IDLE: Duration = Duration::from_secs(10);

#[test]
fn a_hundred_hostile_and_a_hundred_honest_calls() {
    alone("attack::tests::mixed::mixed_load", "100");
}

/// `cargo test --lib -- --ignored --nocapture a_thousand_hostile`.
#[test]
#[ignore = "takes a minute"]
fn a_thousand_hostile_and_a_thousand_honest_calls() {
    alone("attack::tests::mixed::mixed_load", "1000");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs in a process of its own"]
async fn mixed_load() {
    let each = std::env::var(WHICH).ok().and_then(|each| each.parse().ok()).unwrap_or(1000);
    let (sandbox, folder) = sandbox();
    let load = Load::prepare(&sandbox, folder.path()).await;
    // What the engine makes once for each component is not what is counted.
    load.each_once().await;
    let first = load.run(100).await;
    assert_eq!(first.failed, Vec::<String>::new());
    let before = settled(&sandbox, None).await;
    let whole = load.run(2 * each).await;
    let after = settled(&sandbox, Some(&before)).await;
    report(&before, &whole, &after);
    assert_eq!(whole.failed, Vec::<String>::new());
    assert!(whole.honest >= each && whole.hostile >= each, "{} and {}", whole.honest, whole.hostile);
    assert!(
        after.resident * 5 <= before.resident * 6,
        "{} bytes before, {} after",
        before.resident,
        after.resident
    );
    assert!(
        after.threads() <= before.threads(),
        "{} threads before, {} after",
        before.threads(),
        after.threads()
    );
    assert!(after.descriptors() <= before.descriptors(), "{:?}", before.more(&after));
    assert_eq!((after.children, std::fs::read_dir(&sandbox.0.scratch).unwrap().count()), (0, 0));
}

/// What is held when threads for blocking work have ended, as far as they do.
async fn settled(sandbox: &Sandbox, before: Option<&Held>) -> Held {
    let began = Instant::now();
    let mut last = Held::now(&sandbox.0.scratch).unwrap();
    loop {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let now = Held::now(&sandbox.0.scratch).unwrap();
        let still =
            now.threads() == last.threads() && before.is_none_or(|before| now.threads() <= before.threads());
        if still || began.elapsed() > IDLE {
            return now;
        }
        last = now;
    }
}

#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
fn report(before: &Held, load: &Ran, after: &Held) {
    eprintln!(
        "{} honest and {} hostile calls, {AT_ONCE} at once, in {:.1} s; the slowest honest one took {} ms",
        load.honest,
        load.hostile,
        load.took.as_secs_f64(),
        load.slowest.as_millis(),
    );
    for (when, held) in [("after the first 100", before), ("at the end", after)] {
        eprintln!(
            "{when}: {} MiB resident, {} threads, {} descriptors, {} processes",
            held.resident >> 20,
            held.threads(),
            held.descriptors(),
            held.children,
        );
    }
}

/// What is called, again and again.
struct Load {
    sandbox: Sandbox,
    honest: Vec<Setting>,
    hostile: Vec<(Attack, Setting)>,
}

/// What came of it.
struct Ran {
    honest: usize,
    hostile: usize,
    failed: Vec<String>,
    took: Duration,
    slowest: Duration,
}

impl Load {
    async fn prepare(sandbox: &Sandbox, folder: &Path) -> Self {
        let (input, artifacts) = (folder.join("in"), folder.join("artifacts"));
        std::fs::create_dir(&input).unwrap();
        std::fs::create_dir(&artifacts).unwrap();
        let mut honest = Vec::new();
        for number in 0..HONEST {
            let mut guest = Guest::default();
            guest.image.text(&format!("honest {number}"));
            let component = compile(sandbox, guest.assemble()).await.unwrap();
            honest.push(trial_setting(component.digest, Limits::default()));
            sandbox.register(component);
        }
        let mut hostile = Vec::new();
        for attack in corpus() {
            let Body::Part(_, guest) = attack.body else { continue };
            // Minutes of honest printing would show nothing more.
            if attack.expected == Expected::Nothing {
                continue;
            }
            let component = compile(sandbox, guest().assemble()).await.unwrap();
            let short = Limits::default()
                .with(LimitKey::HostCalls, 200)
                .with(LimitKey::WasiCalls, 5_000)
                .with(LimitKey::Memory, 48 << 20);
            let limits = attack.limits(&short);
            let mut setting = setting(component.digest, limits, Granted::default());
            setting.input = Some(input.clone());
            setting.artifacts = Some(artifacts.clone());
            hostile.push((attack, setting));
            sandbox.register(component);
        }
        Load { sandbox: sandbox.clone(), honest, hostile }
    }

    async fn each_once(&self) {
        for setting in &self.honest {
            assert!(matches!(honest(self.sandbox.clone(), setting.clone()).await, One::Honest(Ok(_))));
        }
        for (attack, setting) in &self.hostile {
            drop(hostile(self.sandbox.clone(), attack.clone(), setting.clone()).await);
        }
    }

    /// Half of the calls honest, half hostile, in turn.
    async fn run(&self, calls: usize) -> Ran {
        let began = Instant::now();
        let mut ran =
            Ran { honest: 0, hostile: 0, failed: Vec::new(), took: Duration::ZERO, slowest: Duration::ZERO };
        let mut running = JoinSet::new();
        for number in 0..calls {
            if running.len() == AT_ONCE {
                ran.add(running.join_next().await.unwrap().unwrap());
            }
            let turn = number / 2;
            if number % 2 == 0 {
                let setting = self.honest[turn % self.honest.len()].clone();
                running.spawn(honest(self.sandbox.clone(), setting));
            } else {
                let (attack, setting) = self.hostile[turn % self.hostile.len()].clone();
                running.spawn(hostile(self.sandbox.clone(), attack, setting));
            }
        }
        while let Some(one) = running.join_next().await {
            ran.add(one.unwrap());
        }
        ran.took = began.elapsed();
        ran
    }
}

impl Ran {
    fn add(&mut self, one: One) {
        match one {
            One::Honest(Ok(took)) => {
                self.honest += 1;
                self.slowest = self.slowest.max(took);
            }
            One::Hostile(Ok(())) => self.hostile += 1,
            One::Honest(Err(why)) | One::Hostile(Err(why)) => self.failed.push(why),
        }
    }
}

enum One {
    Honest(Result<Duration, String>),
    Hostile(Result<(), String>),
}

async fn honest(sandbox: Sandbox, setting: Setting) -> One {
    let began = Instant::now();
    let ran = sandbox.execute(setting, call()).await;
    One::Honest(match ran.end {
        End::Returned(execution) if execution.result.is_ok() => Ok(began.elapsed()),
        end => Err(format!("an honest call: {end:?}")),
    })
}

async fn hostile(sandbox: Sandbox, attack: Attack, setting: Setting) -> One {
    let Body::Part(asked, _) = attack.body else { return One::Hostile(Err("no part".to_owned())) };
    let seen = ask(&sandbox, asked, setting).await;
    let stopped = match (attack.expected, &seen.end) {
        (Expected::Denied(_), _) => !seen.record.denials.is_empty(),
        (_, Ended::Limit(_) | Ended::Trap(_) | Ended::Answer(_)) => true,
        _ => false,
    };
    One::Hostile(if stopped { Ok(()) } else { Err(format!("{}: {:?}", attack.slug(), seen.end)) })
}
