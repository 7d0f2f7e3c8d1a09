//! How each effect is performed. Each future owns what it needs: nothing of the state is shared
//! with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use checkrein_contract::Digest;
use checkrein_contract::digest::canonical;
use checkrein_contract::event::{Assessed, ComponentCard, Draft, Ended, Judge, Judgement};
use checkrein_contract::id::{CallId, FactId, SubgoalId};
use checkrein_contract::interface::{
    Assessment, Body, Call, Cause, Fact, Failure, Mishap, Outcome, Subgoal, Submission, Verdict,
};
use checkrein_contract::limits::{LimitKey, Used};
use checkrein_contract::port::{
    BoxFuture, End, Execution, FactSource, NoFacts, NoObserver, Observer, Ran, Setting, StorageError, Tree,
};
use checkrein_contract::record::Record;
use checkrein_contract::task::{InputFile, SubgoalSpec};
use serde_json::{Map, Value, json};

use super::{DriveError, World};
use crate::action::read_only;
use crate::effect::{Effect, Input};
use crate::pool::{Contents, PoolView};
use crate::state::{CallState, State};
use crate::{criteria, gateway, planner, reference};

/// What comes of an effect.
pub(super) type Work = BoxFuture<'static, Result<Input, DriveError>>;

/// The work of an effect.
pub(super) fn perform(
    world: &World,
    contents: &Contents,
    state: &State,
    effect: &Effect,
) -> Result<Work, DriveError> {
    let context = Context { world, contents, state };
    Ok(match effect {
        Effect::Resolve { subgoal } => context.resolve(subgoal),
        Effect::Assess { subgoal, skills } => context.assess(subgoal, skills),
        Effect::Propose { subgoal } => context.propose(subgoal),
        Effect::Execute { call } => context.execute(call)?,
        Effect::Verify { call, judge, .. } => context.verify(call, judge)?,
        Effect::Recover { call } => context.recover(call),
        Effect::Evaluate { subgoal } => context.evaluate(subgoal),
        // Time is the driver's.
        Effect::WaitUntil { subgoal, .. } => {
            Box::pin(std::future::ready(Ok(Input::TimerReached { subgoal: subgoal.clone() })))
        }
    })
}

/// How a call ended, and what is to be logged of it.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// How it ended, with the outcome put into a blob.
    pub(crate) ended: Ended,
    /// What it used.
    pub(crate) used: Used,
    /// Its log, if it wrote any.
    pub(crate) log: Option<Digest>,
    /// What it did at its walls.
    pub(crate) record: Record,
}

/// Makes a call, as it stands in the state; executed again over what was `recorded` of it, if that is
/// given.
///
/// # Errors
///
/// If what the call sees cannot be laid out; later, if the host could not run it.
pub(crate) fn executes(
    world: &World,
    contents: &Contents,
    state: &State,
    id: &CallId,
    recorded: Option<Arc<Record>>,
) -> Result<BoxFuture<'static, Result<Made, DriveError>>, DriveError> {
    let context = Context { world, contents, state };
    let call = &state.calls[id];
    let card = context.card(call)?;
    let input = context.input_tree()?;
    let artifacts = context.artifact_tree(call)?;
    let observer = world.watcher.observer(id, &call.subgoal);
    let facts = Arc::new(context.scope_view(call));
    let mut setting = context.setting(&call.subgoal, card, call.seed, facts.clone(), observer);
    setting.input = Some(input.path().to_owned());
    setting.artifacts = Some(artifacts.path().to_owned());
    setting.limits = setting.limits.with(LimitKey::Fuel, call.fuel).with(LimitKey::Wall, call.wall_ms);
    setting.recorded = recorded;
    let request = context.call(id, call, card);
    let (guests, blobs) = (world.guests.clone(), world.blobs.clone());
    let name = call.skill.clone();
    Ok(Box::pin(async move {
        let ran = guests.execute(setting, request).await;
        drop((input, artifacts));
        facts.whole()?;
        let log = if ran.log.is_empty() { None } else { Some(blobs.put(ran.log.as_bytes())?) };
        let ended = ended(&name, ran.end, &ran.log, |bytes| blobs.put(bytes))?;
        Ok(Made { ended, used: ran.used, log, record: ran.record })
    }))
}

struct Context<'c> {
    world: &'c World,
    contents: &'c Contents,
    state: &'c State,
}

