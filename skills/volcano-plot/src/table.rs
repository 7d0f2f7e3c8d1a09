//! The table of genes that comes in.

use checkrein_skill::{Failure, Place};
use serde_json::json;

/// One point of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Gene {
    /// Its id.
    pub id: String,
    /// Log2 fold change.
    pub change: f64,
    /// Two-sided p, from 0 to 1.
    pub p: f64,
    /// p adjusted, from 0 to 1.
    pub q: f64,
}

/// The columns that are read, in any order among others.
const COLUMNS: [&str; 4] = ["gene", "log2_fold_change", "p", "q"];

/// Reads a table whose cells hold no quotes and no commas, as ids and numbers do.
///
/// # Errors
///
/// A column that is not there, a row of another width, a cell that is no number or out of range;
/// each with row and column.
pub fn read(path: &str, text: &str) -> Result<Vec<Gene>, Failure> {
    let mut lines = text
        .trim_start_matches('\u{feff}')
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .enumerate();
    let Some((_, (_, header))) = lines.next() else {
        return Err(Failure::invalid_args(format!("`{path}` is empty"))
            .with_evidence(json!({ "file": path })));
    };
    let header: Vec<&str> = header.split(',').collect();
    let mut at = [0; 4];
    for (place, column) in at.iter_mut().zip(COLUMNS) {
        *place = header.iter().position(|cell| *cell == column).ok_or_else(|| {
            let mut failure = Place::new(path, 1).fault(format!("no column `{column}`"));
            failure.evidence["column"] = json!(column);
            failure.evidence["columns"] = json!(header);
            failure
        })?;
    }
    let row = |(row, (line, text)): (usize, (usize, &str))| {
        let cells: Vec<&str> = text.split(',').collect();
        let place = Place::new(path, row + 1).line(line + 1);
        if cells.len() == header.len() {
            return gene(place, at.map(|at| (at + 1, cells[at])));
        }
        let what = format!("{} cells where the header has {}", cells.len(), header.len());
        Err(match cells.get(header.len()) {
            Some(extra) => place.column("", header.len() + 1).value(extra),
            None => place.column(header[cells.len()], cells.len() + 1),
        }
        .fault(what))
    };
    let genes = lines.map(row).collect::<Result<Vec<_>, _>>()?;
    if genes.is_empty() {
        return Err(Failure::invalid_args(format!("`{path}` has a header and no rows")));
    }
    Ok(genes)
}

/// A row from its four cells, each with the number of its column.
fn gene(place: Place<'_>, cells: [(usize, &str); 4]) -> Result<Gene, Failure> {
    let fault = |n: usize, what: String| {
        let (number, cell) = cells[n];
        place.column(COLUMNS[n], number).value(cell).fault(what)
    };
    let number = |n: usize| {
        let cell = cells[n].1;
        let number = cell.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| fault(n, format!("`{cell}` is no number")))
    };
    let share = |n: usize| {
        let share = number(n)?;
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(fault(n, format!("`{}` is not between 0 and 1", cells[n].1)))
        }
    };
    let id = cells[0].1;
    if id.is_empty() {
        return Err(fault(0, "the cell is empty".into()));
    }
    Ok(Gene { id: id.to_owned(), change: number(1)?, p: share(2)?, q: share(3)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_faults_have_a_place() {
        let genes =
            read("/in/t", "q,x,gene,p,log2_fold_change\r\n0.5,,g1,1e-3,-2\r\n").expect("readable");
        assert_eq!(genes, [Gene { id: "g1".into(), change: -2.0, p: 1e-3, q: 0.5 }]);
        for (text, part) in [
            ("", "is empty"),
            ("gene,p,q\n", "no column `log2_fold_change`"),
            ("gene,log2_fold_change,p,q\n", "no rows"),
            ("gene,log2_fold_change,p,q\ng,1,2,0\n", "row 2, column `p`: `2` is not between"),
            (
                "gene,log2_fold_change,p,q\ng,x,1,0\n",
                "row 2, column `log2_fold_change`: `x` is no number",
            ),
            ("gene,log2_fold_change,p,q\ng,1,1\n", "row 2"),
        ] {
            let failure = read("/in/t", text).expect_err(text);
            assert!(failure.message.contains(part), "{failure}");
        }
        let failure = read("/in/t", "gene,log2_fold_change,p,q\n\ng,1,2,0\n").expect_err("p");
        let evidence = json!({ "file": "/in/t", "row": 2, "line": 3, "column": "p", "value": "2" });
        assert_eq!(failure.evidence, evidence);
    }
}
