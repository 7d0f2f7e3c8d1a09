//! Artifacts: what is stored when the executor returns is what everything later sees.

use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use checkrein_contract::Digest;
use checkrein_contract::port::{Blobs, StorageError, Tree};

use super::*;
use crate::testing::{MemoryBlobs, places_in};
use crate::{Options, Sandbox};

/// Blobs beside somebody who changes every file in every `/work` as soon as one was stored.
struct Meddled {
    blobs: MemoryBlobs,
    scratch: PathBuf,
    changed: Mutex<Vec<String>>,
}

impl Meddled {
    fn meddle(&self) {
        for work in std::fs::read_dir(&self.scratch).unwrap() {
            let work = work.unwrap().path();
            for name in entries(&work) {
                std::fs::write(work.join(&name), "changed").unwrap();
                // Another file under the same name, too.
                std::fs::write(work.join("other"), "replaced").unwrap();
                std::fs::rename(work.join("other"), work.join(&name)).unwrap();
                self.changed.lock().unwrap().push(name);
            }
        }
    }
}

impl Blobs for Meddled {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        self.blobs.put(bytes)
    }

    fn put_from(&self, reader: &mut dyn Read) -> Result<(Digest, u64), StorageError> {
        let stored = self.blobs.put_from(reader)?;
        self.meddle();
        Ok(stored)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        self.blobs.get(digest)
    }

    fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        self.blobs.tree(files)
    }
}

#[tokio::test]
async fn an_artifact_replaced_after_the_executor_returned() {
    let folder = tempfile::tempdir().unwrap();
    let places = places_in(&folder);
    let blobs = Arc::new(Meddled {
        blobs: MemoryBlobs::default(),
        scratch: places.scratch.clone(),
        changed: Mutex::default(),
    });
    let sandbox = Sandbox::new(Options::new(places), Arc::<Meddled>::clone(&blobs)).unwrap();
    let mut guest = guests::Script::new().create(guests::WORK, "a").write_text("first").guest(&["a"]);
    // The verification reads `/work/a`, the third folder of its own, and accepts `first` alone.
    let (verdict, path) = (guest.accepting(), guest.image.text("a"));
    guest.verify = format!(
        "(call $folders (global.get $ret))
         (call $open-at (i32.load (i32.load (global.get $ret))) (i32.const 0) (i32.const {}) (i32.const {})
           (i32.const 0) (i32.const 1) (global.get $ret))
         (call $read (i32.load offset=4 (global.get $ret)) (i64.const 100) (i64.const 0) (global.get $ret))
         (if (i32.ne (i32.load offset=8 (global.get $ret)) (i32.const 5)) (then unreachable))
         (if (i32.ne (i32.load (i32.load offset=4 (global.get $ret))) (i32.const 0x73726966)) (then unreachable))
         (i32.const {verdict})",
        path[0], path[1]
    );
    let mut setting = ready(&sandbox, &guest);
    let empty = tempfile::tempdir().unwrap();
    setting.input = Some(empty.path().to_owned());
    setting.artifacts = Some(empty.path().to_owned());
    let ran = sandbox.execute(setting.clone(), call()).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert!(blobs.changed.lock().unwrap().contains(&"a".to_owned()), "the file was there to be changed");
    let [artifact] = &execution.artifacts[..] else { panic!("{execution:?}") };
    assert_eq!(artifact.digest, Digest::of(b"first"));
    assert_eq!(blobs.get(&artifact.digest).unwrap(), b"first");
    // What judges it gets it by its digest.
    let work = blobs.tree(&[(artifact.path.clone(), artifact.digest)]).unwrap();
    (setting.input, setting.artifacts) = (None, None);
    setting.work = Some(work.path().to_owned());
    let ran = sandbox.verify(setting, crate::invoke::tests::submission()).await;
    assert!(matches!(ran.end, End::Returned(Ok(_))), "{ran:?}");
}

#[tokio::test]
async fn a_sparse_artifact_counts_with_its_whole_length() {
    let world = World::new();
    let script = guests::Script::new().create(guests::WORK, "a").set_size(1 << 20);
    let mut setting = world.setting(&script.guest(&["a"]));
    setting.limits = setting.limits.with(LimitKey::WorkBytes, 1 << 20);
    let ran = world.run(setting).await;
    let End::Returned(execution) = ran.end else { panic!("{ran:?}") };
    assert_eq!(execution.artifacts[0].bytes, 1 << 20);
    assert_eq!(execution.artifacts[0].digest, Digest::of(vec![0; 1 << 20]));
}
