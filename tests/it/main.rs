//! The whole, from outside: what is typed, what is printed, what is left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod amend;
mod architecture;
mod asks;
mod attempt;
mod bad_component;
mod bad_input;
mod budgets;
mod cancel;
mod concurrency;
mod counts;
mod crash;
mod demo;
mod documents;
mod dry;
mod endings;
mod follow;
mod hostile;
mod lies;
mod loading;
mod operator;
mod policy;
mod replay;
mod resume;
mod scale;
mod skills;
mod storage;
mod storage_run;
mod supervised;
mod trace;
mod workers;

#[test]
fn every_file_here_is_a_module() {
    let folder = checkrein_tests::root().join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || main.contains(&format!("mod {module};")),
            "`{name}` is not run: add `mod {module};`"
        );
    }
}
