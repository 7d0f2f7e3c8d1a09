//! Ways out of the folders of a call.

use super::*;

#[tokio::test]
async fn dot_dot() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::dot_dot())).await;
    let no = "not-permitted";
    assert_eq!(codes(&ran), [no, no, "ok", no, no, no, no]);
    assert_eq!(count(&ran, Wall::File), 6, "{:?}", ran.record);
    assert!(by(&ran, Wall::File)[0].what.contains("leads out of the folder"), "{:?}", ran.record);
}

#[tokio::test]
async fn absolute_paths() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::absolute_paths())).await;
    assert_eq!(codes(&ran), ["not-permitted"; 4]);
    assert_eq!(count(&ran, Wall::File), 4);
    assert!(by(&ran, Wall::File)[0].what.contains("absolute"), "{:?}", ran.record);
    assert!(!Path::new("/tmp/from-a-guest").exists());
}

#[tokio::test]
async fn another_calls_folder() {
    let world = World::new();
    let other = crate::work::create(&world.sandbox.0.scratch).unwrap();
    std::fs::write(other.path().join("secret"), "secret").unwrap();
    let name = other.path().file_name().unwrap().to_str().unwrap();
    let setting = world.setting(&guests::another_calls_folder(name));
    let ran = world.sandbox.execute(setting, call()).await;
    assert_eq!(codes(&ran), ["not-permitted"; 4]);
    assert_eq!(count(&ran, Wall::File), 4);
    assert_eq!(std::fs::read_to_string(other.path().join("secret")).unwrap(), "secret");
    assert_eq!(entries(&world.sandbox.0.scratch), [name]);
}

#[tokio::test]
async fn writing_where_it_can_only_be_read() {
    let world = World::new();
    let ran = world.run(world.granting(&guests::write_where_it_can_only_read(), Access::ReadOnly)).await;
    let no = "not-permitted";
    let one = [no, no, no, no, no, no, no, "ok", no, no, "ok", "deadlock"];
    // The last note of each folder is how much was read: 5, which as a code has another name.
    assert_eq!(codes(&ran), [one, one, one].concat());
    for name in ["in", "artifacts", "granted"] {
        assert_eq!(entries(&world.path(name)), ["given"]);
        assert_eq!(std::fs::read_to_string(world.path(name).join("given")).unwrap(), "given");
    }
    let grants: Vec<_> = by(&ran, Wall::File).iter().filter_map(|denial| denial.grant.as_deref()).collect();
    let rule = format!("files = [\"rw {}\"]", world.path("granted").display());
    assert!(!grants.is_empty() && grants.iter().all(|grant| *grant == rule), "{grants:?}");
}

#[tokio::test]
async fn a_verification_reads_its_work_and_has_no_granted_folder() {
    let world = World::new();
    let mut guest = guests::dot_dot();
    // It has three folders, and is refused a file in `/work`.
    let verdict = guest.accepting();
    let path = guest.image.text("new");
    guest.verify = format!(
        "(call $folders (global.get $ret))
         (if (i32.ne (i32.load offset=4 (global.get $ret)) (i32.const 3)) (then unreachable))
         (call $open-at (i32.load offset=24 (i32.load (global.get $ret))) (i32.const 0) (i32.const {}) (i32.const {})
           (i32.const 1) (i32.const 2) (global.get $ret))
         (if (i32.ne (i32.load8_u offset=4 (global.get $ret)) (i32.const 31)) (then unreachable))
         (i32.const {verdict})",
        path[0], path[1]
    );
    let mut setting = world.granting(&guest, Access::ReadWrite);
    std::fs::create_dir(world.path("work")).unwrap();
    setting.work = Some(world.path("work"));
    let submission = crate::invoke::tests::submission();
    let ran = world.sandbox.verify(setting, submission).await;
    assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
    assert_eq!(count(&ran, Wall::File), 1);
    assert_eq!(entries(&world.path("work")), Vec::<String>::new());
}
