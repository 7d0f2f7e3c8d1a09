//! Holding arguments against a schema that a stranger wrote.
//!
//! Nothing interrupts the evaluation of a JSON Schema, so it is bounded before it begins: by the
//! size of the schema, by how many subschemas one value can be held against (through references
//! and `allOf` they multiply), by the patterns, and by what both come to for these arguments.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_contract::digest as form;
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::{Map, Value, json};

/// Bytes of a schema, as JSON.
const SCHEMA_BYTES: usize = 64 << 10;
/// Different places that the references of a schema lead to.
const TARGETS: usize = 128;
/// How long a chain of subschemas may be that are all held against the same value.
const CHAIN: usize = 64;
/// How many subschemas may be held against one value.
const VISITS: u64 = 10_000;
/// How deep the values are for which a schema must keep within `VISITS` to be let in. Deeper ones
/// count when there are such arguments.
const USUAL_DEPTH: usize = 4;
/// What holding arguments against their schema may come to: values times subschemas.
const WORK: u64 = 1_000_000;
/// Bytes of the arguments of one call.
const ARGUMENT_BYTES: u64 = 1 << 20;
/// Patterns in one schema, and bytes of each.
const PATTERNS: usize = 64;
const PATTERN_BYTES: usize = 1_000;
/// Bytes of a compiled pattern, and of the table that it is run by.
const PATTERN_COMPILED: usize = 128 << 10;
const PATTERN_TABLE: usize = 512 << 10;
/// What a pattern costs, in subschemas.
const PATTERN_COST: u64 = 100;
/// Bytes of text that cost as much as a value.
const TEXT_UNIT: u64 = 64;
/// The stack on which a schema is read and held: as deep as the bounds above allow.
const STACK: usize = 64 << 20;
/// How many misfits are told.
const TOLD: usize = 20;
/// Bytes of what is quoted of a misfit.
const QUOTED: usize = 2_000;

/// Why this is no schema that arguments are held against; `None` if it is one.
pub(crate) fn fault(schema: &Value) -> Option<String> {
    let read = apart(|| -> Result<(), String> {
        Costs::of(schema)?.usual()?;
        build(schema).map(drop)
    });
    match read {
        Ok(Ok(())) => None,
        Ok(Err(why)) | Err(why) => Some(why),
    }
}

/// What is wrong with these arguments, each as `tell` tells it; empty if they fit.
///
/// # Errors
///
/// Why they cannot be held against it: the schema is none, or it would take too long.
pub(crate) fn misfits<T: Send>(
    schema: &Value,
    args: &Map<String, Value>,
    tell: impl Fn(&ValidationError<'_>) -> T + Sync,
) -> Result<Vec<T>, String> {
    let instance = Value::Object(args.clone());
    apart(|| -> Result<Vec<T>, String> {
        let costs = Costs::of(schema)?;
        costs.usual()?;
        costs.hold(&instance)?;
        let validator = build(schema)?;
        if validator.is_valid(&instance) {
            return Ok(Vec::new());
        }
        Ok(validator.iter_errors(&instance).take(TOLD).map(|error| tell(&error)).collect())
    })?
}

/// A text, cut where it is too long to be told.
pub(crate) fn quoted(text: String) -> String {
    let cut = text.floor_char_boundary(QUOTED);
    if cut == text.len() { text } else { format!("{}… ({} bytes)", &text[..cut], text.len()) }
}

/// A value, or the beginning of its text where it is too long to be told.
pub(crate) fn quoted_value(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= QUOTED { value.clone() } else { json!(quoted(text)) }
}

/// Runs this on a stack that is deep enough for it.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("checkrein-schema".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().map_err(|_| "a schema whose check broke off".to_owned()),
            Err(error) => Err(format!("no thread to check it on: {error}")),
        }
    })
}

/// The engine of the patterns takes time in proportion to the text; it has no look-around.
fn build(schema: &Value) -> Result<jsonschema::Validator, String> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_COMPILED).dfa_size_limit(PATTERN_TABLE);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| quoted(error.to_string()))
}

