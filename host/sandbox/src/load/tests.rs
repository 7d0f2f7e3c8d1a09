use super::*;
use crate::testing::{CASES, Guest, MANIFEST, embedded, sandbox, sandbox_in, sandbox_on_a_full_disk};

fn bytes(bytes: Vec<u8>) -> Source {
    Source::Bytes { name: "test.wasm".to_owned(), bytes }
}

fn whole(guest: &Guest) -> Vec<u8> {
    embedded(&guest.assemble(), MANIFEST, CASES)
}

async fn faults(component: Vec<u8>) -> Vec<Fault> {
    let (sandbox, _folder) = sandbox();
    sandbox.load(bytes(component)).await.unwrap_err()
}

async fn only_fault(component: Vec<u8>) -> Fault {
    let mut faults = faults(component).await;
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.remove(0)
}

#[tokio::test]
async fn a_good_component_loads_and_is_remembered() {
    let (first, folder) = sandbox();
    let component = whole(&Guest::default());
    let report = first.check(bytes(component.clone())).await;
    assert!(report.faults().is_empty(), "{:#?}", report.faults());
    let probe = report.probe.as_ref().unwrap();
    assert!(probe.mutants > 0 && probe.caught > 0, "{probe:?}");
    let names: Vec<_> = report.steps.iter().map(|step| step.name).collect();
    let steps = [
        "format",
        "size",
        "manifest",
        "wit-version",
        "imports",
        "exports",
        "compile",
        "instantiate",
        "assess",
    ];
    assert_eq!(names[..9], steps);
    assert_eq!(names[9..], ["schema", "cases", "verification"]);
    let loaded = first.load(bytes(component.clone())).await.unwrap();
    assert_eq!((loaded.manifest.name.as_str(), loaded.digest), ("test", Digest::of(&component)));

    let second = sandbox_in(&folder);
    let report = second.check(bytes(component)).await;
    let detail = |name: &str| {
        let step = report.steps.iter().find(|step| step.name == name).unwrap();
        format!("{:?}", step.result)
    };
    assert!(detail("compile").contains("from the cache"));
    assert!(detail("verification").contains("passed before"));
}

/// As when a run goes on with the component that it began with, which may no longer be where it was.
#[tokio::test]
async fn the_same_bytes_from_elsewhere_are_compiled_and_tried_no_second_time() {
    let (first, folder) = sandbox();
    let path = folder.path().join("skill.wasm");
    let component = whole(&Guest::default());
    std::fs::write(&path, &component).unwrap();
    let loaded = first.load(path.as_path()).await.unwrap();
    std::fs::remove_file(&path).unwrap();

    let second = sandbox_in(&folder);
    let name = format!("skill.wasm ({})", loaded.digest.short());
    let pinned = || Source::Bytes { name: name.clone(), bytes: component.clone() };
    let report = second.check(pinned()).await;
    assert_eq!(report.file, name);
    let told: Vec<String> = report.steps.iter().map(|step| format!("{:?}", step.result)).collect();
    assert_eq!(told.iter().filter(|told| told.contains("from the cache")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|told| told.contains("passed before")).count(), 2, "{told:?}");
    assert_eq!(second.load(pinned()).await.unwrap().digest, loaded.digest);
}

#[tokio::test]
async fn a_disk_that_fails_is_not_put_down_to_the_component() {
    let (sandbox, folder) = sandbox_on_a_full_disk();
    let component = whole(&Guest::default());
    let report = sandbox.check(bytes(component.clone())).await;
    let faults = report.faults();
    assert_eq!((faults.len(), faults[0].stage.as_str()), (1, STORAGE), "{faults:?}");
    assert!(faults[0].found.contains("no space left"), "{}", faults[0]);
    assert!(report.probe.is_none() && report.loaded.is_none());
    std::fs::remove_dir(folder.path().join("scratch")).unwrap();
    let faults = sandbox.load(bytes(component.clone())).await.unwrap_err();
    assert_eq!((faults.len(), faults[0].stage.as_str()), (1, STORAGE), "{faults:?}");
    // Nothing of it was remembered: on a disk with room it is tried, and loads.
    let report = sandbox_in(&folder).check(bytes(component)).await;
    assert!(report.probe.is_some() && report.loaded.is_some(), "{:?}", report.faults());
}

