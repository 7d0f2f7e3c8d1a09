//! What `ledger` and `publisher` share: a line in a book outside, and a fact about it.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use checkrein_skill::call::settings;
use checkrein_skill::prelude::*;

/// What to write down.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The number that the fact is about.
    pub n: u32,
    /// A file under `/in`: the source of the fact.
    pub from: String,
    /// Milliseconds to wait before the line is written.
    #[serde(default)]
    pub before_ms: u32,
    /// Milliseconds to wait after it was written.
    #[serde(default)]
    pub pause_ms: u32,
}

/// What the operator's settings say.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// The granted folder that the book lies in; without one it lies in `/work`, and is lost.
    folder: Option<String>,
}

/// Appends the id of the call to `<book>.txt`, and states `<book>/<n>`.
///
/// # Errors
///
/// If the source is not there, or the book cannot be written.
pub fn execute(book: &str, call: &Call<Args>) -> Result<Outcome, Failure> {
    let args = &call.args;
    files::read(&args.from)?;
    pause(args.before_ms);
    append(book, call)?;
    pause(args.pause_ms);
    let content = json!({ "n": args.n, "double": u64::from(args.n) * 2 });
    let subject = format!("{book}/{}", args.n);
    let fact = DraftFact::new(subject, "entry", content.clone(), &args.from);
    Ok(Outcome::new(content).fact(fact))
}

fn pause(millis: u32) {
    if millis > 0 {
        std::thread::sleep(Duration::from_millis(u64::from(millis)));
    }
}

/// In one write, so that two calls at once leave two whole lines, and on disk before it returns.
fn append(book: &str, call: &Call<Args>) -> Result<(), Failure> {
    let (name, line) = (format!("{book}.txt"), format!("{}\n", call.id));
    let Some(folder) = settings::<Settings>(&call.settings)?.folder else {
        return files::write_work(&name, line);
    };
    let path = format!("{folder}/{name}");
    let written = OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| {
        file.write_all(line.as_bytes())?;
        file.flush()?;
        file.sync_all()
    });
    written.map_err(|error| Failure::denied(format!("`{path}` cannot be written: {error}")))
}

/// Holds the outcome against the arguments.
///
/// # Errors
///
/// If it is not the outcome of a call.
pub fn verify(book: &str, submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let (args, outcome) = (&performed.call.args, &performed.outcome);
    let right = json!({ "n": args.n, "double": u64::from(args.n) + u64::from(args.n) });
    let mut verdict = Verdict::new();
    verdict.equal("content", "another content", &right, &outcome.content, "/content");
    verdict.equal("once", "one fact is expected", &1, &outcome.facts.len(), "/facts");
    verdict.equal("files", "no file is expected", &0, &outcome.artifacts.len(), "/artifacts");
    for (n, fact) in outcome.facts.iter().enumerate() {
        let expected = json!([format!("{book}/{}", args.n), right]);
        let actual = json!([fact.subject, fact.content]);
        if verdict.equal("entry", "another entry", &expected, &actual, format!("/facts/{n}")) {
            verdict.check("entry", [&fact.subject], "as the arguments say");
        }
    }
    Ok(verdict)
}

/// Gives up, whatever it was: what cannot be taken back is not tried again by itself.
#[must_use]
pub fn recover(mishap: &Mishap) -> Advice {
    let why = match &mishap.cause {
        Cause::Failed(failure) => failure.message.clone(),
        Cause::Limited(hit) => format!("the limit `{}`", hit.limit),
        Cause::Trapped(message) | Cause::Other(message) => message.clone(),
        Cause::Rejected(findings) => format!("{} findings", findings.len()),
        Cause::Unmet(criteria) => criteria.join("; "),
    };
    Advice::new("the entry was not made", Remedy::GiveUp(why))
}
