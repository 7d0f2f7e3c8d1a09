//! The lies.

use checkrein_skill::prelude::*;

const TABLE: &str = "de.csv";

/// Columns of the table.
const CHANGE: usize = 1;
const T: usize = 3;
const P: usize = 4;
const Q: usize = 5;
const WELCH_T: usize = 6;

/// What to lie about.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lie {
    /// p and q of one gene are half of what they are.
    PValue,
    /// One gene's t rests on a standard error where the standard deviation belongs.
    StandardError,
    /// One gene changes in the other direction.
    Sign,
    /// One significant gene is left out.
    LeftOut,
    /// One significant gene is invented.
    Invented,
}

/// An outcome and its table, to be changed together.
pub(crate) struct Told {
    outcome: Outcome,
    header: String,
    rows: Vec<Vec<String>>,
}

impl Told {
    /// Takes the honest outcome and reads its table.
    pub(crate) fn read(outcome: Outcome) -> Result<Self, Failure> {
        let text = files::read_work(TABLE)?;
        let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let row = |line: &str| line.split(',').map(str::to_owned).collect();
        Ok(Self { outcome, header: header.to_owned(), rows: rows.lines().map(row).collect() })
    }

    /// Tells a lie about the significant gene in the middle.
    pub(crate) fn tell(&mut self, lie: Lie) -> Result<(), Failure> {
        let genes: Vec<usize> = (0..self.outcome.facts.len())
            .filter(|n| self.outcome.facts[*n].subject.starts_with("de/gene/"))
            .collect();
        let Some(at) = genes.get(genes.len() / 2).copied() else {
            return Err(Failure::internal("no significant gene to lie about"));
        };
        let up = self.outcome.facts[at].content["log2_fold_change"].as_f64().unwrap_or(0.0) > 0.0;
        let direction = if up { "up" } else { "down" };
        match lie {
            Lie::PValue => self.scale(at, &[("/p", P, 0.5), ("/q", Q, 0.5)]),
            Lie::StandardError => self.scale(at, &[("/t", T, self.samples().sqrt())]),
            Lie::Sign => {
                self.scale(
                    at,
                    &[
                        ("/log2_fold_change", CHANGE, -1.0),
                        ("/t", T, -1.0),
                        ("/welch/t", WELCH_T, -1.0),
                    ],
                );
                self.count(&[(direction, -1), (if up { "down" } else { "up" }, 1)]);
            }
            Lie::LeftOut => {
                let id = id(&self.outcome.facts.remove(at)).to_owned();
                self.rows.retain(|row| row[0] != id);
                self.count(&[("kept", -1), ("significant", -1), (direction, -1)]);
            }
            Lie::Invented => {
                self.invent(at);
                self.count(&[("kept", 1), ("significant", 1), (direction, 1)]);
            }
        }
        Ok(())
    }

    /// Writes the changed table, in its order, and gives the changed outcome.
    pub(crate) fn write(mut self) -> Result<Outcome, Failure> {
        let p = |row: &[String]| row[P].parse::<f64>().unwrap_or(f64::NAN);
        self.rows.sort_by(|a, b| p(a).total_cmp(&p(b)).then_with(|| a[0].cmp(&b[0])));
        let lines: Vec<String> = self.rows.iter().map(|row| row.join(",")).collect();
        files::write_work(TABLE, format!("{}\n{}\n", self.header, lines.join("\n")))?;
        Ok(self.outcome)
    }

    fn samples(&self) -> f64 {
        let count = |key: &str| self.outcome.content[key].as_f64().unwrap_or(0.0);
        count("treated_samples") + count("control_samples")
    }

    /// Scales numbers of a gene, in its fact and in its row.
    fn scale(&mut self, at: usize, numbers: &[(&str, usize, f64)]) {
        let fact = &mut self.outcome.facts[at];
        let gene = id(fact).to_owned();
        for (pointer, column, factor) in numbers {
            let Some(number) = fact.content.pointer_mut(pointer) else {
                continue;
            };
            let scaled = number.as_f64().unwrap_or(0.0) * factor;
            *number = json!(scaled);
            for row in self.rows.iter_mut().filter(|row| row[0] == gene) {
                row[*column] = format!("{scaled:?}");
            }
        }
    }

    /// A twin of a gene under another name.
    fn invent(&mut self, at: usize) {
        const INVENTED: &str = "FBgn9999999";
        let mut fact = self.outcome.facts[at].clone();
        let twin = self.rows.iter().find(|row| row[0] == id(&fact)).cloned();
        fact.subject = format!("de/gene/{INVENTED}");
        self.outcome.facts.push(fact);
        if let Some(mut row) = twin {
            row[0] = INVENTED.into();
            self.rows.push(row);
        }
    }

    /// Changes counts of the summary, in the fact and in the content.
    fn count(&mut self, changes: &[(&str, i64)]) {
        let fact = self.outcome.facts.iter_mut().find(|fact| fact.subject == "de/summary");
        let summaries = fact
            .map(|fact| &mut fact.content)
            .into_iter()
            .chain(self.outcome.content.get_mut("summary"));
        for summary in summaries {
            for (key, change) in changes {
                summary[*key] = json!(summary[*key].as_i64().unwrap_or(0) + change);
            }
        }
    }
}

fn id(fact: &DraftFact) -> &str {
    fact.subject.rsplit('/').next().unwrap_or_default()
}
