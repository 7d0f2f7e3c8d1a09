//! Calls that are executed again: each is made once against a server, then from its record alone.

use checkrein_contract::port::{End, Guests as _, Setting, StorageError};

use super::server::{Piece, answer, ok, redirect};
use super::*;
use crate::replay::is_unrecorded;
use crate::testing::guest::network::{fetches, gets_by_wasi_http};

/// What a call did, and what it has to do it again.
struct Done {
    record: Record,
    blobs: Arc<MemoryBlobs>,
    granted: Granted,
    limits: Limits,
}

/// A call that is made again.
struct Again {
    gate: Replay,
    recorder: Recorder,
}

impl Done {
    fn of(call: Call) -> Self {
        let exit = &call.gate.exit;
        let (granted, limits) = (exit.granted.clone(), call.limits.clone());
        Done { record: call.recorder.take(), blobs: call.blobs, granted, limits }
    }

    fn again(&self) -> Again {
        let recorder = Recorder::default();
        let gate = Replay::open(
            Pass {
                granted: &self.granted,
                limits: &self.limits,
                deadline: Instant::now() + Duration::from_secs(3600),
                clear: Clear::ByRule,
                recorder: recorder.clone(),
                blobs: Arc::clone(&self.blobs) as Arc<dyn checkrein_contract::port::Blobs>,
            },
            Arc::new(self.record.clone()),
        );
        Again { gate, recorder }
    }
}

type Said = Result<(String, u16, Vec<(String, Vec<u8>)>, Bytes), NoAnswer>;

fn said(answer: Result<Response, NoAnswer>) -> Said {
    answer.map(|response| (response.url, response.status, response.headers, response.body))
}

/// Makes these requests one after another, then again from the record: the same answers, and the
/// same record.
async fn twice(setup: Setup, server: Option<Server>, requests: Vec<Request>) -> (Vec<Said>, Record) {
    let call = setup.call();
    let mut first = Vec::new();
    for request in &requests {
        first.push(said(call.gate.fetch(request.clone()).await));
    }
    drop(server);
    let done = Done::of(call);
    let again = done.again();
    for (request, first) in requests.iter().zip(&first) {
        assert_eq!(&said(again.gate.fetch(request.clone()).await), first, "{request:?}");
    }
    assert!(again.recorder.failed().is_none());
    assert_eq!(again.recorder.take(), done.record);
    (first, done.record)
}

#[tokio::test]
async fn requests_are_answered_as_they_were() {
    let server = Server::start(|seen| {
        let body = [seen.line().as_bytes(), b" ", &seen.body].concat();
        answer(if seen.line().starts_with("POST") { 201 } else { 404 }, &[("x-a", "b")], &body)
    })
    .await;
    let url = server.url();
    let setup = Setup::granting(&[server.anything()]);
    let requests = vec![get(&url), post(&url, b"one"), post(&url, b"two"), get(&format!("{url}/a?b=c#d"))];
    let (said, record) = twice(setup, Some(server), requests).await;
    assert_eq!(record.exchanges.len(), 4);
    assert_eq!(said[2].as_ref().unwrap().3, "POST / HTTP/1.1 two");
}

#[tokio::test]
async fn redirects_are_followed_through_the_record() {
    let server = Server::start(|seen| match seen.line() {
        "GET /a HTTP/1.1" => redirect(302, "/b"),
        "GET /b HTTP/1.1" => redirect(307, "/c?x"),
        "POST /form HTTP/1.1" => redirect(303, "/c?x"),
        "GET /loop HTTP/1.1" => redirect(302, "/loop"),
        "GET /out HTTP/1.1" => redirect(302, "http://169.254.169.254/"),
        "GET /odd HTTP/1.1" => redirect(302, "http://"),
        _ => ok("there"),
    })
    .await;
    let url = |path: &str| format!("{}{path}", server.url());
    let requests = vec![
        get(&url("/a")),
        Request { follow: false, ..get(&url("/a")) },
        post(&url("/form"), b"x"),
        get(&url("/out")),
        get(&url("/odd")),
        get(&url("/loop")),
    ];
    let setup = Setup::granting(&[server.anything()]);
    let (said, record) = twice(setup, Some(server), requests).await;
    assert_eq!(said[0].as_ref().unwrap().3, "there");
    assert_eq!(said[1].as_ref().unwrap().1, 302);
    assert!(matches!(&said[3], Err(NoAnswer::Denied(why)) if why.contains("would allow it")), "{said:?}");
    assert!(matches!(&said[5], Err(NoAnswer::Transport(why)) if why.contains("redirects")), "{said:?}");
    assert_eq!(record.exchanges.len(), 3 + 1 + 2 + 1 + 1 + 11);
}

