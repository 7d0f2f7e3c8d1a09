//! What was altered, cut off, put elsewhere or forged.

use std::io::Cursor;

use checkrein_contract::Digest;
use checkrein_contract::id::RunId;

use super::super::ustar::{SIZE_MAX, header, seal};
use super::super::{Contents, Line, blob_name};
use super::{
    BLOCK, Entry, Filled, entries, filled, import, packed, state, with_contents, with_header, with_lines,
};
use crate::{State, StoreError};

/// The file is refused, and nothing of the run is there; what is said.
#[track_caller]
fn refused(state: &State, file: &[u8]) -> String {
    let error = import(state, file).unwrap_err();
    assert!(matches!(error, StoreError::NoExport { .. }), "{error}");
    assert!(state.runs().unwrap().is_empty(), "{error}");
    error.to_string()
}

#[test]
fn every_altered_byte_is_seen() {
    let from = filled();
    let (_dir, to) = state();
    for at in 0..from.file.len() {
        for flip in flips(at) {
            let mut file = from.file.clone();
            file[at] ^= flip;
            let outcome = import(&to, &file);
            assert!(matches!(outcome, Err(StoreError::NoExport { .. })), "byte {at} ^ {flip}: {outcome:?}");
        }
    }
    assert!(to.runs().unwrap().is_empty());
    assert!(import(&to, &from.file).unwrap().fresh);
}

/// The one that changes the case of a letter, everywhere; others here and there.
fn flips(at: usize) -> &'static [u8] {
    if at.is_multiple_of(7) { &[0x20, 0x01, 0x80] } else { &[0x20] }
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    let from = filled();
    let (_dir, to) = state();
    for length in (0..from.file.len()).step_by(BLOCK).chain([1, 513, from.file.len() - 1]) {
        let said = refused(&to, &from.file[..length]);
        assert!(said.contains("the end of the file after byte"), "{length}: {said}");
    }
}

#[test]
fn what_stands_after_the_end_is_refused() {
    let from = filled();
    let (_dir, to) = state();
    for more in [1, BLOCK] {
        let mut file = from.file.clone();
        file.resize(file.len() + more, 0);
        let said = refused(&to, &file);
        assert!(said.contains("the end of the file: expected nothing after byte"), "{said}");
    }
}

#[test]
fn entries_are_those_that_are_listed_in_their_order() {
    let from = filled();
    let (_dir, to) = state();
    let good = entries(&from.file);
    let mut cases: Vec<(&str, Vec<Entry>)> = Vec::new();
    for index in 0..good.len() {
        let mut fewer = good.clone();
        fewer.remove(index);
        cases.push(("one is missing", fewer));
        let mut twice = good.clone();
        twice.insert(index, good[index].clone());
        cases.push(("one stands there twice", twice));
        let mut swapped = good.clone();
        swapped.swap(index, (index + 1) % good.len());
        cases.push(("two changed places", swapped));
        let mut more = good.clone();
        more.insert(index, (blob_name(&Digest::of(b"more")), b"more".to_vec()));
        cases.push(("one more", more));
    }
    let mut more = good.clone();
    more.push((blob_name(&Digest::of(b"more")), b"more".to_vec()));
    cases.push(("one more at the end", more));
    for (what, case) in cases {
        let said = refused(&to, &packed(&case));
        assert!(said.contains("expected"), "{what}: {said}");
    }
    assert!(import(&to, &packed(&good)).unwrap().fresh);
}