#[tokio::test]
async fn a_fault_names_only_commands_that_there_are() {
    let fault = only_fault(Guest::default().assemble()).await;
    assert_eq!(fault.stage, "manifest");
    assert!(fault.mend.contains("`checkrein skill build DIR`"), "{fault}");
}

#[tokio::test]
async fn what_is_no_component_is_told_apart() {
    let module = wat::parse_str("(module)").unwrap();
    for (content, found, mend) in [
        (Vec::new(), "an empty file", "build"),
        (b"(component)\n".to_vec(), "a text", "wasm-tools parse"),
        (b"\0asm".to_vec(), "4 bytes", "cut off"),
        (module, "a core module", "wasm-tools component new"),
        (b"\x7fELF\x02\x01\x01\x00\xff".to_vec(), "a file that begins with", "`.wasm`"),
    ] {
        let fault = only_fault(content).await;
        assert_eq!(fault.stage, "format");
        assert!(fault.found.contains(found) && fault.mend.contains(mend), "{fault}");
    }
    let (sandbox, folder) = sandbox();
    let absent = folder.path().join("absent.wasm");
    let faults = sandbox.load(absent.as_path()).await.unwrap_err();
    assert_eq!((faults.len(), faults[0].stage.as_str()), (1, "read"));
}

#[tokio::test]
async fn a_component_cut_off_anywhere_does_not_load() {
    let (sandbox, _folder) = sandbox();
    let component = whole(&Guest::default());
    for part in 0..50 {
        let cut = component[..component.len() * part / 50].to_vec();
        let faults = sandbox.load(bytes(cut)).await.unwrap_err();
        assert!(!faults.is_empty() && faults.iter().all(|fault| fault.stage != "host"), "{part}: {faults:?}");
    }
}

#[tokio::test]
async fn a_flipped_bit_is_never_a_panic() {
    let (sandbox, _folder) = sandbox();
    let component = whole(&Guest::default());
    for number in 0..60usize {
        let mut flipped = component.clone();
        flipped[(number * 7919) % component.len()] ^= 1 << (number % 8);
        if let Err(faults) = sandbox.load(bytes(flipped)).await {
            assert!(faults.iter().all(|fault| fault.stage != "host"), "{number}: {faults:?}");
        }
    }
}

#[tokio::test]
async fn all_missing_imports_are_named_at_once() {
    let imports = r#"(import "acme:x/y@1.0.0" (instance)) (import "wasi:http/incoming-handler@0.2.0" (instance)) (import "env" (func))"#;
    let guest = Guest { imports: imports.to_owned(), ..Guest::default() };
    let faults = faults(whole(&guest)).await;
    let places: Vec<_> = faults.iter().map(|fault| (fault.stage.as_str(), fault.place.as_str())).collect();
    assert_eq!(
        places,
        [("imports", "acme:x/y@1.0.0"), ("imports", "wasi:http/incoming-handler@0.2.0"), ("imports", "env")]
    );
}

/// A component with so many imports that the host lacks.
fn importing(count: usize) -> Vec<u8> {
    let imports: String = (0..count).map(|number| format!("(import \"a{number}\" (func))")).collect();
    embedded(&wat::parse_str(format!("(component {imports})")).unwrap(), MANIFEST, CASES)
}

#[tokio::test]
async fn the_imports_that_are_read_and_the_faults_that_are_told_are_bounded() {
    let faults = faults(importing(1_000)).await;
    let missing: Vec<_> = faults.iter().filter(|fault| fault.stage == "imports").collect();
    assert_eq!((missing.len(), missing[100].found.as_str()), (101, "900 more"));
    let fault = only_fault(importing(1_001)).await;
    assert_eq!((fault.stage.as_str(), fault.found.as_str()), ("format", "more than 1000 imports"));
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let mut large = importing(2_000);
    large.resize(checkrein_contract::limits::LimitKey::Component.default_value() as usize + 1, 0);
    assert_eq!(only_fault(large).await.stage, "size");
}

