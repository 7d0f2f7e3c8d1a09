//! `/in`, `/artifacts` and `/work`.
//!
//! In a component `std::fs` does the same; these say which file could not be read, as a
//! [`Failure`], and in native tests they read from the folders of a `testing::World`.

use std::io;
use std::path::PathBuf;

use crate::Failure;

/// Reads a file under `/in`, `/artifacts` or `/work`.
///
/// # Errors
///
/// [`Failure::not_found`] if there is none, [`Failure::denied`] if it may not be read,
/// [`Failure::invalid_args`] if it is a folder or the path leads elsewhere.
pub fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let place = place(path)?;
    std::fs::read(place).map_err(|error| failure("read", path, &error))
}

/// Reads a text file in UTF-8, a byte-order mark included.
///
/// # Errors
///
/// As [`read`], and [`Failure::invalid_args`] with the byte offset where it is not UTF-8.
pub fn read_text(path: &str) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::invalid_args(format!("`{path}` is not UTF-8: byte {at}"))
            .with_evidence(serde_json::json!({ "file": path, "byte": at }))
    })
}

/// Writes an artifact; `path` is relative to `/work`. Folders on the way are made.
///
/// # Errors
///
/// [`Failure::unavailable`] if the folder is full, [`Failure::internal`] if it cannot be written
/// otherwise.
pub fn write_work(path: &str, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let full = format!("/work/{path}");
    let place = place(&full)?;
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failure("write", &full, &error))?;
    }
    std::fs::write(place, content).map_err(|error| failure("write", &full, &error))
}

/// Reads an artifact of the submission that is judged; `path` is relative to `/work`.
///
/// # Errors
///
/// As [`read_text`].
pub fn read_work(path: &str) -> Result<String, Failure> {
    read_text(&format!("/work/{path}"))
}

/// Where a guest's path lies. Only the three folders can be meant, and nothing climbs out: the
/// host refuses it too, with words that say less.
fn place(path: &str) -> Result<PathBuf, Failure> {
    let known = ["/in/", "/artifacts/", "/work/"].iter().any(|folder| path.starts_with(folder));
    let plain = path.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..");
    if known && plain {
        Ok(root().join(&path[1..]))
    } else {
        Err(Failure::invalid_args(format!(
            "`{path}` is not a path under `/in`, `/artifacts` or `/work`"
        )))
    }
}

fn failure(what: &str, path: &str, error: &io::Error) -> Failure {
    let message = format!("cannot {what} `{path}`: {error}");
    let failure = match error.kind() {
        io::ErrorKind::NotFound => Failure::not_found(format!("there is no file `{path}`")),
        io::ErrorKind::PermissionDenied => Failure::denied(message),
        io::ErrorKind::IsADirectory => {
            Failure::invalid_args(format!("`{path}` is a folder, not a file"))
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::unavailable(message),
        _ => Failure::internal(message),
    };
    failure.with_evidence(serde_json::json!({ "file": path }))
}

#[cfg(target_family = "wasm")]
fn root() -> PathBuf {
    PathBuf::from("/")
}

#[cfg(not(target_family = "wasm"))]
fn root() -> PathBuf {
    crate::testing::root()
}
