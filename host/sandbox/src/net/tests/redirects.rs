//! Every hop passes the whole check.

use super::server::{Piece, Seen, answer, ok, redirect};
use super::*;

#[tokio::test]
async fn each_hop_is_an_exchange_of_its_own() {
    let server = Server::start(|seen| match seen.line() {
        "GET /a HTTP/1.1" => redirect(302, "/b?x=1"),
        _ => ok("end"),
    })
    .await;
    let call = Setup::granting(&[server.reading()]).call();
    let asked = format!("{}/a", server.url());
    let response = call.get(&asked).await.unwrap();
    assert_eq!((response.url.clone(), &response.body[..]), (format!("{}/b?x=1", server.url()), &b"end"[..]));
    let record = call.record();
    let hops: Vec<_> = record.exchanges.iter().map(|hop| (hop.status, hop.asked.clone())).collect();
    assert_eq!(hops, [(Some(302), None), (Some(200), Some(asked.clone()))]);
    assert!(record.fetched(&asked) && record.fetched(&response.url));
}

#[tokio::test]
async fn a_redirect_is_an_answer_where_it_is_not_followed() {
    let server = Server::start(|_| redirect(302, "http://10.0.0.1/")).await;
    let call = Setup::granting(&[server.reading()]).call();
    let response = call.gate.fetch(Request { follow: false, ..get(&server.url()) }).await.unwrap();
    assert_eq!((response.status, header(&response, "location").as_deref()), (302, Some("http://10.0.0.1/")));
}

async fn led_astray(to: &str, rules: &[&str], names: Names) -> (NoAnswer, Record) {
    let target = to.to_owned();
    let server = Server::start(move |_| redirect(307, &target)).await;
    let mut all = vec![server.reading()];
    all.extend(rules.iter().map(|rule| (*rule).to_owned()));
    let call = Setup::granting(&all).resolving(names).call();
    let denied = call.get(&server.url()).await.unwrap_err();
    (denied, call.record())
}

#[tokio::test]
async fn redirect_to_another_host() {
    let (denied, record) = led_astray("https://evil.example/x", &[], Names::default()).await;
    assert!(
        matches!(&denied, NoAnswer::Denied(why) if why.contains("GET https://evil.example/x")),
        "{denied:?}"
    );
    assert_eq!((record.exchanges.len(), record.denials[0].wall), (1, Wall::Network));
}

