//! Criteria: CEL over verified facts.
//!
//! | function | gives |
//! | --- | --- |
//! | `fact("de/summary")` | the content of the current fact on a subject; none: the criterion does not hold |
//! | `has_fact("de/summary")` | whether there is one |
//! | `facts("de/gene/")` | the contents of the current facts whose subject starts so, in the order of subjects |
//! | `count("de/gene/")` | how many there are |
//! | `param("alpha")` | the value of a parameter |

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use cel::{Context, ExecutionError, IdedExpr, Program, Value as Cel};
use checkrein_contract::event::CriterionState;
use checkrein_contract::port::FactSource;
use checkrein_contract::task::Criterion;
use serde_json::{Map, Value};

/// The longest criterion, in bytes: an expression is walked by recursion.
const LENGTH_MAX: usize = 1000;
/// How deep comprehensions (`all`, `exists`, `map`, `filter`) are nested at most: each level
/// multiplies the work by the number of facts.
const NESTED_MAX: usize = 2;

const PARAM: &str = "param";
const FUNCTIONS: [&str; 5] = ["fact", "has_fact", "facts", "count", PARAM];

/// Whether `check` is CEL that names only what there is.
///
/// # Errors
///
/// What is wrong with it.
pub fn check(text: &str) -> Result<(), String> {
    let names = Names::of(text)?;
    if names.nested > NESTED_MAX {
        return Err(format!(
            "{} comprehensions lie in one another, where {NESTED_MAX} are allowed",
            names.nested
        ));
    }
    if let Some(name) = names.free.first() {
        return Err(format!("there is no variable `{name}`; facts are read with fact(\"…\")"));
    }
    if let Some(name) = names.functions.iter().find(|name| !is_function(name)) {
        return Err(format!("there is no function `{name}`; facts are read with {}", FUNCTIONS.join(", ")));
    }
    if !names.functions.iter().any(|name| FUNCTIONS.contains(&name.as_str())) {
        return Err("it reads no fact and no parameter, so it can never change".to_owned());
    }
    Ok(())
}

/// Whether a criterion may read this parameter. One whose name is computed may be any, and so may
/// those of a text that is no criterion.
pub fn reads_parameter(text: &str, name: &str) -> bool {
    Names::of(text).map_or(true, |names| {
        names.parameters.iter().any(|read| read.as_ref().is_none_or(|read| read == name))
    })
}

/// The name of the parameter that a call of `param` reads, if it states it.
fn stated(call: &CallExpr) -> Option<String> {
    match (&call.target, call.args.as_slice()) {
        (None, [IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }]) => {
            Some(name.inner().to_owned())
        }
        _ => None,
    }
}

/// Whether CEL or this module has a function, or an operator, of this name.
fn is_function(name: &str) -> bool {
    let is_operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
    // The standard library does not list its names; it refuses one that it has already.
    is_operator || FUNCTIONS.contains(&name) || Context::default().add_function(name, || true).is_err()
}

/// The names in an expression: functions, parameters, and variables that nothing in it binds.
#[derive(Default)]
struct Names {
    free: Vec<String>,
    functions: Vec<String>,
    /// `None` is one whose name is not stated.
    parameters: Vec<Option<String>>,
    /// How deep comprehensions lie in one another.
    nested: usize,
    within: usize,
}

impl Names {
    fn of(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("it has {} bytes, where {LENGTH_MAX} are allowed", text.len()));
        }
        let program = Program::compile(text).map_err(|error| first_line(&error.to_string()))?;
        let mut names = Names::default();
        names.walk(program.expression(), &mut Vec::new());
        Ok(names)
    }

    fn walk(&mut self, expression: &IdedExpr, bound: &mut Vec<String>) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) if bound.contains(name) => {}
            Expr::Ident(name) => self.free.push(name.clone()),
            Expr::Call(call) => {
                // `.f()` is `f()`, from the root of all names.
                let name = call.func_name.trim_start_matches('.');
                self.functions.push(name.to_owned());
                if name == PARAM {
                    self.parameters.push(stated(call));
                }
                call.target.iter().for_each(|target| self.walk(target, bound));
                call.args.iter().for_each(|arg| self.walk(arg, bound));
            }
            Expr::Select(select) => self.walk(&select.operand, bound),
            Expr::List(list) => list.elements.iter().for_each(|element| self.walk(element, bound)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.walk_entry(&entry.expr, bound)),
            Expr::Struct(of) => of.entries.iter().for_each(|entry| self.walk_entry(&entry.expr, bound)),
            Expr::Comprehension(over) => {
                self.walk(&over.iter_range, bound);
                self.walk(&over.accu_init, bound);
                self.within += 1;
                self.nested = self.nested.max(self.within);
                let before = bound.len();
                bound.extend([over.iter_var.clone(), over.accu_var.clone()]);
                bound.extend(over.iter_var2.clone());
                for inner in [&over.loop_cond, &over.loop_step, &over.result] {
                    self.walk(inner, bound);
                }
                bound.truncate(before);
                self.within -= 1;
            }
        }
    }

    fn walk_entry(&mut self, entry: &EntryExpr, bound: &mut Vec<String>) {
        match entry {
            EntryExpr::StructField(field) => self.walk(&field.value, bound),
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key, bound);
                self.walk(&entry.value, bound);
            }
        }
    }
}

