//! A secret goes to its host, in its header, and comes back nowhere.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::server::{Seen, answer, ok, redirect};
use super::*;

const VALUE: &str = "s3cr3t/+value?&\"x";

#[tokio::test]
async fn set_only_for_its_host_in_its_header() {
    let server = Server::start(|_| ok("")).await;
    let elsewhere = Server::start_elsewhere("127.0.0.2", |_| ok("")).await;
    let rules = [server.reading(), elsewhere.reading()];
    let call = Setup::granting(&rules).secret("KEY", VALUE, "127.0.0.1", "x-key").call();
    call.get(&server.url()).await.unwrap();
    call.get(&elsewhere.url()).await.unwrap();
    assert_eq!(server.one().header("x-key"), Some(VALUE));
    assert_eq!(elsewhere.one().header("x-key"), None);
    assert!(!elsewhere.one().head.contains(VALUE));
}

#[tokio::test]
async fn in_the_place_of_what_the_guest_set() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::granting(&[server.reading()]).secret("KEY", VALUE, "127.0.0.1", "x-key").call();
    let headers = vec![("X-Key".to_owned(), b"mine".to_vec()), ("x-key".to_owned(), b"too".to_vec())];
    call.gate.fetch(Request { headers, ..get(&server.url()) }).await.unwrap();
    let head = server.one().head;
    assert!(head.contains(VALUE) && !head.contains("mine") && !head.contains("too"), "{head}");
}

#[tokio::test]
async fn by_tls() {
    let authority = Authority::new();
    let server = Server::start_tls(&authority, "127.0.0.1", |_| ok("")).await;
    let call = Setup::granting(&[server.reading()])
        .trusting(&authority)
        .secret("KEY", VALUE, "127.0.0.1", "authorization")
        .call();
    call.get(&server.url()).await.unwrap();
    assert_eq!(server.one().header("authorization"), Some(VALUE));
}

