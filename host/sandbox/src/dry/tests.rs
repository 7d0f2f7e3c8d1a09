//! Nothing leaves in a dry run: by what is linked, and by what components do that try.

use std::net::TcpListener;
use std::sync::Arc;

use checkrein_contract::grant::{Access, Clock, Folder};
use checkrein_contract::limits::Limits;
use checkrein_contract::network::Rule;
use checkrein_contract::port::{End, Guests as _, Setting};
use tempfile::TempDir;

use super::*;
use crate::attack::guest::network::{fetches, gets_by_wasi_http, looks_up_a_name, opens_a_raw_tcp_socket};
use crate::invoke::tests::{call, mishap, subgoal, submission};
use crate::load::names::{OWN, SKILL_PACKAGE, WASI};
use crate::net::DownloadError;
use crate::testing::{CASES, Guest, MANIFEST, MemoryBlobs, embedded, has, places_in, ready};
use crate::{Options, Sandbox, Source};

fn dry() -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { dry: true, ..Options::new(places_in(&folder)) };
    (Sandbox::new(options, Arc::new(MemoryBlobs::default())).unwrap(), folder)
}

#[test]
fn no_interface_with_an_effect_is_in_the_linker() {
    let ((dry, _folder), (live, _other)) = (dry(), crate::testing::sandbox());
    let own = OWN.iter().map(|name| format!("{SKILL_PACKAGE}{name}"));
    let all: Vec<String> = own.chain(WASI.iter().map(|name| (*name).to_owned())).collect();
    let missing: Vec<&str> =
        all.iter().filter(|name| !has(&dry.0.linker, name)).map(String::as_str).collect();
    assert_eq!(
        missing,
        [
            "checkrein:skill/http",
            "wasi:http/outgoing-handler",
            "wasi:http/types",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
            "wasi:sockets/udp",
            "wasi:sockets/udp-create-socket",
        ]
    );
    for name in &all {
        assert!(has(&live.0.linker, name), "{name}");
        assert_eq!(has_effect(&format!("{name}@0")), missing.contains(&name.as_str()), "{name}");
    }
}

#[tokio::test]
async fn the_host_itself_downloads_nothing() {
    let (dry, _folder) = dry();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", server.local_addr().unwrap());
    let rules = [Rule::parse(&format!("GET {url}")).unwrap()];
    let (body, _) = dry.download(&url, &rules, &Limits::default()).await;
    assert!(matches!(&body, Err(DownloadError::Denied(why)) if why.contains("dry run")), "{body:?}");
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err());
}

/// Moves what a guest does in its executor to its verification.
fn verifying(mut guest: Guest, plain: &str) -> Guest {
    let tries = guest.execute.strip_suffix(plain).unwrap().to_owned();
    guest.verify = format!("{tries} {}", guest.verify);
    guest
}

#[tokio::test]
async fn a_verification_that_wants_to_leave_traps_and_reaches_nobody() {
    let (sandbox, _folder) = dry();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let url = format!("http://{authority}/");
    let plain = Guest::default().execute;
    for (guest, trap) in [
        (fetches("GET", &url, &[], ""), "no `checkrein:skill/http@0.1.0`, of which `fetch` was called"),
        (gets_by_wasi_http(&authority, "/"), "no `wasi:http/types@0.2.0`"),
        (opens_a_raw_tcp_socket(), "no `wasi:sockets/tcp-create-socket@0.2.0`"),
        (looks_up_a_name("a.test"), "no `wasi:sockets/instance-network@0.2.0`"),
    ] {
        let mut setting = ready(&sandbox, &verifying(guest, &plain));
        setting.granted.network = vec![Rule::parse(&format!("GET {url}*")).unwrap()];
        let ran = sandbox.verify(setting.clone(), submission()).await;
        assert!(matches!(&ran.end, End::Trapped(why) if why.contains(trap)), "{trap}: {ran:?}");
        assert!(ran.record.is_empty(), "{ran:?}");
        // The rest of it runs.
        assert!(matches!(sandbox.assess(setting.clone(), subgoal()).await.end, End::Returned(_)), "{trap}");
        assert!(matches!(sandbox.recover(setting, mishap()).await.end, End::Returned(_)), "{trap}");
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{trap}");
    }
}

