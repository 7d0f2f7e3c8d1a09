//! Profiles of tables that are easily read in two ways: skill and verifier, written apart, follow
//! one rule.

#![allow(clippy::unwrap_used, reason = "helpers of tests are no tests to clippy")]

use checkrein_skill::testing::{World, call, submission};
use checkrein_skill::{Outcome, Skill, Verdict, Verifier};
use serde_json::{Value, json};
use statistics_recheck::StatisticsRecheck;
use table_profile::{Args, TableProfile};

fn args() -> Value {
    json!({ "table": "/in/t.csv" })
}

fn profile(text: &str) -> (World, Outcome) {
    let world = World::new().with("/in/t.csv", text);
    let typed: Args = serde_json::from_value(args()).unwrap();
    let outcome = TableProfile::execute(call(typed)).unwrap();
    (world, outcome)
}

fn judge(outcome: &Outcome) -> Verdict {
    StatisticsRecheck::verify(&submission("table-profile", args(), outcome.clone())).unwrap()
}

/// The content of a fact of a table on which both agree.
#[track_caller]
fn agreed(text: &str, subject: &str) -> Value {
    let (_world, outcome) = profile(text);
    let verdict = judge(&outcome);
    assert!(verdict.findings.is_empty(), "{text:?}: {:#?}", verdict.findings);
    outcome.find(subject).unwrap().1.content.clone()
}

#[test]
fn integers_past_2_to_the_53_keep_every_digit() {
    let column = agreed("a,b\n9007199254740993,1\n9007199254740993,2\n", "profile/t/a");
    assert_eq!(column["type"], "integer");
    assert_eq!((&column["min"], &column["max"]), (&column["max"], &json!("9007199254740993")));
    assert_eq!(column["sum"], "18014398509481986");
    assert_eq!(column["mean"].as_f64(), Some(9_007_199_254_740_992.0));
    let at_the_edge = agreed("a\n9007199254740992\n-9007199254740992\n", "profile/t/a");
    assert_eq!(at_the_edge["max"], 9_007_199_254_740_992_i64);
    assert_eq!((&at_the_edge["sum"], &at_the_edge["mean"]), (&json!(0), &json!(0)));
}

#[test]
fn integers_of_any_length_are_integers() {
    let huge = "123456789012345678901234567890";
    let column = agreed(&format!("a,b\n{huge},1\n-{huge},2\n{huge},3\n1,4\n"), "profile/t/a");
    assert_eq!(column["type"], "integer");
    assert_eq!((&column["min"], &column["max"]), (&json!(format!("-{huge}")), &json!(huge)));
    assert_eq!(column["sum"], "123456789012345678901234567891");
    let past_doubles = agreed(&format!("a\n{}\n1\n", "9".repeat(400)), "profile/t/a");
    assert_eq!(past_doubles["sum"], format!("1{}", "0".repeat(400)));
    assert!(past_doubles.get("mean").is_none());
}

#[test]
fn a_digit_that_a_double_would_lose_is_found() {
    let (_world, honest) = profile("a\n9007199254740993\n9007199254740992\n");
    for (key, lie) in [
        ("max", json!("9007199254740992")),
        ("max", json!(9_007_199_254_740_993_i64)),
        ("max", json!(9_007_199_254_740_992.0)),
        ("min", json!(9_007_199_254_740_993_i64)),
        ("sum", json!("18014398509481984")),
    ] {
        let mut outcome = honest.clone();
        let (at, _) = honest.find("profile/t/a").unwrap();
        outcome.facts[at].content[key] = lie;
        let place = format!("/facts/{at}/content/{key}");
        let found = judge(&outcome).findings;
        assert!(found.iter().any(|finding| finding.location.as_deref() == Some(&*place)), "{key}");
    }
}

#[test]
fn a_row_of_names_before_numbers_is_a_header() {
    for (text, names) in [
        ("a,a\n1,2\n", ["a", "a_2"]),
        (",\n1,2\n", ["column_1", "column_2"]),
        (",a\n1,2\n", ["column_1", "a"]),
        ("column_2,\n1,2\n", ["column_2", "column_2_2"]),
    ] {
        let table = agreed(text, "profile/t");
        assert_eq!((&table["header"], &table["rows"]), (&json!(true), &json!(1)), "{text:?}");
        assert_eq!(table["names"], json!(names), "{text:?}");
    }
    assert_eq!(agreed("a,a\n1,2\n", "profile/t/a_2")["max"], 2);
    for text in ["a,a\nx,y\n", "NA,NA\n1,2\n", "1,1\n1,2\n", "a,a\n"] {
        assert_eq!(agreed(text, "profile/t")["header"], false, "{text:?}");
    }
}

#[test]
fn sums_that_cancel_agree_within_what_rounding_makes_of_them() {
    let _ = agreed("a\n1e16\n0.1\n-1e16\n0.7\n0.3\n", "profile/t/a");
    let column = agreed("a\n1e308\n1e308\n-1e308\n-1e308\n0.5\n", "profile/t/a");
    assert!(column.get("sum").is_none() && column.get("mean").is_none());
}

/// Cells that are close to one another in look and not in kind, in every pair and in a heap.
#[test]
fn cells_of_every_look_are_read_alike() {
    let cells = [
        "0",
        "-0",
        "+0",
        "00",
        "007",
        "-7",
        "+7",
        "+-7",
        "1.0",
        "1.",
        ".5",
        "1e3",
        "1E-3",
        "e",
        "-",
        "+",
        "inf",
        "NaN",
        "nan",
        "NA",
        "None",
        "null",
        "N/A",
        "Infinity",
        "1e999",
        "0x10",
        "1_000",
        "true",
        "No",
        "yes",
        "x",
        "ä",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "9007199254740993",
        "340282366920938463463374607431768211456",
    ];
    for one in cells {
        for other in cells {
            let text = format!("n,{one}\n1,{one}\n2,{other}\n3,\n");
            let _ = agreed(&text, "profile/t");
            let _ = agreed(&format!("n,a,a\n1,{one},{other}\n2,{other},{one}\n"), "profile/t");
        }
    }
}

#[test]
fn the_content_is_held_against_the_facts() {
    let (_world, honest) = profile("a,b\n1,2\n3,4\n");
    for key in ["table", "name", "rows", "columns"] {
        let mut left_out = honest.clone();
        left_out.content.as_object_mut().unwrap().remove(key);
        let mut other = honest.clone();
        other.content[key] = match honest.content[key].as_i64() {
            Some(number) => json!(-number),
            None => json!("other"),
        };
        for outcome in [left_out, other] {
            let findings = judge(&outcome).findings;
            assert_eq!(findings.len(), 1, "{key}: {findings:#?}");
            assert_eq!(findings[0].location.as_deref(), Some("/content"));
        }
    }
    let mut without = honest;
    without.artifacts.clear();
    assert_eq!(judge(&without).findings[0].rule, "artifact-missing");
}