#[tokio::test]
async fn never_in_the_clear_to_a_name() {
    let names = Names::default().with("api.example.org", &["93.184.215.14"]);
    let call = Setup::granting(&["http://api.example.org".into()])
        .resolving(names)
        .secret("KEY", VALUE, "api.example.org", "x-key")
        .call();
    let denied = call.get("http://api.example.org/").await.unwrap_err();
    assert!(matches!(&denied, NoAnswer::Denied(why) if why.contains("only sent by https")), "{denied:?}");
    assert_eq!(call.denial().0, Wall::Secret);
    assert!(call.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_missing_one_is_named() {
    let server = Server::start(|_| ok("")).await;
    let call = Setup::granting(&[server.reading()]).using("KEY", "127.0.0.1", "x-key").call();
    let denied = call.get(&server.url()).await.unwrap_err();
    assert!(matches!(&denied, NoAnswer::Denied(why) if why.contains("the secret `KEY`")), "{denied:?}");
    assert_eq!(call.denial().0, Wall::Secret);
    assert!(server.seen().is_empty());
}

/// All that came back, to the guest and to the record, as one text.
async fn came_back(echo: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> String {
    let server = Server::start(move |seen| answer(200, &[("x-echo", VALUE)], &echo(seen))).await;
    let call = Setup::granting(&[server.reading()]).secret("KEY", VALUE, "127.0.0.1", "x-key").call();
    let response = call.get(&server.url()).await.unwrap();
    assert_eq!(server.one().header("x-key"), Some(VALUE), "it was sent");
    assert_eq!(header(&response, "x-echo").as_deref(), Some("[secret KEY]"));
    let record = call.record();
    let stored = call.blobs.get(&record.exchanges[0].body.unwrap()).unwrap();
    assert_eq!(stored, response.body, "the same is stored");
    assert!(!format!("{record:?}").contains(VALUE), "{record:?}");
    String::from_utf8(response.body.to_vec()).unwrap()
}

#[tokio::test]
async fn echoed_plain() {
    assert_eq!(came_back(|seen| seen.head.clone().into_bytes()).await.matches("[secret KEY]").count(), 1);
    assert_eq!(came_back(|_| format!("a {VALUE}{VALUE}b").into_bytes()).await, "a [secret KEY][secret KEY]b");
}

#[tokio::test]
async fn echoed_in_base64_at_every_alignment() {
    for before in ["", "a", "ab", "abc", "user:", "Zz9"] {
        for after in ["", "x", "xy", "xyz"] {
            let text = format!("{before}{VALUE}{after}");
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let body = encoded.clone().into_bytes();
                let back = came_back(move |_| body.clone()).await;
                assert!(back.contains("[secret KEY]"), "{encoded} {back}");
                // What is left holds not even a part of it.
                for left in back.split("[secret KEY]") {
                    assert!(left.len() <= 8, "{encoded} {back}");
                }
            }
        }
    }
}

#[tokio::test]
async fn echoed_percent_encoded_in_hexadecimal_json_and_html() {
    let every: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let unicode: String = VALUE.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    for encoded in [
        every.to_lowercase(),
        every,
        "s3cr3t%2F%2Bvalue%3F%26%22x".to_owned(),
        "s3cr3t/%2bvalue?&%22x".to_owned(),
        hex.to_uppercase(),
        hex,
        unicode,
        r#"s3cr3t\/+value?&\"x"#.to_owned(),
        r#"s3cr3t/+value?\u0026\"x"#.to_owned(),
        "s3cr3t/+value?&amp;&quot;x".to_owned(),
        "s3cr3t&#47;&#x2b;value?&amp;&#34;x".to_owned(),
        VALUE.to_uppercase(),
        format!("%{}", "73") + &VALUE[1..],
    ] {
        let body = format!("<{encoded}>").into_bytes();
        assert_eq!(came_back(move |_| body.clone()).await, "<[secret KEY]>", "{encoded}");
    }
}

#[tokio::test]
async fn what_is_no_secret_stays_as_it_is() {
    let text = "s3cr3t/+value?&x %73 \\u0073 &amp; & czNjcjN0 100% \\ s3cr3t";
    assert_eq!(came_back(move |_| text.into()).await, text);
}

#[tokio::test]
async fn in_a_redirects_location() {
    let other = Server::start(|_| ok("")).await;
    for value in [VALUE.replace(['"', '&', '?'], ""), STANDARD.encode(VALUE)] {
        let to = format!("{}/?stolen={value}", other.url());
        let server = Server::start(move |_| redirect(302, &to)).await;
        let setup = Setup::granting(&[server.reading(), other.reading()]);
        let call = setup.secret("KEY", "s3cr3t/+valuex", "127.0.0.1", "x-other");
        let call = call.secret("TWO", VALUE, "127.0.0.1", "x-key").call();
        let denied = call.get(&server.url()).await.unwrap_err();
        assert!(
            matches!(&denied, NoAnswer::Denied(why) if why.contains("with a secret in it")),
            "{denied:?}"
        );
        // Where the guest follows redirects itself, it does not see it either.
        let response = call.gate.fetch(Request { follow: false, ..get(&server.url()) }).await.unwrap();
        assert!(header(&response, "location").unwrap().contains("?stolen=[secret "), "{response:?}");
        let record = call.record();
        assert!(!format!("{record:?} {denied:?}").contains(&value), "{record:?}");
        assert_eq!((record.denials[0].wall, other.seen().len()), (Wall::Secret, 0));
    }
}

#[tokio::test]
async fn in_an_error_text() {
    // A location that cannot be read is quoted in the error.
    let to = format!("http://user:{VALUE}@[bad/");
    let server = Server::start(move |_| redirect(302, &to)).await;
    let call = Setup::granting(&[server.reading()]).secret("KEY", VALUE, "127.0.0.1", "x-key").call();
    let denied = call.get(&server.url()).await.unwrap_err();
    assert!(!format!("{denied:?}{:?}", call.record()).contains("s3cr3t"));
}

#[tokio::test]
async fn in_a_body_that_cannot_be_searched() {
    let server = Server::start(|_| answer(200, &[("content-encoding", "gzip, gzip")], b"whatever")).await;
    let call = Setup::granting(&[server.reading()]).secret("KEY", VALUE, "127.0.0.1", "x-key").call();
    let denied = call.get(&server.url()).await.unwrap_err();
    assert!(
        matches!(&denied, NoAnswer::Transport(why) if why.contains("searched for secrets")),
        "{denied:?}"
    );
}

#[tokio::test]
async fn not_on_another_host_after_a_redirect() {
    let other = Server::start_elsewhere("127.0.0.2", |_| ok("")).await;
    let to = other.url();
    let server = Server::start(move |_| redirect(307, &to)).await;
    let call = Setup::granting(&[server.reading(), other.reading()])
        .secret("KEY", VALUE, "127.0.0.1", "x-key")
        .call();
    call.get(&server.url()).await.unwrap();
    assert_eq!(server.one().header("x-key"), Some(VALUE));
    assert_eq!(other.one().header("x-key"), None);
}

#[test]
fn what_follows_a_scheme_is_secret_by_itself() {
    let basic = format!("Basic {}", STANDARD.encode("user:pass-word"));
    for (value, echoed) in [
        ("Bearer abcdef123", "{\"token\":\"abcdef123\"}"),
        (basic.as_str(), "{\"entry\": \"pass-word\"}"),
        (basic.as_str(), "user:pass-word"),
    ] {
        let uses = Setup::default().using("K", "h", "x").uses;
        let scrubber = Scrubber::new(&uses, &Secrets::new([("K".to_owned(), value.to_owned())]));
        let clean = scrubber.text(echoed);
        assert!(
            clean.contains("[secret K]") && !clean.contains("word\"") && !clean.contains("abc"),
            "{clean}"
        );
    }
}

#[test]
fn what_can_be_a_secret() {
    assert_eq!(check_secret("12345"), Err(SecretFault::Short(5)));
    assert_eq!(check_secret("123456"), Ok(()));
    assert_eq!(check_secret("123456\n"), Err(SecretFault::NoHeader));
    assert!(matches!(check_secret(&"x".repeat(SECRET_MAX + 1)), Err(SecretFault::Long(_))));
}

#[test]
fn no_debug_output_shows_one() {
    let secrets = Secrets::new([("KEY".to_owned(), VALUE.to_owned())]);
    let scrubber = Scrubber::new(&Setup::default().using("KEY", "h", "x").uses, &secrets);
    let shown = format!("{secrets:?} {scrubber:?}");
    assert!(shown.contains("KEY") && !shown.contains("s3cr3t"), "{shown}");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn no_base64_of_it_comes_through(
            secret in "[ -~]{6,40}", before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..20)
        ) {
            prop_assume!(check_secret(&secret).is_ok());
            let uses = Setup::default().using("K", "h", "x").uses;
            let scrubber = Scrubber::new(&uses, &Secrets::new([("K".to_owned(), secret.clone())]));
            let text = [before.as_slice(), secret.as_bytes(), after.as_slice()].concat();
            let encoded = STANDARD.encode(&text);
            let clean = scrubber.text(&encoded).into_owned();
            prop_assert!(clean.contains("[secret K]"), "{} {}", encoded, clean);
            let kept: usize = clean.split("[secret K]").map(str::len).sum();
            prop_assert!(kept <= before.len() * 4 / 3 + after.len() * 4 / 3 + 8);
        }

        #[test]
        fn no_mixture_of_escapes_comes_through(secret in "[!-~]{6,40}", ways in proptest::collection::vec(0..4u8, 40)) {
            let uses = Setup::default().using("K", "h", "x").uses;
            let scrubber = Scrubber::new(&uses, &Secrets::new([("K".to_owned(), secret.clone())]));
            let escaped: String = secret.bytes().zip(ways).map(|(byte, way)| match way {
                0 => format!("%{byte:02X}"),
                1 => format!("\\u{byte:04x}"),
                2 => format!("&#{byte};"),
                _ => char::from(byte).to_string(),
            }).collect();
            let echoed = format!("({escaped})");
            prop_assert_eq!(scrubber.text(&echoed), "([secret K])");
        }
    }
}
