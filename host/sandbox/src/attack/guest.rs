//! A complete skill as component text, part by part.
//!
//! [`Guest`] is whole as it stands: its parts give fixed, valid answers. An attack replaces one
//! part, by WAT of its own or by other bytes, and leaves the rest: so it is a few lines.

use checkrein_contract::section::{self, SectionError};

/// A manifest that is right.
pub(crate) const MANIFEST: &str = r#"
schema = "checkrein/skill@1"
kind = "skill"
name = "test"
version = "1.0.0"
description = "for tests"
effects = "none"
"#;

/// Cases that the default [`Guest`] passes.
pub(crate) const CASES: &str = "[[case]]\nname = \"one\"\n";

/// A part that never ends by itself.
pub(crate) const LOOP: &str = "(loop $again (br $again)) unreachable";

/// The component with manifest and cases.
///
/// # Errors
///
/// If it is no component.
pub(crate) fn embedded(bytes: &[u8], manifest: &str, cases: &str) -> Result<Vec<u8>, SectionError> {
    let with_manifest = section::embed(bytes, section::MANIFEST, manifest.as_bytes())?;
    section::embed(&with_manifest, section::CASES, cases.as_bytes())
}

pub(crate) mod files;
pub(crate) mod network;

/// Where the static data of a guest begins.
const BASE: u32 = 1024;

/// The static memory of a guest: texts, and records that point at them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image(Vec<u8>);

impl Image {
    /// Places bytes at a multiple of 4.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        let at = BASE + self.0.len() as u32;
        self.0.extend_from_slice(bytes);
        at
    }

    /// A text, as pointer and length.
    pub(crate) fn text(&mut self, text: &str) -> [u32; 2] {
        [self.bytes(text.as_bytes()), text.len() as u32]
    }

    /// A record of words.
    pub(crate) fn words(&mut self, words: &[u32]) -> u32 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    fn data(&self) -> String {
        self.0.iter().map(|byte| format!("\\{byte:02x}")).collect()
    }
}

/// A skill in the making. Each part is the body of a function in WAT.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) image: Image,
    /// `(result i32)`, a pointer to an assessment.
    pub(crate) assess: String,
    /// `(result i32)`, a pointer to a `result<outcome, failure>`.
    pub(crate) execute: String,
    /// `(param $p i32) (result i32)`, pointers to a submission and a `result<verdict, failure>`.
    pub(crate) verify: String,
    /// `(param $p i32) (result i32)`, pointers to a mishap and an advice.
    pub(crate) recover: String,
    /// The body of the start function.
    pub(crate) start: String,
    /// Core imports, functions, memories and tables besides.
    pub(crate) core: String,
    /// Component imports and lowered functions, in front of the core module.
    pub(crate) imports: String,
    /// `(with …)` of the core instance.
    pub(crate) with: String,
    /// What is exported besides.
    pub(crate) exports: String,
    /// The memory's limits.
    pub(crate) memory: String,
    /// The version in the names of the exports.
    pub(crate) version: &'static str,
    /// The bodies of realloc and of the executor's post-return.
    pub(crate) realloc: String,
    pub(crate) post_return: String,
}

impl Default for Guest {
    fn default() -> Self {
        let mut image = Image::default();
        let reason = image.text("because");
        let assess = image.words(&[50, reason[0], reason[1], 0, 0, 0]);
        let mut guest = Guest {
            image,
            assess: format!("i32.const {assess}"),
            execute: String::new(),
            verify: String::new(),
            recover: String::new(),
            start: String::new(),
            core: String::new(),
            imports: String::new(),
            with: String::new(),
            exports: String::new(),
            memory: "4".to_owned(),
            version: "0.1.0",
            realloc: "(local $at i32) (local.set $at (global.get $heap))
                (global.set $heap (i32.and (i32.add (i32.add (local.get $at) (local.get 3)) (i32.const 7)) (i32.const -8)))
                (local.get $at)"
                .to_owned(),
            post_return: String::new(),
        };
        guest.returns(r#"{"n":1}"#, &[]);
        guest.verify = guest.rejects_other_lengths();
        let diagnosis = guest.image.text("d");
        let hint = guest.image.text("try it");
        // `replan` is the fourth remedy.
        let advice = guest.image.words(&[diagnosis[0], diagnosis[1], 3, hint[0], hint[1]]);
        guest.recover = format!("i32.const {advice}");
        guest
    }
}

impl Guest {
    /// A guest with this executor.
    pub(crate) fn executing(body: &str) -> Guest {
        Guest { execute: body.to_owned(), ..Guest::default() }
    }

    /// The executor returns this content and these artifacts.
    pub(crate) fn returns(&mut self, content: &str, artifacts: &[&str]) {
        let content = self.image.text(content);
        let mut files = Vec::new();
        for path in artifacts {
            let path = self.image.text(path);
            files.extend([path[0], path[1], 0, 0, 0, 0]);
        }
        let list = self.image.words(&files);
        let outcome = [0, content[0], content[1], 0, 0, list, artifacts.len() as u32];
        self.execute = format!("i32.const {}", self.image.words(&outcome));
    }

