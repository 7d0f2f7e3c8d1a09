//! Asks: when a person is asked, and what follows from the answer.

use checkrein_contract::Digest;
use checkrein_contract::ask::{Answer, Asked, Message, action_digest};
use checkrein_contract::event::{Closing, ComponentCard, Ended, Event, Person};
use checkrein_contract::id::{AskId, CallId, SubgoalId};
use checkrein_contract::manifest::Effects;
use checkrein_contract::record::Record;
use checkrein_contract::task::ATTEMPTS_MAX;
use serde_json::{Map, Value, json};

use crate::state::{AskState, Phase, State};
use crate::{action, amend};

/// Asks, or, where the run waits for nobody, closes the subgoal as it would have been.
pub(crate) fn ask(state: &State, id: &SubgoalId, about: Asked, question: String) -> Vec<Event> {
    let person = state.setup.as_ref().map(|setup| setup.person).unwrap_or_default();
    let number = AskId((state.asks.len() + 1).to_string());
    let opened =
        |about| Event::AskOpened { ask: number, subgoal: id.clone(), about, question: question.clone() };
    match (person, about) {
        (Person::Never | Person::Approvals, Asked::HandOver { because }) => vec![close(id, *because)],
        (Person::Never, about) => {
            let question = question.clone();
            vec![opened(about), close(id, Closing::NeedsPerson { question })]
        }
        (Person::Approvals | Person::Always, about) => vec![opened(about)],
    }
}

fn close(subgoal: &SubgoalId, closing: Closing) -> Event {
    Event::SubgoalClosed { subgoal: subgoal.clone(), closing }
}

/// A subgoal that does not get on by itself.
pub(crate) fn hand_over(state: &State, id: &SubgoalId, because: Closing) -> Vec<Event> {
    let why = match &because {
        Closing::AttemptsUsed { attempts } => format!("{attempts} attempts were not enough"),
        Closing::SameReason { reasons } => {
            let first = reasons.first().map(|reason| format!(": {} of {}", reason.rule, reason.verifier));
            format!("it was rejected for the same reason twice in a row{}", first.unwrap_or_default())
        }
        Closing::Unverified { verifier, reason } => {
            format!("`{verifier}` could not judge what came out: {reason}")
        }
        Closing::Interrupted { call, times } => {
            format!("the host ended {times} times while the call {call} was made, and may end by it")
        }
        _ => "it does not get on by itself".to_owned(),
    };
    let question = format!("{why}; how is it to go on?");
    ask(state, id, Asked::HandOver { because: Box::new(because) }, question)
}

/// The approval that a call of this skill with these arguments needs, and whether it is there.
pub(crate) enum Permit {
    /// None is needed.
    Free,
    /// This one, which is used up by the call.
    By(AskId),
    /// A person must be asked.
    Ask(Vec<Event>),
}

/// Whether a call may be made. One that cannot be taken back needs an approval of exactly this
/// action, that was not used and still holds.
pub(crate) fn permit(
    state: &State,
    id: &SubgoalId,
    card: &ComponentCard,
    args: &Map<String, Value>,
) -> Permit {
    if action::effects(state, card) != Effects::Irreversible {
        return Permit::Free;
    }
    let action = digest_of(state, id, card, args);
    let held = state.subgoal(id).approval.as_ref().filter(|approval| approval.action == action);
    match held {
        Some(approval) if approval.until.is_none_or(|until| state.now <= until) => {
            Permit::By(approval.ask.clone())
        }
        expired => {
            let again = if expired.is_some() { " (the approval given before has expired)" } else { "" };
            let skill = card.name().to_owned();
            let question = format!("may `{skill}` be called? It cannot be taken back{again}");
            let about = Asked::Approval { action, skill, component: card.component, args: args.clone() };
            Permit::Ask(ask(state, id, about, question))
        }
    }
}

/// Whether a person approved of this very action at some time.
pub(crate) fn was_approved(
    state: &State,
    id: &SubgoalId,
    card: &ComponentCard,
    args: &Map<String, Value>,
) -> bool {
    let wanted = digest_of(state, id, card, args);
    let approves = |ask: &AskState| match (&ask.about, &ask.answer) {
        (Asked::Approval { action, .. }, Some(Answer::Approved { .. })) => *action == wanted,
        _ => false,
    };
    state.asks.values().any(approves)
}

/// What an approval binds to: the action, and all that the call can see.
fn digest_of(state: &State, id: &SubgoalId, card: &ComponentCard, args: &Map<String, Value>) -> Digest {
    let goal = state.subgoal(id);
    let task = state.setup.iter().flat_map(|setup| &setup.task.inputs);
    let mut inputs: Vec<(String, Digest)> =
        task.map(|input| (format!("in/{}", input.file), input.digest)).collect();
    let files = state.artifacts_in_scope(goal).into_iter();
    inputs.extend(files.map(|(path, digest)| (format!("artifacts/{path}"), digest)));
    let facts = goal.scope.iter().filter_map(|id| state.facts.get(id));
    inputs.extend(facts.map(|fact| (format!("fact/{}", fact.entry.id), fact.entry.content)));
    action_digest(card.name(), &card.component, args, &inputs)
}

