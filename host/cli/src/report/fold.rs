//! From the events of a run to its [`RunView`].

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use checkrein_contract::Digest;
use checkrein_contract::event::{Event, Logged, Setup};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp};
use checkrein_contract::port::Blobs;
use checkrein_contract::record::Record;
use checkrein_contract::task::{Stage, Task};

use super::view::{
    AdviceView, CallView, ContradictionView, History, RefusalView, RunView, StageView, SubgoalView,
    TriggerView, VerdictView,
};

mod accept;
mod course;

impl RunView {
    /// Folds the events of one run. Each outcome with facts, and each figure, is read once.
    ///
    /// # Errors
    ///
    /// If the events do not begin with `run-started`, name a call or a subgoal that was never
    /// opened, or a blob of an accepted outcome cannot be read; or if a file of an accepted outcome
    /// would lie outside of the report's folder.
    pub fn fold(events: &[Logged], blobs: &dyn Blobs) -> Result<Self> {
        let Some((first, rest)) = events.split_first() else { bail!("the run has no events") };
        let Event::RunStarted { setup } = &first.event else {
            bail!("the run starts with `{}` and not with `run-started`", first.event.kind());
        };
        let view = started(setup, first)?;
        let mut fold =
            Fold { view, subgoals: HashMap::new(), calls: HashMap::new(), amended_by: None, blobs };
        for (stage_at, stage) in fold.view.stages.iter().enumerate() {
            for (at, subgoal) in stage.subgoals.iter().enumerate() {
                fold.subgoals.insert(subgoal.id.clone(), (stage_at, at));
            }
        }
        for logged in rest {
            fold.apply(logged)
                .with_context(|| format!("event {} (`{}`)", logged.seq, logged.event.kind()))?;
            fold.view.head = logged.digest;
            fold.view.last = logged.at;
            fold.view.events += 1;
        }
        Ok(fold.view)
    }
}

fn started(setup: &Setup, first: &Logged) -> Result<RunView> {
    let digest = digest_of(&setup.task)?;
    Ok(RunView {
        run: setup.run.clone(),
        task: setup.task.clone(),
        task_digest: digest,
        first_task: digest,
        planner: setup.planner.clone(),
        engine: setup.engine.clone(),
        engines: vec![setup.engine.clone()],
        apart: setup.apart,
        dry: setup.dry,
        person: setup.person,
        components: setup.skills.iter().chain(&setup.verifiers).cloned().collect(),
        replaced: Vec::new(),
        started: first.at,
        last: first.at,
        status: None,
        reason: String::new(),
        stopped: None,
        driver: None,
        head: first.digest,
        events: 1,
        stages: setup.task.stages.iter().map(stage_view).collect(),
        facts: Vec::new(),
        by_subject: Default::default(),
        artifacts: Vec::new(),
        contradictions: Vec::new(),
        asks: Vec::new(),
        amendments: Vec::new(),
        resumes: Vec::new(),
        refused: Vec::new(),
        tokens: 0,
        export: None,
        history: History::default(),
    })
}

/// The digest of the task's JSON, as a log has it.
fn digest_of(task: &Task) -> Result<Digest> {
    Ok(Digest::of_json(&serde_json::to_value(task).context("the task")?))
}

fn stage_view(stage: &Stage) -> StageView {
    let subgoals = stage.subgoals.iter().map(|spec| SubgoalView::new(spec.id.clone(), spec.goal.clone()));
    StageView {
        id: stage.id.clone(),
        title: stage.title.clone().unwrap_or_else(|| stage.id.to_string()),
        entered: false,
        met: None,
        subgoals: subgoals.collect(),
    }
}

struct Fold<'b> {
    view: RunView,
    /// Stage and place in it.
    subgoals: HashMap<SubgoalId, (usize, usize)>,
    calls: HashMap<CallId, Place>,
    /// Who put the letter in the inbox that the next amendment follows from.
    amended_by: Option<String>,
    blobs: &'b dyn Blobs,
}

/// Where a call is in the view.
#[derive(Clone)]
enum Place {
    /// In this subgoal, at this place.
    Now(SubgoalId, usize),
    /// Among those that an amendment abandoned.
    Before(usize),
}

