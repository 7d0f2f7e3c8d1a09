//! Files, arguments and data of somebody who means harm, and output that goes nowhere.

use std::fs::OpenOptions;
use std::process::Command;

use checkrein_tests::{Place, root};

fn task(place: &Place, body: &str) -> String {
    let text = format!("schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n{body}");
    place.write("task.toml", &text).display().to_string()
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = place.run_with(&["doctor", "--json"], |command| {
        command.stdout(full());
    });
    let _ = ran.expect(74);
}

#[test]
fn a_task_that_is_no_file_is_not_waited_for() {
    let place = Place::new();
    let pipe = place.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.display().to_string(), "/dev/zero".to_owned()] {
        let ran = place.run(&["run", &file]).expect(1);
        assert!(ran.err.contains("no ordinary file"), "{}", ran.err);
    }
}

#[test]
fn inputs_are_ordinary_files_and_none_of_the_systems() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    for input in ["/proc/self/environ", "/dev/zero", "."] {
        let task = task(&place, &format!("[inputs]\nx = \"{input}\"\n"));
        let ran = place.run(&["run", &task]).expect(1);
        assert!(ran.err.contains("inputs"), "{input}: {}", ran.err);
    }
    assert!(!place.database().exists());
}

#[test]
fn what_is_nested_too_deep_never_gets_into_a_log() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let args = format!("{{\"table\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let ran = place.run(&["call", "table-profile", &args]).expect(1);
    assert!(ran.err.contains("nested"), "{}", ran.err);
    assert!(place.run(&["runs"]).out.is_empty());
}

#[test]
fn a_parameter_keeps_its_kind() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let task = task(&place, "[parameters]\nalpha = 0.05\n");
    for set in ["alpha=", "alpha=nan", "alpha=\"x\"", "alpha=[1]", "beta=1", "alpha"] {
        let ran = place.run(&["run", &task, "--set", set]).expect(1);
        assert!(ran.err.contains("parameters"), "{set}: {}", ran.err);
    }
}

#[test]
fn a_criterion_is_bounded() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let long = format!("count(\"a/\") > 0 && {} > 0", vec!["1"; 3000].join("+"));
    let deep = "facts('a').all(a, facts('a').all(b, facts('a').all(c, a == c)))";
    for check in [long.as_str(), deep] {
        let task = task(
            &place,
            &format!(
                "[[stage]]\nid = \"s\"\n[[stage.subgoal]]\nid = \"a\"\ngoal = \"g\"\n[[stage.subgoal.criterion]]\ntext = \"t\"\ncheck = '''{check}'''\n"
            ),
        );
        let ran = place.run(&["run", &task]).expect(1);
        assert!(ran.err.contains("allowed"), "{}", ran.err);
    }
}

#[test]
fn data_shows_itself_in_the_terminal_and_in_json() {
    let place = Place::new();
    place.configure(
        &["document-table", "quote-check"],
        "[[verifier]]\nuse = \"quote-check\"\non = [\"document-table\"]\n",
    );
    let hidden = ['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}'];
    let file = place.write("a.txt", &format!("name: {}x\n", hidden.iter().collect::<String>()));
    let args = "{\"documents\":[\"/in/a.txt\"],\"fields\":[{\"name\":\"n\",\"pattern\":\"name: (.+)\"}]}";
    let input = format!("a={}", file.display());
    let called = place.run(&["call", "document-table", args, "--in", &input]).expect(0);
    let report = place.run(&["report"]).expect(0).out;
    let html = std::fs::read_to_string(report.trim()).unwrap();
    let commands: [&[&str]; 5] = [
        &["show"],
        &["why", "@last", "documents/a/n"],
        &["trace"],
        &["trace", "--json"],
        &["report", "--json"],
    ];
    let mut outputs = vec![called.out, called.err, html];
    outputs.extend(commands.map(|args| place.run(args).expect(0).out));
    for output in outputs {
        for c in hidden {
            assert!(!output.contains(c), "{:04x} in {output:?}", u32::from(c));
        }
    }
    let facts = place.run(&["report", "--json"]).expect(0).json();
    let value = facts["facts"][0]["content"]["value"].as_str().unwrap();
    assert!(value.starts_with('\u{1b}'), "the data itself is whole: {value:?}");
}

