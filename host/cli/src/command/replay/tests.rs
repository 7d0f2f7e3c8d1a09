use checkrein_contract::id::Timestamp;

use super::*;

fn logged(event: Event) -> Logged {
    Logged { seq: 1, at: Timestamp(0), prev: Digest::ZERO, digest: Digest::ZERO, event }
}

fn reserved(fuel: u64) -> Vec<Logged> {
    vec![logged(Event::BudgetReserved { call: "r/de/1".into(), fuel, wall_ms: u64::MAX })]
}

#[test]
fn what_a_file_says_of_its_calls_is_held_to_the_ceilings() {
    let operator = Operator::default();
    let ceiling = operator.ceiling.get(LimitKey::Fuel);
    let held = |fuel| below_ceiling(&reserved(fuel), &BTreeMap::new(), &operator);
    assert!(held(ceiling).is_ok());
    let refused = held(ceiling + 1).unwrap_err();
    assert!(matches!(refused, CliError::Usage { .. }), "{refused}");
    assert!(refused.to_string().contains("`r/de/1`") && refused.to_string().contains("`fuel`"), "{refused}");
    let raised = Operator { ceiling: operator.ceiling.clone().with(LimitKey::Fuel, u64::MAX), ..operator };
    assert!(below_ceiling(&reserved(ceiling + 1), &BTreeMap::new(), &raised).is_ok());
}

#[test]
fn a_file_that_is_not_there_is_told_as_a_file() {
    for what in ["./gone", "gone.checkrein", "/gone/run"] {
        let Err(error) = Recorded::find(&Global::default(), what) else { panic!("{what} was found") };
        assert!(error.to_string().contains("is no file"), "{error}");
    }
}

#[test]
fn a_dry_run_is_a_mistake_in_what_was_asked() {
    let error = unplayable(ReplayError::Dry);
    assert!(matches!(error, CliError::Usage { .. }), "{error}");
    assert!(error.to_string().contains("nothing to execute again"), "{error}");
}
