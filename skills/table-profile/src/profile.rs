//! The numbers of a table.

mod column;
mod number;
mod whole;

use std::collections::HashSet;

use crate::reader::Record;

pub use column::{Column, Kind};
pub use number::Amount;
pub use whole::Whole;

/// All that is known of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Records without the header.
    pub rows: usize,
    /// One a column, in their order.
    pub columns: Vec<Column>,
    /// Cells without a value, see [`is_missing`].
    pub missing: usize,
    /// Records that an earlier one equals in every cell.
    pub duplicate_rows: usize,
    /// Values of the first column that occurred before; missing ones are not counted.
    pub duplicate_keys: usize,
}

/// Profiles records of one width. With a header the first record names the columns, else they are
/// `column_1` and on.
#[must_use]
pub fn profile(records: &[Record], header: bool) -> Profile {
    let width = records.first().map_or(0, |record| record.cells.len());
    let data = if header { &records[1..] } else { records };
    let named = records.first().filter(|_| header);
    let columns: Vec<Column> = names(named, width)
        .into_iter()
        .enumerate()
        .map(|(at, name)| Column::of(name, data.iter().map(|record| record.cells[at].trim())))
        .collect();
    Profile {
        rows: data.len(),
        missing: columns.iter().map(|column| column.missing).sum(),
        duplicate_rows: repeated(data.iter().map(|record| &record.cells)),
        duplicate_keys: columns
            .first()
            .map_or(0, |first| data.len() - first.missing - first.distinct),
        columns,
    }
}

/// A name of its own for each column: an empty one is called by its number, `column_1`, and one that
/// an earlier column has gets `_2`, or the next number that is free.
fn names(header: Option<&Record>, width: usize) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |at: usize| {
        let own = header.map_or("", |header| header.cells[at].trim());
        let own = if own.is_empty() { format!("column_{}", at + 1) } else { own.to_owned() };
        let numbered = (2..).map(|n| format!("{own}_{n}"));
        let free = std::iter::once(own.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or(own);
        taken.insert(name.clone());
        name
    };
    (0..width).map(name).collect()
}

/// Whether a trimmed cell stands for no value.
#[must_use]
pub fn is_missing(cell: &str) -> bool {
    matches!(cell, "" | "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None")
}

fn repeated<T: std::hash::Hash + Eq>(items: impl Iterator<Item = T>) -> usize {
    let mut seen = HashSet::new();
    items.map(|item| usize::from(!seen.insert(item))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read;

    fn of(text: &str) -> Profile {
        profile(&read(text, ',').expect("readable"), true)
    }

    #[test]
    fn rows_missing_values_and_duplicates_are_counted() {
        let profile = of("id,x,y\na,1,NA\nb,,2\na,1,NA\na,3,\n");
        assert_eq!((profile.rows, profile.columns.len(), profile.missing), (4, 3, 4));
        assert_eq!((profile.duplicate_rows, profile.duplicate_keys), (1, 2));
    }

    #[test]
    fn names_are_made_unique() {
        let profile = of("a,a,,a_2,column_3,a\n1,2,3,4,5,6\n");
        let names: Vec<&str> = profile.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["a", "a_2", "column_3", "a_2_2", "column_3_2", "a_3"]);
    }

    #[test]
    fn columns_without_a_header_are_numbered() {
        let profile = profile(&read("1,2\n3,4\n", ',').expect("readable"), false);
        assert_eq!(profile.rows, 2);
        assert_eq!(profile.columns[1].name, "column_2");
    }
}