    /// The executor returns one fact with this subject and content.
    pub(crate) fn returns_fact(&mut self, subject: &str, content: &str) {
        let (subject, content, kind) =
            (self.image.text(subject), self.image.text(content), self.image.text("k"));
        let fact = [subject[0], subject[1], kind[0], kind[1], content[0], content[1], 0, 0, 0, 0, 0];
        let list = self.image.words(&fact);
        let null = self.image.text("null");
        self.execute = format!("i32.const {}", self.image.words(&[0, null[0], null[1], list, 1, 0, 0]));
    }

    /// A verdict pointer with one check.
    pub(crate) fn accepting(&mut self) -> u32 {
        let rule = self.image.text("rule");
        let check = self.image.words(&[rule[0], rule[1], 0, 0, rule[0], rule[1]]);
        self.image.words(&[0, check, 1, 0, 0])
    }

    fn rejecting(&mut self) -> u32 {
        let (rule, one, two) = (self.image.text("rule"), self.image.text("1"), self.image.text("2"));
        let finding =
            [rule[0], rule[1], 0, rule[0], rule[1], one[0], one[1], two[0], two[1], 0, 0, 0, 0, 0, 0];
        let finding = self.image.words(&finding);
        self.image.words(&[0, 0, 0, finding, 1])
    }