#[tokio::test]
async fn nothing_is_executed_whatever_is_granted() {
    let (sandbox, _folder) = dry();
    let outside = tempfile::tempdir().unwrap();
    let mut setting = ready(&sandbox, &Guest::default());
    let path = outside.path().to_str().unwrap().to_owned();
    setting.granted.files = vec![Folder { access: Access::ReadWrite, path }];
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(&ran.end, End::Fault(why) if why == "a dry run executes nothing"), "{ran:?}");
    let ran = sandbox.verify(setting, submission()).await;
    assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
}

#[test]
fn a_dry_run_has_no_folder_to_write_in() {
    use crate::files::mount_granted;
    use crate::parts::Reach;
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().to_str().unwrap().to_owned();
    for (access, refused) in [(Access::ReadOnly, false), (Access::ReadWrite, true)] {
        let mount = mount_granted(&Folder { access, path: path.clone() }, &[]).unwrap();
        for reach in [Reach::OwnWork, Reach::GivenWork] {
            let found = crate::invoke::only_readable(reach, std::slice::from_ref(&mount));
            assert_eq!(found.is_err(), refused, "{reach:?} {access:?}: {found:?}");
        }
    }
}

async fn steps(sandbox: &Sandbox, guest: &Guest) -> Vec<(&'static str, String)> {
    let bytes = embedded(&guest.assemble(), MANIFEST, CASES);
    let report = sandbox.check(Source::Bytes { name: "test.wasm".to_owned(), bytes }).await;
    assert!(report.loaded.is_some(), "{:#?}", report.faults());
    report.steps.iter().map(|step| (step.name, format!("{:?}", step.result))).collect()
}

#[tokio::test]
async fn components_load_and_those_without_network_are_tried() {
    let (sandbox, _folder) = dry();
    let result = |steps: &[(&str, String)], step: &str| {
        steps.iter().find(|(name, _)| *name == step).map(|(_, result)| result.clone()).unwrap()
    };
    let plain = steps(&sandbox, &Guest::default()).await;
    assert!(result(&plain, "cases").contains("1 of 1 pass"), "{plain:?}");
    // A runtime imports sockets that nobody opens.
    let mut sockets = opens_a_raw_tcp_socket();
    sockets.execute = Guest::default().execute;
    let tried = steps(&sandbox, &sockets).await;
    assert!(result(&tried, "cases").contains("1 of 1 pass"), "{tried:?}");
    for guest in [fetches("GET", "http://127.0.0.1:1", &[], ""), gets_by_wasi_http("127.0.0.1:1", "/")] {
        let skipped = steps(&sandbox, &guest).await;
        assert!(result(&skipped, "cases").contains("not in a dry run"), "{skipped:?}");
        assert!(result(&skipped, "verification").contains("not in a dry run"), "{skipped:?}");
    }
}

#[tokio::test]
async fn what_was_tried_before_is_known_in_a_dry_run() {
    let (live, folder) = crate::testing::sandbox();
    let guest = fetches("GET", "http://127.0.0.1:1", &[], "");
    steps(&live, &guest).await;
    let options = Options { dry: true, ..Options::new(places_in(&folder)) };
    let sandbox = Sandbox::new(options, Arc::new(MemoryBlobs::default())).unwrap();
    let known = steps(&sandbox, &guest).await;
    assert!(known.iter().any(|(name, how)| *name == "verification" && how.contains("passed before")));
    assert!(known.iter().any(|(name, how)| *name == "compile" && how.contains("from the cache")));
}

/// The version of WASI that a component was built for is not the host's, and links all the same.
#[tokio::test]
async fn what_is_linked_under_another_patch_stays_linked() {
    let (sandbox, _folder) = dry();
    let mut guest = opens_a_raw_tcp_socket();
    guest.execute = Guest::default().execute;
    guest.imports.push_str(
        "(import \"wasi:clocks/monotonic-clock@0.2.3\" (instance $clock (export \"now\" (func (result u64)))))
         (core func $low-now (canon lower (func $clock \"now\")))
         (core instance $now (export \"f\" (func $low-now)))",
    );
    guest.with.push_str("(with \"now\" (instance $now))");
    guest.core.insert_str(0, "(import \"now\" \"f\" (func $now (result i64)))");
    guest.verify = format!("(if (i64.ne (call $now) (i64.const 0)) (then unreachable)) {}", guest.verify);
    let setting = Setting { ..ready(&sandbox, &guest) };
    assert_eq!(setting.granted.clock, Clock::Virtual);
    let ran = sandbox.verify(setting, submission()).await;
    assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
}
