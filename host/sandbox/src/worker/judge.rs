//! The judging worker: a small sandbox of its own, which runs one verification at a time. Facts,
//! network, log and progress stay with the host, and are asked for through the pipe.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{Stdout, stdin, stdout};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Granted;
use checkrein_contract::interface::{Fact, Submission};
use checkrein_contract::port::{
    Blobs, BoxFuture, End, FactSource, Observer, Ran, Setting, StorageError, Tree,
};
use tokio::sync::oneshot;

use super::frame::{self, Frame, FrameError};
use super::harden::harden;
use super::wire::{Answer, Asked, FromJudge, Judged, JudgedEnd, Refusal, ToJudge, Want};
use super::{Role, say};
use crate::invoke::run;
use crate::net::{Gate, NoAnswer, Request, Response};
use crate::parts::Judge;
use crate::sandbox::Sandbox;

pub(super) fn main(folder: Option<OsString>) -> Result<(), String> {
    let folder = PathBuf::from(folder.ok_or("no folder to read was named")?);
    let hardening = harden(Role::Verify, Some(&folder))?;
    let pipe = Pipe::new();
    let sandbox =
        Sandbox::for_judging(Arc::new(pipe.clone()), Arc::new(NoBlobs)).map_err(|error| error.to_string())?;
    sandbox.block_on(sandbox.self_test())?.map_err(|error| error.to_string())?;
    pipe.send(&FromJudge::Ready(hardening), &[]).map_err(|error| error.to_string())?;
    let mut input = stdin().lock();
    loop {
        match frame::read(&mut input, Role::Verify.most_in()) {
            Ok(frame) => handle(&sandbox, &pipe, frame)?,
            // The host is gone, or wants this worker to be.
            Err(FrameError::Closed) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn handle(sandbox: &Sandbox, pipe: &Pipe, frame: Frame<ToJudge>) -> Result<(), String> {
    let Frame { message, raw } = frame;
    match message {
        ToJudge::Load { component, name, kind } => {
            let told = match sandbox.load_code(component, &name, kind, &raw) {
                Ok(()) => FromJudge::Loaded,
                Err(why) => FromJudge::NotLoaded(why),
            };
            pipe.send(&told, &[]).map_err(|error| error.to_string())
        }
        ToJudge::Judge { setting, submission } => {
            let (own, pipe) = (sandbox.clone(), pipe.clone());
            sandbox.spawn(async move {
                let judged = FromJudge::Judged(judge(&own, &pipe, setting, submission).await);
                // Without a pipe nobody waits for the answer.
                if let Err(error) = pipe.send(&judged, &[]) {
                    say(&error.to_string());
                    std::process::exit(super::FAILED.into());
                }
            })
        }
        ToJudge::Answer { to, answer } => pipe.answered(to, answer, raw),
    }
}

async fn judge(sandbox: &Sandbox, pipe: &Pipe, asked: Asked, submission: Submission) -> Judged {
    let Some(component) = sandbox.component(&asked.component) else {
        return judged(crate::invoke::faulted(format!(
            "no component {} is loaded in this worker",
            asked.component
        )));
    };
    let setting = setting(asked, pipe);
    let own = sandbox.clone();
    let call = async move { run(&own.0, &component, setting, Judge(submission)).await };
    judged(sandbox.on_guest_threads(call).await.unwrap_or_else(crate::invoke::faulted))
}

fn setting(asked: Asked, pipe: &Pipe) -> Setting {
    let Asked { component, limits, input, artifacts, work, time, clock, seed } = asked;
    Setting {
        component,
        limits,
        input,
        artifacts,
        work,
        granted: Granted { clock: time, ..Granted::default() },
        facts: Arc::new(pipe.clone()),
        observer: Arc::new(pipe.clone()),
        clock,
        seed,
    }
}

type Answered = Result<crate::bindings::types::Verdict, crate::bindings::types::Failure>;

fn judged(ran: Ran<Answered>) -> Judged {
    let Ran { end, used, log, record } = ran;
    let end = match end {
        End::Returned(answer) => JudgedEnd::Returned(answer),
        End::Limited(hit) => JudgedEnd::Limited(hit),
        End::Trapped(message) => JudgedEnd::Trapped(message),
        End::Storage(error) => JudgedEnd::Storage(error),
        End::Fault(message) => JudgedEnd::Fault(message),
        // The only thing that is looked at here is the size.
        End::Invalid(problem) => JudgedEnd::Fault(problem.message),
    };
    Judged { end, used, log, record }
}

/// The worker's end of the pipe. Clones share it.
#[derive(Clone)]
struct Pipe(Arc<Shared>);

struct Shared {
    output: Mutex<Stdout>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

type Reply = (Answer, Vec<u8>);

/// Who waits for an answer: a host function that may not block, or one that must.
enum Waiting {
    Task(oneshot::Sender<Reply>),
    Thread(SyncSender<Reply>),
}

impl Pipe {
    fn new() -> Self {
        Pipe(Arc::new(Shared {
            output: Mutex::new(stdout()),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
        }))
    }

    fn send(&self, message: &FromJudge, raw: &[u8]) -> Result<(), FrameError> {
        let mut output = self.0.output.lock().unwrap_or_else(PoisonError::into_inner);
        frame::write(&mut *output, message, raw, Role::Verify.most_out())
    }

    /// Hands an answer to who waits for it.
    fn answered(&self, to: u64, answer: Answer, raw: Vec<u8>) -> Result<(), String> {
        // Who no longer waits belongs to a call that is over.
        match self.waiting().remove(&to) {
            Some(Waiting::Task(waiting)) => drop(waiting.send((answer, raw))),
            Some(Waiting::Thread(waiting)) => drop(waiting.send((answer, raw))),
            None => return Err(format!("an answer to {to}, which was never asked")),
        }
        Ok(())
    }

    fn want(&self, want: Want, raw: &[u8], waiting: Waiting) {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.waiting().insert(number, waiting);
        if let Err(error) = self.send(&FromJudge::Wants { number, want }, raw) {
            // Without the pipe there is nobody to answer for, and nothing to tell a guest.
            say(&error.to_string());
            std::process::exit(super::FAILED.into());
        }
    }

    fn ask(&self, want: Want) -> Option<Answer> {
        let (waiting, answer) = sync_channel(1);
        self.want(want, &[], Waiting::Thread(waiting));
        answer.recv().ok().map(|(answer, _)| answer)
    }

    async fn ask_async(&self, want: Want, raw: &[u8]) -> Option<Reply> {
        let (waiting, answer) = oneshot::channel();
        self.want(want, raw, Waiting::Task(waiting));
        answer.await.ok()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FactSource for Pipe {
    fn get(&self, id: &str) -> Option<Fact> {
        match self.ask(Want::Fact(id.to_owned())) {
            Some(Answer::Fact(fact)) => fact,
            other => unexpected(&other),
        }
    }

    fn find(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Fact> {
        let want = Want::Facts { prefix: prefix.to_owned(), after: after.map(str::to_owned), limit };
        match self.ask(want) {
            Some(Answer::Facts(facts)) => facts,
            other => unexpected(&other),
        }
    }
}

/// A host that answers another question is none that this worker can work for.
fn unexpected<T>(answer: &Option<Answer>) -> T {
    say(&format!("the host answered {answer:?}, which was not asked"));
    std::process::exit(super::FAILED.into())
}

impl Observer for Pipe {
    fn log(&self, level: &str, message: &str) {
        let line = FromJudge::Log { level: level.to_owned(), message: message.to_owned() };
        if let Err(error) = self.send(&line, &[]) {
            say(&error.to_string());
            std::process::exit(super::FAILED.into());
        }
    }

    fn progress(&self, done: u32, total: u32, message: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self.ask_async(Want::Progress { done, total, message }, &[]).await {
                Some((Answer::Told, _)) => {}
                other => unexpected(&other.map(|(answer, _)| answer)),
            }
        })
    }
}

impl Gate for Pipe {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let pipe = self.clone();
        Box::pin(async move {
            let Request { method, url, headers, body, timeout, follow } = request;
            let timeout_ms = timeout.map(millis);
            match pipe.ask_async(Want::Fetch { method, url, headers, timeout_ms, follow }, &body).await {
                Some((Answer::Fetched { url, status, headers }, body)) => {
                    Ok(Response { url, status, headers, body: Bytes::from(body) })
                }
                Some((Answer::Denied(refusal), _)) => Err(refusal.into()),
                other => unexpected(&other.map(|(answer, _)| answer)),
            }
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<Refusal> for NoAnswer {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(why) => NoAnswer::Denied(why),
            Refusal::TimedOut => NoAnswer::TimedOut,
            Refusal::TooLarge(most) => NoAnswer::TooLarge(most),
            Refusal::Invalid(why) => NoAnswer::Invalid(why),
            Refusal::Transport(why) => NoAnswer::Transport(why),
        }
    }
}

/// A worker stores nothing: what a verification read is the host's, and what it says is small.
struct NoBlobs;

impl NoBlobs {
    fn none<T>() -> Result<T, StorageError> {
        Err(StorageError::NotWritable { place: "blobs".to_owned(), detail: "a worker has none".to_owned() })
    }
}

impl Blobs for NoBlobs {
    fn put(&self, _: &[u8]) -> Result<Digest, StorageError> {
        Self::none()
    }

    fn put_from(&self, _: &mut dyn std::io::Read) -> Result<(Digest, u64), StorageError> {
        Self::none()
    }

    fn get(&self, _: &Digest) -> Result<Vec<u8>, StorageError> {
        Self::none()
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Self::none()
    }
}
