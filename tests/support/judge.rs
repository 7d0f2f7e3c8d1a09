use checkrein_contract::section;

/// A verifier as component text. It accepts an outcome whose content is 7 bytes long and ends in
/// `1}`, and rejects any other; what it does besides stands in its settings, a JSON text of one
/// letter: `"l"` says a line and loops, `"t"` traps, `"f"` needs exactly one fact, `"h"` needs a
/// request over the network to be denied, `"nURL"` needs one to that URL to be answered, `"o"` needs `/in` to be there.
pub struct Judge {
    /// Component text in front of all else.
    pub extra: String,
    /// The version in the names of its exports.
    pub version: &'static str,
    /// Its manifest.
    pub manifest: String,
}

const MANIFEST: &str = "schema = \"checkrein/skill@1\"\nkind = \"verifier\"\nname = \"judge\"\nversion = \"1.0.0\"\ndescription = \"for tests\"\n";

const CASES: &str = "[[case]]\nname = \"lie\"\nexpect = \"rejected\"\noutcome = '{\"content\":{\"n\":22},\"facts\":[],\"artifacts\":[]}'\nsubmission = { skill = \"x\" }\n[[case]]\nname = \"truth\"\noutcome = '{\"content\":{\"n\":1},\"facts\":[],\"artifacts\":[]}'\nsubmission = { skill = \"x\" }\n";

impl Default for Judge {
    fn default() -> Self {
        Judge { extra: String::new(), version: "0.1.0", manifest: MANIFEST.to_owned() }
    }
}

impl Judge {
    /// The component, whole.
    pub fn assemble(&self) -> Vec<u8> {
        let text = TEXT
            .replace("EXTRA", &self.extra)
            .replace("skill/verification@0.1.0", &format!("skill/verification@{}", self.version));
        let bytes = wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}"));
        let bytes = section::embed(&bytes, section::MANIFEST, self.manifest.as_bytes()).unwrap();
        section::embed(&bytes, section::CASES, CASES.as_bytes()).unwrap()
    }

    /// One without what makes it whole.
    pub fn with(extra: impl Into<String>) -> Self {
        Judge { extra: extra.into(), ..Judge::default() }
    }
}

