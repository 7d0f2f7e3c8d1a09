//! What came out of a call that the host did not see end, as a person states it.

use std::io::Read;
use std::path::Path;

use checkrein_contract::Digest;
use checkrein_contract::ask::Attested;
use checkrein_contract::digest::{DEPTH_MAX, canonical, depth};
use checkrein_contract::event::Draft;
use checkrein_contract::id::is_subject;
use checkrein_contract::interface::Outcome;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::problem::{Fault, Faults};
use checkrein_contract::units::show_bytes;
use serde_json::{Value, json};

use crate::error::{CliError, fault};

/// What an outcome has, and what each of its facts has.
const KEYS: [&str; 3] = ["content", "facts", "artifacts"];
const FACT_KEYS: [&str; 5] = ["subject", "kind", "content", "source", "supersedes"];

/// Reads an outcome. It is held to what the interface allows a component, and has no files: there is
/// no `/work` that they could be in.
pub(super) fn read(file: &Path, limits: &Limits) -> Result<Outcome, CliError> {
    let most = limits.get(LimitKey::Outcome);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| CliError::unreadable(file, &error))?;
    let read = opened.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| CliError::unreadable(file, &error))?;
    let outcome = parse(&file.display().to_string(), &bytes, limits);
    outcome.map_err(|faults| CliError::Input(Faults(faults)))
}

/// Puts an outcome into a blob, in the form in which the outcome of a call is kept.
pub(super) fn attest(outcome: &Outcome, blobs: &dyn Blobs) -> Result<Attested, StorageError> {
    let drafts = outcome.facts.iter().map(|fact| Draft {
        subject: fact.subject.clone(),
        kind: fact.kind.clone(),
        content: Digest::of_json(&fact.content),
        source: fact.source.clone(),
        supersedes: fact.supersedes.clone(),
    });
    let mut whole = json!(outcome);
    whole["artifact_digests"] = json!({});
    Ok(Attested { outcome: blobs.put(canonical(&whole).as_bytes())?, drafts: drafts.collect() })
}

fn parse(file: &str, bytes: &[u8], limits: &Limits) -> Result<Outcome, Vec<Fault>> {
    let wrong = |stage: &str, expected: &str, found: &str| fault(file, stage, expected, found, "");
    let most = limits.get(LimitKey::Outcome);
    if bytes.len() as u64 > most {
        return Err(vec![wrong("limit", &format!("at most {}", show_bytes(most)), "more")]);
    }
    let read: Result<Value, _> = serde_json::from_slice(bytes);
    let mut value = read.map_err(|error| vec![wrong("syntax", "JSON", &error.to_string())])?;
    if depth(&value) > DEPTH_MAX {
        let expected = format!("at most {DEPTH_MAX} levels of nesting");
        return Err(vec![wrong("structure", &expected, &depth(&value).to_string())]);
    }
    let mut faults = unknown(file, "", &value, &KEYS);
    let Some(object) = value.as_object_mut() else {
        return Err(vec![wrong("structure", "an object with `content` and `facts`", "another value")]);
    };
    // What a person leaves out is none; what it came to must be said.
    object.entry("facts").or_insert_with(|| json!([]));
    object.entry("artifacts").or_insert_with(|| json!([]));
    for (at, fact) in value["facts"].as_array().into_iter().flatten().enumerate() {
        faults.extend(unknown(file, &format!("/facts/{at}"), fact, &FACT_KEYS));
    }
    match serde_json::from_value::<Outcome>(value) {
        Ok(outcome) => {
            faults.extend(check(file, &outcome, limits));
            if faults.is_empty() { Ok(outcome) } else { Err(faults) }
        }
        Err(error) => {
            let expected = "an object with `content`, and `facts` of subject, kind, content and source";
            faults.push(wrong("structure", expected, &error.to_string()));
            Err(faults)
        }
    }
}

/// Keys that mean nothing: a slip in one would lose what it says.
fn unknown(file: &str, place: &str, value: &Value, known: &[&str]) -> Vec<Fault> {
    let keys = value.as_object().into_iter().flat_map(|object| object.keys());
    let strange = keys.filter(|key| !known.contains(&key.as_str()));
    let fault = |key: &String| Fault {
        place: place.to_owned(),
        ..fault(file, "structure", &known.join(", "), &format!("`{key}`"), "")
    };
    strange.map(fault).collect()
}

