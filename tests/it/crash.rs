//! Killed at any point, a run is resumed and ends in the same facts; what cannot be taken back
//! happens once.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use checkrein_tests::{
    KILLED, Place, Ran, Step, Works, answer_all, complete, few, many, root, text_of, undisturbed,
};

type Facts = BTreeSet<(String, String)>;

/// Kills at boundaries that a run of all tests makes at most.
const KILLS: usize = 40;

fn facts_of(stages: &[Vec<Step>]) -> Facts {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(stages)));
    is_what_it_should(&works, stages, None);
    works.facts()
}

/// The facts of a run of the few that nobody disturbed.
fn few_facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| facts_of(&few()))
}

/// The run is done with these facts, its log is whole, and each effect happened as often as it may.
#[track_caller]
fn is_what_it_should(works: &Works, stages: &[Vec<Step>], facts: Option<&Facts>) {
    assert_eq!(works.status().as_deref(), Some("done"));
    let _ = works.run(&["trace", "verify", "@last"]).expect(0);
    let steps = || stages.iter().flatten();
    let found = works.facts();
    assert_eq!(found.len(), steps().count(), "a fact for each subgoal: {found:#?}");
    if let Some(facts) = facts {
        assert_eq!(found, *facts);
    }
    let book = works.book("ledger");
    for step in steps().filter(|step| step.skill == "ledger") {
        assert_eq!(lines_of(&step.id, &book).len(), 1, "`{}`, once: {book:#?}", step.id);
    }
    assert_eq!(book.len(), steps().filter(|step| step.skill == "ledger").count(), "{book:#?}");
    let told = works.book("publisher");
    for step in steps().filter(|step| step.skill == "publisher") {
        // Once, or again under the same id.
        let calls: BTreeSet<&String> = lines_of(&step.id, &told).into_iter().collect();
        assert_eq!(calls.len(), 1, "`{}`: {told:#?}", step.id);
    }
}

/// The calls of a subgoal that stand in a book.
fn lines_of<'b>(subgoal: &str, book: &'b [String]) -> Vec<&'b String> {
    book.iter().filter(|call| call.split('/').nth(1) == Some(subgoal)).collect()
}

/// How many boundaries each command of an undisturbed run reaches, in the order of the commands.
fn boundaries(works: &Works, task: &str) -> Vec<usize> {
    works.reset();
    let counted = works.path().join("boundaries");
    let mut all = Vec::new();
    complete(works, task, &mut |args| {
        let ran = works.run_with(args, |command| {
            command.env("CHECKREIN_COUNT_AT", &counted);
        });
        let text = std::fs::read_to_string(&counted).unwrap_or_default();
        all.push(text.lines().count());
        if counted.exists() {
            std::fs::remove_file(&counted).unwrap();
        }
        ran
    });
    all
}

/// Completes the run of a task with one command of it, counted from 0, killed at one boundary; says
/// whether it came to that.
fn struck(works: &Works, task: &str, command: usize, boundary: usize) -> bool {
    works.reset();
    let (mut turn, mut killed) = (0, false);
    complete(works, task, &mut |args| {
        let strike = turn == command;
        turn += 1;
        let ran = works.run_with(args, |process| {
            if strike {
                process.env("CHECKREIN_KILL_AT", boundary.to_string());
            }
        });
        killed |= strike && ran.code == KILLED;
        ran
    });
    killed
}

fn at_boundaries(most: usize) {
    let works = Works::new();
    let task = works.task(&text_of(&few()));
    let counts = boundaries(&works, task);
    is_what_it_should(&works, &few(), Some(few_facts()));
    let all =
        counts.iter().enumerate().flat_map(|(command, count)| (1..=*count).map(move |at| (command, at)));
    let all: Vec<(usize, usize)> = all.collect();
    assert!(counts.len() >= 3 && all.len() > 60, "only a debug build counts boundaries: {counts:?}");
    let mut killed = 0;
    for (command, boundary) in all.iter().step_by(all.len().div_ceil(most)) {
        killed += usize::from(struck(&works, task, *command, *boundary));
        println!("command {command}, boundary {boundary}");
        is_what_it_should(&works, &few(), Some(few_facts()));
    }
    // Calls run side by side, so no run reaches exactly the boundaries of another.
    assert!(killed * 10 >= all.len().min(most) * 8, "only {killed} were killed");
}

#[test]
fn killed_at_boundaries_of_writes_a_run_ends_in_the_same_facts() {
    at_boundaries(KILLS);
}

/// At each of them: `cargo test --workspace --test it -- --ignored killed_at_each_boundary`.
#[test]
#[ignore = "takes minutes"]
fn killed_at_each_boundary_of_a_write_a_run_ends_in_the_same_facts() {
    at_boundaries(usize::MAX);
}

/// Numbers that are the same again for the same seed.
struct Chance(u64);

