//! Folders of the host that were granted.

use std::sync::Arc;

use super::*;
use crate::testing::{MemoryBlobs, places_in};
use crate::{Options, Protected};

#[tokio::test]
async fn a_granted_folder_is_seen_under_its_own_path() {
    let world = World::new();
    let script = guests::Script::new()
        .open(guests::GRANTED, "given", 0, guests::READ)
        .read()
        .create(guests::GRANTED, "new")
        .write_text("written")
        // The last folder's name, by its length.
        .raw("(call $note (i64.extend_i32_u (i32.load offset=44 (global.get $dirs))))");
    let path = world.path("granted");
    let ran = world.run(world.granting(&script.guest(&[]), Access::ReadWrite)).await;
    assert_eq!(notes(&ran), ["ok", "ok", "5", "ok", "ok", &path.to_str().unwrap().len().to_string()]);
    assert_eq!(std::fs::read_to_string(path.join("new")).unwrap(), "written");
    assert!(ran.record.denials.is_empty() && ran.record.exchanges.is_empty(), "{:?}", ran.record);
}

async fn fault(world: &World, folder: &Path) -> String {
    let mut setting = world.setting(&Guest::default());
    let path = folder.to_str().unwrap().to_owned();
    setting.granted.files = vec![Folder { access: Access::ReadOnly, path }];
    let ran = world.sandbox.execute(setting, call()).await;
    let End::Fault(why) = ran.end else { panic!("{ran:?}") };
    assert!(why.contains(&format!("files = [\"ro {}\"]", folder.display())), "{why}");
    assert_eq!(entries(&world.sandbox.0.scratch), Vec::<String>::new());
    why
}

#[tokio::test]
async fn a_granted_folder_that_is_none_is_told_with_its_grant() {
    let world = World::new();
    assert!(fault(&world, &world.path("absent")).await.contains("is not there: make it"));
    assert!(fault(&world, &world.path("outside")).await.contains("is no folder"));
    std::os::unix::fs::symlink(world.path("granted"), world.path("link")).unwrap();
    assert!(fault(&world, &world.path("link")).await.contains("or a link"));
}

#[tokio::test]
async fn the_sandboxs_own_places_are_not_granted() {
    let world = World::new();
    let scratch = world.sandbox.0.scratch.clone();
    let cache = world.sandbox.0.cache.as_ref().unwrap().folder().to_owned();
    std::fs::create_dir(cache.join("inner")).unwrap();
    for folder in [&scratch, &cache, scratch.parent().unwrap(), &cache.join("inner")] {
        let why = fault(&world, folder).await;
        assert!(why.contains("where the sandbox keeps its own files"), "{why}");
    }
    // By whatever way it is named.
    let alias = world.path("alias");
    std::os::unix::fs::symlink(scratch.parent().unwrap(), &alias).unwrap();
    assert!(fault(&world, &alias.join("cache")).await.contains("where the sandbox keeps its own files"));
}

#[tokio::test]
async fn what_the_host_protects_is_not_granted_to_a_call() {
    let mut world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let with = |protected: Protected| {
        let options = Options { protected: vec![protected], ..Options::new(places_in(&folder)) };
        Sandbox::new(options, Arc::new(MemoryBlobs::default())).unwrap()
    };
    let granted = world.path("granted");
    world.sandbox = with(Protected::Unread(granted.join("given")));
    assert!(fault(&world, &granted).await.contains("which no component may read"));
    world.sandbox = with(Protected::Folder(granted.join("absent")));
    assert!(fault(&world, &granted).await.contains("where the sandbox keeps its own files"));
    // What may be read is given to who only reads it.
    world.sandbox = with(Protected::Unwritten(granted.join("given")));
    let script = guests::Script::new().open(guests::GRANTED, "given", 0, guests::READ).read();
    let guest = script.guest(&[]);
    let ran = world.run(world.granting(&guest, Access::ReadOnly)).await;
    assert_eq!(notes(&ran), ["ok", "ok", "5"]);
    let ran = world.sandbox.execute(world.granting(&guest, Access::ReadWrite), call()).await;
    let End::Fault(why) = ran.end else { panic!("{ran:?}") };
    assert!(why.contains("which no component may write"), "{why}");
}

#[tokio::test]
async fn triggers_and_recoveries_have_no_granted_folder() {
    let world = World::new();
    let mut guest = guests::dot_dot();
    let none = "(call $folders (global.get $ret))
        (if (i32.load offset=4 (global.get $ret)) (then unreachable))";
    guest.assess = format!("{none} {}", guest.assess);
    guest.recover = format!("{none} {}", guest.recover);
    let setting = world.granting(&guest, Access::ReadWrite);
    let ran = world.sandbox.assess(setting.clone(), crate::invoke::tests::subgoal()).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    let ran = world.sandbox.recover(setting, crate::invoke::tests::mishap()).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}
