//! Killing the process at each boundary of a write.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use checkrein_contract::ask::Message;

use super::*;
use crate::Kept;

/// Where the process that is killed works.
const DIR: &str = "CHECKREIN_TEST_CRASH_DIR";

/// Patience without end: a killed process must be seen to be dead, not waited for.
const OPTIONS: Options = Options { wait: Duration::from_secs(10), patience: Duration::from_secs(3600) };

/// What is killed, and goes on where it was. It is no test by itself.
#[test]
#[ignore = "is run by the tests beside it"]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let state = State::open_with(Path::new(&dir), OPTIONS).unwrap();
    let mut log = state.lease(&run()).unwrap();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate().skip(usize::try_from(log.len()).unwrap()) {
        state.blobs().put(name.as_bytes()).unwrap();
        log.append(&run(), Timestamp(at as u64), &[stage(name)]).unwrap();
        log.keep_snapshot(name.as_bytes()).unwrap();
    }
    state.post(&run(), "ada", Timestamp(9), &Message::Cancel).unwrap();
}

fn run_child(dir: &Path, order: (&str, &str)) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::crash::child", "--ignored", "--quiet"]);
    command.env(DIR, dir).env(order.0, order.1).output().unwrap().status
}

#[test]
fn killed_at_each_boundary_it_goes_on_as_if_it_had_not_been() {
    let dir = tempfile::tempdir().unwrap();
    let (counted, at) = (dir.path().join("boundaries"), |name: &str| dir.path().join(name));
    assert!(run_child(&at("whole"), ("CHECKREIN_COUNT_AT", counted.to_str().unwrap())).success());
    let lines = fs::read_to_string(&counted).unwrap();
    let names: Vec<&str> =
        lines.lines().filter_map(|line| line.split_once(' ')).map(|(_, name)| name).collect();
    let step = [
        "blob-before-write",
        "blob-before-rename",
        "blob-after-rename",
        "append-before-commit",
        "append-after-commit",
        "snapshot-before-commit",
        "snapshot-after-commit",
    ];
    let lease = ["lease-before-commit", "lease-after-commit"];
    let post = ["post-before-commit", "post-after-commit"];
    let expected: Vec<&str> = [&lease[..], &step, &step, &step, &post].concat();
    assert_eq!(names, expected);
    for number in 1..=names.len() {
        let dir = at(&number.to_string());
        let status = run_child(&dir, ("CHECKREIN_KILL_AT", &number.to_string()));
        assert_eq!(status.signal(), Some(9), "{number}: {status}");
        is_whole(&dir, number);
        assert!(run_child(&dir, ("CHECKREIN_KILL_AT", "0")).success(), "{number}");
        let state = State::open(&dir).unwrap();
        let events: Vec<Event> =
            state.events(&run()).unwrap().into_iter().map(|logged| logged.event).collect();
        assert_eq!(events, ["a", "b", "c"].map(stage), "{number}");
        assert!(state.verify(&run(), None).unwrap().holds());
        assert_eq!(count(&dir.join("blobs/new")), 0, "{number}");
        for name in ["a", "b", "c"] {
            assert_eq!(state.blobs().get(&Digest::of(name)).unwrap(), name.as_bytes(), "{number}");
        }
    }
}

/// Nothing is half done, and nobody drives it any more.
fn is_whole(dir: &Path, number: usize) {
    let state = State::open_existing(dir).unwrap();
    assert!(state.verify(&run(), None).unwrap().holds(), "{number}");
    assert_eq!(state.drives(&run()).unwrap(), None, "{number}");
    match state.snapshot(&run()).unwrap() {
        Kept::None => {}
        Kept::Damaged(why) => panic!("{number}: {why}"),
        Kept::At { seq, folded, .. } => assert_eq!(folded, ["a", "b", "c"][seq as usize - 1].as_bytes()),
    }
    for blob in fs::read_dir(dir.join("blobs/sha256")).unwrap() {
        let name = blob.unwrap().file_name().to_string_lossy().into_owned();
        state.blobs().check(&name.parse().unwrap()).unwrap();
    }
}
