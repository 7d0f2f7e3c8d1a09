//! A run that is executed again: from its log, from a file, elsewhere, by somebody else.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use checkrein_contract::digest::Digest;
use checkrein_contract::event::chain;
use checkrein_contract::id::{RunId, Timestamp};
use checkrein_tests::{
    DAY, Place, Ran, Works, binary, few, ledger, shifted, stamp, task, text_of, undisturbed, worker,
};
use rusqlite::Connection;
use tempfile::TempDir;

/// A run of the few that is done.
fn done() -> Works {
    let works = Works::new();
    undisturbed(&works, works.task(&text_of(&few())));
    works
}

/// What `export` printed.
fn export(place: &Place, state: &[&str]) -> (PathBuf, serde_json::Value) {
    let file = place.path().join("run.checkrein");
    let name = file.display().to_string();
    let told = place.run(&[&["export", "@last", "--out", &name, "--json"], state].concat()).expect(0).json();
    (file, told)
}

#[test]
fn a_run_gives_the_same_digests_again() {
    let works = done();
    let (book, told) = (works.book("ledger"), works.book("publisher"));
    let entries = works.entries().len();
    let ran = works.run(&["replay", "@last"]).expect(0);
    assert!(ran.out.contains("6 of 6 facts, same digests"), "{}", ran.out);
    assert_eq!((works.book("ledger"), works.book("publisher")), (book, told), "something left");
    assert_eq!(works.entries().len(), entries, "the log is as it was");
    let json = works.run(&["replay", "@last", "--json"]).expect(0).json();
    assert_eq!(json["agrees"], true);
    // Calls that failed and that were rejected are executed again as well.
    assert_eq!((&json["calls"]["of"], &json["calls"]["executed"]), (&8.into(), &8.into()), "{json:#}");
}

/// A folder in which nothing of this machine's user is, for another one to work in.
struct Elsewhere {
    folder: TempDir,
    other_user: bool,
}

impl Elsewhere {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("checkrein");
        std::fs::copy(binary(), &program).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let other_user = own_id() == "0";
        for folder in [folder.path(), &folder.path().join("home"), &folder.path().join("tmp")] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
            if other_user {
                chown(folder, Some(65_534), Some(65_534)).unwrap();
            }
        }
        Elsewhere { folder, other_user }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn take(&self, file: &Path) -> String {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::copy(file, self.path().join(&name)).unwrap();
        std::fs::set_permissions(self.path().join(&name), PermissionsExt::from_mode(0o644)).unwrap();
        name
    }

    /// As another user and without network, where this one may arrange that; in another language and
    /// time zone, and a year later.
    fn run(&self, args: &[&str]) -> Ran {
        let alone = self.other_user && succeeds(Command::new("unshare").args(["--net", "true"]));
        let mut words: Vec<String> = Vec::new();
        if alone {
            words.extend(["unshare", "--net"].map(str::to_owned));
        }
        if self.other_user {
            let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
            words.extend(user.map(str::to_owned));
        }
        words.push(self.path().join("checkrein").display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(args).current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path().join("home"));
        command.env("TMPDIR", self.path().join("tmp"));
        command.env("TZ", "Asia/Tokyo").env("LC_ALL", "tr_TR.UTF-8").env("LANG", "tr_TR.UTF-8");
        shifted(&mut command, 365 * DAY);
        let out = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: out.status.code().unwrap_or(-1), out: text(&out.stdout), err: text(&out.stderr) }
    }
}

