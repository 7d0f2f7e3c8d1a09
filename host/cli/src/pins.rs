//! What the components of a run may do, held against what the configuration says by now. What is
//! narrower holds at once; what is wider is a person's to take.

use std::cmp::Ordering;

use checkrein_contract::event::{Binding, ComponentCard, InForce};
use checkrein_contract::grant::{Clock, Folder, Granted, SecretUse};
use checkrein_contract::limits::LimitKey;
use checkrein_contract::manifest::Effects;
use checkrein_contract::network::Rule;

use crate::grants;

/// What differs, a line each, and what follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// What is allowed less than before.
    pub narrower: Vec<String>,
    /// What is allowed more than before, or otherwise.
    pub wider: Vec<String>,
    /// What cannot hold in this run at all, for it names no component of it.
    pub apart: Vec<String>,
    /// What both allow.
    pub narrowed: InForce,
}

/// Compares what was in force with what the configuration says now, for the same components in the
/// same order.
pub fn compare(before: &InForce, now: &InForce) -> Compared {
    let (mut narrower, mut wider, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    let mut cards = |before: &[ComponentCard], now: &[ComponentCard]| -> Vec<ComponentCard> {
        before
            .iter()
            .zip(now)
            .map(|(before, now)| {
                let mut told = Told { name: before.name(), narrower: &mut narrower, wider: &mut wider };
                card(before, now, &mut told)
            })
            .collect()
    };
    let skills = cards(&before.skills, &now.skills);
    let verifiers = cards(&before.verifiers, &now.verifiers);
    let bindings = bindings(before, now, [&mut narrower, &mut wider, &mut apart]);
    Compared { narrower, wider, apart, narrowed: InForce { skills, verifiers, bindings } }
}

/// The same components and bindings, with nothing granted.
pub fn granted_nothing(run: &InForce) -> InForce {
    let without = |card: &ComponentCard| {
        let granted = Granted::default();
        ComponentCard {
            effects: grants::effects(card.manifest.effects, None, &granted),
            granted,
            ..card.clone()
        }
    };
    let cards = |cards: &[ComponentCard]| cards.iter().map(without).collect();
    InForce { skills: cards(&run.skills), verifiers: cards(&run.verifiers), bindings: run.bindings.clone() }
}

/// What the configuration says now, once it is accepted. Verdicts name a binding by its place, so
/// each keeps its own: one that is gone judges nothing, and one that is new comes last.
pub fn taken(before: &InForce, now: &InForce) -> InForce {
    let stays = |binding: &Binding| match now.bindings.contains(binding) {
        true => binding.clone(),
        false => Binding { on: Vec::new(), on_facts: Vec::new(), ..binding.clone() },
    };
    let mut bindings: Vec<Binding> = before.bindings.iter().map(stays).collect();
    let new = now.bindings.iter().filter(|one| !before.bindings.contains(one) && has(before, one));
    bindings.extend(new.cloned());
    InForce { skills: now.skills.clone(), verifiers: now.verifiers.clone(), bindings }
}

/// Whether the verifier of a binding is a component of the run.
fn has(run: &InForce, binding: &Binding) -> bool {
    run.verifiers.iter().any(|card| card.name() == binding.verifier)
}

struct Told<'t> {
    name: &'t str,
    narrower: &'t mut Vec<String>,
    wider: &'t mut Vec<String>,
}

impl Told<'_> {
    fn say(&mut self, is_wider: bool, what: String) {
        let line = format!("{}: {what}", self.name);
        if is_wider { self.wider.push(line) } else { self.narrower.push(line) }
    }

    /// What both lists allow; what only one of them has is told.
    fn both<T: Clone + ToString>(
        &mut self,
        what: &str,
        (before, now): (&[T], &[T]),
        covers: fn(&T, &T) -> bool,
        and: fn(&T, &T) -> Option<T>,
    ) -> Vec<T> {
        let gone = before.iter().filter(|one| !now.iter().any(|other| covers(other, one)));
        let gone: Vec<&T> = gone.collect();
        for &one in &gone {
            self.say(false, format!("{what}: - {}", one.to_string()));
        }
        for new in now.iter().filter(|one| !before.iter().any(|other| covers(other, one))) {
            self.say(true, format!("{what}: + {}", new.to_string()));
        }
        // As it is written, or it would seem to be another.
        if gone.is_empty() {
            return before.to_vec();
        }
        let mut all: Vec<T> = Vec::new();
        for met in before.iter().flat_map(|one| now.iter().filter_map(move |other| and(one, other))) {
            if !all.iter().any(|known| covers(known, &met)) {
                all.retain(|known| !covers(&met, known));
                all.push(met);
            }
        }
        all
    }
}

