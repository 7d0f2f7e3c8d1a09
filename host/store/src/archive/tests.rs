use std::io::{self, Cursor, Read, Write};
use std::path::Path;
use std::time::Duration;

use checkrein_contract::Digest;
use checkrein_contract::ask::Message;
use checkrein_contract::event::{Ended, Event, RunStatus, StoredArtifact, chain};
use checkrein_contract::id::{CallId, RunId, StageId, Timestamp};
use checkrein_contract::port::{Blobs, Log, StorageError};
use checkrein_contract::record::{FolderFile, FolderSeen, Record};
use rusqlite::Connection;
use tempfile::TempDir;

use super::ustar::header;
use super::walk::{NUMBER_MAX, TAKEN_MAX};
use super::{Contents, Exported, Imported, Line};
use crate::{EventLog, Options, State, StoreError};

mod tampered;

const BLOCK: usize = 512;

fn state() -> (TempDir, State) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wait: Duration::from_millis(50), ..Options::default() };
    let state = State::open_with(&dir.path().join(".checkrein"), options).unwrap();
    (dir, state)
}

fn run() -> RunId {
    RunId::from("r1")
}

fn stage(name: &str) -> Event {
    Event::StageEntered { stage: StageId::from(name) }
}

/// A call with an outcome and a file, which saw a folder with a file that no event names.
fn call(state: &State) -> Event {
    let blobs = state.blobs();
    let seen = FolderFile { path: "a".to_owned(), digest: Some(blobs.put(b"seen").unwrap()) };
    let folder = FolderFile { path: "b".to_owned(), digest: None };
    let list = blobs.put(&serde_json::to_vec(&[seen, folder]).unwrap()).unwrap();
    let seen = FolderSeen { path: "/data".to_owned(), files: Some(list), left_out: None };
    let artifact = StoredArtifact {
        path: "de.csv".to_owned(),
        title: "table".to_owned(),
        media_type: "text/csv".to_owned(),
        digest: blobs.put(&[b'x'; BLOCK]).unwrap(),
        bytes: BLOCK as u64,
    };
    let outcome = blobs.put(b"").unwrap();
    let ended = Ended::Outcome { outcome, drafts: Vec::new(), artifacts: vec![artifact] };
    let record = Record { folders: vec![seen], ..Record::default() };
    Event::CallEnded { call: CallId::from("r1/de/1"), ended, log: None, record, attested: false }
}

/// A state with a run, as it was exported.
struct Filled {
    _dir: TempDir,
    state: State,
    extra: Digest,
    file: Vec<u8>,
    exported: Exported,
}

fn filled() -> Filled {
    filled_with("first")
}

fn filled_with(name: &str) -> Filled {
    let (dir, state) = state();
    let lease = Event::LeaseTaken { epoch: 3, holder: "one".to_owned() };
    let letter =
        Event::LetterTaken { letter: 17, by: "ann".to_owned(), said: Message::Cancel, refused: None };
    let end = Event::RunEnded { status: RunStatus::Done, reason: "\"done\"\u{e9}\n".to_owned() };
    let mut log = state.lease(&run()).unwrap();
    log.append(&run(), Timestamp(1), &[stage(name), lease, letter]).unwrap();
    log.append(&run(), Timestamp(2), &[call(&state), end]).unwrap();
    drop(log);
    let extra = state.blobs().put(b"prompt").unwrap();
    let (file, exported) = export(&state, &[extra]).unwrap();
    Filled { _dir: dir, state, extra, file, exported }
}

fn export(state: &State, extra: &[Digest]) -> Result<(Vec<u8>, Exported), StoreError> {
    let mut file = Vec::new();
    let exported = state.export(&run(), extra, &mut file)?;
    Ok((file, exported))
}

fn import(state: &State, file: &[u8]) -> Result<Imported, StoreError> {
    state.import(&mut Cursor::new(file), None)
}

#[test]
fn what_a_folder_held_is_verified_too() {
    let Filled { state, _dir, .. } = filled();
    assert!(state.verify(&run(), None).unwrap().holds());
    let seen = Digest::of(b"seen");
    std::fs::remove_file(state.blobs().path(&seen)).unwrap();
    let found = state.verify(&run(), None).unwrap();
    let [fault] = &found.blob_faults[..] else { panic!("{found:?}") };
    assert_eq!((fault.digest, fault.kind.as_str()), (seen, "call-ended"));
}

