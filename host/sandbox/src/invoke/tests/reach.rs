//! What a part reaches, and what its end does to others.

use super::*;

#[tokio::test]
async fn what_is_not_loaded_or_has_no_such_part_is_a_fault() {
    let (sandbox, _folder) = sandbox();
    let mut setting = ready(&sandbox, &Guest::default());
    setting.component = checkrein_contract::Digest::ZERO;
    assert!(matches!(sandbox.execute(setting, call()).await.end, End::Fault(_)));
    let manifest = "schema = \"checkrein/skill@1\"\nkind = \"verifier\"\nname = \"v\"\nversion = \"1.0.0\"\ndescription = \"d\"\n";
    let setting = crate::testing::force(
        &sandbox,
        &Guest { memory: "5".into(), ..Guest::default() }.assemble(),
        manifest,
    );
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(&ran.end, End::Fault(why) if why.contains("verifier")), "{ran:?}");
    let End::Returned(Ok(_)) = sandbox.verify(setting, submission()).await.end else { panic!() };
}

#[tokio::test]
async fn a_panicking_host_function_ends_its_call_alone() {
    struct Panics;
    impl checkrein_contract::port::Observer for Panics {
        fn log(&self, _: &str, _: &str) {
            panic!("on purpose");
        }
        fn progress(&self, _: u32, _: u32, _: String) -> checkrein_contract::port::BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    guest.import_log();
    guest.execute = format!("(call $write (i32.const 1) (i32.const 0) (i32.const 1)) {}", guest.execute);
    let mut setting = ready(&sandbox, &guest);
    setting.observer = Arc::new(Panics);
    let ran = sandbox.execute(setting.clone(), call()).await;
    assert!(matches!(&ran.end, End::Fault(why) if why.contains("on purpose")), "{ran:?}");
    setting.observer = Arc::new(checkrein_contract::port::NoObserver);
    assert!(matches!(sandbox.execute(setting, call()).await.end, End::Returned(_)));
}

/// Counts the folders that it was given, as `$count`.
fn folder_counter() -> Guest {
    let imports = r#"
        (import "wasi:filesystem/types@0.2.0" (instance $files (export "descriptor" (type (sub resource)))))
        (alias export $files "descriptor" (type $descriptor))
        (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
          (export "get-directories" (func (result (list (tuple (own $descriptor) string)))))))
        (core func $folders (canon lower (func $preopens "get-directories") (memory $mem) (realloc $mrealloc)))
        (core instance $fs (export "folders" (func $folders)))"#
        .to_owned();
    let with = "(with \"fs\" (instance $fs))".to_owned();
    let core = "(import \"fs\" \"folders\" (func $folders (param i32)))
        (func $count (result i32) (call $folders (i32.const 65536)) (i32.load (i32.const 65540)))"
        .to_owned();
    Guest { imports, with, core, ..Guest::default() }
}

#[tokio::test]
async fn triggers_and_recoveries_have_no_folders_whatever_the_setting_says() {
    let (sandbox, folder) = sandbox();
    let mut guest = folder_counter();
    let expecting = |count: u32, answer: &str| {
        format!("(if (i32.ne (call $count) (i32.const {count})) (then unreachable)) {answer}")
    };
    guest.assess = expecting(0, &guest.assess);
    guest.recover = expecting(0, &guest.recover);
    guest.execute = expecting(3, &guest.execute);
    guest.verify = expecting(3, &guest.verify);
    let mut setting = ready(&sandbox, &guest);
    for place in [&mut setting.input, &mut setting.artifacts, &mut setting.work] {
        *place = Some(folder.path().to_owned());
    }
    assert!(matches!(sandbox.assess(setting.clone(), subgoal()).await.end, End::Returned(_)));
    assert!(matches!(sandbox.recover(setting.clone(), mishap()).await.end, End::Returned(_)));
    assert!(matches!(sandbox.execute(setting.clone(), call()).await.end, End::Returned(_)));
    assert!(matches!(sandbox.verify(setting, submission()).await.end, End::Returned(Ok(_))));
}

struct OneFact;

impl checkrein_contract::port::FactSource for OneFact {
    fn get(&self, id: &str) -> Option<checkrein_contract::interface::Fact> {
        Some(checkrein_contract::interface::Fact {
            id: id.to_owned(),
            version: 1,
            subject: "a".into(),
            kind: "k".into(),
            content: json!({}),
            source: "/in/x".into(),
            level: checkrein_contract::interface::Level::Independent,
        })
    }

    fn find(&self, _: &str, _: Option<&str>, _: u32) -> Vec<checkrein_contract::interface::Fact> {
        Vec::new()
    }
}

#[tokio::test]
async fn facts_are_read_by_executors_and_not_by_triggers() {
    let (sandbox, _folder) = sandbox();
    let mut guest = Guest::default();
    let types = r#"
        (type $l (enum "self-checked" "independent" "attested")) (export "level" (type $level (eq $l)))
        (type $f (record (field "id" string) (field "version" u32) (field "subject" string) (field "kind" string)
          (field "content" string) (field "source" string) (field "level" $level)))
        (export "fact" (type $fact (eq $f)))
        (export "get" (func (param "id" string) (result (option $fact))))"#;
    guest.import("checkrein:skill/facts@0.1.0", types, "get", "(param i32 i32 i32)");
    let expecting = |there: u32, answer: &str| {
        format!(
            "(call $get (i32.const 1024) (i32.const 1) (i32.const 65536))
             (if (i32.ne (i32.load8_u (i32.const 65536)) (i32.const {there})) (then unreachable)) {answer}"
        )
    };
    guest.assess = expecting(0, &guest.assess);
    guest.recover = expecting(0, &guest.recover);
    guest.execute = expecting(1, &guest.execute);
    guest.verify = expecting(1, &guest.verify);
    let mut setting = ready(&sandbox, &guest);
    setting.facts = Arc::new(OneFact);
    let ran = sandbox.assess(setting.clone(), subgoal()).await;
    assert!(matches!(ran.end, End::Returned(_)), "{ran:?}");
    assert_eq!(ran.used.host_calls, 1);
    assert!(matches!(sandbox.recover(setting.clone(), mishap()).await.end, End::Returned(_)));
    assert!(matches!(sandbox.execute(setting.clone(), call()).await.end, End::Returned(_)));
    assert!(matches!(sandbox.verify(setting, submission()).await.end, End::Returned(Ok(_))));
}
