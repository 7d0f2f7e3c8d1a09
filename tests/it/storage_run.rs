//! Disk and database under a run that goes on: told plainly, and gone on with.

use std::process::Command;

use checkrein_tests::{Disk, Step, Works, few, on_a_small_disk, text_of, undisturbed, until, worker};
use rusqlite::Connection;

/// A chain of ten, each of which takes a moment.
fn chain() -> Vec<Vec<Step>> {
    let step = |n: u32| {
        let step = worker(&format!("g{n}"), n).arg("pause_ms", "150");
        if n == 1 { step } else { step.after(&format!("g{}", n - 1)) }
    };
    vec![(1..=10).map(step).collect()]
}

#[test]
fn a_disk_that_fills_in_the_middle_of_a_run() {
    let reference = Works::new();
    undisturbed(&reference, reference.task(&text_of(&chain())));
    on_a_small_disk("storage_run::a_disk_that_fills_in_the_middle_of_a_run", "64m", |disk| {
        for left in [0, 12 << 10, 64 << 10] {
            let works = Works::below(disk.path());
            let job = works.job(&["run", works.task(&text_of(&chain()))], |_| {});
            until("the third of ten", || works.calls_of("g3") == 1);
            disk.fill(left);
            let ran = job.end();
            disk.clear();
            let ran = ran.expect(74);
            let told = ran.errors();
            assert_eq!(told.len(), 1, "{}", ran.err);
            assert!(told[0].to_lowercase().contains("no space left"), "{}", ran.err);
            assert!(works.status().is_none() && works.facts().len() < 10, "it was not in the middle");
            let _ = works.run(&["trace", "verify", "@last"]).expect(0);
            let _ = works.run(&["resume", "@last"]).expect(0);
            assert_eq!(works.facts(), reference.facts());
        }
    });
}

/// Makes a disk read-only, or not.
fn remount(disk: &Disk, how: &str) {
    let place = disk.path().display().to_string();
    let mounted = [&["mount"][..], &["sudo", "-n", "mount"]].into_iter().any(|words| {
        let options = format!("remount,{how}");
        let mut command = Command::new(words[0]);
        let out = command.args(&words[1..]).args(["-o", &options, &place]).output();
        out.is_ok_and(|out| out.status.success())
    });
    assert!(mounted, "{place} cannot be made {how}");
}

#[test]
fn a_disk_that_can_only_be_read() {
    on_a_small_disk("storage_run::a_disk_that_can_only_be_read", "64m", |disk| {
        let works = Works::below(disk.path());
        let _ = works.run(&["run", works.task(&text_of(&few()))]).expect(4);
        let run = works.last_run().unwrap();
        remount(disk, "ro");
        let ran = [&["approve", &run][..], &["approve", &run, "--resume"], &["run", "task.toml"]];
        let ran = ran.map(|args| works.run(args));
        // What waits can still be read.
        let _ = works.run(&["resume", &run]).expect(4);
        remount(disk, "rw");
        for ran in ran {
            let ran = ran.expect(74);
            assert_eq!(ran.errors().len(), 1, "{}", ran.err);
            let told = ran.errors()[0].to_lowercase();
            assert!(told.contains("read-only") || told.contains("cannot be written"), "{}", ran.err);
        }
        undisturbed(&works, "task.toml");
        assert_eq!(works.facts().len(), 6);
    });
}

/// The table of the first version, as it was.
const FIRST: &str = "
    CREATE TABLE event (
        run     TEXT    NOT NULL,
        seq     INTEGER NOT NULL,
        kind    TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        prev    TEXT    NOT NULL,
        digest  TEXT    NOT NULL,
        payload TEXT    NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
    PRAGMA user_version = 1;
";

fn version(file: &std::path::Path) -> i64 {
    Connection::open(file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_database_of_the_first_version_is_copied_aside() {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(&few())));
    let (run, file) = (works.last_run().unwrap(), works.database());
    let current = version(&file);
    let old = works.path().join("old.db");
    let database = Connection::open(&old).unwrap();
    database.execute_batch(FIRST).unwrap();
    database.execute("ATTACH ?1 AS now", [file.display().to_string()]).unwrap();
    database.execute_batch("INSERT INTO event SELECT * FROM now.event; DETACH now;").unwrap();
    let events: i64 = database.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();
    drop(database);
    for ending in ["", "-wal", "-shm"] {
        let part = file.with_file_name(format!("checkrein.db{ending}"));
        if part.exists() {
            std::fs::remove_file(part).unwrap();
        }
    }
    std::fs::copy(&old, &file).unwrap();
    let _ = works.run(&["trace", "verify", &run]).expect(0);
    let aside = file.with_file_name("checkrein.db.v1");
    assert!(!aside.exists(), "who only reads it changes nothing");
    let _ = works.run(&["run", "task.toml"]).expect(4);
    assert_eq!((version(&aside), version(&file)), (1, current));
    let kept = Connection::open(&aside).unwrap();
    let kept: i64 = kept.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, events);
    let _ = works.run(&["trace", "verify", &run]).expect(0);
    undisturbed(&works, "task.toml");
    let runs = works.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_database_of_a_version_to_come_is_refused_with_both_versions() {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(&few())));
    let current = version(&works.database());
    assert_eq!(works.alter("PRAGMA user_version = 99"), 0);
    let before = std::fs::read(works.database()).unwrap();
    for args in [&["run", "task.toml"][..], &["resume", "@last"], &["runs"], &["show", "@last"]] {
        let ran = works.run(args).expect(74);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
        for what in ["99".to_owned(), current.to_string()] {
            assert!(ran.errors()[0].contains(&what), "`{what}` is not in {}", ran.err);
        }
    }
    assert_eq!(std::fs::read(works.database()).unwrap(), before);
    assert!(!works.database().with_file_name("checkrein.db.v99").exists());
}
