//! A component that loaded: compiled, linked, and known by its digest.

use std::sync::Arc;

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::{Capabilities, Effects, Kind, Manifest};
use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;

use crate::bindings::{skill::SkillPre, verifier::VerifierPre};
use crate::engine::CALLS_AT_ONCE_OF_ONE;
use crate::state::State;

/// Linked once; each call instantiates from it.
pub(crate) enum Pre {
    Skill(SkillPre<State>),
    Verifier(VerifierPre<State>),
    /// Without any export: it is only instantiated, to try the limits.
    Bare(InstancePre<State>),
}

impl Pre {
    /// The parts that a component of this kind must have.
    pub(crate) fn of(kind: Kind, pre: InstancePre<State>) -> wasmtime::Result<Self> {
        match kind {
            Kind::Skill => SkillPre::new(pre).map(Pre::Skill),
            Kind::Verifier => VerifierPre::new(pre).map(Pre::Verifier),
        }
    }

    /// The instance before it is one, whatever its kind.
    pub(crate) fn instance_pre(&self) -> &InstancePre<State> {
        match self {
            Pre::Skill(pre) => pre.instance_pre(),
            Pre::Verifier(pre) => pre.instance_pre(),
            Pre::Bare(pre) => pre,
        }
    }
}

/// One loaded component.
pub(crate) struct Component {
    pub(crate) digest: Digest,
    pub(crate) manifest: Manifest,
    pub(crate) pre: Pre,
    /// Its own share of the calls at once, so that one component cannot keep the others waiting.
    pub(crate) turns: Arc<Semaphore>,
}

impl Component {
    pub(crate) fn new(digest: Digest, manifest: Manifest, pre: Pre) -> Self {
        let turns = Arc::new(Semaphore::new(CALLS_AT_ONCE_OF_ONE as usize));
        Component { digest, manifest, pre, turns }
    }

    /// The limits for being instantiated and asked something small, as loading does: less time.
    pub(crate) fn start_limits(&self) -> Limits {
        self.trial_limits().with(LimitKey::Cpu, 2_000).with(LimitKey::Wall, 5_000)
    }

    /// The limits under which a component is tried when it loads: before any grant is known, so
    /// time as by default, and memory as asked for, within a bound.
    pub(crate) fn trial_limits(&self) -> Limits {
        const MEMORY: u64 = 1 << 30;
        let asked = Limits::default().overlay(&self.manifest.capabilities.limits).get(LimitKey::Memory);
        Limits::default().with(LimitKey::Memory, asked.min(MEMORY))
    }
}

/// The manifest of a component of which no more is known.
pub(crate) fn bare_manifest(name: &str, kind: Kind) -> Manifest {
    Manifest {
        kind,
        name: name.to_owned(),
        version: "0.0.0".to_owned(),
        description: String::new(),
        effects: Effects::None,
        facts: Vec::new(),
        evidence: Vec::new(),
        requires: Vec::new(),
        locks: Vec::new(),
        terms: Vec::new(),
        args: None,
        capabilities: Capabilities::default(),
    }
}
