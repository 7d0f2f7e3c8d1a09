//! For tests: a sandbox in a folder of its own, and guests written as component text
//! ([`crate::attack`] holds what they are made of).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::Limits;
use checkrein_contract::manifest::Manifest;
use checkrein_contract::port::{Blobs, Setting, StorageError, Tree};
use tempfile::TempDir;

use crate::load::trial_setting;
use crate::{Options, Places, Sandbox};

pub(crate) use crate::attack::guest;
pub(crate) use guest::Guest;

/// The folder of the hostile guests.
pub(crate) fn guests() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests")
}

/// A sandbox whose folders are removed with the second value.
pub(crate) fn sandbox() -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (sandbox_in(&folder), folder)
}

/// A sandbox with the cache that `folder` may already hold.
pub(crate) fn sandbox_in(folder: &TempDir) -> Sandbox {
    Sandbox::new(Options::new(places_in(folder)), Arc::new(MemoryBlobs::default())).unwrap()
}

/// A sandbox whose blobs have no space left.
pub(crate) fn sandbox_on_a_full_disk() -> (Sandbox, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Sandbox::new(Options::new(places_in(&folder)), Arc::new(FullBlobs)).unwrap(), folder)
}

pub(crate) fn places_in(folder: &TempDir) -> Places {
    Places { cache: folder.path().join("cache"), scratch: folder.path().join("scratch") }
}

/// Puts a component where calls find it, without the steps of loading.
pub(crate) fn force(sandbox: &Sandbox, bytes: &[u8], manifest: &str) -> Setting {
    use crate::bindings::{skill::SkillPre, verifier::VerifierPre};
    use crate::component::{Component, Pre};
    let host = &sandbox.0;
    let compiled = wasmtime::component::Component::from_binary(&host.engine, bytes).unwrap();
    let pre = host.link(&compiled).unwrap();
    let manifest = Manifest::parse("skill.toml", manifest).unwrap();
    let pre = match manifest.kind {
        checkrein_contract::manifest::Kind::Skill => Pre::Skill(SkillPre::new(pre).unwrap()),
        checkrein_contract::manifest::Kind::Verifier => Pre::Verifier(VerifierPre::new(pre).unwrap()),
    };
    let digest = Digest::of(bytes);
    sandbox.register(Arc::new(Component::new(digest, manifest, pre)));
    trial_setting(digest, Limits::default())
}

/// Whether a linker itself has an interface, in whatever patch of it.
pub(crate) fn has(linker: &wasmtime::component::Linker<crate::state::State>, name: &str) -> bool {
    let own = format!("{name}@{}", crate::load::names::VERSION);
    let mut versions = (0..40).map(|patch| format!("{name}@0.2.{patch}")).chain([own]);
    // A name that is taken cannot be given to anything else.
    versions.any(|name| linker.clone().root().func_new(&name, |_, _, _, _| Ok(())).is_err())
}

/// A guest, registered, with the setting of a call.
pub(crate) fn ready(sandbox: &Sandbox, guest: &Guest) -> Setting {
    force(sandbox, &guest.assemble(), MANIFEST)
}

pub(crate) use guest::{CASES, MANIFEST};

/// The component with manifest and cases.
pub(crate) fn embedded(bytes: &[u8], manifest: &str, cases: &str) -> Vec<u8> {
    guest::embedded(bytes, manifest, cases).unwrap()
}

/// Blobs in memory; trees in folders for temporary files.
#[derive(Default)]
pub(crate) struct MemoryBlobs(Mutex<HashMap<Digest, Vec<u8>>>);

impl Blobs for MemoryBlobs {
    fn put(&self, bytes: &[u8]) -> Result<Digest, StorageError> {
        let digest = Digest::of(bytes);
        self.0.lock().unwrap().insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn put_from(&self, reader: &mut dyn std::io::Read) -> Result<(Digest, u64), StorageError> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        Ok((self.put(&bytes)?, bytes.len() as u64))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StorageError> {
        let missing = || StorageError::Missing { place: digest.to_string() };
        self.0.lock().unwrap().get(digest).cloned().ok_or_else(missing)
    }

    fn tree(&self, files: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        let folder = tempfile::tempdir().unwrap();
        for (path, digest) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, self.get(digest)?).unwrap();
        }
        Ok(Box::new(Folder(folder)))
    }
}

/// A disk without space.
pub(crate) struct FullBlobs;

impl FullBlobs {
    fn full<T>() -> Result<T, StorageError> {
        Err(StorageError::Full { place: "blobs".to_owned() })
    }
}

impl Blobs for FullBlobs {
    fn put(&self, _: &[u8]) -> Result<Digest, StorageError> {
        Self::full()
    }

    fn put_from(&self, _: &mut dyn std::io::Read) -> Result<(Digest, u64), StorageError> {
        Self::full()
    }

    fn get(&self, _: &Digest) -> Result<Vec<u8>, StorageError> {
        Self::full()
    }

    fn tree(&self, _: &[(String, Digest)]) -> Result<Box<dyn Tree>, StorageError> {
        Self::full()
    }
}

struct Folder(TempDir);

impl Tree for Folder {
    fn path(&self) -> &std::path::Path {
        self.0.path()
    }
}