impl Fold<'_> {
    fn apply(&mut self, logged: &Logged) -> Result<()> {
        match &logged.event {
            Event::RunStarted { .. } => bail!("a run starts once"),
            Event::RunEnded { .. }
            | Event::RunStopped { .. }
            | Event::RunResumed { .. }
            | Event::AskOpened { .. }
            | Event::AskAnswered { .. }
            | Event::LetterTaken { .. }
            | Event::TaskAmended { .. }
            | Event::DependentsReopened { .. } => self.apply_to_course(logged)?,
            Event::StageEntered { stage } => {
                self.stage(stage.as_str())?.entered = true;
            }
            Event::StageEvaluated { stage, met } => self.stage(stage.as_str())?.met = Some(*met),
            Event::SubgoalOpened { .. }
            | Event::SubgoalClosed { .. }
            | Event::SkillsAssessed { .. }
            | Event::ActionRefused { .. }
            | Event::CriteriaEvaluated { .. }
            | Event::CallIntended { .. } => self.apply_to_subgoal(logged)?,
            Event::CallUnknown { .. }
            | Event::CallEnded { .. }
            | Event::BudgetSettled { .. }
            | Event::VerdictGiven { .. }
            | Event::OutcomeRejected { .. }
            | Event::RemedyGiven { .. } => self.apply_to_call(&logged.event)?,
            Event::OutcomeAccepted { call, facts, artifacts } => self.accept(call, facts, artifacts)?,
            Event::ContradictionFound { call, subject, current, other } => {
                let (call, subject, current) = (call.clone(), subject.clone(), current.clone());
                self.view.contradictions.push(ContradictionView { call, subject, current, other: *other });
            }
            Event::ActionProposed { tokens, .. } => self.view.tokens += tokens,
            Event::RestorePointSet { .. }
            | Event::LeaseTaken { .. }
            | Event::TokensReserved { .. }
            | Event::BudgetReserved { .. }
            | Event::TimerSet { .. }
            | Event::TimerReached { .. } => {}
        }
        Ok(())
    }

    fn apply_to_subgoal(&mut self, logged: &Logged) -> Result<()> {
        let at = logged.at;
        match &logged.event {
            Event::SubgoalOpened { subgoal, scope, args, .. } => {
                let view = self.subgoal(subgoal)?;
                view.opened = Some(at);
                view.scope.clone_from(scope);
                view.args.clone_from(args);
            }
            Event::SubgoalClosed { subgoal, closing } => {
                let view = self.subgoal(subgoal)?;
                view.closed = Some(at);
                view.closing = Some(closing.clone());
                self.drop_asks(subgoal);
            }
            Event::SkillsAssessed { subgoal, assessed } => {
                let seen = assessed.iter().filter(|one| !one.record.is_empty());
                let triggers = seen
                    .map(|one| TriggerView { skill: one.skill.clone(), record: one.record.clone() })
                    .collect();
                self.subgoal(subgoal)?.triggers = triggers;
            }
            Event::ActionRefused { subgoal, problems } => {
                self.subgoal(subgoal)?.refusals.push(RefusalView { at, problems: problems.clone() });
            }
            Event::CriteriaEvaluated { subgoal, criteria } => {
                self.subgoal(subgoal)?.criteria.clone_from(criteria)
            }
            Event::CallIntended { call, subgoal, .. } => {
                let view = intended(&logged.event, at)?;
                let calls = &mut self.subgoal(subgoal)?.calls;
                let place = calls.len();
                calls.push(view);
                self.calls.insert(call.clone(), Place::Now(subgoal.clone(), place));
            }
            other => bail!("`{}` is of no subgoal", other.kind()),
        }
        Ok(())
    }

    fn apply_to_call(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::CallUnknown { call } => self.call(call)?.unknown = true,
            Event::CallEnded { call, ended, log, record, attested } => {
                let view = self.call(call)?;
                view.record.clone_from(record);
                view.ended = Some(ended.clone());
                view.log = *log;
                view.attested = *attested;
            }
            Event::BudgetSettled { call, used } => self.call(call)?.used = Some(*used),
            Event::VerdictGiven { call, judge, judgement, used, record } => {
                let (judge, judgement, record) = (judge.clone(), judgement.clone(), record.clone());
                let verdict = VerdictView { judge, judgement, used: *used, record };
                self.call(call)?.verdicts.push(verdict);
            }
            Event::OutcomeRejected { call, reasons } => {
                let view = self.call(call)?;
                view.accepted = Some(false);
                view.reasons.clone_from(reasons);
            }
            Event::RemedyGiven { call, diagnosis, remedy, record } => {
                let (diagnosis, remedy) = (diagnosis.clone(), remedy.clone());
                self.call(call)?.advice = Some(AdviceView { diagnosis, remedy, record: record.clone() });
            }
            other => bail!("`{}` is of no call", other.kind()),
        }
        Ok(())
    }

    fn stage(&mut self, id: &str) -> Result<&mut StageView> {
        let found = self.view.stages.iter_mut().find(|stage| stage.id.as_str() == id);
        found.with_context(|| format!("the task has no stage `{id}`"))
    }

    fn subgoal(&mut self, id: &SubgoalId) -> Result<&mut SubgoalView> {
        let (stage, at) =
            self.subgoals.get(id).copied().with_context(|| format!("the task has no subgoal `{id}`"))?;
        Ok(&mut self.view.stages[stage].subgoals[at])
    }

    fn call(&mut self, id: &CallId) -> Result<&mut CallView> {
        let place = self.calls.get(id).cloned().with_context(|| format!("call {id} was never intended"))?;
        Ok(match place {
            Place::Now(subgoal, at) => &mut self.subgoal(&subgoal)?.calls[at],
            Place::Before(at) => &mut self.view.history.calls[at],
        })
    }
}

fn intended(event: &Event, at: Timestamp) -> Result<CallView> {
    let Event::CallIntended { call, subgoal, skill, version, component, args, attempt, seed, ask } = event
    else {
        bail!("`{}` intends no call", event.kind());
    };
    Ok(CallView {
        id: call.clone(),
        subgoal: subgoal.clone(),
        skill: skill.clone(),
        version: version.clone(),
        component: *component,
        args: args.clone(),
        attempt: *attempt,
        seed: *seed,
        at,
        ask: ask.clone(),
        unknown: false,
        ended: None,
        attested: false,
        used: None,
        log: None,
        record: Record::default(),
        verdicts: Vec::new(),
        accepted: None,
        reasons: Vec::new(),
        advice: None,
    })
}
