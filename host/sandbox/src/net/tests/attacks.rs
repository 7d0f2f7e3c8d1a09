//! What must not leave, and what the guest, the record and the operator are told of it.

use super::server::ok;
use super::*;

/// Nothing that is tried reaches the server, and every attempt is recorded.
async fn never_leaves(server: &Server, rule: &str, attempts: &[(&str, String)]) {
    for (method, url) in attempts {
        let call = Setup::granting(&[rule.to_owned()]).call();
        let request = Request { method: (*method).to_owned(), ..get(url) };
        let denied = call.gate.fetch(request).await.unwrap_err();
        assert!(matches!(denied, NoAnswer::Denied(_) | NoAnswer::Invalid(_)), "{method} {url}: {denied:?}");
        let record = call.record();
        assert_eq!(record.denials.len(), 1, "{method} {url}: {record:?}");
        assert!(record.exchanges.is_empty(), "{method} {url}: {record:?}");
    }
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

#[tokio::test]
async fn what_is_granted_is_fetched_and_recorded() {
    let server = Server::start(|_| ok("hello")).await;
    let call = Setup::granting(&[server.reading()]).call();
    let response = call.get(&format!("{}/a?q=1", server.url())).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (200, &b"hello"[..]));
    let seen = server.one();
    assert_eq!(seen.line(), "GET /a?q=1 HTTP/1.1");
    assert_eq!(seen.header("host").unwrap(), format!("127.0.0.1:{}", server.port));
    let record = call.record();
    let [exchange] = record.exchanges.as_slice() else { panic!("{record:?}") };
    assert_eq!((exchange.status, exchange.body_bytes, exchange.error.as_deref()), (Some(200), 5, None));
    assert_eq!(call.blobs.get(&exchange.body.unwrap()).unwrap(), b"hello");
    assert_eq!(call.blobs.get(&exchange.sent).unwrap(), b"");
    assert!(record.fetched(&format!("{}/a?q=1", server.url())) && record.denials.is_empty());
    assert!(!record.fetched(&format!("{}/b", server.url())));
}