fn card(before: &ComponentCard, now: &ComponentCard, told: &mut Told<'_>) -> ComponentCard {
    let granted = granted(&before.granted, &now.granted, told);
    let patterns: (Vec<Pattern>, Vec<Pattern>) = (patterns(&before.facts), patterns(&now.facts));
    let facts = told.both("facts", (&patterns.0, &patterns.1), Pattern::covers, Pattern::and);
    let mut limits = before.limits.clone();
    for key in LimitKey::ALL {
        let (was, is) = (before.limits.get(*key), now.limits.get(*key));
        if was != is {
            told.say(is > was, format!("limit {key}: {} -> {}", key.show(was), key.show(is)));
            limits = limits.with(*key, was.min(is));
        }
    }
    if now.max_score != before.max_score {
        let is_wider = now.max_score > before.max_score;
        told.say(is_wider, format!("max-score: {} -> {}", before.max_score, now.max_score));
    }
    if now.settings != before.settings {
        // Only the component knows whether it is held tighter by them.
        told.say(true, format!("settings: {} -> {}", before.settings, now.settings));
    }
    let effects = effects(before, now, &granted, told);
    ComponentCard {
        granted,
        facts: facts.into_iter().map(|pattern| pattern.0).collect(),
        limits,
        effects,
        max_score: before.max_score.min(now.max_score),
        ..before.clone()
    }
}

fn granted(before: &Granted, now: &Granted, told: &mut Told<'_>) -> Granted {
    let network = told.both("network", (&before.network, &now.network), Rule::covers, Rule::and);
    let files = told.both("files", (&before.files, &now.files), Folder::covers, Folder::and);
    let secret =
        |secret: &SecretUse| format!("{} for {} in {}", secret.name, secret.at.host, secret.at.header);
    for gone in before.secrets.iter().filter(|one| !now.secrets.contains(one)) {
        told.say(false, format!("secrets: - {}", secret(gone)));
    }
    for new in now.secrets.iter().filter(|one| !before.secrets.contains(one)) {
        told.say(true, format!("secrets: + {}", secret(new)));
    }
    if before.clock != now.clock {
        let word = |clock: Clock| if clock == Clock::Real { "real" } else { "virtual" };
        let what = format!("clock: {} -> {}", word(before.clock), word(now.clock));
        told.say(now.clock == Clock::Real, what);
    }
    let both_real = before.clock == Clock::Real && now.clock == Clock::Real;
    Granted {
        network,
        files,
        secrets: before.secrets.iter().filter(|one| now.secrets.contains(one)).cloned().collect(),
        clock: if both_real { Clock::Real } else { Clock::Virtual },
    }
}

/// What is reached makes the effects, and the grant's word raises or lowers them. The word alone is
/// compared: what follows from a reach that is not in force is not in force either.
fn effects(before: &ComponentCard, now: &ComponentCard, granted: &Granted, told: &mut Told<'_>) -> Effects {
    let (was, is) = (Word::of(before), Word::of(now));
    if was != is {
        told.say(is > was, format!("effects: {} -> {}", was.as_str(), is.as_str()));
    }
    grants::effects(before.manifest.effects, was.min(is).effects(), granted)
}

/// What a grant says of the effects of a component; the wider, the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Irreversible,
    Nothing,
    Idempotent,
}

impl Word {
    /// The word is not on the card, but what came of it is.
    fn of(card: &ComponentCard) -> Self {
        let without = grants::effects(card.manifest.effects, None, &card.granted);
        match card.effects.cmp(&without) {
            Ordering::Less => Word::Idempotent,
            Ordering::Equal => Word::Nothing,
            Ordering::Greater => Word::Irreversible,
        }
    }

    fn effects(self) -> Option<Effects> {
        match self {
            Word::Irreversible => Some(Effects::Irreversible),
            Word::Nothing => None,
            Word::Idempotent => Some(Effects::Idempotent),
        }
    }

