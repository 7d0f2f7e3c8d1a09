//! What host and worker say to each other. What a worker says is the word of a process that may
//! have been taken over: the host checks it as if a guest had said it.

use std::path::PathBuf;

use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Clock;
use checkrein_contract::id::Timestamp;
use checkrein_contract::interface::{Fact, LimitHit, Submission};
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::manifest::Kind;
use checkrein_contract::port::StorageError;
use checkrein_contract::record::Record;
use serde::{Deserialize, Serialize};

use super::harden::Hardening;
use crate::bindings::types as guest;

/// What a compiling worker answers; the raw part is the code.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Compiled {
    /// What it gave up, before it read the component, and which build it is.
    Ready { build: String, hardening: Hardening },
    /// The code.
    Done,
    /// The engine refuses the component, in its words.
    Refused(String),
}

/// From the host to a judging worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one is made for each frame")]
pub(super) enum ToJudge {
    /// A component, to be kept; the raw part is its compiled code.
    Load { component: Digest, name: String, kind: Kind },
    /// One question; exactly one `Judged` of the same number comes back.
    Judge { question: u64, setting: Asked, submission: Submission },
    /// The answer to the request of this number.
    Answer { to: u64, answer: Answer },
}

/// A [`Setting`](checkrein_contract::port::Setting) without what stays with the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) component: Digest,
    pub(super) limits: Limits,
    pub(super) input: Option<PathBuf>,
    pub(super) artifacts: Option<PathBuf>,
    pub(super) work: Option<PathBuf>,
    pub(super) time: Clock,
    pub(super) clock: Timestamp,
    pub(super) seed: u64,
}

/// From a judging worker to the host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FromJudge {
    /// What it gave up, and which build it is; the first frame.
    Ready { build: String, hardening: Hardening },
    /// The component is there.
    Loaded,
    /// It is not, and why.
    NotLoaded(String),
    /// The guest that this question is put to wants something of the host.
    Wants { question: u64, number: u64, want: Want },
    /// A log line of it.
    Log { question: u64, level: String, message: String },
    /// The answer to this question.
    Judged { question: u64, judged: Box<Judged> },
}

/// What a guest wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Want {
    /// The fact with this id.
    Fact(String),
    /// Facts by prefix.
    Facts { prefix: String, after: Option<String>, limit: u32 },
    /// Progress is to be told; answered when it was.
    Progress { done: u32, total: u32, message: String },
    /// A request over the network; the raw part is its body.
    Fetch {
        method: String,
        url: String,
        headers: Vec<(String, Vec<u8>)>,
        timeout_ms: Option<u64>,
        follow: bool,
    },
}

/// What it gets.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Fact(Option<Fact>),
    Facts(Vec<Fact>),
    Told,
    /// The raw part is the body.
    Fetched {
        url: String,
        status: u16,
        headers: Vec<(String, Vec<u8>)>,
    },
    Denied(Refusal),
}

/// [`NoAnswer`](crate::net::NoAnswer) on its way.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Refusal {
    Denied(String),
    TimedOut,
    TooLarge(u64),
    Invalid(String),
    Transport(String),
}

/// How a verification ended in the worker, and what it used.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Judged {
    pub(super) end: JudgedEnd,
    pub(super) used: Used,
    pub(super) log: String,
    pub(super) record: Record,
}

/// [`End`](checkrein_contract::port::End), with the guest's answer as it came: whether it is taken
/// is decided by the host alone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum JudgedEnd {
    Returned(Result<guest::Verdict, guest::Failure>),
    Limited(LimitHit),
    Trapped(String),
    Storage(StorageError),
    Fault(String),
}