fn check(file: &str, outcome: &Outcome, limits: &Limits) -> Vec<Fault> {
    let at = |place: String, stage: &str, expected: &str, found: &str| Fault {
        place,
        ..fault(file, stage, expected, found, "")
    };
    let mut faults = Vec::new();
    if !outcome.artifacts.is_empty() {
        let found = outcome.artifacts.len().to_string();
        faults.push(at("/artifacts".to_owned(), "semantics", "no files: only a call can write them", &found));
    }
    let most = limits.get(LimitKey::Facts);
    if outcome.facts.len() as u64 > most {
        let found = outcome.facts.len().to_string();
        faults.push(at("/facts".to_owned(), "limit", &format!("at most {most} facts"), &found));
    }
    for (index, fact) in outcome.facts.iter().enumerate().filter(|(_, fact)| !is_subject(&fact.subject)) {
        let place = format!("/facts/{index}/subject");
        let expected = "segments of letters, digits, `.`, `_`, `-` joined by `/`, at most 200 bytes";
        faults.push(at(place, "semantics", expected, &format!("{:?}", fact.subject)));
    }
    faults
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use checkrein_contract::port::Tree;

    use super::*;

    fn parsed(value: &Value) -> Result<Outcome, Vec<Fault>> {
        parse("o.json", value.to_string().as_bytes(), &Limits::default())
    }

    fn fact() -> Value {
        json!({ "subject": "a/b", "kind": "k", "content": { "x": 0.1 }, "source": "/in/a" })
    }

    #[test]
    fn what_is_left_out_is_none() {
        let outcome = parsed(&json!({ "content": "done" })).unwrap();
        assert!(outcome.facts.is_empty() && outcome.artifacts.is_empty());
        assert_eq!(parsed(&json!({ "content": null, "facts": [fact()] })).unwrap().facts[0].subject, "a/b");
    }

    #[test]
    fn every_mistake_is_named() {
        let place = |value: &Value| -> Vec<(String, String)> {
            let faults = parsed(value).unwrap_err();
            faults.into_iter().map(|fault| (fault.place, fault.stage)).collect()
        };
        let mut slip = fact();
        slip["sorce"] = json!("/in/a");
        let mut no_subject = fact();
        no_subject["subject"] = json!("A b");
        let file = json!({ "path": "p", "title": "t", "media_type": "m" });
        let value = json!({ "content": 1, "fact": [], "facts": [slip, no_subject], "artifacts": [file] });
        let named = |place: &str, stage: &str| (place.to_owned(), stage.to_owned());
        assert_eq!(
            place(&value),
            [
                named("", "structure"),
                named("/facts/0", "structure"),
                named("/artifacts", "semantics"),
                named("/facts/1/subject", "semantics")
            ]
        );
        assert_eq!(place(&json!([])), [named("", "structure")]);
        assert_eq!(place(&json!({ "facts": [] })), [named("", "structure")]);
        let mut deep = json!(1);
        for _ in 0..DEPTH_MAX {
            deep = json!([deep]);
        }
        assert_eq!(place(&json!({ "content": deep })), [named("", "structure")]);
        let limits = Limits::default().with(LimitKey::Outcome, 4);
        assert_eq!(parse("o.json", b"{\"content\":1}", &limits).unwrap_err()[0].stage, "limit");
        let limits = Limits::default().with(LimitKey::Facts, 0);
        let facts = json!({ "content": 1, "facts": [fact()] }).to_string();
        assert_eq!(parse("o.json", facts.as_bytes(), &limits).unwrap_err()[0].place, "/facts");
    }

    /// Keeps what is put.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Vec<u8>>>);

    impl Blobs for Kept {
        fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Ok(Digest::of(bytes))
        }

        fn put_from(&self, _: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
            Err(StorageError::Full { place: "memory".to_owned() })
        }

        fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
            Err(StorageError::Missing { place: digest.to_string() })
        }

        fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
            Err(StorageError::Full { place: "memory".to_owned() })
        }
    }

    #[test]
    fn it_is_kept_as_the_outcome_of_a_call_is() {
        let outcome = parsed(&json!({ "facts": [fact()], "content": {} })).unwrap();
        let kept = Kept::default();
        let attested = attest(&outcome, &kept).unwrap();
        let bytes = kept.0.lock().unwrap()[0].clone();
        assert_eq!(
            String::from_utf8(bytes.clone()).unwrap(),
            "{\"artifact_digests\":{},\"artifacts\":[],\"content\":{},\"facts\":[{\"content\":{\"x\":0.1},\
             \"kind\":\"k\",\"source\":\"/in/a\",\"subject\":\"a/b\"}]}"
        );
        assert_eq!(attested.outcome, Digest::of(&bytes));
        assert_eq!(attested.drafts[0].content, Digest::of_json(&json!({ "x": 0.1 })));
    }
}
