//! Makes folders of what was recorded of them: copies that a call may write in and that go with it.

use std::path::{Component, Path, PathBuf};

use checkrein_contract::digest::Digest;
use checkrein_contract::grant::Folder;
use checkrein_contract::port::{Blobs, StorageError};
use checkrein_contract::record::{FolderFile, FolderSeen, Record};

use super::{FOLDER_BYTES, FOLDER_FILES, Folders};
use crate::files::mount_copy;
use crate::replay::FOLDER;
use crate::scratch::Written;

/// Copies of the granted folders, as the record has them. One that it does not have is empty, and
/// named. The folders themselves are never looked at.
///
/// # Errors
///
/// If a copy cannot be made, or the record is not what one can be.
pub(super) fn copy(
    grants: &[Folder],
    record: &Record,
    scratch: &Path,
    blobs: &dyn Blobs,
) -> Result<Folders, StorageError> {
    let copies = Written::create(scratch)?;
    let mut folders = Folders::default();
    for grant in grants {
        // By its own path, so that one that lies in another does so again.
        let copy = place(copies.path(), &grant.path)?;
        make(&copy)?;
        let seen = record.folders.iter().find(|seen| seen.path == grant.path);
        if let Some(list) = seen.and_then(|seen| seen.files) {
            fill(&copy, &grant.path, &list, blobs)?;
        }
        folders.unlike.extend(unlike(&grant.path, seen));
        folders.seen.extend(seen.cloned());
    }
    for grant in grants {
        folders.mounts.push(mount_copy(grant, &place(copies.path(), &grant.path)?)?);
    }
    folders._copies = Some(copies);
    Ok(folders)
}

/// In what a copy is not what the folder was.
fn unlike(path: &str, seen: Option<&FolderSeen>) -> Option<String> {
    let why = seen.and_then(|seen| seen.left_out.as_deref());
    match (seen.and_then(|seen| seen.files), why) {
        (Some(_), None) => None,
        (Some(_), Some(why)) => Some(format!("{FOLDER}`{path}` was not recorded whole: {why}")),
        (None, why) => {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            Some(format!("{FOLDER}`{path}` was not recorded{why}: this call saw it empty"))
        }
    }
}

fn fill(copy: &Path, path: &str, list: &Digest, blobs: &dyn Blobs) -> Result<(), StorageError> {
    let damaged = |detail: String| StorageError::Damaged { place: format!("the record of `{path}`"), detail };
    let files: Vec<FolderFile> =
        serde_json::from_slice(&blobs.get(list)?).map_err(|error| damaged(error.to_string()))?;
    if files.len() > FOLDER_FILES {
        return Err(damaged(format!("it lists {} files, and {FOLDER_FILES} are the most", files.len())));
    }
    let mut left = FOLDER_BYTES;
    for file in files {
        if !is_below(&file.path) {
            return Err(damaged(format!("{:?} is no path below it", file.path)));
        }
        let to = copy.join(&file.path);
        let Some(digest) = file.digest else {
            make(&to)?;
            continue;
        };
        let bytes = blobs.get(&digest)?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| damaged(format!("its files have more than {FOLDER_BYTES} bytes")))?;
        make(to.parent().unwrap_or(copy))?;
        std::fs::write(&to, bytes).map_err(|error| StorageError::of_io(&to, &error))?;
    }
    Ok(())
}

fn make(folder: &Path) -> Result<(), StorageError> {
    std::fs::create_dir_all(folder).map_err(|error| StorageError::of_io(folder, &error))
}

/// Where the copy of a granted folder is.
fn place(copies: &Path, granted: &str) -> Result<PathBuf, StorageError> {
    let mut place = copies.to_owned();
    for component in Path::new(granted).components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => place.push(name),
            _ => {
                let detail = "it is not in its shortest form".to_owned();
                return Err(StorageError::Other { place: granted.to_owned(), detail });
            }
        }
    }
    Ok(place)
}

/// Whether a path, as text, leads to something below where it starts: the list may be a stranger's.
fn is_below(path: &str) -> bool {
    let odd = |name: &str| matches!(name, "" | "." | "..") || name.contains('\0');
    !path.split('/').any(odd)
}
