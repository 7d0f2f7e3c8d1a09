//! From cells to facts and `table.csv`.

use checkrein_skill::{DraftFact, Outcome};
use serde_json::{Value, json};

use crate::find::{Cell, Row, Table};

/// The artifact's path.
pub const FILE: &str = "table.csv";

/// One fact a cell.
#[must_use]
pub fn facts(table: &Table) -> Vec<DraftFact> {
    let cells = |row| cell_facts(&table.fields, row);
    table.rows.iter().flat_map(cells).collect()
}

fn cell_facts(fields: &[String], row: &Row) -> Vec<DraftFact> {
    let fact = |(field, cell): (&String, &Cell)| {
        let subject = format!("documents/{}/{field}", row.slug);
        let (kind, content): (&str, Value) = match cell {
            Cell::Found(quote) => (
                "quotation",
                json!({
                    "value": quote.value, "quote": quote.text, "file": row.file,
                    "start": quote.start, "end": quote.end,
                }),
            ),
            Cell::Missing { pattern } => {
                ("absence", json!({ "missing": true, "pattern": pattern, "file": row.file }))
            }
        };
        DraftFact::new(subject, kind, content, row.file.clone())
    };
    fields.iter().zip(&row.cells).map(fact).collect()
}

/// The table: a row a document, missing cells empty.
#[must_use]
pub fn csv(table: &Table) -> String {
    let header = std::iter::once("document").chain(table.fields.iter().map(String::as_str));
    let mut text = line(header);
    for row in &table.rows {
        let values = row.cells.iter().map(|cell| match cell {
            Cell::Found(quote) => quote.value.as_str(),
            Cell::Missing { .. } => "",
        });
        text.push_str(&line(
            std::iter::once(row.file.rsplit('/').next().unwrap_or_default()).chain(values),
        ));
    }
    text
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = cells
        .map(|cell| {
            let plain = !cell.contains([',', '"', '\n', '\r']);
            if plain { cell.to_owned() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
        })
        .collect();
    quoted.join(",") + "\n"
}

/// The outcome of a table.
#[must_use]
pub fn outcome(table: &Table) -> Outcome {
    let cells = || table.rows.iter().flat_map(|row| &row.cells);
    let missing = cells().filter(|cell| matches!(cell, Cell::Missing { .. })).count();
    let content = json!({
        "documents": table.rows.len(),
        "fields": table.fields.len(),
        "found": cells().count() - missing,
        "missing": missing,
    });
    Outcome::new(content).facts(facts(table)).artifact(FILE, "What the documents say", "text/csv")
}
