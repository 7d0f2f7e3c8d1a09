//! The table of genes that comes in.

use checkrein_skill::Failure;
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
        .filter(|(_, line)| !line.is_empty());
    let Some((_, header)) = lines.next() else {
        return Err(Failure::invalid_args(format!("`{path}` is empty"))
            .with_evidence(json!({ "file": path })));
    };
    let header: Vec<&str> = header.split(',').collect();
    let mut at = [0; 4];
    for (place, column) in at.iter_mut().zip(COLUMNS) {
        *place = header.iter().position(|cell| *cell == column).ok_or_else(|| {
            Failure::invalid_args(format!("`{path}`, row 1: no column `{column}`"))
                .with_evidence(json!({ "file": path, "row": 1, "columns": header }))
        })?;
    }
    let row = |(n, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() == header.len() {
            gene(path, n + 1, at.map(|place| cells[place]))
        } else {
            let what = format!("{} cells where the header has {}", cells.len(), header.len());
            Err(fault(path, n + 1, cells.len().min(header.len()).to_string().as_str(), &what))
        }
    };
    let genes = lines.map(row).collect::<Result<Vec<_>, _>>()?;
    if genes.is_empty() {
        return Err(Failure::invalid_args(format!("`{path}` has a header and no rows")));
    }
    Ok(genes)
}

fn gene(path: &str, line: usize, [id, change, p, q]: [&str; 4]) -> Result<Gene, Failure> {
    let number = |column: &str, cell: &str| {
        let number = cell.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| fault(path, line, column, &format!("`{cell}` is no number")))
    };
    let share = |column: &str, cell: &str| {
        let share = number(column, cell)?;
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            Err(fault(path, line, column, &format!("`{cell}` is not between 0 and 1")))
        }
    };
    if id.is_empty() {
        return Err(fault(path, line, "gene", "the cell is empty"));
    }
    let change = number("log2_fold_change", change)?;
    Ok(Gene { id: id.to_owned(), change, p: share("p", p)?, q: share("q", q)? })
}

fn fault(path: &str, line: usize, column: &str, what: &str) -> Failure {
    Failure::invalid_args(format!("`{path}`, row {line}, column `{column}`: {what}"))
        .with_evidence(json!({ "file": path, "row": line, "column": column, "found": what }))
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
    }
}
