//! `amend`: another goal, other values of parameters, more criteria.

use checkrein_contract::ask::{Amendment, Message};
use checkrein_contract::digest::{DEPTH_MAX, depth};
use checkrein_contract::id::SubgoalId;
use checkrein_contract::problem::{Fault, Faults};
use checkrein_contract::task::{Criterion, Task};
use checkrein_harness::amend::{Reopened, reopened};
use checkrein_harness::{ask, criteria};
use serde_json::{Map, Value, json};

use super::Desk;
use crate::args::{AmendArgs, Global};
use crate::error::{CliError, fault};
use crate::output;

/// The most characters of a line that lists subgoals.
const LINE_MAX: usize = 2_000;

pub(in crate::command) async fn amend(global: &Global, args: &AmendArgs) -> Result<u8, CliError> {
    let desk = Desk::open(global, &args.run)?;
    let Some(setup) = &desk.state.setup else {
        return Err(CliError::usage(format!("run {} has not begun", desk.run), ""));
    };
    let amendment = amendment(args, &setup.task)?;
    let message = Message::Amend { amendment: amendment.clone() };
    let mut more = Vec::new();
    // What nothing would follow from opens nothing again; `send` says why.
    if ask::refusal(&desk.state, &message).is_none() {
        let again = reopened(&desk.state, &amendment);
        tell(global, &again);
        more.push(("reopened", json!(again.reopened)));
        more.push(("evaluated", json!(again.evaluated)));
    }
    desk.send(message, more, args.resume).await
}

fn tell(global: &Global, again: &Reopened) {
    if global.json {
        return;
    }
    let line = |what: &str, ids: &[SubgoalId]| {
        let ids: Vec<&str> = ids.iter().map(SubgoalId::as_str).collect();
        if !ids.is_empty() {
            output::line(&output::one_line(&format!("{what}: {}", ids.join(", ")), LINE_MAX));
        }
    };
    line("open again", &again.reopened);
    line("criteria evaluated again", &again.evaluated);
    if again.reopened.is_empty() && again.evaluated.is_empty() {
        output::line("nothing that has begun is open again");
    }
}

/// What is to be changed, or all that is wrong with it.
fn amendment(args: &AmendArgs, task: &Task) -> Result<Amendment, CliError> {
    if args.goal.is_none() && args.set.is_empty() && args.criterion.is_empty() {
        return Err(CliError::usage(
            "nothing is to be changed",
            "name at least one of --goal TEXT, --set KEY=VALUE and --criterion CEL",
        ));
    }
    let mut faults = Vec::new();
    if args.goal.as_deref().is_some_and(|goal| goal.trim().is_empty()) {
        faults.push(wrong("--goal", "a goal in words", "nothing"));
    }
    let set = settings(&args.set, &task.parameters, &mut faults);
    let criteria = more_criteria(args, task, &mut faults);
    if faults.is_empty() {
        Ok(Amendment { goal: args.goal.clone(), set, criteria })
    } else {
        Err(CliError::Input(Faults(faults)))
    }
}

fn wrong(flag: &str, expected: &str, found: &str) -> Fault {
    fault(flag, "semantics", expected, found, "")
}

/// Parameters with other values, of the type that they had.
fn settings(set: &[String], parameters: &Map<String, Value>, faults: &mut Vec<Fault>) -> Map<String, Value> {
    let mut settings = Map::new();
    for item in set {
        let flag = format!("--set {item}");
        let Some((key, text)) = item.split_once('=') else {
            faults.push(wrong(&flag, "--set KEY=VALUE", "no `=`"));
            continue;
        };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
        match parameters.get(key) {
            None => {
                faults.push(wrong(&flag, &format!("a parameter of the task ({})", known.join(", ")), key));
            }
            Some(before) if std::mem::discriminant(before) != std::mem::discriminant(&value) => {
                let expected = format!("a value of the type of {before} for `{key}`");
                faults.push(wrong(&flag, &expected, &value.to_string()));
            }
            Some(_) if depth(&value) > DEPTH_MAX => {
                let expected = format!("at most {DEPTH_MAX} levels of nesting");
                faults.push(wrong(&flag, &expected, &depth(&value).to_string()));
            }
            Some(_) => {
                settings.insert(key.to_owned(), value);
            }
        }
    }
    settings
}