/// What it costs to hold a value against one subschema.
#[derive(Default)]
struct Node {
    /// The subschema itself.
    own: u64,
    /// Subschemas that the same value is held against.
    same: Vec<usize>,
    /// Those of which one is held against a member of the value.
    named: Vec<usize>,
    /// Those that every member is held against, and what its name costs.
    members: Vec<usize>,
    name: u64,
    /// Those of which one is held against an item.
    placed: Vec<usize>,
    /// Those that every item is held against.
    items: Vec<usize>,
}

/// The subschemas that an evaluation can come to.
struct Costs {
    nodes: Vec<Node>,
    /// Each after all that the same value is held against because of it.
    order: Vec<usize>,
}

/// The schema as it is read.
struct Reader<'s> {
    root: &'s Value,
    places: BTreeMap<*const Value, usize>,
    found: Vec<&'s Value>,
    targets: BTreeSet<&'s str>,
    patterns: usize,
}

impl Costs {
    fn of(schema: &Value) -> Result<Self, String> {
        let length = schema.to_string().len();
        if length > SCHEMA_BYTES {
            return Err(format!("a schema of {length} bytes, and {SCHEMA_BYTES} are the most"));
        }
        if form::depth(schema) > form::DEPTH_MAX {
            return Err(format!("a schema nested deeper than {} levels", form::DEPTH_MAX));
        }
        check_words(schema, true)?;
        let mut reader = Reader {
            root: schema,
            places: BTreeMap::new(),
            found: Vec::new(),
            targets: BTreeSet::new(),
            patterns: 0,
        };
        reader.place(schema);
        let mut nodes = Vec::new();
        while let Some(subschema) = reader.found.get(nodes.len()).copied() {
            nodes.push(reader.node(subschema)?);
        }
        let order = order(&nodes)?;
        Ok(Costs { nodes, order })
    }

    /// Whether it can be held against small arguments at all.
    fn usual(&self) -> Result<(), String> {
        let most = self.by_depth(USUAL_DEPTH).into_iter().max().unwrap_or(0);
        if most > VISITS {
            return Err(format!(
                "a schema that holds one value against {most} subschemas, and {VISITS} are the most"
            ));
        }
        Ok(())
    }

    /// Whether these arguments can be held against it in a bounded time.
    fn hold(&self, instance: &Value) -> Result<(), String> {
        let mut weights = Vec::new();
        let mut bytes = 0;
        weigh(instance, 0, 0, &mut weights, &mut bytes);
        if bytes > ARGUMENT_BYTES {
            return Err(format!("arguments of {bytes} bytes, and {ARGUMENT_BYTES} are the most"));
        }
        let visits = self.by_depth(weights.len().saturating_sub(1));
        let each = weights.iter().zip(visits).map(|(weight, visits)| weight.saturating_mul(visits));
        let work = each.fold(0, u64::saturating_add);
        if work > WORK {
            return Err(format!(
                "arguments and a schema that take {work} steps to hold against each other, and {WORK} are \
                 the most"
            ));
        }
        Ok(())
    }

    /// The cost of one value at each depth below the arguments, at most.
    fn by_depth(&self, deepest: usize) -> Vec<u64> {
        let mut costs: Vec<u64> = Vec::new();
        let mut before: Option<Vec<u64>> = None;
        for _ in 0..=deepest {
            let mut now = vec![0u64; self.nodes.len()];
            for at in &self.order {
                let node = &self.nodes[*at];
                let here = before.as_ref().map_or(node.own, |before| node.below(before));
                now[*at] = node.same.iter().fold(here, |sum, other| sum.saturating_add(now[*other]));
            }
            // The first that was found is the schema itself.
            costs.push(now.first().copied().unwrap_or(0));
            before = Some(now);
        }
        costs
    }
}

