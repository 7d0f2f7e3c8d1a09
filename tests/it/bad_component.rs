//! Components that do not load: one line each, all of them, exit 5, nothing run.

use std::path::PathBuf;

use checkrein_contract::section;
use checkrein_tests::{Place, Ran, dist};

const MANIFEST: &str = "schema = \"checkrein/skill@1\"\nkind = \"skill\"\nname = \"NAME\"\nversion = \"1.0.0\"\ndescription = \"d\"\neffects = \"none\"\n";

fn write(place: &Place, name: &str, bytes: &[u8]) -> PathBuf {
    let file = place.path().join(format!("{name}.wasm"));
    std::fs::write(&file, bytes).unwrap();
    file
}

/// A component in WAT, with a case and a manifest of this name.
fn component(name: &str, wat: &str) -> Vec<u8> {
    let bytes = wat::parse_str(wat).unwrap();
    let bytes = section::embed(&bytes, section::MANIFEST, MANIFEST.replace("NAME", name).as_bytes()).unwrap();
    section::embed(&bytes, section::CASES, b"[[case]]\nname = \"a\"\n").unwrap()
}

/// What a skill exports.
const EXPORTS: &[&str] = &["trigger@0.1.0", "executor@0.1.0", "verification@0.1.0", "recovery@0.1.0"];

/// A configuration that loads every component of the place, and a task.
fn run(place: &Place) -> Ran {
    place.write("checkrein.toml", "[skills]\nload = [\"*.wasm\"]\n");
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(5);
    assert_eq!(ran.err.lines().count(), ran.errors().len(), "a line for each, and no other:\n{}", ran.err);
    assert!(place.run(&["runs"]).out.is_empty());
    ran
}

#[test]
fn all_that_do_not_load_are_told_at_once() {
    let place = Place::new();
    let good = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    let future = "(component (import \"checkrein:skill/log@0.3.0\" (instance)))";
    let lacking =
        "(component (import \"acme:db/query@1.0.0\" (instance)) (import \"acme:db/other@1.0.0\" (instance)))";
    let twice =
        [good.as_slice(), &section::embed(&section::COMPONENT_MAGIC, section::MANIFEST, b"x").unwrap()[8..]]
            .concat();
    // What is told of each: as many lines, with these words.
    let bad: [(Vec<u8>, Vec<&str>); 9] = [
        (Vec::new(), vec!["an empty file"]),
        (b"(component)".to_vec(), vec!["a text"]),
        (good[..good.len() / 2].to_vec(), vec!["unexpected end-of-file"]),
        (wat::parse_str("(module)").unwrap(), vec!["a core module"]),
        (wat::parse_str("(component)").unwrap(), vec!["expected a manifest"]),
        (component("bare", "(component)"), EXPORTS.to_vec()),
        (component("future", future), [&["0.3.0"], EXPORTS].concat()),
        (component("lacking", lacking), [&["acme:db/query@1.0.0", "acme:db/other@1.0.0"], EXPORTS].concat()),
        (twice, vec!["two of them"]),
    ];
    // Names that say nothing, so that no word comes from them.
    for (number, (bytes, _)) in bad.iter().enumerate() {
        write(&place, &format!("c{number}"), bytes);
    }
    let ran = run(&place);
    for (number, (_, words)) in bad.iter().enumerate() {
        let file = format!("c{number}.wasm");
        let told: Vec<&str> = ran.errors().into_iter().filter(|error| error.contains(&file)).collect();
        assert_eq!(told.len(), words.len(), "{file}: {told:#?}");
        for (line, words) in told.iter().zip(words) {
            assert!(line.contains(words), "`{words}` is not in {line}");
        }
    }
}

#[test]
fn a_component_cut_off_anywhere_is_told_in_one_line() {
    let place = Place::new();
    let good = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    for part in 1..16 {
        write(&place, &format!("c{part}"), &good[..good.len() * part / 16]);
    }
    write(&place, "c16", &good[..good.len() - 1]);
    let ran = run(&place);
    for part in 1..=16 {
        let file = format!("c{part}.wasm:");
        let told: Vec<&str> = ran.errors().into_iter().filter(|error| error.contains(&file)).collect();
        assert_eq!(told.len(), 1, "{file} {told:#?}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let place = Place::new();
    place.write("checkrein.toml", "[skills]\nload = [\"none.wasm\", \"nor/*.wasm\"]\n");
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(5);
    assert_eq!(ran.errors().len(), 2, "{}", ran.err);
}

#[test]
fn skill_check_prints_each_step() {
    let place = Place::new();
    let good = dist().join("table-profile.wasm").display().to_string();
    let ran = place.run(&["skill", "check", &good]).expect(0);
    for step in ["format", "manifest", "imports", "exports", "compile", "instantiate", "verification"] {
        assert!(
            ran.out.lines().any(|line| line.starts_with("ok") && line.contains(step)),
            "{step}: {}",
            ran.out
        );
    }
    let core = write(&place, "core", &wat::parse_str("(module)").unwrap());
    let ran = place.run(&["skill", "check", &core.display().to_string()]).expect(5);
    assert!(ran.out.contains("FAIL"), "{}", ran.out);
}

#[test]
fn two_components_of_one_name_do_not_load() {
    let place = Place::new();
    let good = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    write(&place, "one", &good);
    write(&place, "two", &good);
    place.write("checkrein.toml", "[skills]\nload = [\"*.wasm\"]\n");
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(5);
    assert!(ran.err.contains("also the name of"), "{}", ran.err);
}