/// Evaluates the criteria over `facts`.
pub fn evaluate(
    criteria: &[Criterion],
    facts: &Arc<dyn FactSource>,
    parameters: &Map<String, Value>,
) -> Vec<CriterionState> {
    let context = context(facts, parameters);
    let states = criteria.iter().map(|criterion| {
        let (holds, note) = match Program::compile(&criterion.check) {
            Ok(program) => verdict(program.execute(&context)),
            Err(error) => (false, first_line(&error.to_string())),
        };
        CriterionState { text: criterion.text.clone(), holds, note: format!("{}: {note}", criterion.check) }
    });
    states.collect()
}

fn verdict(result: Result<Cel, ExecutionError>) -> (bool, String) {
    match result {
        Ok(Cel::Bool(holds)) => (holds, holds.to_string()),
        Ok(other) => (false, format!("{:?}, where true or false is expected", other)),
        Err(error) => (false, error.to_string()),
    }
}

fn context(facts: &Arc<dyn FactSource>, parameters: &Map<String, Value>) -> Context<'static, 'static> {
    let mut context = Context::default();
    let declared = declare(&mut context, facts, parameters);
    debug_assert!(declared.is_ok(), "{declared:?}");
    context
}

fn declare(
    context: &mut Context<'_, '_>,
    facts: &Arc<dyn FactSource>,
    parameters: &Map<String, Value>,
) -> Result<(), cel::DeclarationError> {
    let source = facts.clone();
    context.add_function("fact", move |subject: Arc<String>| -> Result<Cel, ExecutionError> {
        let missing = || ExecutionError::function_error("fact", format!("no counted fact on `{subject}`"));
        current(&source, &subject).map(|content| to_cel(&content)).ok_or_else(missing)
    })?;
    let source = facts.clone();
    context.add_function("has_fact", move |subject: Arc<String>| current(&source, &subject).is_some())?;
    let source = facts.clone();
    context.add_function("facts", move |prefix: Arc<String>| -> Cel {
        let found = source.find(&prefix, None, u32::MAX).into_iter();
        Cel::List(Arc::new(found.map(|fact| to_cel(&fact.content)).collect()))
    })?;
    let source = facts.clone();
    context.add_function("count", move |prefix: Arc<String>| {
        source.find(&prefix, None, u32::MAX).len() as i64
    })?;
    let parameters = parameters.clone();
    context.add_function("param", move |name: Arc<String>| -> Result<Cel, ExecutionError> {
        let missing = || ExecutionError::function_error("param", format!("no parameter `{name}`"));
        parameters.get(name.as_str()).map(to_cel).ok_or_else(missing)
    })
}

fn current(facts: &Arc<dyn FactSource>, subject: &str) -> Option<Value> {
    // The subject itself sorts before all that start with it.
    let first = facts.find(subject, None, 1).into_iter().next()?;
    (first.subject == subject).then_some(first.content)
}

