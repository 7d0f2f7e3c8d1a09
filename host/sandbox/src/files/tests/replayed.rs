//! Granted folders of calls that are recorded, and executed again.

use std::sync::Arc;

use checkrein_contract::record::{FolderFile, Record};

use super::*;
use crate::replay::is_unrecorded;

fn reads_and_writes() -> Guest {
    let script = guests::Script::new()
        .open(guests::GRANTED, "given", 0, guests::READ)
        .read()
        .create(guests::GRANTED, "new")
        .write_text("written");
    script.guest(&[])
}

fn again(setting: &Setting, record: &Record) -> Setting {
    Setting { recorded: Some(Arc::new(record.clone())), ..setting.clone() }
}

#[tokio::test]
async fn a_call_sees_what_the_folder_was_and_leaves_the_folder_alone() {
    let world = World::new();
    let setting = world.granting(&reads_and_writes(), Access::ReadWrite);
    let first = world.run(setting.clone()).await;
    assert_eq!(notes(&first), ["ok", "ok", "5", "ok", "ok"]);
    let [seen] = first.record.folders.as_slice() else { panic!("{:?}", first.record) };
    assert_eq!((seen.path.as_str(), &seen.left_out), (world.path("granted").to_str().unwrap(), &None));
    let list = world.sandbox.0.blobs.get(&seen.files.unwrap()).unwrap();
    let list: Vec<FolderFile> = serde_json::from_slice(&list).unwrap();
    // As it was when the call began.
    assert_eq!(list.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["given"]);

    std::fs::write(world.path("granted").join("given"), "something else").unwrap();
    std::fs::remove_file(world.path("granted").join("new")).unwrap();
    let second = world.run(again(&setting, &first.record)).await;
    assert_eq!((notes(&second), &second.record), (notes(&first), &first.record));
    assert_eq!(entries(&world.path("granted")), ["given"]);

    // Nor is it looked at.
    std::fs::remove_dir_all(world.path("granted")).unwrap();
    let third = world.run(again(&setting, &first.record)).await;
    assert_eq!((notes(&third), &third.record), (notes(&first), &first.record));
    assert!(!world.path("granted").exists());
}

#[tokio::test]
async fn access_is_as_granted() {
    let world = World::new();
    let script = guests::Script::new().open(guests::GRANTED, "given", 0, guests::READ).read();
    let script = script.open(guests::GRANTED, "new", guests::CREATE, guests::WRITE);
    let setting = world.granting(&script.guest(&[]), Access::ReadOnly);
    let first = world.run(setting.clone()).await;
    assert_eq!(codes(&first).last().unwrap(), "not-permitted");
    let second = world.run(again(&setting, &first.record)).await;
    assert_eq!((codes(&second), &second.record), (codes(&first), &first.record));
    assert_eq!(second.record.denials[0].wall, Wall::File);
}

#[tokio::test]
async fn a_folder_that_was_not_recorded_is_empty_and_told() {
    let world = World::new();
    let guest = guests::Script::new().open(guests::GRANTED, "given", 0, guests::READ).guest(&[]);
    let setting = world.granting(&guest, Access::ReadWrite);
    let ran = world.run(again(&setting, &Record::default())).await;
    assert_eq!(codes(&ran), ["no-entry"]);
    let [denial] = ran.record.denials.as_slice() else { panic!("{:?}", ran.record) };
    assert!(is_unrecorded(denial) && denial.what.contains("was not recorded: this call"), "{denial:?}");
}

#[tokio::test]
async fn a_folder_that_was_left_out_says_why() {
    let world = World::new();
    let folder = world.path("granted");
    std::fs::File::create(folder.join("large")).unwrap().set_len(crate::FOLDER_BYTES).unwrap();
    let setting = world.granting(&guests::Script::new().list(guests::GRANTED).guest(&[]), Access::ReadOnly);
    let first = world.run(setting.clone()).await;
    assert_eq!(first.record.folders[0].left_out.as_deref(), Some("larger than 64 MiB"));
    let second = world.run(again(&setting, &first.record)).await;
    let [denial] = second.record.denials.as_slice() else { panic!("{:?}", second.record) };
    assert!(is_unrecorded(denial) && denial.what.contains("(larger than 64 MiB)"), "{denial:?}");
    assert_eq!(second.record.folders, first.record.folders);
}

#[tokio::test]
async fn a_folder_in_another_one_is_in_it_again() {
    let world = World::new();
    let inner = world.path("granted").join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("given"), "inner").unwrap();
    // Written in the one, read in the other.
    let script = guests::Script::new()
        .create(guests::GRANTED + 1, "new")
        .write_text("written")
        .drop_file()
        .open(guests::GRANTED, "inner/new", 0, guests::READ)
        .read();
    let mut setting = world.granting(&script.guest(&[]), Access::ReadOnly);
    let path = inner.to_str().unwrap().to_owned();
    setting.granted.files.push(Folder { access: Access::ReadWrite, path });
    let first = world.run(setting.clone()).await;
    assert_eq!(notes(&first), ["ok", "ok", "ok", "ok", "7"]);
    std::fs::remove_dir_all(world.path("granted")).unwrap();
    let second = world.run(again(&setting, &first.record)).await;
    assert_eq!((notes(&second), &second.record), (notes(&first), &first.record));
}

/// The list may have come from a stranger, with a run that was imported.
#[tokio::test]
async fn a_list_that_leads_out_of_the_copy_is_damaged() {
    let world = World::new();
    let setting = world.granting(&reads_and_writes(), Access::ReadWrite);
    let first = world.run(setting.clone()).await;
    let blobs = &world.sandbox.0.blobs;
    let digest = Some(blobs.put(b"stolen").unwrap());
    for path in ["../out", "a/../../out", "/etc/out", "a//b", "", "a/\0b"] {
        let mut record = first.record.clone();
        let list = vec![FolderFile { path: path.to_owned(), digest }];
        record.folders[0].files = Some(blobs.put(&serde_json::to_vec(&list).unwrap()).unwrap());
        let ran = world.run(again(&setting, &record)).await;
        assert!(matches!(&ran.end, End::Storage(error) if error.to_string().contains("damaged")), "{ran:?}");
    }
    assert_eq!(entries(&world.sandbox.0.scratch), Vec::<String>::new());
}