/// Whether it happened, a person is asked about a call that cannot simply be repeated.
pub(crate) fn about_unknown(state: &State, id: &SubgoalId, call: &CallId) -> Vec<Event> {
    let skill = state.calls.get(call).map(|call| call.skill.as_str()).unwrap_or_default();
    let question = format!("the host ended while `{skill}` was called: did it happen?");
    ask(state, id, Asked::CallUnknown { call: call.clone() }, question)
}

/// Why nothing would follow from a letter; `None` if something does.
pub fn refusal(state: &State, message: &Message) -> Option<String> {
    match message {
        Message::Answer { ask, answer } => not_answered(state, ask, answer),
        Message::Cancel if state.ended.is_some() => Some("the run has ended".to_owned()),
        Message::Cancel => None,
        Message::Amend { amendment } => amend::refusal(state, amendment),
        Message::Unreadable { why } => Some(format!("it cannot be read: {why}")),
    }
}

fn not_answered(state: &State, id: &AskId, answer: &Answer) -> Option<String> {
    let Some(ask) = state.asks.get(id) else { return Some(format!("there is no ask {id}")) };
    if let Some(before) = &ask.answer {
        return Some(format!("ask {id} was answered already: {}", before.as_str()));
    }
    if state.ended.is_some()
        || !matches!(&state.subgoal(&ask.subgoal).phase, Phase::Asking(open) if open == id)
    {
        return Some(format!("ask {id} is not open any more"));
    }
    if !ask.about.takes(answer) {
        return Some(format!(
            "ask {id} is {}, and `{}` answers no such",
            with_article(&ask.about),
            answer.as_str()
        ));
    }
    match answer {
        Answer::Args { args } => no_attempt(state, ask).or_else(|| unfit(state, ask, args)),
        Answer::Retry if !keeps_its_attempt(ask) => no_attempt(state, ask),
        Answer::Said { .. } => no_attempt(state, ask),
        _ => None,
    }
}

fn with_article(about: &Asked) -> &'static str {
    match about {
        Asked::Question => "a question",
        Asked::Approval { .. } => "an approval",
        Asked::CallUnknown { .. } => "about a call of which it is not known whether it happened",
        Asked::HandOver { .. } => "a hand-over",
    }
}

/// Whether to try again is to go on with the attempt that is under way.
fn keeps_its_attempt(ask: &AskState) -> bool {
    let goes_on =
        |closing: &Closing| matches!(closing, Closing::Unverified { .. } | Closing::Interrupted { .. });
    matches!(&ask.about, Asked::HandOver { because } if goes_on(because))
}

fn no_attempt(state: &State, ask: &AskState) -> Option<String> {
    let used = state.subgoal(&ask.subgoal).attempts;
    (used >= ATTEMPTS_MAX).then(|| {
        format!(
            "`{}` has used {used} attempts, and no subgoal has more than {ATTEMPTS_MAX}: give up, or amend the task",
            ask.subgoal
        )
    })
}

/// Arguments that a person states are checked as a planner's are, and before they are taken: a slip
/// of the pen costs nothing.
fn unfit(state: &State, ask: &AskState, args: &Map<String, Value>) -> Option<String> {
    let goal = state.subgoal(&ask.subgoal);
    let last = goal.calls.last().and_then(|call| state.calls.get(call)).map(|call| call.skill.clone());
    let best = || goal.assessed.iter().find(|assessed| assessed.score > 0).map(|one| one.skill.clone());
    let Some(skill) = last.or_else(best) else {
        return Some(format!(
            "no skill applies to `{}`, so there is none to call with arguments",
            ask.subgoal
        ));
    };
    let proposed = json!({ "action": "call", "skill": skill, "args": args });
    let problems = action::check(state, &ask.subgoal, &proposed).err()?;
    let told: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
    Some(format!("`{skill}` cannot be called with these arguments: {}", told.join("; ")))
}

/// What follows from an answer that is not refused.
pub(crate) fn answered(state: &State, id: &AskId, answer: &Answer, by: &str) -> Vec<Event> {
    let Some(ask) = state.asks.get(id) else { return Vec::new() };
    let answered = Event::AskAnswered { ask: id.clone(), answer: answer.clone(), by: by.to_owned() };
    let next = match (&ask.about, answer) {
        (_, Answer::GiveUp { reason }) => {
            let reason = format!("a person gave it up: {reason}");
            Some(close(&ask.subgoal, Closing::GaveUp { reason }))
        }
        (Asked::CallUnknown { call }, Answer::Happened { outcome }) => Some(Event::CallEnded {
            call: call.clone(),
            ended: match outcome {
                None => Ended::Happened,
                Some(attested) => Ended::Outcome {
                    outcome: attested.outcome,
                    drafts: attested.drafts.clone(),
                    artifacts: Vec::new(),
                },
            },
            log: None,
            record: Record::default(),
            attested: outcome.is_some(),
        }),
        _ => None,
    };
    std::iter::once(answered).chain(next).collect()
}
