//! Guests that try at files what they must not: the imports, a small language for scripts of file
//! operations, and each attack as a guest.
//!
//! The executor of a [`Script`] notes how each step ended, and returns the notes as its content:
//! a list of `"ok"`, error codes by their number, and numbers that it read.

#![cfg_attr(not(test), allow(dead_code, reason = "tests use more of it than the corpus"))]
#![allow(clippy::unwrap_used, reason = "writing to a String cannot fail")]

use std::fmt::Write as _;

use serde_json::Value;

use super::Guest;

/// The error codes of `wasi:filesystem`, in their order.
pub(crate) const CODES: [&str; 37] = [
    "access",
    "would-block",
    "already",
    "bad-descriptor",
    "busy",
    "deadlock",
    "quota",
    "exist",
    "file-too-large",
    "illegal-byte-sequence",
    "in-progress",
    "interrupted",
    "invalid",
    "io",
    "is-directory",
    "loop",
    "too-many-links",
    "message-size",
    "name-too-long",
    "no-device",
    "no-entry",
    "no-lock",
    "insufficient-memory",
    "insufficient-space",
    "not-directory",
    "not-empty",
    "not-recoverable",
    "unsupported",
    "no-tty",
    "no-such-device",
    "overflow",
    "not-permitted",
    "pipe",
    "read-only",
    "invalid-seek",
    "text-file-busy",
    "cross-device",
];

/// The note of a stream that is closed.
const CLOSED: u64 = 99;

/// The content of a [`Script`] whose steps ended like this: `ok`, `closed`, the name of an error
/// code, or a number that it read.
pub(crate) fn notes(steps: &[&str]) -> Value {
    let note = |step: &&str| match CODES.iter().position(|code| code == step) {
        Some(code) => Value::from(code),
        None if *step == "closed" => Value::from(CLOSED),
        None => step.parse::<u64>().map_or_else(|_| Value::from(*step), Value::from),
    };
    Value::Array(steps.iter().map(note).collect())
}

/// `open-flags`.
pub(crate) const CREATE: u32 = 1;
pub(crate) const DIRECTORY: u32 = 2;
/// `descriptor-flags`.
pub(crate) const READ: u32 = 1;
pub(crate) const WRITE: u32 = 2;

/// The folders of an executor, in the order that it is given them.
pub(crate) const IN: u32 = 0;
pub(crate) const ARTIFACTS: u32 = 1;
pub(crate) const WORK: u32 = 2;
pub(crate) const GRANTED: u32 = 3;

/// What a guest does with files, step by step.
pub(crate) struct Script {
    guest: Guest,
    body: String,
}

impl Script {
    pub(crate) fn new() -> Self {
        let mut guest = Guest {
            imports: imports(),
            with: "(with \"fs\" (instance $fs))".to_owned(),
            core: core(),
            ..Guest::default()
        };
        // More than two megabytes, so that large writes have something to write.
        guest.memory = "34".to_owned();
        Script {
            guest,
            body: "(call $folders (global.get $ret)) (global.set $dirs (i32.load (global.get $ret)))".into(),
        }
    }

    fn folder(number: u32) -> String {
        format!("(i32.load offset={} (global.get $dirs))", number * 12)
    }

    fn text(&mut self, text: &str) -> String {
        let [at, length] = self.guest.image.text(text);
        format!("(i32.const {at}) (i32.const {length})")
    }

    fn step(mut self, code: &str) -> Self {
        self.body.push_str(code);
        self
    }

    /// Calls something that gives a `result<_, error-code>`, with the code `at` that many bytes.
    fn noted(self, call: &str, at: u32) -> Self {
        self.step(&format!("{call} (call $note-result (i32.const {at}))"))
    }

