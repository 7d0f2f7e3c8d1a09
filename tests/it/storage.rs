//! Disk and database: a clear error, exit 74, the log intact.

use checkrein_tests::{Disk, Place, Ran, on_a_small_disk, root};
use rusqlite::Connection;

fn documents(place: &Place, state: &str) -> Ran {
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

/// A state folder on a disk.
fn state_on(disk: &Disk) -> String {
    let state = disk.path().join("state");
    std::fs::create_dir(&state).unwrap();
    state.display().to_string()
}

/// Every run of a state folder is what was written; gives how many there are.
fn all_hold(place: &Place, state: &str) -> usize {
    let runs = place.run(&["runs", "--state", state, "--json"]).expect(0).json();
    let runs = runs["runs"].as_array().unwrap();
    for run in runs {
        let _ = place.run(&["trace", "verify", run["run"].as_str().unwrap(), "--state", state]).expect(0);
    }
    runs.len()
}

#[track_caller]
fn is_told(ran: &Ran) {
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
    assert!(ran.errors()[0].to_lowercase().contains("no space left"), "{}", ran.err);
}

#[test]
fn a_disk_that_is_full_at_any_point_of_a_run() {
    on_a_small_disk("storage::a_disk_that_is_full_at_any_point_of_a_run", "64m", |disk| {
        let place = Place::new();
        let state = state_on(disk);
        let _ = documents(&place, &state).expect(0);
        let (mut before, mut in_the_middle, mut done) = (1, 0, false);
        // From a disk without any room to one on which the run fits.
        for left in (0..64u64).map(|step| step * 8 * 1024) {
            disk.fill(left);
            let ran = documents(&place, &state);
            disk.clear();
            let now = all_hold(&place, &state);
            if ran.code == 0 {
                done = true;
                break;
            }
            let ran = ran.expect(74);
            is_told(&ran);
            in_the_middle += usize::from(now > before);
            before = now;
        }
        assert!(done, "it never fitted");
        assert!(in_the_middle > 0, "no run was cut off in the middle");
    });
}

#[test]
fn a_disk_on_which_an_input_does_not_fit() {
    on_a_small_disk("storage::a_disk_on_which_an_input_does_not_fit", "64m", |disk| {
        let place = Place::new();
        place.configure(&["table-profile"], "");
        let state = state_on(disk);
        place.write("small.csv", "a,b\n1,2\n");
        place.write("large.csv", &format!("a,b\n{}", format!("1,{}\n", "x".repeat(4000)).repeat(1000)));
        let call = |file: &str| {
            let (args, input) =
                ("{\"table\":\"/in/FILE.csv\"}".replace("FILE", file), format!("t={file}.csv"));
            place.run(&["call", "table-profile", &args, "--in", &input, "--state", &state])
        };
        let _ = call("small").expect(0);
        disk.fill(1 << 20);
        is_told(&call("large").expect(74));
        disk.clear();
        assert_eq!(all_hold(&place, &state), 1, "a run without its input was started");
        let _ = call("large").expect(0);
    });
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
