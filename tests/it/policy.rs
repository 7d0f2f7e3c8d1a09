//! Grants: what is asked for, granted and got; what can never match; what a refusal would need.

use std::io::{Read, Write};
use std::net::TcpListener;

use checkrein_tests::Place;

const ASKS: &str =
    "[capabilities]\nnetwork = [\"GET,POST https://api.example/*\"]\nfiles = [\"ro /usr/share\"]\n";

fn place(grant: &str) -> Place {
    let place = Place::new();
    place.asking("asks", 1, ASKS);
    place.write("checkrein.toml", &format!("[skills]\nload = [\"*.wasm\"]\n{grant}"));
    place
}

#[test]
fn show_tells_requested_granted_and_effective() {
    let place = place(
        "[grant.asks]\nnetwork = [\"POST https://api.example/v1/*\"]\nmax-score = 40\nlimits = { wall = \"1 min\" }\n",
    );
    let out = place.run(&["policy", "show"]).expect(0).out;
    let line = |key: &str| out.lines().find(|line| line.trim_start().starts_with(key)).unwrap().to_owned();
    assert!(line("network").contains("GET,POST https://api.example/*"), "{out}");
    assert!(line("network").matches("POST https://api.example/v1/*").count() == 2, "{out}");
    assert!(line("files").contains("ro /usr/share") && line("files").trim_end().ends_with('-'), "{out}");
    assert!(line("effects").contains("none") && line("effects").contains("irreversible"), "{out}");
    assert!(line("max-score").contains("40") && line("limits").contains("wall 60.0 s"), "{out}");
    let json = place.run(&["policy", "show", "asks", "--json"]).expect(0).json();
    assert_eq!(json["components"][0]["effective"]["reach"]["network"][0], "POST https://api.example/v1/*");
    assert_eq!(json["components"][0]["effective"]["effects"], "irreversible");
    let ran = place.run(&["policy", "show", "ask"]).expect(1);
    assert!(ran.err.contains("did you mean `asks`?"), "{}", ran.err);
}

#[test]
fn a_grant_that_can_never_match_stops_the_start_with_the_likely_correction() {
    let place = place(
        "[grant.asks]\nnetwork = [\"GET https://api.exmaple/*\"]\nfiles = [\"ro /usr/share/there-is-none\"]\nclock = \"real\"\n",
    );
    let ran = place.run(&["call", "asks", "{}"]).expect(1);
    for what in [
        "its manifest asks for: network = [\"GET,POST https://api.example/*\"]",
        "\"ro /usr/share/there-is-none\", which is not there: make it",
        "its manifest asks for no real clock; remove it",
    ] {
        assert!(ran.errors().iter().any(|error| error.contains(what)), "`{what}` is not in\n{}", ran.err);
    }
    assert_eq!(ran.errors().len(), 3, "{}", ran.err);
    let lint = place.run(&["policy", "lint"]).expect(6);
    assert_eq!(lint.out.lines().filter(|line| line.starts_with("FAIL")).count(), 3, "{}", lint.out);
    assert_eq!(place.run(&["policy", "lint", "--json"]).expect(6).json()["holds"], false);
}

/// What the start and lint say of a skill that asks for a folder and is granted it.
fn told_of(place: &Place, grant: &str, more: &[&str]) -> String {
    place.asking("asks", 1, &format!("[capabilities]\nfiles = [\"{grant}\"]\n"));
    let files = format!("[skills]\nload = [\"*.wasm\"]\n[grant.asks]\nfiles = [\"{grant}\"]\n");
    place.write("checkrein.toml", &files);
    let with = |args: &[&str]| place.run(&[args, more].concat());
    let errors = with(&["call", "asks", "{}"]).expect(1).errors().join("\n");
    let lint = with(&["policy", "lint"]).expect(6).out;
    let told = lint.lines().find(|line| line.starts_with("FAIL")).unwrap().to_owned();
    let why = told.split_once(", which ").unwrap().1;
    assert!(errors.contains(why), "{errors}\n{told}");
    told
}

#[test]
fn a_grant_over_the_configuration_stops_the_start_wherever_the_state_is() {
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().join("state").display().to_string();
    let place = Place::new();
    let grant = format!("rw {}", place.path().display());
    let told = told_of(&place, &grant, &["--state", &state]);
    assert!(told.contains("checkrein.toml, which no component may write"), "{told}");
}

#[test]
fn a_grant_over_a_component_or_the_state_stops_the_start() {
    let place = Place::new();
    let blobs = place.state().join("blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    for access in ["ro", "rw"] {
        let told = told_of(&place, &format!("{access} {}", blobs.display()), &[]);
        assert!(told.contains("where the sandbox keeps its own files"), "{told}");
    }
    let other = tempfile::tempdir().unwrap();
    let linked = place.asking("linked", 1, "");
    std::fs::rename(&linked, other.path().join("linked.wasm")).unwrap();
    std::os::unix::fs::symlink(other.path().join("linked.wasm"), &linked).unwrap();
    let told = told_of(&place, &format!("rw {}", other.path().display()), &[]);
    assert!(told.contains("linked.wasm, which no component may write"), "{told}");
}