    /// Opens; the steps after it work on what was opened, if it was.
    pub(crate) fn open(mut self, folder: u32, path: &str, open: u32, flags: u32) -> Self {
        let path = self.text(path);
        let folder = Self::folder(folder);
        let call = format!(
            "(call $open-at {folder} (i32.const 1) {path} (i32.const {open}) (i32.const {flags}) (global.get $ret))"
        );
        self.noted(&call, 4).step(
            "(if (i32.eqz (i32.load8_u (global.get $ret)))
               (then (global.set $file (i32.load offset=4 (global.get $ret)))))",
        )
    }

    /// Makes a file to write to.
    pub(crate) fn create(self, folder: u32, path: &str) -> Self {
        self.open(folder, path, CREATE, READ | WRITE)
    }

    pub(crate) fn drop_file(self) -> Self {
        self.step("(call $drop-descriptor (global.get $file))")
    }

    /// Writes this many bytes of its memory at an offset, through `write`.
    pub(crate) fn write(self, bytes: u32, offset: u64) -> Self {
        self.noted(
            &format!("(call $write (global.get $file) (i32.const 0) (i32.const {bytes}) (i64.const {offset}) (global.get $ret))"),
            8,
        )
    }

    /// Writes a text.
    pub(crate) fn write_text(mut self, text: &str) -> Self {
        let text = self.text(text);
        self.noted(&format!("(call $write (global.get $file) {text} (i64.const 0) (global.get $ret))"), 8)
    }

    /// Reads from the start and notes how many bytes there were.
    pub(crate) fn read(self) -> Self {
        self.noted("(call $read (global.get $file) (i64.const 4096) (i64.const 0) (global.get $ret))", 4)
            .step(
                "(if (i32.eqz (i32.load8_u (global.get $ret)))
               (then (call $note (i64.extend_i32_u (i32.load offset=8 (global.get $ret))))))",
            )
    }

    pub(crate) fn set_size(self, size: u64) -> Self {
        self.noted(&format!("(call $set-size (global.get $file) (i64.const {size}) (global.get $ret))"), 1)
    }

    /// Opens a stream to write at an offset.
    pub(crate) fn stream(self, offset: u64) -> Self {
        self.noted(
            &format!("(call $write-via-stream (global.get $file) (i64.const {offset}) (global.get $ret))"),
            4,
        )
        .step("(global.set $stream (i32.load offset=4 (global.get $ret)))")
    }

    /// Opens a stream to write at the end.
    pub(crate) fn append(self) -> Self {
        self.noted("(call $append-via-stream (global.get $file) (global.get $ret))", 4)
            .step("(global.set $stream (i32.load offset=4 (global.get $ret)))")
    }

    /// Opens a stream to read.
    pub(crate) fn reading(self) -> Self {
        self.noted("(call $read-via-stream (global.get $file) (i64.const 0) (global.get $ret))", 4)
    }

    /// Writes this many bytes (4096 at most) to the stream and waits for them.
    pub(crate) fn blocking_write(self, bytes: u32) -> Self {
        self.step(&format!(
            "(call $blocking-write (global.get $stream) (i32.const 0) (i32.const {bytes}) (global.get $ret))
             (call $note-stream)"
        ))
    }

    /// Asks the stream, and then writes without waiting.
    pub(crate) fn unflushed_write(self, bytes: u32) -> Self {
        self.step("(call $check-write (global.get $stream) (global.get $ret))").step(&format!(
            "(call $stream-write (global.get $stream) (i32.const 0) (i32.const {bytes}) (global.get $ret))
             (call $note-stream)"
        ))
    }

    pub(crate) fn blocking_flush(self) -> Self {
        self.step("(call $blocking-flush (global.get $stream) (global.get $ret)) (call $note-stream)")
    }

    pub(crate) fn make_folder(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        self.noted(
            &format!("(call $create-directory-at {} {path} (global.get $ret))", Self::folder(folder)),
            1,
        )
    }

    pub(crate) fn unlink(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        self.noted(&format!("(call $unlink-file-at {} {path} (global.get $ret))", Self::folder(folder)), 1)
    }

    pub(crate) fn rename(mut self, from: u32, old: &str, to: u32, new: &str) -> Self {
        let (old, new) = (self.text(old), self.text(new));
        let (from, to) = (Self::folder(from), Self::folder(to));
        self.noted(&format!("(call $rename-at {from} {old} {to} {new} (global.get $ret))"), 1)
    }

    pub(crate) fn hard_link(mut self, from: u32, old: &str, to: u32, new: &str) -> Self {
        let (old, new) = (self.text(old), self.text(new));
        let (from, to) = (Self::folder(from), Self::folder(to));
        self.noted(&format!("(call $link-at {from} (i32.const 0) {old} {to} {new} (global.get $ret))"), 1)
    }

    pub(crate) fn symbolic_link(mut self, target: &str, folder: u32, path: &str) -> Self {
        let (target, path) = (self.text(target), self.text(path));
        self.noted(
            &format!("(call $symlink-at {} {target} {path} (global.get $ret))", Self::folder(folder)),
            1,
        )
    }

    /// Notes the length of the link's target.
    pub(crate) fn read_link(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        self.noted(&format!("(call $readlink-at {} {path} (global.get $ret))", Self::folder(folder)), 4)
    }

    /// Sets both times to now.
    pub(crate) fn touch(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        let now = "(i32.const 1) (i64.const 0) (i32.const 0)";
        self.noted(
            &format!(
                "(call $set-times-at {} (i32.const 0) {path} {now} {now} (global.get $ret))",
                Self::folder(folder)
            ),
            1,
        )
    }

    /// Notes of a file: its size, its links, and whether any of its three times is there.
    pub(crate) fn stat(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        self.noted(&format!("(call $stat-at {} (i32.const 0) {path} (global.get $ret))", Self::folder(folder)), 8)
            .step(
                "(if (i32.eqz (i32.load8_u (global.get $ret))) (then
                   (call $note (i64.load offset=24 (global.get $ret)))
                   (call $note (i64.load offset=16 (global.get $ret)))
                   (call $note (i64.extend_i32_u (i32.or (i32.load8_u offset=80 (global.get $ret))
                     (i32.or (i32.load8_u offset=32 (global.get $ret)) (i32.load8_u offset=56 (global.get $ret))))))))",
            )
    }

    /// Notes the beginning of the hash.
    pub(crate) fn hash(mut self, folder: u32, path: &str) -> Self {
        let path = self.text(path);
        self.noted(
            &format!(
                "(call $metadata-hash-at {} (i32.const 0) {path} (global.get $ret))",
                Self::folder(folder)
            ),
            8,
        )
        .step(
            "(call $note (i64.shr_u (i64.load offset=8 (global.get $ret)) (i64.const 12)))
             (call $note (i64.shr_u (i64.load offset=16 (global.get $ret)) (i64.const 12)))",
        )
    }

    /// Lists a folder: notes its names, which must need no quoting, and then `"ok"`.
    pub(crate) fn list(self, folder: u32) -> Self {
        let folder = Self::folder(folder);
        self.noted(&format!("(call $read-directory {folder} (global.get $ret))"), 4).step(
            "(if (i32.eqz (i32.load8_u (global.get $ret))) (then
               (global.set $listing (i32.load offset=4 (global.get $ret)))
               (call $list)))",
        )
    }

    /// Opens a listing and keeps it open.
    pub(crate) fn keep_listing(self, folder: u32) -> Self {
        self.noted(&format!("(call $read-directory {} (global.get $ret))", Self::folder(folder)), 4)
    }

    /// Repeats steps, with `$n` counting up from 0.
    pub(crate) fn repeat(mut self, times: u32, steps: impl FnOnce(Self) -> Self) -> Self {
        let before = std::mem::take(&mut self.body);
        let mut repeated = steps(self);
        let steps = std::mem::replace(&mut repeated.body, before);
        repeated.step(&format!(
            "(global.set $n (i32.const 0))
             (loop $again {steps}
               (global.set $n (i32.add (global.get $n) (i32.const 1)))
               (br_if $again (i32.lt_u (global.get $n) (i32.const {times}))))"
        ))
    }

    /// Makes a file whose name is the count of the loop, and closes it.
    pub(crate) fn create_numbered(self, folder: u32) -> Self {
        let folder = Self::folder(folder);
        self.step("(call $name)")
            .noted(
                &format!(
                    "(call $open-at {folder} (i32.const 0) (i32.const 60000) (i32.const 8) (i32.const {CREATE}) (i32.const {WRITE}) (global.get $ret))"
                ),
                4,
            )
            .step(
                "(if (i32.eqz (i32.load8_u (global.get $ret)))
                   (then (call $drop-descriptor (i32.load offset=4 (global.get $ret)))))",
            )
    }

    /// Any step in WAT.
    pub(crate) fn raw(self, code: &str) -> Self {
        self.step(code)
    }

    /// The guest; its outcome names these artifacts.
    pub(crate) fn guest(mut self, artifacts: &[&str]) -> Guest {
        self.guest.returns("null", artifacts);
        let outcome = self.guest.execute.replace("i32.const ", "");
        write!(
            self.body,
            "(call $close)
             (i32.store offset=4 (i32.const {outcome}) (i32.const {NOTES}))
             (i32.store offset=8 (i32.const {outcome}) (i32.sub (global.get $at) (i32.const {NOTES})))
             (i32.const {outcome})"
        )
        .unwrap();
        self.guest.execute = self.body;
        self.guest
    }
}

