//! What is taken of a judging worker's answer. It may have been taken over by what it ran, so it
//! can hand over nothing that a guest could not.

use std::sync::Arc;

use checkrein_contract::interface::{Failure, FailureKind, LimitHit, Verdict};
use checkrein_contract::limits::{LimitKey, Limits, Used};
use checkrein_contract::port::{End, Ran};
use checkrein_contract::record::{DENIALS_MAX, Record};
use serde_json::Value;

use super::wire::{Judged, JudgedEnd};
use crate::accept::{Acceptor, Refused};
use crate::net::Scrubber;
use crate::text::one_line;

/// Bytes of a message of a worker that are kept.
const MESSAGE: usize = 4 << 10;

/// An answer of the contract, or what is wrong with the worker that gave this one. `record` is
/// what the host's own gate saw.
pub(super) fn take(
    judged: Judged,
    component: &str,
    limits: &Limits,
    scrubber: &Arc<Scrubber>,
    record: Record,
) -> Result<Ran<Result<Verdict, Failure>>, String> {
    let Judged { end, used, log, record: said } = judged;
    // Bytes that are no UTF-8 become three each, and the mark of a cut is added.
    let most = limits.get(LimitKey::Log).saturating_mul(3).saturating_add(256);
    if log.len() as u64 > most {
        return Err(format!("a log of {} bytes, where {most} are the most", log.len()));
    }
    let acceptor = Acceptor { component, limits, scrubber: Arc::clone(scrubber) };
    let end = match end {
        JudgedEnd::Returned(Ok(verdict)) => accepted(acceptor.verdict(verdict).map(Ok)),
        JudgedEnd::Returned(Err(failure)) => accepted(acceptor.failure(failure).map(Err)),
        JudgedEnd::Limited(hit) => End::Limited(known(hit)?),
        JudgedEnd::Trapped(message) => End::Trapped(short(&scrubber.text(&message))),
        JudgedEnd::Storage(error) => unjudged(&error.to_string()),
        JudgedEnd::Fault(message) => unjudged(&message),
    };
    let log = scrubber.string(log);
    Ok(Ran { end, used: bounded(used, limits, &record), log, record: merged(record, said) })
}

/// What went wrong in a worker is no fault of this host's: it could not judge, and that is all.
fn unjudged(why: &str) -> End<Result<Verdict, Failure>> {
    unavailable(why, 0, Record::default()).end
}

/// The answer where no worker gave one.
pub(super) fn unavailable(why: &str, wall_ms: u64, record: Record) -> Ran<Result<Verdict, Failure>> {
    let message = format!("the verification could not be asked: {why}");
    Ran {
        end: End::Returned(Err(Failure {
            kind: FailureKind::Unavailable,
            message: short(&message),
            evidence: Value::Null,
        })),
        used: Used { wall_ms, ..Used::default() },
        log: String::new(),
        record,
    }
}

fn accepted<T>(answer: Result<T, Refused>) -> End<T> {
    match answer {
        Ok(answer) => End::Returned(answer),
        Err(Refused::Limit(stop)) => End::Limited(stop.0),
        Err(Refused::Problem(problem)) => End::Invalid(*problem),
    }
}

fn known(hit: LimitHit) -> Result<LimitHit, String> {
    match LimitKey::parse(&hit.limit) {
        Some(_) => Ok(hit),
        None => Err(format!("a limit that there is not: {}", short(&hit.limit))),
    }
}

/// What was used within the worker, as far as a call may use it; and what the host's own gate saw
/// pass.
fn bounded(used: Used, limits: &Limits, record: &Record) -> Used {
    let most = |value: u64, key| value.min(limits.get(key));
    Used {
        fuel: most(used.fuel, LimitKey::Fuel),
        cpu_ms: most(used.cpu_ms, LimitKey::Cpu),
        wall_ms: most(used.wall_ms, LimitKey::Wall),
        memory_bytes: most(used.memory_bytes, LimitKey::Memory),
        host_calls: most(used.host_calls, LimitKey::HostCalls),
        wasi_calls: most(used.wasi_calls, LimitKey::WasiCalls),
        http_calls: record.exchanges.len() as u64,
        http_in_bytes: record.exchanges.iter().map(|exchange| exchange.body_bytes).sum(),
        http_out_bytes: record.exchanges.iter().map(|exchange| exchange.sent_bytes).sum(),
    }
}

/// What left is what the host's gate saw leave. What was refused inside the worker is refused to
/// everyone, so no line of it is offered as a grant.
fn merged(mut record: Record, said: Record) -> Record {
    for denial in said.denials.into_iter().take(DENIALS_MAX) {
        record.deny(denial.wall, short(&denial.what), None);
        let same = record.denials.iter_mut().find(|known| known.what == short(&denial.what));
        if let Some(known) = same {
            known.count = known.count.saturating_add(denial.count.saturating_sub(1));
        }
    }
    record.more_denials = record.more_denials.saturating_add(said.more_denials);
    record
}

