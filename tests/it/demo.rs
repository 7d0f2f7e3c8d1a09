//! The pasilla task reaches what limma gives, and leads every number back to the call that made it.

use std::sync::OnceLock;

use checkrein_tests::Place;
use serde_json::Value;

/// One run of the demo, shared by the tests that only read it.
fn demo() -> &'static (Place, Value) {
    static DEMO: OnceLock<(Place, Value)> = OnceLock::new();
    DEMO.get_or_init(|| {
        let place = Place::new();
        let run = place.run(&["demo", "--json"]).expect(0).json();
        (place, run)
    })
}

fn report() -> Value {
    demo().0.run(&["report", "@last", "--json"]).expect(0).json()
}

fn fact(report: &Value, subject: &str) -> Value {
    let facts = report["facts"].as_array().unwrap();
    facts
        .iter()
        .find(|fact| fact["subject"] == subject)
        .unwrap_or_else(|| panic!("no fact on {subject}"))
        .clone()
}

#[track_caller]
fn close(actual: &Value, expected: f64) {
    let actual = actual.as_f64().unwrap();
    let difference = ((actual - expected) / expected).abs();
    assert!(difference <= 1e-6, "{actual} is not {expected}: {difference:e}");
}

#[test]
fn it_reaches_the_numbers_of_limma() {
    let report = report();
    let summary = &fact(&report, "de/summary")["content"];
    assert_eq!(
        *summary,
        serde_json::json!({ "kept": 7908, "significant": 623, "up": 371, "down": 252, "significant_welch": 183 })
    );
    let prior = &fact(&report, "de/prior")["content"];
    close(&prior["df"], 2.573136989);
    close(&prior["variance"], 0.0292817285);
    let genes = [
        (
            "FBgn0039155",
            [-4.5283090, -34.271869, 1.3921458e-09, 1.0618633e-05, -31.230755, 2.9968651, 7.2706687e-05],
        ),
        (
            "FBgn0025111",
            [2.9452952, 31.406632, 2.6855419e-09, 1.0618633e-05, 40.783789, 3.2523659, 1.6101026e-05],
        ),
        (
            "FBgn0034736",
            [-3.4091678, -29.035419, 4.8452729e-09, 1.2772139e-05, -33.677351, 4.8522927, 6.1096609e-07],
        ),
        (
            "FBgn0035085",
            [-2.4915424, -26.733252, 9.0086640e-09, 1.7810129e-05, -39.059016, 4.9078084, 2.6007656e-07],
        ),
    ];
    for (gene, expected) in genes {
        let content = &fact(&report, &format!("de/gene/{gene}"))["content"];
        let pointers = ["/log2_fold_change", "/t", "/p", "/q", "/welch/t", "/welch/df", "/welch/p"];
        for (pointer, expected) in pointers.into_iter().zip(expected) {
            close(content.pointer(pointer).unwrap(), expected);
        }
    }
}

#[test]
fn every_gene_within_alpha_is_an_independent_fact() {
    let report = report();
    let facts = report["facts"].as_array().unwrap();
    let genes: Vec<&Value> =
        facts.iter().filter(|fact| fact["subject"].as_str().unwrap().starts_with("de/gene/")).collect();
    assert_eq!(genes.len(), 623);
    let of_de = facts.iter().filter(|fact| fact["subject"].as_str().unwrap().starts_with("de/"));
    for fact in of_de {
        assert_eq!(fact["level"], "independent", "{}", fact["subject"]);
        let verifiers: Vec<&str> = fact["verified_by"]
            .as_array()
            .unwrap()
            .iter()
            .map(|by| by["verifier"].as_str().unwrap())
            .collect();
        assert!(verifiers.contains(&"statistics-recheck"), "{}", fact["subject"]);
    }
    let artifacts = report["artifacts"].as_array().unwrap();
    assert!(artifacts.iter().any(|file| file["path"] == "de.csv"), "{artifacts:?}");
}

