//! Links, and what is neither file nor folder.

use super::*;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

#[tokio::test]
async fn rename_and_hard_link_from_one_writable_folder_into_another() {
    let world = World::new();
    std::fs::write(world.path("granted/kept"), "kept").unwrap();
    let ran = world.run(world.granting(&guests::rename_and_hard_link_across(), Access::ReadWrite)).await;
    let (across, no) = ("cross-device", "not-permitted");
    assert_eq!(codes(&ran), ["ok", across, across, no, no, "ok", "ok"]);
    assert_eq!(count(&ran, Wall::File), 4);
    assert_eq!(entries(&world.path("granted")), ["given", "moved"]);
    let End::Returned(execution) = ran.end else { unreachable!() };
    assert_eq!(execution.artifacts[0].path, "d");
}

#[tokio::test]
async fn a_named_pipe_in_a_granted_folder() {
    let world = World::new();
    let pipe = world.path("granted/pipe");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = UnixListener::bind(world.path("granted/socket")).unwrap();
    let setting = world.granting(&guests::named_pipe(), Access::ReadWrite);
    let ran = world.run(setting).await;
    assert_eq!(codes(&ran), ["not-permitted"; 4]);
    assert_eq!(count(&ran, Wall::File), 4);
    assert!(by(&ran, Wall::File)[0].what.ends_with("it is neither a file nor a folder"), "{:?}", ran.record);
}

/// Whoever waits at the other end of a pipe is not woken by the attempt: opening it for a moment
/// would end the wait of a writer, and its first write would fail.
#[tokio::test]
async fn a_named_pipe_is_not_even_touched() {
    let world = World::new();
    let pipe = world.path("granted/pipe");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            use std::io::Write as _;
            std::fs::OpenOptions::new().write(true).open(pipe).unwrap().write_all(b"hello")
        })
    };
    let ran = world.run(world.granting(&guests::named_pipe(), Access::ReadWrite)).await;
    assert_eq!(codes(&ran)[0], "not-permitted");
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "hello");
    writer.join().unwrap().unwrap();
}

#[tokio::test]
async fn a_symbolic_link_made_inside() {
    let world = World::new();
    let ran = world.run(world.granting(&guests::symbolic_link(), Access::ReadWrite)).await;
    // The outcome names the link, which is not there.
    let End::Invalid(problem) = &ran.end else { panic!("{ran:?}") };
    assert_eq!(problem.rule, "artifact-file");
    assert_eq!(count(&ran, Wall::File), 3);
    assert!(by(&ran, Wall::File)[0].what.contains("symbolic links are not made"));
    assert_eq!(entries(&world.path("granted")), ["given"]);
}

#[tokio::test]
async fn links_in_a_granted_folder_lead_nowhere_outside() {
    let world = World::new();
    let granted = world.path("granted");
    std::fs::write(granted.join("kept"), "kept").unwrap();
    std::fs::create_dir(granted.join("deep")).unwrap();
    symlink("../outside", granted.join("out")).unwrap();
    symlink("/etc/passwd", granted.join("absolute")).unwrap();
    symlink("../../outside", granted.join("deep/up")).unwrap();
    symlink("kept", granted.join("inside")).unwrap();
    let ran = world.run(world.granting(&guests::found_links(), Access::ReadWrite)).await;
    let no = "not-permitted";
    let notes = codes(&ran);
    assert_eq!(notes[..2], [no, no]);
    // The link itself is looked at: no size, which would tell how long its target is.
    assert_eq!(notes[2..6], ["ok", CODES[0], CODES[1], CODES[0]]);
    assert_eq!(notes[6..9], [no, no, no]);
    // Inside it is followed, and may be read; what is no link is told as such.
    assert_eq!(notes[9..14], ["ok", "ok", CODES[4], "ok", "invalid"]);
    assert_eq!(notes[14..], [no]);
    assert_eq!(std::fs::read_link(granted.join("deep/up")).unwrap().to_str(), Some("../../outside"));
}

#[tokio::test]
async fn a_hard_link() {
    let world = World::new();
    let ran = world.run(world.setting(&guests::hard_link())).await;
    let End::Invalid(problem) = &ran.end else { panic!("{ran:?}") };
    assert_eq!(problem.rule, "artifact-file");
    assert_eq!(count(&ran, Wall::File), 2);
    assert!(by(&ran, Wall::File)[0].what.contains("no file gets a second name"));
}