pub(super) fn short(text: &str) -> String {
    one_line(&text[..text.floor_char_boundary(MESSAGE)])
}

#[cfg(test)]
mod tests {
    use checkrein_contract::record::{Denial, Exchange, Wall};

    use super::*;
    use crate::bindings::types as guest;

    fn answer(end: JudgedEnd) -> Judged {
        Judged { end, used: Used::default(), log: String::new(), record: Record::default() }
    }

    fn taken(judged: Judged) -> Result<Ran<Result<Verdict, Failure>>, String> {
        take(judged, "v", &Limits::default(), &Arc::default(), Record::default())
    }

    fn verdict(note: &str, actual: &str) -> JudgedEnd {
        let finding = guest::Finding {
            rule: "r".into(),
            severity: guest::Severity::Error,
            message: note.into(),
            expected: "1".into(),
            actual: actual.into(),
            location: None,
            suggestion: None,
        };
        JudgedEnd::Returned(Ok(guest::Verdict { checks: Vec::new(), findings: vec![finding] }))
    }

    #[test]
    fn a_worker_that_was_taken_over_can_say_no_more_than_a_guest() {
        let end = |end| taken(answer(end)).unwrap().end;
        assert!(matches!(end(verdict("n", "2")), End::Returned(Ok(_))));
        let empty = JudgedEnd::Returned(Ok(guest::Verdict { checks: Vec::new(), findings: Vec::new() }));
        for (end, rule) in [
            (end(empty), "verdict-empty"),
            (end(verdict("n", "1")), "finding-says-nothing"),
            (end(verdict("n", "nope")), "json"),
            (end(verdict("n", &("[".repeat(65) + &"]".repeat(65)))), "json"),
        ] {
            let End::Invalid(problem) = end else { panic!("{end:?}") };
            assert_eq!(problem.rule, rule);
        }
        let End::Limited(hit) = end(verdict(&"x".repeat(1 << 20), "2")) else { panic!() };
        assert_eq!(hit.limit, "outcome");
        let hit = LimitHit { limit: "nothing".into(), allowed: 0, used: 0 };
        assert!(taken(answer(JudgedEnd::Limited(hit))).unwrap_err().contains("nothing"));
        let End::Trapped(message) = end(JudgedEnd::Trapped("a\n\u{1b}[31m".repeat(10_000))) else { panic!() };
        assert!(message.len() < 2 * MESSAGE && !message.contains(['\n', '\u{1b}']));
        let log = Judged { log: "x".repeat(4 << 20), ..answer(verdict("n", "2")) };
        assert!(taken(log).unwrap_err().contains("log"));
    }

    fn exchange(sent_bytes: u64, body_bytes: u64) -> Exchange {
        Exchange {
            method: "GET".into(),
            url: "https://example.org/".into(),
            asked: None,
            at: checkrein_contract::id::Timestamp(0),
            ms: 0,
            sent: checkrein_contract::digest::Digest::ZERO,
            sent_bytes,
            status: Some(200),
            headers: Vec::new(),
            body: None,
            body_bytes,
            error: None,
        }
    }

    #[test]
    fn what_was_used_is_within_the_limits_and_over_the_network_what_the_gate_saw() {
        let most = u64::MAX;
        let mut judged = answer(verdict("n", "2"));
        judged.used = Used {
            fuel: most,
            cpu_ms: most,
            wall_ms: most,
            memory_bytes: most,
            host_calls: most,
            wasi_calls: most,
            http_calls: most,
            http_in_bytes: most,
            http_out_bytes: most,
        };
        let mut seen = Record::default();
        seen.exchanges.extend([exchange(10, 100), exchange(1, 1)]);
        let limits = Limits::default();
        let used = take(judged, "v", &limits, &Arc::default(), seen).unwrap().used;
        assert_eq!((used.http_calls, used.http_out_bytes, used.http_in_bytes), (2, 11, 101));
        for (used, key) in [
            (used.fuel, LimitKey::Fuel),
            (used.cpu_ms, LimitKey::Cpu),
            (used.wall_ms, LimitKey::Wall),
            (used.memory_bytes, LimitKey::Memory),
            (used.host_calls, LimitKey::HostCalls),
            (used.wasi_calls, LimitKey::WasiCalls),
        ] {
            assert_eq!(used, limits.get(key), "{key}");
        }
    }

    #[test]
    fn what_left_is_only_what_the_gate_saw() {
        let mut judged = answer(verdict("n", "2"));
        judged.used.fuel = u64::MAX;
        judged.record.exchanges.push(exchange(0, 0));
        let what = "write `/in`".to_owned();
        judged.record.denials.push(Denial {
            wall: Wall::File,
            what,
            grant: Some("files = [\"rw /home\"]".into()),
            count: 3,
        });
        let ran = taken(judged).unwrap();
        assert!(ran.record.exchanges.is_empty());
        let denial = &ran.record.denials[0];
        assert_eq!((denial.grant.as_deref(), denial.count), (None, 3));
        assert_eq!(ran.used.fuel, Limits::default().get(LimitKey::Fuel));
    }
}
