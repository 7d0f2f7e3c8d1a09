//! What comes out of an accepted call: facts with their contents, files, and who checked them.

use std::collections::{HashMap, HashSet};

use anyhow::{Context as _, Result, bail, ensure};
use checkrein_contract::Digest;
use checkrein_contract::event::{Ended, FactEntry, Judgement, StoredArtifact};
use checkrein_contract::id::{CallId, SubgoalId, is_relative_path, is_segment};
use checkrein_contract::interface::Outcome;

use super::{Fold, Place};
use crate::report::figure;
use crate::report::view::{ArtifactView, CallView, CheckNote, FactView, VerdictView, VerifiedBy};

impl Fold<'_> {
    pub(super) fn accept(
        &mut self,
        id: &CallId,
        facts: &[FactEntry],
        artifacts: &[StoredArtifact],
    ) -> Result<()> {
        let call = self.call(id)?;
        call.accepted = Some(true);
        let call = call.clone();
        let checked = Checked::of(&call);
        let facts = self.facts(&call, facts, &checked)?;
        let artifacts = self.artifacts(&call, artifacts, &checked)?;
        if matches!(self.calls.get(id), Some(Place::Before(_))) {
            self.view.history.facts.extend(facts);
            self.view.history.artifacts.extend(artifacts);
            return Ok(());
        }
        for fact in facts {
            let place = self.view.facts.len();
            self.view.by_subject.entry(fact.entry.subject.clone()).or_default().push(place);
            self.view.facts.push(fact);
        }
        self.view.artifacts.extend(artifacts);
        Ok(())
    }

    fn facts(&self, call: &CallView, entries: &[FactEntry], checked: &Checked) -> Result<Vec<FactView>> {
        let outcome = outcome_of(call).filter(|_| !entries.is_empty());
        let outcome = outcome.map(|digest| self.outcome(&digest)).transpose()?;
        let fact = |entry: &FactEntry| -> Result<FactView> {
            let draft = outcome.as_ref().and_then(|outcome| outcome.facts.get(entry.index as usize));
            let draft =
                draft.with_context(|| format!("fact {} is not in the outcome of {}", entry.id, call.id))?;
            let found = Digest::of_json(&draft.content);
            ensure!(
                found == entry.content,
                "fact {} has the content {} in the outcome of {}, and {} in the log",
                entry.id,
                found.short(),
                call.id,
                entry.content.short()
            );
            Ok(FactView {
                entry: entry.clone(),
                content: draft.content.clone(),
                skill: call.skill.clone(),
                component: call.component,
                call: call.id.clone(),
                subgoal: call.subgoal.clone(),
                verified_by: checked.fact(&entry.subject),
            })
        };
        entries.iter().map(fact).collect()
    }

    fn artifacts(
        &self,
        call: &CallView,
        files: &[StoredArtifact],
        checked: &Checked,
    ) -> Result<Vec<ArtifactView>> {
        let artifact = |file: &StoredArtifact| -> Result<ArtifactView> {
            check_place(&call.subgoal, file)?;
            Ok(ArtifactView {
                file: file.clone(),
                subgoal: call.subgoal.clone(),
                call: call.id.clone(),
                verified_by: checked.file(&file.path),
                figure: figure::read(file, self.blobs)?,
            })
        };
        files.iter().map(artifact).collect()
    }

    fn outcome(&self, digest: &Digest) -> Result<Outcome> {
        let bytes = self.blobs.get(digest)?;
        serde_json::from_slice(&bytes).with_context(|| format!("the outcome {digest}"))
    }
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
