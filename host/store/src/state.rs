//! The state folder, `.checkrein/`.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_contract::id::{RunId, is_segment};
use checkrein_contract::port::StorageError;
use rusqlite::Connection;

use crate::blobs::FileBlobs;
use crate::connection;
use crate::error::StoreError;
use crate::scratch::Scratch;

/// How the state is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a lock of another process is waited for, before it is an error.
    pub wait: Duration,
    /// How long the beat of a process that drives a run and cannot be seen, in another container, may
    /// stand still before the run is taken from it.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { wait: Duration::from_secs(5), patience: Duration::from_secs(5) }
    }
}

/// The state folder: the database, the blobs, the reports, and room for what does not last.
#[derive(Debug)]
pub struct State {
    dir: PathBuf,
    database: PathBuf,
    options: Options,
    connection: Mutex<Connection>,
    blobs: FileBlobs,
}

impl State {
    /// Opens the state folder at `dir`, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made or opened, or its database is of a newer version.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, Options::default())
    }

    /// As [`State::open`], with other options.
    ///
    /// # Errors
    ///
    /// As for [`State::open`].
    pub fn open_with(dir: &Path, options: Options) -> Result<Self, StoreError> {
        make_private(dir)?;
        let database = dir.join(DATABASE);
        // Before anything else: what a newer version wrote is left as it is.
        let connection = Mutex::new(connection::writable(&database, options.wait)?);
        let scratch = Scratch::new(&dir.join("scratch"))?;
        let blobs = FileBlobs::open(&dir.join("blobs"), scratch)?;
        make_own(&dir.join("runs"))?;
        ignore(dir)?;
        Ok(State { dir: dir.to_owned(), database, options, connection, blobs })
    }

    /// Opens a state folder for reading only; nothing in it is made or changed.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoState`] if there is none; else as for [`State::open`].
    pub fn open_existing(dir: &Path) -> Result<Self, StoreError> {
        let options = Options::default();
        let database = dir.join(DATABASE);
        let there = database.try_exists().map_err(|error| StorageError::of_io(&database, &error))?;
        if !there {
            return Err(StoreError::NoState { place: database.display().to_string() });
        }
        let connection = Mutex::new(connection::readable(&database, options.wait)?);
        let blobs = FileBlobs::existing(&dir.join("blobs"), Scratch::existing(&dir.join("scratch")));
        Ok(State { dir: dir.to_owned(), database, options, connection, blobs })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The database in it.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// The folder for the reports of a run, made if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or the id is no name of a folder: a database may come from a stranger.
    pub fn run_dir(&self, run: &RunId) -> Result<PathBuf, StoreError> {
        if !is_segment(run.as_str()) {
            let detail = "the id of the run is no name of a folder".to_owned();
            return Err(StorageError::Other { place: format!("{:?}", run.as_str()), detail }.into());
        }
        let dir = self.dir.join("runs").join(run.as_str());
        make(&dir)?;
        Ok(dir)
    }

    /// The blobs. Clones share what they know.
    pub fn blobs(&self) -> FileBlobs {
        self.blobs.clone()
    }

    pub(crate) fn options(&self) -> Options {
        self.options
    }

    /// The connection that reads. A panic while it was held leaves nothing half done in it.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const DATABASE: &str = "checkrein.db";

/// Makes the folder; only its owner may enter it, because inputs may be confidential.
fn make_private(dir: &Path) -> Result<(), StorageError> {
    if let Some(parent) = dir.parent() {
        make(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(StorageError::of_io(dir, &error)),
        _ if dir.is_dir() => refuse_link(dir),
        _ => Err(StorageError::NotWritable {
            place: dir.display().to_string(),
            detail: "not a folder".to_owned(),
        }),
    }
}

pub(crate) fn make(dir: &Path) -> Result<(), StorageError> {
    if dir.as_os_str().is_empty() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(|error| StorageError::of_io(dir, &error))
}

/// Makes a folder of the state. Whoever made the project may have put a link in its place, and what
/// is written to and removed from it would be somebody else's.
pub(crate) fn make_own(dir: &Path) -> Result<(), StorageError> {
    make(dir)?;
    refuse_link(dir)
}

fn refuse_link(dir: &Path) -> Result<(), StorageError> {
    match fs::symlink_metadata(dir) {
        Ok(found) if found.is_symlink() => Err(StorageError::NotWritable {
            place: dir.display().to_string(),
            detail: "it is a link; remove it, or name a folder with `--state`".to_owned(),
        }),
        Ok(_) => Ok(()),
        Err(error) => Err(StorageError::of_io(dir, &error)),
    }
}

/// Keeps the state out of version control, whatever the project ignores.
fn ignore(dir: &Path) -> Result<(), StorageError> {
    let file = dir.join(".gitignore");
    match fs::File::create_new(&file) {
        Ok(mut new) => new.write_all(b"*\n").map_err(|error| StorageError::of_io(&file, &error)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StorageError::of_io(&file, &error)),
    }
}
