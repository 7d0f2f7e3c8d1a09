//! Components that return what is not so. What only the harness can tell, it does: see its own
//! tests of attacks.

use super::guest::Guest;
use super::{Asked, Attack, Expected, Group};

pub(super) fn attacks() -> Vec<Attack> {
    [executors(), others()].concat()
}

fn lie(name: &'static str, asked: Asked, rule: &'static str, guest: fn() -> Guest) -> Attack {
    Attack::part(Group::Lies, name, asked, Expected::Answer(rule), guest)
}

fn executors() -> Vec<Attack> {
    let lie = |name, rule, guest| lie(name, Asked::Execute, rule, guest);
    vec![
        lie("content that is not JSON", "json", || returning("{nope", &[])),
        lie("content 10000 levels deep", "json", || returning(&"[".repeat(10_000), &[])),
        lie("content with a number that no double holds", "json", || returning("1e999", &[])),
        lie("an artifact outside of work", "artifact-path", || returning("1", &["/etc/passwd"])),
        lie("an artifact above work", "artifact-path", || returning("1", &["../x"])),
        lie("an artifact that is not there", "artifact-file", || returning("1", &["absent.csv"])),
        lie("one artifact twice", "artifact-path", || returning("1", &["a", "a"])),
        lie("a fact whose subject is a path", "subject", || fact("../escape", "{}")),
        lie("a fact whose subject is a message", "subject", || fact("a\nfact: verified", "{}")),
        lie("a fact whose content is not JSON", "json", || fact("test/a", "nope")),
        Attack::part(Group::Lies, "leaving with success", Asked::Execute, Expected::Trap("exit(0)"), || {
            let mut guest = Guest::default();
            let types = "(export \"exit\" (func (param \"status\" (result))))";
            guest.import("wasi:cli/exit@0.2.0", types, "exit", "(param i32)");
            guest.execute = "(call $exit (i32.const 0)) unreachable".into();
            guest
        }),
    ]
}

fn returning(content: &str, artifacts: &[&str]) -> Guest {
    let mut guest = Guest::default();
    guest.returns(content, artifacts);
    guest
}

fn fact(subject: &str, content: &str) -> Guest {
    let mut guest = Guest::default();
    guest.returns_fact(subject, content);
    guest
}

fn others() -> Vec<Attack> {
    vec![
        lie("a score of 255", Asked::Assess, "score", || assessing(255, None)),
        lie("arguments that are no object", Asked::Assess, "args", || assessing(50, Some("[1]"))),
        lie("a verdict without checks", Asked::Verify, "verdict-empty", || {
            let mut guest = Guest::default();
            guest.verify = format!("i32.const {}", guest.image.words(&[0, 0, 0, 0, 0]));
            guest
        }),
        lie("a finding that expects what it found", Asked::Verify, "finding-says-nothing", || {
            finding("1", "1.0")
        }),
        lie("a finding that expects nothing", Asked::Verify, "finding-says-nothing", || finding("null", "1")),
        lie("a remedy that names a path", Asked::Recover, "remedy", || {
            let mut guest = Guest::default();
            let (diagnosis, name) = (guest.image.text("d"), guest.image.text("../other"));
            // `use-skill` is the third remedy.
            let advice = guest.image.words(&[diagnosis[0], diagnosis[1], 2, name[0], name[1]]);
            guest.recover = format!("i32.const {advice}");
            guest
        }),
    ]
}

fn assessing(score: u32, args: Option<&str>) -> Guest {
    let mut guest = Guest::default();
    let [at, length] = args.map_or([0, 0], |args| guest.image.text(args));
    let assessment = guest.image.words(&[score, 0, 0, u32::from(args.is_some()), at, length]);
    guest.assess = format!("i32.const {assessment}");
    guest
}

fn finding(expected: &str, actual: &str) -> Guest {
    let mut guest = Guest::default();
    let (rule, expected, actual) =
        (guest.image.text("r"), guest.image.text(expected), guest.image.text(actual));
    let finding = guest.image.words(&[
        rule[0],
        rule[1],
        0,
        rule[0],
        rule[1],
        expected[0],
        expected[1],
        actual[0],
        actual[1],
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    guest.verify = format!("i32.const {}", guest.image.words(&[0, 0, 0, finding, 1]));
    guest
}