/// Where the notes are: behind what the guest is given.
const NOTES: u32 = 24 << 16;

/// The core functions that scripts call.
fn core() -> String {
    let imported = [
        ("folders", "i32"),
        ("open-at", "i32 i32 i32 i32 i32 i32 i32"),
        ("read", "i32 i64 i64 i32"),
        ("write", "i32 i32 i32 i64 i32"),
        ("set-size", "i32 i64 i32"),
        ("read-via-stream", "i32 i64 i32"),
        ("write-via-stream", "i32 i64 i32"),
        ("append-via-stream", "i32 i32"),
        ("create-directory-at", "i32 i32 i32 i32"),
        ("unlink-file-at", "i32 i32 i32 i32"),
        ("rename-at", "i32 i32 i32 i32 i32 i32 i32"),
        ("link-at", "i32 i32 i32 i32 i32 i32 i32 i32"),
        ("symlink-at", "i32 i32 i32 i32 i32 i32"),
        ("readlink-at", "i32 i32 i32 i32"),
        ("set-times-at", "i32 i32 i32 i32 i32 i64 i32 i32 i64 i32 i32"),
        ("stat-at", "i32 i32 i32 i32 i32"),
        ("metadata-hash-at", "i32 i32 i32 i32 i32"),
        ("read-directory", "i32 i32"),
        ("read-entry", "i32 i32"),
        ("error-code", "i32 i32"),
        ("check-write", "i32 i32"),
        ("stream-write", "i32 i32 i32 i32"),
        ("blocking-write", "i32 i32 i32 i32"),
        ("blocking-flush", "i32 i32"),
        ("drop-descriptor", "i32"),
    ];
    let imports: String = imported.iter().fold(String::new(), |mut text, (name, parameters)| {
        write!(text, "(import \"fs\" \"{name}\" (func ${name} (param {parameters})))").unwrap();
        text
    });
    format!(
        r#"{imports}
    (global $ret i32 (i32.const 61440))
    (global $dirs (mut i32) (i32.const 0))
    (global $file (mut i32) (i32.const 0))
    (global $stream (mut i32) (i32.const 0))
    (global $listing (mut i32) (i32.const 0))
    (global $n (mut i32) (i32.const 0))
    (global $at (mut i32) (i32.const {NOTES}))
    (func $put (param $byte i32)
      (i32.store8 (global.get $at) (local.get $byte))
      (global.set $at (i32.add (global.get $at) (i32.const 1))))
    ;; A comma, or the bracket in front of the first note.
    (func $next
      (call $put (select (i32.const 91) (i32.const 44) (i32.eq (global.get $at) (i32.const {NOTES})))))
    (func $digits (param $value i64)
      (if (i64.ge_u (local.get $value) (i64.const 10))
        (then (call $digits (i64.div_u (local.get $value) (i64.const 10)))))
      (call $put (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $value) (i64.const 10))))))
    (func $note (param $value i64) (call $next) (call $digits (local.get $value)))
    (func $note-ok (call $next)
      (call $put (i32.const 34)) (call $put (i32.const 111)) (call $put (i32.const 107)) (call $put (i32.const 34)))
    ;; How a `result` ended whose error code lies that far behind its start.
    (func $note-result (param $code i32)
      (if (i32.load8_u (global.get $ret))
        (then (call $note (i64.extend_i32_u (i32.load8_u (i32.add (global.get $ret) (local.get $code))))))
        (else (call $note-ok))))
    ;; A `result<_, stream-error>`: the error code of the file, or 99 for a closed stream.
    (func $note-stream
      (if (i32.eqz (i32.load8_u (global.get $ret))) (then (call $note-ok) return))
      (if (i32.load8_u offset=4 (global.get $ret)) (then (call $note (i64.const 99)) return))
      (call $error-code (i32.load offset=8 (global.get $ret)) (i32.add (global.get $ret) (i32.const 16)))
      (call $note (i64.extend_i32_u (i32.load8_u offset=17 (global.get $ret)))))
    ;; Eight digits at 60000: the count of the loop.
    (func $name (local $i i32) (local $rest i32)
      (local.set $i (i32.const 7)) (local.set $rest (global.get $n))
      (loop $again
        (i32.store8 (i32.add (i32.const 60000) (local.get $i)) (i32.add (i32.const 48) (i32.rem_u (local.get $rest) (i32.const 10))))
        (local.set $rest (i32.div_u (local.get $rest) (i32.const 10)))
        (local.set $i (i32.sub (local.get $i) (i32.const 1)))
        (br_if $again (i32.ge_s (local.get $i) (i32.const 0)))))
    ;; The entries of the open listing, each as a text.
    (func $list (local $name i32) (local $end i32)
      (block $done (loop $again
        (call $read-entry (global.get $listing) (global.get $ret))
        (br_if $done (i32.load8_u (global.get $ret)))
        (br_if $done (i32.eqz (i32.load8_u offset=4 (global.get $ret))))
        (local.set $name (i32.load offset=12 (global.get $ret)))
        (local.set $end (i32.add (local.get $name) (i32.load offset=16 (global.get $ret))))
        (call $next) (call $put (i32.const 34))
        (loop $copy
          (call $put (i32.load8_u (local.get $name)))
          (local.set $name (i32.add (local.get $name) (i32.const 1)))
          (br_if $copy (i32.lt_u (local.get $name) (local.get $end))))
        (call $put (i32.const 34))
        (br $again)))
      (call $note-result (i32.const 4)))
    (func $close (call $put (i32.const 93)))"#
    )
}