fn own_id() -> String {
    let out = Command::new("id").arg("-u").output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn an_export_gives_the_same_digests_elsewhere() {
    let works = done();
    let (file, told) = export(&works, &[]);
    let report = works.run(&["report", "@last"]).expect(0).out.trim().replace(".html", ".md");
    let report = std::fs::read_to_string(works.path().join(report)).unwrap();
    let digest = told["digest"].as_str().unwrap();
    assert!(report.contains(digest.trim_start_matches("sha256:")), "its digest is not in the report");
    assert!(report.contains("checkrein replay "), "its command is not in the report");
    let elsewhere = Elsewhere::new();
    let name = elsewhere.take(&file);
    let ran = elsewhere.run(&["replay", &name]).expect(0);
    assert!(ran.out.contains("6 of 6 facts, same digests"), "{}", ran.out);
    let head = told["head"].as_str().unwrap().trim_start_matches("sha256:");
    assert!(ran.out.contains(head), "{}", ran.out);
    // Taken in, it is a run like any other.
    let ran = elsewhere.run(&["import", &name, "--digest", digest]).expect(0);
    assert!(ran.out.contains(head), "{}", ran.out);
    let _ = elsewhere.run(&["trace", "verify", "@last", "--head", head]).expect(0);
    let again = elsewhere.run(&["replay", "@last"]).expect(0);
    assert!(again.out.contains("6 of 6 facts, same digests"), "{}", again.out);
}

#[test]
fn the_demo_gives_the_same_digests_elsewhere() {
    let place = Place::new();
    let _ = place.run(&["demo"]).expect(0);
    let (file, _) = export(&place, &[]);
    let elsewhere = Elsewhere::new();
    let name = elsewhere.take(&file);
    let ran = elsewhere.run(&["replay", &name, "--json"]).expect(0).json();
    assert_eq!(ran["agrees"], true, "{ran:#}");
    let facts = place.run(&["report", "@last", "--json"]).expect(0).json();
    let count = facts["facts"].as_array().unwrap().len();
    assert_eq!((&ran["facts"]["of"], &ran["facts"]["same"]), (&count.into(), &count.into()), "{ran:#}");
    assert!(count >= 625, "{count}");
}

#[test]
fn an_export_that_was_altered_is_refused() {
    let works = done();
    let (file, told) = export(&works, &[]);
    let digest = told["digest"].as_str().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let altered = works.path().join("altered.checkrein");
    let name = altered.display().to_string();
    let fresh = Works::new();
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&altered, bytes).unwrap();
        for args in [&["replay", &name][..], &["import", &name], &["import", &name, "--digest", digest]] {
            let ran = fresh.run(args);
            assert!(matches!(ran.code, 1 | 6 | 74) && ran.errors().len() == 1, "{what}, {args:?}: {ran:#?}");
        }
        assert!(fresh.last_run().is_none(), "{what}: it was taken in");
    };
    for part in [1, 2, 3, 5, 8, 13] {
        let at = whole.len() * part / 14;
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        refused(&bytes, &format!("byte {at} of {}", whole.len()));
    }
    refused(&whole[..whole.len() / 2], "the second half is missing");
    refused(&[whole.as_slice(), b"more"].concat(), "there is more");
    refused(b"", "an empty file");
    // The whole of it, against the digest of another.
    std::fs::write(&altered, &whole).unwrap();
    let last = if digest.ends_with('0') { '1' } else { '0' };
    let other = format!("{}{last}", &digest[..digest.len() - 1]);
    let _ = fresh.run(&["import", &name, "--digest", &other]).expect(6);
    let _ = fresh.run(&["import", &name, "--digest", digest]).expect(0);
    let _ = fresh.run(&["import", &name]).expect(0);
}

#[test]
fn what_comes_out_otherwise_is_shown_with_its_suspect() {
    let works = Works::new();
    works.configure_works("", "[grant.stamp]\nclock = \"real\"\n");
    let text = task("", &[("", &[worker("sum", 3), stamp("now")])]);
    let _ = works.run(&["run", works.task(&text)]).expect(0);
    let ran = works.run(&["replay", "@last"]).expect(6);
    for what in ["ended otherwise", "of stamp", "/content/nanos", "suspect   clock"] {
        assert!(ran.out.contains(what), "`{what}` is not in\n{}", ran.out);
    }
    let json = works.run(&["replay", "@last", "--json"]).expect(6).json();
    assert_eq!((&json["agrees"], &json["first"]["suspects"][0]["suspect"]), (&false.into(), &"clock".into()));
    assert_eq!(json["facts"], serde_json::json!({ "of": 2, "same": 1, "not_compared": 0 }));
}