#[tokio::test]
async fn no_grant() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::default().call();
    let url = format!("{}/v1/a?key=b", server.url());
    let NoAnswer::Denied(told) = call.get(&url).await.unwrap_err() else { panic!() };
    let rule = format!("network = [\"GET {}/v1/a\"]", server.url());
    assert!(told.contains("nothing is granted") && told.contains(&rule), "{told}");
    let (wall, what, grant) = call.denial();
    assert_eq!((wall, grant.as_deref()), (Wall::Network, Some(rule.as_str())), "{what}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn other_host_port_scheme_method_and_path() {
    let server = Server::start(|_| ok("")).await;
    let other = Server::start(|_| ok("")).await;
    let (port, own) = (server.port, server.url());
    let rule = format!("GET {own}/v1/*");
    never_leaves(
        &server,
        &rule,
        &[
            ("GET", format!("http://127.0.0.2:{port}/v1/a")),
            ("GET", format!("{}/v1/a", other.url())),
            ("GET", format!("https://127.0.0.1:{port}/v1/a")),
            ("POST", format!("{own}/v1/a")),
            ("HEAD", format!("{own}/v1/a")),
            ("get", format!("{own}/v1/a")),
            ("CONNECT", format!("{own}/v1/a")),
            ("TRACE", format!("{own}/v1/a")),
            ("GET\r\nX: y", format!("{own}/v1/a")),
            ("GET", format!("{own}/v1")),
            ("GET", format!("{own}/v2/a")),
            ("GET", format!("{own}/v1/../v2/a")),
            ("GET", format!("{own}/v1/%2e%2e/v2/a")),
            ("GET", format!("{own}/v1/..%2fv2/a")),
            ("GET", format!("{own}/v1/..%5cv2/a")),
            ("GET", format!("{own}/v1/..;/v2/a")),
            ("GET", format!("{own}//v1/a")),
            ("GET", "ftp://127.0.0.1/v1/a".to_owned()),
            ("GET", "file:///etc/passwd".to_owned()),
            ("GET", String::new()),
        ],
    )
    .await;
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn the_nearest_rule_and_what_differs_are_named() {
    let call = Setup::granting(&["https://other.org".into(), "GET https://api.org/v1/*".into()]).call();
    let NoAnswer::Denied(told) = call.gate.fetch(post("https://api.org/v1/a", b"")).await.unwrap_err() else {
        panic!()
    };
    assert!(told.contains("the nearest is `GET https://api.org/v1/*`, and the method differs"), "{told}");
    assert!(told.contains("network = [\"POST https://api.org/v1/a\"]"), "{told}");
}

#[tokio::test]
async fn upper_case_trailing_dot_and_default_port_are_the_same_host() {
    let known = Names::default().with("api.example.org", &["10.0.0.1"]);
    for url in ["HTTPS://API.example.ORG/", "https://api.example.org./", "https://api.example.org:0443/"] {
        let call = Setup::granting(&["https://api.example.org".into()]).resolving(known.clone()).call();
        call.get(url).await.unwrap_err();
        // The rule matched; what it leads to is the next wall.
        assert_eq!(call.denial().0, Wall::Address, "{url}");
        assert_eq!(call.asked.lock().unwrap().last().unwrap(), "api.example.org");
    }
    let call = Setup::granting(&["https://api.example.org".into()]).resolving(known).call();
    call.get("https://api.example.org../").await.unwrap_err();
    assert_eq!(call.denial().0, Wall::Request);
}

#[tokio::test]
async fn user_info_before_the_host() {
    let server = Server::start(|_| ok("")).await;
    let port = server.port;
    let attempts = [
        ("GET", format!("http://127.0.0.1:{port}@evil.example/")),
        ("GET", format!("http://user:password@127.0.0.1:{port}/")),
        ("GET", format!("http://user@127.0.0.1:{port}/")),
        ("GET", format!("http://evil.example\\@127.0.0.1:{port}/")),
        ("GET", format!("http://evil.example#@127.0.0.1:{port}/")),
    ];
    never_leaves(&server, &server.reading(), &attempts).await;
}

#[tokio::test]
async fn ipv6_literal_and_v4_mapped_in_hexadecimal_too() {
    let server = Server::start(|_| ok("")).await;
    let port = server.port;
    // A grant for a name, or for another address, reaches no spelling of loopback.
    let attempts: Vec<_> = [
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "127.1",
        "0",
        "localhost",
    ]
    .iter()
    .map(|host| ("GET", format!("http://{host}:{port}/")))
    .collect();
    never_leaves(&server, &format!("http://loopback.example:{port}"), &attempts).await;
    never_leaves(&server, &format!("http://127.0.0.2:{port}"), &attempts).await;
    // A rule that names the address is met by every spelling of it.
    let call = Setup::granting(&[server.reading()]).call();
    for host in ["[::ffff:7f00:1]", "2130706433", "127.1", "0x7f.1"] {
        call.get(&format!("http://{host}:{port}/")).await.unwrap();
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback() {
    let server = Server::start(|_| ok("")).await;
    let url = format!("http://nice.example:{}/a", server.port);
    for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1", "0.0.0.0"] {
        let names = Names::default().with("nice.example", &[address]);
        let rules = [format!("http://nice.example:{}", server.port), server.reading()];
        let call = Setup::granting(&rules).resolving(names).call();
        let NoAnswer::Denied(told) = call.get(&url).await.unwrap_err() else { panic!() };
        assert!(!told.contains(address), "a guest learns no inner address: {told}");
        let (wall, what, grant) = call.denial();
        assert!(wall == Wall::Address && what.contains(address), "{what}");
        let grant = grant.unwrap();
        assert!(grant.starts_with("network = [\"GET http://") && grant.contains("/a\"]"), "{grant}");
        assert!(call.record().exchanges.is_empty());
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_name_whose_second_answer_is_private() {
    for second in ["192.168.0.1", "fd00::1", "::ffff:10.0.0.1"] {
        let names = Names::default().with("nice.example", &["93.184.215.14", second]);
        let call = Setup::granting(&["https://nice.example".into()]).resolving(names).call();
        assert!(matches!(call.get("https://nice.example/").await, Err(NoAnswer::Denied(_))));
        assert_eq!(call.denial().0, Wall::Address);
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_refused_and_recorded() {
    let call = Setup::granting(&["https://nowhere.example".into()]).call();
    let NoAnswer::Transport(told) = call.get("https://nowhere.example/").await.unwrap_err() else { panic!() };
    assert!(told.contains("`nowhere.example` cannot be resolved: no such name"), "{told}");
    let record = call.record();
    assert!(record.exchanges[0].error.as_deref().unwrap().contains("cannot be resolved"), "{record:?}");
}

#[tokio::test]
async fn a_name_without_a_grant_is_not_even_looked_up() {
    let call = Setup::granting(&["https://other.example".into()]).call();
    call.get("https://c2VjcmV0.evil.example/").await.unwrap_err();
    assert!(call.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_host_header_and_those_of_the_connection() {
    let server = Server::start(|_| ok("")).await;
    for name in [
        "Host",
        "hOST",
        "connection",
        "Transfer-Encoding",
        "content-length",
        "upgrade",
        "proxy-authorization",
    ] {
        let call = Setup::granting(&[server.reading()]).call();
        let headers = vec![(name.to_owned(), b"evil.example".to_vec())];
        let denied = call.gate.fetch(Request { headers, ..get(&server.url()) }).await.unwrap_err();
        assert!(matches!(&denied, NoAnswer::Invalid(why) if why.contains(name)), "{denied:?}");
        assert_eq!(call.denial().0, Wall::Request);
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_newline_in_a_header() {
    let server = Server::start(|_| ok("")).await;
    let bad: [(&str, &[u8]); 6] = [
        ("x", b"a\r\nhost: evil.example"),
        ("x", b"a\nb"),
        ("x", b"a\0"),
        ("x\r\nhost", b"a"),
        ("x y", b"a"),
        ("", b"a"),
    ];
    for (name, value) in bad {
        let call = Setup::granting(&[server.reading()]).call();
        let headers = vec![(name.to_owned(), value.to_vec())];
        let denied = call.gate.fetch(Request { headers, ..get(&server.url()) }).await.unwrap_err();
        assert!(matches!(denied, NoAnswer::Invalid(_)), "{name:?}: {denied:?}");
        let (wall, what, _) = call.denial();
        assert!(wall == Wall::Request && !what.contains('\n'), "{what:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn the_client_reaches_no_name_but_the_one_that_was_checked() {
    let authority = Authority::new();
    let server = Server::start_tls(&authority, "api.test", |_| ok("there")).await;
    let tls = Tls::new(vec![authority.der()]);
    let target =
        checkrein_contract::network::Target::parse(&format!("https://api.test:{}/", server.port)).unwrap();
    let client = client::client(&tls, &target, &["127.0.0.1".parse().unwrap()]).unwrap();
    // The name of the certificate is that of the URL, and the address the one that was given.
    assert_eq!(client.get(target.to_string()).send().await.unwrap().text().await.unwrap(), "there");
    let error = client.get(format!("https://localhost:{}/", server.port)).send().await.unwrap_err();
    assert!(client::explain(error).contains("this name was not checked"));
}

#[tokio::test]
async fn a_certificate_for_another_host_or_by_a_stranger() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let other = Server::start_tls(&authority, "127.0.0.2", |_| ok("")).await;
    let forged = Server::start_tls(&stranger, "127.0.0.1", |_| ok("")).await;
    for server in [&other, &forged] {
        let call = Setup::granting(&[server.reading()]).trusting(&authority).call();
        let denied = call.get(&server.url()).await.unwrap_err();
        assert!(matches!(&denied, NoAnswer::Transport(why) if why.contains("certificate")), "{denied:?}");
        assert!(server.seen().is_empty());
    }
}
