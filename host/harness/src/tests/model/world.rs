use std::collections::BTreeMap;

use checkrein_contract::Digest;
use checkrein_contract::ask::{Amendment, Answer, Asked, Attested, Letter, Message};
use checkrein_contract::event::{
    Assessed, CriterionState, Draft, Ended, Event, Judge, Judgement, Person, Setup, Stop,
};
use checkrein_contract::id::{AskId, CallId, SubgoalId, Timestamp};
use checkrein_contract::interface::{Check, Failure, FailureKind, Finding, LimitHit, Remedy, Severity};
use checkrein_contract::limits::Used;
use checkrein_contract::manifest::{Effects, Kind};
use checkrein_contract::record::Record;
use checkrein_contract::task::{Budget, Criterion, Mode, Stage};
use serde_json::{Value, json};

use crate::effect::{Effect, Input};
use crate::state::State;
use crate::step::advance;
use crate::testing::{card, component, setup, subgoal, with_verifier};
use crate::{due, planner};

/// Chance, from a seed: SplitMix64.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// The world around one run.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) setup: Setup,
    pub(super) state: State,
    pub(super) log: Vec<(Timestamp, Event)>,
    /// How often each call that cannot be taken back really happened.
    pub(super) happened: BTreeMap<CallId, u32>,
    /// What is under way; whether a call among it has had its effect.
    under_way: Vec<(Effect, bool)>,
    now: u64,
    letters: u64,
    epoch: u64,
}

fn budget(chance: &mut Chance, calls: u64) -> Budget {
    let mut some = |of: u64, least: u64, most: u64| chance.one_in(of).then(|| least + chance.below(most));
    Budget {
        attempts: some(3, 1, 8),
        calls: Some(some(2, 1, 8).unwrap_or(calls)),
        tokens: some(3, 50, 600),
        fuel: some(3, 5, 120),
        wall_ms: some(4, 500, 20_000),
    }
}

