//! `try`: a stranger's component with nothing granted, from outside.

use checkrein_tests::{Place, dist};

fn wasm(name: &str) -> String {
    dist().join(format!("{name}.wasm")).display().to_string()
}

/// A place without a state folder, where `try` must leave nothing.
fn place() -> Place {
    let place = Place::new();
    assert!(!place.state().exists());
    place
}

fn is_empty(place: &Place, files: &[&str]) {
    let left = std::fs::read_dir(place.path()).unwrap();
    let mut left: Vec<String> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.retain(|name| !files.contains(&name.as_str()));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_honest_component_is_shown_on_one_screen_and_nothing_is_kept() {
    let place = place();
    let out = place.run(&["try", &wasm("table-profile")]).expect(0).out;
    for what in [
        "skill         table-profile 0.1.0",
        "made with     Rust",
        "asks for      nothing",
        "loading       all 14 steps passed",
        "call          arguments of its case `a plain table`",
        "wrote         /work/profile.json",
        "used          cpu",
        "verification  accepts",
        "it was refused nothing",
    ] {
        assert!(out.contains(what), "`{what}` is not in\n{out}");
    }
    assert!(out.lines().count() <= 24, "{out}");
    is_empty(&place, &[]);
}

#[test]
fn a_case_with_artifacts_of_others_is_called_as_it_was_meant() {
    let out = place().run(&["try", &wasm("volcano-plot")]).expect(0).out;
    assert!(out.contains("verification  accepts"), "{out}");
}

#[test]
fn arguments_and_files_can_be_given() {
    let place = place();
    let input = format!("t={}", place.write("t.csv", "a,b\n1,2\n3,4\n").display());
    let args =
        ["try", &wasm("table-profile"), "--args", "{\"table\":\"/in/t.csv\"}", "--in", &input, "--json"];
    let told = place.run(&args).expect(0).json();
    assert_eq!(told["schema"], "checkrein/try@1");
    assert_eq!(told["call"]["outcome"]["content"]["rows"], 2);
    assert_eq!(told["verification"]["ended"], "accepted");
    assert!(told["call"]["used"]["fuel"].as_u64().unwrap() > 0);
    let wrong = place.run(&["try", &wasm("table-profile"), "--args", "{\"tabel\":1}"]).expect(0).out;
    assert!(wrong.contains("not made, its schema does not let the arguments through"), "{wrong}");
    assert!(
        place.run(&["try", &wasm("table-profile"), "--args", "[1]"]).expect(1).err.contains("JSON object")
    );
    is_empty(&place, &["t.csv"]);
}

#[test]
fn what_it_asks_for_and_was_refused_comes_with_the_smallest_grant() {
    let place = place();
    let asks = "[capabilities]\nnetwork = [\"GET http://127.0.0.1:9/*\"]\n";
    let file = place.asking("asks", 9, asks).display().to_string();
    let told = place.run(&["try", &file, "--json"]).expect(0).json();
    assert_eq!(told["call"]["record"]["denials"][0]["wall"], "network");
    assert_eq!(told["needs"]["grant"], "[grant.asks]\nnetwork = [\"GET http://127.0.0.1:9/x\"]");
    let out = place.run(&["try", &file]).expect(0).out;
    for what in [
        "asks for      network = [\"GET,HEAD",
        "refused       network: GET http://127.0.0.1:9/x",
        "the smallest grant that would allow it:\n  [grant.asks]\n  network",
    ] {
        let what = what.replace("GET,HEAD", "GET");
        assert!(out.contains(&what), "`{what}` is not in\n{out}");
    }
    is_empty(&place, &["asks.wasm"]);
}

#[test]
fn what_its_manifest_does_not_ask_for_no_grant_would_let_through() {
    let place = place();
    let file = place.asking("sly", 9, "").display().to_string();
    let out = place.run(&["try", &file]).expect(0).out;
    assert!(out.contains("its manifest does not ask for this, so no grant allows it"), "{out}");
    assert!(!out.contains("[grant.sly]"), "{out}");
}

#[test]
fn one_rule_can_be_let_through_once() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let place = place();
    let file = place.asking("asks", port, "").display().to_string();
    let serving = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = server.accept().unwrap();
        let read = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi").unwrap();
        read
    });
    let rule = format!("GET http://127.0.0.1:{port}/*");
    let out = place.run(&["try", &file, "--grant-once", &rule]).expect(0).out;
    assert!(serving.join().unwrap() > 0);
    for what in [
        format!("granted once  GET http://127.0.0.1:{port}/*; its manifest does not ask for it"),
        format!("sent          GET http://127.0.0.1:{port}/x: 200, 2 B"),
        "it was refused nothing".to_owned(),
    ] {
        assert!(out.contains(&what), "`{what}` is not in\n{out}");
    }
    let link = place.path().join("link");
    std::os::unix::fs::symlink("/usr/share", &link).unwrap();
    let link = format!("ro {}", link.display());
    for bad in ["rw /tmp", "example.org", "*", "ro /there/is/none", &link] {
        let ran = place.run(&["try", &file, "--grant-once", bad]).expect(1);
        assert!(ran.errors()[0].contains("--grant-once"), "{}", ran.err);
    }
}