/// An entry of a file: its name and its content.
type Entry = (String, Vec<u8>);

/// The entries of a file.
fn entries(file: &[u8]) -> Vec<Entry> {
    let (mut entries, mut rest) = (Vec::new(), file);
    while rest[0] != 0 {
        let name = String::from_utf8(rest[..100].to_vec()).unwrap().trim_end_matches('\0').to_owned();
        let digits = std::str::from_utf8(&rest[124..135]).unwrap();
        let size = usize::from_str_radix(digits, 8).unwrap();
        entries.push((name, rest[BLOCK..BLOCK + size].to_vec()));
        rest = &rest[BLOCK + size.next_multiple_of(BLOCK)..];
    }
    entries
}

fn with_header(file: &mut Vec<u8>, header: &[u8], content: &[u8]) {
    file.extend_from_slice(header);
    file.extend_from_slice(content);
    file.resize(file.len().next_multiple_of(BLOCK), 0);
}

fn packed(entries: &[Entry]) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, content) in entries {
        with_header(&mut file, &header(name, content.len() as u64), content);
    }
    file.resize(file.len() + 2 * BLOCK, 0);
    file
}

/// The file with other contents, consistent in all else.
fn with_contents(file: &[u8], change: impl FnOnce(&mut Contents)) -> Vec<u8> {
    let mut entries = entries(file);
    let mut contents: Contents = serde_json::from_slice(&entries[0].1).unwrap();
    change(&mut contents);
    entries[0].1 = contents.to_text().unwrap().into_bytes();
    packed(&entries)
}

/// The file with other lines, chained anew if they are to be.
fn with_lines(file: &[u8], again: bool, change: impl FnOnce(&mut Vec<Line>)) -> Vec<u8> {
    let mut entries = entries(file);
    let text = String::from_utf8(entries[1].1.clone()).unwrap();
    let mut lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    change(&mut lines);
    let mut head = Digest::ZERO;
    for line in lines.iter_mut().filter(|_| again) {
        line.prev = head;
        line.digest = chain(&run(), line.seq, line.at, &head, &line.payload);
        head = line.digest;
    }
    let (head, events) = (lines.last().unwrap().digest, lines.len() as u64);
    entries[1].1 = lines.iter().flat_map(|line| line.to_text().unwrap().into_bytes()).collect();
    with_contents(&packed(&entries), |contents| (contents.head, contents.events) = (head, events))
}

fn rows(state: &State) -> Vec<String> {
    let connection = Connection::open(state.database()).unwrap();
    let query = "SELECT run || seq || kind || at || prev || digest || payload FROM event ORDER BY run, seq";
    let mut statement = connection.prepare(query).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_run_is_the_same_elsewhere() {
    let from = filled();
    let (_dir, to) = state();
    let Exported { digest, bytes, events, blobs, head } = from.exported;
    assert_eq!((bytes, digest), (from.file.len() as u64, Digest::of(&from.file)));
    assert_eq!((events, blobs), (5, 5));
    let imported = to.import(&mut Cursor::new(&from.file), Some(digest)).unwrap();
    assert_eq!(imported, Imported { run: run(), events, blobs, head, digest, fresh: true });
    assert_eq!(rows(&to), rows(&from.state));
    let found = to.verify(&run(), Some(head)).unwrap();
    assert!(found.holds(), "{found:?}");
    assert_eq!(to.blobs().get(&from.extra).unwrap(), b"prompt");
    assert_eq!(to.blobs().get(&Digest::of(b"seen")).unwrap(), b"seen");
    assert_eq!(export(&to, &[from.extra]).unwrap(), (from.file, from.exported));
}

#[test]
fn any_tar_can_look_into_it() {
    let Filled { _dir: dir, file, .. } = filled();
    std::fs::write(dir.path().join("r1.tar"), &file).unwrap();
    let listed =
        std::process::Command::new("tar").arg("-tf").arg(dir.path().join("r1.tar")).output().unwrap();
    assert!(listed.status.success() && listed.stderr.is_empty(), "{listed:?}");
    let names: Vec<String> = entries(&file).into_iter().map(|(name, _)| name).collect();
    assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().collect::<Vec<_>>(), names);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let Filled { _dir, state, extra, file, exported } = filled();
    let twice = [extra, extra, Digest::of(b"seen")];
    assert_eq!(export(&state, &twice).unwrap(), (file, exported));
}

