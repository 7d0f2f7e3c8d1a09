//! Databases of other versions.

use super::*;
use crate::SCHEMA;

/// What the first version of the schema was.
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

/// A state folder as the first version left it, with six events.
fn first() -> (TempDir, std::path::PathBuf, Digest) {
    let (dir, state) = state();
    let head = filled(&state);
    let file = dir.path().join("first.db");
    let old = Connection::open(&file).unwrap();
    old.execute_batch(FIRST).unwrap();
    old.execute("ATTACH ?1 AS now", [state.database().to_string_lossy()]).unwrap();
    old.execute_batch("INSERT INTO event SELECT * FROM now.event; DETACH now;").unwrap();
    drop((old, state));
    let at = dir.path().join(".checkrein");
    for left in ["checkrein.db", "checkrein.db-wal", "checkrein.db-shm"] {
        drop(fs::remove_file(at.join(left)));
    }
    fs::rename(file, at.join("checkrein.db")).unwrap();
    (dir, at, head)
}

fn version(file: &Path) -> i64 {
    Connection::open(file).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn an_older_database_is_copied_aside_and_migrated() {
    let (_dir, at, head) = first();
    let state = State::open(&at).unwrap();
    assert!(state.verify(&run(), Some(head)).unwrap().holds());
    let aside = at.join("checkrein.db.v1");
    assert_eq!((version(&aside), version(state.database())), (1, SCHEMA));
    let old = Connection::open(&aside).unwrap();
    let events: i64 = old.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();
    assert_eq!(events, 6);
    assert!(old.query_row("SELECT count(*) FROM lease", [], |_| Ok(())).is_err());
    state.lease(&run()).unwrap().append(&run(), Timestamp(9), &[stage("e")]).unwrap();
    // Once is enough.
    drop(State::open(&at).unwrap());
    assert!(!at.join("checkrein.db.v1.1").exists());
}

#[test]
fn no_copy_is_ever_replaced() {
    let (_dir, at, _) = first();
    fs::write(at.join("checkrein.db.v1"), "mine").unwrap();
    drop(State::open(&at).unwrap());
    assert_eq!(fs::read(at.join("checkrein.db.v1")).unwrap(), b"mine");
    assert_eq!(version(&at.join("checkrein.db.v1.1")), 1);
}

#[test]
fn an_older_database_is_read_as_it_is() {
    let (_dir, at, head) = first();
    let reader = State::open_existing(&at).unwrap();
    assert!(reader.verify(&run(), Some(head)).unwrap().holds());
    assert_eq!(reader.runs().unwrap().len(), 1);
    assert_eq!(reader.snapshot(&run()).unwrap(), crate::Kept::None);
    assert!(reader.letters(&run(), 0).unwrap().is_empty() && reader.drives(&run()).unwrap().is_none());
    assert_eq!(version(&at.join("checkrein.db")), 1);
    assert!(!at.join("checkrein.db.v1").exists());
}

#[test]
fn who_opens_it_at_once_migrates_it_once() {
    let (_dir, at, head) = first();
    std::thread::scope(|scope| {
        let open = || {
            let options = Options { wait: Duration::from_secs(10), ..Options::default() };
            State::open_with(&at, options).map(drop)
        };
        let all: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
        all.into_iter().for_each(|one| one.join().unwrap().unwrap());
    });
    assert!(State::open(&at).unwrap().verify(&run(), Some(head)).unwrap().holds());
    assert!(!at.join("checkrein.db.v1.1").exists());
}

#[test]
fn a_newer_database_is_left_as_it_is() {
    let (dir, state) = state();
    filled(&state);
    drop(state);
    let file = dir.path().join(".checkrein/checkrein.db");
    Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let before = fs::read(&file).unwrap();
    let error = State::open(&dir.path().join(".checkrein")).unwrap_err().to_string();
    assert!(error.contains("schema version 3") && error.contains("up to 2"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

/// As it is when a newer process was killed: what it wrote last waits in the write-ahead log.
#[test]
fn not_even_the_write_ahead_log_of_a_newer_database_is_touched() {
    let (dir, state) = state();
    filled(&state);
    tamper(&state, "PRAGMA user_version = 3");
    let (from, to) = (dir.path().join(".checkrein"), dir.path().join("killed"));
    fs::create_dir(&to).unwrap();
    let files = ["checkrein.db", "checkrein.db-wal"];
    for file in files {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let before = files.map(|file| fs::read(to.join(file)).unwrap());
    assert!(!before[1].is_empty());
    for error in [State::open(&to).unwrap_err(), State::open_existing(&to).unwrap_err()] {
        assert!(matches!(error, StoreError::Newer { found: 3, ours: 2, .. }), "{error}");
    }
    assert_eq!(files.map(|file| fs::read(to.join(file)).unwrap()), before);
}

/// Where the process works that may write only small files.
const DIR: &str = "CHECKREIN_TEST_SMALL_DIR";

/// It is no test by itself.
#[test]
#[ignore = "is run by the test beside it"]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    State::open(Path::new(&dir)).unwrap_err();
}

#[test]
fn an_older_database_that_cannot_be_copied_is_left_as_it_is() {
    let (_dir, at, head) = first();
    let file = at.join("checkrein.db");
    let old = Connection::open(&file).unwrap();
    old.execute_batch("INSERT INTO event VALUES ('r2', 1, 'x', 1, '', '', hex(zeroblob(2000000)))").unwrap();
    drop(old);
    // Of files, not of the disk; SQLite is told the same way.
    let shell = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::schema::child", "--ignored", "--quiet"]).env(DIR, &at);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let names: Vec<String> = fs::read_dir(&at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.contains(".v1") || name.contains("-state-")), "{names:?}");
    assert_eq!(version(&file), 1);
    assert!(State::open_existing(&at).unwrap().verify(&run(), Some(head)).unwrap().holds());
}

#[test]
fn an_older_database_in_a_folder_that_takes_no_file_is_left_as_it_is() {
    use std::os::fd::AsRawFd;
    let (_dir, at, head) = first();
    let open = fs::File::open(at.join("checkrein.db")).unwrap();
    // No user, not even root, can make a file there.
    let place = format!("/proc/self/fd/{}", open.as_raw_fd());
    crate::connection::writable(Path::new(&place), Duration::from_secs(5)).unwrap_err();
    assert_eq!(version(&at.join("checkrein.db")), 1);
    assert!(State::open_existing(&at).unwrap().verify(&run(), Some(head)).unwrap().holds());
}
