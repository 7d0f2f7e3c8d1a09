//! A skill that lies, consistently, with a verification of its own that looks away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use checkrein_tests::{Place, liar, root};
use serde_json::Value;

/// The pasilla task with its plot in a stage of its own, which comes after the lie.
fn task(place: &Place) -> String {
    let folder = root().join("tests/tasks/pasilla");
    let text = std::fs::read_to_string(folder.join("task.toml")).unwrap();
    let later = text
        .replace(
            "[[stage.subgoal]]\nid = \"plot\"",
            "[[stage]]\nid = \"draw\"\n\n[[stage.subgoal]]\nid = \"plot\"",
        )
        .replace("after = [\"de\"]\n", "");
    let here = later
        .replace("\"pasilla_", &format!("\"{}/pasilla_", folder.display()))
        .replace("\"report.md\"", &format!("\"{}/report.md\"", folder.display()));
    place.write("task.toml", &here).display().to_string()
}

/// Runs it with a liar in place of the skill; gives the place and the run.
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
    let task = task(&place);
    let ran = place.run(&["run", &task, "--json"]);
    let code = if lie.is_empty() { 0 } else { 3 };
    let run = ran.expect(code).json();
    (place, run)
}

/// What the last outcome of the subgoal `de` says of each gene, whoever accepted or rejected it.
fn genes(place: &Place) -> BTreeMap<String, Value> {
    let ended = place.events_of("call-ended");
    let outcome = ended.iter().rev().find_map(|event| {
        let of_de = event["call"].as_str()?.contains("/de/");
        event["ended"]["outcome"].as_str().filter(|_| of_de)
    });
    let hex = outcome.unwrap().trim_start_matches("sha256:");
    let blob = std::fs::read(place.state().join("blobs/sha256").join(hex)).unwrap();
    let outcome: Value = serde_json::from_slice(&blob).unwrap();
    let facts = outcome["facts"].as_array().unwrap().iter();
    facts
        .filter_map(|fact| {
            let gene = fact["subject"].as_str()?.strip_prefix("de/gene/")?;
            Some((gene.to_owned(), fact["content"].clone()))
        })
        .collect()
}

/// An honest run, and what it says of each gene.
fn honest() -> &'static (Value, BTreeMap<String, Value>) {
    static HONEST: OnceLock<(Value, BTreeMap<String, Value>)> = OnceLock::new();
    HONEST.get_or_init(|| {
        let (place, run) = run("");
        (run, genes(&place))
    })
}

/// The one gene of which the liar says something else.
fn changed(place: &Place) -> String {
    let (told, honest) = (genes(place), &honest().1);
    let names: BTreeSet<&String> = told.keys().chain(honest.keys()).collect();
    let changed: Vec<&&String> = names.iter().filter(|name| told.get(**name) != honest.get(**name)).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    (*changed[0]).clone()
}

/// The genes that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    text.match_indices("FBgn").filter_map(|(at, _)| text.get(at..at + 11)).collect()
}

fn is_found(lie: &str, rule: &str) {
    let (place, run) = run(&format!("lie = \"{lie}\""));
    let gene = changed(&place);
    let findings = run["findings"].as_array().unwrap();
    let by_verifier: Vec<&Value> =
        findings.iter().filter(|finding| finding["skill"] == "statistics-recheck").collect();
    let finding = by_verifier
        .iter()
        .find(|finding| finding["rule"] == rule)
        .unwrap_or_else(|| panic!("{lie}: no `{rule}` in {by_verifier:#?}"));
    assert_eq!(finding["severity"], "error");
    assert_ne!(finding["expected"], finding["actual"], "{lie}");
    assert!(named(&finding.to_string()).contains(gene.as_str()), "{lie}: {gene} is not in {finding}");
    for finding in by_verifier {
        let text = finding.to_string();
        assert!(named(&text).iter().all(|name| *name == gene), "{lie}: not only {gene} in {finding}");
    }
    nothing_of_it_can_be_read(&place, &run, &gene);
}

/// The pool, the files, the next stage, the report and `why` know nothing of it.
fn nothing_of_it_can_be_read(place: &Place, run: &Value, gene: &str) {
    let of_de = |event: &Value| event["call"].as_str().is_some_and(|call| call.contains("/de/"));
    assert!(!place.events_of("outcome-accepted").iter().any(of_de));
    assert!(place.events_of("outcome-rejected").iter().any(of_de));
    assert_eq!(run["stages"][2]["stage"], "draw");
    assert_eq!(run["stages"][2]["entered"], false);
    for (kind, key) in [("subgoal-opened", "subgoal"), ("call-intended", "subgoal")] {
        assert!(place.events_of(kind).iter().all(|event| event[key] != "plot"), "{kind}: it was drawn");
    }
    let report = place.run(&["report", "--json"]).expect(0).json();
    let subjects: Vec<&str> =
        report["facts"].as_array().unwrap().iter().filter_map(|fact| fact["subject"].as_str()).collect();
    assert!(!subjects.is_empty() && subjects.iter().all(|subject| subject.starts_with("profile/")));
    let artifacts = report["artifacts"].as_array().unwrap();
    assert!(artifacts.iter().all(|file| file["subgoal"] != "de"), "{artifacts:?}");
    for subject in ["de/summary".to_owned(), format!("de/gene/{gene}")] {
        let why = place.run(&["why", "@last", &subject]).expect(1);
        assert!(why.errors()[0].contains("no fact"), "{}", why.err);
    }
}

#[test]
fn an_honest_run_of_the_liar_is_accepted() {
    let (run, genes) = honest();
    assert_eq!(run["status"], "done");
    assert_eq!(genes.len(), 623);
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
