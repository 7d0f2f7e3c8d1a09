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
use checkrein_contract::limits::{Limits, Used};
use checkrein_contract::port::{
    Blobs, BoxFuture, End, FactSource, Observer, Ran, Setting, StorageError, Tree,
};
use checkrein_contract::record::Record;
use tokio::sync::oneshot;

use super::frame::{self, Frame, FrameError, Most};
use super::harden::harden;
use super::wire::{Answer, Asked, FromJudge, Judged, JudgedEnd, Refusal, ToJudge, Want};
use super::{DRY, Role, WANTED, build_of, most_body, most_out_under, say};
use crate::invoke::run;
use crate::net::{Gate, NoAnswer, Request, Response};
use crate::parts::Judge;
use crate::sandbox::Sandbox;

pub(super) fn main(folder: Option<OsString>, dry: Option<OsString>) -> Result<(), String> {
    let folder = PathBuf::from(folder.ok_or("no folder to read was named")?);
    let dry = match dry {
        None => false,
        Some(word) if word == DRY => true,
        Some(other) => return Err(format!("`{DRY}` or nothing stands behind the folder, not {other:?}")),
    };
    let hardening = harden(Role::Verify, Some(&folder), None)?;
    let pipe = Pipe::new();
    let sandbox = Sandbox::for_judging(Arc::new(pipe.clone()), Arc::new(NoBlobs), dry)
        .map_err(|error| error.to_string())?;
    sandbox.block_on(sandbox.self_test())?.map_err(|error| error.to_string())?;
    let build = build_of(crate::cache::build(&sandbox.0.engine), dry);
    pipe.send(&FromJudge::Ready { build, hardening }, &[]).map_err(|error| error.to_string())?;
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
        ToJudge::Judge { question, setting, submission } => {
            let asking = pipe.begin(question, &setting.limits);
            let own = sandbox.clone();
            sandbox.spawn(async move {
                let judged = judge(&own, &asking, setting, submission).await;
                asking.end(judged);
            })
        }
        ToJudge::Answer { to, answer } => pipe.answered(to, answer, raw),
    }
}

async fn judge(sandbox: &Sandbox, asking: &Asking, asked: Asked, submission: Submission) -> Judged {
    let Some(component) = sandbox.component(&asked.component) else {
        return judged(crate::invoke::faulted(format!(
            "no component {} is loaded in this worker",
            asked.component
        )));
    };
    let setting = setting(asked, asking);
    let own = sandbox.clone();
    let call = async move { run(&own.0, &component, setting, Judge(submission)).await };
    judged(sandbox.on_guest_threads(call).await.unwrap_or_else(crate::invoke::faulted))
}