#[tokio::test]
async fn redirect_to_loopback() {
    let other = Server::start(|_| ok("inner")).await;
    let (denied, record) = led_astray(&other.url(), &[], Names::default()).await;
    assert!(matches!(denied, NoAnswer::Denied(_)));
    assert_eq!(record.denials[0].wall, Wall::Network);
    // Through a name that is granted.
    let to = format!("http://nice.example:{}/", other.port);
    let rule = format!("http://nice.example:{}", other.port);
    let names = Names::default().with("nice.example", &["127.0.0.1"]);
    let (denied, record) = led_astray(&to, &[&rule], names).await;
    assert!(matches!(denied, NoAnswer::Denied(_)));
    assert_eq!(record.denials[0].wall, Wall::Address);
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn redirect_to_what_no_request_goes_to() {
    for to in ["file:///etc/passwd", "http://user@127.0.0.1/", "http://", "javascript:alert(1)"] {
        let (denied, record) = led_astray(to, &[], Names::default()).await;
        assert!(matches!(denied, NoAnswer::Transport(_)), "{to}: {denied:?}");
        assert_eq!(record.denials[0].wall, Wall::Request, "{to}");
    }
}

#[tokio::test]
async fn redirect_to_http() {
    let plain = Server::start(|_| ok("")).await;
    let (authority, to) = (Authority::new(), plain.url());
    let server = Server::start_tls(&authority, "127.0.0.1", move |_| redirect(302, &to)).await;
    let call = Setup::granting(&[server.reading(), plain.reading()]).trusting(&authority).call();
    let denied = call.get(&server.url()).await.unwrap_err();
    assert!(matches!(&denied, NoAnswer::Denied(why) if why.contains("from https to")), "{denied:?}");
    assert_eq!(call.denial().0, Wall::Network);
    assert!(plain.seen().is_empty() && server.seen().len() == 1);
}

#[tokio::test]
async fn twenty_redirects_in_a_row() {
    let server = Server::start(|seen| {
        let number: u32 = seen.line().split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        if number == 20 { ok("") } else { redirect(302, &format!("/{}", number + 1)) }
    })
    .await;
    let call = Setup::granting(&[server.reading()]).call();
    let denied = call.get(&format!("{}/0", server.url())).await.unwrap_err();
    assert!(
        matches!(&denied, NoAnswer::Transport(why) if why.contains("more than 10 redirects")),
        "{denied:?}"
    );
    let record = call.record();
    assert_eq!((record.exchanges.len(), record.denials.len(), server.seen().len()), (11, 1, 11));
    // Each hop counts as a call.
    let call = Setup::granting(&[server.reading()]).limited(LimitKey::HttpCalls, 3).call();
    call.get(&format!("{}/0", server.url())).await.unwrap_err();
    let (wall, what, _) = call.denial();
    assert!(wall == Wall::Limit && what.contains("`http-calls`: 3 allowed, 4 used"), "{what}");
}

fn with_credentials(url: &str) -> Request {
    let headers = [("authorization", "guest-token"), ("cookie", "c=1"), ("x-key", "k"), ("accept", "text/x")];
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    Request { headers: headers.collect(), ..get(url) }
}

#[tokio::test]
async fn credentials_are_dropped_when_the_origin_changes() {
    let other = Server::start(|_| ok("")).await;
    let to = other.url();
    let server = Server::start(move |seen| match seen.line() {
        "GET /same HTTP/1.1" => redirect(302, "/then"),
        "GET /then HTTP/1.1" => ok(""),
        _ => redirect(302, &to),
    })
    .await;
    let rules = [server.reading(), other.reading()];
    let call = Setup::granting(&rules).secret("KEY", "sesame-open", "127.0.0.3", "x-key").call();
    call.gate.fetch(with_credentials(&format!("{}/same", server.url()))).await.unwrap();
    let kept = server.seen()[1].clone();
    assert_eq!((kept.header("authorization"), kept.header("x-key")), (Some("guest-token"), Some("k")));
    call.gate.fetch(with_credentials(&server.url())).await.unwrap();
    let dropped = other.one();
    for name in ["authorization", "cookie", "x-key", "referer"] {
        assert_eq!(dropped.header(name), None, "{name}");
    }
    assert_eq!(dropped.header("accept"), Some("text/x"));
}

#[tokio::test]
async fn methods_and_bodies_are_kept_or_dropped_as_browsers_do() {
    for (status, method, body) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", "payload"),
        (308, "POST", "payload"),
    ] {
        let server = Server::start(move |seen: &Seen| -> Vec<Piece> {
            if seen.line().contains("/a") { redirect(status, "/b") } else { answer(200, &[], b"") }
        })
        .await;
        let call = Setup::granting(&[server.anything()]).call();
        let headers = vec![("content-type".to_owned(), b"text/plain".to_vec())];
        let request = Request { headers, ..post(&format!("{}/a", server.url()), b"payload") };
        call.gate.fetch(request).await.unwrap();
        let seen = server.seen()[1].clone();
        assert_eq!(seen.line(), format!("{method} /b HTTP/1.1"), "{status}");
        assert_eq!(
            (seen.body.as_slice(), seen.header("content-type").is_some()),
            (body.as_bytes(), !body.is_empty())
        );
    }
    // A rule for reading does not let a POST be repeated elsewhere.
    let other = Server::start(|_| ok("")).await;
    let to = other.url();
    let server = Server::start(move |_| redirect(307, &to)).await;
    let call = Setup::granting(&[server.anything(), other.reading()]).call();
    assert!(matches!(call.gate.fetch(post(&server.url(), b"x")).await, Err(NoAnswer::Denied(_))));
    assert!(other.seen().is_empty());
}
