//! What a guest can do with a file or a folder.

use std::fs::File as HostFile;
use std::io;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;
use wasmtime::component::Resource;
use wasmtime_wasi::OpenMode;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode, Filesize,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::quota::UsedUp;
use super::stream::{At, Input, InputApart, Kept, Output};
use super::{FilesView, Known, Place, Quota, open, path};

impl From<UsedUp> for FsError {
    fn from(UsedUp: UsedUp) -> Self {
        ErrorCode::InsufficientSpace.into()
    }
}

/// Does this here, or where a granted folder may keep it waiting on a thread for that.
pub(super) async fn on_disk<T: Send + 'static>(
    granted: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> FsResult<T> {
    if !granted {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|error| FsError::trap(wasmtime::Error::new(error)))
}

impl HostDescriptor for FilesView<'_> {
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let place = self.place_at("open", &fd, &path)?;
        let dir = self.dir(&fd)?;
        let wanted = Wanted::of(open_flags, flags)?;
        if wanted.mode.contains(OpenMode::WRITE) {
            self.files.writable("open for writing", &place)?;
        }
        let held = self.files.hold(&place)?;
        let granted = self.files.mount(&place).granted;
        if granted {
            self.only_files("open", &fd, path_flags, &path, &place).await?;
        }
        let (root, quota) = (Arc::clone(&dir.dir), self.files.quota.clone());
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let opened = on_disk(granted, move || wanted.open(&root, &path, follow, &quota)).await?;
        let descriptor = match opened {
            Ok(Opened::Folder(file)) => Descriptor::Dir(Dir::new(file, dir.perms, wanted.mode, !granted)),
            Ok(Opened::File(_)) if wanted.folder => return Err(ErrorCode::NotDirectory.into()),
            Ok(Opened::File(file)) => Descriptor::File(File::new(file, dir.perms, wanted.mode, !granted)),
            Ok(Opened::Neither) => return Err(self.neither("open", &place)),
            Err(NotOpened::UsedUp(used_up)) => return Err(used_up.into()),
            Err(NotOpened::System(errno)) => return Err(self.not_opened(errno, &place)),
            Err(NotOpened::Unreadable(error)) => return Err(error.into()),
        };
        self.push(descriptor, Known { place, held: Some(held) })
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.files.known.remove(&fd.rep());
        self.table.delete(fd)?;
        Ok(())
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.inner().read(fd, len, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        let place = self.place(&fd)?;
        let file = self.file(&fd)?;
        self.files.writable("write", &place)?;
        let growth = self.growth(&file, &place, offset.saturating_add(bytes.len() as u64)).await?;
        self.files.quota.grow(growth)?;
        let quota = self.files.quota.clone();
        self.inner().write(fd, bytes, offset).await.inspect_err(|_| quota.not_grown(growth))
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let place = self.place(&fd)?;
        let file = self.file(&fd)?;
        self.files.writable("set the size of a file", &place)?;
        let growth = self.growth(&file, &place, size).await?;
        self.files.quota.grow(growth)?;
        let quota = self.files.quota.clone();
        self.inner().set_size(fd, size).await.inspect_err(|_| quota.not_grown(growth))
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let known = self.known(&fd)?;
        let file = match self.table.get(&fd)? {
            Descriptor::File(file) => Arc::clone(&file.file),
            Descriptor::Dir(_) => return Err(ErrorCode::IsDirectory.into()),
        };
        let (granted, kept) = self.kept(known)?;
        let stream: DynInputStream = if granted {
            let stream = self.inner().read_via_stream(fd, offset)?;
            Box::new(InputApart { inner: self.table.delete(stream)?, _kept: kept })
        } else {
            Box::new(Input { file, position: offset, closed: false, _kept: kept })
        };
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.output(fd, At::Position(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        self.output(fd, At::End)
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        let (place, dir) = (self.place(&fd)?, self.dir(&fd)?);
        self.list(&dir, &place).await
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let place = self.place_at("make a folder", &fd, &path)?;
        self.files.writable("make a folder", &place)?;
        self.files.quota.create()?;
        let made = self.inner().create_directory_at(fd, path).await;
        self.files.told("make a folder", &place, made).inspect_err(|_| self.files.quota.not_created())
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let place = self.place_at("remove", &fd, &path)?;
        self.files.writable("remove", &place)?;
        let removed = self.inner().remove_directory_at(fd, path).await;
        self.files.told("remove", &place, removed)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let place = self.place_at("remove", &fd, &path)?;
        self.files.writable("remove", &place)?;
        let removed = self.inner().unlink_file_at(fd, path).await;
        self.files.told("remove", &place, removed)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let old = self.place_at("rename", &fd, &old_path)?;
        let new = self.place_at("rename", &new_fd, &new_path)?;
        if old.mount != new.mount {
            self.files.deny("rename", &old, "nothing moves from one folder of a call into another");
            return Err(ErrorCode::CrossDevice.into());
        }
        self.files.writable("rename", &old)?;
        if self.files.mount(&old).granted {
            // A link that is moved leads elsewhere, for those who follow it.
            self.no_link("rename", &fd, &old_path, &old).await?;
        }
        let renamed = self.inner().rename_at(fd, old_path, new_fd, new_path).await;
        self.files.told("rename", &old, renamed)?;
        for known in self.files.known.values_mut().filter(|known| known.place.mount == old.mount) {
            if let Some(path) = path::moved(&known.place.path, &old.path, &new.path) {
                known.place.path = path;
            }
        }
        Ok(())
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        _: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.place_at("link", &fd, &old_path)?;
        let place = self.place_at("link", &new_fd, &new_path)?;
        self.files.deny("link", &place, "no file gets a second name");
        Err(ErrorCode::NotPermitted.into())
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, _: String, path: String) -> FsResult<()> {
        let place = self.place_at("link", &fd, &path)?;
        self.files.deny("link", &place, "symbolic links are not made");
        Err(ErrorCode::NotPermitted.into())
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let place = self.place_at("read a link", &fd, &path)?;
        let borrow = Resource::new_borrow(fd.rep());
        let target = self.inner().readlink_at(borrow, path.clone()).await;
        let target = self.files.told("read a link", &place, target)?;
        // From the folder that the link lies in, it must stay below the one that the guest has.
        let beside = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        if target.starts_with('/')
            || path::check(format!("{beside}/{target}").trim_start_matches('/')).is_err()
        {
            self.files.deny("read a link", &place, "it leads out of the folder");
            return Err(ErrorCode::NotPermitted.into());
        }
        Ok(target)
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.inner().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.inner().get_type(fd).await
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.inner().is_same_object(one, other).await
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.inner().stat(fd).await.map(of_any_machine)
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let place = self.place_at("look at", &fd, &path)?;
        let found = self.inner().stat_at(fd, path_flags, path).await;
        self.files.told("look at", &place, found).map(of_any_machine)
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        Ok(hash(&self.place(&fd)?))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let place = self.place_at("look at", &fd, &path)?;
        let found = self.inner().stat_at(fd, path_flags, path).await;
        self.files.told("look at", &place, found)?;
        Ok(hash(&place))
    }

    /// Without effect: no guest sees a time, so none can miss it.
    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        let place = self.place(&fd)?;
        self.files.writable("set times", &place)
    }

    /// Without effect as well, on what is there.
    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        let place = self.place_at("set times", &fd, &path)?;
        self.files.writable("set times", &place)?;
        let found = self.inner().stat_at(fd, path_flags, path).await;
        self.files.told("set times", &place, found).map(drop)
    }

    /// Without effect: how a guest means to read makes no file another.
    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        _: Filesize,
        _: Filesize,
        _: Advice,
    ) -> FsResult<()> {
        self.file(&fd).map(drop)
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        if self.outlives_the_call(&fd)? { self.inner().sync_data(fd).await } else { Ok(()) }
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        if self.outlives_the_call(&fd)? { self.inner().sync(fd).await } else { Ok(()) }
    }
}