fn more_criteria(args: &AmendArgs, task: &Task, faults: &mut Vec<Fault>) -> Vec<(SubgoalId, Criterion)> {
    let known: Vec<&SubgoalId> = task.subgoals().map(|(_, spec)| &spec.id).collect();
    let subgoal = match (&args.subgoal, known.as_slice()) {
        _ if args.criterion.is_empty() => {
            if args.subgoal.is_some() {
                faults.push(wrong("--subgoal", "a --criterion for it", "none"));
            }
            return Vec::new();
        }
        (Some(named), known) if known.iter().any(|id| id.as_str() == named) => {
            SubgoalId::from(named.as_str())
        }
        (Some(named), _) => {
            faults.push(wrong("--subgoal", &format!("a subgoal of the task ({})", list(&known)), named));
            return Vec::new();
        }
        (None, [only]) => (*only).clone(),
        (None, _) => {
            faults.push(wrong("--criterion", &format!("--subgoal, one of {}", list(&known)), "none"));
            return Vec::new();
        }
    };
    let mut more = Vec::new();
    for check in &args.criterion {
        match criteria::check(check) {
            Ok(()) => more.push((subgoal.clone(), Criterion { text: check.clone(), check: check.clone() })),
            Err(why) => {
                let expected = "CEL over facts, such as 'fact(\"de/summary\").significant > 0'";
                faults.push(wrong(&format!("--criterion {check}"), expected, &why));
            }
        }
    }
    more
}

fn list(ids: &[&SubgoalId]) -> String {
    ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use checkrein_contract::interface::Level;
    use checkrein_contract::task::{Budget, Mode, ReportSpec, Stage, SubgoalSpec};

    use super::*;

    fn task(subgoals: &[&str]) -> Task {
        let subgoal = |id: &&str| SubgoalSpec {
            id: (*id).into(),
            goal: "g".to_owned(),
            skill: None,
            after: Vec::new(),
            args: Map::new(),
            evidence: Vec::new(),
            criteria: Vec::new(),
            attempts: 3,
            level: Level::Independent,
            budget: Budget::default(),
        };
        Task {
            name: "t".to_owned(),
            goal: "g".to_owned(),
            mode: Mode::ReadOnly,
            seed: 0,
            inputs: Vec::new(),
            parameters: json!({ "alpha": 0.05, "label": "a" }).as_object().cloned().unwrap(),
            budget: Budget::default(),
            stages: vec![Stage {
                id: "s".into(),
                title: None,
                budget: Budget::default(),
                subgoals: subgoals.iter().map(subgoal).collect(),
            }],
            report: ReportSpec { title: "t".to_owned(), text: None },
            level: Level::Independent,
            allow_contradictions: false,
        }
    }

    fn args(set: &[&str], criterion: &[&str], subgoal: Option<&str>) -> AmendArgs {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
        AmendArgs {
            run: "r".to_owned(),
            goal: None,
            set: owned(set),
            criterion: owned(criterion),
            subgoal: subgoal.map(str::to_owned),
            resume: false,
        }
    }

    fn faults(args: &AmendArgs, task: &Task) -> Vec<String> {
        match amendment(args, task) {
            Err(CliError::Input(faults)) => faults.0.iter().map(ToString::to_string).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parameters_keep_their_type() {
        let set = amendment(&args(&["alpha=0.1", "label=b c"], &[], None), &task(&["a"])).unwrap().set;
        assert_eq!(Value::Object(set), json!({ "alpha": 0.1, "label": "b c" }));
        let told = faults(&args(&["alpha=high", "label=1", "beta=1", "alpha"], &[], None), &task(&["a"]));
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(
            told[0].contains("of the type of 0.05 for `alpha`") && told[0].contains("\"high\""),
            "{told:?}"
        );
        assert!(told[2].contains("alpha, label"), "{told:?}");
    }

    #[test]
    fn a_criterion_is_of_one_subgoal() {
        let check = "fact('a').x > 0";
        let only = amendment(&args(&[], &[check], None), &task(&["a"])).unwrap().criteria;
        assert_eq!((only[0].0.as_str(), only[0].1.check.as_str()), ("a", check));
        let named = amendment(&args(&[], &[check], Some("b")), &task(&["a", "b"])).unwrap().criteria;
        assert_eq!(named[0].0.as_str(), "b");
        for (criterion, subgoal) in
            [(&[check][..], None), (&[check][..], Some("c")), (&["true"][..], Some("a"))]
        {
            assert_eq!(faults(&args(&[], criterion, subgoal), &task(&["a", "b"])).len(), 1, "{subgoal:?}");
        }
        let alone = args(&["alpha=0.1"], &[], Some("a"));
        assert!(faults(&alone, &task(&["a"]))[0].contains("--subgoal"));
    }

    #[test]
    fn an_amendment_changes_something() {
        let error = amendment(&args(&[], &[], None), &task(&["a"])).unwrap_err();
        assert!(error.to_string().contains("nothing is to be changed"), "{error}");
        let blank = AmendArgs { goal: Some(" ".to_owned()), ..args(&[], &[], None) };
        assert_eq!(faults(&blank, &task(&["a"])).len(), 1);
    }
}
