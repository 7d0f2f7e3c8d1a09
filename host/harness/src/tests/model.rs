//! A model of the run: the pure core against a world of chance. Planners, skills, judges and
//! recoveries do anything they may; people answer, amend and cancel at any time; the process ends at
//! any event, and goes on from the log.
//!
//! What must hold whatever happens is checked from the log alone, apart from the core's own
//! counters, in [`laws`].

mod laws;
mod world;

use proptest::prelude::*;

use world::World;

fn live(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..400 {
        if !world.step() {
            break;
        }
    }
    world.finish();
    laws::hold(&world);
}

/// Worlds in which something once went wrong.
#[test]
fn worlds_that_went_wrong_once() {
    for seed in [14482896722429356386, 14552227402197696689, 15569762279062004339] {
        live(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_laws_hold_and_the_run_ends_or_waits(seed in any::<u64>()) {
        live(seed);
    }
}