#[test]
fn a_lost_task_is_not_put_down_to_the_component() {
    let report = LoadReport::new("test.wasm");
    let lost = not_compiled(&report, &Uncompiled::Lost("the task panicked".to_owned()));
    assert_eq!((lost.stage.as_str(), lost.expected.as_str()), ("host", "a host that can compile"));
    let refused = not_compiled(&report, &Uncompiled::Told(NoCode::Refused("no type 7".to_owned())));
    assert_eq!((refused.stage.as_str(), refused.expected.as_str()), ("compile", "a valid component"));
}

#[tokio::test]
async fn manifest_and_cases_have_bounds() {
    let component = Guest::default().assemble();
    let long = format!("{MANIFEST}\n#{}\n", "x".repeat(256 << 10));
    let fault = faults(embedded(&component, &long, CASES)).await.remove(0);
    assert_eq!(fault.stage, "size");
    assert!(fault.file.ends_with("[skill.toml]"), "{fault}");
    let many = "[[case]]\nname = \"a\"\n".repeat(101);
    let fault = only_fault(embedded(&component, MANIFEST, &many)).await;
    assert!(fault.expected.contains("100 cases"), "{fault}");
}

#[tokio::test]
async fn another_wit_version_is_named() {
    let guest = Guest { version: "0.3.0", ..Guest::default() };
    let fault = only_fault(whole(&guest)).await;
    assert_eq!(fault.found, "built for checkrein:skill 0.3.0, this host supports 0.1.0");
}

#[tokio::test]
async fn missing_exports_are_named_by_kind() {
    let bare = wat::parse_str("(component)").unwrap();
    let skill = faults(embedded(&bare, MANIFEST, CASES)).await;
    assert_eq!(skill.iter().filter(|fault| fault.stage == "exports").count(), 4);
    let verifier = MANIFEST.replace("\"skill\"", "\"verifier\"").replace("effects = \"none\"", "");
    let verifier = faults(embedded(&bare, &verifier, CASES)).await;
    assert_eq!(verifier.len(), 1);
    assert_eq!(verifier[0].place, "checkrein:skill/verification@0.1.0");
}

#[tokio::test]
async fn an_export_of_another_type_is_found_before_the_first_call() {
    // `score` and `reason` as they are, `args` not there.
    let text = Guest::default()
        .text()
        .replace(" (field \"args\" (option string))))\n  (export $assessment", "))\n  (export $assessment");
    let fault = only_fault(embedded(&wat::parse_str(text).unwrap(), MANIFEST, CASES)).await;
    assert_eq!(fault.stage, "instantiate");
    assert!(fault.found.contains("field"), "{fault}");
}

#[tokio::test]
async fn the_manifest_is_the_components_own_and_only_one() {
    let component = Guest::default().assemble();
    let none = faults(component.clone()).await;
    assert!(none.iter().any(|fault| fault.stage == "manifest" && fault.found == "none"), "{none:?}");

    let mut twice = embedded(&component, MANIFEST, CASES);
    let length = MANIFEST.len() + 19;
    let mut copy = vec![0, (length as u8 & 0x7f) | 0x80, (length >> 7) as u8, 18];
    copy.extend(b"checkrein:manifest");
    copy.extend(MANIFEST.as_bytes());
    twice.extend(copy);
    let fault = only_fault(twice).await;
    assert_eq!((fault.stage.as_str(), fault.found.as_str()), ("manifest", "two of them"));

    let nested = Guest { core: "(@custom \"checkrein:manifest\" \"x\")".to_owned(), ..Guest::default() };
    let nested = faults(nested.assemble()).await;
    assert!(nested.iter().any(|fault| fault.stage == "manifest" && fault.found == "none"), "{nested:?}");

    let wrong = faults(embedded(&component, &MANIFEST.replace("1.0.0", "1"), CASES)).await;
    assert!(wrong[0].file.ends_with("[skill.toml]"), "{wrong:?}");
}