/// Offsets in a submission: the settings at 136, the content of the outcome at 104.
const TEXT: &str = r#"(component
  EXTRA
  (import "checkrein:skill/log@0.1.0" (instance $log
    (type $l (enum "debug" "info" "warn" "error")) (export "level" (type $level (eq $l)))
    (export "write" (func (param "level" $level) (param "message" string)))))
  (import "checkrein:skill/types@0.1.0" (instance $types
    (type $l (enum "self-checked" "independent" "attested")) (export "level" (type $level (eq $l)))
    (type $f (record (field "id" string) (field "version" u32) (field "subject" string) (field "kind" string) (field "content" string) (field "source" string) (field "level" $level)))
    (export "fact" (type $fact (eq $f)))))
  (alias export $types "fact" (type $fact))
  (import "checkrein:skill/facts@0.1.0" (instance $facts
    (alias outer 1 $fact (type $of)) (export "fact" (type $ef (eq $of)))
    (export "find" (func (param "prefix" string) (param "after" (option string)) (param "limit" u32) (result (list $ef))))))
  (import "checkrein:skill/http@0.1.0" (instance $http
    (type $q (record (field "method" string) (field "url" string) (field "headers" (list (tuple string string))) (field "body" (list u8)) (field "timeout-ms" (option u32))))
    (export "request" (type $request (eq $q)))
    (type $r (record (field "url" string) (field "status" u16) (field "headers" (list (tuple string string))) (field "body" (list u8))))
    (export "response" (type $response (eq $r)))
    (type $e (variant (case "denied" string) (case "timed-out") (case "too-large" u64) (case "invalid" string) (case "transport" string)))
    (export "error" (type $error (eq $e)))
    (export "fetch" (func (param "request" $request) (result (result $response (error $error)))))))
  (import "wasi:filesystem/types@0.2.0" (instance $fs (export "descriptor" (type (sub resource)))))
  (alias export $fs "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (alias outer 1 $descriptor (type $od)) (export "descriptor" (type $ed (eq $od)))
    (export "get-directories" (func (result (list (tuple (own $ed) string)))))))
  (core module $memory
    (memory (export "memory") 4)
    (data (i32.const 1024) "rule12GEThttps://example.org/begun")
    (data (i32.const 1100) "\00\04\00\00\04\00\00\00\00\00\00\00\00\00\00\00\00\04\00\00\04\00\00\00")
    (data (i32.const 1200) "\00\00\00\00\4c\04\00\00\01\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 1300) "\00\04\00\00\04\00\00\00\00\00\00\00\00\04\00\00\04\00\00\00\04\04\00\00\01\00\00\00\05\04\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 1400) "\00\00\00\00\00\00\00\00\00\00\00\00\14\05\00\00\01\00\00\00")
    (global $heap (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32) (local.set $at (global.get $heap))
      (global.set $heap (i32.and (i32.add (i32.add (local.get $at) (local.get 3)) (i32.const 7)) (i32.const -8)))
      (local.get $at)))
  (core instance $room (instantiate $memory))
  (alias core export $room "memory" (core memory $mem))
  (alias core export $room "realloc" (core func $realloc))
  (core func $write (canon lower (func $log "write") (memory $mem) (realloc $realloc)))
  (core func $find (canon lower (func $facts "find") (memory $mem) (realloc $realloc)))
  (core func $fetch (canon lower (func $http "fetch") (memory $mem) (realloc $realloc)))
  (core func $open (canon lower (func $preopens "get-directories") (memory $mem) (realloc $realloc)))
  (core module $parts
    (import "room" "memory" (memory 0))
    (import "host" "write" (func $write (param i32 i32 i32)))
    (import "host" "find" (func $find (param i32 i32 i32 i32 i32 i32 i32)))
    (import "host" "fetch" (func $fetch (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "host" "open" (func $open (param i32)))
    (func $is (param $mode i32) (param $letter i32) (result i32) (i32.eq (local.get $mode) (local.get $letter)))
    (func (export "verify") (param $p i32) (result i32) (local $mode i32)
      (local.set $mode (i32.load8_u offset=1 (i32.load offset=136 (local.get $p))))
      (if (call $is (local.get $mode) (i32.const 108))
        (then (call $write (i32.const 1) (i32.const 1053) (i32.const 5)) (loop $again (br $again))))
      (if (call $is (local.get $mode) (i32.const 116)) (then unreachable))
      (if (call $is (local.get $mode) (i32.const 102))
        (then (call $find (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 10) (i32.const 2048))
          (if (i32.ne (i32.load (i32.const 2052)) (i32.const 1)) (then unreachable))))
      (if (call $is (local.get $mode) (i32.const 104))
        (then (call $fetch (i32.const 1030) (i32.const 3) (i32.const 1033) (i32.const 20) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2048))
          (if (i32.ne (i32.load8_u (i32.const 2048)) (i32.const 1)) (then unreachable))
          (if (i32.ne (i32.load8_u (i32.const 2056)) (i32.const 0)) (then unreachable))))
      (if (call $is (local.get $mode) (i32.const 110))
        (then (call $fetch (i32.const 1030) (i32.const 3)
            (i32.add (i32.load offset=136 (local.get $p)) (i32.const 2)) (i32.sub (i32.load offset=140 (local.get $p)) (i32.const 3))
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2048))
          (if (i32.ne (i32.load8_u (i32.const 2048)) (i32.const 0)) (then unreachable))))
      (if (call $is (local.get $mode) (i32.const 111))
        (then (call $open (i32.const 2048))
          (if (i32.ne (i32.load (i32.const 2052)) (i32.const 1)) (then unreachable))))
      (if (result i32) (i32.and
          (i32.eq (i32.load offset=108 (local.get $p)) (i32.const 7))
          (i32.eq (i32.load16_u offset=5 (i32.load offset=104 (local.get $p))) (i32.const 0x7d31)))
        (then (i32.const 1200)) (else (i32.const 1400)))))
  (core instance $host (export "write" (func $write)) (export "find" (func $find)) (export "fetch" (func $fetch)) (export "open" (func $open)))
  (core instance $m (instantiate $parts (with "room" (instance $room)) (with "host" (instance $host))))
  (type $t1 (record (field "id" string) (field "goal" string) (field "args" string) (field "evidence" (list string)) (field "criteria" (list string))))
  (export $subgoal "t-subgoal" (type $t1))
  (type $t2 (record (field "id" string) (field "args" string) (field "attempt" u32) (field "seed" u64) (field "settings" string)))
  (export $call "t-call" (type $t2))
  (type $t3 (record (field "subject" string) (field "kind" string) (field "content" string) (field "source" string) (field "supersedes" (option string))))
  (export $draft "t-draft" (type $t3))
  (type $t6 (record (field "path" string) (field "title" string) (field "media-type" string)))
  (export $artifact "t-artifact" (type $t6))
  (type $t7 (record (field "content" string) (field "facts" (list $draft)) (field "artifacts" (list $artifact))))
  (export $outcome "t-outcome" (type $t7))
  (type $t8 (enum "invalid-args" "not-found" "unavailable" "denied" "unsupported" "internal"))
  (export $kind "t-kind" (type $t8))
  (type $t9 (record (field "kind" $kind) (field "message" string) (field "evidence" string)))
  (export $failure "t-failure" (type $t9))
  (type $t10 (record (field "id" string) (field "text" string) (field "value" (option string)) (field "rests-on" (list string))))
  (export $statement "t-statement" (type $t10))
  (type $t11 (record (field "call" $call) (field "outcome" $outcome)))
  (export $performed "t-performed" (type $t11))
  (type $t12 (variant (case "performed" $performed) (case "statements" (list $statement))))
  (export $body "t-body" (type $t12))
  (type $t13 (record (field "skill" string) (field "version" string) (field "subgoal" $subgoal) (field "body" $body) (field "inputs" (list $fact)) (field "settings" string)))
  (export $submission "t-submission" (type $t13))
  (type $t14 (enum "error" "warning"))
  (export $severity "t-severity" (type $t14))
  (type $t15 (record (field "rule" string) (field "severity" $severity) (field "message" string) (field "expected" string) (field "actual" string) (field "location" (option string)) (field "suggestion" (option string))))
  (export $finding "t-finding" (type $t15))
  (type $t16 (record (field "rule" string) (field "about" (list string)) (field "note" string)))
  (export $check "t-check" (type $t16))
  (type $t17 (record (field "checks" (list $check)) (field "findings" (list $finding))))
  (export $verdict "t-verdict" (type $t17))
  (func $verify (param "submission" $submission) (result (result $verdict (error $failure)))
    (canon lift (core func $m "verify") (memory $mem) (realloc $realloc)))
  (instance $verification (export "verify" (func $verify)))
  (export "checkrein:skill/verification@0.1.0" (instance $verification)))"#;
