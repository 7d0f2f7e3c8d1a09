//! The outcome's content, field by field.

use checkrein_skill::prelude::*;

use super::TOLERANCE;

pub(super) fn check(right: &Value, outcome: &Outcome, verdict: &mut Verdict) {
    let empty = serde_json::Map::new();
    let (right, found) =
        (right.as_object().unwrap_or(&empty), outcome.content.as_object().unwrap_or(&empty));
    for (key, right) in right {
        let found = found.get(key).unwrap_or(&Value::Null);
        let agree = match (key.as_str(), right.as_f64(), found.as_f64()) {
            ("total_df", Some(right), Some(found)) => {
                Comparison::within(TOLERANCE).agree(right, found)
            }
            _ => right == found,
        };
        if !agree {
            let message = format!("the content's `{key}` is not what counts and table say");
            let finding = Finding::error("content", message, right, found);
            verdict.finding(finding.at(format!("/content/{key}")));
        }
    }
    for key in found.keys().filter(|key| !right.contains_key(*key)) {
        let finding = Finding::error("content", "nothing of the kind is said", "no such key", key);
        verdict.finding(finding.at(format!("/content/{key}")));
    }
}