/// JSON as CEL: whole numbers that fit are `int`, so that they compare with literals.
fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(float)) => Cel::Float(float),
            (None, None) => Cel::Null,
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), to_cel(value)));
            entries.collect::<std::collections::HashMap<String, Cel>>().into()
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_contract::interface::{Fact, Level};
    use serde_json::json;

    struct Two;

    impl FactSource for Two {
        fn get(&self, _: &str) -> Option<Fact> {
            None
        }
        fn find(&self, prefix: &str, _: Option<&str>, limit: u32) -> Vec<Fact> {
            let all = [("de/gene/a", json!({ "q": 0.01 })), ("de/summary", json!({ "significant": 623 }))];
            let found =
                all.into_iter().filter(|(subject, _)| subject.starts_with(prefix)).take(limit as usize);
            found
                .map(|(subject, content)| Fact {
                    id: format!("{subject}@1"),
                    version: 1,
                    subject: subject.to_owned(),
                    kind: "statistic".to_owned(),
                    content,
                    source: "/in/x".to_owned(),
                    level: Level::Independent,
                })
                .collect()
        }
    }

    fn holds(check: &str) -> CriterionState {
        let criterion = Criterion { text: "t".to_owned(), check: check.to_owned() };
        let facts: Arc<dyn FactSource> = Arc::new(Two);
        evaluate(&[criterion], &facts, json!({ "alpha": 0.05 }).as_object().unwrap()).remove(0)
    }

    #[test]
    fn a_parameter_is_seen_however_its_name_is_written() {
        for text in [
            "fact('a').q < param('alpha')",
            "1.0 < param( \"alpha\" )",
            "param('''alpha''') > 1",
            "param(r'alpha') > 1",
            "param('\\x61lpha') > 1",
            "param // why\n ('alpha') > 1",
            ".param('alpha') > 1",
            "facts('a/').all(gene, gene.q < param('alpha'))",
            "param('beta') > {'a': [param('alpha')]}.a[0]",
        ] {
            assert!(reads_parameter(text, "alpha"), "{text}");
            assert!(!reads_parameter(text, "gamma"), "{text}");
            assert!(check(text).is_ok(), "{text}: {:?}", check(text));
        }
    }

    #[test]
    fn a_parameter_whose_name_is_not_stated_may_be_any() {
        for text in [
            "param('al' + 'pha') > 1",
            "param(fact('a').name) > 1",
            "['alpha'].all(name, param(name) > 1)",
            "'alpha'.param() > 1",
            "param('alpha', 'beta') > 1",
            "param(",
        ] {
            assert!(reads_parameter(text, "alpha") && reads_parameter(text, "gamma"), "{text}");
        }
        assert!(reads_parameter(&format!("param('beta') > {}", "1+".repeat(LENGTH_MAX)), "alpha"));
    }

    #[test]
    fn a_parameter_is_not_seen_in_words_and_other_names() {
        for text in [
            "param('beta') > 1",
            "has_fact('alpha')",
            "has_fact('param')",
            "has_fact('param(\"alpha\")')",
            "fact('a').param > 1",
            "has_fact('a') // param('alpha')",
        ] {
            assert!(!reads_parameter(text, "alpha"), "{text}");
        }
    }

    #[test]
    fn facts_are_read() {
        assert!(holds("fact('de/summary').significant > 0").holds);
        assert!(holds("facts('de/gene/').all(gene, gene.q < param('alpha'))").holds);
        assert!(holds("count('de/') == 2 && has_fact('de/summary') && !has_fact('de/summ')").holds);
        assert!(!holds("fact('de/summary').significant > 700").holds);
    }

    #[test]
    fn what_cannot_be_evaluated_does_not_hold_and_says_why() {
        assert!(holds("fact('de/none').x > 0").note.contains("de/none"));
        assert!(!holds("fact('de/summary').significant").holds);
    }

    #[test]
    fn a_check_that_cannot_fail_or_names_nothing_is_refused() {
        assert!(check("true").is_err());
        assert!(check("fact('a').x >").is_err());
        assert!(check("alpha > 0").is_err());
        assert!(check(&format!("param('a') > {}", vec!["1"; 2000].join("+"))).is_err());
        let nested = "facts('a/').all(a, facts('a/').all(b, facts('a/').all(c, true)))";
        assert!(check(nested).is_err());
        assert!(check("facts('a/').all(g, h.q < 0.05)").is_err());
        assert!(check("facs('a/').size() > 0").unwrap_err().contains("facs"));
        assert!(check(".facs('a/').size() > 0").unwrap_err().contains("facs"));
        assert!(check("size(facts('a/')) > 0 && fact('b').name.startsWith('x')").is_ok());
        assert!(check("fact('a').x > 0").is_ok());
        assert!(check("facts('a/').all(g, g.q < 0.05)").is_ok());
    }
}