#[test]
fn a_grant_over_the_operators_file_or_a_secret_stops_the_start() {
    let place = Place::new();
    let own = place.operator("[secrets.api]\nfile = \"keys/api\"\n");
    let keys = own.with_file_name("keys");
    std::fs::create_dir(&keys).unwrap();
    std::fs::write(keys.join("api"), "hush-hush-hush").unwrap();
    for folder in [own.parent().unwrap(), &keys] {
        for access in ["ro", "rw"] {
            let told = told_of(&place, &format!("{access} {}", folder.display()), &[]);
            assert!(told.contains("which no component may "), "{told}");
        }
    }
}

#[test]
fn a_grant_of_a_link_stops_the_start() {
    let place = Place::new();
    let data = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(data.path(), &link).unwrap();
    let told = told_of(&place, &format!("ro {}", link.display()), &[]);
    assert!(told.contains("name the folder itself"), "{told}");
}

#[test]
fn lint_tries_each_rule_at_what_it_must_and_must_not_allow() {
    let place =
        place("[grant.asks]\nnetwork = [\"GET https://api.example/v1/*\"]\nfiles = [\"ro /usr/share\"]\n");
    let json = place.run(&["policy", "lint", "--json"]).expect(0).json();
    let rules = json["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    for rule in rules {
        let tries = rule["tries"].as_array().unwrap();
        let misses = tries.iter().filter(|one| one["expected"] == "refuses");
        assert!(misses.count() >= 3, "{rule}");
        assert!(tries.iter().all(|one| one["expected"] == one["found"]), "{rule}");
        assert_eq!(tries[0]["found"], "allows");
    }
    let out = place.run(&["policy", "lint"]).expect(0).out;
    for what in [
        "ok    allows   GET https://api.example/v1/x",
        "ok    refuses  GET http://api.example:443/v1/x  (scheme)",
    ] {
        assert!(out.contains(what), "`{what}` is not in\n{out}");
    }
}

#[test]
fn what_was_refused_is_explained_with_a_grant_that_mends_it() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let place = Place::new();
    place.asking("asks", port, &format!("[capabilities]\nnetwork = [\"GET http://127.0.0.1:{port}/*\"]\n"));
    let load = "[skills]\nload = [\"*.wasm\"]\n";
    place.write("checkrein.toml", load);
    let ran = place.run(&["call", "asks", "{}"]);
    assert!(ran.err.contains("refused, network: GET http://127.0.0.1"), "nothing fails quietly: {}", ran.err);
    let explained = place.run(&["policy", "explain", "--json"]).expect(0).json();
    let one = &explained["components"][0];
    let grant = one["grant"].as_str().unwrap();
    assert_eq!(grant, format!("[grant.asks]\nnetwork = [\"GET http://127.0.0.1:{port}/x\"]"));
    let call = one["calls"][0]["call"].as_str().unwrap();
    let out = place.run(&["policy", "explain", "@last", call]).expect(0).out;
    assert!(out.contains("the smallest grant that would allow it"), "{out}");
    assert!(place.run(&["policy", "explain", "@last", "none/such/1"]).expect(1).err.contains("no call"));
    for text in [place.run(&["show"]).out, place.run(&["trace"]).out] {
        assert!(text.contains("refused, network: GET"), "{text}");
    }
    // Pasted as it is, it holds, and the request is answered.
    place.write("checkrein.toml", &format!("{load}{grant}\n"));
    let _ = place.run(&["policy", "lint"]).expect(0);
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let read = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi").unwrap();
        read
    });
    let ran = place.run(&["call", "asks", "{}"]);
    assert!(!ran.err.contains("refused"), "{}", ran.err);
    assert!(serving.join().unwrap() > 0);
    for text in [place.run(&["show"]).out, place.run(&["trace"]).out] {
        assert!(text.contains(&format!("GET http://127.0.0.1:{port}/x: 200, 2 B")), "{text}");
    }
    let out = place.run(&["policy", "explain"]).expect(0).out;
    assert_eq!(out.trim(), "nothing was refused, and no limit fired");
}

#[test]
fn a_limit_that_fired_is_explained_with_a_higher_one() {
    let place = place("[grant.asks]\nlimits = { cpu = \"50 ms\" }\n");
    let _ = place.run(&["call", "asks", "{\"loop\":1}"]).expect(3);
    let explained = place.run(&["policy", "explain", "--json"]).expect(0).json();
    let one = &explained["components"][0];
    assert_eq!(one["calls"][0]["limit"]["limit"], "cpu");
    assert!(one["grant"].as_str().unwrap().contains("limits = { cpu = \""), "{one}");
}

#[test]
fn a_read_only_task_drops_what_could_change_something() {
    let place =
        place("[grant.asks]\nnetwork = [\"GET,POST https://api.example/*\"]\nfiles = [\"ro /usr/share\"]\n");
    let task = "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\nmode = \"MODE\"\n[[stage]]\nid = \"s\"\n[[stage.subgoal]]\nid = \"a\"\ngoal = \"g\"\nskill = \"asks\"\nlevel = \"self-checked\"\n";
    for (mode, network, effects) in [
        ("read-only", "GET https://api.example/*", "none"),
        ("read-write", "GET,POST https://api.example/*", "irreversible"),
    ] {
        let file = place.write("task.toml", &task.replace("MODE", mode)).display().to_string();
        let _ = place.run(&["run", &file]);
        let started = &place.events_of("run-started")[0];
        let card = &started["setup"]["skills"][0];
        assert_eq!((&card["granted"]["network"][0], &card["effects"]), (&network.into(), &effects.into()));
        // With effects it waits for a person; without, it is called.
        assert_eq!(place.events_of("call-intended").len(), usize::from(mode == "read-only"));
    }
}
