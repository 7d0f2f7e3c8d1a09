//! What a server or a guest sends too much of, or too slowly.

use std::io::Write as _;

use super::server::{Piece, answer, ok, redirect};
use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_body_over_the_limit() {
    let server = Server::start(|_| answer(200, &[], &vec![b'x'; 300_000])).await;
    let call = Setup::granting(&[server.reading()]).limited(LimitKey::HttpIn, 100_000).call();
    assert_eq!(call.get(&server.url()).await.unwrap_err(), NoAnswer::TooLarge(100_000));
    let record = call.record();
    assert!(record.exchanges[0].body.is_none() && record.exchanges[0].status == Some(200), "{record:?}");
    assert!(
        record.denials[0].wall == Wall::Limit && record.denials[0].what.contains("`http-in`"),
        "{record:?}"
    );
    assert!(!record.fetched(&server.url()), "a part is no source");
}

#[tokio::test]
async fn many_bodies_share_one_limit() {
    let server = Server::start(|_| answer(200, &[], &vec![b'x'; 40_000])).await;
    let call = Setup::granting(&[server.reading()]).limited(LimitKey::HttpIn, 100_000).call();
    call.get(&server.url()).await.unwrap();
    call.get(&server.url()).await.unwrap();
    assert_eq!(call.get(&server.url()).await.unwrap_err(), NoAnswer::TooLarge(100_000));
}

#[tokio::test]
async fn a_body_compressed_a_thousand_to_one() {
    let bomb = gzip(&vec![0; 64 << 20]);
    assert!(bomb.len() < 100_000);
    let server = Server::start(move |_| answer(200, &[("content-encoding", "gzip")], &bomb)).await;
    let call = Setup::granting(&[server.reading()]).limited(LimitKey::HttpIn, 1 << 20).call();
    assert_eq!(call.get(&server.url()).await.unwrap_err(), NoAnswer::TooLarge(1 << 20));
    let read = call.record().exchanges[0].body_bytes;
    assert!(read < (1 << 20) + (256 << 10), "it goes on to decompress: {read}");
}

#[tokio::test]
async fn what_is_compressed_arrives_plain_and_is_stored_so() {
    let body = gzip(b"hello hello hello");
    let server = Server::start(move |_| answer(200, &[("content-encoding", "gzip")], &body)).await;
    let call = Setup::granting(&[server.reading()]).call();
    let response = call.get(&server.url()).await.unwrap();
    assert_eq!(&response.body[..], b"hello hello hello");
    assert_eq!(header(&response, "content-encoding"), None);
    let digest = call.record().exchanges[0].body.unwrap();
    assert_eq!(call.blobs.get(&digest).unwrap(), b"hello hello hello");
}

#[tokio::test]
async fn headers_without_end() {
    let many: String = (0..2000).map(|at| format!("x-{at}: {}\r\n", "y".repeat(40))).collect();
    let answer = format!("HTTP/1.1 200 x\r\n{many}\r\n");
    let server = Server::start(move |_| vec![Piece::Bytes(answer.clone().into_bytes())]).await;
    let call = Setup::granting(&[server.reading()]).call();
    assert!(matches!(call.get(&server.url()).await, Err(NoAnswer::Transport(_))));
    assert!(call.record().exchanges[0].error.is_some());
}

#[tokio::test]
async fn too_much_sent() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::granting(&[server.anything()]).limited(LimitKey::HttpOut, 1_000).call();
    let NoAnswer::Denied(told) = call.gate.fetch(post(&server.url(), &[b'x'; 3_000])).await.unwrap_err()
    else {
        panic!()
    };
    assert!(told.contains("`http-out`: 1000 B allowed"), "{told}");
    let (wall, _, grant) = call.denial();
    assert_eq!((wall, grant.as_deref()), (Wall::Limit, Some("limits = { http-out = \"4 KiB\" }")));
    // In small pieces, and in headers, too.
    let call = Setup::granting(&[server.anything()]).limited(LimitKey::HttpOut, 1_000).call();
    let headers = vec![("x".to_owned(), vec![b'y'; 600])];
    let request = || Request { headers: headers.clone(), ..get(&server.url()) };
    call.gate.fetch(request()).await.unwrap();
    call.gate.fetch(request()).await.unwrap_err();
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn too_many_calls() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::granting(&[server.reading()]).limited(LimitKey::HttpCalls, 2).call();
    call.get(&server.url()).await.unwrap();
    call.get(&server.url()).await.unwrap();
    let NoAnswer::Denied(told) = call.get(&server.url()).await.unwrap_err() else { panic!() };
    assert!(told.contains("limit `http-calls`: 2 allowed, 3 used"), "{told}");
    assert_eq!((server.seen().len(), call.denial().0), (2, Wall::Limit));
}

async fn times_out(pieces: Vec<Piece>) -> Record {
    let server = Server::start(move |_| pieces.clone()).await;
    let call = Setup::granting(&[server.reading()]).call();
    let timeout = Some(Duration::from_millis(300));
    let began = Instant::now();
    let denied = call.gate.fetch(Request { timeout, ..get(&server.url()) }).await.unwrap_err();
    assert_eq!(denied, NoAnswer::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(10));
    call.record()
}

#[tokio::test]
async fn a_server_that_says_nothing() {
    let record = times_out(vec![Piece::Silence]).await;
    assert!(record.exchanges[0].status.is_none() && record.exchanges[0].error.is_some(), "{record:?}");
}