    fn as_str(self) -> &'static str {
        self.effects().map_or("not stated", Effects::as_str)
    }
}

/// A pattern of subjects.
#[derive(Clone, Debug, PartialEq)]
struct Pattern(String);

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    fn covers(&self, other: &Pattern) -> bool {
        match (self.0.strip_suffix('*'), other.0.strip_suffix('*')) {
            (Some(own), Some(other)) => other.starts_with(own),
            (Some(own), None) => other.0.starts_with(own),
            (None, Some(_)) => false,
            (None, None) => self == other,
        }
    }

    fn and(&self, other: &Pattern) -> Option<Pattern> {
        if self.covers(other) {
            Some(other.clone())
        } else if other.covers(self) {
            Some(self.clone())
        } else {
            None
        }
    }
}

fn patterns(facts: &[String]) -> Vec<Pattern> {
    facts.iter().cloned().map(Pattern).collect()
}

/// Who judged goes on to judge, in its place; who is new judges too.
fn bindings(
    before: &InForce,
    now: &InForce,
    [narrower, wider, apart]: [&mut Vec<String>; 3],
) -> Vec<Binding> {
    let shown = |binding: &Binding| {
        let on: Vec<&str> = binding.on.iter().chain(&binding.on_facts).map(String::as_str).collect();
        format!("verifier {} on {}", binding.verifier, on.join(", "))
    };
    let mut bindings = before.bindings.clone();
    // One that is about nothing keeps a place, and is gone already.
    let judges = |one: &&Binding| !one.on.is_empty() || !one.on_facts.is_empty();
    for gone in before.bindings.iter().filter(judges).filter(|one| !now.bindings.contains(one)) {
        wider.push(format!("- {}", shown(gone)));
    }
    for new in now.bindings.iter().filter(|one| !before.bindings.contains(one)) {
        if has(before, new) {
            narrower.push(format!("+ {}", shown(new)));
            bindings.push(new.clone());
        } else {
            apart.push(format!("+ {}, which is no component of this run", shown(new)));
        }
    }
    bindings
}

#[cfg(test)]
mod tests {
    use checkrein_contract::Digest;
    use checkrein_contract::limits::Limits;
    use checkrein_contract::manifest::{Capabilities, Kind, Manifest};
    use serde_json::json;

    use super::*;

    fn card(rules: &[&str]) -> ComponentCard {
        ComponentCard {
            component: Digest::ZERO,
            manifest: Manifest {
                kind: Kind::Skill,
                name: "de".to_owned(),
                version: "1.0.0".to_owned(),
                description: String::new(),
                effects: Effects::None,
                facts: vec!["de/*".to_owned()],
                evidence: Vec::new(),
                requires: Vec::new(),
                locks: Vec::new(),
                terms: Vec::new(),
                args: None,
                capabilities: Capabilities::default(),
            },
            limits: Limits::default(),
            facts: vec!["de/*".to_owned()],
            settings: json!({}),
            granted: Granted {
                network: rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect(),
                ..Granted::default()
            },
            effects: Effects::None,
            max_score: 100,
        }
    }

    fn in_force(card: ComponentCard) -> InForce {
        InForce { skills: vec![card], verifiers: Vec::new(), bindings: Vec::new() }
    }

    #[test]
    fn the_same_is_the_same() {
        let before = in_force(card(&["GET https://a.org/*"]));
        let compared = compare(&before, &before);
        assert_eq!((compared.narrower.len(), compared.wider.len()), (0, 0));
        assert_eq!(compared.narrowed, before);
    }

