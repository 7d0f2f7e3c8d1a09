//! The embedded cases, and what verification catches of changed outcomes.

#[test]
fn cases_run_and_changes_are_caught() {
    let cases = include_str!("../cases.toml");
    let caught = checkrein_skill::testing::run_cases::<line_count::LineCount>(cases);
    assert!(caught > 0.9, "{caught}");
}
