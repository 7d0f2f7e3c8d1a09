//! Which sample belongs to which group.

use checkrein_skill::Failure;
use serde_json::json;

use super::lines;

/// Samples and their groups, in the order of the annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// One a row.
    pub samples: Vec<Sample>,
}

/// A sample and its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, without the suffix that was to be removed.
    pub name: String,
    /// Its group, as it stands.
    pub group: String,
}

impl Annotation {
    /// Reads two columns of a table, and removes `suffix` from each name that ends in it.
    ///
    /// # Errors
    ///
    /// A column that is not there, an empty name or group, a name that occurs twice.
    pub fn read(
        path: &str,
        bytes: &[u8],
        columns: [&str; 2],
        suffix: &str,
    ) -> Result<Self, Failure> {
        let rows = lines::read(path, bytes)?;
        let header = &rows[0];
        let column = |name: &str| {
            header.cells.iter().position(|cell| cell == name).ok_or_else(|| {
                let mut failure = header.place(path).fault(format!("no column `{name}`"));
                failure.evidence["column"] = json!(name);
                failure.evidence["columns"] = json!(header.cells);
                failure
            })
        };
        let (name_at, group_at) = (column(columns[0])?, column(columns[1])?);
        let mut samples: Vec<Sample> = Vec::new();
        for row in &rows[1..] {
            let cell = |at: usize| match row.cells[at].as_str() {
                "" => Err(row.cell(path, header, at).fault("the cell is empty")),
                cell => Ok(cell),
            };
            let (full, group) = (cell(name_at)?, cell(group_at)?);
            let name = full.strip_suffix(suffix).unwrap_or(full).to_owned();
            if samples.iter().any(|sample| sample.name == name) {
                let what = format!("sample `{name}` again");
                return Err(row.cell(path, header, name_at).fault(what));
            }
            samples.push(Sample { name, group: group.to_owned() });
        }
        Ok(Self { samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_removed_and_faults_are_placed() {
        let text = b"\"file\",\"condition\"\n\"t1fb\",\"treated\"\n";
        let read = |columns, suffix| Annotation::read("/in/a", text, columns, suffix);
        let annotation = read(["file", "condition"], "fb").expect("readable");
        assert_eq!(annotation.samples[0].name, "t1");
        assert_eq!(annotation.samples[0].group, "treated");
        let failure = read(["sample", "condition"], "").expect_err("no such column");
        assert!(failure.message.contains("row 1: no column `sample`"), "{failure}");
        let failure = Annotation::read("/in/a", b"file,condition\nx,\n", ["file", "condition"], "");
        let failure = failure.expect_err("empty");
        assert!(failure.message.contains("row 2, column `condition`"), "{failure}");
        let evidence = json!({ "file": "/in/a", "row": 2, "column": "condition", "value": "" });
        assert_eq!(failure.evidence, evidence);
        let failure =
            Annotation::read("/in/a", b"file,condition\nx,a\nxfb,b\n", ["file", "condition"], "fb");
        assert!(failure.expect_err("twice").message.contains("row 3, column `file`"));
    }
}