/// The interfaces of files and streams, as far as scripts call them.
fn imports() -> String {
    let codes = CODES.iter().fold(String::new(), |mut text, code| {
        write!(text, " \"{code}\"").unwrap();
        text
    });
    let methods = [
        (
            "open-at",
            "(param \"path-flags\" $path-flags) (param \"path\" string) (param \"open-flags\" $open-flags) (param \"flags\" $flags)",
            "$own",
        ),
        ("read", "(param \"length\" u64) (param \"offset\" u64)", "(tuple (list u8) bool)"),
        ("write", "(param \"buffer\" (list u8)) (param \"offset\" u64)", "u64"),
        ("set-size", "(param \"size\" u64)", ""),
        ("read-via-stream", "(param \"offset\" u64)", "(own $input)"),
        ("write-via-stream", "(param \"offset\" u64)", "(own $output)"),
        ("append-via-stream", "", "(own $output)"),
        ("create-directory-at", "(param \"path\" string)", ""),
        ("unlink-file-at", "(param \"path\" string)", ""),
        (
            "rename-at",
            "(param \"old-path\" string) (param \"new-descriptor\" (borrow $d)) (param \"new-path\" string)",
            "",
        ),
        (
            "link-at",
            "(param \"old-path-flags\" $path-flags) (param \"old-path\" string) (param \"new-descriptor\" (borrow $d)) (param \"new-path\" string)",
            "",
        ),
        ("symlink-at", "(param \"old-path\" string) (param \"new-path\" string)", ""),
        ("readlink-at", "(param \"path\" string)", "string"),
        (
            "set-times-at",
            "(param \"path-flags\" $path-flags) (param \"path\" string) (param \"data-access-timestamp\" $new-time) (param \"data-modification-timestamp\" $new-time)",
            "",
        ),
        ("stat-at", "(param \"path-flags\" $path-flags) (param \"path\" string)", "$stat"),
        ("metadata-hash-at", "(param \"path-flags\" $path-flags) (param \"path\" string)", "$hash"),
        ("read-directory", "", "(own $entries)"),
    ];
    let mut declared = String::new();
    let (mut lowered, mut exported) = (String::new(), String::new());
    for (name, parameters, result) in methods {
        let result = result.replace("$own", "(own $d)");
        let result = if result.is_empty() {
            "(result (error $error-code))".to_owned()
        } else {
            format!("(result {result} (error $error-code))")
        };
        write!(
            declared,
            "(export \"[method]descriptor.{name}\" (func (param \"self\" (borrow $d)) {parameters} (result {result})))"
        )
        .unwrap();
        lower(&mut lowered, &mut exported, name, "$types", &format!("[method]descriptor.{name}"));
    }
    lower(
        &mut lowered,
        &mut exported,
        "read-entry",
        "$types",
        "[method]directory-entry-stream.read-directory-entry",
    );
    lower(&mut lowered, &mut exported, "error-code", "$types", "filesystem-error-code");
    lower(&mut lowered, &mut exported, "folders", "$preopens", "get-directories");
    for (name, method) in [
        ("check-write", "check-write"),
        ("stream-write", "write"),
        ("blocking-write", "blocking-write-and-flush"),
        ("blocking-flush", "blocking-flush"),
    ] {
        lower(&mut lowered, &mut exported, name, "$streams", &format!("[method]output-stream.{method}"));
    }
    format!(
        r#"
  (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
  (alias export $errors "error" (type $io-error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (alias outer 1 $io-error (type $outer-error))
    (export "error" (type $error (eq $outer-error)))
    (export "input-stream" (type (sub resource)))
    (export "output-stream" (type $output (sub resource)))
    (type $se (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $se)))
    (export "[method]output-stream.check-write" (func (param "self" (borrow $output)) (result (result u64 (error $stream-error)))))
    (export "[method]output-stream.write" (func (param "self" (borrow $output)) (param "contents" (list u8)) (result (result (error $stream-error)))))
    (export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $output)) (param "contents" (list u8)) (result (result (error $stream-error)))))
    (export "[method]output-stream.blocking-flush" (func (param "self" (borrow $output)) (result (result (error $stream-error)))))))
  (alias export $streams "input-stream" (type $input-stream))
  (alias export $streams "output-stream" (type $output-stream))
  (import "wasi:filesystem/types@0.2.0" (instance $types
    (alias outer 1 $input-stream (type $outer-input))
    (export "input-stream" (type $input (eq $outer-input)))
    (alias outer 1 $output-stream (type $outer-output))
    (export "output-stream" (type $output (eq $outer-output)))
    (alias outer 1 $io-error (type $outer-error))
    (export "error" (type $error (eq $outer-error)))
    (export "descriptor" (type $d (sub resource)))
    (export "directory-entry-stream" (type $entries (sub resource)))
    (type $t0 (enum{codes})) (export "error-code" (type $error-code (eq $t0)))
    (type $t1 (flags "symlink-follow")) (export "path-flags" (type $path-flags (eq $t1)))
    (type $t2 (flags "create" "directory" "exclusive" "truncate")) (export "open-flags" (type $open-flags (eq $t2)))
    (type $t3 (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync" "mutate-directory"))
    (export "descriptor-flags" (type $flags (eq $t3)))
    (type $t4 (record (field "seconds" u64) (field "nanoseconds" u32))) (export "datetime" (type $datetime (eq $t4)))
    (type $t5 (enum "unknown" "block-device" "character-device" "directory" "fifo" "symbolic-link" "regular-file" "socket"))
    (export "descriptor-type" (type $type (eq $t5)))
    (type $t6 (record (field "type" $type) (field "link-count" u64) (field "size" u64)
      (field "data-access-timestamp" (option $datetime)) (field "data-modification-timestamp" (option $datetime))
      (field "status-change-timestamp" (option $datetime))))
    (export "descriptor-stat" (type $stat (eq $t6)))
    (type $t7 (variant (case "no-change") (case "now") (case "timestamp" $datetime)))
    (export "new-timestamp" (type $new-time (eq $t7)))
    (type $t8 (record (field "lower" u64) (field "upper" u64))) (export "metadata-hash-value" (type $hash (eq $t8)))
    (type $t9 (record (field "type" $type) (field "name" string))) (export "directory-entry" (type $entry (eq $t9)))
    {declared}
    (export "[method]directory-entry-stream.read-directory-entry" (func (param "self" (borrow $entries)) (result (result (option $entry) (error $error-code)))))
    (export "filesystem-error-code" (func (param "err" (borrow $error)) (result (option $error-code))))))
  (alias export $types "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (alias outer 1 $descriptor (type $outer-descriptor))
    (export "descriptor" (type $d (eq $outer-descriptor)))
    (export "get-directories" (func (result (list (tuple (own $d) string)))))))
  {lowered}
  (core func $drop-descriptor (canon resource.drop $descriptor))
  (core instance $fs {exported} (export "drop-descriptor" (func $drop-descriptor)))"#
    )
}