#[tokio::test]
async fn what_went_wrong_goes_wrong_in_the_same_way() {
    let server = Server::start(|seen| match seen.line() {
        "GET /cut HTTP/1.1" => {
            vec![Piece::Bytes(b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\nhalf".to_vec())]
        }
        "GET /silent HTTP/1.1" => vec![Piece::Silence],
        "GET /large HTTP/1.1" => answer(200, &[], &[b'x'; 2000]),
        _ => ok(""),
    })
    .await;
    let url = |path: &str| format!("{}{path}", server.url());
    let names = Names::default().with("inside.test", &["10.0.0.1"]);
    let rules = ["https://inside.test".to_owned(), "https://absent.test".to_owned(), server.reading()];
    let setup = Setup::granting(&rules).resolving(names).limited(LimitKey::HttpIn, 1000);
    let requests = vec![
        get(&url("/cut")),
        Request { timeout: Some(Duration::from_millis(100)), ..get(&url("/silent")) },
        get("https://absent.test/"),
        get("https://inside.test/x?y"),
        get("https://other.test/"),
        post(&url("/"), b"x"),
        get("no url"),
        Request { headers: vec![("host".into(), b"x".to_vec())], ..get(&url("/")) },
        get(&url("/large")),
        // Past the limit, nothing fits.
        get(&url("/")),
    ];
    let (said, record) = twice(setup, Some(server), requests).await;
    let errors: Vec<NoAnswer> = said.into_iter().take(9).map(Result::unwrap_err).collect();
    assert!(matches!(&errors[0], NoAnswer::Transport(_)), "{errors:?}");
    assert_eq!(errors[1], NoAnswer::TimedOut);
    assert!(
        matches!(&errors[2], NoAnswer::Transport(why) if why.contains("cannot be resolved")),
        "{errors:?}"
    );
    assert!(matches!(&errors[3], NoAnswer::Denied(why) if !why.contains("10.0.0.1")), "{errors:?}");
    assert!(matches!(&errors[4], NoAnswer::Denied(_)) && matches!(&errors[5], NoAnswer::Denied(_)));
    assert!(matches!(&errors[6], NoAnswer::Invalid(_)) && matches!(&errors[7], NoAnswer::Invalid(_)));
    assert_eq!(errors[8], NoAnswer::TooLarge(1000));
    assert!(record.denials.iter().any(|denial| denial.wall == Wall::Address), "{record:?}");
}

#[tokio::test]
async fn limits_hold_as_they_did() {
    let server = Server::start(|_| ok("x")).await;
    let url = server.url();
    let setup = Setup::granting(&[server.anything()]).limited(LimitKey::HttpCalls, 2);
    let (said, _) = twice(setup, Some(server), vec![get(&url), get(&url), get(&url)]).await;
    assert!(matches!(&said[2], Err(NoAnswer::Denied(why)) if why.contains("http-calls")), "{said:?}");
    let server = Server::start(|_| ok("x")).await;
    let url = server.url();
    let setup = Setup::granting(&[server.anything()]).limited(LimitKey::HttpOut, 100);
    let (said, _) = twice(setup, Some(server), vec![post(&url, &[b'x'; 200])]).await;
    assert!(matches!(&said[0], Err(NoAnswer::Denied(why)) if why.contains("http-out")), "{said:?}");
    // And those of the setting are the ones that hold.
    let server = Server::start(|_| ok("many bytes")).await;
    let url = server.url();
    let call = Setup::granting(&[server.anything()]).call();
    call.get(&url).await.unwrap();
    let mut done = Done::of(call);
    done.limits = done.limits.with(LimitKey::HttpIn, 3);
    assert_eq!(done.again().gate.fetch(get(&url)).await.unwrap_err(), NoAnswer::TooLarge(3));
}

#[tokio::test]
async fn requests_that_ran_side_by_side_may_come_in_another_order() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        ok(&format!("{number}: {}", seen.line()))
    })
    .await;
    let call = Setup::granting(&[server.anything()]).call();
    let url = |path: &str| format!("{}{path}", server.url());
    for path in ["/a", "/b", "/a"] {
        call.get(&url(path)).await.unwrap();
    }
    let done = Done::of(call);
    let again = done.again();
    let mut bodies = Vec::new();
    for path in ["/b", "/a", "/a"] {
        bodies.push(again.gate.fetch(get(&url(path))).await.unwrap().body);
    }
    assert_eq!(bodies, ["1: GET /b HTTP/1.1", "0: GET /a HTTP/1.1", "2: GET /a HTTP/1.1"]);
    // Each answers once.
    let why = again.gate.fetch(get(&url("/b"))).await.unwrap_err();
    assert!(matches!(&why, NoAnswer::Denied(why) if why.contains("no such request was recorded")), "{why:?}");
    let record = again.recorder.take();
    assert!(record.denials.iter().all(is_unrecorded) && record.denials.len() == 1, "{record:?}");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn another_method_url_or_body_is_another_request() {
    let server = Server::start(|_| ok("x")).await;
    let call = Setup::granting(&[server.anything()]).call();
    let url = server.url();
    call.gate.fetch(post(&format!("{url}/a"), b"body")).await.unwrap();
    let done = Done::of(call);
    let again = done.again();
    let put = Request { method: "PUT".to_owned(), ..post(&format!("{url}/a"), b"body") };
    for request in [get(&format!("{url}/a")), put, post(&format!("{url}/b"), b"body"), post(&url, b"other")] {
        let why = again.gate.fetch(request).await.unwrap_err();
        assert!(matches!(&why, NoAnswer::Denied(why) if why.contains("no such request")), "{why:?}");
    }
    again.gate.fetch(post(&format!("{url}/a"), b"body")).await.unwrap();
}

