#[cfg(debug_assertions)]
mod crash;
mod driving;
mod schema;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use checkrein_contract::Digest;
use checkrein_contract::event::{Ended, Event, RunStatus, StoredArtifact};
use checkrein_contract::id::{CallId, RunId, StageId, Timestamp};
use checkrein_contract::port::{Blobs, Log, StorageError};
use checkrein_contract::record::Record;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::process::Identity;
use crate::{BlobProblem, ChainFault, HeadCheck, Options, State, StoreError};

fn state() -> (TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wait: Duration::from_millis(50), patience: Duration::from_millis(300) };
    let state = State::open_with(&dir.path().join(".checkrein"), options).unwrap();
    (dir, state)
}

fn run() -> RunId {
    RunId::from("r1")
}

fn stage(name: &str) -> Event {
    Event::StageEntered { stage: StageId::from(name) }
}

/// A log of six events that names two blobs; the head of it.
fn filled(state: &State) -> Digest {
    let blobs = state.blobs();
    let outcome = blobs.put(b"{}").unwrap();
    let file = blobs.put(b"a,b\n").unwrap();
    let call = CallId::from("r1/de/1");
    let artifact = StoredArtifact {
        path: "de.csv".to_owned(),
        title: "table".to_owned(),
        media_type: "text/csv".to_owned(),
        digest: file,
        bytes: 4,
    };
    let ended = Ended::Outcome { outcome, drafts: Vec::new(), artifacts: vec![artifact] };
    let mut log = state.lease(&run()).unwrap();
    log.append(&run(), Timestamp(1), &[stage("a"), stage("b"), stage("c")]).unwrap();
    log.append(
        &run(),
        Timestamp(2),
        &[
            Event::CallEnded { call, ended, log: None, record: Record::default(), attested: false },
            stage("d"),
        ],
    )
    .unwrap();
    let end = Event::RunEnded { status: RunStatus::Done, reason: "done".to_owned() };
    log.append(&run(), Timestamp(3), &[end]).unwrap();
    log.head()
}

fn tamper(state: &State, sql: &str) {
    Connection::open(state.database()).unwrap().execute_batch(sql).unwrap();
}

fn fault_after(sql: &str) -> Option<ChainFault> {
    let (_dir, state) = state();
    filled(&state);
    tamper(&state, sql);
    state.verify(&run(), None).unwrap().fault
}