impl FilesView<'_> {
    /// By how much a file grows when something is written up to `end`.
    async fn growth(&mut self, file: &File, place: &Place, end: u64) -> FsResult<u64> {
        let file = Arc::clone(&file.file);
        let length = on_disk(self.files.mount(place).granted, move || file.metadata()).await??.len();
        Ok(end.saturating_sub(length))
    }

    /// A stream to write, within the quota.
    fn output(&mut self, fd: Resource<Descriptor>, at: At) -> FsResult<Resource<DynOutputStream>> {
        let (known, file) = (self.known(&fd)?, self.file(&fd)?);
        self.files.writable("write", &known.place)?;
        let (granted, kept) = self.kept(known)?;
        let apart = if granted {
            let stream = match at {
                At::Position(offset) => self.inner().write_via_stream(fd, offset)?,
                At::End => self.inner().append_via_stream(fd)?,
            };
            Some(self.table.delete(stream)?)
        } else {
            None
        };
        let quota = self.files.quota.clone();
        let stream: DynOutputStream =
            Box::new(Output { file: Arc::clone(&file.file), apart, at, quota, closed: false, _kept: kept });
        Ok(self.table.push(stream)?)
    }

    /// Whether a stream works on a granted folder, and what it keeps counted: its file, and there
    /// itself as well.
    fn kept(&self, known: Known) -> FsResult<(bool, Kept)> {
        let granted = self.files.mount(&known.place).granted;
        let own = if granted { Some(self.files.hold(&known.place)?) } else { None };
        Ok((granted, known.held.into_iter().chain(own).collect()))
    }

    /// Whether what is written there is to last: a `/work` is removed with its call.
    fn outlives_the_call(&self, fd: &Resource<Descriptor>) -> FsResult<bool> {
        let place = self.place(fd)?;
        let mount = self.files.mount(&place);
        Ok(mount.granted && self.files.writes(&place))
    }

    /// Refuses what is neither file nor folder before it is opened: opening a named pipe wakes
    /// whoever waits at its other end, and opening a device can do anything. What is put there
    /// afterwards is noticed when it is open.
    async fn only_files(
        &mut self,
        doing: &str,
        fd: &Resource<Descriptor>,
        path_flags: PathFlags,
        path: &str,
        place: &Place,
    ) -> FsResult<()> {
        let borrow = Resource::new_borrow(fd.rep());
        match self.inner().stat_at(borrow, path_flags, path.to_owned()).await.map(|stat| stat.type_) {
            Ok(DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink) => {
                Ok(())
            }
            Ok(_) => Err(self.neither(doing, place)),
            // Whatever is wrong with it, opening it says so.
            Err(_) => Ok(()),
        }
    }

    fn neither(&self, doing: &str, place: &Place) -> FsError {
        self.files.deny(doing, place, "it is neither a file nor a folder");
        ErrorCode::NotPermitted.into()
    }

    async fn no_link(
        &mut self,
        doing: &str,
        fd: &Resource<Descriptor>,
        path: &str,
        place: &Place,
    ) -> FsResult<()> {
        let borrow = Resource::new_borrow(fd.rep());
        let found = self.inner().stat_at(borrow, PathFlags::empty(), path.to_owned()).await?;
        if matches!(found.type_, DescriptorType::SymbolicLink) {
            self.files.deny(doing, place, "links are not moved");
            return Err(ErrorCode::NotPermitted.into());
        }
        Ok(())
    }

    fn not_opened(&self, errno: Errno, place: &Place) -> FsError {
        match errno {
            Errno::XDEV => {
                self.files.deny("open", place, "a link leads out of the folder");
                ErrorCode::NotPermitted.into()
            }
            // What the system says of a pipe that nobody reads, of a socket and of a device.
            Errno::NXIO | Errno::NODEV => self.neither("open", place),
            other => io::Error::from(other).into(),
        }
    }
}

