//! What is in a folder, sorted by name, so that no guest sees the order of the file system.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use checkrein_contract::record::Wall;
use rustix::fs::{AtFlags, FileType, statat};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorType, DirectoryEntry, DirectoryEntryStream, ErrorCode, HostDirectoryEntryStream,
};

use super::{FilesView, Held, LISTED_MAX, Place, shown};

/// Bytes of memory that an entry takes besides its name.
const ENTRY: u64 = 64;

/// An open listing. It lies in the table in the place of wasmtime-wasi's, which has another type
/// and cannot be made from outside; the guest knows it by its number alone.
pub(super) struct Listing {
    entries: std::vec::IntoIter<DirectoryEntry>,
    _held: Held,
}

/// What was read of a folder.
struct Read {
    entries: BTreeMap<String, DescriptorType>,
    /// Names that are not UTF-8.
    unnamed: u64,
}

impl FilesView<'_> {
    pub(super) async fn list(
        &mut self,
        dir: &wasmtime_wasi::filesystem::Dir,
        place: &Place,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let folder = std::sync::Arc::clone(&dir.dir);
        let read = super::descriptor::on_disk(self.files.mount(place).granted, move || read(&folder)).await?;
        let Some(Read { entries, unnamed }) = read? else { return Err(self.too_long(place)) };
        if unnamed > 0 {
            self.files.deny("list", place, &format!("{unnamed} names that are not UTF-8 are left out"));
        }
        let size = entries.keys().map(|name| name.len() as u64 + ENTRY).sum();
        let Some(held) = Held::take(&self.files.listed, size) else { return Err(self.too_long(place)) };
        let entries: Vec<_> =
            entries.into_iter().map(|(name, type_)| DirectoryEntry { type_, name }).collect();
        let listing = self.table.push(Listing { entries: entries.into_iter(), _held: held })?;
        Ok(Resource::new_own(listing.rep()))
    }

    fn too_long(&self, place: &Place) -> wasmtime_wasi::p2::FsError {
        let what = format!(
            "list `{}`: the open listings of the call would hold more than {} MiB of names",
            shown(&place.path),
            LISTED_MAX >> 20
        );
        self.files.recorder.deny(Wall::Limit, what, None);
        ErrorCode::InsufficientMemory.into()
    }
}

impl HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing = Resource::<Listing>::new_borrow(stream.rep());
        Ok(self.table.get_mut(&listing)?.entries.next())
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

/// Reads a folder; `None` if it is too large for one listing.
fn read(folder: &File) -> io::Result<Option<Read>> {
    let mut read = Read { entries: BTreeMap::new(), unnamed: 0 };
    let mut size = 0;
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(text) = name.to_str() else {
            read.unnamed += 1;
            continue;
        };
        size += text.len() as u64 + ENTRY;
        if size > LISTED_MAX {
            return Ok(None);
        }
        let type_ = match entry.file_type() {
            // Not every file system says it with the name.
            FileType::Unknown => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        read.entries.insert(text.to_owned(), type_of(type_));
    }
    Ok(Some(read))
}

fn type_of(file: FileType) -> DescriptorType {
    match file {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}