impl Context<'_> {
    fn propose(&self, subgoal: &SubgoalId) -> Work {
        let action = planner::propose(self.state, subgoal).to_json();
        let subgoal = subgoal.clone();
        Box::pin(std::future::ready(Ok(Input::Proposed { subgoal, action, tokens: 0 })))
    }

    fn resolve(&self, subgoal: &SubgoalId) -> Work {
        let (scope, artifacts) = self.state.scope(subgoal);
        let lookup = ScopeLookup {
            inputs: self.inputs().to_vec(),
            parameters: self.parameters(),
            facts: self.view(&scope),
            artifacts: self.state.artifacts_of(&artifacts),
        };
        let args = self.state.spec(subgoal).args.clone();
        let subgoal = subgoal.clone();
        Box::pin(async move {
            let args = reference::resolve(&args, &lookup);
            lookup.facts.whole()?;
            Ok(Input::Resolved { subgoal, scope, artifacts, args })
        })
    }

    fn assess(&self, subgoal: &SubgoalId, skills: &[String]) -> Work {
        let asked = self.asked(subgoal);
        let settings = skills.iter().filter_map(|name| {
            let card = self.state.skill(name)?;
            Some((card.clone(), self.setting(subgoal, card, 0, Arc::new(NoFacts), Arc::new(NoObserver))))
        });
        let settings: Vec<(ComponentCard, Setting)> = settings.collect();
        let named = self.state.spec(subgoal).skill.is_some();
        let (guests, subgoal) = (self.world.guests.clone(), subgoal.clone());
        Box::pin(async move {
            let mut assessed = Vec::new();
            for (card, setting) in settings {
                let ran = guests.assess(setting, asked.clone()).await;
                let record = recorded(&ran.end, ran.record);
                assessed.push(Assessed { record, ..assessment(&card, ran.end, named)? });
            }
            Ok(Input::Assessed { subgoal, assessed })
        })
    }

    fn execute(&self, id: &CallId) -> Result<Work, DriveError> {
        let made = executes(self.world, self.contents, self.state, id, None)?;
        let call = id.clone();
        Ok(Box::pin(async move {
            let Made { ended, used, log, record } = made.await?;
            Ok(Input::Executed { call, ended, used, log, record })
        }))
    }

    fn verify(&self, id: &CallId, judge: &Judge) -> Result<Work, DriveError> {
        let call = &self.state.calls[id];
        let skill = self.card(call)?;
        let (card, settings) = match judge {
            Judge::Verifier { name, binding, .. } => {
                let bound = self.state.setup.as_ref().and_then(|setup| setup.bindings.get(*binding));
                let card = self.state.verifier(name).ok_or_else(|| missing(name))?;
                (card, bound.map_or(json!({}), |bound| bound.settings.clone()))
            }
            Judge::Own { .. } | Judge::Gateway => (skill, skill.settings.clone()),
        };
        let input = self.input_tree()?;
        let artifacts = self.artifact_tree(call)?;
        let files: Vec<(String, Digest)> =
            gateway::submitted(call).1.iter().map(|file| (file.path.clone(), file.digest)).collect();
        let work = self.world.blobs.tree(&files)?;
        let facts = Arc::new(self.scope_view(call));
        let mut setting = self.setting(&call.subgoal, card, call.seed, facts.clone(), Arc::new(NoObserver));
        setting.input = Some(input.path().to_owned());
        setting.artifacts = Some(artifacts.path().to_owned());
        setting.work = Some(work.path().to_owned());
        let submission = self.submission(id, call, skill, settings)?;
        let guests = self.world.guests.clone();
        let (id, judge) = (id.clone(), judge.clone());
        Ok(Box::pin(async move {
            let ran = guests.verify(setting, submission).await;
            drop((input, artifacts, work));
            facts.whole()?;
            let (used, record) = (ran.used, recorded(&ran.end, ran.record.clone()));
            Ok(Input::Judged { call: id, judgement: judgement(&judge, ran)?, judge, used, record })
        }))
    }

    fn recover(&self, id: &CallId) -> Work {
        let call = &self.state.calls[id];
        let Ok(card) = self.card(call) else {
            let error = missing(&call.skill);
            return Box::pin(std::future::ready(Err(error)));
        };
        let goal = self.state.subgoal(&call.subgoal);
        let earlier = goal.calls.iter().take_while(|other| *other != id);
        let mishap = Mishap {
            subgoal: self.asked(&call.subgoal),
            call: self.call(id, call, card),
            cause: self.cause(call),
            earlier: earlier.map(|other| self.cause(&self.state.calls[other])).collect(),
        };
        let setting = self.setting(&call.subgoal, card, call.seed, Arc::new(NoFacts), Arc::new(NoObserver));
        let (guests, id, name) = (self.world.guests.clone(), id.clone(), call.skill.clone());
        Box::pin(async move {
            let ran = guests.recover(setting, mishap).await;
            let record = recorded(&ran.end, ran.record);
            let (diagnosis, remedy) = match ran.end {
                End::Returned(advice) => (advice.diagnosis, Some(advice.remedy)),
                End::Fault(detail) => return Err(DriveError::Host { component: name, detail }),
                End::Storage(error) => return Err(error.into()),
                End::Limited(hit) => (format!("its recovery ran into the limit `{}`", hit.limit), None),
                End::Trapped(message) => (format!("its recovery trapped: {message}"), None),
                End::Invalid(problem) => {
                    (format!("its recovery returned what it may not: {}", problem.message), None)
                }
            };
            Ok(Input::Recovered { call: id, diagnosis, remedy, record })
        })
    }

    fn evaluate(&self, subgoal: &SubgoalId) -> Work {
        let spec = self.state.spec(subgoal);
        let scope = self.state.subgoal(subgoal).scope.iter().map(|id| &self.state.facts[id]);
        let facts = scope.chain(self.state.own_facts(subgoal));
        // The newest of each subject, and then only those that count.
        let view = Arc::new(PoolView::new(facts, self.contents.clone()).at_least(spec.level));
        let (criteria, parameters) = (spec.criteria.clone(), self.parameters());
        let subgoal = subgoal.clone();
        let work = tokio::task::spawn_blocking(move || {
            let source: Arc<dyn FactSource> = view.clone();
            let criteria = criteria::evaluate(&criteria, &source, &parameters);
            view.whole().map(|()| criteria)
        });
        Box::pin(async move {
            let criteria = work.await.map_err(|error| DriveError::Host {
                component: "a criterion".to_owned(),
                detail: error.to_string(),
            })??;
            Ok(Input::Evaluated { subgoal, criteria })
        })
    }

    fn card(&self, call: &CallState) -> Result<&ComponentCard, DriveError> {
        self.state.skill(&call.skill).ok_or_else(|| missing(&call.skill))
    }

    fn setting(
        &self,
        subgoal: &SubgoalId,
        card: &ComponentCard,
        seed: u64,
        facts: Arc<dyn FactSource>,
        observer: Arc<dyn Observer>,
    ) -> Setting {
        // Whatever runs, what its subgoal has left of its wall time bounds it.
        let left = self.state.wall_left(subgoal).map_or(u64::MAX, |(_, left)| left);
        let wall = card.limits.get(LimitKey::Wall).min(left);
        Setting {
            component: card.component,
            limits: card.limits.clone().with(LimitKey::Wall, wall),
            input: None,
            artifacts: None,
            work: None,
            granted: if read_only(self.state) { card.granted.reading() } else { card.granted.clone() },
            facts,
            observer,
            clock: self.state.setup.as_ref().map(|setup| setup.clock).unwrap_or_default(),
            seed,
            recorded: None,
        }
    }

    fn inputs(&self) -> &[InputFile] {
        self.state.setup.as_ref().map_or(&[], |setup| &setup.task.inputs)
    }

    fn parameters(&self) -> Map<String, Value> {
        self.state.setup.as_ref().map(|setup| setup.task.parameters.clone()).unwrap_or_default()
    }

    fn input_tree(&self) -> Result<Box<dyn Tree>, StorageError> {
        let files: Vec<(String, Digest)> =
            self.inputs().iter().map(|input| (input.file.clone(), input.digest)).collect();
        self.world.blobs.tree(&files)
    }

    fn artifact_tree(&self, call: &CallState) -> Result<Box<dyn Tree>, StorageError> {
        let files = self.state.artifacts_in_scope(self.state.subgoal(&call.subgoal));
        self.world.blobs.tree(&files.into_iter().collect::<Vec<_>>())
    }

    fn view(&self, facts: &[FactId]) -> PoolView {
        PoolView::new(facts.iter().map(|id| &self.state.facts[id]), self.contents.clone())
    }

    fn scope_view(&self, call: &CallState) -> PoolView {
        self.view(&self.state.subgoal(&call.subgoal).scope)
    }

    fn asked(&self, id: &SubgoalId) -> Subgoal {
        let spec: &SubgoalSpec = self.state.spec(id);
        Subgoal {
            id: id.to_string(),
            goal: spec.goal.clone(),
            args: Value::Object(self.state.subgoal(id).args.clone()),
            evidence: spec.evidence.clone(),
            criteria: spec.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
        }
    }

    fn call(&self, id: &CallId, call: &CallState, card: &ComponentCard) -> Call {
        Call {
            id: id.to_string(),
            args: Value::Object(call.args.clone()),
            attempt: call.attempt,
            seed: call.seed,
            settings: card.settings.clone(),
        }
    }

    fn submission(
        &self,
        id: &CallId,
        call: &CallState,
        skill: &ComponentCard,
        settings: Value,
    ) -> Result<Submission, DriveError> {
        let Some(Ended::Outcome { outcome, .. }) = &call.ended else {
            return Err(DriveError::Host {
                component: call.skill.clone(),
                detail: format!("`{id}` has no outcome"),
            });
        };
        let outcome: Outcome = (*self.contents.outcome(outcome)?).clone();
        let view = self.scope_view(call);
        let named = reference::subjects(&self.state.spec(&call.subgoal).args);
        let inputs: Result<Vec<Option<Fact>>, StorageError> =
            named.iter().map(|subject| view.on(subject)).collect();
        Ok(Submission {
            skill: call.skill.clone(),
            version: skill.manifest.version.clone(),
            subgoal: self.asked(&call.subgoal),
            body: Body::Performed { call: self.call(id, call, skill), outcome },
            inputs: inputs?.into_iter().flatten().collect(),
            settings,
        })
    }

    fn cause(&self, call: &CallState) -> Cause {
        match &call.ended {
            Some(Ended::Failed { failure }) => Cause::Failed(failure.clone()),
            Some(Ended::Limited { hit }) => Cause::Limited(hit.clone()),
            Some(Ended::Trapped { message }) => Cause::Trapped(message.clone()),
            Some(Ended::Invalid { problem }) => Cause::Other(problem.message.clone()),
            Some(Ended::Outcome { .. }) if call.accepted => {
                let unmet =
                    self.state.subgoal(&call.subgoal).criteria.iter().filter(|criterion| !criterion.holds);
                Cause::Unmet(unmet.map(|criterion| criterion.text.clone()).collect())
            }
            Some(Ended::Outcome { .. }) => match call.verdicts.last() {
                Some((_, Judgement::Rejected { findings, .. })) => Cause::Rejected(findings.clone()),
                _ => Cause::Other("it was not verified".to_owned()),
            },
            Some(Ended::Happened) => {
                Cause::Other("a person says that it happened; what came out of it is not known".to_owned())
            }
            Some(Ended::Cancelled) => Cause::Other("it was cancelled".to_owned()),
            None => Cause::Other("it has not ended".to_owned()),
        }
    }
}

