//! What only the operator's own file may say: where secrets come from, ceilings, the gateway's wall.

use std::os::unix::fs::PermissionsExt;

use checkrein_tests::{Place, dist};

const VALUE: &str = "s3cret-value-of-the-operator";
const ASKS: &str = "[capabilities]\nnetwork = [\"GET https://api.example/*\"]\n\
    secrets = [{ host = \"api.example\", header = \"x-api-key\" }]\n";
const GRANT: &str = "[skills]\nload = [\"*.wasm\"]\n[grant.asks]\nnetwork = [\"GET https://api.example/*\"]\n\
    secrets = [{ name = \"api\", host = \"api.example\", header = \"x-api-key\" }]\n";

/// A place with a skill that asks for a secret, and a grant of it.
fn place() -> Place {
    let place = Place::new();
    place.asking("asks", 1, ASKS);
    place.write("checkrein.toml", GRANT);
    place
}

const CALL: [&str; 3] = ["call", "asks", "{}"];

#[test]
fn a_project_that_says_what_is_the_operators_is_told_where_it_belongs() {
    let place = Place::new();
    place.write(
        "checkrein.toml",
        "[secrets.a]\nenv = \"HOME\"\n[ceiling]\nmemory = \"8 GiB\"\n[limits.ceiling]\ncpu = \"1 h\"\n\
         [gateway]\nprocess = false\n[grant.x]\nsecrets = [{ name = \"a\", host = \"a.example\", header = \"x\", file = \"/etc/passwd\" }]\n",
    );
    for args in [&["run", "task.toml"][..], &["call", "x", "{}"], &["policy", "show"], &["doctor"]] {
        let ran = place.run(args).expect(1);
        for what in ["secrets", "ceiling", "limits.ceiling", "gateway.process", "secrets[0].file"] {
            let told = ran.errors().into_iter().any(|error| {
                error.contains(what) && error.contains("operator.toml") && error.contains("--operator FILE")
            });
            assert!(told, "{args:?}: `{what}` is not in\n{}", ran.err);
        }
    }
}

#[test]
fn a_secret_that_is_not_there_stops_the_start_and_is_named() {
    let place = place();
    let told = |what: &[&str]| {
        let ran = place.run(&CALL).expect(1);
        for what in what {
            assert!(ran.errors().iter().any(|error| error.contains(what)), "`{what}` is not in\n{}", ran.err);
        }
        assert!(!ran.err.contains(VALUE) && !ran.err.contains("hush"), "{}", ran.err);
    };
    told(&["grant.asks.secrets[0]", "a secret `api`", "[secrets.api] env"]);
    place.operator("[secrets.api]\nenv = \"CHECKREIN_TEST_UNSET\"\n");
    told(&["a value for the secret `api`", "CHECKREIN_TEST_UNSET of the environment is not set"]);
    let file = place.operator("[secrets.api]\nfile = \"key\"\n");
    told(&["a value for the secret `api`", "cannot be read"]);
    std::fs::write(file.with_file_name("key"), "hush\n").unwrap();
    told(&["it has 4 bytes, and 6 are the fewest"]);
    std::fs::write(file.with_file_name("key"), format!("{VALUE}\n")).unwrap();
    // It starts now: the request itself is refused for its host, which no rule names.
    let ran = place.run(&CALL);
    assert!(ran.err.contains("run ") && ran.errors().is_empty(), "{}", ran.err);
    for text in [ran.out, ran.err, place.run(&["trace", "@last", "--json"]).out] {
        assert!(!text.contains(VALUE), "{text}");
    }
}

