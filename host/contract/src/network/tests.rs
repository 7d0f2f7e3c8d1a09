use super::*;

fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

fn allows(text: &str, method: &str, url: &str) -> bool {
    Target::parse(url).is_ok_and(|target| rule(text).allows(method, &target))
}

#[test]
fn none_exact_and_wildcard() {
    let exact = "https://api.example.org/v1/a";
    assert!(allows(exact, "GET", "https://api.example.org/v1/a"));
    assert!(allows(exact, "HEAD", "https://api.example.org/v1/a?q=1"));
    for (method, url) in [
        ("POST", "https://api.example.org/v1/a"),
        ("GET", "https://api.example.org/v1/ab"),
        ("GET", "https://api.example.org/v1/a/b"),
        ("GET", "https://api.example.org:444/v1/a"),
        ("GET", "http://api.example.org/v1/a"),
        ("GET", "https://example.org/v1/a"),
        ("get", "https://api.example.org/v1/a"),
    ] {
        assert!(!allows(exact, method, url), "{method} {url}");
    }
    let below = "GET,POST https://*.example.org/v1/*";
    assert!(allows(below, "POST", "https://a.b.example.org/v1/x/y"));
    assert!(allows(below, "GET", "https://a.example.org/v1/"));
    for url in [
        "https://example.org/v1/x",
        "https://evilexample.org/v1/x",
        "https://a.example.org/v1",
        "https://a.example.org/v1/../v2/x",
        "https://a.example.org/v1/%2e%2e/v2/x",
        "https://a.example.org.evil.org/v1/x",
    ] {
        assert!(!allows(below, "GET", url), "{url}");
    }
}

#[test]
fn two_spellings_of_one_request_never_differ() {
    for url in [
        "https://api.example.org/v1/a",
        "HTTPS://API.EXAMPLE.ORG/v1/a",
        "https://api.example.org:443/v1/a",
        "https://api.example.org./v1/a",
        "https://api.example.org/v1/./b/../a",
        "https://api.example.org/v1/a#part",
        "https://\u{ff41}pi.example.org/v1/a",
        "https:\\\\api.example.org\\v1\\a",
    ] {
        assert!(allows("https://api.example.org/v1/a", "GET", url), "{url}");
        assert!(allows("GET https://API.example.org:443/v1/a", "GET", url), "{url}");
    }
    for url in [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://[::ffff:7f00:1]/",
        "http://[::ffff:127.0.0.1]/",
    ] {
        assert!(allows("http://127.0.0.1", "GET", url), "{url}");
        assert!(allows("http://[::ffff:7f00:1]/*", "GET", url), "{url}");
    }
}

#[test]
fn a_path_has_one_spelling() {
    for url in ["https://a.org/v%31/%7Eme/%2a", "https://a.org/v1/~me/*", "https://a.org/v1/%7eme/%2A"] {
        assert_eq!(Target::parse(url).unwrap().to_string(), "https://a.org/v1/~me/%2A", "{url}");
        assert!(allows("https://a.org/v1/*", "GET", url), "{url}");
    }
    assert!(Rule::parse("https://a.org/%7Eme/*").unwrap_err().mend.contains("/~me/"));
    assert_ne!(Target::parse("https://a.org/a%2Fb").unwrap(), Target::parse("https://a.org/a/b").unwrap());
}

#[test]
fn an_encoded_way_upwards_goes_nowhere() {
    for path in [
        "..%2Fadmin",
        "..%2fadmin",
        "%2e%2e%2fadmin",
        "x%2F..%2F..%2Fadmin",
        "%252e%252e/admin",
        "%25252e%25252e/admin",
        "..%5Cadmin",
        "..;/admin",
        "%2e%2e;a=b/admin",
        "x/.%2F",
    ] {
        assert!(Target::parse(&format!("https://a.org/v1/{path}")).is_err(), "{path}");
    }
    for (path, canonical) in
        [("%2e%2e/admin", "/admin"), ("a..b/...", "/v1/a..b/..."), ("100%25", "/v1/100%25")]
    {
        assert_eq!(Target::parse(&format!("https://a.org/v1/{path}")).unwrap().path, canonical);
    }
    assert!(Target::parse(&format!("https://a.org/%{}41", "25".repeat(100))).is_err());
}

