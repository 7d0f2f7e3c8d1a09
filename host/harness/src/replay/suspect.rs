//! What may be to blame for a call that ended otherwise, decided from evidence.

use checkrein_contract::grant::{Clock, Granted};
use checkrein_contract::record::{Exchange, Record, Wall};

/// What may be to blame for a call that ended otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspect {
    /// The component.
    Component,
    /// The engine, or the host around it.
    Engine,
    /// Something that went into the call from outside, and was not recorded.
    Input,
    /// The clock.
    Clock,
    /// Something that differs from one execution to the next.
    Random,
    /// The log itself.
    Log,
}

impl Suspect {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Suspect::Component => "component",
            Suspect::Engine => "engine",
            Suspect::Input => "input",
            Suspect::Clock => "clock",
            Suspect::Random => "random",
            Suspect::Log => "log",
        }
    }
}

/// A suspect, with what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// Who.
    pub suspect: Suspect,
    /// Why, in a sentence.
    pub why: String,
}

impl Suspicion {
    fn new(suspect: Suspect, why: impl Into<String>) -> Self {
        Suspicion { suspect, why: why.into() }
    }
}

/// Whether another engine wrote the log.
pub(super) fn engine(written_by: &str, here: &str) -> Option<Suspicion> {
    let why = || format!("the log was written with {written_by}, and this is {here}");
    (written_by != here).then(|| Suspicion::new(Suspect::Engine, why()))
}

/// Whether the guest could see the real time.
pub(super) fn clock(skill: &str, granted: &Granted) -> Option<Suspicion> {
    let why = || format!("`{skill}` is granted the real clock, which has moved on since");
    (granted.clock == Clock::Real).then(|| Suspicion::new(Suspect::Clock, why()))
}

/// The log says of a call what does not follow from how it ended.
pub(super) fn log() -> Suspicion {
    let why = "the log is not what this host writes of a call that ended so: it was altered, or written by \
               another version";
    Suspicion::new(Suspect::Log, why)
}

/// What of the outside was not recorded, or not whole: granted folders and requests.
pub(super) fn inputs(granted: &Granted, recorded: &Record, seen: &Record) -> Vec<Suspicion> {
    let all = folders(granted, recorded).into_iter().chain(requests(recorded, seen));
    all.chain(partly(recorded)).map(|why| Suspicion::new(Suspect::Input, why)).collect()
}

/// Where nothing speaks for any of the others, and the call was executed twice here.
pub(super) fn without_evidence(skill: &str, agree: bool) -> Vec<Suspicion> {
    if !agree {
        let why = format!(
            "two executions here differ from each other: `{skill}` draws on something that is neither \
             its seed nor its record"
        );
        return vec![Suspicion::new(Suspect::Random, why)];
    }
    let component = format!(
        "two executions here agree with each other and not with the log: the component of `{skill}`, with \
         the bytes that the log names, does not give what the log says of it"
    );
    let engine = "or the log was written by another build of the engine, or of the host around it, that says \
                  the same version";
    vec![Suspicion::new(Suspect::Component, component), Suspicion::new(Suspect::Engine, engine)]
}

fn folders(granted: &Granted, recorded: &Record) -> Vec<String> {
    let missing = granted.files.iter().filter_map(|folder| {
        let known = recorded.folders.iter().find(|seen| seen.path == folder.path);
        let why = match known {
            Some(seen) if seen.files.is_some() => return None,
            Some(seen) => seen.left_out.as_deref().unwrap_or("it was left out"),
            None => "the log says nothing of it",
        };
        Some(format!("what the granted folder {} held was not recorded: {why}", folder.path))
    });
    missing.collect()
}

/// What was asked for here and is not in the record.
fn requests(recorded: &Record, seen: &Record) -> Vec<String> {
    let same = |one: &Exchange, other: &Exchange| {
        one.method == other.method && one.url == other.url && one.sent == other.sent
    };
    let new = seen.exchanges.iter().filter(|one| !recorded.exchanges.iter().any(|other| same(one, other)));
    let new = new.map(|one| format!("{} {}", one.method, one.url));
    let walls = |wall: Wall| {
        matches!(wall, Wall::Network | Wall::Address | Wall::Socket | Wall::Secret | Wall::Request)
    };
    let known = |wall: Wall, what: &str| {
        recorded.denials.iter().any(|denial| denial.wall == wall && denial.what == what)
    };
    let denied = seen.denials.iter().filter(|one| walls(one.wall) && !known(one.wall, &one.what));
    let denied = denied.map(|one| one.what.clone());
    new.chain(denied).map(|what| format!("it asked for what the record does not hold: {what}")).collect()
}

