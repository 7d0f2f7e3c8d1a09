//! Compiled code, and the trials that a component passed, kept between starts.
//!
//! Loading compiled code means to trust it wholly, so every entry carries a MAC (keyed BLAKE3)
//! under a key that only this user can read. An entry is keyed by the digest of the component and
//! by everything that the code depends on: wasmtime's full version, its settings, the CPU. What
//! cannot be read or does not match is a miss, never an error, and is never loaded. Entries are
//! written aside and renamed, so two processes can share the folder.

use std::fs::{File, OpenOptions};
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use checkrein_contract::digest::Digest;
use checkrein_contract::port::StorageError;
use rand::Rng as _;
use wasmtime::Engine;
use wasmtime::component::Component as Compiled;

use crate::scratch::{Kind, prefix, sweep};

/// The file that holds the key.
const KEY: &str = "key";

/// The cache of one engine.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    /// What compiled code depends on besides the component.
    engine: blake3::Hash,
}

impl Cache {
    /// Opens the cache in `folder`.
    ///
    /// # Errors
    ///
    /// If the folder or the key in it can be neither read nor made.
    pub(crate) fn open(folder: &Path, engine: &Engine) -> Result<Self, StorageError> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.and_then(|()| check_own(folder))
            .and_then(|()| std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)))
            .map_err(|error| StorageError::of_io(folder, &error))?;
        sweep(folder)?;
        let key = read_key(folder).map_or_else(|| make_key(folder), Ok);
        let key = key.map_err(|error| StorageError::of_io(folder, &error))?;
        Ok(Cache { folder: folder.to_owned(), key, engine: compatibility(engine) })
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The compiled code of the component with this digest.
    pub(crate) fn code(&self, engine: &Engine, component: &Digest) -> Option<Compiled> {
        let name = self.name(component, "cwasm");
        let mac = self.read_mac(&name)?;
        // The file that is checked is the one that is mapped: it is opened once. It is only ever
        // replaced by a rename, so what was checked does not change.
        let file = File::open(self.folder.join(&name)).ok()?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut hasher = self.hasher(&name);
        hasher.update_mmap_rayon(&path).ok()?;
        if hasher.finalize() != mac {
            tracing::debug!(%name, "a cached entry does not match its MAC; it is not used");
            return None;
        }
        load(engine, &path)
            .map_err(|error| tracing::debug!(%name, %error, "a cached entry does not load"))
            .ok()
    }

    /// Keeps compiled code.
    pub(crate) fn keep_code(&self, component: &Digest, code: &[u8]) {
        let name = self.name(component, "cwasm");
        let mut hasher = self.hasher(&name);
        hasher.update_rayon(code);
        let mac = hasher.finalize();
        let kept = self.write(&name, code).and_then(|()| self.write(&mac_name(&name), mac.as_bytes()));
        if let Err(error) = kept {
            tracing::debug!(%name, %error, "an entry could not be cached");
        }
    }

    /// Whether the component with this digest passed the trial before.
    pub(crate) fn passed(&self, component: &Digest) -> bool {
        let name = self.pass_name(component);
        self.read_mac(&name).is_some_and(|mac| mac == self.hasher(&name).finalize())
    }

    /// Remembers that it passed.
    pub(crate) fn keep_passed(&self, component: &Digest) {
        let name = self.pass_name(component);
        let mac = self.hasher(&name).finalize();
        if let Err(error) = self.write(&mac_name(&name), mac.as_bytes()) {
            tracing::debug!(%name, %error, "a passed trial could not be remembered");
        }
    }

    fn name(&self, component: &Digest, kind: &str) -> String {
        format!("{}-{}.{kind}", component.hex(), &self.engine.to_hex()[..32])
    }

    /// The trial is a matter of this crate as well: another version may try harder.
    fn pass_name(&self, component: &Digest) -> String {
        self.name(component, &format!("{}.pass", env!("CARGO_PKG_VERSION")))
    }

    /// The name goes into the MAC, so that one entry cannot stand in for another.
    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher
    }

    fn read_mac(&self, name: &str) -> Option<blake3::Hash> {
        let bytes = std::fs::read(self.folder.join(mac_name(name))).ok()?;
        Some(blake3::Hash::from_bytes(bytes.try_into().ok()?))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut aside = tempfile::Builder::new().prefix(&prefix(Kind::New)).tempfile_in(&self.folder)?;
        aside.write_all(bytes)?;
        aside.persist(self.folder.join(name)).map_err(|error| error.error)?;
        Ok(())
    }
}

fn mac_name(name: &str) -> String {
    format!("{name}.mac")
}

/// Loads code that this host, or the host of this worker, has just had compiled.
#[expect(
    unsafe_code,
    reason = "the one way to load compiled code; it came from a process that this one trusts with it"
)]
pub(crate) fn load_fresh(engine: &Engine, code: &[u8]) -> wasmtime::Result<Compiled> {
    // SAFETY: the bytes were made by `Engine::precompile_component` or `Compiled::serialize` in a
    // process that named the same `build` before, so with the same wasmtime and settings, on this
    // machine, and came over a pipe that nobody else holds.
    unsafe { Compiled::deserialize(engine, code) }
}

