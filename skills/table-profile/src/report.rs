//! From a profile to facts.

use std::collections::HashSet;

use checkrein_skill::{DraftFact, outcome};
use serde_json::{Value, json};

use crate::profile::Profile;
use crate::skill::Table;

/// The artifact's path.
pub const FILE: &str = "profile.json";

/// A text as a segment of a subject: what cannot be in one becomes `-`. Case is kept, so that
/// columns `a` and `A` stay apart.
#[must_use]
pub fn slug(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' }
    };
    let slug: String = text.chars().map(plain).collect();
    let slug = slug.trim_start_matches(['-', '.', '_']).trim_end_matches('-');
    let short: String = slug.chars().take(80).collect();
    if outcome::is_segment(&short) { short } else { "column".into() }
}

/// A slug for each column; a second one of the same slug gets `-2`, and so on.
#[must_use]
pub fn column_slugs(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .map(|name| {
            let base = slug(&name);
            let mut own = base.clone();
            let mut n = 1;
            while !taken.insert(own.clone()) {
                n += 1;
                own = format!("{base}-{n}");
            }
            own
        })
        .collect()
}

/// The outcome's content.
#[must_use]
pub fn content(table: &Table, profile: &Profile) -> Value {
    json!({
        "table": table.path,
        "name": table.name,
        "rows": profile.rows,
        "columns": profile.columns.len(),
    })
}

/// The content of `profile/<name>`.
#[must_use]
pub fn summary(table: &Table, profile: &Profile) -> Value {
    json!({
        "rows": profile.rows,
        "columns": profile.columns.len(),
        "missing": profile.missing,
        "duplicate_rows": profile.duplicate_rows,
        "duplicate_keys": profile.duplicate_keys,
        "delimiter": table.delimiter.to_string(),
        "header": table.header,
        "names": profile.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
    })
}

/// A fact for the table and one for each column.
#[must_use]
pub fn facts(table: &Table, profile: &Profile) -> Vec<DraftFact> {
    let fact = |subject: String, content: Value| {
        DraftFact::new(subject, "statistic", content, table.path.clone())
    };
    let slugs = column_slugs(profile.columns.iter().map(|column| column.name.clone()));
    let columns = profile
        .columns
        .iter()
        .zip(slugs)
        .map(|(column, slug)| fact(format!("profile/{}/{slug}", table.name), json!(column)));
    std::iter::once(fact(format!("profile/{}", table.name), summary(table, profile)))
        .chain(columns)
        .collect()
}

/// The artifact: the table and its columns in one document.
#[must_use]
pub fn document(table: &Table, profile: &Profile) -> String {
    let document = json!({
        "table": table.path,
        "summary": summary(table, profile),
        "columns": profile.columns,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_segments_and_differ() {
        assert_eq!(slug("number of lanes"), "number-of-lanes");
        assert_eq!(slug("Größe (cm)"), "Gr--e--cm");
        assert_eq!(slug("--"), "column");
        let names = ["a b", "a-b", "a-b-2", "a b"].map(String::from);
        let slugs = column_slugs(names.into_iter());
        assert_eq!(slugs, ["a-b", "a-b-2", "a-b-2-2", "a-b-3"]);
        assert!(slugs.iter().all(|slug| outcome::is_segment(slug)));
    }
}
