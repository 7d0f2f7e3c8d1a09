//! The book itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::Skill;
use checkrein_skill::testing::{World, call};
use ledger::Ledger;
use serde_json::json;

#[test]
fn each_call_appends_a_line_of_its_own() {
    let _world = World::new().with("/in/n.txt", "1\n");
    let folder = std::env::temp_dir().join(format!("ledger-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    for id in ["one", "two"] {
        let mut call =
            call(serde_json::from_value(json!({ "n": 1, "from": "/in/n.txt" })).unwrap());
        call.id = id.to_owned();
        call.settings = json!({ "folder": folder });
        Ledger::execute(call).unwrap();
    }
    let text = std::fs::read_to_string(folder.join("ledger.txt")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(text, "one\ntwo\n");
}