impl Chance {
    /// That of `CHECKREIN_TEST_SEED`, or one of its own; it is printed.
    fn new() -> Self {
        let given = std::env::var("CHECKREIN_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = given.unwrap_or(now.as_nanos() as u64);
        println!("CHECKREIN_TEST_SEED={seed}");
        Chance(seed)
    }

    /// A part of `most`, from none to all of it.
    fn part_of(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        most.mul_f64(((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Runs a task again and again, each of its commands killed at a random moment, until so many were.
fn at_random(place: &Works, task: &str, kills: usize, holds: impl Fn()) {
    let mut longest = Duration::ZERO;
    complete(place, task, &mut |args| {
        let begun = Instant::now();
        let ran = place.run(args);
        longest = longest.max(begun.elapsed());
        ran
    });
    holds();
    let (mut chance, mut killed) = (Chance::new(), 0);
    while killed < kills {
        place.reset();
        complete(place, task, &mut |args| {
            let ran = place.job(args, |_| {}).kill_after(chance.part_of(longest));
            killed += usize::from(ran.code == KILLED);
            ran
        });
        holds();
    }
    println!("killed {killed} times");
}

fn many_at_random(stages: u32, kills: usize) {
    let stages = many(stages);
    let works = Works::new();
    let task = works.task(&text_of(&stages));
    let facts = facts_of(&stages);
    at_random(&works, task, kills, || is_what_it_should(&works, &stages, Some(&facts)));
}

#[test]
fn killed_at_random_moments_a_long_run_ends_in_the_same_facts() {
    many_at_random(3, 20);
}

/// A task of 200 subgoals, killed 500 times: `cargo test --workspace --test it -- --ignored --nocapture
/// killed_five_hundred_times`. `CHECKREIN_TEST_SEED` makes a run of it the same again.
#[test]
#[ignore = "takes many minutes"]
fn killed_five_hundred_times_a_run_of_two_hundred_subgoals_ends_in_the_same_facts() {
    many_at_random(10, 500);
}

#[test]
fn two_hundred_subgoals_with_failures_and_asks_reach_their_end() {
    let stages = many(10);
    assert_eq!(stages.iter().flatten().count(), 200);
    assert_eq!(facts_of(&stages).len(), 200);
}

fn pasilla(place: &Place, args: &[&str], more: impl FnOnce(&mut std::process::Command)) -> Ran {
    let config = root().join("tests/tasks/pasilla/checkrein.toml").display().to_string();
    let state = place.state().display().to_string();
    place.run_with(&[args, &["--config", &config, "--state", &state]].concat(), more)
}

fn pasilla_task() -> String {
    root().join("tests/tasks/pasilla/task.toml").display().to_string()
}

/// Resumes the demo until it is done; a run that was killed before it began is started.
fn finish_pasilla(place: &Place) -> Facts {
    while place.status().is_none() {
        let ran = match place.last_run() {
            Some(run) => pasilla(place, &["resume", &run], |_| {}),
            None => pasilla(place, &["run", &pasilla_task()], |_| {}),
        };
        let _ = ran.expect(0);
    }
    assert_eq!(place.status().as_deref(), Some("done"));
    let _ = pasilla(place, &["trace", "verify", "@last"], |_| {}).expect(0);
    place.facts()
}

#[test]
fn the_demo_killed_in_the_middle_ends_in_the_same_facts() {
    let (first, second) = (Place::new(), Place::new());
    let counted = first.path().join("boundaries");
    let ran = pasilla(&first, &["run", &pasilla_task()], |command| {
        command.env("CHECKREIN_COUNT_AT", &counted);
    });
    let _ = ran.expect(0);
    let count = std::fs::read_to_string(counted).unwrap().lines().count();
    let ran = pasilla(&second, &["run", &pasilla_task()], |command| {
        command.env("CHECKREIN_KILL_AT", (count / 2).to_string());
    });
    let _ = ran.expect(KILLED);
    assert!(second.status().is_none() && !second.entries().is_empty());
    assert_eq!(finish_pasilla(&second), first.facts());
}

/// Twenty moments: `cargo test --workspace --test it -- --ignored --nocapture the_demo_killed_at_random`.
#[test]
#[ignore = "takes minutes"]
fn the_demo_killed_at_random_moments_ends_in_the_same_facts() {
    let reference = Place::new();
    let begun = Instant::now();
    let facts = finish_pasilla(&reference);
    let (most, mut chance) = (begun.elapsed(), Chance::new());
    for turn in 0..20 {
        let place = Place::new();
        let state = place.state().display().to_string();
        let config = root().join("tests/tasks/pasilla/checkrein.toml").display().to_string();
        let args = ["run", &pasilla_task(), "--config", &config, "--state", &state];
        let ran = place.job(&args, |_| {}).kill_after(chance.part_of(most));
        println!("{turn}: {}", ran.code);
        assert_eq!(finish_pasilla(&place), facts);
    }
}

#[test]
fn an_effect_that_may_have_happened_is_not_repeated_without_a_word() {
    let works = Works::new();
    let step = checkrein_tests::ledger("books", 6).arg("pause_ms", "20000");
    let task = works.task(&text_of(&[vec![step]]));
    let _ = works.run(&["run", task]).expect(4);
    answer_all(&works, &mut |args| works.run(args));
    let job = works.job(&["resume", "@last"], |_| {});
    checkrein_tests::until("a line in the ledger", || !works.book("ledger").is_empty());
    job.signal("KILL");
    let _ = job.end().expect(KILLED);
    for _ in 0..2 {
        let _ = works.run(&["resume", "@last"]).expect(4);
        let asks = works.open_asks();
        assert_eq!((asks.len(), asks[0].kind()), (1, "call-unknown"), "{asks:#?}");
    }
    assert_eq!(works.entries_of("call-unknown").len(), 1);
    assert_eq!(works.book("ledger").len(), 1);
}