#[test]
fn other_headers_are_refused() {
    let from = filled();
    let good = entries(&from.file);
    let (_dir, to) = state();
    let changes: [(&str, usize, &[u8]); 16] = [
        ("a hard link", 156, b"1"),
        ("a symbolic link", 156, b"2"),
        ("a device", 156, b"3"),
        ("a folder", 156, b"5"),
        ("a pax extension", 156, b"x"),
        ("a global pax extension", 156, b"g"),
        ("a long name of GNU", 156, b"L"),
        ("a sparse file of GNU", 156, b"S"),
        ("an old kind of file", 156, b"\0"),
        ("where a link leads to", 157, b"/etc/passwd"),
        ("a mode", 100, b"0004755"),
        ("a magic of GNU", 257, b"ustar  \0"),
        ("an owner", 265, b"root"),
        ("a prefix", 345, b".."),
        ("a size in another base", 124, b"\x80\0\0\0\0\0\0\0\0\0\0\x01"),
        ("a size with a sign", 124, b"+0000000001"),
    ];
    for index in 0..good.len() {
        for (what, at, bytes) in changes {
            let said = refused(&to, &with_change(&good, index, at, bytes));
            assert!(said.contains(&good[index].0), "{what}: {said}");
        }
    }
    let names: [&[u8]; 5] =
        [b"../x\0", b"/etc/passwd\0", b"blobs/../x\0", b"./events.jsonl\0", b"\xff\x1b[2J\0"];
    for name in names {
        let said = refused(&to, &with_change(&good, 2, 0, name));
        assert!(said.contains("found the entry `") && !said.contains('\u{1b}'), "{said}");
    }
}

/// The file with other bytes in the header of an entry, whose checksum is right.
fn with_change(entries: &[Entry], index: usize, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for (here, (name, content)) in entries.iter().enumerate() {
        let mut block = header(name, content.len() as u64);
        if here == index {
            block[at..at + bytes.len()].copy_from_slice(bytes);
            seal(&mut block);
        }
        with_header(&mut file, &block, content);
    }
    file.resize(file.len() + 2 * BLOCK, 0);
    file
}

#[test]
fn contents_that_are_not_of_a_run_are_refused() {
    let Filled { file, .. } = filled();
    let (_dir, to) = state();
    let alone = with_contents(&file, |contents| contents.schema = "checkrein/export@2".to_owned());
    assert!(refused(&to, &alone).contains("found `checkrein/export@2`"));
    for id in ["..", "", "a/b", ".hidden", "a\u{202e}b", "a b", &"a".repeat(201)] {
        let said = refused(&to, &with_contents(&file, |contents| contents.run = RunId::from(id)));
        assert!(said.contains("a run whose id is letters") && !said.contains('\u{202e}'), "{said}");
    }
    let said = refused(&to, &with_contents(&file, |contents| contents.run = RunId::from("r2")));
    assert!(said.contains("line 1 of `events.jsonl`: expected the next event of the chain"), "{said}");
    assert!(
        refused(&to, &with_contents(&file, |contents| contents.events = 0)).contains("at least one event")
    );
    let said = refused(&to, &with_contents(&file, |contents| contents.events += 1));
    assert!(said.contains("expected 6 events"), "{said}");
    assert!(
        refused(&to, &with_contents(&file, |contents| contents.head = Digest::ZERO)).contains("5 events")
    );
    let said = refused(&to, &with_contents(&file, |contents| contents.blobs.swap(0, 1)));
    assert!(said.contains("in the order of their digests"), "{said}");
    let said = refused(&to, &with_contents(&file, |contents| contents.blobs[0].bytes += 1));
    assert!(said.contains("blobs/sha256/"), "{said}");
    let said = refused(&to, &with_contents(&file, |contents| contents.blobs[0].bytes = SIZE_MAX + 1));
    assert!(said.contains("at most 8589934591 bytes a blob"), "{said}");
}

