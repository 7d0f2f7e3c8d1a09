//! What of the host a call can hold.

use super::*;

#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn open_files_are_bounded_streams_included() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::open_files(80))).await;
    let notes = codes(&ran);
    // Each round notes that it opened and that it has a stream; the stream keeps the file open.
    assert_eq!(notes[1..129], ["ok"; 128]);
    assert_eq!(notes[129], "quota");
    assert!(count(&ran, Wall::Limit) >= 1, "{:?}", ran.record);
    assert!(by(&ran, Wall::Limit)[0].what.contains("64 files and folders open"), "{:?}", ran.record);
}

#[tokio::test]
async fn what_is_closed_can_be_opened_again_without_end() {
    let world = World::new();
    let script = guests::Script::new()
        .create(guests::WORK, "a")
        .drop_file()
        .repeat(500, |script| script.open(guests::WORK, "a", 0, guests::READ).drop_file());
    let ran = world.run(world.setting(&script.guest(&[]))).await;
    assert_eq!(codes(&ran), vec!["ok"; 501]);
}

#[tokio::test]
async fn open_listings_are_bounded() {
    let world = World::new();
    for name in 0..1000 {
        std::fs::write(world.path("in").join(format!("{name:0250}")), "").unwrap();
    }
    let ran = world.run(world.setting(&guests::open_listings(40))).await;
    let notes = codes(&ran);
    let given = notes.iter().filter(|note| *note == "ok").count();
    // 1000 names of 250 bytes, and 64 for each: 8 MiB hold 26 such listings.
    assert_eq!(given, 26);
    assert_eq!(notes[given..], vec!["insufficient-memory"; 40 - given]);
    assert_eq!(count(&ran, Wall::Limit), 14);
}

/// Going down into them to remove them would take a descriptor and a piece of the stack for each.
#[tokio::test]
async fn thousands_of_folders_in_one_another_are_removed() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::deep_folders(1500))).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}

/// Each may take a thread of the host for as long as the folder keeps it waiting.
#[tokio::test]
async fn streams_of_granted_folders_count_as_open_files() {
    let world = World::new();
    let script = guests::Script::new()
        .open(guests::GRANTED, "given", 0, guests::READ)
        .repeat(70, |script| script.reading());
    let ran = world.run(world.granting(&script.guest(&[]), Access::ReadOnly)).await;
    let notes = codes(&ran);
    assert_eq!(notes[..64], ["ok"; 64]);
    assert_eq!(notes[64..], ["quota"; 7]);
    assert_eq!(count(&ran, Wall::Limit), 7);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_descriptor_is_left_over() {
    let world = World::new();
    let settings: Vec<_> =
        [guests::open_files(80), guests::open_listings(10), guests::dot_dot(), guests::quota_by_count(20)]
            .iter()
            .map(|guest| world.granting(guest, Access::ReadOnly))
            .collect();
    for setting in &settings {
        world.run(setting.clone()).await;
    }
    let before = descriptors();
    for _ in 0..20 {
        for setting in &settings {
            world.run(setting.clone()).await;
        }
    }
    // Other tests of this process open files as well: 80 calls that each left one would show.
    let after = descriptors();
    assert!(after < before + 60, "{before} descriptors before, {after} after");
}
