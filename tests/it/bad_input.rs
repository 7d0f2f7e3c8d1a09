//! Mistakes in task, configuration and manifest: all at once, each with its place; nothing runs.

use checkrein_tests::Place;

fn nothing_ran(place: &Place) {
    assert!(!place.database().exists() || place.run(&["runs"]).out.is_empty(), "something ran");
}

#[test]
fn all_mistakes_of_a_task_at_once() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let task = place.write(
        "task.toml",
        r#"
schema = "checkrein/task@2"
name = "a task"
gaol = "x"
mode = "readonly"
[inputs]
counts = "nowhere.tsv"
[budget]
wall = "10"
[[stage]]
id = "one"
[[stage.subgoal]]
id = "a"
goal = "g"
after = ["b", "z"]
attempts = 9
args = { x = { "$in" = "cuonts" }, y = { "$param" = "alpha" }, z = { "$artifact" = "c/x" } }
[[stage.subgoal.criterion]]
text = "t"
check = 'fact("a").n >'
[[stage.subgoal]]
id = "b"
goal = "g"
after = ["a"]
[[stage.subgoal.criterion]]
text = "t"
check = "1 < 2"
"#,
    );
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    let errors = ran.errors();
    for place in [
        "2:10 schema",
        "3:8 name",
        "4:1 gaol",
        "goal: schema: expected a text, found nothing",
        "5:8 mode",
        "nowhere.tsv",
        "wall",
        "attempts",
        "comes after `z`",
        "comes after itself",
        "`cuonts`",
        "`alpha`",
        "`c/x`",
        "20:9 stage[0].subgoal[0].criterion[0].check",
        "27:9 stage[0].subgoal[1].criterion[0].check",
    ] {
        let found = errors.iter().any(|error| error.contains(place));
        assert!(found, "`{place}` is not in\n{}", errors.join("\n"));
    }
    assert!(errors.iter().all(|error| error.contains("task.toml:")));
    nothing_ran(&place);
}

#[test]
fn a_key_that_is_nearly_right_is_suggested() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let task = place.write(
        "task.toml",
        "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\nmoed = \"read-only\"\n",
    );
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    assert!(ran.err.contains("did you mean `mode`?"), "{}", ran.err);
}

#[test]
fn all_mistakes_of_a_configuration_at_once() {
    let place = Place::new();
    place.configure(
        &["table-profile"],
        r#"
[grant.table-profile]
network = ["GET https://example.org/*", "example.org"]
files = ["rw data"]
secrets = [{ name = "k", host = "example.org", header = "host", env = "HOME" }]
clock = "fast"
effects = "none"
max-score = 200
facts = ["profile*"]
limits = { memory = "much", fule = 1 }
[[verifier]]
use = "x"
[[verifiers]]
use = "y"
"#,
    );
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    for what in [
        "did you mean \"https://example.org\"?",
        "`data` is not absolute",
        "grant.table-profile.secrets[0].header",
        "grant.table-profile.secrets[0].env",
        "grant.table-profile.clock",
        "grant.table-profile.effects",
        "max-score",
        "facts",
        "memory",
        "did you mean `fuel`?",
        "verifier[0].on",
        "`verifiers`",
    ] {
        assert!(ran.errors().iter().any(|error| error.contains(what)), "`{what}` is not in\n{}", ran.err);
    }
    nothing_ran(&place);
}

#[test]
fn what_can_never_match_stops_the_start() {
    let place = Place::new();
    place.configure(
        &["table-profile", "statistics-recheck"],
        r#"
[grant.tabel-profile]
[grant.table-profile]
facts = ["de/*"]
[[verifier]]
use = "statistic-recheck"
on = ["table-profle"]
[[verifier]]
use = "statistics-recheck"
on-facts = ["nothing/*"]
"#,
    );
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    for what in [
        "did you mean `table-profile`?",
        "grant.table-profile.facts",
        "did you mean `statistics-recheck`?",
        "verifier[0].on",
        "nothing/*",
    ] {
        assert!(ran.errors().iter().any(|error| error.contains(what)), "`{what}` is not in\n{}", ran.err);
    }
    nothing_ran(&place);
}