#[test]
fn the_first_attempt_fails_honestly_and_the_second_is_accepted() {
    let show = demo().0.run(&["show", "@last"]).expect(0).out;
    assert!(show.contains("diagnosis: sample names differ by a suffix"), "{show}");
    let run = &demo().1;
    assert_eq!(run["status"], "done");
    let subgoals = run["stages"][1]["subgoals"].as_array().unwrap();
    let de = subgoals.iter().find(|subgoal| subgoal["id"] == "de" || subgoal["subgoal"] == "de").unwrap();
    let attempts: Vec<&Value> = de["calls"].as_array().unwrap().iter().map(|call| &call["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
}

#[test]
fn a_second_run_gives_the_same_outcomes() {
    let digests = |place: &Place| -> Vec<String> {
        let trace = place.run(&["trace", "@last", "--json"]).expect(0).out;
        let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let outcomes = events.filter_map(|event| {
            let call = event["event"]["call"].as_str()?.split_once('/')?.1.to_owned();
            let outcome = event["event"]["ended"]["outcome"].as_str()?.to_owned();
            Some(format!("{call} {outcome}"))
        });
        let mut outcomes: Vec<String> = outcomes.collect();
        outcomes.sort();
        outcomes
    };
    let again = Place::new();
    let _ = again.run(&["demo"]).expect(0);
    let (first, second) = (digests(&demo().0), digests(&again));
    assert_eq!(first.len(), 4);
    assert_eq!(first, second);
}

#[test]
fn the_report_needs_nothing_else_and_runs_nothing() {
    let place = &demo().0;
    let html = std::fs::read_to_string(place.run(&["report", "@last"]).expect(0).out.trim()).unwrap();
    assert!(html.contains("default-src 'none'"));
    assert!(!html.contains("<script"));
    assert!(html.contains("data:image/svg+xml;base64,"));
    for remote in ["src=\"http", "href=\"http", "url(", "@import"] {
        assert!(!html.contains(remote), "{remote}");
    }
    let markdown = place.state().join("runs").join(demo().1["run"].as_str().unwrap()).join("report.md");
    let markdown = std::fs::read_to_string(markdown).unwrap();
    assert!(markdown.contains("623"), "{markdown}");
    assert!(markdown.contains("sample names differ by a suffix"));
    assert!(!markdown.contains("not reached: "), "{markdown}");
}

#[test]
fn why_leads_a_number_back_to_its_inputs() {
    let why = demo().0.run(&["why", "@last", "de/gene/FBgn0039155#/q"]).expect(0).out;
    let counts = "ea0dafbfcc600559644cfe7dd5cc8de809d631eb64ba3089aaa25c2fa0954dad";
    for step in ["1061863", "independent", "statistics-recheck", "/de/2", "attempt 2", counts, "strip_suffix"]
    {
        assert!(why.contains(step), "{step} is not in\n{why}");
    }
    let missing = demo().0.run(&["why", "@last", "de/gene/FBgn0039156"]).expect(1);
    assert!(missing.err.contains("FBgn0039155"), "{}", missing.err);
}

#[test]
fn a_pipe_gets_plain_lines() {
    let place = Place::new();
    let ran = place.run(&["demo"]).expect(0);
    assert!(
        ran.err.lines().any(|line| line.trim_start().starts_with("de") && line.contains("attempt 2 of 3"))
    );
    assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
    assert!(ran.out.contains("done"));
}

#[test]
fn a_parameter_can_be_set_and_the_numbers_follow() {
    let place = Place::new();
    let _ = place.run(&["demo", "--set", "alpha=0.01"]).expect(0);
    let report = place.run(&["report", "--json"]).expect(0).json();
    let significant = fact(&report, "de/summary")["content"]["significant"].as_u64().unwrap();
    assert!(significant > 0 && significant < 623, "{significant}");
}
