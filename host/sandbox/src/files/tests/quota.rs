//! What a call may write.

use super::*;

const MEGABYTE: u64 = 1_000_000;

async fn within(guest: &Guest, bytes: u64, files: u64) -> Ran<Execution> {
    let world = World::new();
    let mut setting = world.setting(guest);
    setting.limits = setting.limits.with(LimitKey::WorkBytes, bytes).with(LimitKey::WorkFiles, files);
    world.run(setting).await
}

#[tokio::test]
async fn quota_by_size() {
    let ran = within(&guests::quota_by_size(), MEGABYTE, 10).await;
    let notes = codes(&ran);
    let full = "insufficient-space";
    // The same bytes again are no growth; the third 400,000 are too many.
    assert_eq!(notes[..6], ["ok", "ok", "ok", "ok", "ok", full]);
    // Over what is there, and at its end.
    assert_eq!(notes[6..10], ["ok", "ok", "ok", "ok"]);
    // 195,904 bytes are left: 47 times 4096, then the stream fails once and is closed.
    let appended = &notes[10..71];
    assert_eq!(appended.iter().filter(|note| *note == "ok").count(), 1 + 47);
    assert_eq!(appended[48..50], [full, "closed"]);
    // A write that is not waited for is refused at once.
    assert_eq!(notes[71..], ["ok", full, "closed"]);
    let denials = by(&ran, Wall::Quota);
    assert!(denials[0].what.starts_with("`work-bytes` is used up: "), "{denials:?}");
    assert_eq!(denials[0].grant.as_deref(), Some("limits = { work-bytes = \"2097152\" }"));
    assert_eq!(count(&ran, Wall::Quota), 3);
}

#[tokio::test]
async fn quota_by_count() {
    let ran = within(&guests::quota_by_count(12), MEGABYTE, 10).await;
    let notes = codes(&ran);
    let full = "insufficient-space";
    assert_eq!(notes[..10], ["ok"; 10]);
    // Neither a file nor a folder more; one that is there can be opened.
    assert_eq!(notes[10..], [full, full, full, "ok"]);
    let denials = by(&ran, Wall::Quota);
    assert_eq!((denials.len(), denials[0].count), (1, 3));
    assert!(denials[0].what.starts_with("`work-files` is used up: 10 allowed"), "{denials:?}");
    assert_eq!(denials[0].grant.as_deref(), Some("limits = { work-files = \"16\" }"));
}

#[tokio::test]
async fn quota_by_sparse_file() {
    let ran = within(&guests::sparse_files(), MEGABYTE, 10).await;
    let notes = notes(&ran);
    let full = CODES.iter().position(|code| *code == "insufficient-space").unwrap().to_string();
    let full = full.as_str();
    assert_eq!(notes[..8], ["ok", full, full, "ok", full, "99", "ok", full]);
    // All of it at once, and not twice.
    assert_eq!(notes[8..11], ["ok", "ok", full]);
    assert_eq!(notes[11..], ["ok", "0", "1", "0"]);
}

#[tokio::test]
async fn a_writable_granted_folder_counts_as_well() {
    let world = World::new();
    let script = guests::Script::new()
        .create(guests::GRANTED, "a")
        .set_size(600_000)
        .open(guests::GRANTED, "given", 0, guests::READ | guests::WRITE)
        .set_size(3)
        .set_size(5)
        .create(guests::WORK, "a")
        .set_size(600_000)
        .create(guests::GRANTED, "b");
    let mut setting = world.granting(&script.guest(&[]), Access::ReadWrite);
    setting.limits = setting.limits.with(LimitKey::WorkBytes, MEGABYTE).with(LimitKey::WorkFiles, 2);
    let ran = world.run(setting).await;
    let full = "insufficient-space";
    assert_eq!(codes(&ran), ["ok", "ok", "ok", "ok", "ok", "ok", full, full]);
    assert_eq!(entries(&world.path("granted")), ["a", "given"]);
}

#[tokio::test]
async fn what_was_not_made_is_not_counted() {
    let script = guests::Script::new()
        .repeat(5, |script| {
            script.create(guests::WORK, "absent/a").make_folder(guests::WORK, "absent/b").open(
                guests::WORK,
                "absent/a",
                guests::CREATE | 4,
                guests::WRITE,
            )
        })
        .create(guests::WORK, "a")
        .repeat(5, |script| script.open(guests::WORK, "a", guests::CREATE, guests::READ))
        .make_folder(guests::WORK, "b");
    let ran = within(&script.guest(&[]), MEGABYTE, 2).await;
    let notes = codes(&ran);
    assert_eq!(notes[..15], ["no-entry"; 15]);
    assert_eq!(notes[15..], ["ok"; 7]);
    assert!(ran.record.is_empty(), "{:?}", ran.record);
}
