//! What to do when a call did not lead to a met subgoal.

use serde_json::{Value, json};

use crate::{Cause, Failure, FailureKind, Finding, LimitHit, Mishap};

/// A diagnosis and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Why it went wrong, in a few stable words.
    pub diagnosis: String,
    /// What to do.
    pub remedy: Remedy,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Call again with other arguments: all of them, not only the changed ones.
    RetryWith(Value),
    /// Call again unchanged after so many milliseconds.
    RetryAfter(u32),
    /// Try another skill, by name.
    UseSkill(String),
    /// Ask the planner for a new plan, with a hint.
    Replan(String),
    /// Hand over to a person, with the question.
    AskPerson(String),
    /// Give up, with the reason.
    GiveUp(String),
}

impl Advice {
    /// An advice.
    #[must_use]
    pub fn new(diagnosis: impl Into<String>, remedy: Remedy) -> Self {
        Self { diagnosis: diagnosis.into(), remedy }
    }

    /// Call again with the same arguments and these keys set.
    #[must_use]
    pub fn retry_with(diagnosis: impl Into<String>, mishap: &Mishap, changes: Value) -> Self {
        let mut args = mishap.call.args.clone();
        if let (Some(all), Value::Object(changes)) = (args.as_object_mut(), changes) {
            all.extend(changes);
        }
        Self::new(diagnosis, Remedy::RetryWith(args))
    }
}

/// The default recovery, by the kind of the cause:
///
/// | cause | remedy |
/// | --- | --- |
/// | unavailable | call again after 1 s, then 4 s, 16 s, at most 60 s |
/// | invalid-args, not-found, unsupported | a new plan, with the message |
/// | denied | a person, naming what is missing |
/// | internal, trapped | give up |
/// | a limit | a new plan with less at once; give up the second time |
/// | rejected, unmet | a new plan, with the findings or criteria |
#[must_use]
pub fn by_cause(mishap: &Mishap) -> Advice {
    match &mishap.cause {
        Cause::Failed(failure) => by_failure(failure, &mishap.earlier),
        Cause::Rejected(findings) => {
            Advice::new("verification found errors", Remedy::Replan(findings_in_words(findings)))
        }
        Cause::Limited(hit) => by_limit(hit, &mishap.earlier),
        Cause::Trapped(message) => Advice::new(
            "the skill broke down",
            Remedy::GiveUp(format!("the skill trapped: {message}")),
        ),
        Cause::Unmet(criteria) => Advice::new(
            "criteria do not hold yet",
            Remedy::Replan(format!("these do not hold yet: {}", criteria.join("; "))),
        ),
        Cause::Other(message) => {
            Advice::new("something else went wrong", Remedy::Replan(message.clone()))
        }
    }
}

fn by_failure(failure: &Failure, earlier: &[Cause]) -> Advice {
    let message = failure.message.clone();
    match failure.kind {
        FailureKind::Unavailable => {
            let times =
                earlier.iter().filter(|cause| is_failure(cause, FailureKind::Unavailable)).count();
            Advice::new("something outside is down or busy", Remedy::RetryAfter(pause(times)))
        }
        FailureKind::InvalidArgs => {
            Advice::new("the arguments do not fit", Remedy::Replan(message))
        }
        FailureKind::NotFound => {
            Advice::new("what was asked for does not exist", Remedy::Replan(message))
        }
        FailureKind::Unsupported => {
            Advice::new("the skill cannot do this", Remedy::Replan(message))
        }
        FailureKind::Denied => Advice::new(
            "a capability is missing",
            Remedy::AskPerson(format!("may the skill have this? {message}")),
        ),
        FailureKind::Internal => Advice::new("a fault of the skill's own", Remedy::GiveUp(message)),
    }
}

fn by_limit(hit: &LimitHit, earlier: &[Cause]) -> Advice {
    let words =
        format!("the limit `{}` allows {}, and {} was used", hit.limit, hit.allowed, hit.used);
    let again = earlier
        .iter()
        .any(|cause| matches!(cause, Cause::Limited(before) if before.limit == hit.limit));
    let remedy = if again {
        Remedy::GiveUp(words)
    } else {
        Remedy::Replan(format!("ask for less at once: {words}"))
    };
    Advice::new("a limit was reached", remedy)
}

fn is_failure(cause: &Cause, kind: FailureKind) -> bool {
    matches!(cause, Cause::Failed(failure) if failure.kind == kind)
}

/// Milliseconds to wait after so many earlier times.
fn pause(times: usize) -> u32 {
    let times = u32::try_from(times).unwrap_or(u32::MAX).min(3);
    (1_000 * 4_u32.pow(times)).min(60_000)
}

fn findings_in_words(findings: &[Finding]) -> String {
    let words: Vec<String> = findings
        .iter()
        .map(|finding| {
            let values = json!({ "expected": finding.expected, "actual": finding.actual });
            format!("{}: {} {values}", finding.rule, finding.message)
        })
        .collect();
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn advice(cause: Cause, earlier: Vec<Cause>) -> Remedy {
        let mishap = Mishap { earlier, ..testing::mishap(json!({}), cause) };
        by_cause(&mishap).remedy
    }

    #[test]
    fn pauses_grow_with_the_times_before() {
        let down = || Cause::Failed(Failure::unavailable("down"));
        assert_eq!(advice(down(), vec![]), Remedy::RetryAfter(1_000));
        assert_eq!(advice(down(), vec![down()]), Remedy::RetryAfter(4_000));
        assert_eq!(
            advice(down(), vec![down(), down(), down(), down()]),
            Remedy::RetryAfter(60_000)
        );
    }

    #[test]
    fn what_is_denied_goes_to_a_person_who_is_told_what() {
        let denied = Cause::Failed(Failure::denied("GET https://example.org is not granted"));
        let Remedy::AskPerson(question) = advice(denied, vec![]) else { panic!("not a question") };
        assert!(question.contains("https://example.org"));
    }

    #[test]
    fn a_limit_reached_twice_ends_it() {
        let hit = || Cause::Limited(LimitHit { limit: "fuel".into(), allowed: 1, used: 2 });
        assert!(matches!(advice(hit(), vec![]), Remedy::Replan(_)));
        assert!(matches!(advice(hit(), vec![hit()]), Remedy::GiveUp(_)));
    }

    #[test]
    fn a_retry_keeps_the_other_arguments() {
        let mishap = testing::mishap(json!({ "a": 1, "b": 2 }), Cause::Other("x".into()));
        let advice = Advice::retry_with("d", &mishap, json!({ "b": 3 }));
        assert_eq!(advice.remedy, Remedy::RetryWith(json!({ "a": 1, "b": 3 })));
    }
}