#[test]
fn a_form_that_is_not_the_writers_is_refused() {
    let Filled { file, .. } = filled();
    let (_dir, to) = state();
    let good = entries(&file);
    for (index, from, by) in [
        (0, "{", "{ "),
        (0, "\"events\": 5", "\"events\": 5,\n  \"more\": 1"),
        (0, "}\n", "}"),
        (1, "{\"seq\"", "{ \"seq\""),
        (1, "\"seq\":1,", "\"seq\":1,\"more\":1,"),
        (1, "\"seq\":1,", "\"seq\":1,\"seq\":1,"),
        (1, "first", "f\\u0069rst"),
        (1, "}\n", "}\n\n"),
        (1, "}\n", "}\r\n"),
        (1, "\"at\":1", "\"at\":1.0"),
        (1, "\"at\":1", "\"at\":9223372036854775808"),
    ] {
        let mut other = good.clone();
        let text = String::from_utf8(good[index].1.clone()).unwrap();
        assert!(text.contains(from), "{from}");
        other[index].1 = text.replacen(from, by, 1).into_bytes();
        let said = refused(&to, &packed(&other));
        assert!(said.contains(&good[index].0), "{by}: {said}");
    }
    let mut other = good.clone();
    other[1].1.pop();
    assert!(refused(&to, &packed(&other)).contains("a line that ends"));
}

#[test]
fn events_that_are_not_what_was_written_are_refused() {
    let Filled { file, .. } = filled();
    let (_dir, to) = state();
    let said = refused(&to, &with_lines(&file, false, |lines| lines.swap(1, 2)));
    assert!(said.contains("line 2 of"), "{said}");
    let said = refused(&to, &with_lines(&file, false, |lines| drop(lines.remove(1))));
    assert!(said.contains("event 2 was lost"), "{said}");
    // No digest covers the kind.
    let said = refused(&to, &with_lines(&file, false, |lines| lines[0].kind = "run-ended".to_owned()));
    assert!(said.contains("its payload says `stage-entered`"), "{said}");
    // Chained anew, but nothing that this version can read.
    for payload in [r#"{"event":"sung"}"#, "no json", r#"{"event":"letter-taken"}"#] {
        let said = refused(&to, &with_lines(&file, true, |lines| lines[0].payload = payload.to_owned()));
        assert!(said.contains("an event that this checkrein can read"), "{said}");
    }
    let huge =
        |lines: &mut Vec<Line>| lines[2].payload = lines[2].payload.replace("17", "9223372036854775807");
    assert!(refused(&to, &with_lines(&file, true, huge)).contains("has the number 9223372036854775807"));
}

#[test]
fn every_blob_that_is_named_is_there() {
    let from = filled();
    let (_dir, to) = state();
    let good: Contents = serde_json::from_slice(&entries(&from.file)[0].1).unwrap();
    for (index, blob) in good.blobs.iter().enumerate() {
        let mut fewer = entries(&from.file);
        fewer.remove(2 + index);
        let file = with_contents(&packed(&fewer), |contents| {
            contents.blobs.remove(index);
        });
        if blob.digest == from.extra {
            continue;
        }
        let said = refused(&to, &file);
        assert!(said.contains(&format!("expected blob {}", blob.digest)), "{said}");
        assert!(said.contains("event 4 (`call-ended`)"), "{said}");
    }
}

#[test]
fn nothing_with_another_digest_is_stored() {
    let from = filled();
    let (_dir, to) = state();
    let mut other = entries(&from.file);
    let blob = 2 + other[2..].iter().position(|(_, content)| !content.is_empty()).unwrap();
    other[blob].1[0] ^= 1;
    let said = refused(&to, &packed(&other));
    assert!(said.contains("content with the digest of its name"), "{said}");
    assert!(!to.blobs().path(&Digest::of(&other[blob].1)).exists());
}

#[test]
fn only_the_digest_of_the_file_tells_a_forgery_of_all_of_it() {
    let from = filled();
    let (_dir, to) = state();
    let forged =
        with_lines(&from.file, true, |lines| lines[0].payload = lines[0].payload.replace("first", "other"));
    let error = to.import(&mut Cursor::new(&forged), Some(from.exported.digest)).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, StoreError::NoExport { .. }), "{said}");
    assert!(said.contains(&format!("expected the digest {}", from.exported.digest)), "{said}");
    assert!(said.contains(&format!("found the digest {}", Digest::of(&forged))), "{said}");
    assert!(to.runs().unwrap().is_empty());
    assert!(import(&to, &forged).unwrap().fresh);
}