#[tokio::test]
async fn a_record_whose_bodies_are_gone_ends_the_call_as_a_fault_of_the_disk() {
    let server = Server::start(|_| ok("x")).await;
    let call = Setup::granting(&[server.anything()]).call();
    let url = server.url();
    call.get(&url).await.unwrap();
    let done = Done { blobs: Arc::default(), ..Done::of(call) };
    let again = done.again();
    assert!(matches!(again.gate.fetch(get(&url)).await, Err(NoAnswer::Transport(_))));
    assert!(matches!(again.recorder.failed(), Some(StorageError::Missing { .. })));
}

#[tokio::test]
async fn no_secret_is_needed_and_what_was_scrubbed_stays_so() {
    let server = Server::start(|seen| match seen.line() {
        "GET /moved HTTP/1.1" => redirect(302, "/?key=s3cr3t-value"),
        _ => answer(200, &[("x-echo", "s3cr3t-value")], b"it was s3cr3t-value"),
    })
    .await;
    let setup = Setup::granting(&[server.reading()]).secret("TOKEN", "s3cr3t-value", "127.0.0.1", "x-key");
    let requests = vec![get(&server.url()), get(&format!("{}/moved", server.url()))];
    let (said, record) = twice(setup, Some(server), requests).await;
    let (_, _, headers, body) = said[0].as_ref().unwrap();
    assert_eq!(body, "it was [secret TOKEN]");
    assert!(headers.iter().all(|(name, _)| name != "content-length"), "{headers:?}");
    assert!(matches!(&said[1], Err(NoAnswer::Denied(why)) if why.contains("secret in it")), "{said:?}");
    assert!(!serde_json::to_string(&record).unwrap().contains("s3cr3t-value"));
}

#[tokio::test]
async fn guests_see_the_same_by_both_ways_and_nothing_leaves() {
    let server = Server::start(|_| ok("hello")).await;
    let (sandbox, _folder) = crate::testing::sandbox();
    let rules = vec![Rule::parse(&server.anything()).unwrap()];
    let authority = format!("127.0.0.1:{}", server.port);
    for guest in [fetches("POST", &server.url(), &[], "payload"), gets_by_wasi_http(&authority, "/a?b")] {
        let mut setting = crate::testing::ready(&sandbox, &guest);
        setting.granted.network.clone_from(&rules);
        let first = sandbox.execute(setting.clone(), crate::attack::call()).await;
        assert_eq!(first.record.exchanges.len(), 1, "{first:?}");
        let seen = server.seen().len();
        let again = Setting { recorded: Some(Arc::new(first.record.clone())), ..setting.clone() };
        let second = sandbox.execute(again, crate::attack::call()).await;
        assert_eq!((&second.log, &second.record), (&first.log, &first.record));
        let used = |ran: &checkrein_contract::port::Ran<_>| {
            (ran.used.fuel, ran.used.host_calls, ran.used.http_calls, ran.used.http_in_bytes)
        };
        assert_eq!(used(&second), used(&first));
        let empty = Setting { recorded: Some(Arc::default()), ..setting };
        let third = sandbox.execute(empty, crate::attack::call()).await;
        assert!(matches!(third.end, End::Returned(_)) && third.record.denials.len() == 1, "{third:?}");
        assert!(is_unrecorded(&third.record.denials[0]), "{third:?}");
        assert_eq!(server.seen().len(), seen);
    }
}