#[test]
fn a_skill_that_the_task_names_must_be_loaded() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let text = "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n[[stage]]\nid = \"s\"\n[[stage.subgoal]]\nid = \"a\"\ngoal = \"g\"\nskill = \"table-profil\"\n";
    let task = place.write("task.toml", text);
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    assert!(ran.err.contains("did you mean `table-profile`?"), "{}", ran.err);
    nothing_ran(&place);
}

#[test]
fn a_malformed_placeholder_is_found_before_the_run() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    place.write("report.md", "a {{fact:de/summary | dgits 3}} b");
    let text = "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n[report]\ntext = \"report.md\"\n";
    let task = place.write("task.toml", text);
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    assert!(ran.err.contains("report.text"), "{}", ran.err);
    nothing_ran(&place);
}

#[test]
fn all_mistakes_of_a_manifest_at_once() {
    let place = Place::new();
    place.write("mine/Cargo.toml", "[package]\nname = \"mine\"\nversion = \"0.1.0\"\n");
    place.write("mine/skill.toml", "schema = \"checkrein/skill@1\"\nkind = \"skil\"\nname = \"my skill\"\nversion = \"1\"\neffects = \"none\"\nautor = \"me\"\n");
    let ran = place.run(&["skill", "build", "mine"]).expect(1);
    for what in ["2:8 kind", "3:8 name", "4:11 version", "description", "autor"] {
        assert!(ran.errors().iter().any(|error| error.contains(what)), "`{what}` is not in\n{}", ran.err);
    }
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let task = place.write("task.toml", "schema = 1\n");
    let error = place.run(&["run", &task.display().to_string(), "--json"]).expect(1).json();
    assert_eq!(error["schema"], "checkrein/error@1");
    let keys: Vec<&String> = error["faults"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["file", "place", "stage", "expected", "found", "mend"]);
    let error = place.run(&["call", "tabel-profile", "{}", "--json"]).expect(1).json();
    assert_eq!(error["hint"], "did you mean `table-profile`?");
}

#[test]
fn two_inputs_of_one_file_name_are_refused_before_the_run() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let one = format!("one={}", place.write("a/t.csv", "a\n1\n").display());
    let two = format!("two={}", place.write("b/t.csv", "b\n2\n").display());
    let args = ["call", "table-profile", "{\"table\":\"/in/t.csv\"}", "--in", &one, "--in", &two];
    let ran = place.run(&args).expect(1);
    for words in [&one, &two, "/in/t.csv"] {
        assert!(ran.errors()[0].contains(words), "`{words}` is not in\n{}", ran.err);
    }
    nothing_ran(&place);
    let again = format!("one={}", place.write("b/u.csv", "b\n2\n").display());
    let args = ["call", "table-profile", "{\"table\":\"/in/t.csv\"}", "--in", &one, "--in", &again];
    let ran = place.run(&args).expect(1);
    assert!(ran.errors()[0].contains(&one) && ran.errors()[0].contains(&again), "{}", ran.err);
    nothing_ran(&place);
}

#[test]
fn what_a_file_says_does_not_reach_the_terminal_as_it_came() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let task = place.write(
        "task.toml",
        "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n\"x\\u001b[2J\\nerror: \\u202e\" = 1\n",
    );
    let ran = place.run(&["run", &task.display().to_string()]).expect(1);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(!ran.err.contains(['\u{1b}', '\u{202e}']) && ran.err.contains("\\u{"), "{:?}", ran.err);
}

#[test]
fn usage_mistakes_end_with_2_and_help_shows_an_example() {
    let place = Place::new();
    let _ = place.run(&["rnu"]).expect(2);
    let commands = [
        &["demo"][..],
        &["run"],
        &["runs"],
        &["show"],
        &["report"],
        &["why"],
        &["trace"],
        &["trace", "verify"],
        &["call"],
        &["skill", "build"],
        &["skill", "check"],
        &["skill", "inspect"],
        &["skill", "list"],
        &["skill", "test"],
        &["doctor"],
        &["try"],
        &["policy", "show"],
        &["policy", "lint"],
        &["policy", "explain"],
    ];
    for command in commands {
        let mut args = command.to_vec();
        args.push("--help");
        let help = place.run(&args).expect(0).out;
        assert!(help.contains("Example"), "{command:?}: {help}");
    }
}
