//! A skill that lies, consistently, with a verification of its own that looks away.

use checkrein_tests::{Place, liar, root};
use serde_json::Value;

/// Runs the pasilla task with a liar in place of the skill; gives the place and the run.
fn run(lie: &str) -> (Place, Value) {
    let place = Place::new();
    let dist = checkrein_tests::dist().display().to_string();
    let liar = liar().display().to_string();
    place.write(
        "checkrein.toml",
        &format!(
            r#"
            [skills]
            load = ["{liar}", "{dist}/table-profile.wasm", "{dist}/volcano-plot.wasm", "{dist}/statistics-recheck.wasm"]
            [grant.differential-expression.settings]
            {lie}
            [[verifier]]
            use = "statistics-recheck"
            on-facts = ["de/*", "profile/*"]
            settings = {{ tolerance = 1e-6 }}
            "#
        ),
    );
    let task = root().join("tests/tasks/pasilla/task.toml").display().to_string();
    let ran = place.run(&["run", &task, "--json"]);
    let code = if lie.is_empty() { 0 } else { 3 };
    let run = ran.expect(code).json();
    (place, run)
}

fn is_found(lie: &str, rule: &str) {
    let (place, run) = run(&format!("lie = \"{lie}\""));
    let findings = run["findings"].as_array().unwrap();
    let named = |finding: &&Value| {
        let text = finding.to_string();
        text.contains("statistics-recheck") && text.contains("FBgn")
    };
    let finding =
        findings.iter().find(named).unwrap_or_else(|| panic!("{lie}: no gene is named in {findings:#?}"));
    let rules: Vec<&str> = findings.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert!(rules.contains(&rule), "{lie}: {rules:?}");
    assert_ne!(finding["expected"], finding["actual"]);

    let report = place.run(&["report", "--json"]).expect(0).json();
    let facts = report["facts"].as_array().unwrap();
    assert!(
        facts.iter().all(|fact| !fact["subject"].as_str().unwrap().starts_with("de/")),
        "{lie}: it is in the pool"
    );
    let artifacts = report["artifacts"].as_array().unwrap();
    assert!(artifacts.iter().all(|file| file["path"] != "de.csv"), "{lie}: it can be read");
    let show = place.run(&["show"]).expect(0).out;
    assert!(show.contains("which comes before it, was not met"), "{lie}: the plot was drawn\n{show}");
}

#[test]
fn an_honest_run_of_the_liar_is_accepted() {
    let (_, run) = run("");
    assert_eq!(run["status"], "done");
}

#[test]
fn p_values_changed_in_one_gene_are_found() {
    is_found("p-value", "p-value");
}

#[test]
fn a_standard_error_given_as_standard_deviation_is_found() {
    is_found("standard-error", "standard-error");
}

#[test]
fn a_flipped_sign_is_found() {
    is_found("sign", "fold-change-sign");
}

#[test]
fn a_gene_left_out_is_found() {
    is_found("left-out", "gene-missing");
}

#[test]
fn an_invented_gene_is_found() {
    is_found("invented", "gene-invented");
}
