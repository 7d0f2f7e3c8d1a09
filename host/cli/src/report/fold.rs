//! From the events of a run to its [`RunView`].

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, Result, bail};
use checkrein_contract::Digest;
use checkrein_contract::event::{Ended, Event, FactEntry, Judgement, Logged, Setup, StoredArtifact};
use checkrein_contract::id::{CallId, SubgoalId, Timestamp, is_relative_path, is_segment};
use checkrein_contract::interface::Outcome;
use checkrein_contract::port::Blobs;
use checkrein_contract::record::Record;
use checkrein_contract::task::Stage;

use super::figure;
use super::view::{
    AdviceView, ArtifactView, CallView, CheckNote, ContradictionView, FactView, RefusalView, RunView,
    StageView, SubgoalView, TriggerView, VerdictView, VerifiedBy,
};

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
        let mut fold =
            Fold { view: started(setup, first)?, subgoals: HashMap::new(), calls: HashMap::new(), blobs };
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
    let task = serde_json::to_value(&setup.task).context("the task")?;
    Ok(RunView {
        run: setup.run.clone(),
        task: setup.task.clone(),
        task_digest: Digest::of_json(&task),
        planner: setup.planner.clone(),
        engine: setup.engine.clone(),
        apart: setup.apart,
        components: setup.skills.iter().chain(&setup.verifiers).cloned().collect(),
        started: first.at,
        last: first.at,
        status: None,
        reason: String::new(),
        head: first.digest,
        events: 1,
        stages: setup.task.stages.iter().map(stage_view).collect(),
        facts: Vec::new(),
        by_subject: Default::default(),
        artifacts: Vec::new(),
        contradictions: Vec::new(),
    })
}

fn stage_view(stage: &Stage) -> StageView {
    let subgoals = stage.subgoals.iter().map(|subgoal| SubgoalView {
        id: subgoal.id.clone(),
        goal: subgoal.goal.clone(),
        opened: None,
        closed: None,
        closing: None,
        args: Default::default(),
        scope: Vec::new(),
        triggers: Vec::new(),
        calls: Vec::new(),
        refusals: Vec::new(),
        criteria: Vec::new(),
        asks: Vec::new(),
    });
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
    /// Subgoal and place in it.
    calls: HashMap<CallId, (SubgoalId, usize)>,
    blobs: &'b dyn Blobs,
}

impl Fold<'_> {
    fn apply(&mut self, logged: &Logged) -> Result<()> {
        match &logged.event {
            Event::RunStarted { .. } => bail!("a run starts once"),
            Event::RunEnded { status, reason } => {
                self.view.status = Some(*status);
                self.view.reason.clone_from(reason);
            }
            Event::StageEntered { stage } => {
                self.stage(stage.as_str())?.entered = true;
            }
            Event::StageEvaluated { stage, met } => self.stage(stage.as_str())?.met = Some(*met),
            Event::SubgoalOpened { .. }
            | Event::SubgoalClosed { .. }
            | Event::SkillsAssessed { .. }
            | Event::ActionRefused { .. }
            | Event::CriteriaEvaluated { .. }
            | Event::AskOpened { .. }
            | Event::CallIntended { .. } => self.apply_to_subgoal(logged)?,
            Event::CallEnded { .. }
            | Event::BudgetSettled { .. }
            | Event::VerdictGiven { .. }
            | Event::OutcomeRejected { .. }
            | Event::RemedyGiven { .. } => self.apply_to_call(&logged.event)?,
            Event::OutcomeAccepted { call, facts, artifacts } => self.accept(call, facts, artifacts)?,
            Event::ContradictionFound { call, subject, current, other } => {
                let (call, subject, current) = (call.clone(), subject.clone(), current.clone());
                self.view.contradictions.push(ContradictionView { call, subject, current, other: *other });
            }
            Event::RestorePointSet { .. }
            | Event::ActionProposed { .. }
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
            Event::AskOpened { subgoal, question } => self.subgoal(subgoal)?.asks.push(question.clone()),
            Event::CallIntended { call, subgoal, .. } => {
                let view = intended(&logged.event, at)?;
                let calls = &mut self.subgoal(subgoal)?.calls;
                let place = calls.len();
                calls.push(view);
                self.calls.insert(call.clone(), (subgoal.clone(), place));
            }
            other => bail!("`{}` is of no subgoal", other.kind()),
        }
        Ok(())
    }

    fn apply_to_call(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::CallEnded { call, ended, log, record } => {
                let view = self.call(call)?;
                view.record.clone_from(record);
                view.ended = Some(ended.clone());
                view.log = *log;
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

    fn accept(&mut self, id: &CallId, facts: &[FactEntry], artifacts: &[StoredArtifact]) -> Result<()> {
        let call = self.call(id)?;
        call.accepted = Some(true);
        let (subgoal, skill, component) = (call.subgoal.clone(), call.skill.clone(), call.component);
        let checked = Checked::of(call);
        let outcome = outcome_of(call).filter(|_| !facts.is_empty());
        let outcome = outcome.map(|digest| self.outcome(&digest)).transpose()?;
        for entry in facts {
            let draft = outcome.as_ref().and_then(|outcome| outcome.facts.get(entry.index as usize));
            let draft = draft.with_context(|| format!("fact {} is not in the outcome of {id}", entry.id))?;
            let place = self.view.facts.len();
            self.view.by_subject.entry(entry.subject.clone()).or_default().push(place);
            self.view.facts.push(FactView {
                entry: entry.clone(),
                content: draft.content.clone(),
                skill: skill.clone(),
                component,
                call: id.clone(),
                subgoal: subgoal.clone(),
                verified_by: checked.fact(&entry.subject),
            });
        }
        for file in artifacts {
            check_place(&subgoal, file)?;
            self.view.artifacts.push(ArtifactView {
                file: file.clone(),
                subgoal: subgoal.clone(),
                call: id.clone(),
                verified_by: checked.file(&file.path),
                figure: figure::read(file, self.blobs)?,
            });
        }
        Ok(())
    }

    fn outcome(&self, digest: &Digest) -> Result<Outcome> {
        let bytes = self.blobs.get(digest)?;
        serde_json::from_slice(&bytes).with_context(|| format!("the outcome {digest}"))
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
        let (subgoal, at) =
            self.calls.get(id).cloned().with_context(|| format!("call {id} was never intended"))?;
        Ok(&mut self.subgoal(&subgoal)?.calls[at])
    }
}

fn intended(event: &Event, at: Timestamp) -> Result<CallView> {
    let Event::CallIntended { call, subgoal, skill, version, component, args, attempt, seed } = event else {
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
        ended: None,
        used: None,
        log: None,
        record: Record::default(),
        verdicts: Vec::new(),
        accepted: None,
        reasons: Vec::new(),
        advice: None,
    })
}