struct ScopeLookup {
    inputs: Vec<InputFile>,
    parameters: Map<String, Value>,
    facts: PoolView,
    artifacts: BTreeMap<String, Digest>,
}

impl reference::Lookup for ScopeLookup {
    fn input(&self, name: &str) -> Option<String> {
        self.inputs.iter().find(|input| input.name == name).map(|input| input.file.clone())
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        self.parameters.get(name).cloned()
    }

    fn fact(&self, subject: &str) -> Option<Fact> {
        self.facts.find(subject, None, 1).into_iter().find(|fact| fact.subject == subject)
    }

    fn has_artifact(&self, path: &str) -> bool {
        self.artifacts.contains_key(path)
    }
}

fn missing(component: &str) -> DriveError {
    DriveError::Host {
        component: component.to_owned(),
        detail: "it is not among the components of the run".to_owned(),
    }
}

/// What a trigger, a verification or a recovery did at its walls, with the limit that ended it: what
/// is said of its ending is words.
fn recorded<T>(end: &End<T>, record: Record) -> Record {
    let limit = match end {
        End::Limited(hit) => Some(hit.clone()),
        End::Returned(_) | End::Trapped(_) | End::Invalid(_) | End::Storage(_) | End::Fault(_) => None,
    };
    Record { limit, ..record }
}