#[test]
fn a_run_that_is_here_already_must_be_the_same() {
    let from = filled();
    let (_dir, to) = state();
    assert!(import(&to, &from.file).unwrap().fresh);
    let before = rows(&to);
    let again = import(&to, &from.file).unwrap();
    assert_eq!((again.fresh, again.head), (false, from.exported.head));
    let refusal = |state: &State, file: &[u8]| {
        let error = import(state, file).unwrap_err();
        assert!(matches!(error, StoreError::OtherEvents { .. }), "{error}");
        error.to_string()
    };
    let other = refusal(&to, &filled_with("other").file);
    assert!(other.contains("5 events here, 5 in the file, and none is the same"), "{other}");
    let shorter = with_lines(&from.file, false, |lines| lines.truncate(4));
    let shorter = refusal(&to, &shorter);
    assert!(shorter.contains("5 events here, 4 in the file, and only the first 4 are the same"), "{shorter}");
    assert_eq!(rows(&to), before);
    to.lease(&run()).unwrap().append(&run(), Timestamp(9), &[stage("more")]).unwrap();
    let longer = refusal(&to, &from.file);
    assert!(longer.contains("6 events here, 5 in the file, and only the first 5 are the same"), "{longer}");
}

#[test]
fn an_imported_run_counts_its_letters_and_its_drivers_on() {
    let from = filled();
    let (_dir, to) = state();
    to.post(&RunId::from("r0"), "ann", Timestamp(1), &Message::Cancel).unwrap();
    import(&to, &from.file).unwrap();
    assert!(to.drives(&run()).unwrap().is_none());
    let letter = to.post(&run(), "ann", Timestamp(1), &Message::Cancel).unwrap();
    assert_eq!(letter, 18);
    assert_eq!(to.letters(&run(), 17).unwrap().len(), 1);
    assert_eq!(to.lease(&run()).unwrap().lease().0, 4);
    let (_dir, to) = state();
    import(&to, &from.file).unwrap();
    assert_eq!(to.post(&run(), "ann", Timestamp(1), &Message::Cancel).unwrap(), 18);
}

/// The file with other numbers for its letter and its lease.
fn with_numbers(file: &[u8], letter: u64, epoch: u64) -> Vec<u8> {
    with_lines(file, true, |lines| {
        lines[1].payload = lines[1].payload.replace("\"epoch\":3", &format!("\"epoch\":{epoch}"));
        lines[2].payload = lines[2].payload.replace("\"letter\":17", &format!("\"letter\":{letter}"));
    })
}

#[test]
fn no_import_uses_up_the_numbers_that_an_export_holds() {
    let from = filled();
    let (_dir, to) = state();
    for (letter, epoch) in [(TAKEN_MAX + 1, 3), (17, TAKEN_MAX + 1), (NUMBER_MAX, NUMBER_MAX)] {
        let error = import(&to, &with_numbers(&from.file, letter, epoch)).unwrap_err();
        assert!(matches!(error, StoreError::NoExport { .. }), "{error}");
        assert!(error.to_string().contains("the largest is 1099511627776"), "{error}");
    }
    import(&to, &with_numbers(&from.file, TAKEN_MAX, TAKEN_MAX)).unwrap();
    // Another run counts its letters on from there, this one its drivers too; both can leave again.
    let other = RunId::from("r2");
    for run in [run(), other] {
        let letter = to.post(&run, "ann", Timestamp(1), &Message::Cancel).unwrap();
        assert!(letter > TAKEN_MAX);
        let mut log = to.lease(&run).unwrap();
        let (epoch, holder) = log.lease();
        let taken = Event::LetterTaken { letter, by: "ann".into(), said: Message::Cancel, refused: None };
        log.append(&run, Timestamp(9), &[Event::LeaseTaken { epoch, holder }, taken]).unwrap();
        to.export(&run, &[], &mut Vec::new()).unwrap();
    }
}

