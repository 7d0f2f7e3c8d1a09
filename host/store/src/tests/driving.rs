//! Who drives a run: leases, letters, snapshots, and events that follow from one another.

use checkrein_contract::ask::{Amendment, Answer, Letter, Message};
use checkrein_contract::event::Stop;
use checkrein_contract::port::Beat;

use super::*;
use crate::Kept;

fn approve() -> Message {
    Message::Answer { ask: "1".into(), answer: Answer::Approved { until: None } }
}

/// The row of the lease says this of its holder.
fn held_by(state: &State, change: &str) {
    tamper(state, &format!("UPDATE lease SET {change}"));
}

#[test]
fn a_lease_is_given_back_when_it_is_dropped() {
    let (_dir, state) = state();
    let one = state.lease(&run()).unwrap();
    assert_eq!(one.lease().0, 1);
    assert!(state.drives(&run()).unwrap().unwrap().holder.contains("process"));
    drop(one);
    assert!(state.drives(&run()).unwrap().is_none());
    assert_eq!(state.lease(&run()).unwrap().lease().0, 2);
}

#[test]
fn a_process_that_is_gone_drives_nothing() {
    let gone = ["pid = 999999999", "started = started + 1", "boot = 'another'"];
    for change in gone {
        let (_dir, state) = state();
        let one = state.lease(&run()).unwrap();
        held_by(&state, change);
        let two = state.lease(&run());
        assert!(two.is_ok(), "{change}: {two:?}");
        drop(one);
        assert!(state.drives(&run()).unwrap().is_some(), "{change}: the right of another was given back");
    }
}

#[test]
fn of_many_at_once_one_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wait: Duration::from_secs(30), patience: Duration::from_secs(30) };
    let state = State::open_with(&dir.path().join(".checkrein"), options).unwrap();
    let logs = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| state.lease(&run()))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    let refused = logs.iter().filter(|log| matches!(log, Err(StoreError::Driven { .. }))).count();
    assert_eq!((refused, state.drives(&run()).unwrap().is_some()), (7, true), "{logs:?}");
}

#[test]
fn one_that_cannot_be_seen_drives_while_its_beat_moves() {
    // In another container; on another machine; by a version that did not say on which.
    for unseen in
        ["space = 'pid:[1]'", "boot = 'another', space = 'pid:[1]@1'", "boot = 'another', space = 'pid:[1]'"]
    {
        drives_while_its_beat_moves(unseen);
    }
}

fn drives_while_its_beat_moves(unseen: &str) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wait: Duration::from_secs(10), patience: Duration::from_secs(1) };
    let state = State::open_with(&dir.path().join(".checkrein"), options).unwrap();
    let mut one = state.lease(&run()).unwrap();
    held_by(&state, unseen);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| state.lease(&run()).map(drop));
        while !taking.is_finished() {
            one.beat(&Beat::default(), 0).unwrap();
            // Beats come by the clock: without a pause they would leave the lock to nobody else.
            std::thread::sleep(Duration::from_millis(20));
        }
        let error = taking.join().unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Driven { .. }), "{error}");
    });
    // It stands still for as long as one has patience.
    let two = state.lease(&run()).unwrap();
    assert_eq!(two.lease().0, 2);
    let error = one.append(&run(), Timestamp(1), &[stage("a")]).unwrap_err();
    assert!(matches!(error, StorageError::Fenced { .. }), "{error}");
}

#[test]
fn whoever_lost_the_right_writes_nothing_any_more() {
    let (_dir, state) = state();
    let mut one = state.lease(&run()).unwrap();
    one.append(&run(), Timestamp(1), &[stage("a")]).unwrap();
    held_by(&state, "pid = 999999999");
    let two = state.lease(&run()).unwrap();
    let fenced = |answer: Result<(), StorageError>| {
        assert!(
            matches!(&answer, Err(StorageError::Fenced { holder, .. }) if holder.contains("process")),
            "{answer:?}"
        );
    };
    fenced(one.append(&run(), Timestamp(2), &[stage("b")]).map(drop));
    fenced(one.beat(&Beat::default(), 0).map(drop));
    fenced(one.keep_snapshot(b"x"));
    assert_eq!(state.events(&run()).unwrap().len(), 1);
    assert_eq!(state.snapshot(&run()).unwrap(), Kept::None);
    drop(two);
    fenced(one.append(&run(), Timestamp(2), &[stage("b")]).map(drop));
}

