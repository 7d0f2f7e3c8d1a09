//! How asks, letters, amendments, stops and resumes change the view.

use anyhow::{Context as _, Result, bail};
use checkrein_contract::ask::{Amendment, Answer, Message};
use checkrein_contract::event::{ComponentCard, Event, InForce, Logged};
use checkrein_contract::id::{AskId, SubgoalId, Timestamp};

use super::{Fold, Place, digest_of};
use crate::report::view::{
    AmendmentView, AnswerView, ArtifactView, AskView, FactView, RefusedLetter, ResumeView, SubgoalView,
};

impl Fold<'_> {
    pub(super) fn apply_to_course(&mut self, logged: &Logged) -> Result<()> {
        let at = logged.at;
        match &logged.event {
            Event::RunEnded { status, reason } => {
                (self.view.status, self.view.stopped) = (Some(*status), None);
                self.view.reason.clone_from(reason);
            }
            Event::RunStopped { because } => self.view.stopped = Some(*because),
            Event::RunResumed { engine, in_force } => self.resume(at, engine, in_force.as_deref()),
            Event::AskOpened { ask, subgoal, about, question } => self.view.asks.push(AskView {
                ask: ask.clone(),
                subgoal: subgoal.clone(),
                about: about.clone(),
                question: question.clone(),
                opened: at,
                answer: None,
                dropped: false,
            }),
            Event::AskAnswered { ask, answer, by } => self.answer(ask, answer, by, at)?,
            Event::LetterTaken { letter, by, said, refused } => {
                let is_amendment = matches!(said, Message::Amend { .. }) && refused.is_none();
                self.amended_by = is_amendment.then(|| by.clone());
                if let Some(why) = refused {
                    let (by, said, why) = (by.clone(), said.clone(), why.clone());
                    self.view.refused.push(RefusedLetter { letter: *letter, at, by, said, why });
                }
            }
            Event::TaskAmended { .. } => self.amend(logged)?,
            Event::DependentsReopened { reopened, .. } => self.reopen_more(reopened)?,
            other => bail!("`{}` is none of the run as a whole", other.kind()),
        }
        Ok(())
    }

    fn resume(&mut self, at: Timestamp, engine: &str, in_force: Option<&InForce>) {
        let view = &mut self.view;
        view.stopped = None;
        engine.clone_into(&mut view.engine);
        if !view.engines.iter().any(|known| known == engine) {
            view.engines.push(engine.to_owned());
        }
        view.resumes.push(ResumeView { at, engine: engine.to_owned(), changed: in_force.is_some() });
        let Some(now) = in_force else { return };
        let cards: Vec<ComponentCard> = now.skills.iter().chain(&now.verifiers).cloned().collect();
        let before = std::mem::replace(&mut view.components, cards);
        for card in before {
            let mut known = view.components.iter().chain(&view.replaced);
            if !known.any(|other| other.component == card.component) {
                view.replaced.push(card);
            }
        }
    }

    fn answer(&mut self, ask: &AskId, answer: &Answer, by: &str, at: Timestamp) -> Result<()> {
        let open = self.view.asks.iter_mut().rev().find(|one| one.ask == *ask);
        let open = open.with_context(|| format!("ask {ask} was never opened"))?;
        open.answer = Some(AnswerView { answer: answer.clone(), by: by.to_owned(), at });
        Ok(())
    }

    /// What this subgoal asked is not waited for any more.
    pub(super) fn drop_asks(&mut self, subgoal: &SubgoalId) {
        let open = |ask: &&mut AskView| ask.subgoal == *subgoal && ask.answer.is_none();
        self.view.asks.iter_mut().filter(open).for_each(|ask| ask.dropped = true);
    }

    /// The task becomes another; what depended on what was changed is as if it had never been opened,
    /// and what came out of it is history.
    fn amend(&mut self, logged: &Logged) -> Result<()> {
        let Event::TaskAmended { amendment, version, reopened, evaluated } = &logged.event else {
            bail!("`{}` amends nothing", logged.event.kind());
        };
        self.restate(amendment)?;
        for id in reopened {
            self.reopen(id)?;
        }
        for id in evaluated {
            let view = self.subgoal(id)?;
            (view.closed, view.closing) = (None, None);
            view.criteria.clear();
        }
        self.open_stages(|id| reopened.contains(id) || evaluated.contains(id));
        let (facts, artifacts) = self.abandon(reopened);
        self.view.status = None;
        self.view.reason.clear();
        self.view.amendments.push(AmendmentView {
            version: *version,
            at: logged.at,
            by: self.amended_by.take(),
            amendment: amendment.clone(),
            reopened: reopened.clone(),
            evaluated: evaluated.clone(),
            facts,
            artifacts,
        });
        Ok(())
    }

    /// What follows from an amendment once criteria were evaluated again.
    fn reopen_more(&mut self, reopened: &[SubgoalId]) -> Result<()> {
        for id in reopened {
            self.reopen(id)?;
        }
        self.open_stages(|id| reopened.contains(id));
        let (facts, artifacts) = self.abandon(reopened);
        let Some(amendment) = self.view.amendments.last_mut() else { bail!("no amendment came before") };
        amendment.reopened.extend_from_slice(reopened);
        amendment.facts += facts;
        amendment.artifacts += artifacts;
        Ok(())
    }

    fn open_stages(&mut self, has: impl Fn(&SubgoalId) -> bool) {
        for stage in &mut self.view.stages {
            if stage.subgoals.iter().any(|subgoal| has(&subgoal.id)) {
                stage.met = None;
            }
        }
    }

    /// The task as it is amended. Subgoals that had the goal of the task have its new one.
    fn restate(&mut self, amendment: &Amendment) -> Result<()> {
        let task = &mut self.view.task;
        let before = task.goal.clone();
        if let Some(goal) = &amendment.goal {
            task.goal.clone_from(goal);
        }
        for (key, value) in &amendment.set {
            task.parameters.insert(key.clone(), value.clone());
        }
        for spec in task.stages.iter_mut().flat_map(|stage| &mut stage.subgoals) {
            if let Some(goal) = amendment.goal.as_ref().filter(|_| spec.goal == before) {
                spec.goal.clone_from(goal);
            }
            let more = amendment.criteria.iter().filter(|(id, _)| *id == spec.id);
            spec.criteria.extend(more.map(|(_, criterion)| criterion.clone()));
        }
        self.view.task_digest = digest_of(&self.view.task)?;
        let specs = self.view.task.stages.iter().flat_map(|stage| &stage.subgoals);
        let views = self.view.stages.iter_mut().flat_map(|stage| &mut stage.subgoals);
        for (spec, view) in specs.zip(views) {
            view.goal.clone_from(&spec.goal);
        }
        Ok(())
    }

    fn reopen(&mut self, id: &SubgoalId) -> Result<()> {
        let view = self.subgoal(id)?;
        let fresh = SubgoalView::new(view.id.clone(), view.goal.clone());
        let calls = std::mem::replace(view, fresh).calls;
        for call in calls {
            let place = Place::Before(self.view.history.calls.len());
            self.calls.insert(call.id.clone(), place);
            self.view.history.calls.push(call);
        }
        self.drop_asks(id);
        Ok(())
    }

    /// Puts aside what came out of these subgoals, and says how many facts and artifacts that were.
    fn abandon(&mut self, reopened: &[SubgoalId]) -> (usize, usize) {
        let view = &mut self.view;
        let facts = std::mem::take(&mut view.facts);
        let (gone, kept): (Vec<FactView>, Vec<FactView>) =
            facts.into_iter().partition(|fact| reopened.contains(&fact.subgoal));
        let artifacts = std::mem::take(&mut view.artifacts);
        let (gone_files, kept_files): (Vec<ArtifactView>, Vec<ArtifactView>) =
            artifacts.into_iter().partition(|file| reopened.contains(&file.subgoal));
        let counts = (gone.len(), gone_files.len());
        (view.facts, view.artifacts) = (kept, kept_files);
        view.history.facts.extend(gone);
        view.history.artifacts.extend(gone_files);
        view.by_subject.clear();
        for (place, fact) in view.facts.iter().enumerate() {
            view.by_subject.entry(fact.entry.subject.clone()).or_default().push(place);
        }
        let calls = &self.calls;
        view.contradictions.retain(|found| !matches!(calls.get(&found.call), Some(Place::Before(_))));
        counts
    }
}
