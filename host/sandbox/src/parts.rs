//! The parts of a component, each with what it may reach, how it is called and what of its answer
//! is taken.

use std::future::Future;

use checkrein_contract::interface as ours;
use wasmtime::Store;

use crate::accept::{Acceptor, Refused};
use crate::bindings::{recovery, skill, trigger, types as guest, verifier};
use crate::component::{Component, Pre};
use crate::convert::{call_to_guest, mishap_to_guest, subgoal_to_guest, submission_to_guest};
use crate::state::State;

/// What of the setting a part gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No files, no facts.
    Nothing,
    /// Facts, `/in` and `/artifacts`, and an empty `/work` of its own to write to.
    OwnWork,
    /// Facts, `/in`, `/artifacts` and the given `/work`, all read-only.
    GivenWork,
}

/// One way to enter a component.
pub(crate) trait Part: Send + 'static {
    /// What the guest returns.
    type Raw: Send + 'static;
    /// What is made of it.
    type Answer: Send + 'static;
    /// What it may reach.
    const REACH: Reach;

    /// Instantiates and calls; both are on the call's budget.
    fn call(
        self,
        component: &Component,
        store: &mut Store<State>,
    ) -> impl Future<Output = wasmtime::Result<Self::Raw>> + Send;

    /// Checks the answer.
    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused>;
}

async fn skill_of(component: &Component, store: &mut Store<State>) -> wasmtime::Result<skill::Skill> {
    match &component.pre {
        Pre::Skill(pre) => pre.instantiate_async(store).await,
        Pre::Verifier(_) | Pre::Bare(_) => Err(no_such_part()),
    }
}

/// Not reached through [`crate::Sandbox`], which looks at the manifest first.
fn no_such_part() -> wasmtime::Error {
    wasmtime::Error::msg("the component has no such part")
}

/// Instantiates and returns: what the loader does first.
pub(crate) struct Instantiate;

impl Part for Instantiate {
    type Raw = ();
    type Answer = ();
    const REACH: Reach = Reach::Nothing;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<()> {
        match &component.pre {
            Pre::Skill(pre) => pre.instantiate_async(store).await.map(drop),
            Pre::Verifier(pre) => pre.instantiate_async(store).await.map(drop),
            Pre::Bare(pre) => pre.instantiate_async(store).await.map(drop),
        }
    }

    fn accept(_: &Acceptor<'_>, (): ()) -> Result<(), Refused> {
        Ok(())
    }
}

/// Asks for the JSON Schema of the arguments, an export that not every component has.
pub(crate) struct Describe;

impl Part for Describe {
    type Raw = String;
    type Answer = serde_json::Value;
    const REACH: Reach = Reach::Nothing;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<String> {
        let instance = component.pre.instance_pre().instantiate_async(&mut *store).await?;
        let missing = || wasmtime::Error::msg("no function `args` in `checkrein:skill/schema`");
        let interface =
            instance.get_export_index(&mut *store, None, crate::load::names::SCHEMA).ok_or_else(missing)?;
        let function =
            instance.get_export_index(&mut *store, Some(&interface), "args").ok_or_else(missing)?;
        let function = instance.get_typed_func::<(), (String,)>(&mut *store, &function)?;
        let (schema,) = function.call_async(&mut *store, ()).await?;
        Ok(schema)
    }

    fn accept(acceptor: &Acceptor<'_>, raw: String) -> Result<serde_json::Value, Refused> {
        acceptor.schema(&raw)
    }
}

/// Asks a trigger.
pub(crate) struct Assess(pub(crate) ours::Subgoal);

impl Part for Assess {
    type Raw = trigger::Assessment;
    type Answer = ours::Assessment;
    const REACH: Reach = Reach::Nothing;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<Self::Raw> {
        let skill = skill_of(component, store).await?;
        skill.checkrein_skill_trigger().call_assess(store, &subgoal_to_guest(self.0)).await
    }

    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused> {
        acceptor.assessment(raw)
    }
}

/// Calls an executor.
pub(crate) struct Execute(pub(crate) ours::Call);

impl Part for Execute {
    type Raw = Result<guest::Outcome, guest::Failure>;
    type Answer = Result<ours::Outcome, ours::Failure>;
    const REACH: Reach = Reach::OwnWork;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<Self::Raw> {
        let skill = skill_of(component, store).await?;
        skill.checkrein_skill_executor().call_execute(store, &call_to_guest(self.0)).await
    }

    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused> {
        Ok(match raw {
            Ok(outcome) => Ok(acceptor.outcome(outcome)?),
            Err(failure) => Err(acceptor.failure(failure)?),
        })
    }
}

/// Asks a verification.
pub(crate) struct Verify(pub(crate) ours::Submission);

impl Part for Verify {
    type Raw = Result<guest::Verdict, guest::Failure>;
    type Answer = Result<ours::Verdict, ours::Failure>;
    const REACH: Reach = Reach::GivenWork;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<Self::Raw> {
        let submission = submission_to_guest(self.0);
        match &component.pre {
            Pre::Skill(pre) => {
                let skill: skill::Skill = pre.instantiate_async(&mut *store).await?;
                skill.checkrein_skill_verification().call_verify(store, &submission).await
            }
            Pre::Verifier(pre) => {
                let verifier: verifier::Verifier = pre.instantiate_async(&mut *store).await?;
                verifier.checkrein_skill_verification().call_verify(store, &submission).await
            }
            Pre::Bare(_) => Err(no_such_part()),
        }
    }

    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused> {
        Ok(match raw {
            Ok(verdict) => Ok(acceptor.verdict(verdict)?),
            Err(failure) => Err(acceptor.failure(failure)?),
        })
    }
}

/// Asks a verification in a worker process, where nothing is taken of the answer but its size: the
/// host does that.
pub(crate) struct Judge(pub(crate) ours::Submission);

impl Part for Judge {
    type Raw = Result<guest::Verdict, guest::Failure>;
    type Answer = Self::Raw;
    const REACH: Reach = Reach::GivenWork;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<Self::Raw> {
        Verify(self.0).call(component, store).await
    }

    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused> {
        acceptor.small(&raw)?;
        Ok(raw)
    }
}

/// Asks a recovery.
pub(crate) struct Recover(pub(crate) ours::Mishap);

impl Part for Recover {
    type Raw = recovery::Advice;
    type Answer = ours::Advice;
    const REACH: Reach = Reach::Nothing;

    async fn call(self, component: &Component, store: &mut Store<State>) -> wasmtime::Result<Self::Raw> {
        let skill = skill_of(component, store).await?;
        skill.checkrein_skill_recovery().call_recover(store, &mishap_to_guest(self.0)).await
    }

    fn accept(acceptor: &Acceptor<'_>, raw: Self::Raw) -> Result<Self::Answer, Refused> {
        acceptor.advice(raw)
    }
}
