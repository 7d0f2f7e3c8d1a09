//! Names of files that not everybody expects.

use super::*;
use std::os::unix::ffi::OsStrExt as _;

#[tokio::test]
async fn names_with_newlines_and_of_255_bytes() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::odd_names())).await;
    let notes = notes(&ran);
    assert_eq!(notes[..6], ["ok", "ok", "ok", "1", "1", "0"]);
    assert_eq!(notes[6..11], ["ok", "ok", "0", "1", "0"]);
    assert_eq!(codes(&ran)[11..], ["name-too-long", "ok", "invalid"]);
    for denial in &ran.record.denials {
        assert!(denial.what.len() < 600 && !denial.what.contains(char::is_control), "{denial:?}");
    }
    assert_eq!(count(&ran, Wall::File), 2);
}

#[tokio::test]
async fn a_name_that_is_not_utf_8_is_a_trap() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::broken_name())).await;
    assert!(matches!(&ran.end, End::Trapped(why) if why.contains("utf-8")), "{ran:?}");
}

#[tokio::test]
async fn names_in_a_granted_folder_that_are_not_utf_8_are_left_out_and_told() {
    let world = World::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xff");
    std::fs::write(world.path("granted").join(name), "x").unwrap();
    let script = guests::Script::new().list(guests::GRANTED);
    let ran = world.run(world.granting(&script.guest(&[]), Access::ReadOnly)).await;
    assert_eq!(notes(&ran), ["ok", "given", "ok"]);
    assert_eq!(count(&ran, Wall::File), 1);
    assert!(by(&ran, Wall::File)[0].what.contains("not UTF-8"));
}
