//! Counts as they come: handled, or a failure that names row and column. Never a wrong number.

use checkrein_tests::Place;
use serde_json::{Value, json};

const SAMPLES: &str = "file,condition\na1,untreated\na2,untreated\nb1,treated\nb2,treated\n";

fn good() -> String {
    let mut text = "gene\ta1\ta2\tb1\tb2\n".to_owned();
    for gene in 1..=30 {
        let (low, high) = (100 + gene * 7, 100 + gene * 7 + (gene % 5) * 40);
        text.push_str(&format!("g{gene}\t{low}\t{}\t{high}\t{}\n", low + gene % 3, high + gene % 4));
    }
    text
}

/// What the skill said when it failed first: message and evidence.
fn failure(place: &Place) -> String {
    let ended = place.events_of("call-ended");
    let failure = &ended[0]["ended"]["failure"];
    assert_eq!(failure["kind"], "invalid-args", "{ended:#?}");
    format!("{}\n{}", failure["message"].as_str().unwrap(), failure["evidence"])
}

/// Calls the skill on these counts: the facts if it was accepted, else the failure.
fn call(counts: &str, samples: &str) -> Result<Vec<Value>, String> {
    let place = Place::new();
    place.configure(
        &["differential-expression", "statistics-recheck"],
        "[[verifier]]\nuse = \"statistics-recheck\"\non-facts = [\"de/*\"]\n",
    );
    let counts = place.write("counts.tsv", counts);
    let samples = place.write("samples.csv", samples);
    let args =
        json!({ "counts": "/in/counts.tsv", "annotation": "/in/samples.csv", "min_samples": 2 }).to_string();
    let counts = format!("counts={}", counts.display());
    let samples = format!("samples={}", samples.display());
    let ran = place.run(&["call", "differential-expression", &args, "--in", &counts, "--in", &samples]);
    match ran.code {
        0 => {
            let lines = ran.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            Ok(lines
                .filter(|line| line["subject"].is_string())
                .inspect(|fact| assert_eq!(fact["level"], "independent", "{fact}"))
                .map(|fact| json!([fact["subject"], fact["content"]]))
                .collect())
        }
        3 => Err(failure(&place)),
        _ => panic!("{ran:?}"),
    }
}

#[track_caller]
fn fails(counts: &str, names: &[&str]) {
    let told = call(counts, SAMPLES).expect_err("it must fail");
    for name in names {
        assert!(told.contains(name), "`{name}` is not in\n{told}");
    }
}

#[test]
fn plain_counts_are_handled_and_verified() {
    let facts = call(&good(), SAMPLES).unwrap();
    assert!(facts.iter().any(|fact| fact[0] == "de/summary" && fact[1]["kept"] == 30), "{facts:?}");
}

#[test]
fn dialects_do_not_change_a_number() {
    let plain = call(&good(), SAMPLES).unwrap();
    let crlf = good().replace('\n', "\r\n");
    let quoted = good().replace("g7\t", "\"g7\"\t").replace("gene\ta1", "\"gene\"\t\"a1\"");
    let bom = format!("\u{feff}{}", good());
    let comma = good().replace('\t', ",");
    for (name, text) in [("CRLF", crlf), ("quotes", quoted), ("a byte-order mark", bom), ("commas", comma)] {
        assert_eq!(call(&text, SAMPLES).unwrap(), plain, "{name}");
    }
}

#[test]
fn a_ragged_row_is_named() {
    let line = good().lines().nth(5).unwrap().to_owned();
    fails(&good().replace(&line, line.rsplit_once('\t').unwrap().0), &["row 6", "4 cells", "5"]);
}

#[test]
fn text_in_place_of_a_count_is_named_by_row_and_column() {
    fails(&good().replace("g5\t135", "g5\tmany"), &["row 6, column `a1`", "`many`"]);
}

#[test]
fn a_negative_count_is_named_by_row_and_column() {
    fails(&good().replace("g5\t135", "g5\t-135"), &["row 6, column `a1`", "`-135`"]);
}

#[test]
fn a_fractional_count_is_named_by_row_and_column() {
    fails(&good().replace("g5\t135", "g5\t135.5"), &["row 6, column `a1`", "`135.5`"]);
}

#[test]
fn a_duplicate_gene_is_named() {
    fails(&good().replace("g6\t", "g5\t"), &["row 7, column `gene`", "`g5`", "row 6"]);
}

#[test]
fn an_empty_file_is_a_failure() {
    fails("", &["`/in/counts.tsv`", "empty"]);
}

#[test]
fn a_sample_of_all_zeros_is_named() {
    let zeros: String = good()
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let mut cells: Vec<&str> = line.split('\t').collect();
            if index > 0 {
                cells[3] = "0";
            }
            cells.join("\t") + "\n"
        })
        .collect();
    fails(&zeros, &["column `b1`"]);
}

#[test]
fn one_group_of_one_sample_never_gives_a_wrong_number() {
    let samples = SAMPLES.replace("b2,treated\n", "");
    let counts: String =
        good().lines().map(|line| line.rsplit_once('\t').unwrap().0.to_owned() + "\n").collect();
    // `call` sees to it that facts are independent: what is handled was recomputed.
    match call(&counts, &samples) {
        Ok(facts) => assert!(facts.iter().any(|fact| fact[0] == "de/summary"), "{facts:?}"),
        Err(told) => assert!(told.contains("group `treated`") && told.contains("b1"), "{told}"),
    }
}
