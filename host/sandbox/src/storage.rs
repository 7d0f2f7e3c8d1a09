//! Faults of the disk: never a component's, and told apart from every other fault of the host.

use std::io;
use std::path::Path;

use checkrein_contract::port::StorageError;

/// What a failed access to `place` is.
pub(crate) fn of_io(place: &Path, error: &io::Error) -> StorageError {
    let name = place.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StorageError::Full { place: name }
        }
        // A file stands where a folder should be: `NotADirectory`, `AlreadyExists`.
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists => {
            StorageError::NotWritable { place: name, detail: error.to_string() }
        }
        io::ErrorKind::NotFound => StorageError::Missing { place: name },
        _ => StorageError::Other { place: name, detail: error.to_string() },
    }
}
