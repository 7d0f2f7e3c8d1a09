//! Components that do not load: one line each, all of them, exit 5, nothing run.

use std::path::PathBuf;

use checkrein_contract::section;
use checkrein_tests::{Place, dist};

const MANIFEST: &str = "schema = \"checkrein/skill@1\"\nkind = \"skill\"\nname = \"NAME\"\nversion = \"1.0.0\"\ndescription = \"d\"\neffects = \"none\"\n";

fn write(place: &Place, name: &str, bytes: &[u8]) -> PathBuf {
    let file = place.path().join(format!("{name}.wasm"));
    std::fs::write(&file, bytes).unwrap();
    file
}

/// A component in WAT, with a manifest of this name.
fn component(name: &str, wat: &str) -> Vec<u8> {
    let bytes = wat::parse_str(wat).unwrap();
    section::embed(&bytes, section::MANIFEST, MANIFEST.replace("NAME", name).as_bytes()).unwrap()
}

#[test]
fn all_that_do_not_load_are_told_at_once() {
    let place = Place::new();
    let good = std::fs::read(dist().join("table-profile.wasm")).unwrap();
    write(&place, "empty", b"");
    write(&place, "text", b"(component)");
    write(&place, "truncated", &good[..good.len() / 2]);
    write(&place, "core", &wat::parse_str("(module)").unwrap());
    write(&place, "plain", &wat::parse_str("(component)").unwrap());
    write(&place, "no-exports", &component("no-exports", "(component)"));
    let future = "(component (import \"checkrein:skill/log@0.3.0\" (instance)))";
    write(&place, "future", &component("future", future));
    let lacking =
        "(component (import \"acme:db/query@1.0.0\" (instance)) (import \"acme:db/other@1.0.0\" (instance)))";
    write(&place, "lacking", &component("lacking", lacking));
    let twice =
        [good.as_slice(), &section::embed(&section::COMPONENT_MAGIC, section::MANIFEST, b"x").unwrap()[8..]]
            .concat();
    write(&place, "twice", &twice);
    place.write("checkrein.toml", "[skills]\nload = [\"*.wasm\"]\n");
    let task = place.write("task.toml", "schema = \"checkrein/task@1\"\nname = \"a\"\ngoal = \"g\"\n");
    let ran = place.run(&["run", &task.display().to_string()]).expect(5);
    for (file, words) in [
        ("empty", "empty"),
        ("text", "text"),
        ("truncated", ""),
        ("core", "core module"),
        ("plain", "manifest"),
        ("no-exports", "executor"),
        ("future", "0.3.0"),
        ("lacking", "acme:db/query@1.0.0"),
        ("lacking", "acme:db/other@1.0.0"),
        ("twice", "two"),
    ] {
        let told =
            ran.errors().iter().any(|error| error.contains(&format!("{file}.wasm")) && error.contains(words));
        assert!(told, "{file} ({words}) is not in\n{}", ran.err);
    }
    assert!(place.run(&["runs"]).out.is_empty());
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