/// Maps code that was checked.
#[allow(
    unsafe_code,
    reason = "the one way to load compiled code; its MAC says that this user's host compiled it"
)]
fn load(engine: &Engine, path: &str) -> wasmtime::Result<Compiled> {
    // SAFETY: the contents were made by `Compiled::serialize` of this version with these settings
    // on this CPU: the MAC covers them and the name, which covers all three. The file behind the
    // descriptor is private to this user and never written again.
    unsafe { Compiled::deserialize_file(engine, path) }
}

/// What is compiled is trusted, so the folder is this user's own and no link to another.
fn check_own(folder: &Path) -> std::io::Result<()> {
    let found = std::fs::symlink_metadata(folder)?;
    if found.is_symlink() || found.uid() != rustix::process::geteuid().as_raw() {
        let what = if found.is_symlink() { "it is a link" } else { "it belongs to another user" };
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// The key, if it is there, whole, and only this user's.
fn read_key(folder: &Path) -> Option<[u8; 32]> {
    let mut file = File::open(folder.join(KEY)).ok()?;
    let metadata = file.metadata().ok()?;
    let private = metadata.mode() & 0o077 == 0 && metadata.uid() == rustix::process::geteuid().as_raw();
    if !private || metadata.len() != 32 {
        tracing::warn!(folder = %folder.display(), "the cache's key is damaged or open to others; a new one is made");
        return None;
    }
    let mut key = [0; 32];
    file.read_exact(&mut key).ok()?;
    Some(key)
}

/// Makes a key. Two processes at once: the later one wins, and the other's entries are misses.
fn make_key(folder: &Path) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    rand::rng().fill_bytes(&mut key);
    let aside = folder.join(format!("{}{KEY}", prefix(Kind::New)));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(&key)?;
    std::fs::rename(&aside, folder.join(KEY))?;
    Ok(key)
}

/// What two processes must have in common before one runs code that the other had compiled, or
/// believes its frames: wasmtime's version, its settings, the CPU, and the version of this crate.
/// The engine itself compares only the first number of its version.
pub(crate) fn build(engine: &Engine) -> String {
    format!("{}-{}-{}", env!("CARGO_PKG_VERSION"), crate::WASMTIME, compatibility(engine).to_hex())
}

fn compatibility(engine: &Engine) -> blake3::Hash {
    let mut hasher = StableHasher(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize()
}

/// The standard library's hasher may change between releases of Rust; a name on disk must not.
struct StableHasher(blake3::Hasher);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        u64::from_le_bytes(self.0.finalize().as_bytes()[..8].try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(engine: &Engine) -> (Digest, Vec<u8>) {
        let bytes = wat::parse_str("(component)").unwrap();
        (Digest::of(&bytes), Compiled::from_binary(engine, &bytes).unwrap().serialize().unwrap())
    }

    #[test]
    fn an_entry_is_found_and_a_changed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = crate::engine::build().unwrap();
        let cache = Cache::open(folder.path(), &engine).unwrap();
        let (digest, code) = compiled(&engine);
        assert!(cache.code(&engine, &digest).is_none());
        cache.keep_code(&digest, &code);
        assert!(cache.code(&engine, &digest).is_some());
        let again = Cache::open(folder.path(), &engine).unwrap();
        assert!(again.code(&engine, &digest).is_some(), "the key was kept");

        let path = folder.path().join(cache.name(&digest, "cwasm"));
        let mut changed = code.clone();
        changed[code.len() / 2] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert!(cache.code(&engine, &digest).is_none(), "a flipped bit");
        std::fs::write(&path, &code[..100]).unwrap();
        assert!(cache.code(&engine, &digest).is_none(), "cut off");
    }

    #[test]
    fn the_engines_of_host_and_workers_are_of_one_build() {
        let (engine, _) = crate::engine::build().unwrap();
        let ours = build(&engine);
        assert_eq!(ours, build(&crate::engine::build_on_demand().unwrap()));
        assert_eq!(ours, build(&crate::engine::build_for_compiling().unwrap()));
        // Another setting is another build.
        let mut config = crate::engine::config();
        config.consume_fuel(false);
        assert_ne!(ours, build(&Engine::new(&config).unwrap()));
    }

    #[test]
    fn one_entry_cannot_stand_in_for_another() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = crate::engine::build().unwrap();
        let cache = Cache::open(folder.path(), &engine).unwrap();
        let (digest, code) = compiled(&engine);
        let other = Digest::of("other");
        cache.keep_code(&digest, &code);
        for suffix in ["", ".mac"] {
            let path = |digest| folder.path().join(format!("{}{suffix}", cache.name(digest, "cwasm")));
            std::fs::copy(path(&digest), path(&other)).unwrap();
        }
        assert!(cache.code(&engine, &other).is_none());
    }

    #[test]
    fn a_key_that_others_can_read_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = crate::engine::build().unwrap();
        let first = Cache::open(folder.path(), &engine).unwrap();
        first.keep_passed(&Digest::ZERO);
        assert!(first.passed(&Digest::ZERO));
        let key = folder.path().join(KEY);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let second = Cache::open(folder.path(), &engine).unwrap();
        assert_ne!(first.key, second.key);
        assert!(!second.passed(&Digest::ZERO));
    }
}
