//! `skill build`, `inspect`, `list`, `test`, and `doctor`.

use checkrein_tests::{Place, dist};

#[test]
fn a_component_is_the_whole_of_a_skill() {
    let place = Place::new();
    let file = dist().join("differential-expression.wasm").display().to_string();
    let component = place.run(&["skill", "inspect", &file, "--json"]).expect(0).json();
    assert_eq!(component["manifest"]["name"], "differential-expression");
    let args = &component["manifest"]["args"];
    assert_eq!(args["properties"]["alpha"]["type"], "number", "{args}");
}

#[test]
fn building_twice_changes_nothing() {
    let place = Place::new();
    dist();
    let folder = checkrein_tests::root().join("skills/table-profile").display().to_string();
    let built = place.run(&["skill", "build", &folder, "--json"]).expect(0).json();
    assert_eq!(built["components"][0]["changed"], false, "{built}");
}

#[test]
fn skill_test_prints_the_share_that_verification_catches() {
    let place = Place::new();
    let file = dist().join("table-profile.wasm").display().to_string();
    let ran = place.run(&["skill", "test", &file, "--mutate"]).expect(0);
    for kind in ["value", "sign", "order", "drop", "swap", "invent", "changed outcomes rejected"] {
        assert!(ran.out.contains(kind), "{kind}: {}", ran.out);
    }
}

#[test]
fn a_verification_that_catches_nothing_does_not_load() {
    use checkrein_contract::section;
    let place = Place::new();
    // The skill's own cases ask nothing of its verification once their outcome is empty.
    let bytes = std::fs::read(dist().join("quote-check.wasm")).unwrap();
    let cases = "[[case]]\nname = \"nothing\"\nsubmission = { skill = \"x\" }\noutcome = '{}'\n";
    let bytes = section::embed(&bytes, section::CASES, cases.as_bytes()).unwrap();
    let file = place.path().join("blind.wasm");
    std::fs::write(&file, bytes).unwrap();
    let ran = place.run(&["skill", "check", &file.display().to_string()]).expect(5);
    assert!(ran.out.contains("FAIL"), "{}", ran.out);
}

#[test]
fn list_says_what_verifies_what() {
    let place = Place::new();
    place.configure(
        &["document-table", "quote-check"],
        "[[verifier]]\nuse = \"quote-check\"\non = [\"document-table\"]\n",
    );
    let ran = place.run(&["skill", "list"]).expect(0);
    assert!(ran.out.contains("quote-check verifies document-table"), "{}", ran.out);
}

#[test]
fn doctor_tries_the_limits() {
    let place = Place::new();
    let found = place.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!(found["limits_hold"], true);
}

#[test]
fn limits_are_told_and_use_up_an_attempt() {
    let place = Place::new();
    place.configure(&["table-profile"], "[grant.table-profile]\nlimits = { fuel = 100_000 }\n");
    let table = place.write("t.csv", "a,b\n1,2\n");
    let input = format!("t={}", table.display());
    let ran = place.run(&["call", "table-profile", "{\"table\":\"/in/t.csv\"}", "--in", &input]).expect(3);
    assert!(ran.err.contains("fuel"), "{}", ran.err);
}