#[test]
fn the_summary_says_who_drives_and_why_it_stopped() {
    let (_dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    log.append(&run(), Timestamp(1), &[stage("a"), Event::RunStopped { because: Stop::Person }]).unwrap();
    let summary = state.runs().unwrap().remove(0);
    assert_eq!(summary.stopped, Some(Stop::Person));
    assert!(summary.driven.is_some());
    drop(log);
    assert_eq!(state.runs().unwrap().remove(0).driven, None);
}

/// Nothing is opened by it, one subgoal again, or the criteria of one are evaluated again.
fn amended(reopened: &[&str], evaluated: &[&str]) -> Event {
    let of = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
    let (reopened, evaluated) = (of(reopened), of(evaluated));
    Event::TaskAmended { amendment: Amendment::default(), version: 2, reopened, evaluated }
}

#[test]
fn the_summary_says_how_it_ended_whatever_came_after() {
    let ended = || Event::RunEnded { status: RunStatus::Done, reason: "done".to_owned() };
    let stopped = || Event::RunStopped { because: Stop::Cancelled };
    let resumed = || Event::RunResumed { engine: "wasmtime".to_owned(), in_force: None };
    let lease = || Event::LeaseTaken { epoch: 2, holder: "one".to_owned() };
    let letter = || Event::LetterTaken {
        letter: 1,
        by: "ada".into(),
        said: Message::Cancel,
        refused: Some("late".into()),
    };
    let (done, cancelled) = ((Some(RunStatus::Done), None), (None, Some(Stop::Cancelled)));
    for (events, expected) in [
        (vec![stage("a")], (None, None)),
        (vec![ended()], done),
        (vec![ended(), lease(), resumed(), letter(), amended(&[], &[])], done),
        (vec![ended(), amended(&["de"], &[])], (None, None)),
        (vec![ended(), amended(&[], &["de"]), lease(), resumed(), stage("a")], (None, None)),
        (vec![ended(), amended(&["de"], &[]), resumed(), ended(), letter()], done),
        (vec![ended(), amended(&["de"], &[]), resumed(), stopped(), letter()], cancelled),
        (vec![stopped(), lease(), letter(), amended(&["de"], &[])], cancelled),
        (vec![stopped(), lease(), resumed()], (None, None)),
        (vec![stopped(), lease(), resumed(), stage("a"), letter()], (None, None)),
        (vec![stopped(), resumed(), ended(), lease()], done),
    ] {
        let (_dir, state) = state();
        state.lease(&run()).unwrap().append(&run(), Timestamp(1), &events).unwrap();
        let summary = state.runs().unwrap().remove(0);
        assert_eq!((summary.status, summary.stopped), expected, "{events:?}");
    }
}

#[test]
fn letters_come_in_order_and_once() {
    let (dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    let reader = State::open_existing(&dir.path().join(".checkrein")).unwrap();
    let first = reader.post(&run(), "ada", Timestamp(5), &approve()).unwrap();
    reader.post(&RunId::from("r2"), "ada", Timestamp(5), &Message::Cancel).unwrap();
    let second = reader.post(&run(), "bob", Timestamp(6), &Message::Cancel).unwrap();
    let letters = log.beat(&Beat::default(), 0).unwrap();
    let seen: Vec<(u64, &str)> = letters.iter().map(|letter| (letter.id, letter.by.as_str())).collect();
    assert_eq!(seen, [(first, "ada"), (second, "bob")]);
    assert_eq!(letters[0].message, approve());
    assert_eq!(log.beat(&Beat::default(), first).unwrap().len(), 1);
    assert!(state.letters(&run(), second).unwrap().is_empty());
}

#[test]
fn a_letter_that_cannot_be_read_is_a_letter_and_stops_no_other() {
    let newer = r#"payload = '{"message":"pause","for":3}'"#;
    let long = format!(r#"payload = '{{"message":"{}"}}'"#, "x".repeat(10_000));
    for (change, why) in [
        (newer, "unknown variant `pause`"),
        ("payload = '{}'", "its message: "),
        ("payload = ''", "its message: "),
        ("payload = CAST(x'ff' AS TEXT)", "its message is no text"),
        ("at = -1", "no time"),
        (r#""by" = CAST(x'ff' AS TEXT)"#, "no text"),
        (&long, "unknown variant"),
    ] {
        let (_dir, state) = state();
        let mut log = state.lease(&run()).unwrap();
        for by in ["ada", "bob", "eve"] {
            state.post(&run(), by, Timestamp(5), &approve()).unwrap();
        }
        tamper(&state, &format!("UPDATE inbox SET {change} WHERE id = 2"));
        let letters = log.beat(&Beat::default(), 0).unwrap();
        assert_eq!(state.letters(&run(), 0).unwrap(), letters);
        let [first, Letter { id: 2, message: Message::Unreadable { why: found }, .. }, last] = &letters[..]
        else {
            panic!("{change}: {letters:?}")
        };
        assert!(found.contains(why) && found.len() < 400, "{change}: {found}");
        assert_eq!((&first.message, &last.message, last.by.as_str()), (&approve(), &approve(), "eve"));
    }
}

#[test]
fn nobody_can_post_a_letter_that_cannot_be_read() {
    let (_dir, state) = state();
    let unreadable = Message::Unreadable { why: "so".to_owned() };
    let error = state.post(&run(), "ada", Timestamp(5), &unreadable).unwrap_err().to_string();
    assert!(error.contains("a letter to run r1") && error.contains("not posted"), "{error}");
    assert!(state.letters(&run(), 0).unwrap().is_empty());
}

#[test]
fn what_a_driver_tells_can_be_read() {
    let (_dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    let beat = Beat { events: 7, calls: vec![("r1/de/1".into(), 9)] };
    log.beat(&beat, 0).unwrap();
    assert_eq!(state.drives(&run()).unwrap().unwrap().beat, beat);
}

#[test]
fn a_snapshot_is_what_was_kept_or_nothing() {
    let (_dir, state) = state();
    let mut log = state.lease(&run()).unwrap();
    log.append(&run(), Timestamp(1), &[stage("a"), stage("b")]).unwrap();
    let (head, folded) = (log.head(), b"what it folds to".to_vec());
    log.keep_snapshot(&folded).unwrap();
    log.append(&run(), Timestamp(2), &[stage("c")]).unwrap();
    let kept = || state.snapshot(&run()).unwrap();
    assert_eq!(kept(), Kept::At { seq: 2, digest: head, folded: folded.clone() });
    assert_eq!(state.chained_after(&run(), 2, head).unwrap().len(), 1);
    for at in 0..folded.len() {
        for bit in 0..8 {
            let mut other = folded.clone();
            other[at] ^= 1 << bit;
            let hex: String = other.iter().map(|byte| format!("{byte:02x}")).collect();
            tamper(&state, &format!("UPDATE snapshot SET folded = x'{hex}'"));
            assert!(matches!(kept(), Kept::Damaged(_)), "byte {at}, bit {bit}");
        }
    }
    let hex: String = folded.iter().map(|byte| format!("{byte:02x}")).collect();
    tamper(&state, &format!("UPDATE snapshot SET folded = x'{hex}'"));
    assert!(matches!(kept(), Kept::At { .. }));
    for change in ["seq = 1", "seq = 3", "version = 9", "digest = 'x'", "checksum = ''"] {
        tamper(
            &state,
            &format!(
                "BEGIN; CREATE TABLE aside AS SELECT * FROM snapshot; UPDATE snapshot SET {change}; COMMIT"
            ),
        );
        assert!(matches!(kept(), Kept::Damaged(_)), "{change}: {:?}", kept());
        tamper(
            &state,
            "BEGIN; DELETE FROM snapshot; INSERT INTO snapshot SELECT * FROM aside; DROP TABLE aside; COMMIT",
        );
    }
    // Events that it stands on were lost.
    tamper(&state, "DELETE FROM event WHERE seq >= 2");
    assert!(matches!(kept(), Kept::Damaged(why) if why.contains("ends at event 1")));
}

#[test]
fn no_snapshot_is_used_where_events_before_it_were_lost() {
    for (change, told) in [
        ("DELETE FROM event WHERE seq = 2", "event 2 was lost"),
        ("DELETE FROM event WHERE seq IN (1, 2)", "events 1 to 2 were lost"),
        // As many as before, one at a position that no log has.
        ("UPDATE event SET seq = 0 WHERE seq = 1", "the log has no such position"),
    ] {
        let (_dir, state) = state();
        filled(&state);
        let mut log = state.lease(&run()).unwrap();
        log.keep_snapshot(b"folded").unwrap();
        log.append(&run(), Timestamp(9), &[stage("e")]).unwrap();
        assert!(matches!(state.snapshot(&run()).unwrap(), Kept::At { seq: 6, .. }));
        tamper(&state, change);
        let Kept::Damaged(why) = state.snapshot(&run()).unwrap() else { panic!("{change}") };
        assert!(why.contains("kept at event 6"), "{why}");
        // So the log is read whole, and says where the fault is.
        let fault = broken(&state, 0, Digest::ZERO).to_string();
        assert!(fault.contains(told), "{fault}");
    }
}

#[test]
fn events_that_do_not_follow_are_told() {
    let changes = [
        ("UPDATE event SET payload = replace(payload, 'b', 'x') WHERE seq = 2", "event 2"),
        ("DELETE FROM event WHERE seq = 3", "event 3 was lost"),
        ("UPDATE event SET at = 77 WHERE seq = 4", "event 4"),
    ];
    for (change, expected) in changes {
        let (_dir, state) = state();
        filled(&state);
        assert_eq!(state.chained_after(&run(), 0, Digest::ZERO).unwrap().len(), 6);
        tamper(&state, change);
        let error = state.chained_after(&run(), 0, Digest::ZERO).unwrap_err();
        assert!(matches!(error, StoreError::Broken { .. }), "{change}: {error}");
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("trace verify"),
            "{error}"
        );
    }
}

fn broken(state: &State, seq: u64, digest: Digest) -> ChainFault {
    match state.chained_after(&run(), seq, digest) {
        Err(StoreError::Broken { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_follow_from_the_one_that_was_named() {
    let (_dir, state) = state();
    let head = filled(&state);
    let third = state.events(&run()).unwrap()[2].digest;
    assert_eq!(state.chained_after(&run(), 3, third).unwrap(), state.events_after(&run(), 3).unwrap());
    assert_eq!(state.chained_after(&run(), 6, head).unwrap(), []);
    assert!(matches!(broken(&state, 3, head), ChainFault::Altered { seq: 3, .. }));
    assert_eq!(broken(&state, 9, head), ChainFault::TailLost { after: 6, expected: head });
    tamper(&state, "UPDATE event SET kind = 'stage-left' WHERE seq = 5");
    assert!(matches!(broken(&state, 3, third), ChainFault::Altered { seq: 5, .. }));
    tamper(&state, "DELETE FROM event WHERE seq = 3");
    assert_eq!(broken(&state, 3, third), ChainFault::Lost { first: 3, last: 3 });
    tamper(&state, "UPDATE event SET seq = 0 WHERE seq = 1");
    assert!(matches!(broken(&state, 0, Digest::ZERO), ChainFault::Altered { seq: 0, .. }));
}

#[test]
fn a_long_log_is_read_in_its_order() {
    let (_dir, state) = state();
    let events: Vec<Event> = (0..20_000).map(|number| stage(&number.to_string())).collect();
    let logged = state.lease(&run()).unwrap().append(&run(), Timestamp(1), &events).unwrap();
    assert_eq!(state.chained_after(&run(), 0, Digest::ZERO).unwrap(), logged);
    tamper(&state, "UPDATE event SET kind = 'stage-left' WHERE seq IN (3000, 9000, 19999)");
    assert!(matches!(broken(&state, 0, Digest::ZERO), ChainFault::Altered { seq: 3000, .. }));
}

#[test]
fn no_wall_clock_decides_who_drives() {
    for source in [include_str!("../lease.rs"), include_str!("../process.rs")] {
        assert!(!source.contains("SystemTime"));
    }
}