fn outcome_of(call: &CallView) -> Option<Digest> {
    match &call.ended {
        Some(Ended::Outcome { outcome, .. }) => Some(*outcome),
        _ => None,
    }
}

/// Reports are written to where a file's place says, and a log may come from a stranger.
fn check_place(subgoal: &SubgoalId, file: &StoredArtifact) -> Result<()> {
    let (id, path) = (subgoal.as_str(), file.path.as_str());
    if !is_segment(id) {
        bail!("the artifact {path:?} is of a subgoal {id:?}, whose id is no name of a folder");
    }
    if !is_relative_path(path) {
        bail!("the artifact {path:?} of subgoal `{id}` has a path that may lead out of its folder");
    }
    Ok(())
}

/// The judges that accepted, for each name that their checks are about.
///
/// A check names subjects and paths alike; which of them a name is, the submission says. One that
/// is both stands for the fact, so that no file passes as checked for its name alone.
struct Checked {
    by_name: HashMap<String, Vec<VerifiedBy>>,
    subjects: HashSet<String>,
}

impl Checked {
    fn of(call: &CallView) -> Self {
        let subjects = match &call.ended {
            Some(Ended::Outcome { drafts, .. }) => drafts.iter().map(|draft| draft.subject.clone()).collect(),
            _ => HashSet::new(),
        };
        Checked { by_name: checks_by_name(&call.verdicts), subjects }
    }

    fn fact(&self, subject: &str) -> Vec<VerifiedBy> {
        self.named(subject, true)
    }

    fn file(&self, path: &str) -> Vec<VerifiedBy> {
        self.named(path, false)
    }

    fn named(&self, name: &str, subject: bool) -> Vec<VerifiedBy> {
        let found = self.by_name.get(name).filter(|_| self.subjects.contains(name) == subject);
        found.cloned().unwrap_or_default()
    }
}

/// For each name, the judges that accepted and whose checks are about it.
fn checks_by_name(verdicts: &[VerdictView]) -> HashMap<String, Vec<VerifiedBy>> {
    let mut found: HashMap<String, Vec<VerifiedBy>> = HashMap::new();
    for verdict in verdicts {
        let Judgement::Accepted { checks, .. } = &verdict.judgement else { continue };
        let (verifier, component) = (verdict.judge.name(), verdict.judge.component());
        for check in checks {
            let note = CheckNote { rule: check.rule.clone(), note: check.note.clone() };
            for name in &check.about {
                let judges = found.entry(name.clone()).or_default();
                match judges
                    .iter_mut()
                    .find(|judge| judge.verifier == verifier && judge.component == component)
                {
                    Some(judge) => judge.checks.push(note.clone()),
                    None => judges.push(VerifiedBy {
                        verifier: verifier.to_owned(),
                        component,
                        checks: vec![note.clone()],
                    }),
                }
            }
        }
    }
    found
}
