use std::fmt::Write as _;

/// A subgoal of a task that a test makes up.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its id.
    pub id: String,
    /// The skill that it names.
    pub skill: &'static str,
    /// The number that its fact is about.
    pub n: u32,
    goal: String,
    args: Vec<(String, String)>,
    after: Vec<String>,
    more: String,
}

fn step(skill: &'static str, id: &str, n: u32) -> Step {
    let args = vec![("from".to_owned(), "{ \"$in\" = \"numbers\" }".to_owned())];
    let goal = format!("see to number {n}");
    Step { id: id.to_owned(), skill, n, goal, args, after: Vec::new(), more: String::new() }
}

/// Adds up the numbers up to `n`.
pub fn worker(id: &str, n: u32) -> Step {
    step("worker", id, n).arg("n", &n.to_string())
}

/// Writes into the ledger, which cannot be taken back.
pub fn ledger(id: &str, n: u32) -> Step {
    step("ledger", id, n).arg("n", &n.to_string())
}

/// Publishes, which can be done again.
pub fn publisher(id: &str, n: u32) -> Step {
    step("publisher", id, n).arg("n", &n.to_string())
}

/// States the time that its clock shows; nobody else can check that.
pub fn stamp(id: &str) -> Step {
    step("stamp", id, 0).more("level = \"self-checked\"")
}

impl Step {
    /// Sets an argument, as TOML has it.
    pub fn arg(mut self, key: &str, value: &str) -> Self {
        self.args.retain(|(known, _)| known != key);
        self.args.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Comes after another of its stage.
    pub fn after(mut self, id: &str) -> Self {
        self.after.push(id.to_owned());
        self
    }

    /// Has this goal.
    pub fn goal(mut self, goal: &str) -> Self {
        self.goal = goal.to_owned();
        self
    }

    /// Has more lines; tables come last.
    pub fn more(mut self, lines: &str) -> Self {
        self.more.push_str(lines);
        self.more.push('\n');
        self
    }

    /// The subject of its fact, and its content.
    pub fn fact(&self) -> (String, String) {
        let n = u64::from(self.n);
        match self.skill {
            "worker" => (format!("work/{n}"), format!("{{ n = {n}, sum = {} }}", n * (n + 1) / 2)),
            skill => (format!("{skill}/{n}"), format!("{{ n = {n}, double = {} }}", n * 2)),
        }
    }

    fn write(&self, text: &mut String) {
        let args: Vec<String> = self.args.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        writeln!(text, "[[stage.subgoal]]\nid = {:?}\ngoal = {:?}", self.id, self.goal).unwrap();
        writeln!(text, "skill = {:?}\nafter = {:?}", self.skill, self.after).unwrap();
        writeln!(text, "args = {{ {} }}\n{}", args.join(", "), self.more).unwrap();
    }

    /// What its executor answers in a dry run.
    fn write_dry(&self, text: &mut String) {
        let (subject, content) = self.fact();
        let kind = if self.skill == "worker" { "statistic" } else { "entry" };
        writeln!(text, "[dry.{}]\ncontent = {content}\n[[dry.{}.facts]]", self.id, self.id).unwrap();
        writeln!(text, "subject = {subject:?}\nkind = {kind:?}\ncontent = {content}").unwrap();
        writeln!(text, "source = \"/in/numbers.txt\"").unwrap();
    }
}

/// A task with these stages, each with lines of its own (such as a budget) and subgoals; `more` are
/// tables of the task.
pub fn task(more: &str, stages: &[(&str, &[Step])]) -> String {
    let mut text = "schema = \"checkrein/task@1\"\nname = \"works\"\ngoal = \"see to the numbers\"\n\
                    mode = \"read-write\"\n[inputs]\nnumbers = \"numbers.txt\"\n"
        .to_owned();
    writeln!(text, "{more}").unwrap();
    for (index, (lines, steps)) in stages.iter().enumerate() {
        writeln!(text, "[[stage]]\nid = \"stage-{index}\"\n{lines}").unwrap();
        steps.iter().for_each(|step| step.write(&mut text));
    }
    text
}

/// `[dry]` for these subgoals: what is right.
pub fn dry(steps: &[Step]) -> String {
    let mut text = String::new();
    steps.iter().for_each(|step| step.write_dry(&mut text));
    text
}

/// Six subgoals in two stages: one fails first, one errs first, one cannot be taken back, one can be
/// done again.
pub fn few() -> Vec<Vec<Step>> {
    vec![
        vec![
            worker("fails", 3).arg("fail", "\"first\""),
            worker("errs", 4).arg("reject", "true").after("fails"),
            worker("plain", 5),
        ],
        vec![ledger("books", 6), publisher("tells", 7), worker("last", 8).after("books")],
    ]
}

/// So many stages of 20 subgoals, in chains of 5: some fail, once or twice, some err, and in each
/// stage one cannot be taken back and one can be done again.
pub fn many(stages: u32) -> Vec<Vec<Step>> {
    let stage = |stage: u32| (1..=20).map(move |index| nth(stage * 20 + index)).collect();
    (0..stages).map(stage).collect()
}

fn nth(n: u32) -> Step {
    let id = format!("g{n}");
    let step = match n % 20 {
        3 => ledger(&id, n),
        8 => publisher(&id, n),
        _ => misled(worker(&id, n), n),
    };
    // A chain of five, and then the next.
    if n % 5 == 1 { step } else { step.after(&format!("g{}", n - 1)) }
}

fn misled(step: Step, n: u32) -> Step {
    let step = match (n % 7, n % 13) {
        (_, 0) => step.arg("fail", "\"twice\""),
        (0, _) => step.arg("fail", "\"first\""),
        _ => step,
    };
    // One that fails twice and errs once would need a fourth attempt.
    if n.is_multiple_of(11) && !n.is_multiple_of(13) { step.arg("reject", "true") } else { step }
}

/// The text of a task with these stages.
pub fn text_of(stages: &[Vec<Step>]) -> String {
    let stages: Vec<(&str, &[Step])> = stages.iter().map(|steps| ("", steps.as_slice())).collect();
    task("", &stages)
}