fn setting(asked: Asked, asking: &Asking) -> Setting {
    let Asked { component, limits, input, artifacts, work, time, clock, seed } = asked;
    Setting {
        component,
        limits,
        input,
        artifacts,
        work,
        granted: Granted { clock: time, ..Granted::default() },
        facts: Arc::new(asking.clone()),
        observer: Arc::new(asking.clone()),
        clock,
        seed,
        // What is asked of the network goes to the host, and the host answers from the record.
        recorded: None,
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
    output: Mutex<Output>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

struct Output {
    stdout: Stdout,
    /// The question that is open: of no other is anything said. Tasks of a call may outlive it for
    /// a moment, and the host takes what they want for the next one's.
    open: Option<Open>,
}

#[derive(Clone, Copy)]
struct Open {
    question: u64,
    most: Most,
    /// Bytes of a request's body that are sent on.
    body: usize,
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
            output: Mutex::new(Output { stdout: stdout(), open: None }),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
        }))
    }

    /// Says something that belongs to no question.
    fn send(&self, message: &FromJudge, raw: &[u8]) -> Result<(), FrameError> {
        frame::write(&mut self.output().stdout, message, raw, Role::Verify.most_out())
    }

    /// A question begins. Who still waits for an answer to an earlier one gets none.
    fn begin(&self, question: u64, limits: &Limits) -> Asking {
        let body = usize::try_from(most_body(limits)).unwrap_or(usize::MAX);
        let open = Open { question, most: most_out_under(limits), body };
        self.output().open = Some(open);
        self.waiting().clear();
        Asking { pipe: self.clone(), open }
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

    fn output(&self) -> MutexGuard<'_, Output> {
        self.0.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One question's use of the pipe.
#[derive(Clone)]
struct Asking {
    pipe: Pipe,
    open: Open,
}

impl Asking {
    /// Says something of this question; `false` if it is over, and nothing was said.
    fn tell(&self, message: &FromJudge, raw: &[u8]) -> bool {
        let mut output = self.pipe.output();
        if output.open.is_none_or(|open| open.question != self.open.question) {
            return false;
        }
        if let Err(error) = frame::write(&mut output.stdout, message, raw, self.open.most) {
            // Without the pipe there is nobody to answer for, and nothing to tell a guest.
            fail(&error.to_string());
        }
        true
    }

    /// Answers it. Nothing more is said of it.
    fn end(&self, judged: Judged) {
        let question = self.open.question;
        let mut output = self.pipe.output();
        output.open = None;
        let most = self.open.most;
        let message = FromJudge::Judged { question, judged: Box::new(judged) };
        let sent = match frame::write(&mut output.stdout, &message, &[], most) {
            Err(error @ FrameError::TooLong { .. }) => {
                // It holds more checks and findings than any limit's bytes make room for.
                let end = JudgedEnd::Fault(format!("its answer is {error}"));
                let judged =
                    Judged { end, used: Used::default(), log: String::new(), record: Record::default() };
                let message = FromJudge::Judged { question, judged: Box::new(judged) };
                frame::write(&mut output.stdout, &message, &[], most)
            }
            sent => sent,
        };
        if let Err(error) = sent {
            // Without a pipe nobody waits for the answer.
            fail(&error.to_string());
        }
    }

    fn want(&self, want: Want, raw: &[u8], waiting: Waiting) {
        let number = self.pipe.0.next.fetch_add(1, Ordering::Relaxed);
        self.pipe.waiting().insert(number, waiting);
        let message = FromJudge::Wants { question: self.open.question, number, want };
        if !self.tell(&message, raw) {
            self.pipe.waiting().remove(&number);
        }
    }

    /// `None` if the question is over.
    fn ask(&self, want: Want) -> Option<Answer> {
        let (waiting, answer) = sync_channel(1);
        self.want(want, &[], Waiting::Thread(waiting));
        answer.recv().ok().map(|(answer, _)| answer)
    }

    /// `None` if the question is over.
    async fn ask_async(&self, want: Want, raw: &[u8]) -> Option<Reply> {
        let (waiting, answer) = oneshot::channel();
        self.want(want, raw, Waiting::Task(waiting));
        answer.await.ok()
    }
}

impl FactSource for Asking {
    fn get(&self, id: &str) -> Option<Fact> {
        if id.len() > WANTED {
            return None;
        }
        match self.ask(Want::Fact(id.to_owned()))? {
            Answer::Fact(fact) => fact,
            other => unexpected(&other),
        }
    }

    fn find(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Fact> {
        if prefix.len().saturating_add(after.map_or(0, str::len)) > WANTED {
            return Vec::new();
        }
        let want = Want::Facts { prefix: prefix.to_owned(), after: after.map(str::to_owned), limit };
        match self.ask(want) {
            Some(Answer::Facts(facts)) => facts,
            Some(other) => unexpected(&other),
            None => Vec::new(),
        }
    }
}

/// A host that answers another question is none that this worker can work for.
fn unexpected<T>(answer: &Answer) -> T {
    fail(&format!("the host answered {answer:?}, which was not asked"))
}

/// Ends this worker, and says why.
fn fail(why: &str) -> ! {
    say(why);
    std::process::exit(super::FAILED.into())
}

impl Observer for Asking {
    fn log(&self, level: &str, message: &str) {
        let (level, message) = (level.to_owned(), message.to_owned());
        self.tell(&FromJudge::Log { question: self.open.question, level, message }, &[]);
    }

    fn progress(&self, done: u32, total: u32, message: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self.ask_async(Want::Progress { done, total, message }, &[]).await {
                Some((Answer::Told, _)) | None => {}
                Some((other, _)) => unexpected(&other),
            }
        })
    }
}

/// The gate that the sandbox of this worker holds: each question has its own.
impl Gate for Pipe {
    fn fetch(&self, _: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let why = "nothing is asked, so nothing may use the network".to_owned();
        Box::pin(std::future::ready(Err(NoAnswer::Denied(why))))
    }

    fn of_call(&self) -> Option<Arc<dyn Gate>> {
        let open = self.output().open?;
        Some(Arc::new(Asking { pipe: self.clone(), open }))
    }
}

impl Gate for Asking {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, NoAnswer>> {
        let asking = self.clone();
        Box::pin(async move {
            let Request { method, url, headers, mut body, timeout, follow } = request;
            let lengths = headers.iter().map(|(name, value)| name.len() + value.len() + 8);
            let head = method.len() + url.len() + lengths.sum::<usize>();
            if head > WANTED {
                return Err(NoAnswer::Invalid(format!(
                    "method, URL and headers are {head} bytes, where at most {WANTED} are sent"
                )));
            }
            body.truncate(asking.open.body);
            let timeout_ms = timeout.map(millis);
            match asking.ask_async(Want::Fetch { method, url, headers, timeout_ms, follow }, &body).await {
                Some((Answer::Fetched { url, status, headers }, body)) => {
                    Ok(Response { url, status, headers, body: Bytes::from(body) })
                }
                Some((Answer::Denied(refusal), _)) => Err(refusal.into()),
                Some((other, _)) => unexpected(&other),
                None => Err(NoAnswer::TimedOut),
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
