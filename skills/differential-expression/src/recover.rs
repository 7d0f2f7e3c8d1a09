//! What to do when it did not work out: names that do not join are the common case.

use checkrein_skill::{Advice, Cause, FailureKind, Mishap, Remedy, advice};
use serde::Deserialize;
use serde_json::json;

/// Evidence of a join that failed.
#[derive(Deserialize)]
struct Names {
    counts_samples: Vec<String>,
    annotation_samples: Vec<String>,
}

pub(crate) fn recover(mishap: &Mishap) -> Advice {
    let Cause::Failed(failure) = &mishap.cause else {
        return advice::by_cause(mishap);
    };
    if failure.kind != FailureKind::InvalidArgs {
        return advice::by_cause(mishap);
    }
    // Other failures have other evidence, or none: they are the default's matter.
    let Ok(names) = Names::deserialize(&failure.evidence) else {
        return advice::by_cause(mishap);
    };
    by_names(mishap, &names, &failure.message)
}

fn by_names(mishap: &Mishap, names: &Names, message: &str) -> Advice {
    if let Some(suffix) = common_suffix(&names.counts_samples, &names.annotation_samples) {
        // What was stripped already comes before what is still there.
        let before = mishap.call.args["strip_suffix"].as_str().unwrap_or_default();
        let changes = json!({ "strip_suffix": format!("{suffix}{before}") });
        return Advice::retry_with("sample names differ by a suffix", mishap, changes);
    }
    if common_suffix(&names.annotation_samples, &names.counts_samples).is_some() {
        let question = "the counts' sample names carry a suffix that the annotation's do not: can the counts be renamed?";
        return Advice::new(
            "sample names of the counts carry a suffix",
            Remedy::AskPerson(question.into()),
        );
    }
    Advice::new("sample names do not join", Remedy::Replan(message.to_owned()))
}

/// The one text that has to be removed from the end of longer names to reach every shorter one.
fn common_suffix(shorter: &[String], longer: &[String]) -> Option<String> {
    let first = shorter.first()?;
    let mut suffixes: Vec<&str> = longer
        .iter()
        .filter_map(|name| name.strip_prefix(first.as_str()))
        .filter(|rest| !rest.is_empty())
        .collect();
    // `s1` is also a prefix of `s10fb`: the shortest that fits all is meant.
    suffixes.sort_by_key(|suffix| suffix.len());
    let fits =
        |suffix: &&&str| shorter.iter().all(|name| longer.contains(&format!("{name}{suffix}")));
    suffixes.iter().find(fits).map(|suffix| (*suffix).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_skill::{Failure, testing};

    fn recovered(counts: &[&str], annotation: &[&str]) -> Advice {
        let evidence = json!({ "counts_samples": counts, "annotation_samples": annotation, "missing": counts });
        let failure = Failure::invalid_args("not in the annotation").with_evidence(evidence);
        let args = json!({ "counts": "/in/c", "annotation": "/in/a", "alpha": 0.1 });
        recover(&testing::mishap(args, Cause::Failed(failure)))
    }

    #[test]
    fn a_common_suffix_is_stripped_with_all_other_arguments_kept() {
        let advice = recovered(&["s1", "s10", "s2"], &["s10fb", "s2fb", "s1fb"]);
        assert_eq!(advice.diagnosis, "sample names differ by a suffix");
        let args =
            json!({ "counts": "/in/c", "annotation": "/in/a", "alpha": 0.1, "strip_suffix": "fb" });
        assert_eq!(advice.remedy, Remedy::RetryWith(args));
    }

    #[test]
    fn names_that_differ_otherwise_need_a_plan_or_a_person() {
        assert!(matches!(recovered(&["s1", "s2"], &["s1a", "s2b"]).remedy, Remedy::Replan(_)));
        assert!(matches!(recovered(&["s1x", "s2x"], &["s1", "s2"]).remedy, Remedy::AskPerson(_)));
    }
}