/// A trigger's answer, capped by the grant, without its record. A skill that the task names applies,
/// whatever score its trigger gives; a trigger that fails leaves its skill out, and says why.
fn assessment(card: &ComponentCard, end: End<Assessment>, named: bool) -> Result<Assessed, DriveError> {
    let skill = card.name().to_owned();
    let left_out = |reason: String| Assessed {
        skill: card.name().to_owned(),
        score: 0,
        reason,
        args: None,
        record: Record::default(),
    };
    Ok(match end {
        End::Returned(said) => {
            let score = if named { said.score.max(1) } else { said.score };
            let args = match said.args {
                Some(Value::Object(args)) => Some(args),
                None => None,
                Some(_) => {
                    return Ok(left_out("its trigger gave arguments that are not an object".to_owned()));
                }
            };
            Assessed {
                skill,
                score: score.min(card.max_score),
                reason: said.reason,
                args,
                record: Record::default(),
            }
        }
        End::Limited(hit) => left_out(format!(
            "its trigger ran into the limit `{}` ({} of {})",
            hit.limit, hit.used, hit.allowed
        )),
        End::Trapped(message) => left_out(format!("its trigger trapped: {message}")),
        End::Invalid(problem) => {
            left_out(format!("its trigger returned what it may not: {}", problem.message))
        }
        End::Fault(detail) => return Err(DriveError::Host { component: skill, detail }),
        End::Storage(error) => return Err(error.into()),
    })
}