#[tokio::test]
async fn the_schema_is_held_against_the_manifest_or_taken() {
    let mut guest = Guest::default();
    guest.describes(r#"{"type":"object"}"#);
    let (sandbox, _folder) = sandbox();
    let loaded = sandbox.load(bytes(whole(&guest))).await.unwrap();
    assert_eq!(loaded.manifest.args, Some(json!({ "type": "object" })));
    let same = format!("{MANIFEST}[args]\ntype = \"object\"\n");
    sandbox.load(bytes(embedded(&guest.assemble(), &same, CASES))).await.unwrap();
    let other = format!("{MANIFEST}[args]\ntype = \"array\"\n");
    let fault = only_fault(embedded(&guest.assemble(), &other, CASES)).await;
    assert_eq!(fault.stage, "schema");
    assert!(fault.found.contains("`/type`"), "{fault}");
    let mut wrong = Guest::default();
    wrong.describes("nope");
    assert_eq!(only_fault(whole(&wrong)).await.stage, "schema");
}

#[tokio::test]
async fn a_component_that_does_not_start_or_assess_does_not_load() {
    let start = Guest { start: "unreachable".to_owned(), ..Guest::default() };
    assert_eq!(only_fault(whole(&start)).await.stage, "instantiate");
    let assess = Guest { assess: "unreachable".to_owned(), ..Guest::default() };
    assert_eq!(only_fault(whole(&assess)).await.stage, "assess");
}

#[tokio::test]
async fn cases_must_be_there_and_pass() {
    let component = Guest::default().assemble();
    assert_eq!(only_fault(embedded(&component, MANIFEST, "")).await.stage, "cases");
    let failing = "[[case]]\nname = \"one\"\n[[case]]\nname = \"two\"\nexpect = \"not-found\"\n";
    let fault = only_fault(embedded(&component, MANIFEST, failing)).await;
    assert_eq!((fault.stage.as_str(), fault.place.as_str()), ("cases", "two"));
    assert!(fault.found.contains("there is an outcome"), "{fault}");
}

#[tokio::test]
async fn a_verification_that_notices_nothing_does_not_load() {
    let mut guest = Guest::default();
    let verdict = guest.accepting();
    guest.verify = format!("i32.const {verdict}");
    let fault = only_fault(whole(&guest)).await;
    assert_eq!(fault.stage, "verification");
    assert!(fault.found.starts_with("none of "), "{fault}");
    // One that traps on every change has noticed nothing either.
    let honest = Guest::default();
    let traps = honest.verify.replacen("(else (i32.const", "(else (unreachable) (i32.const", 1);
    assert_eq!(only_fault(whole(&Guest { verify: traps, ..honest })).await.stage, "verification");
}

#[tokio::test]
async fn a_given_submission_is_judged() {
    let cases = "[[case]]\nname = \"lie\"\nexpect = \"rejected\"\noutcome = '{\"content\":{\"n\":22},\"facts\":[],\"artifacts\":[]}'\nsubmission = { skill = \"x\" }\n[[case]]\nname = \"truth\"\noutcome = '{\"content\":{\"n\":1},\"facts\":[],\"artifacts\":[]}'\nsubmission = { skill = \"x\" }\n";
    let manifest =
        MANIFEST.replace("\"skill\"\nname", "\"verifier\"\nname").replace("effects = \"none\"", "");
    let (sandbox, _folder) = sandbox();
    let loaded = sandbox.load(bytes(embedded(&Guest::default().assemble(), &manifest, cases))).await;
    assert!(loaded.is_ok(), "{loaded:?}");
}

/// Loads every component of a folder and prints what came of it, with times.
#[tokio::test]
#[ignore = "a measurement, over the folder CHECKREIN_COMPONENTS"]
#[allow(clippy::print_stderr, reason = "a measurement is read by a person")]
async fn components_of_a_folder() {
    let (sandbox, folder) = sandbox();
    let mut paths: Vec<_> = std::fs::read_dir(std::env::var("CHECKREIN_COMPONENTS").unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    paths.sort();
    for path in &paths {
        let began = std::time::Instant::now();
        let report = sandbox.check(path.as_path()).await;
        let took = began.elapsed();
        let again = sandbox_in(&folder);
        let began = std::time::Instant::now();
        again.check(path.as_path()).await;
        eprintln!("{}: {took:?}, then {:?}", path.display(), began.elapsed());
        for step in &report.steps {
            eprintln!("  {step:?}");
        }
        if let Some(probe) = &report.probe {
            eprintln!("  {:?}", probe.by_kind);
            for survivor in &probe.survivors {
                eprintln!("  {survivor:?}");
            }
        }
    }
}
