//! The embedded cases, and what verification catches of changed outcomes.

#[test]
fn cases_run_and_changes_are_caught() {
    let caught =
        checkrein_skill::testing::run_cases::<ledger::Ledger>(include_str!("../cases.toml"));
    assert!(caught > 0.9, "{caught}");
}
