//! What counts as a wall that held: the right one, for every step, and nothing else.

use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::Used;
use checkrein_contract::record::{Denial, Record};

use super::*;
use crate::attack::asked::{Ended, Seen};
use crate::attack::run::{is_expected, was_told};

fn seen(end: Ended) -> Seen {
    Seen { end, content: None, used: Used::default(), log: String::new(), record: Record::default() }
}

fn refused_once(wall: Wall) -> Seen {
    let denial = Denial { wall, what: "once".to_owned(), grant: None, count: 1 };
    Seen { record: Record { denials: vec![denial], ..Record::default() }, ..seen(Ended::Returned) }
}

fn stopped_by(key: LimitKey) -> Seen {
    seen(Ended::Limit(LimitHit { limit: key.as_str().to_owned(), allowed: 1, used: 2 }))
}

fn named(name: &str) -> Attack {
    corpus().into_iter().find(|attack| attack.name == name).unwrap()
}

#[test]
fn one_refusal_of_seven_is_not_enough() {
    let attack = named("the folder above");
    let Some(Told::Content(content)) = attack.told.clone() else { panic!("{:?}", attack.told) };
    let whole = Seen { content: Some(content.clone()), ..refused_once(Wall::File) };
    assert!(was_told(&attack, &whole) && is_expected(&attack, &whole, &Limits::default()));
    for step in 0..content.as_array().unwrap().len() {
        let mut through = content.clone();
        through[step] = if through[step] == "ok" { 31.into() } else { "ok".into() };
        let seen = Seen { content: Some(through), ..refused_once(Wall::File) };
        assert!(!was_told(&attack, &seen), "step {step}");
    }
    assert!(!was_told(&attack, &refused_once(Wall::File)), "no content at all");
}

#[test]
fn every_attack_on_files_and_the_one_by_wasi_http_say_what_they_were_told() {
    for attack in corpus() {
        let denied = matches!(attack.expected, Expected::Denied(_));
        if denied && attack.group == Group::Files {
            assert!(matches!(attack.told, Some(Told::Content(_))), "{}", attack.name);
        }
    }
    let attack = named("a request through wasi http");
    let said = |log: &str| Seen { log: log.to_owned(), ..refused_once(Wall::Network) };
    assert!(was_told(&attack, &said("error: denied\n")));
    assert!(!was_told(&attack, &said("error: failed\n")));
    assert!(!was_told(&attack, &said("info: answered\n")));
}

#[test]
fn another_limit_counts_only_if_it_was_configured_to_fire_first() {
    let attack = named("growing to 4 GiB");
    assert_eq!(attack.expected, Expected::Limit(LimitKey::Memory));
    let defaults = Limits::default();
    assert!(is_expected(&attack, &stopped_by(LimitKey::Memory), &defaults));
    assert!(!is_expected(&attack, &stopped_by(LimitKey::Fuel), &defaults));
    // A limit that has nothing to do with it was changed.
    let other = Limits::default().with(LimitKey::HttpCalls, 1);
    assert!(!is_expected(&attack, &stopped_by(LimitKey::Fuel), &other));
    let lowered = Limits::default().with(LimitKey::Fuel, 1_000);
    assert!(is_expected(&attack, &stopped_by(LimitKey::Fuel), &lowered));
    assert!(!is_expected(&attack, &stopped_by(LimitKey::Wall), &lowered));
    let raised = Limits::default().with(LimitKey::Memory, 1 << 30);
    assert!(is_expected(&attack, &stopped_by(LimitKey::Fuel), &raised));
}

#[test]
fn what_an_attack_sets_itself_is_not_configured() {
    let attack = named("a loop in the executor");
    assert_eq!(attack.expected, Expected::Limit(LimitKey::Cpu));
    // Its own is in force, whatever is configured.
    let raised = Limits::default().with(LimitKey::Cpu, 60_000);
    assert!(!is_expected(&attack, &stopped_by(LimitKey::Wall), &raised));
}

#[test]
fn an_attack_with_a_grant_has_its_rule() {
    let spelled = ["other spellings of what is granted", "addresses in other spellings"];
    for name in spelled.into_iter().chain(["methods that are not granted"]) {
        assert_eq!(named(name).granted.network.len(), 1, "{name}: its rule is none");
    }
}

#[tokio::test]
async fn a_bomb_is_not_said_to_be_stopped_where_nothing_stops_it() {
    let (sandbox, _folder) = sandbox();
    let runner = Runner::start(&sandbox, &Limits::default()).await.unwrap();
    let bomb = corpus().into_iter().find(Attack::needs_a_worker).unwrap();
    let report = runner.run(&bomb).await;
    assert!(!report.held && report.wall.contains("give the sandbox workers"), "{report:?}");
}
