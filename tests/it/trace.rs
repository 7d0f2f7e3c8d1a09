//! The log proves itself: `trace verify` names the first event that was altered, lost or reordered.

use checkrein_tests::{Place, Ran, root};
use rusqlite::Connection;

/// A place with one run, and the head that it printed.
fn run() -> (Place, String) {
    let place = Place::new();
    let task = root().join("tests/tasks/documents/task.toml").display().to_string();
    let config = root().join("tests/tasks/documents/checkrein.toml").display().to_string();
    let state = place.state().display().to_string();
    let run = place.run(&["run", &task, "--config", &config, "--state", &state, "--json"]).expect(0).json();
    let head = run["head"].as_str().unwrap().to_owned();
    (place, head)
}

fn verify(place: &Place, head: Option<&str>) -> Ran {
    let state = place.state().display().to_string();
    let mut args = vec!["trace", "verify", "@last", "--state", &state];
    args.extend(head.iter().flat_map(|head| ["--head", head]));
    place.run(&args)
}

fn change(sql: &str) -> Ran {
    let (place, head) = run();
    Connection::open(place.database()).unwrap().execute_batch(sql).unwrap();
    verify(&place, Some(&head)).expect(6)
}

#[test]
fn an_untouched_log_holds() {
    let (place, head) = run();
    let _ = verify(&place, None).expect(0);
    let _ = verify(&place, Some(&head)).expect(0);
}

#[test]
fn an_altered_event_is_named() {
    let ran =
        change("UPDATE event SET payload = replace(payload, 'bodensolar', 'bodensolaR') WHERE seq = 10");
    assert!(ran.out.contains("event 10"), "{}", ran.out);
    let ran = change("UPDATE event SET at = at + 1 WHERE seq = 4");
    assert!(ran.out.contains("event 4"), "{}", ran.out);
}

#[test]
fn a_lost_event_is_named() {
    let ran = change("DELETE FROM event WHERE seq = 7");
    assert!(ran.out.contains("event 7 was lost"), "{}", ran.out);
}

#[test]
fn reordered_events_are_named() {
    let ran = change(
        "UPDATE event SET seq = -1 WHERE seq = 5; UPDATE event SET seq = 5 WHERE seq = 6; UPDATE event SET seq = 6 WHERE seq = -1",
    );
    assert!(ran.out.contains("events were reordered: event 5"), "{}", ran.out);
    assert!(ran.out.contains("was written as event 6"), "{}", ran.out);
}

#[test]
fn a_lost_tail_is_found_with_the_head() {
    let (place, head) = run();
    Connection::open(place.database()).unwrap().execute_batch("DELETE FROM event WHERE seq > 12").unwrap();
    let _ = verify(&place, None).expect(0);
    let ran = verify(&place, Some(&head)).expect(6);
    assert!(ran.out.contains("after 12"), "{}", ran.out);
}

#[test]
fn an_altered_blob_is_found() {
    let (place, _) = run();
    let folder = place.state().join("blobs/sha256");
    let blob = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let name = blob.file_name().unwrap().to_string_lossy().into_owned();
    std::fs::remove_file(&blob).unwrap();
    std::fs::write(&blob, "other").unwrap();
    let ran = verify(&place, None).expect(6);
    assert!(ran.out.contains(&name), "{}", ran.out);
    std::fs::remove_file(&blob).unwrap();
    let ran = verify(&place, None).expect(6);
    assert!(ran.out.contains("missing"), "{}", ran.out);
}

#[test]
fn every_event_has_a_line() {
    let (place, _) = run();
    let state = place.state().display().to_string();
    let lines = place.run(&["trace", "@last", "--state", &state]).expect(0).out;
    let events = place.run(&["trace", "@last", "--state", &state, "--json"]).expect(0).out;
    assert_eq!(lines.lines().count(), events.lines().count());
    assert!(lines.contains("accepted"), "{lines}");
}

#[test]
fn what_was_altered_is_not_shown_beside_the_head_of_what_was_not() {
    let works = checkrein_tests::Works::new();
    let file = works.task(&checkrein_tests::task("", &[("", &[checkrein_tests::worker("first", 3)])]));
    let _ = works.run(&["run", file]).expect(0);
    let database = rusqlite::Connection::open(works.database()).unwrap();
    let altered = "UPDATE event SET payload = replace(payload, 'work/3', 'work/9')";
    assert!(database.execute(altered, []).unwrap() > 1);
    drop(database);
    for args in [&["show", "@last"][..], &["report", "@last"], &["why", "@last", "work/9"]] {
        let ran = works.run(args).expect(74);
        assert!(ran.err.contains("altered"), "{}", ran.err);
        assert!(!ran.out.contains("work/9"), "{}", ran.out);
    }
}