fn lower(lowered: &mut String, exported: &mut String, name: &str, instance: &str, function: &str) {
    write!(
        lowered,
        "(core func $l-{name} (canon lower (func {instance} \"{function}\") (memory $mem) (realloc $mrealloc)))"
    )
    .unwrap();
    write!(exported, "(export \"{name}\" (func $l-{name}))").unwrap();
}

/// `..`, from a folder and from one inside it.
pub(crate) fn dot_dot() -> Guest {
    Script::new()
        .open(WORK, "..", DIRECTORY, READ)
        .open(WORK, "../../../../../../etc/passwd", 0, READ)
        .make_folder(WORK, "inner")
        .open(WORK, "inner/../../outside", CREATE, WRITE)
        .stat(IN, "../outside")
        .unlink(WORK, "../outside")
        .rename(WORK, "inner", WORK, "../outside")
        .guest(&[])
}

/// Paths of the host.
pub(crate) fn absolute_paths() -> Guest {
    Script::new()
        .open(WORK, "/etc/passwd", 0, READ)
        .open(IN, "/proc/self/environ", 0, READ)
        .make_folder(WORK, "/tmp/from-a-guest")
        .stat(ARTIFACTS, "/")
        .guest(&[])
}

/// The folder of a call with a known name, beside its own.
pub(crate) fn another_calls_folder(name: &str) -> Guest {
    Script::new()
        .open(WORK, &format!("../{name}/secret"), 0, READ)
        .stat(WORK, &format!("../{name}"))
        .rename(WORK, &format!("../{name}/secret"), WORK, "mine")
        .hard_link(WORK, &format!("../{name}/secret"), WORK, "mine")
        .guest(&[])
}