#[test]
fn the_next_command_is_one_that_works() {
    let place = Place::new();
    let task = root().join("tests/tasks/documents/task.toml").display().to_string();
    let config = root().join("tests/tasks/documents/checkrein.toml").display().to_string();
    let state = place.state().display().to_string();
    let ran = place.run(&["run", &task, "--config", &config, "--state", &state]).expect(0);
    let next = ran.out.lines().find_map(|line| line.strip_prefix("next    checkrein ")).unwrap();
    let args: Vec<&str> = next.split(' ').collect();
    let _ = place.run(&args).expect(0);
}

#[test]
fn a_task_at_a_level_that_no_fact_reaches_is_not_done() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    place.write("t.csv", "a,b\n1,2\n");
    let task = task(
        &place,
        "[inputs]\nt = \"t.csv\"\n[[stage]]\nid = \"s\"\n[[stage.subgoal]]\nid = \"a\"\ngoal = \"g\"\nskill = \"table-profile\"\nargs = { table = { \"$in\" = \"t\" } }\n",
    );
    let ran = place.run(&["run", &task]).expect(3);
    assert!(ran.out.contains("below `independent`"), "{}", ran.out);
}

#[test]
fn a_link_in_a_strangers_state_folder_leads_nowhere() {
    let place = Place::new();
    let task = root().join("tests/tasks/documents/task.toml").display().to_string();
    let config = root().join("tests/tasks/documents/checkrein.toml").display().to_string();
    let state = place.state().display().to_string();
    let run = place.run(&["run", &task, "--config", &config, "--state", &state, "--json"]).expect(0).json();
    let reports = place.state().join("runs").join(run["run"].as_str().unwrap());
    std::fs::remove_dir_all(&reports).unwrap();
    let victim = place.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::os::unix::fs::symlink(&victim, &reports).unwrap();
    let ran = place.run(&["report", "--state", &state]).expect(74);
    assert!(ran.err.contains("is a link"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);

    std::fs::remove_file(&reports).unwrap();
    std::fs::create_dir(&reports).unwrap();
    let file = victim.join("file");
    std::fs::write(&file, "mine").unwrap();
    std::os::unix::fs::symlink(&file, reports.join("report.html")).unwrap();
    let _ = place.run(&["report", "--state", &state]).expect(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_strangers_project_brings_no_compiled_code_along() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    // As it would be packed: a cache with its key beside the configuration.
    let packed = place.state().join("cache");
    std::fs::create_dir_all(&packed).unwrap();
    std::fs::write(packed.join("key"), [7; 32]).unwrap();
    let _ = place.run(&["skill", "list"]).expect(0);
    let left: Vec<_> = std::fs::read_dir(&packed).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["key"], "nothing is read from it, and nothing put there");
    assert!(place.cache().join("key").is_file());
}

#[test]
fn what_only_looks_like_the_hosts_own_is_not_swept_away() {
    let place = Place::new();
    let scratch = place.state().join("scratch");
    for name in ["2019-summer", "40000000-x", "4194999-work"] {
        std::fs::create_dir_all(scratch.join(name)).unwrap();
    }
    let _ = place.run(&["doctor"]).expect(0);
    for name in ["2019-summer", "40000000-x", "4194999-work"] {
        assert!(scratch.join(name).is_dir(), "{name}");
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_of_the_state_is_refused() {
    let photos = tempfile::tempdir().unwrap();
    std::fs::create_dir(photos.path().join("2019-summer")).unwrap();
    for name in ["scratch", "runs"] {
        let place = Place::new();
        std::fs::create_dir_all(place.state()).unwrap();
        std::os::unix::fs::symlink(photos.path(), place.state().join(name)).unwrap();
        let ran = place.run(&["doctor"]).expect(74);
        assert!(ran.err.contains("it is a link"), "{name}: {}", ran.err);
    }
    let place = Place::new();
    std::fs::remove_dir_all(place.state()).ok();
    std::os::unix::fs::symlink(photos.path(), place.state()).unwrap();
    let ran = place.run(&["doctor"]).expect(74);
    assert!(ran.err.contains("it is a link"), "{}", ran.err);
    let left: Vec<_> =
        std::fs::read_dir(photos.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["2019-summer"]);
}