#[test]
fn other_runs_go_on_while_one_is_read() {
    /// Reads a file, and writes to other runs at each step.
    struct Slow<'a>(Cursor<&'a [u8]>, &'a State, EventLog);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Slow(file, state, log) = self;
            state.post(&RunId::from("r0"), "ann", Timestamp(1), &Message::Cancel).unwrap();
            log.append(&RunId::from("r0"), Timestamp(1), &[stage("on")]).unwrap();
            let most = buffer.len().min(BLOCK);
            file.read(&mut buffer[..most])
        }
    }
    let from = filled();
    let (_dir, to) = state();
    let log = to.lease(&RunId::from("r0")).unwrap();
    let mut slow = Slow(Cursor::new(&from.file), &to, log);
    assert!(to.import(&mut slow, None).unwrap().fresh);
    assert!(slow.2.len() > from.file.len() as u64 / BLOCK as u64);
}

#[test]
fn what_is_here_already_is_compared_without_the_lock() {
    let from = filled();
    let (_dir, to) = state();
    import(&to, &from.file).unwrap();
    let other = Connection::open(to.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(!import(&to, &from.file).unwrap().fresh);
    let error = import(&to, &filled_with("other").file).unwrap_err();
    assert!(matches!(error, StoreError::OtherEvents { .. }), "{error}");
}

#[test]
fn of_many_imports_at_once_one_is_fresh() {
    let from = filled();
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wait: Duration::from_secs(30), ..Options::default() };
    let to = State::open_with(&dir.path().join(".checkrein"), options).unwrap();
    let all = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| import(&to, &from.file).unwrap())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(all.iter().filter(|one| one.fresh).count(), 1, "{all:?}");
    assert_eq!(rows(&to), rows(&from.state));
}

#[test]
fn what_cannot_be_exported_whole_is_not_exported() {
    let Filled { _dir, state, extra, file, .. } = filled();
    let named: Vec<Digest> = serde_json::from_slice::<Contents>(&entries(&file)[0].1)
        .unwrap()
        .blobs
        .iter()
        .map(|blob| blob.digest)
        .collect();
    for digest in named {
        let path = state.blobs().path(&digest);
        let bytes = std::fs::read(&path).unwrap();
        replace(&path, &[&bytes[..], b"?"].concat());
        let said = export(&state, &[extra]).unwrap_err().to_string();
        assert!(said.contains(&digest.hex()) && said.contains("is damaged"), "{said}");
        std::fs::remove_file(&path).unwrap();
        let error = export(&state, &[extra]).unwrap_err();
        assert!(matches!(error, StoreError::Storage(StorageError::Missing { .. })), "{error}");
        assert!(error.to_string().contains(&format!("blob {digest}, named by ")), "{error}");
        replace(&path, &bytes);
    }
    assert_eq!(export(&state, &[extra]).unwrap().0, file);
    Connection::open(state.database()).unwrap().execute("UPDATE event SET at = 7 WHERE seq = 2", []).unwrap();
    let error = export(&state, &[extra]).unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error}");
    let none = state.export(&RunId::from("r2"), &[], &mut Vec::new());
    assert!(matches!(none, Err(StoreError::NoRun { wanted, known }) if wanted == "r2" && known == [run()]));
}

/// Blobs may not be written, but their folder may.
fn replace(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_disk_that_fails_is_no_fault_of_the_file() {
    struct Failing(usize);
    impl Failing {
        fn next(&mut self, wanted: usize) -> io::Result<usize> {
            let some = wanted.min(self.0);
            self.0 -= some;
            if some == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(some) }
        }
    }
    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.next(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.next(buffer.len())
        }
    }
    let from = filled();
    let (_dir, to) = state();
    for room in (0..from.file.len()).step_by(BLOCK) {
        let error = from.state.export(&run(), &[from.extra], &mut Failing(room)).unwrap_err();
        assert!(matches!(error, StoreError::Storage(StorageError::Full { .. })), "{room}: {error}");
        let mut broken = Cursor::new(&from.file[..room]).chain(Failing(0));
        let error = to.import(&mut broken, None).unwrap_err();
        assert!(matches!(error, StoreError::Storage(StorageError::Other { .. })), "{room}: {error}");
        assert!(error.to_string().contains(&format!("at byte {room}")), "{error}");
    }
    assert!(to.runs().unwrap().is_empty());
}