/// From one writable folder into another.
pub(crate) fn rename_and_hard_link_across() -> Guest {
    Script::new()
        .create(WORK, "a")
        .rename(WORK, "a", GRANTED, "b")
        .rename(GRANTED, "kept", WORK, "c")
        .hard_link(WORK, "a", GRANTED, "b")
        .hard_link(GRANTED, "kept", WORK, "c")
        .rename(WORK, "a", WORK, "d")
        .rename(GRANTED, "kept", GRANTED, "moved")
        .guest(&["d"])
}

/// A named pipe in a granted folder that nobody reads or writes.
pub(crate) fn named_pipe() -> Guest {
    Script::new()
        .open(GRANTED, "pipe", 0, READ)
        .open(GRANTED, "pipe", 0, WRITE)
        .open(GRANTED, "pipe", CREATE, READ | WRITE)
        .open(GRANTED, "socket", 0, READ)
        .guest(&[])
}

/// A symbolic link that leads out, and one that does not.
pub(crate) fn symbolic_link() -> Guest {
    Script::new()
        .symbolic_link("../../../../etc/passwd", WORK, "out")
        .symbolic_link("a", WORK, "in")
        .symbolic_link("/etc/passwd", GRANTED, "out")
        .open(WORK, "out", 0, READ)
        .guest(&["out"])
}