impl Node {
    /// What one member or item of a value costs, if these are the costs of the subschemas there.
    fn below(&self, costs: &[u64]) -> u64 {
        let most = |some: &[usize]| some.iter().map(|at| costs[*at]).max().unwrap_or(0);
        let all = |some: &[usize]| some.iter().fold(0u64, |sum, at| sum.saturating_add(costs[*at]));
        let member = most(&self.named).saturating_add(all(&self.members)).saturating_add(self.name);
        let item = most(&self.placed).saturating_add(all(&self.items));
        member.max(item)
    }
}

impl<'s> Reader<'s> {
    fn place(&mut self, subschema: &'s Value) -> usize {
        let next = self.found.len();
        let at = *self.places.entry(std::ptr::from_ref(subschema)).or_insert(next);
        if at == next {
            self.found.push(subschema);
        }
        at
    }

    /// Each of a list or table of subschemas.
    fn all(&mut self, some: &'s Value) -> Vec<usize> {
        match some {
            Value::Array(list) => list.iter().map(|one| self.place(one)).collect(),
            Value::Object(table) => table.values().map(|one| self.place(one)).collect(),
            _ => Vec::new(),
        }
    }

    fn node(&mut self, subschema: &'s Value) -> Result<Node, String> {
        let mut node = Node { own: 1, ..Node::default() };
        let Value::Object(keywords) = subschema else { return Ok(node) };
        for (keyword, value) in keywords {
            node.own += length(value);
            match keyword.as_str() {
                "$ref" => {
                    let target = self.target(value)?;
                    node.same.push(self.place(target));
                }
                "not" | "if" | "then" | "else" => node.same.push(self.place(value)),
                "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                    node.same.extend(self.all(value));
                }
                "properties" => node.named.extend(self.all(value)),
                "patternProperties" => {
                    for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                        self.pattern(pattern)?;
                        // Once for its own subschema, once to know what is additional.
                        node.name += 2 * PATTERN_COST;
                    }
                    node.members.extend(self.all(value));
                }
                "additionalProperties" | "propertyNames" => node.members.push(self.place(value)),
                "prefixItems" => node.placed.extend(self.all(value)),
                "items" if value.is_array() => node.placed.extend(self.all(value)),
                "items" | "additionalItems" | "contains" => node.items.push(self.place(value)),
                "unevaluatedProperties" | "unevaluatedItems" => {
                    return Err(format!(
                        "`{keyword}`, whose cost has no bound; `additionalProperties` and `items` are taken"
                    ));
                }
                "pattern" => {
                    self.pattern(value.as_str().unwrap_or_default())?;
                    node.own += PATTERN_COST;
                }
                "enum" | "const" => node.own += size(value),
                "uniqueItems" => node.own += TEXT_UNIT,
                _ => {}
            }
        }
        Ok(node)
    }

    /// Where a reference leads: to a place of this schema.
    fn target(&mut self, reference: &'s Value) -> Result<&'s Value, String> {
        let text = reference.as_str().unwrap_or_default();
        let pointer = text.strip_prefix('#').filter(|pointer| !pointer.contains('%'));
        let Some(target) = pointer.and_then(|pointer| self.root.pointer(pointer)) else {
            let shown = quoted(text.to_owned());
            return Err(format!("the reference {shown:?}, which leads to no place such as \"#/$defs/name\""));
        };
        self.targets.insert(text);
        if self.targets.len() > TARGETS {
            return Err(format!("references to more than {TARGETS} places"));
        }
        Ok(target)
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > PATTERNS {
            return Err(format!("more than {PATTERNS} patterns"));
        }
        if pattern.len() > PATTERN_BYTES {
            return Err(format!("a pattern of {} bytes, and {PATTERN_BYTES} are the most", pattern.len()));
        }
        Ok(())
    }
}

/// Words that move what a reference leads to, so that its cost could not be told.
fn check_words(value: &Value, top: bool) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                check_word(key, inner, top)?;
                check_words(inner, false)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_words(item, false)),
        _ => Ok(()),
    }
}