fn task(chance: &mut Chance) -> Setup {
    let mut setup = with_verifier(setup(Vec::new()));
    let mut publish = card("publish", Kind::Skill);
    publish.effects = Effects::Irreversible;
    let mut update = card("update", Kind::Skill);
    update.effects = Effects::Idempotent;
    setup.skills.extend([publish, update]);
    setup.task.mode = Mode::ReadWrite;
    setup.task.parameters.insert("p".to_owned(), json!(1));
    setup.task.budget = budget(chance, 40);
    setup.person = [Person::Never, Person::Approvals, Person::Always][chance.below(3) as usize];
    setup.proposal_tokens = [0, 100][chance.below(2) as usize];
    let mut stages = Vec::new();
    for stage in 0..2 {
        let mut subgoals = Vec::new();
        for index in 0..3u64 {
            let mut spec = subgoal(&format!("g{stage}{index}"));
            spec.skill = Some(["skill", "publish", "update"][chance.below(3) as usize].to_owned());
            spec.attempts = 1 + chance.below(5) as u32;
            spec.budget = budget(chance, 12);
            if chance.one_in(4) {
                spec.goal = "the goal of the task".to_owned();
            }
            if chance.one_in(2) {
                spec.args.insert("x".to_owned(), json!({ "$param": "p" }));
            }
            if index > 0 && chance.one_in(2) {
                spec.after = vec![format!("g{stage}{}", chance.below(index)).into()];
            }
            subgoals.push(spec);
        }
        let id = format!("s{stage}");
        stages.push(Stage { id: id.as_str().into(), title: None, budget: budget(chance, 20), subgoals });
    }
    setup.task.goal = "the goal of the task".to_owned();
    setup.task.stages = stages;
    // Fuel is small here, so that budgets and limits meet.
    for card in &mut setup.skills {
        card.limits = card.limits.clone().with(checkrein_contract::limits::LimitKey::Fuel, 20);
    }
    setup
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let setup = task(&mut chance);
        let mut world = World {
            chance,
            setup: setup.clone(),
            state: State::default(),
            log: Vec::new(),
            happened: BTreeMap::new(),
            under_way: Vec::new(),
            now: 1_000,
            letters: 0,
            epoch: 1,
        };
        world.feed(Input::Start { setup: Box::new(setup), epoch: 1, holder: "one".to_owned() });
        world
    }

    /// Something happens; `false` once nothing can any more.
    pub(super) fn step(&mut self) -> bool {
        if self.state.ended.is_some() && !self.chance.one_in(4) {
            return false;
        }
        self.now += self.chance.below(400);
        match self.chance.below(24) {
            0 => self.crash(),
            1 => self.stop(Stop::Interrupted),
            2 => self.letter(Message::Cancel),
            3 => self.amend(),
            4..=6 => self.answer(false),
            _ => self.work(),
        }
        if self.state.stopped.is_some() {
            self.resume();
        }
        true
    }

    /// From here on all that is due is done, and every ask is given up: the run must end.
    pub(super) fn finish(&mut self) {
        for _ in 0..3_000 {
            if self.state.ended.is_some() {
                return;
            }
            if self.state.stopped.is_some() {
                self.resume();
            }
            self.now += 50;
            self.begin();
            if self.under_way.is_empty() {
                assert!(self.state.open_asks().next().is_some(), "stuck: {}", self.phases());
                self.answer(true);
            } else {
                self.end_one(0);
            }
        }
        panic!("the run neither ends nor waits");
    }

    fn phases(&self) -> String {
        let goals = self.state.subgoals.iter();
        let phases: Vec<String> = goals.map(|(id, goal)| format!("{id} {:?}", goal.phase)).collect();
        let spent = (&self.state.spent, &self.state.stage_spent, &self.state.subgoal_spent);
        format!("stage {}: {}\n{spent:#?}", self.state.stage, phases.join("; "))
    }

    fn feed(&mut self, input: Input) {
        let at = Timestamp(self.now).max(self.state.now);
        let events = advance(&mut self.state, &input, at).unwrap();
        self.log.extend(events.into_iter().map(|event| (at, event)));
    }

    /// The process ends; whoever comes next has the log, and now and then a snapshot.
    fn crash(&mut self) {
        self.under_way.clear();
        let folded = State::fold(self.log.iter().map(|(at, event)| (*at, event))).unwrap();
        assert_eq!(folded.snapshot(), self.state.snapshot(), "folding the log gives another state");
        self.state = State::of_snapshot(&folded.snapshot()).unwrap();
        self.now += self.chance.below(100_000);
        self.resume();
    }

    fn resume(&mut self) {
        self.under_way.clear();
        self.epoch += 1;
        let (holder, engine) = ("another".to_owned(), "none".to_owned());
        self.feed(Input::Resume { epoch: self.epoch, holder, engine, in_force: None });
    }

    fn stop(&mut self, because: Stop) {
        self.feed(Input::Stop(because));
        self.under_way.clear();
    }

    fn letter(&mut self, message: Message) {
        self.letters += 1;
        let at = Timestamp(self.now);
        let letter = Letter { id: self.letters, by: "ada".to_owned(), at, message };
        let version = self.state.version;
        self.feed(Input::Letter(Box::new(letter)));
        if self.state.version != version {
            // As the driver does: what was begun for the task as it was before is dropped.
            let due = due(&self.state);
            self.under_way
                .retain(|(effect, _)| matches!(effect, Effect::Execute { .. }) && due.contains(effect));
        }
    }

    fn amend(&mut self) {
        let mut amendment = Amendment::default();
        match self.chance.below(3) {
            0 => drop(amendment.set.insert("p".to_owned(), json!(self.chance.below(3)))),
            1 => amendment.goal = Some("g2".to_owned()),
            _ => {
                let id = format!("g{}{}", self.chance.below(2), self.chance.below(3));
                let criterion = Criterion { text: "more".to_owned(), check: "has_fact('s/a')".to_owned() };
                amendment.criteria.push((id.into(), criterion));
            }
        }
        self.letter(Message::Amend { amendment });
    }

    /// A person answers an ask: anything, but of what happened the truth.
    fn answer(&mut self, give_up: bool) {
        let asks: Vec<(AskId, Asked)> =
            self.state.open_asks().map(|(id, ask)| (id.clone(), ask.about.clone())).collect();
        let Some((ask, about)) = asks.first().cloned() else { return };
        let given_up = Answer::GiveUp { reason: "enough".to_owned() };
        let choice = self.chance.below(5);
        let args = json!({ "x": self.chance.below(4) }).as_object().unwrap().clone();
        let answer = match (&about, choice) {
            (Asked::Approval { .. }, 0..=2) if !give_up => {
                let until = (choice == 0).then_some(Timestamp(self.now + 300));
                Answer::Approved { until }
            }
            (Asked::Approval { .. }, _) => Answer::Denied { reason: "no".to_owned() },
            (_, _) if give_up => given_up,
            (Asked::CallUnknown { .. }, 0) => given_up,
            (Asked::CallUnknown { call }, _) if self.happened.contains_key(call) => {
                let (outcome, drafts) = self.outcome();
                Answer::Happened { outcome: (choice == 1).then_some(Attested { outcome, drafts }) }
            }
            (Asked::CallUnknown { .. }, _) => Answer::NotHappened,
            (_, 0) => given_up,
            (_, 1) => Answer::Said { text: "look again".to_owned() },
            (_, 2) => Answer::Args { args },
            (_, _) => Answer::Retry,
        };
        self.letter(Message::Answer { ask, answer });
    }

    fn begin(&mut self) {
        for effect in due(&self.state) {
            if !self.under_way.iter().any(|(known, _)| *known == effect) {
                if let Effect::Execute { call } = &effect {
                    let intended = |(_, event): &(Timestamp, Event)| matches!(event, Event::CallIntended { call: of, .. } if of == call);
                    assert!(self.log.iter().any(intended), "{call} without an intent");
                }
                self.under_way.push((effect, false));
            }
        }
    }

    fn work(&mut self) {
        self.begin();
        if self.under_way.is_empty() {
            if self.state.waits() && self.chance.one_in(2) {
                self.stop(Stop::Person);
            }
            return;
        }
        let at = self.chance.below(self.under_way.len() as u64) as usize;
        // A call has its effect some time before its end is known.
        if let (Effect::Execute { call }, false) = self.under_way[at].clone() {
            self.take_effect(&call);
            self.under_way[at].1 = true;
            return;
        }
        self.end_one(at);
    }

    fn take_effect(&mut self, call: &CallId) {
        if self.state.calls[call].effects == Effects::Irreversible {
            *self.happened.entry(call.clone()).or_default() += 1;
        }
    }

    fn end_one(&mut self, at: usize) {
        let (effect, took_effect) = self.under_way.remove(at);
        if let (Effect::Execute { call }, false) = (&effect, took_effect) {
            self.take_effect(call);
        }
        if let Effect::WaitUntil { until, .. } = &effect {
            self.now = self.now.max(until.0);
        }
        let input = self.came_of(effect);
        self.feed(input);
    }

    fn came_of(&mut self, effect: Effect) -> Input {
        match effect {
            Effect::Resolve { subgoal } => {
                let (scope, artifacts) = self.state.scope(&subgoal);
                let mut args = self.state.spec(&subgoal).args.clone();
                let p = self.state.setup.as_ref().unwrap().task.parameters["p"].clone();
                args.values_mut().for_each(|value| *value = p.clone());
                Input::Resolved { subgoal, scope, artifacts, args: Ok(args) }
            }
            Effect::Assess { subgoal, skills } => {
                let score = if self.chance.one_in(12) { 0 } else { 50 };
                let said = |skill: String| Assessed {
                    skill,
                    score,
                    reason: "chance".to_owned(),
                    args: None,
                    record: Record::default(),
                };
                Input::Assessed { subgoal, assessed: skills.into_iter().map(said).collect() }
            }
            Effect::Propose { subgoal } => self.proposal(subgoal),
            Effect::Execute { call } => self.execution(call),
            Effect::Verify { call, judge, .. } => self.judgement(call, judge),
            Effect::Recover { call } => {
                let remedy = self.remedy();
                Input::Recovered { call, diagnosis: "d".to_owned(), remedy, record: Record::default() }
            }
            Effect::Evaluate { subgoal } => {
                let holds = !self.chance.one_in(4);
                let criterion = CriterionState { text: "it is there".to_owned(), holds, note: String::new() };
                Input::Evaluated { subgoal, criteria: vec![criterion] }
            }
            Effect::WaitUntil { subgoal, .. } => Input::TimerReached { subgoal },
        }
    }

    fn proposal(&mut self, subgoal: SubgoalId) -> Input {
        let action = match self.chance.below(8) {
            0 => json!({ "action": "call", "skill": "publish", "args": { "x": self.chance.below(3) } }),
            1 => json!({ "action": "call", "skill": "none", "args": {} }),
            2 => json!("nonsense"),
            3 => json!({ "action": "ask", "question": "what now?" }),
            _ => planner::propose(&self.state, &subgoal).to_json(),
        };
        let reserved = self.state.subgoal(&subgoal).tokens_reserved;
        let tokens = if reserved == 0 { 0 } else { self.chance.below(reserved + 1) };
        Input::Proposed { subgoal, action, tokens }
    }

    fn outcome(&mut self) -> (Digest, Vec<Draft>) {
        let content = Digest::of(self.chance.below(3).to_string());
        let subject = ["s/a", "s/b", "elsewhere/a"][(self.chance.below(9) / 4) as usize];
        let draft = Draft {
            subject: subject.to_owned(),
            kind: "statistic".to_owned(),
            content,
            source: "/in/in.csv".to_owned(),
            supersedes: None,
        };
        (Digest::of(format!("{subject}{content}")), vec![draft])
    }

    fn execution(&mut self, call: CallId) -> Input {
        let fuel = self.state.calls[&call].fuel;
        let used = Used { fuel: self.chance.below(fuel + 1), ..Used::default() };
        let ended = match self.chance.below(8) {
            0 => Ended::Trapped { message: "t".to_owned() },
            1 => Ended::Limited { hit: LimitHit { limit: "fuel".to_owned(), allowed: fuel, used: fuel } },
            2 => Ended::Failed {
                failure: Failure {
                    kind: FailureKind::Unavailable,
                    message: "no".to_owned(),
                    evidence: Value::Null,
                },
            },
            _ => {
                let (outcome, drafts) = self.outcome();
                Ended::Outcome { outcome, drafts, artifacts: Vec::new() }
            }
        };
        Input::Executed { call, ended, used, log: None, record: Record::default() }
    }

    fn judgement(&mut self, call: CallId, judge: Judge) -> Input {
        let about = vec!["s/a".to_owned(), "s/b".to_owned()];
        let checks = vec![Check { rule: "rule".to_owned(), about, note: "holds".to_owned() }];
        let rule = ["sign", "order"][self.chance.below(2) as usize].to_owned();
        let judgement = match self.chance.below(8) {
            0 => Judgement::Unavailable { reason: "down".to_owned() },
            1 | 2 => Judgement::Rejected {
                checks: Vec::new(),
                findings: vec![Finding {
                    rule,
                    severity: Severity::Error,
                    message: "wrong".to_owned(),
                    expected: json!(1),
                    actual: json!(2),
                    location: None,
                    suggestion: None,
                }],
            },
            _ => Judgement::Accepted { checks, findings: Vec::new() },
        };
        Input::Judged { call, judge, judgement, used: Used::default(), record: Record::default() }
    }

    fn remedy(&mut self) -> Option<Remedy> {
        Some(match self.chance.below(6) {
            0 => return None,
            1 => Remedy::RetryAfter(self.chance.below(2_000) as u32),
            2 => Remedy::AskPerson("which?".to_owned()),
            3 => Remedy::UseSkill("update".to_owned()),
            _ => Remedy::RetryWith(json!({ "x": self.chance.below(5) })),
        })
    }

    /// The component of the verifier that is bound to everything.
    pub(super) fn verifier() -> Digest {
        component("verifier")
    }
}