/// Symbolic links in its own folder: out of it, to the host's root, and inside. None is made, so
/// none can be opened.
pub(crate) fn symbolic_links_of_its_own() -> Guest {
    Script::new()
        .symbolic_link("../../../../etc/passwd", WORK, "out")
        .symbolic_link("/", WORK, "root")
        .symbolic_link("a", WORK, "in")
        .open(WORK, "out", 0, READ)
        .open(WORK, "root/etc/passwd", 0, READ)
        .guest(&[])
}

/// Links that somebody else put into a granted folder.
pub(crate) fn found_links() -> Guest {
    Script::new()
        .open(GRANTED, "out", 0, READ)
        .open(GRANTED, "deep/up", 0, READ)
        .stat(GRANTED, "out")
        .read_link(GRANTED, "out")
        .read_link(GRANTED, "absolute")
        .rename(GRANTED, "deep/up", GRANTED, "up")
        .open(GRANTED, "inside", 0, READ)
        .read()
        .read_link(GRANTED, "inside")
        .read_link(GRANTED, "kept")
        .open(GRANTED, "out", CREATE, READ | WRITE)
        .guest(&[])
}

/// A second name for a file.
pub(crate) fn hard_link() -> Guest {
    Script::new()
        .create(WORK, "a")
        .hard_link(WORK, "a", WORK, "b")
        .hard_link(IN, "given", WORK, "c")
        .guest(&["b"])
}

/// A second name for a file of its own, and for one of others; it names neither as an artifact.
pub(crate) fn hard_links_of_its_own() -> Guest {
    Script::new()
        .create(WORK, "a")
        .hard_link(WORK, "a", WORK, "b")
        .hard_link(IN, "given", WORK, "c")
        .guest(&[])
}

/// Fills the disk: by `write`, by each kind of stream, without waiting.
pub(crate) fn quota_by_size() -> Guest {
    Script::new()
        .create(WORK, "a")
        .repeat(3, |script| script.write(400_000, 0))
        .write(400_000, 400_000)
        .write(400_000, 800_000)
        .stream(0)
        .blocking_write(4096)
        .stream(800_000)
        .blocking_write(4096)
        .append()
        .repeat(60, |script| script.blocking_write(4096))
        .append()
        .unflushed_write(60_000)
        .blocking_flush()
        .guest(&[])
}

