//! Paths that a guest gives, looked at as text, before any of them reaches the system.

use std::fmt;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Bytes of one name: what file systems hold.
const NAME_MAX: usize = 255;
/// Bytes of a whole path.
const PATH_MAX: usize = 4096;

/// Why a path is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadPath {
    Absolute,
    LeadsOut,
    TooLong,
    Zero,
}

impl BadPath {
    pub(super) fn code(self) -> ErrorCode {
        match self {
            BadPath::Absolute | BadPath::LeadsOut => ErrorCode::NotPermitted,
            BadPath::TooLong => ErrorCode::NameTooLong,
            BadPath::Zero => ErrorCode::Invalid,
        }
    }
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadPath::Absolute => "the path is absolute",
            BadPath::LeadsOut => "the path leads out of the folder",
            BadPath::TooLong => "a name has more than 255 bytes, or the path more than 4096",
            BadPath::Zero => "the path has a zero byte",
        })
    }
}

/// Whether a path, as text, stays below the folder that it starts from.
pub(super) fn check(path: &str) -> Result<(), BadPath> {
    if path.starts_with('/') {
        return Err(BadPath::Absolute);
    }
    if path.contains('\0') {
        return Err(BadPath::Zero);
    }
    if path.len() > PATH_MAX || path.split('/').any(|name| name.len() > NAME_MAX) {
        return Err(BadPath::TooLong);
    }
    let mut depth = 0_usize;
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => depth = depth.checked_sub(1).ok_or(BadPath::LeadsOut)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// The shortest form of a checked path below `base`.
pub(super) fn join(base: &str, path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            _ => names.push(name),
        }
    }
    names.iter().fold(base.to_owned(), |path, name| path + "/" + name)
}

/// The path below `old`, seen below `new`, if it was there: what a rename does to it.
pub(super) fn moved(path: &str, old: &str, new: &str) -> Option<String> {
    let rest = path.strip_prefix(old)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{new}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_folder() {
        let long = "x".repeat(255);
        for good in ["", ".", "a", "a/../b", "./a//b/", "a/b/../..", "a\nb", "ü", &long] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        let deep = "x/".repeat(3000);
        let bad = [
            ("/", BadPath::Absolute),
            ("/etc/passwd", BadPath::Absolute),
            ("..", BadPath::LeadsOut),
            ("a/../..", BadPath::LeadsOut),
            ("./../a", BadPath::LeadsOut),
            ("a\0b", BadPath::Zero),
            (&format!("{long}x"), BadPath::TooLong),
            (&deep, BadPath::TooLong),
        ];
        for (path, why) in bad {
            assert_eq!(check(path), Err(why), "{path:?}");
        }
    }

    #[test]
    fn one_place_has_one_name() {
        for path in ["a/b", "./a//b/", "a/c/../b", "a/b/."] {
            assert_eq!(join("/work", path), "/work/a/b", "{path}");
        }
        assert_eq!(join("/work", "."), "/work");
        assert_eq!(moved("/work/a/b", "/work/a", "/work/c").as_deref(), Some("/work/c/b"));
        assert_eq!(moved("/work/ab", "/work/a", "/work/c"), None);
    }
}