    /// A verification that rejects whatever content is not 7 bytes long and ends in `1}`.
    fn rejects_other_lengths(&mut self) -> String {
        let (good, bad) = (self.accepting(), self.rejecting());
        // skill, version: 16 bytes; subgoal: 40; the body's tag; the call's 40 bytes, aligned to 8.
        let content = 64 + 40;
        format!(
            "(if (result i32) (i32.and
                (i32.eq (i32.load offset={} (local.get $p)) (i32.const 7))
                (i32.eq (i32.load16_u offset=5 (i32.load offset={content} (local.get $p))) (i32.const 0x7d31)))
              (then (i32.const {good})) (else (i32.const {bad})))",
            content + 4
        )
    }

    /// Adds the import of an interface's function, to be called as `$name` with these core types.
    pub(crate) fn import(&mut self, interface: &str, component_type: &str, function: &str, core_type: &str) {
        self.imports.push_str(&format!(
            "(import \"{interface}\" (instance ${function} {component_type}))
             (core func $low-{function} (canon lower (func ${function} \"{function}\") (memory $mem) (realloc $mrealloc)))
             (core instance $with-{function} (export \"f\" (func $low-{function})))"
        ));
        self.with.push_str(&format!("(with \"{function}\" (instance $with-{function}))"));
        self.core.insert_str(0, &format!("(import \"{function}\" \"f\" (func ${function} {core_type}))"));
    }

    /// Exports `checkrein:skill/schema`, which says this.
    pub(crate) fn describes(&mut self, schema: &str) {
        let schema = self.image.text(schema);
        let schema = self.image.words(&schema);
        self.core = format!("{} (func (export \"schema\") (result i32) (i32.const {schema}))", self.core);
        self.exports = "(func $args (result string) (canon lift (core func $m \"schema\") (memory $mem) (realloc $mrealloc)))
            (instance $schema (export \"args\" (func $args)))
            (export \"checkrein:skill/schema@0.1.0\" (instance $schema))"
            .to_owned();
    }

    /// `checkrein:skill/log`, as `$write` with level, pointer and length.
    pub(crate) fn import_log(&mut self) {
        let types =
            "(type $l (enum \"debug\" \"info\" \"warn\" \"error\")) (export \"level\" (type $level (eq $l)))
            (export \"write\" (func (param \"level\" $level) (param \"message\" string)))";
        self.import("checkrein:skill/log@0.1.0", types, "write", "(param i32 i32 i32)");
    }

    /// `checkrein:skill/progress`, as `$report` with done, total, pointer and length.
    pub(crate) fn import_progress(&mut self) {
        let types = "(export \"report\" (func (param \"done\" u32) (param \"total\" u32) (param \"message\" string)))";
        self.import("checkrein:skill/progress@0.1.0", types, "report", "(param i32 i32 i32 i32)");
    }

    /// `checkrein:skill/http`, as `$fetch` with method, URL, headers, body, timeout and where to
    /// put the answer.
    pub(crate) fn import_fetch(&mut self) {
        let types = r#"
            (type $h (list (tuple string string)))
            (type $q (record (field "method" string) (field "url" string) (field "headers" $h)
              (field "body" (list u8)) (field "timeout-ms" (option u32))))
            (export "request" (type $request (eq $q)))
            (type $r (record (field "url" string) (field "status" u16) (field "headers" $h) (field "body" (list u8))))
            (export "response" (type $response (eq $r)))
            (type $e (variant (case "denied" string) (case "timed-out") (case "too-large" u64)
              (case "invalid" string) (case "transport" string)))
            (export "error" (type $error (eq $e)))
            (export "fetch" (func (param "request" $request) (result (result $response (error $error)))))"#;
        let core = "(param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)";
        self.import("checkrein:skill/http@0.1.0", types, "fetch", core);
    }

    /// The component.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of a part.
    pub(crate) fn try_assemble(&self) -> Result<Vec<u8>, wat::Error> {
        wat::parse_str(self.text())
    }

    /// The component, for tests.
    #[cfg(test)]
    pub(crate) fn assemble(&self) -> Vec<u8> {
        self.try_assemble().unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }

    /// The component as text. Memory and realloc are a module of their own, so that imports can
    /// be lowered before the module that calls them is there.
    pub(crate) fn text(&self) -> String {
        let Guest {
            assess,
            execute,
            verify,
            recover,
            start,
            core,
            imports,
            with,
            exports,
            memory,
            version,
            ..
        } = self;
        let Guest { realloc, post_return, .. } = self;
        let data = self.image.data();
        let heap = 131_072;
        format!(
            "(component
  (core module $memory
    (memory (export \"memory\") {memory})
    (data (i32.const {BASE}) \"{data}\")
    (global $heap (mut i32) (i32.const {heap}))
    (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) {realloc}))
  (core instance $m0 (instantiate $memory))
  (alias core export $m0 \"memory\" (core memory $mem))
  (alias core export $m0 \"realloc\" (core func $mrealloc))
  {imports}
  (core module $parts
    (import \"m\" \"memory\" (memory $shared 0))
    {core}
    (func $run {start})
    (func $assess (export \"assess\") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {assess})
    (func $execute (export \"execute\") (param i32 i32 i32 i32 i32 i64 i32 i32) (result i32) {execute})
    (func $verify (export \"verify\") (param $p i32) (result i32) {verify})
    (func $recover (export \"recover\") (param $p i32) (result i32) {recover})
    (func (export \"post\") (param i32) {post_return})
    (start $run))
  (core instance $m (instantiate $parts (with \"m\" (instance $m0)) {with}))
{TYPES}
  (func $assess (param \"subgoal\" $subgoal) (result $assessment)
    (canon lift (core func $m \"assess\") (memory $mem) (realloc $mrealloc)))
  (func $execute (param \"call\" $call) (result (result $outcome (error $failure)))
    (canon lift (core func $m \"execute\") (memory $mem) (realloc $mrealloc) (post-return (func $m \"post\"))))
  (func $verify (param \"submission\" $submission) (result (result $verdict (error $failure)))
    (canon lift (core func $m \"verify\") (memory $mem) (realloc $mrealloc)))
  (func $recover (param \"mishap\" $mishap) (result $advice)
    (canon lift (core func $m \"recover\") (memory $mem) (realloc $mrealloc)))
  (instance $trigger (export \"assess\" (func $assess)))
  (instance $executor (export \"execute\" (func $execute)))
  (instance $verification (export \"verify\" (func $verify)))
  (instance $recovery (export \"recover\" (func $recover)))
  (export \"checkrein:skill/trigger@{version}\" (instance $trigger))
  (export \"checkrein:skill/executor@{version}\" (instance $executor))
  (export \"checkrein:skill/verification@{version}\" (instance $verification))
  (export \"checkrein:skill/recovery@{version}\" (instance $recovery))
  {exports})"
        )
    }
}

/// The types of the interface, each exported under a name, as the component model asks of types
/// in the signatures of exports.
const TYPES: &str = r#"
  (type $t1 (record (field "id" string) (field "goal" string) (field "args" string) (field "evidence" (list string)) (field "criteria" (list string))))
  (export $subgoal "t-subgoal" (type $t1))
  (type $t2 (record (field "id" string) (field "args" string) (field "attempt" u32) (field "seed" u64) (field "settings" string)))
  (export $call "t-call" (type $t2))
  (type $t3 (record (field "subject" string) (field "kind" string) (field "content" string) (field "source" string) (field "supersedes" (option string))))
  (export $draft "t-draft" (type $t3))
  (type $t4 (enum "self-checked" "independent" "attested"))
  (export $level "t-level" (type $t4))
  (type $t5 (record (field "id" string) (field "version" u32) (field "subject" string) (field "kind" string) (field "content" string) (field "source" string) (field "level" $level)))
  (export $fact "t-fact" (type $t5))
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
  (type $t18 (record (field "limit" string) (field "allowed" u64) (field "used" u64)))
  (export $hit "t-hit" (type $t18))
  (type $t19 (variant (case "failed" $failure) (case "rejected" (list $finding)) (case "limited" $hit) (case "trapped" string) (case "unmet" (list string)) (case "other" string)))
  (export $cause "t-cause" (type $t19))
  (type $t20 (record (field "subgoal" $subgoal) (field "call" $call) (field "cause" $cause) (field "earlier" (list $cause))))
  (export $mishap "t-mishap" (type $t20))
  (type $t21 (variant (case "retry-with" string) (case "retry-after" u32) (case "use-skill" string) (case "replan" string) (case "ask-person" string) (case "give-up" string)))
  (export $remedy "t-remedy" (type $t21))
  (type $t22 (record (field "diagnosis" string) (field "remedy" $remedy)))
  (export $advice "t-advice" (type $t22))
  (type $t23 (record (field "score" u8) (field "reason" string) (field "args" (option string))))
  (export $assessment "t-assessment" (type $t23))
"#;