/// Answers that the record holds a part of.
fn partly(recorded: &Record) -> Vec<String> {
    let part = |one: &&Exchange| one.status.is_some() && one.body.is_none() && one.body_bytes > 0;
    let cut = recorded.exchanges.iter().filter(part);
    cut.map(|one| format!("the answer to {} {} was not recorded to its end", one.method, one.url)).collect()
}

#[cfg(test)]
mod tests {
    use checkrein_contract::Digest;
    use checkrein_contract::grant::Folder;
    use checkrein_contract::id::Timestamp;
    use checkrein_contract::record::{Denial, FolderSeen};

    use super::*;

    fn exchange(url: &str, body: Option<Digest>) -> Exchange {
        Exchange {
            method: "GET".to_owned(),
            url: url.to_owned(),
            asked: None,
            at: Timestamp(0),
            ms: 1,
            sent: Digest::of(""),
            sent_bytes: 0,
            status: Some(200),
            headers: Vec::new(),
            body,
            body_bytes: 2,
            error: None,
        }
    }

    fn of(exchanges: Vec<Exchange>) -> Record {
        Record { exchanges, ..Record::default() }
    }

    fn reasons(granted: &Granted, recorded: &Record, seen: &Record) -> Vec<String> {
        let found = inputs(granted, recorded, seen);
        assert!(found.iter().all(|one| one.suspect == Suspect::Input), "{found:?}");
        found.into_iter().map(|one| one.why).collect()
    }

    #[test]
    fn the_engine_is_named_only_if_it_is_another() {
        assert_eq!(engine("wasmtime 1", "wasmtime 1"), None);
        let found = engine("wasmtime 1", "wasmtime 2").unwrap();
        assert_eq!(found.suspect, Suspect::Engine);
        assert!(found.why.contains("wasmtime 1") && found.why.contains("wasmtime 2"), "{}", found.why);
    }

    #[test]
    fn the_clock_is_named_only_if_it_is_real() {
        assert_eq!(clock("s", &Granted::default()), None);
        let real = Granted { clock: Clock::Real, ..Granted::default() };
        assert_eq!(clock("s", &real).unwrap().suspect, Suspect::Clock);
    }

    #[test]
    fn a_folder_that_was_recorded_is_no_suspect() {
        let granted = Granted { files: vec![Folder::parse("ro /data").unwrap()], ..Granted::default() };
        let with = |files, left_out: Option<&str>| Record {
            folders: vec![FolderSeen {
                path: "/data".to_owned(),
                files,
                left_out: left_out.map(str::to_owned),
            }],
            ..Record::default()
        };
        let none = Record::default();
        assert!(reasons(&granted, &with(Some(Digest::ZERO), None), &none).is_empty());
        assert!(reasons(&granted, &with(None, Some("too large")), &none)[0].ends_with("too large"));
        assert!(reasons(&granted, &none, &none)[0].contains("/data"));
        assert!(reasons(&Granted::default(), &none, &none).is_empty());
    }

    #[test]
    fn a_request_that_is_not_in_the_record_is_named() {
        let granted = Granted::default();
        let known = of(vec![exchange("https://a.org/", Some(Digest::ZERO))]);
        assert!(reasons(&granted, &known, &known).is_empty());
        let other = of(vec![exchange("https://b.org/", Some(Digest::ZERO))]);
        assert!(reasons(&granted, &known, &other)[0].contains("https://b.org/"));
        let denial = |wall| {
            let denial = Denial { wall, what: "GET https://c.org/".to_owned(), grant: None, count: 1 };
            Record { denials: vec![denial], ..Record::default() }
        };
        assert!(reasons(&granted, &known, &denial(Wall::Network))[0].contains("https://c.org/"));
        assert!(reasons(&granted, &known, &denial(Wall::File)).is_empty());
        assert!(reasons(&granted, &denial(Wall::Network), &denial(Wall::Network)).is_empty());
    }

    #[test]
    fn an_answer_that_was_cut_is_named() {
        let cut = of(vec![exchange("https://a.org/", None)]);
        assert!(reasons(&Granted::default(), &cut, &cut)[0].contains("not recorded to its end"));
    }

    #[test]
    fn without_evidence_a_second_execution_decides() {
        let who = |agree| -> Vec<Suspect> {
            without_evidence("s", agree).into_iter().map(|one| one.suspect).collect()
        };
        assert_eq!(who(false), [Suspect::Random]);
        assert_eq!(who(true), [Suspect::Component, Suspect::Engine]);
    }
}