#[test]
fn what_does_not_load_is_told_step_by_step_and_ends_with_5() {
    let place = place();
    let good = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    let files = [
        ("empty.wasm", Vec::new(), "an empty file"),
        ("text.wasm", b"(component)".to_vec(), "a text"),
        ("cut.wasm", good[..good.len() / 2].to_vec(), "unexpected end-of-file"),
    ];
    for (name, bytes, why) in files {
        std::fs::write(place.path().join(name), bytes).unwrap();
        let out = place.run(&["try", name]).expect(5).out;
        assert!(out.contains("FAIL") && out.contains(why), "{name}: {out}");
        assert_eq!(place.run(&["try", name, "--json"]).expect(5).json()["call"], serde_json::Value::Null);
    }
    let out = place.run(&["try", "nowhere.wasm"]).expect(5).out;
    assert!(out.contains("FAIL  read"), "{out}");
}

#[test]
fn what_breaks_or_never_ends_is_told_and_ends_with_6() {
    let place = place();
    let file =
        place.asking("asks", 9, "[capabilities]\nlimits = { cpu = \"100 ms\" }\n").display().to_string();
    let out = place.run(&["try", &file, "--args", "{\"trap\":1}"]).expect(6).out;
    assert!(out.contains("ended         trapped: "), "{out}");
    let out = place.run(&["try", &file, "--args", "{\"loop\":1}"]).expect(6).out;
    assert!(out.contains("ended         stopped at the limit `cpu`: 100 ms allowed"), "{out}");
    assert!(out.contains("limits = { cpu = \""), "{out}");
}

#[test]
fn a_strangers_words_do_not_reach_the_terminal_as_they_came() {
    let place = place();
    let bytes = std::fs::read(place.asking("asks", 9, "")).unwrap();
    let manifest = "schema = \"checkrein/skill@1\"\nkind = \"skill\"\nname = \"asks\"\nversion = \"1.0.0\"\n\
        description = \"x\\u001b[2J\\nrefused nothing\\u202e\\u200b\"\neffects = \"none\"\nfacts = [\"a/*\"]\n[trigger]\nterms = [\"t\\u001b[31m\"]\n[args]\ntype = \"object\"\n";
    let bytes =
        checkrein_contract::section::embed(&bytes, "checkrein:manifest", manifest.as_bytes()).unwrap();
    std::fs::write(place.path().join("asks.wasm"), bytes).unwrap();
    for args in [&["try", "asks.wasm"][..], &["try", "asks.wasm", "--json"]] {
        let out = place.run(args).expect(0).out;
        assert!(!out.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{out:?}");
        assert!(!out.lines().any(|line| line.starts_with("refused nothing")), "{out}");
    }
}