#[tokio::test]
async fn headers_then_nothing() {
    let head = b"HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\n".to_vec();
    let record = times_out(vec![Piece::Bytes(head), Piece::Silence]).await;
    assert!(record.exchanges[0].status == Some(200) && record.exchanges[0].body.is_none(), "{record:?}");
    assert!(record.exchanges[0].error.as_deref().unwrap().contains("in time"), "{record:?}");
}

#[tokio::test]
async fn one_byte_a_second() {
    let head = b"HTTP/1.1 200 x\r\ncontent-length: 500\r\n\r\n".to_vec();
    times_out(vec![Piece::Bytes(head), Piece::Drip]).await;
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_body() {
    let head = b"HTTP/1.1 200 x\r\ncontent-length: 500\r\nconnection: close\r\n\r\nabc".to_vec();
    let server = Server::start(move |_| vec![Piece::Bytes(head.clone())]).await;
    let call = Setup::granting(&[server.reading()]).call();
    assert!(matches!(call.get(&server.url()).await, Err(NoAnswer::Transport(_))));
    assert!(call.record().exchanges[0].body.is_none());
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_its_record_and_no_task() {
    let server = Server::start(|_| vec![Piece::Silence]).await;
    let call = Setup::granting(&[server.reading()]).call();
    let url = server.url();
    let given_up = tokio::time::timeout(Duration::from_millis(300), call.get(&url)).await;
    assert!(given_up.is_err());
    let record = call.record();
    assert!(record.exchanges[0].error.as_deref().unwrap().contains("ended before"), "{record:?}");
    // The task holds the gate until it is aborted.
    let open::Open { exit, .. } = call.gate;
    while Arc::strong_count(&exit) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_leaves_once_the_record_was_taken() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::granting(&[server.anything()]).call();
    assert!(call.record().is_empty());
    // As a request does that a guest did not wait for.
    let denied = call.gate.fetch(post(&server.url(), b"late")).await.unwrap_err();
    assert!(matches!(&denied, NoAnswer::Denied(why) if why.contains("the call is over")), "{denied:?}");
    assert!(server.seen().is_empty() && call.record().is_empty());
}

#[tokio::test]
async fn no_name_is_looked_up_once_the_record_was_taken() {
    let call = Setup::granting(&["https://nice.example".into()]).call();
    call.record();
    assert!(matches!(call.get("https://nice.example/").await, Err(NoAnswer::Denied(_))));
    assert!(call.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn no_redirect_is_followed_once_the_record_was_taken() {
    let recorder: Arc<Mutex<Option<Recorder>>> = Arc::default();
    let over = Arc::clone(&recorder);
    let server = Server::start(move |_| {
        if let Some(recorder) = over.lock().unwrap().as_ref() {
            recorder.take();
        }
        redirect(302, "/next")
    })
    .await;
    let call = Setup::granting(&[server.reading()]).call();
    *recorder.lock().unwrap() = Some(call.recorder.clone());
    let denied = call.get(&server.url()).await.unwrap_err();
    assert!(matches!(&denied, NoAnswer::Denied(why) if why.contains("the call is over")), "{denied:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_exchange_that_cannot_be_stored_ends_the_call() {
    let server = Server::start(|_| ok("")).await;
    let network = Network::start(Arc::new(Names::default()), Secrets::default(), Vec::new()).unwrap();
    let rules = vec![Rule::parse(&server.reading()).unwrap()];
    let recorder = Recorder::default();
    let gate = network.open(Pass {
        granted: &Granted { network: rules, ..Granted::default() },
        limits: &Limits::default(),
        deadline: Instant::now() + Duration::from_secs(30),
        clear: Clear::ByRule,
        recorder: recorder.clone(),
        blobs: Arc::new(crate::testing::FullBlobs),
    });
    assert!(matches!(gate.fetch(get(&server.url())).await, Err(NoAnswer::Transport(_))));
    assert!(matches!(recorder.failed(), Some(checkrein_contract::port::StorageError::Full { .. })));
    assert!(server.seen().is_empty(), "what cannot be recorded does not leave");
}

/// Prints what the gate costs: an exchange in the clear, one by TLS with a handshake of its own, and
/// the search for secrets.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn cost_of_an_exchange() {
    const TIMES: u32 = 200;
    let authority = Authority::new();
    let servers =
        [Server::start(|_| ok("x")).await, Server::start_tls(&authority, "127.0.0.1", |_| ok("x")).await];
    for server in servers {
        let call =
            Setup::granting(&[server.reading()]).trusting(&authority).limited(LimitKey::HttpCalls, 1_000);
        let (call, url) = (call.call(), server.url());
        call.get(&url).await.unwrap();
        let began = Instant::now();
        for _ in 0..TIMES {
            call.get(&url).await.unwrap();
        }
        println!("{url}: {:?} an exchange", began.elapsed() / TIMES);
    }
    let secrets = Secrets::new([("K".to_owned(), "s3cr3t-value-of-32-characters-xyz".to_owned())]);
    let scrubber = Scrubber::new(&Setup::default().using("K", "h", "x").uses, &secrets);
    for (what, body) in [
        ("text", "the quick brown fox jumps over the lazy dog; ".repeat(1 << 20 >> 5)),
        ("escapes", "%73".repeat(1 << 20)),
    ] {
        let began = Instant::now();
        assert!(matches!(scrubber.bytes(body.as_bytes()), std::borrow::Cow::Borrowed(_)));
        println!("{what}: {:?} for {} bytes", began.elapsed(), body.len());
    }
}