#[test]
fn what_is_appended_is_read_back_and_verifies() {
    let (_dir, state) = state();
    let head = filled(&state);
    let events = state.events(&run()).unwrap();
    assert_eq!(events.iter().map(|logged| logged.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!((events[0].prev, events[5].digest), (Digest::ZERO, head));
    let found = state.verify(&run(), Some(head)).unwrap();
    assert!(found.holds(), "{found:?}");
    assert_eq!((found.head, found.head_check, found.blobs), (head, HeadCheck::Last, 2));
    let early = state.verify(&run(), Some(events[2].digest)).unwrap();
    assert_eq!((early.holds(), early.head_check), (true, HeadCheck::Passed { seq: 3 }));
}

#[test]
fn every_column_is_covered() {
    let other = Digest::of("other");
    for change in [
        "payload = replace(payload, 'c', 'x')".to_owned(),
        "payload = payload || ' '".to_owned(),
        "payload = 'no json'".to_owned(),
        "payload = CAST(x'ff' AS TEXT)".to_owned(),
        "at = at + 1".to_owned(),
        "at = -1".to_owned(),
        "kind = 'stage-left'".to_owned(),
        "kind = ''".to_owned(),
        format!("digest = '{other}'"),
        "digest = ''".to_owned(),
        format!("prev = '{other}'"),
    ] {
        let fault = fault_after(&format!("UPDATE event SET {change} WHERE seq = 3"));
        assert!(matches!(fault, Some(ChainFault::Altered { seq: 3, .. })), "{change}: {fault:?}");
    }
    let fault = fault_after("UPDATE event SET run = 'r2' WHERE seq = 3");
    assert_eq!(fault, Some(ChainFault::Lost { first: 3, last: 3 }));
    let fault = fault_after("UPDATE event SET seq = 0 WHERE seq = 3");
    assert!(matches!(fault, Some(ChainFault::Reordered { seq: 0, from: 3, .. })), "{fault:?}");
}

#[test]
fn events_that_are_gone_are_named() {
    assert_eq!(
        fault_after("DELETE FROM event WHERE seq IN (2, 3)"),
        Some(ChainFault::Lost { first: 2, last: 3 })
    );
    assert_eq!(fault_after("DELETE FROM event WHERE seq = 1"), Some(ChainFault::Lost { first: 1, last: 1 }));
}

#[test]
fn events_that_changed_places_are_named() {
    let swap = "UPDATE event SET seq = 100 WHERE seq = 2; UPDATE event SET seq = 2 WHERE seq = 5;
                UPDATE event SET seq = 5 WHERE seq = 100;";
    let fault = fault_after(swap);
    assert!(matches!(fault, Some(ChainFault::Reordered { seq: 2, from: 5, .. })), "{fault:?}");
}

#[test]
fn where_a_large_event_was_written_is_looked_for_nearby_only() {
    for (from, is_found) in [(100, true), (250, false)] {
        let (_dir, state) = state();
        let mut events: Vec<Event> = (0..300).map(|number| stage(&number.to_string())).collect();
        // Of 256 MiB that may be hashed, that is enough for 127 positions.
        events[from - 1] = stage(&"x".repeat(2 << 20));
        state.lease(&run()).unwrap().append(&run(), Timestamp(1), &events).unwrap();
        let swap = format!(
            "UPDATE event SET seq = 1000 WHERE seq = 1; UPDATE event SET seq = 1 WHERE seq = {from};
             UPDATE event SET seq = {from} WHERE seq = 1000;"
        );
        tamper(&state, &swap);
        match state.verify(&run(), None).unwrap().fault {
            Some(ChainFault::Reordered { seq: 1, from: found, .. }) => {
                assert!(is_found && found == from as u64, "{found}");
            }
            Some(ChainFault::Altered { seq: 1, .. }) => assert!(!is_found, "{from}"),
            other => panic!("{from}: {other:?}"),
        }
    }
}

#[test]
fn a_lost_tail_needs_the_head() {
    let (_dir, state) = state();
    let head = filled(&state);
    tamper(&state, "DELETE FROM event WHERE seq = 6");
    assert!(state.verify(&run(), None).unwrap().holds());
    let found = state.verify(&run(), Some(head)).unwrap();
    assert_eq!(found.fault, Some(ChainFault::TailLost { after: 5, expected: head }));
}

#[test]
fn an_event_that_is_replaced_with_its_digest_breaks_the_next() {
    let (_dir, state) = state();
    filled(&state);
    let payload = serde_json::to_string(&stage("x")).unwrap();
    let before = &state.events(&run()).unwrap()[1];
    let digest = checkrein_contract::event::chain(&run(), 3, Timestamp(1), &before.digest, &payload);
    tamper(&state, &format!("UPDATE event SET payload = '{payload}', digest = '{digest}' WHERE seq = 3"));
    let fault = state.verify(&run(), None).unwrap().fault;
    assert!(matches!(fault, Some(ChainFault::Altered { seq: 4, .. })), "{fault:?}");
}

#[test]
fn an_event_of_a_newer_version_is_unknown_and_not_altered() {
    let (_dir, state) = state();
    filled(&state);
    let payload = r#"{"event":"sung","song":"x"}"#;
    let last = state.events(&run()).unwrap()[5].digest;
    let digest = checkrein_contract::event::chain(&run(), 7, Timestamp(4), &last, payload);
    let row = format!("INSERT INTO event VALUES ('r1', 7, 'sung', 4, '{last}', '{digest}', '{payload}')");
    tamper(&state, &row);
    let found = state.verify(&run(), Some(digest)).unwrap();
    assert!(found.holds(), "{found:?}");
    assert_eq!((found.unknown[0].seq, found.unknown[0].kind.as_str()), (7, "sung"));
    assert!(matches!(state.events(&run()), Err(StoreError::Unreadable { seq: 7, .. })));
}

#[test]
fn blobs_that_are_not_what_they_were_are_named() {
    let (_dir, state) = state();
    filled(&state);
    let (outcome, file) = (Digest::of("{}"), Digest::of("a,b\n"));
    fs::remove_file(state.blobs().path(&outcome)).unwrap();
    let damaged = state.blobs().path(&file);
    fs::remove_file(&damaged).unwrap();
    fs::write(&damaged, "a,c\n").unwrap();
    let found = state.verify(&run(), None).unwrap();
    assert!(found.fault.is_none() && !found.holds());
    let problem = |digest: Digest| found.blob_faults.iter().find(|fault| fault.digest == digest).unwrap();
    assert_eq!((problem(outcome).seq, &problem(outcome).problem), (4, &BlobProblem::Missing));
    assert_eq!((problem(file).seq, &problem(file).problem), (4, &BlobProblem::Altered));
    assert!(matches!(state.blobs().get(&file), Err(StorageError::Damaged { .. })));
    assert!(matches!(state.blobs().tree(&[("x".to_owned(), file)]), Err(StorageError::Damaged { .. })));
    assert!(matches!(state.blobs().get(&outcome), Err(StorageError::Missing { .. })));
}

#[test]
fn a_damaged_blob_is_mended_by_whoever_puts_it_again() {
    let (dir, state) = state();
    let at = dir.path().join(".checkrein");
    let digest = state.blobs().put(b"a,b\n").unwrap();
    let path = state.blobs().path(&digest);
    let damage = |content: &str| {
        fs::remove_file(&path).unwrap();
        fs::write(&path, content).unwrap();
    };
    for content in ["a,c\n", "a", "", "longer than it was"] {
        damage(content);
        // Another process knows nothing of the blob yet.
        let other = State::open(&at).unwrap().blobs();
        assert!(matches!(other.get(&digest), Err(StorageError::Damaged { .. })), "{content}");
        assert_eq!(other.put(b"a,b\n").unwrap(), digest);
        assert_eq!(other.get(&digest).unwrap(), b"a,b\n");
        damage(content);
        let other = State::open(&at).unwrap().blobs();
        assert_eq!(other.put_from(&mut &b"a,b\n"[..]).unwrap(), (digest, 4));
        assert_eq!(
            fs::read(other.tree(&[("x".to_owned(), digest)]).unwrap().path().join("x")).unwrap(),
            b"a,b\n"
        );
        assert!(fs::metadata(&path).unwrap().permissions().readonly());
    }
    assert_eq!(count(&at.join("blobs/new")), 0);
}

#[test]
fn an_intact_blob_is_not_written_again() {
    use std::os::unix::fs::MetadataExt;
    let (dir, state) = state();
    let digest = state.blobs().put(b"x").unwrap();
    let before = fs::metadata(state.blobs().path(&digest)).unwrap().ino();
    let other = State::open(&dir.path().join(".checkrein")).unwrap().blobs();
    assert_eq!(other.put(b"x").unwrap(), digest);
    assert_eq!(fs::metadata(other.path(&digest)).unwrap().ino(), before);
}

#[test]
fn a_run_has_one_writer() {
    let (_dir, state) = state();
    let mut one = state.lease(&run()).unwrap();
    let error = state.lease(&run()).unwrap_err();
    assert!(matches!(&error, StoreError::Driven { holder, .. } if holder.contains("process")), "{error}");
    one.append(&run(), Timestamp(1), &[stage("a")]).unwrap();
    assert!(one.append(&RunId::from("r2"), Timestamp(1), &[stage("b")]).is_err());
    assert_eq!(state.events(&run()).unwrap().len(), 1);
}

#[test]
fn a_locked_database_is_told() {
    let (dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    let other = Connection::open(state.database()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = log.append(&run(), Timestamp(1), &[stage("a")]).unwrap_err();
    assert!(matches!(error, StorageError::Locked { .. }), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    log.append(&run(), Timestamp(1), &[stage("a")]).unwrap();
    drop(dir);
}

#[test]
fn a_full_disk_leaves_the_log_intact() {
    let (_dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    log.append(&run(), Timestamp(1), &[stage("a")]).unwrap();
    let pages: i64 = log.connection().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    log.connection().query_row(&format!("PRAGMA max_page_count = {}", pages + 2), [], |_| Ok(())).unwrap();
    let head = log.head();
    let many = vec![stage(&"x".repeat(1000)); 100];
    let error = log.append(&run(), Timestamp(2), &many).unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
    let found = state.verify(&run(), Some(head)).unwrap();
    assert!(found.holds() && found.events == 1, "{found:?}");
    log.connection().query_row("PRAGMA max_page_count = 100000", [], |_| Ok(())).unwrap();
    log.append(&run(), Timestamp(2), &many).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = State::open(&place).unwrap_err();
        assert!(matches!(error, StoreError::Storage(StorageError::NotWritable { .. })), "{error:?}");
    }
}

#[test]
fn a_database_of_another_kind_or_version_is_refused() {
    let (dir, state) = state();
    let at = dir.path().join(".checkrein");
    tamper(&state, "PRAGMA user_version = 99");
    for error in [State::open(&at).unwrap_err(), State::open_existing(&at).unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 99, ours: 2, .. }), "{error}");
    }
    drop(state);
    for left in ["checkrein.db-wal", "checkrein.db-shm"] {
        drop(fs::remove_file(at.join(left)));
    }
    fs::write(at.join("checkrein.db"), vec![b'x'; 8192]).unwrap();
    let error = State::open(&at).unwrap_err();
    assert!(matches!(error, StoreError::Storage(StorageError::Damaged { .. })), "{error:?}");
    let missing = State::open_existing(&dir.path().join("none")).unwrap_err();
    assert!(matches!(missing, StoreError::NoState { .. }));
    assert!(!dir.path().join("none").exists());
}

#[test]
fn reading_changes_nothing() {
    let (dir, state) = state();
    filled(&state);
    let reader = State::open_existing(&dir.path().join(".checkrein")).unwrap();
    assert_eq!(reader.events(&run()).unwrap().len(), 6);
    let one = &reader.runs().unwrap()[0];
    assert_eq!((one.events, one.status, one.last), (6, Some(RunStatus::Done), Timestamp(3)));
}

#[test]
fn runs_are_found_by_what_people_type() {
    let (_dir, state) = state();
    assert!(matches!(state.resolve("@last"), Err(StoreError::NoRuns { .. })));
    for (at, name) in [(1, "ab-1"), (2, "ab-2"), (3, "c"), (4, "cd")] {
        let run = RunId::from(name);
        state.lease(&run).unwrap().append(&run, Timestamp(at), &[stage("a")]).unwrap();
    }
    assert_eq!(state.resolve("@last").unwrap().as_str(), "cd");
    assert_eq!(state.resolve("ab-1").unwrap().as_str(), "ab-1");
    assert_eq!(state.resolve("c").unwrap().as_str(), "c");
    assert!(
        matches!(state.resolve("ab"), Err(StoreError::Ambiguous { candidates, .. }) if candidates.len() == 2)
    );
    let error = state.resolve("x").unwrap_err().to_string();
    assert_eq!(error, "no run `x`; there are: `cd`, `c`, `ab-2`, `ab-1`");
    assert!(state.resolve("").is_err());
}

#[test]
fn trees_hold_what_was_asked_for_and_go_when_dropped() {
    let (_dir, state) = state();
    let blobs = state.blobs();
    let (digest, bytes) = blobs.put_from(&mut &b"hello"[..]).unwrap();
    assert_eq!((digest, bytes), (blobs.put(b"hello").unwrap(), 5));
    let tree = blobs.tree(&[("a/b.txt".to_owned(), digest), ("c.txt".to_owned(), digest)]).unwrap();
    let path = tree.path().to_owned();
    assert_eq!(fs::read(path.join("a/b.txt")).unwrap(), b"hello");
    assert!(fs::metadata(path.join("c.txt")).unwrap().permissions().readonly());
    drop(tree);
    assert!(!path.exists());
    for bad in ["../x", "/x", "a/../b", ""] {
        assert!(blobs.tree(&[(bad.to_owned(), digest)]).is_err(), "{bad}");
    }
    let twice = [("x".to_owned(), digest), ("x".to_owned(), digest)];
    assert!(blobs.tree(&twice).is_err());
    assert!(fs::read_dir(state.dir().join("scratch")).unwrap().next().is_none());
}

#[test]
fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
    let (dir, state) = state();
    let (scratch, new) = (state.dir().join("scratch"), state.dir().join("blobs/new"));
    let own = Identity::own();
    // The largest number of a process on Linux is 2^22.
    let name = |of: &Identity, end: &str| format!("4194999-state-{}-{end}", of.mark());
    let gone = name(&own, "old");
    fs::create_dir(scratch.join(&gone)).unwrap();
    fs::File::create(new.join(&gone)).unwrap().write_all(b"x").unwrap();
    let before = name(&Identity { boot: Some("before".to_owned()), ..own.clone() }, "old");
    fs::create_dir(scratch.join(&before)).unwrap();
    // Only looks like it; and what a link leads to is somebody else's.
    fs::create_dir(scratch.join("2019-summer")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("kept")).unwrap();
    std::os::unix::fs::symlink(outside.path(), scratch.join(name(&own, "link"))).unwrap();
    let tree = state.blobs().tree(&[]).unwrap();
    State::open(&dir.path().join(".checkrein")).unwrap();
    assert!(tree.path().exists() && scratch.join("2019-summer").exists());
    assert!(outside.path().join("kept").exists());
    assert!(!scratch.join(&gone).exists() && !new.join(&gone).exists() && !scratch.join(&before).exists());
}

#[test]
fn what_a_process_that_cannot_be_seen_uses_is_not_removed() {
    let (dir, state) = state();
    let scratch = state.dir().join("scratch");
    let own = Identity::own();
    let (space, host) = (Some("pid:[1]".to_owned()), Some("another".to_owned()));
    let elsewhere = Identity { boot: Some("before".to_owned()), host, ..own.clone() };
    let names = [
        format!("4194999-state-{}-x", Identity { space, ..own }.mark()),
        format!("4194999-state-{}-x", elsewhere.mark()),
        // By a version that said only its number.
        "4194999-state-x".to_owned(),
    ];
    let days = |days: u64| std::time::SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    for (age, is_kept) in [(29, true), (31, false)] {
        for name in &names {
            fs::create_dir_all(scratch.join(name)).unwrap();
            fs::File::open(scratch.join(name)).unwrap().set_modified(days(age)).unwrap();
        }
        State::open(&dir.path().join(".checkrein")).unwrap();
        for name in &names {
            assert_eq!(scratch.join(name).exists(), is_kept, "{name}, {age} days");
        }
    }
}

#[test]
fn a_report_stays_in_its_folder() {
    let (_dir, state) = state();
    assert!(state.run_dir(&run()).unwrap().is_dir());
    assert!(state.run_dir(&RunId::from("../../x")).is_err());
}

fn count(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_is_appended_is_read_back(batches in prop::collection::vec(prop::collection::vec(".*", 0..4), 0..6)) {
        let (_dir, state) = state();
        let mut log = state.lease(&run()).unwrap();
        let mut logged = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            let events: Vec<Event> = batch.iter().map(|text| stage(text)).collect();
            logged.extend(log.append(&run(), Timestamp(at as u64), &events).unwrap());
        }
        prop_assert_eq!(&state.events(&run()).unwrap(), &logged);
        prop_assert!(state.verify(&run(), None).unwrap().holds());
    }

    #[test]
    fn numbers_are_read_back_to_the_last_digit(numbers in prop::collection::vec(any::<f64>(), 1..50)) {
        let (_dir, state) = state();
        let action = serde_json::json!(numbers.iter().filter(|number| number.is_finite()).collect::<Vec<_>>());
        let proposed = Event::ActionProposed { subgoal: "de".into(), action, tokens: 0 };
        state.lease(&run()).unwrap().append(&run(), Timestamp(1), std::slice::from_ref(&proposed)).unwrap();
        prop_assert_eq!(&state.events(&run()).unwrap()[0].event, &proposed);
    }

    #[test]
    fn whatever_is_put_is_got(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5)) {
        let (_dir, state) = state();
        let blobs = state.blobs();
        for bytes in contents.iter().chain(&contents) {
            prop_assert_eq!(&blobs.get(&blobs.put(bytes).unwrap()).unwrap(), bytes);
        }
        prop_assert_eq!(count(&state.dir().join("blobs/new")), 0);
    }
}
