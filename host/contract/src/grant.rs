//! What a component may reach beyond its own call: what its manifest asks for and the operator
//! grants, both.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::network::Rule;

/// What may be done with a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

impl Access {
    /// The word for it in a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Access::ReadOnly => "ro",
            Access::ReadWrite => "rw",
        }
    }
}

/// A folder of the host, seen by the guest under the same path: `ro /data/ref`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Folder {
    /// What may be done there.
    pub access: Access,
    /// Absolute, in its shortest form.
    pub path: String,
}

impl Folder {
    /// Reads `ro /path` or `rw /path`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, path) = text.split_once(' ').ok_or("neither `ro ` nor `rw ` stands in front of a path")?;
        let access = match word {
            "ro" => Access::ReadOnly,
            "rw" => Access::ReadWrite,
            _ => return Err(format!("`{word}` is neither `ro` nor `rw`")),
        };
        let path = path.trim();
        let path = path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        let Some(inside) = path.strip_prefix('/') else { return Err(format!("`{path}` is not absolute")) };
        if inside.is_empty() {
            return Err("the whole file system is no folder to grant".to_owned());
        }
        let odd = |segment: &str| segment.is_empty() || segment == "." || segment == "..";
        if inside.split('/').any(odd) || path.chars().any(char::is_control) {
            return Err(format!("`{}` is not in its shortest form", path.escape_debug()));
        }
        let first = inside.split('/').next().unwrap_or_default();
        if matches!(first, "in" | "artifacts" | "work") {
            return Err(format!("`/{first}` is where a call's own files are"));
        }
        if matches!(first, "proc" | "sys" | "dev") {
            return Err(format!("`/{first}` holds no files but the machine itself"));
        }
        Ok(Folder { access, path: path.to_owned() })
    }

    /// What both allow: the deeper of the two paths, with the lesser access.
    pub fn and(&self, other: &Folder) -> Option<Folder> {
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let path = if within(&self.path, &other.path) {
            &self.path
        } else if within(&other.path, &self.path) {
            &other.path
        } else {
            return None;
        };
        Some(Folder { access: self.access.min(other.access), path: path.clone() })
    }

    /// Whether it allows all that the other does.
    pub fn covers(&self, other: &Folder) -> bool {
        self.and(other).as_ref() == Some(other)
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access.as_str(), self.path)
    }
}

impl Serialize for Folder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Folder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Folder::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A header that a component asks to have set, without ever seeing its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretHeader {
    /// The host, in canonical form, that alone gets it.
    pub host: String,
    /// The header, in lower case.
    pub header: String,
}

/// A secret that is set on the way out. Its value is the operator's, and in no log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretUse {
    /// Its name in the operator's file.
    pub name: String,
    /// Where it is set.
    #[serde(flatten)]
    pub at: SecretHeader,
}

/// Which time a component sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The run's start, moved only by what the guest slept.
    #[default]
    Virtual,
    /// The machine's.
    Real,
}

/// What a component may reach: requested and granted, both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Granted {
    /// Where its requests may go.
    pub network: Vec<Rule>,
    /// Folders of the host; executors alone see them.
    pub files: Vec<Folder>,
    /// Secrets that are set for it.
    pub secrets: Vec<SecretUse>,
    /// Its clock.
    pub clock: Clock,
}

impl Granted {
    /// Whether it can change something outside.
    pub fn changes(&self) -> bool {
        self.network.iter().any(Rule::changes)
            || self.files.iter().any(|folder| folder.access == Access::ReadWrite)
    }

    /// What is left of it where nothing outside may change: writable folders can be read.
    #[must_use]
    pub fn reading(&self) -> Self {
        let read_only = |folder: &Folder| Folder { access: Access::ReadOnly, ..folder.clone() };
        Granted {
            network: self.network.iter().filter_map(Rule::reading).collect(),
            files: self.files.iter().map(read_only).collect(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders() {
        let both = |one: &str, two: &str| {
            Folder::parse(one).unwrap().and(&Folder::parse(two).unwrap()).map(|folder| folder.to_string())
        };
        assert_eq!(both("rw /data", "ro /data/ref/").as_deref(), Some("ro /data/ref"));
        assert_eq!(both("rw /data/a", "rw /data/ab"), None);
        for bad in
            ["/data", "rw data", "rw /", "rw /a/../b", "rw /in/x", "ro /proc/self", "wo /a", "ro /a//b", ""]
        {
            assert!(Folder::parse(bad).is_err(), "{bad}");
        }
    }
}