/// Makes files and folders without end.
pub(crate) fn quota_by_count(times: u32) -> Guest {
    Script::new()
        .repeat(times, |script| script.create_numbered(WORK))
        .make_folder(WORK, "folder")
        .open(WORK, "00000000", CREATE, READ | WRITE)
        .guest(&[])
}

/// Takes a terabyte that it does not write.
pub(crate) fn sparse_files() -> Guest {
    Script::new()
        .create(WORK, "a")
        .set_size(1 << 40)
        .write(1, 1 << 40)
        .stream(1 << 40)
        .blocking_write(1)
        .blocking_write(1)
        .stream(u64::MAX)
        .blocking_write(10)
        .set_size(1_000_000)
        .set_size(0)
        .set_size(1_000_000)
        .stat(WORK, "a")
        .guest(&[])
}

/// Names that not everybody expects.
pub(crate) fn odd_names() -> Guest {
    let longest = "n".repeat(255);
    Script::new()
        .create(WORK, "two\nlines")
        .write_text("x")
        .stat(WORK, "two\nlines")
        .create(WORK, &longest)
        .stat(WORK, &longest)
        .create(WORK, &format!("{longest}n"))
        .create(WORK, "\u{202e}txt.exe\u{1b}[31m")
        .create(WORK, "zero\0byte")
        .guest(&[])
}

/// A name that is not UTF-8.
pub(crate) fn broken_name() -> Guest {
    let mut script = Script::new();
    let at = script.guest.image.bytes(&[b'a', 0xff, b'b']);
    let folder = Script::folder(WORK);
    script
        .raw(&format!(
            "(call $create-directory-at {folder} (i32.const {at}) (i32.const 3) (global.get $ret))"
        ))
        .guest(&[])
}

/// Opens the same file again and again and keeps it open, also by streams alone.
pub(crate) fn open_files(times: u32) -> Guest {
    let path = "many";
    Script::new()
        .create(WORK, path)
        .drop_file()
        .repeat(times, |script| {
            let opened = "(if (i32.eqz (i32.load8_u (global.get $ret))) (then";
            script.open(WORK, path, 0, READ).step(opened).reading().drop_file().step("))")
        })
        .guest(&[])
}

/// Lists a folder with long names again and again and keeps the listings.
pub(crate) fn open_listings(times: u32) -> Guest {
    Script::new().repeat(times, |script| script.keep_listing(IN)).guest(&[])
}

/// Makes folders, each in the one before, and a file at the bottom.
pub(crate) fn deep_folders(depth: u32) -> Guest {
    let mut script = Script::new();
    let name = script.text("d");
    script
        .step(&format!("(global.set $file {})", Script::folder(WORK)))
        .repeat(depth, |script| {
            script
                .step(&format!("(call $create-directory-at (global.get $file) {name} (global.get $ret))"))
                .step(&format!(
                    "(call $open-at (global.get $file) (i32.const 0) {name} (i32.const {DIRECTORY}) (i32.const {READ}) (global.get $ret))
                     (if (i32.load8_u (global.get $ret)) (then unreachable))
                     (if (global.get $n) (then (call $drop-descriptor (global.get $file))))
                     (global.set $file (i32.load offset=4 (global.get $ret)))"
                ))
        })
        .step("(call $note-ok)")
        .guest(&[])
}

/// Writes where it can only read.
pub(crate) fn write_where_it_can_only_read() -> Guest {
    let mut script = Script::new();
    for folder in [IN, ARTIFACTS, GRANTED] {
        script = script
            .create(folder, "new")
            .open(folder, "given", 0, WRITE)
            .open(folder, "given", 8, READ)
            .unlink(folder, "given")
            .make_folder(folder, "folder")
            .rename(folder, "given", folder, "taken")
            .touch(folder, "given")
            .open(folder, "given", 0, READ)
            .set_size(0)
            .write(1, 0)
            .read();
    }
    script.guest(&[])
}

/// Looks for what tells one machine or moment from another.
pub(crate) fn looks_at_the_machine() -> Guest {
    Script::new()
        .create(WORK, "b")
        .write(100, 0)
        .create(WORK, "a")
        .make_folder(WORK, "c")
        .touch(WORK, "a")
        .stat(WORK, "a")
        .stat(WORK, "b")
        .stat(WORK, "c")
        .stat(IN, "given")
        .hash(WORK, "a")
        .hash(WORK, "./c/../a")
        .hash(IN, "given")
        .hash(WORK, "absent")
        .list(WORK)
        .list(IN)
        .guest(&[])
}
