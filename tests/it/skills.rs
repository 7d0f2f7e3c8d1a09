//! `skill build`, `inspect`, `list`, `test`, and `doctor`.

use checkrein_contract::section;
use checkrein_tests::{Place, dist, liar, root};

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
    let folder = root().join("skills/table-profile").display().to_string();
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
fn skill_test_tries_the_same_whether_or_not_it_loaded_before() {
    let place = Place::new();
    let test = |file: &std::path::Path| {
        let ran = place.run(&["skill", "test", &file.display().to_string()]).expect(0).out;
        ran.lines().find(|line| line.contains("changed outcomes rejected")).unwrap().to_owned()
    };
    // Other bytes, so that nothing remembers them.
    let bytes = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    let fresh = place.path().join("fresh.wasm");
    std::fs::write(&fresh, section::embed(&bytes, "note", b"fresh").unwrap()).unwrap();
    let first = test(&fresh);
    assert_eq!(first, test(&fresh));
    let of = |line: &str| line.split_whitespace().nth(2).unwrap().to_owned();
    assert_eq!(of(&first), of(&test(&dist().join("table-profile.wasm"))));
}

#[test]
fn skill_test_tells_what_does_not_load_from_what_fails() {
    let place = Place::new();
    place.write("text.wasm", "(component)");
    let _ = place.run(&["skill", "test", "text.wasm"]).expect(5);
    let bytes = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    let cases = "[[case]]\nname = \"no table\"\nargs = { table = \"/in/none.csv\" }\n";
    let bytes = section::embed(&bytes, section::CASES, cases.as_bytes()).unwrap();
    std::fs::write(place.path().join("failing.wasm"), bytes).unwrap();
    let ran = place.run(&["skill", "test", "failing.wasm"]).expect(6);
    assert!(ran.out.contains("FAIL  case  no table"), "{}", ran.out);
}

#[test]
fn a_verification_that_catches_nothing_does_not_load() {
    let place = Place::new();
    // The liar's own case, and a setting that makes its verification accept anything.
    let cases = std::fs::read_to_string(root().join("tests/guests/liar/cases.toml")).unwrap();
    let blind = cases.replacen("[[case]]\n", "[[case]]\nsettings = { blind = true }\n", 1);
    assert_ne!(blind, cases);
    let bytes = section::embed(&std::fs::read(liar()).unwrap(), section::CASES, blind.as_bytes()).unwrap();
    let file = place.path().join("blind.wasm");
    std::fs::write(&file, bytes).unwrap();
    let ran = place.run(&["skill", "check", &file.display().to_string()]).expect(5);
    let failed: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("FAIL")).collect();
    assert_eq!(failed.len(), 1, "{}", ran.out);
    assert!(failed[0].starts_with("FAIL  verification"), "{}", ran.out);
    let found = failed[0].split_once("none of ").unwrap().1;
    let (mutants, rest) = found.split_once(' ').unwrap();
    assert!(mutants.parse::<u32>().unwrap() > 10 && rest.starts_with("changed outcomes rejected"), "{found}");
    place.write("checkrein.toml", "[skills]\nload = [\"blind.wasm\"]\n");
    let ran = place.run(&["skill", "list"]).expect(5);
    assert!(ran.errors()[0].contains("none of "), "{}", ran.err);
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
    place.write("t.csv", "a,b\n1,2\n");
    let task = place.write(
        "task.toml",
        r#"
schema = "checkrein/task@1"
name = "limited"
goal = "profile a table"
level = "self-checked"
[inputs]
t = "t.csv"
[[stage]]
id = "s"
[[stage.subgoal]]
id = "a"
goal = "profile a table"
skill = "table-profile"
args = { table = { "$in" = "t" } }
attempts = 1
"#,
    );
    let ran = place.run(&["run", &task.display().to_string(), "--no-person"]).expect(3);
    assert!(ran.err.contains("ran into the limit `fuel`: 100,000 allowed"), "{}", ran.err);
    let ended = place.events_of("call-ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["ended"]["status"], "limited");
    assert_eq!(ended[0]["ended"]["hit"]["limit"], "fuel");
    assert_eq!(ended[0]["ended"]["hit"]["allowed"], 100_000);
    // There was one attempt, and the limit used it up.
    let closed = place.events_of("subgoal-closed");
    assert_eq!(closed[0]["closing"], serde_json::json!({ "because": "attempts-used", "attempts": 1 }));
}
