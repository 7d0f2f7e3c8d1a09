//! Disk and database: a clear error, exit 74, the log intact.

use checkrein_tests::{Place, root};
use rusqlite::Connection;

fn documents(place: &Place, state: &str) -> checkrein_tests::Ran {
    let task = root().join("tests/tasks/documents/task.toml").display().to_string();
    let config = root().join("tests/tasks/documents/checkrein.toml").display().to_string();
    place.run(&["run", &task, "--config", &config, "--state", state])
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    let place = Place::new();
    let file = place.write("file", "");
    let state = file.join("state").display().to_string();
    let ran = documents(&place, &state).expect(74);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.err.contains("file"), "{}", ran.err);
}

#[test]
fn a_database_that_another_process_holds() {
    let place = Place::new();
    let state = place.state().display().to_string();
    let _ = documents(&place, &state).expect(0);
    let holder = Connection::open(place.database()).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ran = documents(&place, &state).expect(74);
    assert!(ran.err.contains("locked"), "{}", ran.err);
    holder.execute_batch("ROLLBACK").unwrap();
    let _ = place.run(&["trace", "verify", "@last", "--state", &state]).expect(0);
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_run() {
    let place = Place::new();
    let state = place.state().display().to_string();
    let _ = documents(&place, &state).expect(0);
    // A trigger stands for the disk: SQLite gives the same error for a page that finds no room.
    let database = Connection::open(place.database()).unwrap();
    database
        .execute_batch("CREATE TRIGGER full BEFORE INSERT ON event WHEN NEW.seq = 9 BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
        .unwrap();
    let ran = documents(&place, &state).expect(74);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    database.execute_batch("DROP TRIGGER full").unwrap();
    let runs = place.run(&["runs", "--state", &state, "--json"]).expect(0).json();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let _ = place.run(&["trace", "verify", run["run"].as_str().unwrap(), "--state", &state]).expect(0);
    }
}

#[test]
fn a_database_that_is_none() {
    let place = Place::new();
    let state = place.state().display().to_string();
    let _ = documents(&place, &state).expect(0);
    std::fs::write(place.database(), "this is no database, and long enough to be taken for one".repeat(50))
        .unwrap();
    let ran = documents(&place, &state).expect(74);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
}