/// How a call ended, with the outcome put into quarantine: into a blob that no call can read.
fn ended(
    skill: &str,
    end: End<Execution>,
    log: &str,
    put: impl FnOnce(&[u8]) -> Result<Digest, StorageError>,
) -> Result<Ended, DriveError> {
    Ok(match end {
        End::Returned(Execution { result: Ok(outcome), artifacts }) => {
            let drafts = outcome.facts.iter().map(|fact| Draft {
                subject: fact.subject.clone(),
                kind: fact.kind.clone(),
                content: Digest::of_json(&fact.content),
                source: fact.source.clone(),
                supersedes: fact.supersedes.clone(),
            });
            let drafts = drafts.collect();
            // Artifacts by digest are part of what the outcome is.
            let files: BTreeMap<&str, Digest> =
                artifacts.iter().map(|file| (file.path.as_str(), file.digest)).collect();
            let mut whole = json!(outcome);
            whole["artifact_digests"] = json!(files);
            let outcome = put(canonical(&whole).as_bytes())?;
            Ended::Outcome { outcome, drafts, artifacts }
        }
        End::Returned(Execution { result: Err(failure), .. }) => Ended::Failed { failure },
        End::Limited(hit) => Ended::Limited { hit },
        // A guest's panic says what and where in its log; the engine only says that it trapped.
        End::Trapped(message) => match log.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => Ended::Trapped { message: format!("{message}; last in its log: {last}") },
            None => Ended::Trapped { message },
        },
        End::Invalid(problem) => Ended::Invalid { problem },
        End::Fault(detail) => return Err(DriveError::Host { component: skill.to_owned(), detail }),
        End::Storage(error) => return Err(error.into()),
    })
}

/// What a verification came to: anything but a verdict is `unavailable`.
fn judgement(judge: &Judge, ran: Ran<Result<Verdict, Failure>>) -> Result<Judgement, DriveError> {
    let unavailable = |reason: String| Judgement::Unavailable { reason };
    Ok(match ran.end {
        End::Returned(Ok(verdict)) if verdict.rejects() => {
            Judgement::Rejected { checks: verdict.checks, findings: verdict.findings }
        }
        End::Returned(Ok(verdict)) => {
            Judgement::Accepted { checks: verdict.checks, findings: verdict.findings }
        }
        End::Returned(Err(failure)) => unavailable(format!("{}: {}", failure.kind.as_str(), failure.message)),
        End::Limited(hit) => {
            unavailable(format!("it ran into the limit `{}` ({} of {})", hit.limit, hit.used, hit.allowed))
        }
        End::Trapped(message) => unavailable(format!("it trapped: {message}")),
        End::Invalid(problem) => unavailable(format!("it returned what it may not: {}", problem.message)),
        End::Fault(detail) => return Err(DriveError::Host { component: judge.name().to_owned(), detail }),
        End::Storage(error) => return Err(error.into()),
    })
}