#[test]
fn a_run_whose_outcome_was_exchanged_does_not_agree() {
    let works = done();
    // The log itself is altered: its chain does not hold any more.
    let change =
        "UPDATE event SET payload = replace(payload, 'no luck', 'no lack') WHERE kind = 'call-ended'";
    assert!(works.alter(change) > 0);
    let ran = works.run(&["replay", "@last"]).expect(6);
    assert_eq!(ran.errors().len(), 1, "{}", ran.err);
}

/// Makes the chain of the last run anew, as whoever altered its events could.
fn link_again(place: &Place) {
    let run = RunId::from(place.last_run().unwrap().as_str());
    let database = Connection::open(place.database()).unwrap();
    let mut statement =
        database.prepare("SELECT seq, at, payload FROM event WHERE run = ?1 ORDER BY seq").unwrap();
    let events = statement.query_map([run.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
    });
    let events: Vec<(i64, i64, String)> = events.unwrap().map(Result::unwrap).collect();
    let mut prev = Digest::ZERO;
    for (seq, at, payload) in events {
        let digest = chain(&run, seq as u64, Timestamp(at as u64), &prev, &payload);
        let link = "UPDATE event SET prev = ?1, digest = ?2 WHERE run = ?3 AND seq = ?4";
        let values = (prev.to_string(), digest.to_string(), run.as_str(), seq);
        assert_eq!(database.execute(link, values).unwrap(), 1);
        prev = digest;
    }
}

#[test]
fn an_export_whose_facts_were_relabelled_does_not_agree() {
    let works = done();
    let change = r#"UPDATE event SET payload = replace(replace(payload, '"self-checked"', '"attested"'),
        '"independent"', '"attested"') WHERE kind = 'outcome-accepted'"#;
    assert!(works.alter(change) > 0);
    link_again(&works);
    let _ = works.run(&["trace", "verify", "@last"]).expect(0);
    let (file, _) = export(&works, &[]);
    let name = file.display().to_string();
    let fresh = Works::new();
    let ran = fresh.run(&["replay", &name]).expect(6);
    for what in ["has other facts than the log says", "/facts/0/level: \"attested\" -> ", "suspect   log"] {
        assert!(ran.out.contains(what), "`{what}` is not in\n{}", ran.out);
    }
    let json = fresh.run(&["replay", &name, "--json"]).expect(6).json();
    assert_eq!((&json["agrees"], &json["first"]["what"]), (&false.into(), &"facts".into()), "{json:#}");
    assert_eq!(json["facts"], serde_json::json!({ "of": 6, "same": 0, "not_compared": 0 }));
}

#[test]
fn what_could_not_be_executed_again_is_told_and_does_not_agree() {
    let works = Works::new();
    let step = ledger("books", 6).arg("pause_ms", "20000");
    let _ = works.run(&["run", works.task(&text_of(&[vec![step]]))]).expect(4);
    let _ = works.run(&["approve", "@last"]).expect(0);
    let job = works.job(&["resume", "@last"], |_| {});
    checkrein_tests::until("a line in the ledger", || !works.book("ledger").is_empty());
    job.signal("KILL");
    let _ = job.end();
    undisturbed(&works, "task.toml");
    let json = works.run(&["replay", "@last", "--json"]).expect(6).json();
    assert_eq!(
        (&json["agrees"], &json["calls"]["executed"], &json["facts"]["not_compared"]),
        (&false.into(), &0.into(), &1.into()),
        "{json:#}"
    );
    let ran = works.run(&["replay", "@last"]).expect(6);
    let told = "nothing could be executed again: 1 fact is attested and was not executed";
    assert!(ran.out.contains(told), "{}", ran.out);
}