#[test]
fn what_differs_is_named() {
    let differs = |method: &str, url: &str| {
        rule("GET https://a.org/v1/*").differs(method, &Target::parse(url).unwrap())
    };
    assert!(differs("GET", "https://a.org/v1/x").is_empty());
    assert_eq!(differs("POST", "https://a.org/v2"), ["method", "path"]);
    assert_eq!(differs("GET", "http://b.org:81/v1/"), ["host", "scheme", "port"]);
}

#[test]
fn what_is_no_url_goes_nowhere() {
    for url in [
        "https://user@api.example.org/v1/a",
        "https://api.example.org@evil.org/",
        "https://api.example.org/v1/a\n",
        "ftp://api.example.org/v1/a",
        "//api.example.org/v1/a",
        "https://",
        "https://api.example.org:0/",
        "https://a..b../",
        "",
    ] {
        assert!(!Target::parse(url).is_ok_and(|t| t.host == Host::Name("api.example.org".into())), "{url}");
    }
    assert!(Target::parse(&format!("https://a.org/{}", "a".repeat(URL_MAX))).is_err());
}

#[test]
fn a_rule_that_can_never_match_says_what_was_meant() {
    let mend = |text: &str| Rule::parse(text).expect_err(text).mend;
    assert!(mend("localhost:8080").contains("\"http://127.0.0.1:8080\""), "{}", mend("localhost:8080"));
    assert!(mend("api.example.org/*").contains("\"https://api.example.org/*\""));
    assert!(mend("get https://a.org").contains("`GET`"));
    assert!(mend("https://a.org/b*").contains("https://a.org/b/*"));
    assert!(mend("https://a.org/b?c=1").contains("https://a.org/b\""));
    assert!(mend("https://a.org/b/../c").contains("\"/c\""));
    for text in [
        "*",
        "https://*",
        "https://*/x",
        "https://*.org",
        "https://a.*.org",
        "ws://a.org",
        "https://u@a.org",
        "",
        "GET",
    ] {
        assert!(Rule::parse(text).is_err(), "{text}");
    }
}