#[test]
fn a_grant_above_the_ceiling_names_both() {
    let place = Place::new();
    let more = "[grant.table-profile]\nlimits = { memory = \"2 GiB\", tables = 100, wall = \"1 min\" }\n[limits.default]\nmemory = \"3 GiB\"\n";
    place.configure(&["table-profile"], more);
    let file = place.operator("[ceiling]\nmemory = \"1 GiB\"\n");
    let ran = place.run(&["skill", "list"]).expect(1);
    assert_eq!(ran.errors().len(), 3, "{}", ran.err);
    let above = format!("at most 1 GiB, the ceiling of {}, found 2 GiB", file.display());
    for what in [
        above.as_str(),
        "limits.default.memory",
        "found 3 GiB",
        "at most 32, for which the engine is laid out, found 100",
    ] {
        assert!(ran.err.contains(what), "`{what}` is not in\n{}", ran.err);
    }
    place.operator("[ceiling]\nmemory = \"4 GiB\"\n");
    assert_eq!(place.run(&["skill", "list"]).expect(1).errors().len(), 1);
}

#[test]
fn a_file_that_others_can_write_or_that_a_project_brings_along_is_refused() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    let file = place.operator("");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let ran = place.run(&["skill", "list"]).expect(1);
    assert!(
        ran.err.contains("can be written by others (mode 666)") && ran.err.contains("chmod go-w"),
        "{}",
        ran.err
    );
    let inside = place.write("home/checkrein/operator.toml", "[gateway]\nprocess = false\n");
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(inside.parent().unwrap(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let home = place.path().join("home");
    let ran = place.run_with(&["skill", "list"], |command| {
        command.env("XDG_CONFIG_HOME", &home);
    });
    assert!(ran.expect(1).err.contains("it lies inside the project"));
    let named = inside.display().to_string();
    let _ = place.run(&["skill", "list", "--operator", &named]).expect(0);
}

#[test]
fn a_gateway_without_a_wall_of_its_own_is_said_everywhere() {
    let place = Place::new();
    place.configure(&["table-profile"], "");
    place.operator("[gateway]\nprocess = false\n");
    let input = format!("t={}", place.write("t.csv", "a,b\n1,2\n").display());
    let _ = place.run(&["call", "table-profile", "{\"table\":\"/in/t.csv\"}", "--in", &input]).expect(0);
    let own = "in the host's own process";
    let report = place.run(&["report"]).expect(0).out;
    let report = std::fs::read_to_string(report.trim().replace(".html", ".md")).unwrap();
    for text in [place.run(&["show"]).out, place.run(&["doctor"]).out, report] {
        assert!(text.contains(own), "{text}");
    }
    assert_eq!(place.run(&["show", "--json"]).json()["verification_apart"], false);
}

#[test]
fn doctor_shows_secrets_by_name_and_never_their_values() {
    let place = place();
    place.operator(
        "[secrets.api]\nenv = \"CHECKREIN_TEST_SECRET\"\n[secrets.gone]\nenv = \"CHECKREIN_TEST_UNSET\"\n[ceiling]\nmemory = \"1 GiB\"\n",
    );
    let ran = place.run_with(&["doctor"], |command| {
        command.env("CHECKREIN_TEST_SECRET", VALUE);
    });
    let out = ran.expect(0).out;
    for what in [
        "api (the variable CHECKREIN_TEST_SECRET",
        "gone (the variable CHECKREIN_TEST_UNSET of the environment is not set)",
        "memory 1 GiB",
        "operator.toml",
    ] {
        assert!(out.contains(what), "`{what}` is not in\n{out}");
    }
    assert!(!out.contains(VALUE), "{out}");
    assert!(out.lines().count() < 25, "{out}");
}

#[test]
fn without_any_file_the_defaults_hold() {
    let place = Place::new();
    place.write(
        "checkrein.toml",
        &format!("[skills]\nload = [\"{}/table-profile.wasm\"]\n", dist().display()),
    );
    let policy = place.run(&["policy", "show", "--json"]).expect(0).json();
    assert_eq!(
        (&policy["operator"], &policy["verification_apart"]),
        (&serde_json::Value::Null, &true.into())
    );
    assert_eq!(policy["ceiling"]["memory"], 4u64 << 30);
}
