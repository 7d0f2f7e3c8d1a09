//! What must not exist, as far as the source can show it. The list stands in `host/README.md`.

use std::path::{Path, PathBuf};

use checkrein_tests::root;

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn of(name: &str) -> Vec<(PathBuf, String)> {
    sources(&root().join("host").join(name).join("src"))
}

/// Code of a file without comments, up to its unit tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn crates_depend_only_downwards() {
    let allowed: [(&str, &[&str]); 5] = [
        ("contract", &[]),
        ("store", &["checkrein-contract"]),
        ("sandbox", &["checkrein-contract"]),
        ("harness", &["checkrein-contract"]),
        ("cli", &["checkrein-contract", "checkrein-harness", "checkrein-sandbox", "checkrein-store"]),
    ];
    for (name, allowed) in allowed {
        let cargo = std::fs::read_to_string(root().join("host").join(name).join("Cargo.toml")).unwrap();
        let dependencies = cargo.split("[dependencies]").nth(1).unwrap();
        for line in dependencies.lines().filter(|line| line.starts_with("checkrein-")) {
            let dependency = line.split(['.', ' ']).next().unwrap();
            assert!(allowed.contains(&dependency), "{name} depends on {dependency}");
        }
    }
}

#[test]
fn only_the_sandbox_names_wasmtime() {
    for name in ["contract", "store", "harness", "cli"] {
        let cargo = std::fs::read_to_string(root().join("host").join(name).join("Cargo.toml")).unwrap();
        assert!(!cargo.contains("wasmtime"), "{name}/Cargo.toml names wasmtime");
        for (path, text) in of(name) {
            assert!(!code(&text).contains("wasmtime::"), "{} names wasmtime", path.display());
        }
    }
}

#[test]
fn the_contract_has_no_runtime_no_sql_and_no_http() {
    let cargo = std::fs::read_to_string(root().join("host/contract/Cargo.toml")).unwrap();
    for name in ["tokio", "rusqlite", "reqwest", "hyper"] {
        assert!(!cargo.contains(name), "contract depends on {name}");
    }
}

#[test]
fn the_core_reads_no_clock_no_chance_and_no_world() {
    let core = of("harness").into_iter().filter(|(path, _)| {
        let path = path.display().to_string();
        !path.contains("/driver")
            && !path.ends_with("/testing.rs")
            && !path.contains("/tests/")
            && !path.ends_with("/tests.rs")
    });
    for (path, text) in core {
        let code = code(&text);
        for word in ["SystemTime", "Instant::", "rand::", "tokio", "std::fs", "std::net", "std::env", "Uuid"]
        {
            assert!(!code.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn facts_are_made_in_the_gateway_and_nowhere_else() {
    for name in ["store", "sandbox", "harness", "cli"] {
        for (path, text) in of(name) {
            if path.ends_with("tests.rs") {
                continue;
            }
            let made = code(&text).contains("FactEntry {");
            let allowed = path.ends_with("harness/src/gateway.rs") || path.ends_with("report/sample.rs");
            assert!(!made || allowed, "{} makes a fact", path.display());
        }
    }
}

/// Whether some `name {…}` of this code makes a value, and does not take one apart.
fn makes(code: &str, name: &str) -> bool {
    let mut places = code.match_indices(name).map(|(at, _)| &code[at + name.len()..]);
    places.any(|rest| {
        let mut depth = 1;
        let end = rest.char_indices().find(|(_, c)| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let Some((end, _)) = end else { return true };
        let after = rest[end + 1..].trim_start();
        let pattern = rest[..end].trim_end().ends_with("..")
            || ["=>", "|", "if ", "= "].iter().any(|next| after.starts_with(next));
        !pattern
    })
}

#[test]
fn facts_are_kept_by_one_step_and_nowhere_else() {
    let name = "Event::OutcomeAccepted {";
    assert!(makes("push(Event::OutcomeAccepted { call: { x }, facts })", name));
    assert!(!makes("Event::OutcomeAccepted { call, .. } => 1, Event::OutcomeAccepted { facts } | y", name));
    let mut made = Vec::new();
    for crate_name in ["contract", "store", "sandbox", "harness", "cli"] {
        let made_here = of(crate_name).into_iter().filter(|(_, text)| makes(&code(text), name));
        made.extend(made_here.map(|(path, _)| path));
    }
    // The sample is compiled for tests only; so are the files of a folder `tests`.
    made.retain(|path| !path.ends_with("report/sample.rs") && !path.display().to_string().contains("/tests"));
    assert_eq!(made, [root().join("host/harness/src/step.rs")]);
}

#[test]
fn the_top_level_holds_only_what_it_should() {
    let known = [
        "Cargo.toml",
        "Cargo.lock",
        "host",
        "skills",
        "wit",
        "tests",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "target",
    ];
    for entry in std::fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.starts_with('.') || known.contains(&name.as_str()),
            "{name} does not belong at the top level"
        );
    }
}