    #[test]
    fn what_both_allow_is_in_force() {
        let before = in_force(card(&["GET https://a.org/*", "GET https://b.org/*"]));
        let now = in_force(card(&["GET https://a.org/x/*", "GET https://c.org/*"]));
        let compared = compare(&before, &now);
        assert_eq!(compared.narrower.len(), 2, "{compared:?}");
        assert_eq!(compared.wider, ["de: network: + GET https://c.org/*"]);
        let rules: Vec<String> =
            compared.narrowed.skills[0].granted.network.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["GET https://a.org/x/*"]);
    }

    #[test]
    fn limits_effects_and_settings() {
        let before = card(&[]);
        let mut now = before.clone();
        now.limits = now.limits.with(LimitKey::Fuel, 1).with(LimitKey::Memory, u64::MAX);
        now.settings = json!({ "strict": false });
        let compared = compare(&in_force(before.clone()), &in_force(now));
        assert_eq!((compared.narrower.len(), compared.wider.len()), (1, 2), "{compared:?}");
        let held = &compared.narrowed.skills[0];
        assert_eq!(held.limits.get(LimitKey::Fuel), 1);
        assert_eq!(held.limits.get(LimitKey::Memory), before.limits.get(LimitKey::Memory));
        assert_eq!(held.settings, json!({}));
        // That it is safe to repeat is the operator's word, and wider than before.
        let mut dangerous = before.clone();
        dangerous.manifest.effects = Effects::Irreversible;
        dangerous.effects = Effects::Irreversible;
        let idempotent = ComponentCard { effects: Effects::Idempotent, ..dangerous.clone() };
        let compared = compare(&in_force(dangerous), &in_force(idempotent));
        assert_eq!(compared.wider.len(), 1);
        assert_eq!(compared.narrowed.skills[0].effects, Effects::Irreversible);
    }

    #[test]
    fn who_judged_goes_on_to_judge() {
        let binding = |name: &str| Binding {
            verifier: name.to_owned(),
            on: vec!["*".to_owned()],
            on_facts: Vec::new(),
            settings: json!({}),
        };
        let mut judge = card(&[]);
        judge.manifest.name = "judge".to_owned();
        let with =
            |bindings: Vec<Binding>| InForce { skills: Vec::new(), verifiers: vec![judge.clone()], bindings };
        let removed = compare(&with(vec![binding("judge")]), &with(Vec::new()));
        assert_eq!((removed.wider.len(), removed.narrowed.bindings.len()), (1, 1));
        let added = compare(&with(Vec::new()), &with(vec![binding("judge")]));
        assert_eq!((added.narrower.len(), added.narrowed.bindings.len()), (1, 1));
        let unknown = compare(&with(Vec::new()), &with(vec![binding("other")]));
        assert_eq!((unknown.wider.len(), unknown.apart.len()), (0, 1));
        assert_eq!(unknown.narrowed.bindings.len(), 0);
    }

    #[test]
    fn what_is_not_in_force_makes_no_call_irreversible() {
        let before = card(&["GET https://a.org/*"]);
        let now = ComponentCard {
            effects: Effects::Irreversible,
            ..card(&["GET https://a.org/*", "POST https://a.org/*"])
        };
        let compared = compare(&in_force(before.clone()), &in_force(now.clone()));
        assert_eq!((compared.narrower.len(), compared.wider.len()), (0, 1), "{compared:?}");
        assert_eq!(compared.narrowed, in_force(before.clone()));
        assert_eq!(taken(&in_force(before), &in_force(now.clone())), in_force(now));
    }

    #[test]
    fn patterns_that_cover_one_another_are_no_difference() {
        let facts = vec!["de/*".to_owned(), "de/gene/*".to_owned()];
        let before = in_force(ComponentCard { facts, ..card(&[]) });
        assert_eq!(compare(&before, &before).narrowed, before);
    }

    #[test]
    fn a_binding_keeps_its_place() {
        let binding = |on: &[&str], strict: bool| Binding {
            verifier: "judge".to_owned(),
            on: on.iter().map(|name| (*name).to_owned()).collect(),
            on_facts: Vec::new(),
            settings: json!({ "strict": strict }),
        };
        let mut judge = card(&[]);
        judge.manifest.name = "judge".to_owned();
        let with =
            |bindings: Vec<Binding>| InForce { skills: Vec::new(), verifiers: vec![judge.clone()], bindings };
        // Without the first, the second is the second still: it has not judged what the first did.
        let (before, now) =
            (with(vec![binding(&["*"], true), binding(&["*"], false)]), with(vec![binding(&["*"], false)]));
        let after = taken(&before, &now);
        assert_eq!(after.bindings, [binding(&[], true), binding(&["*"], false)]);
        // What is gone is told once.
        let again = compare(&after, &now);
        assert_eq!((again.narrower.len(), again.wider.len()), (0, 0), "{again:?}");
        assert_eq!((again.narrowed, taken(&after, &now)), (after.clone(), after));
    }
}
