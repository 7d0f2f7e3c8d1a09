//! Runs that do not come to an end of their own: a person is needed, or somebody stops them.

use checkrein_tests::{Place, Running, dist, liar};

/// A place where `differential-expression` is the liar, with these settings.
fn place(settings: &str) -> Place {
    let place = Place::new();
    // It looks into neither.
    place.write("c.tsv", "");
    place.write("a.csv", "");
    let load = format!("[skills]\nload = [\"{}\"]\n", liar().display());
    place.write("checkrein.toml", &format!("{load}[grant.differential-expression.settings]\n{settings}\n"));
    place
}

const CALL: [&str; 7] = [
    "call",
    "differential-expression",
    "{\"counts\":\"/in/c.tsv\",\"annotation\":\"/in/a.csv\"}",
    "--in",
    "c=c.tsv",
    "--in",
    "a=a.csv",
];

#[test]
fn a_run_that_needs_a_person_says_what_for() {
    let place = place("instead = \"denied\"");
    let ran = place.run(&CALL).expect(4);
    let question = "may the skill have this? the archive of the institute";
    assert!(ran.out.contains(question) && ran.out.contains("checkrein answer"), "{}", ran.out);
    assert!(ran.err.contains(question), "{}", ran.err);
    let show = place.run(&["show", "--json"]).expect(0).json();
    assert_eq!(show["state"], "waiting");
    assert_eq!(show["stages"][0]["subgoals"][0]["asks"][0]["question"], question);
    assert_eq!(place.events_of("ask-opened").len(), 1);
    assert_eq!(place.events_of("call-ended")[0]["ended"]["failure"]["kind"], "denied");
    let _ = place.run(&["trace", "verify", "@last"]).expect(0);
}

/// A run whose only call goes on until it is stopped, and is under way.
fn under_way(place: &Place) -> Running {
    let mut running = place.start(&CALL);
    running.wait_for("attempt 1 of");
    running
}

/// `ended` is how its call did, as far as the log knows.
fn is_cut_off(place: &Place, ended: &[&str]) {
    let _ = place.run(&["trace", "verify", "@last"]).expect(0);
    assert_eq!(place.events_of("call-intended").len(), 1);
    let found = place.events_of("call-ended");
    let found: Vec<&str> = found.iter().map(|event| event["ended"]["status"].as_str().unwrap()).collect();
    assert_eq!(found, ended);
    assert!(place.events_of("run-ended").is_empty());
    let runs = place.run(&["runs"]).expect(0).out;
    assert!(runs.contains("interrupted"), "{runs}");
    // Nothing stands in the way of the next run.
    let table = place.write("t.csv", "a,b\n1,2\n").display().to_string();
    place.write(
        "checkrein.toml",
        &format!("[skills]\nload = [\"{}/table-profile.wasm\"]\n", dist().display()),
    );
    let input = format!("t={table}");
    let _ = place.run(&["call", "table-profile", "{\"table\":\"/in/t.csv\"}", "--in", &input]).expect(0);
}

#[test]
fn ctrl_c_in_the_middle_of_a_run_leaves_its_log_whole() {
    let place = place("instead = \"forever\"");
    let running = under_way(&place);
    running.signal("INT");
    let ran = running.end().expect(130);
    assert!(ran.err.contains("interrupted"), "{}", ran.err);
    is_cut_off(&place, &["cancelled"]);
}

#[test]
fn a_run_that_is_killed_leaves_its_log_whole() {
    let place = place("instead = \"forever\"");
    let running = under_way(&place);
    running.signal("KILL");
    let _ = running.end().expect(-1);
    is_cut_off(&place, &[]);
}
