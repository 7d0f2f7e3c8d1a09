//! The file gate: what stands between a guest and the folders of its call.
//!
//! wasmtime-wasi does the work; this host stands in front of it, and in its place where it allows
//! too much. What a guest writes is within the quota of its call; links are neither made nor
//! followed out of a folder; nothing moves from one folder into another; only files and folders
//! are opened, so that nothing is waited for; and of the machine it shows neither times nor inode
//! numbers nor the order of a directory. Whatever is turned down is recorded.

mod descriptor;
mod listing;
mod mount;
mod open;
mod path;
mod quota;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;

use checkrein_contract::grant::Access;
use checkrein_contract::limits::Limits;
use checkrein_contract::record::Wall;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{self, ErrorCode};
use wasmtime_wasi::p2::{FsError, FsResult};

use crate::recorder::Recorder;
use crate::state::State;
use crate::text::{excerpt, one_line};

pub(crate) use mount::{Mount, NotMounted, mount_copy, mount_granted, mounts};
pub use mount::{Protected, check_folder};
pub(crate) use open::{below, by_segments, raise_open_files};
pub(crate) use quota::{Held, Quota};

/// Files and folders that one call may hold open at once, streams included: they are descriptors
/// of this process, which all calls share.
pub(crate) const OPEN_MAX: u64 = 64;
/// Bytes of the names in all open listings of one call.
pub(crate) const LISTED_MAX: u64 = 8 << 20;

/// The folders of one call, and what it has open of them.
pub(crate) struct Files {
    mounts: Vec<Mount>,
    known: HashMap<u32, Known>,
    quota: Quota,
    open: Arc<quota::Account>,
    listed: Arc<quota::Account>,
    recorder: Recorder,
    inner: WasiFilesystemCtx,
}

/// What is behind a descriptor of the guest.
#[derive(Clone, Debug)]
struct Known {
    place: Place,
    /// `None` for the folders that it was given.
    held: Option<Arc<Held>>,
}

/// A file or folder as the guest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Which of the mounts.
    mount: usize,
    /// Absolute, in its shortest form.
    path: String,
}

impl Files {
    /// Nothing is open yet.
    pub(crate) fn new(mounts: Vec<Mount>, limits: &Limits, recorder: Recorder) -> Self {
        Files {
            mounts,
            known: HashMap::new(),
            quota: Quota::new(limits, recorder.clone()),
            open: Arc::new(quota::Account::new(OPEN_MAX)),
            listed: Arc::new(quota::Account::new(LISTED_MAX)),
            recorder,
            inner: WasiFilesystemCtx::default(),
        }
    }

    /// Room for one more open file.
    fn hold(&self, place: &Place) -> FsResult<Arc<Held>> {
        if let Some(held) = Held::take(&self.open, 1) {
            return Ok(Arc::new(held));
        }
        let what = format!("more than {OPEN_MAX} files and folders open at once");
        self.recorder.deny(Wall::Limit, what, None);
        tracing::debug!(path = %place.path, "too many open files");
        Err(ErrorCode::Quota.into())
    }

    fn mount(&self, place: &Place) -> &Mount {
        &self.mounts[place.mount]
    }

    /// Records that something was turned down.
    fn deny(&self, doing: &str, place: &Place, why: &str) {
        let what = format!("{doing} `{}`: {why}", shown(&place.path));
        self.recorder.deny(Wall::File, what, None);
    }

    fn writes(&self, place: &Place) -> bool {
        self.mount(place).access == Access::ReadWrite
    }

    /// Refuses to change what can only be read.
    fn writable(&self, doing: &str, place: &Place) -> FsResult<()> {
        if self.writes(place) {
            return Ok(());
        }
        let mount = self.mount(place);
        let grant = mount.granted.then(|| format!("files = [\"rw {}\"]", mount.name));
        let what = format!("{doing} in `{}`, which can only be read", mount.name);
        self.recorder.deny(Wall::File, what, grant);
        Err(ErrorCode::NotPermitted.into())
    }

    /// Records what wasmtime-wasi turned down.
    fn told<T>(&self, doing: &str, place: &Place, result: FsResult<T>) -> FsResult<T> {
        if matches!(result.as_ref().map_err(FsError::downcast_ref), Err(Some(ErrorCode::NotPermitted))) {
            self.deny(doing, place, "it lies outside of its folder, or may not be touched");
        }
        result
    }
}

/// A path that a guest chose, fit for a message.
fn shown(path: &str) -> String {
    one_line(&excerpt(path))
}

/// What the host functions for files work on.
pub(crate) struct FilesView<'a> {
    pub(crate) files: &'a mut Files,
    pub(crate) table: &'a mut ResourceTable,
}

struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = FilesView<'a>;
}

/// Puts this host in the place of wasmtime-wasi's.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    types::add_to_linker::<State, HasFiles>(linker, State::files)?;
    preopens::add_to_linker::<State, HasFiles>(linker, State::files)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl FilesView<'_> {
    /// The host that does the work.
    fn inner(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.files.inner, table: self.table }
    }

    fn dir(&self, fd: &Resource<Descriptor>) -> FsResult<Dir> {
        match self.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, fd: &Resource<Descriptor>) -> FsResult<File> {
        match self.table.get(fd)? {
            Descriptor::File(file) => Ok(file.clone()),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    fn known(&self, fd: &Resource<Descriptor>) -> FsResult<Known> {
        let known = self.files.known.get(&fd.rep()).cloned();
        known.ok_or_else(|| {
            FsError::trap(wasmtime::Error::msg("a descriptor that the file gate did not open"))
        })
    }

    fn place(&self, fd: &Resource<Descriptor>) -> FsResult<Place> {
        Ok(self.known(fd)?.place)
    }

    /// Where a path below an open folder leads, if it is one that may be looked at.
    fn place_at(&self, doing: &str, fd: &Resource<Descriptor>, path: &str) -> FsResult<Place> {
        let Place { mount, path: base } = self.place(fd)?;
        match path::check(path) {
            Ok(()) => Ok(Place { mount, path: path::join(&base, path) }),
            Err(bad) => {
                let what = format!("{doing} `{}` in `{}`: {bad}", shown(path), shown(&base));
                self.files.recorder.deny(Wall::File, what, None);
                Err(bad.code().into())
            }
        }
    }

    /// Gives a descriptor to the guest.
    fn push(&mut self, descriptor: Descriptor, known: Known) -> FsResult<Resource<Descriptor>> {
        let fd = self.table.push(descriptor)?;
        self.files.known.insert(fd.rep(), known);
        Ok(fd)
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let roots: Vec<(Dir, String)> =
            self.files.mounts.iter().map(|mount| (mount.dir.clone(), mount.name.clone())).collect();
        let mut given = Vec::with_capacity(roots.len());
        for (mount, (dir, name)) in roots.into_iter().enumerate() {
            let fd = self.table.push(Descriptor::Dir(dir))?;
            let place = Place { mount, path: name.clone() };
            self.files.known.insert(fd.rep(), Known { place, held: None });
            given.push((fd, name));
        }
        Ok(given)
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.inner(), error)
    }
}

#[cfg(test)]
mod tests;