fn check_word(key: &str, value: &Value, top: bool) -> Result<(), String> {
    let Some(text) = value.as_str() else { return Ok(()) };
    let good = match key {
        "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$recursiveRef" => false,
        "$id" => top && !text.contains("json-schema.org"),
        "$schema" => top && ["2020-12", "2019-09", "draft-07"].iter().any(|draft| text.contains(draft)),
        _ => true,
    };
    if good {
        return Ok(());
    }
    Err(format!(
        "`{key}` as {:?}; refer to places of the schema as \"#/$defs/name\"",
        quoted(text.to_owned())
    ))
}

/// The subschemas in an order in which each comes after all that are held against the same value
/// because of it.
fn order(nodes: &[Node]) -> Result<Vec<usize>, String> {
    let mut waiting = vec![0usize; nodes.len()];
    for at in nodes.iter().flat_map(|node| &node.same) {
        waiting[*at] += 1;
    }
    let mut ready: Vec<usize> = (0..nodes.len()).filter(|at| waiting[*at] == 0).collect();
    let mut chain = vec![1usize; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(at) = ready.pop() {
        order.push(at);
        for other in &nodes[at].same {
            chain[*other] = chain[*other].max(chain[at] + 1);
            waiting[*other] -= 1;
            if waiting[*other] == 0 {
                ready.push(*other);
            }
        }
    }
    if order.len() < nodes.len() {
        return Err("a reference that leads back to itself for the same value".to_owned());
    }
    if chain.iter().any(|length| *length > CHAIN) {
        return Err(format!("a chain of more than {CHAIN} subschemas for the same value"));
    }
    order.reverse();
    Ok(order)
}

/// How much is held against the schema at each depth, and how many bytes all of it has.
fn weigh(value: &Value, name: u64, depth: usize, weights: &mut Vec<u64>, bytes: &mut u64) {
    let text = name + value.as_str().map_or(0, |text| text.len() as u64);
    if weights.len() <= depth {
        weights.resize(depth + 1, 0);
    }
    weights[depth] += 1 + text / TEXT_UNIT;
    *bytes += 2 + text;
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                weigh(inner, key.len() as u64, depth + 1, weights, bytes);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| weigh(item, 0, depth + 1, weights, bytes)),
        _ => {}
    }
}

fn length(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(map) => map.len() as u64,
        _ => 0,
    }
}

fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / TEXT_UNIT,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn held(schema: &Value, value: Value) -> Result<Vec<String>, String> {
        misfits(schema, &args(value), |error| error.to_string())
    }

    /// Every level refers twice to the one below it.
    fn doubling(levels: usize, twice: impl Fn(Value) -> Value) -> Value {
        let mut places = Map::new();
        places.insert("a0".to_owned(), json!({ "type": "object" }));
        for level in 1..=levels {
            places.insert(format!("a{level}"), twice(json!({ "$ref": format!("#/$defs/a{}", level - 1) })));
        }
        json!({ "$ref": format!("#/$defs/a{levels}"), "$defs": places })
    }

    #[test]
    fn a_schema_that_doubles_with_every_reference_is_refused_before_it_is_held() {
        for word in ["allOf", "anyOf", "oneOf"] {
            let bomb = doubling(30, |below| json!({ word: [below.clone(), below] }));
            assert!(fault(&bomb).unwrap().contains("subschemas"), "{word}");
            assert!(held(&bomb, json!({})).unwrap_err().contains("subschemas"));
        }
        // Up to a bound it is a schema as any other.
        let small = doubling(5, |below| json!({ "allOf": [below.clone(), below] }));
        assert_eq!(fault(&small), None);
        assert_eq!(held(&small, json!({})), Ok(Vec::new()));
    }

    #[test]
    fn what_doubles_with_the_depth_of_the_arguments_is_refused_for_deep_ones() {
        let tree = json!({ "allOf": [{ "additionalProperties": { "$ref": "#" } }, { "additionalProperties": { "$ref": "#" } }] });
        assert_eq!(fault(&tree), None);
        assert_eq!(held(&tree, json!({ "a": {} })), Ok(Vec::new()));
        let mut deep = json!({});
        for _ in 0..50 {
            deep = json!({ "a": deep });
        }
        assert!(held(&tree, deep).unwrap_err().contains("steps"));
    }

    #[test]
    fn what_refers_to_itself_for_the_same_value_or_elsewhere_is_refused() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }] } } }),
            json!({ "$ref": "https://a.example/schema" }),
            json!({ "$ref": "#here", "$defs": { "a": { "$anchor": "here" } } }),
            json!({ "$dynamicRef": "#" }),
            json!({ "properties": { "a": { "$id": "https://a.example/" } } }),
            json!({ "unevaluatedProperties": false }),
        ] {
            assert!(fault(&schema).is_some(), "{schema}");
        }
    }

    #[test]
    fn patterns_are_bounded_and_take_no_look_around() {
        for pattern in ["a".repeat(PATTERN_BYTES + 1), "(a{1000}){1000}".to_owned(), "(?=a)b".to_owned()] {
            assert!(fault(&json!({ "pattern": pattern })).is_some());
        }
        let many: Map<String, Value> =
            (0..=PATTERNS).map(|number| (format!("^a{number}"), json!(true))).collect();
        assert!(fault(&json!({ "patternProperties": many })).unwrap().contains("patterns"));
        let honest =
            json!({ "properties": { "gene": { "type": "string", "pattern": "^[A-Z][A-Z0-9-]{0,30}$" } } });
        assert_eq!(fault(&honest), None);
        assert_eq!(held(&honest, json!({ "gene": "TP53" })), Ok(Vec::new()));
        assert_eq!(held(&honest, json!({ "gene": "tp53" })).unwrap().len(), 1);
    }

    #[test]
    fn sizes_are_bounded_on_both_sides() {
        let long = json!({ "description": "x".repeat(SCHEMA_BYTES) });
        assert!(fault(&long).unwrap().contains("bytes"));
        let large = json!({ "text": "x".repeat(ARGUMENT_BYTES as usize) });
        assert!(held(&json!({}), large).unwrap_err().contains("bytes"));
        // Many values against many subschemas.
        let kinds: Vec<Value> = (0..2_000).map(|number| json!({ "const": number })).collect();
        let schema = json!({ "properties": { "list": { "items": { "anyOf": kinds } } } });
        assert_eq!(fault(&schema), None);
        assert_eq!(held(&schema, json!({ "list": [1, 2, 1_999] })), Ok(Vec::new()));
        let list: Vec<u64> = vec![0; 10_000];
        assert!(held(&schema, json!({ "list": list })).unwrap_err().contains("steps"));
    }

    #[test]
    fn a_recursive_schema_of_a_tree_is_one() {
        let tree = json!({
            "properties": { "root": { "$ref": "#/$defs/node" } },
            "$defs": { "node": {
                "type": "object",
                "properties": { "name": { "type": "string" }, "children": { "items": { "$ref": "#/$defs/node" } } },
                "required": ["name"],
            } },
        });
        assert_eq!(fault(&tree), None);
        let good = json!({ "root": { "name": "a", "children": [{ "name": "b" }] } });
        assert_eq!(held(&tree, good), Ok(Vec::new()));
        let wrong = json!({ "root": { "name": "a", "children": [{}] } });
        assert_eq!(held(&tree, wrong).unwrap().len(), 1);
    }

    #[test]
    fn what_is_told_of_a_misfit_is_cut() {
        assert!(quoted("é".repeat(QUOTED)).len() < QUOTED + 40);
        assert_eq!(quoted_value(&json!({ "a": 1 })), json!({ "a": 1 }));
        assert!(quoted_value(&json!("x".repeat(QUOTED))).as_str().unwrap().contains("bytes"));
    }
}