#[test]
fn special_addresses() {
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001::1",
        "::10.0.0.1",
        "ff02::1",
        "2001:db8::1",
    ] {
        assert!(is_special(address.parse().unwrap()), "{address}");
    }
    for address in ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2001:4860:4860::8888"]
    {
        assert!(!is_special(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn what_two_rules_both_allow() {
    let and = |one: &str, two: &str| rule(one).and(&rule(two)).map(|both| both.to_string());
    assert_eq!(
        and("GET,POST https://*.a.org/*", "https://x.a.org/v1/*").as_deref(),
        Some("GET https://x.a.org/v1/*")
    );
    assert_eq!(
        and("https://*.a.org/v1/*", "https://*.b.a.org").as_deref(),
        Some("GET,HEAD https://*.b.a.org/v1/*")
    );
    assert_eq!(and("https://a.org/v1/x", "https://a.org/v2/*"), None);
    assert_eq!(and("POST https://a.org", "https://a.org"), None);
    assert!(rule("https://*.a.org").covers(&rule("https://x.a.org/b")));
    assert!(!rule("https://x.a.org").covers(&rule("https://*.a.org")));
}

#[test]
fn a_path_that_might_lead_upwards_is_none() {
    for path in [
        "..%2fb",
        "..%5cb",
        "..;/b",
        "%252e%252e/b",
        "..%3f/b",
        "..%23/b",
        "..%20/b",
        "..%00/b",
        "..%09/b",
        ".%20/b",
        "%c0%ae%c0%ae/b",
        "%u002e%u002e/b",
        "\u{ff0e}\u{ff0e}/b",
        "\u{2025}/b",
        "a%0d%0ab",
        "..%2500/b",
    ] {
        let url = format!("https://a.org/v1/{path}");
        assert!(Target::parse(&url).is_err(), "{url}");
    }
    for path in
        ["a..b", "..a", ".well-known/x", "v1.2", "...", "a%20b", "caf%C3%A9", "%E4%BD%A0", "a;b=1", "~user"]
    {
        let url = format!("https://a.org/v1/{path}");
        assert!(Target::parse(&url).is_ok(), "{url}");
    }
}

#[test]
fn a_lone_percent_sign_is_encoded() {
    let path = |url: &str| Target::parse(url).unwrap().path;
    assert_eq!(path("http://a.org/%3%30"), "/%2530");
    assert_eq!(path("http://a.org/100%"), "/100%25");
    assert_eq!(path("http://a.org/%2f%zz"), "/%2F%25zz");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn rules() -> impl Strategy<Value = Rule> {
        let methods = prop_oneof![Just(""), Just("GET "), Just("POST "), Just("GET,PUT ")];
        let host = prop_oneof![
            Just("a.org"),
            Just("*.a.org"),
            Just("x.a.org"),
            Just("*.x.a.org"),
            Just("127.0.0.1")
        ];
        let port = prop_oneof![Just(""), Just(":8080")];
        let path = prop_oneof![Just(""), Just("/*"), Just("/v/*"), Just("/v/w"), Just("/v/w/*")];
        (methods, prop_oneof![Just("http"), Just("https")], host, port, path).prop_map(
            |(methods, scheme, host, port, path)| rule(&format!("{methods}{scheme}://{host}{port}{path}")),
        )
    }

    fn requests() -> impl Strategy<Value = (&'static str, Target)> {
        let method = prop_oneof![Just("GET"), Just("POST"), Just("PUT"), Just("HEAD")];
        let host =
            prop_oneof![Just("a.org"), Just("x.a.org"), Just("y.x.a.org"), Just("127.0.0.1"), Just("xa.org")];
        let port = prop_oneof![Just(""), Just(":8080")];
        let path = prop_oneof![Just("/"), Just("/v"), Just("/v/"), Just("/v/w"), Just("/v/w/z")];
        (method, prop_oneof![Just("http"), Just("https")], host, port, path).prop_map(
            |(method, scheme, host, port, path)| {
                (method, Target::parse(&format!("{scheme}://{host}{port}{path}")).unwrap())
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn the_canonical_form_reads_back(rule in rules()) {
            prop_assert_eq!(Rule::parse(&rule.to_string()), Ok(rule));
        }

        #[test]
        fn and_is_what_both_allow(one in rules(), two in rules(), request in requests()) {
            let (method, target) = request;
            let both = one.allows(method, &target) && two.allows(method, &target);
            prop_assert_eq!(one.and(&two).is_some_and(|and| and.allows(method, &target)), both);
            if one.covers(&two) && two.allows(method, &target) {
                prop_assert!(one.allows(method, &target));
            }
        }

        #[test]
        fn examples_match_and_near_misses_do_not(rule in rules()) {
            let (method, url) = rule.example();
            prop_assert!(rule.allows(&method, &Target::parse(&url).unwrap()));
            prop_assert!(rule.near_misses().len() >= 3);
            for (method, url, what) in rule.near_misses() {
                prop_assert!(!rule.allows(&method, &Target::parse(&url).unwrap()), "{} {}", what, url);
            }
        }

        #[test]
        fn the_rule_for_one_request_allows_that_one_alone(
            path in "/[a-z*%./;:@!$&'()+,=\"\\\\ü-]{0,20}", method in "[A-Z]{1,8}", other in "/[a-z*/]{0,6}"
        ) {
            prop_assume!(is_method(&method));
            let Ok(target) = Target::parse(&format!("https://a.org{path}")) else { return Ok(()) };
            let exactly = Rule::exactly(&method, &target);
            prop_assert!(exactly.allows(&method, &target));
            prop_assert_eq!(Rule::parse(&exactly.to_string()), Ok(exactly.clone()));
            let Ok(other) = Target::parse(&format!("https://a.org{other}")) else { return Ok(()) };
            prop_assert_eq!(exactly.allows(&method, &other), other.path == target.path);
        }

        #[test]
        fn a_target_reads_back_as_itself(url in "https?://[A-Za-z0-9.:-]{1,12}/[a-zA-Z0-9%./*~?=-]{0,30}") {
            let Ok(target) = Target::parse(&url) else { return Ok(()) };
            prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = Rule::parse(&text);
            let _ = Target::parse(&text);
        }
    }
}