/// How a guest wants to open something.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    flags: OFlags,
    mode: OpenMode,
    /// Whether nothing but a folder will do.
    folder: bool,
}

/// What was opened.
enum Opened {
    File(HostFile),
    Folder(HostFile),
    Neither,
}

/// Why nothing was.
enum NotOpened {
    UsedUp(UsedUp),
    System(Errno),
    Unreadable(io::Error),
}

impl Wanted {
    fn of(open: OpenFlags, flags: DescriptorFlags) -> FsResult<Self> {
        let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synchronous) {
            return Err(ErrorCode::Unsupported.into());
        }
        let folder = open.contains(OpenFlags::DIRECTORY);
        if folder && open.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE) {
            return Err(ErrorCode::Invalid.into());
        }
        let writes = flags.contains(DescriptorFlags::WRITE)
            || open.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        let reads = flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, reads);
        mode.set(OpenMode::WRITE, writes);
        let mut system = match (reads, writes) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        let create = open.contains(OpenFlags::CREATE);
        system.set(OFlags::CREATE, create);
        system.set(OFlags::EXCL, create && open.contains(OpenFlags::EXCLUSIVE));
        system.set(OFlags::TRUNC, open.contains(OpenFlags::TRUNCATE));
        Ok(Wanted { flags: system, mode, folder })
    }

    fn open(self, root: &HostFile, path: &str, follow: bool, quota: &Quota) -> Result<Opened, NotOpened> {
        let file = self.file(root, path, follow, quota)?;
        let metadata = file.metadata().map_err(NotOpened::Unreadable)?;
        Ok(if metadata.is_dir() {
            Opened::Folder(file)
        } else if metadata.is_file() {
            Opened::File(file)
        } else {
            Opened::Neither
        })
    }

    /// Only what is not there yet counts as a file more.
    fn file(self, root: &HostFile, path: &str, follow: bool, quota: &Quota) -> Result<HostFile, NotOpened> {
        let opened = |flags| open::below(root, path, flags, follow).map_err(NotOpened::System);
        if !self.flags.contains(OFlags::EXCL) {
            match opened(self.flags - OFlags::CREATE) {
                Err(NotOpened::System(Errno::NOENT)) if self.flags.contains(OFlags::CREATE) => {}
                found => return found,
            }
        }
        quota.create().map_err(NotOpened::UsedUp)?;
        opened(self.flags).inspect_err(|_| quota.not_created())
    }
}

/// What is known of a file on whatever machine: no times, no count of names, and a size only where
/// it is not up to the file system.
fn of_any_machine(stat: DescriptorStat) -> DescriptorStat {
    let size = if matches!(stat.type_, DescriptorType::RegularFile) { stat.size } else { 0 };
    types::DescriptorStat {
        type_: stat.type_,
        link_count: 1,
        size,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

/// What stands for a file's number: its path, which is the same on each machine and in each run.
fn hash(place: &Place) -> MetadataHashValue {
    let hash = blake3::hash(place.path.as_bytes());
    let half = |at: usize| {
        hash.as_bytes()[at..at + 8].iter().fold(0, |value: u64, byte| value << 8 | u64::from(*byte))
    };
    MetadataHashValue { lower: half(0), upper: half(8) }
}
