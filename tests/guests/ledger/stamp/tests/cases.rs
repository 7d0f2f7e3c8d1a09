//! The embedded case. What the time is, its verification cannot know: a small change passes.

use checkrein_skill::testing::run_cases;

#[test]
fn cases_run_and_some_changes_are_caught() {
    let caught = run_cases::<stamp::Stamp>(include_str!("../cases.toml"));
    assert!(caught > 0.5, "{caught}");
}
