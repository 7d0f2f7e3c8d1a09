//! A disk that fails is neither the component's fault nor one of ours.

use checkrein_contract::interface::Artifact;

use super::*;
use crate::testing::{places_in, sandbox_in, sandbox_on_a_full_disk};
use crate::{Options, Places, SandboxError};

fn storage<T: std::fmt::Debug>(ran: Ran<T>) -> StorageError {
    match ran.end {
        End::Storage(error) => error,
        end => panic!("{end:?}"),
    }
}

/// What comes of an outcome that names `path`, with one file in `/work`.
async fn collected(sandbox: &Sandbox, path: &str) -> Ran<Execution> {
    let setting = ready(sandbox, &Guest::default());
    let component = sandbox.component(&setting.component).unwrap();
    let work = work::create(&sandbox.0.scratch).unwrap();
    std::fs::write(work.path().join("a.csv"), "a,b\n").unwrap();
    let named = Artifact { path: path.into(), title: String::new(), media_type: String::new() };
    let outcome = Outcome { content: json!(1), facts: Vec::new(), artifacts: vec![named] };
    let ran = Ran {
        end: End::Returned(Ok(outcome)),
        used: Used::default(),
        log: "said".into(),
        record: Record::default(),
    };
    collect(&sandbox.0, component, setting.limits, ran, work).await
}

#[tokio::test]
async fn a_full_disk_while_artifacts_are_stored() {
    let (sandbox, _folder) = sandbox();
    let ran = collected(&sandbox, "a.csv").await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.artifacts[0].bytes, 4);
    let (sandbox, _folder) = sandbox_on_a_full_disk();
    let ran = collected(&sandbox, "a.csv").await;
    assert_eq!(ran.log, "said");
    assert_eq!(storage(ran), StorageError::Full { place: "blobs".into() });
    // What the component did wrong stays its own fault, whatever the disk.
    assert!(matches!(collected(&sandbox, "absent").await.end, End::Invalid(_)));
    assert_nothing_left(&sandbox).await;
}

#[tokio::test]
async fn a_scratch_that_is_gone_or_no_folder() {
    let (sandbox, folder) = sandbox();
    let setting = ready(&sandbox, &Guest::default());
    let scratch = folder.path().join("scratch");
    std::fs::remove_dir(&scratch).unwrap();
    let error = storage(sandbox.execute(setting.clone(), call()).await);
    assert_eq!(error, StorageError::Missing { place: scratch.display().to_string() });
    std::fs::write(&scratch, "x").unwrap();
    let error = storage(sandbox.execute(setting.clone(), call()).await);
    assert!(matches!(error, StorageError::NotWritable { .. }), "{error:?}");
    // A verification needs no folder of the sandbox's.
    assert!(matches!(sandbox.verify(setting, submission()).await.end, End::Returned(Ok(_))));
}

#[tokio::test]
async fn an_input_that_cannot_be_opened() {
    let (sandbox, folder) = sandbox();
    let mut setting = ready(&sandbox, &Guest::default());
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    setting.input = Some(folder.path().join("gone"));
    let error = storage(sandbox.execute(setting.clone(), call()).await);
    assert!(matches!(error, StorageError::Missing { .. }), "{error:?}");
    setting.input = Some(file);
    let error = storage(sandbox.verify(setting, submission()).await);
    assert!(matches!(error, StorageError::NotWritable { .. }), "{error:?}");
    assert_nothing_left(&sandbox).await;
}

#[test]
fn a_sandbox_without_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for bad in [file.clone(), file.join("below")] {
        let scratch = Places { scratch: bad.clone(), ..places_in(&folder) };
        let cache = Places { cache: bad, ..places_in(&folder) };
        for places in [scratch, cache] {
            let blobs = Arc::new(crate::testing::MemoryBlobs::default());
            let error = Sandbox::new(Options::new(places.clone()), blobs).err().unwrap();
            let expected = matches!(error, SandboxError::Storage(StorageError::NotWritable { .. }));
            assert!(expected, "{places:?}: {error:?}");
        }
    }
}

#[test]
fn what_a_killed_process_left_is_gone_after_a_start_and_what_is_in_use_is_not() {
    let (first, folder) = sandbox();
    let work = work::create(&first.0.scratch).unwrap();
    // The largest number of a process on Linux is 2^22.
    let left = [
        folder.path().join("scratch/4194999-work-x"),
        folder.path().join("scratch/4194999-case-x"),
        folder.path().join("cache/4194999-new-x"),
    ];
    for path in &left {
        std::fs::create_dir(path).unwrap();
    }
    drop(sandbox_in(&folder));
    assert!(work.path().exists());
    assert!(!left.iter().any(|path| path.exists()));
}
