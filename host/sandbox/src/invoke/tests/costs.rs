//! What each wall costs a call, against the same engine without it, in one run:
//! `cargo test --lib -- --ignored --nocapture cost_of_walls`.

use wasmtime::component::{Component as Compiled, Linker};
use wasmtime::{Engine, InstanceAllocationStrategy};

use super::*;
use crate::bindings::skill::SkillPre;
use crate::convert::subgoal_to_guest;
use crate::engine::{config, pool};
use crate::load::trial_setting;
use crate::parts::Assess;

/// Rounds of which the fastest counts, and calls in each.
const ROUNDS: u32 = 15;
const CALLS: u32 = 200;

#[derive(Clone, Copy)]
struct Walls {
    fuel: bool,
    epochs: bool,
    limiter: bool,
    hook: bool,
    stacks: bool,
}

const NONE: Walls = Walls { fuel: false, epochs: false, limiter: false, hook: false, stacks: false };
const ALL: Walls = Walls { fuel: true, epochs: true, limiter: true, hook: true, stacks: true };

/// A component on an engine with some of the walls.
struct Bare {
    walls: Walls,
    engine: Engine,
    pre: SkillPre<State>,
}

impl Bare {
    fn new(walls: Walls, guest: &Guest) -> Self {
        let mut config = config();
        config.consume_fuel(walls.fuel).epoch_interruption(walls.epochs).async_stack_zeroing(walls.stacks);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::new(&engine);
        crate::imports::add_to_linker(&mut linker).unwrap();
        let compiled = Compiled::from_binary(&engine, &guest.assemble()).unwrap();
        let pre = SkillPre::new(linker.instantiate_pre(&compiled).unwrap()).unwrap();
        Bare { walls, engine, pre }
    }

    async fn call(&self, host: &Host) {
        let setting = trial_setting(checkrein_contract::Digest::ZERO, Limits::default());
        let log = LogBook::new(1 << 10);
        let mut store = Store::new(
            &self.engine,
            state::<Assess>(host, &setting, &log, None, std::time::Instant::now()).unwrap(),
        );
        if self.walls.limiter {
            store.limiter(|state| &mut state.limiter);
        }
        if self.walls.fuel {
            store.set_fuel(u64::MAX).unwrap();
            store.fuel_async_yield_interval(Some(YIELD_INTERVAL)).unwrap();
        }
        if self.walls.hook {
            store.call_hook(|mut context, hook| {
                if matches!(hook, CallHook::CallingHost) {
                    context.data_mut().wasi_calls.count()?;
                }
                Ok(())
            });
        }
        if self.walls.epochs {
            store.set_epoch_deadline(u64::MAX / 2);
        }
        let skill = self.pre.instantiate_async(&mut store).await.unwrap();
        skill.checkrein_skill_trigger().call_assess(&mut store, &subgoal_to_guest(subgoal())).await.unwrap();
    }

    async fn calls(&self, host: &Host, calls: u32) {
        for _ in 0..calls {
            self.call(host).await;
        }
    }
}

/// Microseconds of the whole process, so that what else runs on the machine is not counted.
fn micros() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The fastest of all rounds for each kind; they take turns, so that all see the same machine.
struct Fastest(Vec<(String, f64)>);

impl Fastest {
    fn add(&mut self, kind: &str, calls: u32, began: f64) {
        let took = (micros() - began) / f64::from(calls);
        match self.0.iter_mut().find(|(known, _)| known == kind) {
            Some((_, best)) => *best = best.min(took),
            None => self.0.push((kind.to_owned(), took)),
        }
    }

    #[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
    fn print(&self, what: &str) {
        for (kind, best) in &self.0 {
            eprintln!("{what}, {kind:40} {best:9.1} µs  {:5.2} x", best / self.0[0].1);
        }
    }
}

const KINDS: [(&str, Walls); 7] = [
    ("bare", NONE),
    ("fuel", Walls { fuel: true, ..NONE }),
    ("epochs", Walls { epochs: true, ..NONE }),
    ("limiter", Walls { limiter: true, ..NONE }),
    ("call hook", Walls { hook: true, ..NONE }),
    ("stacks given back", Walls { stacks: true, ..NONE }),
    ("all of these", ALL),
];

#[tokio::test]
#[ignore = "a measurement"]
async fn cost_of_walls() {
    let mut fresh = Fastest(Vec::new());
    let bare = KINDS.map(|(kind, walls)| (kind, Bare::new(walls, &Guest::default())));
    let (sandbox, _folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    for _ in 0..ROUNDS {
        for (kind, bare) in &bare {
            let began = micros();
            bare.calls(&sandbox.0, CALLS).await;
            fresh.add(kind, CALLS, began);
        }
        let began = micros();
        for _ in 0..CALLS {
            assert!(matches!(sandbox.assess(setting.clone(), subgoal()).await.end, End::Returned(_)));
        }
        fresh.add("with clocks, threads, record: a trigger", CALLS, began);
        let began = micros();
        for _ in 0..CALLS {
            assert!(matches!(sandbox.execute(setting.clone(), call()).await.end, End::Returned(_)));
        }
        fresh.add("with a `/work` of its own: an executor", CALLS, began);
    }
    fresh.print("a fresh call");
    drop(bare);
    let mut spin = Guest::default();
    spin.assess = format!(
        "(local $n i32) (loop $again
           (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 20000000))))
         {}",
        spin.assess
    );
    let mut tight = Fastest(Vec::new());
    let bare = KINDS.map(|(kind, walls)| (kind, Bare::new(walls, &spin)));
    for _ in 0..ROUNDS {
        for (kind, bare) in
            bare.iter().filter(|(kind, _)| ["bare", "fuel", "epochs", "all of these"].contains(kind))
        {
            let began = micros();
            bare.calls(&sandbox.0, 1).await;
            tight.add(kind, 1, began);
        }
    }
    tight.print("a tight loop");
}
