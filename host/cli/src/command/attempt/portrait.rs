//! What can be said of a file before anything of it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_contract::digest::Digest;
use checkrein_contract::limits::LimitKey;
use checkrein_contract::manifest::Manifest;
use checkrein_contract::section;
use checkrein_sandbox::{Producer, producers};

/// A file, and what stands in it.
pub(super) struct Portrait {
    pub(super) file: PathBuf,
    /// Digest and size, if it could be read.
    pub(super) identity: Option<(Digest, u64)>,
    /// The manifest, if it has one that parses.
    pub(super) manifest: Option<Manifest>,
    /// What it was made with, or why that is not known.
    pub(super) producers: Result<Vec<Producer>, String>,
}

impl Portrait {
    pub(super) fn of(file: &Path) -> Self {
        let empty =
            Portrait { file: file.to_owned(), identity: None, manifest: None, producers: Ok(Vec::new()) };
        // What is larger than any component does not load, and is not read.
        let ordinary = std::fs::metadata(file).is_ok_and(|metadata| {
            metadata.is_file() && metadata.len() <= LimitKey::Component.default_value()
        });
        let bytes = if ordinary { std::fs::read(file).ok() } else { None };
        let Some(bytes) = bytes else { return empty };
        let text = section::find(&bytes, section::MANIFEST).ok().flatten().map(String::from_utf8_lossy);
        Portrait {
            identity: Some((Digest::of(&bytes), bytes.len() as u64)),
            manifest: text.and_then(|text| Manifest::parse("", &text).ok()),
            producers: producers(&bytes),
            ..empty
        }
    }

    /// `Rust 1.95; wit-component 0.2`: languages first.
    pub(super) fn made_with(&self) -> String {
        let all = match &self.producers {
            Ok(all) if all.is_empty() => return "unknown: it does not say".to_owned(),
            Ok(all) => all,
            Err(why) => return format!("unknown: {why}"),
        };
        let (languages, tools): (Vec<&Producer>, Vec<&Producer>) =
            all.iter().partition(|producer| producer.field == "language");
        let each = languages.into_iter().chain(tools).map(|producer| {
            let version = producer.version.split_whitespace().next().unwrap_or_default();
            format!("{} {version}", producer.name).trim().to_owned()
        });
        let mut names: Vec<String> = Vec::new();
        each.for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names.join(", ")
    }
}

/// Names of interfaces, shortened: ours one by one, others by package.
pub(super) fn by_package(names: &[String]) -> String {
    let mut groups: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for name in names {
        let (path, version) = name.split_once('@').unwrap_or((name, ""));
        let (package, interface) = path.split_once('/').unwrap_or((path, ""));
        let (group, member) = match package.split_once(':') {
            Some((namespace, package)) if package != "skill" => (namespace, package),
            _ => (package, interface),
        };
        let members = groups.entry((group.to_owned(), version)).or_default();
        if !members.contains(&member) {
            members.push(member);
        }
    }
    let each: Vec<String> = groups
        .into_iter()
        .map(|((group, version), members)| {
            format!("{} ({})", format!("{group} {version}").trim(), members.join(", "))
        })
        .collect();
    if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_grouped() {
        let names = [
            "wasi:io/streams@0.2.6",
            "wasi:io/poll@0.2.6",
            "checkrein:skill/http@0.1.0",
            "checkrein:skill/log@0.1.0",
            "odd",
        ];
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(by_package(&names), "checkrein:skill 0.1.0 (http, log), odd (), wasi 0.2.6 (io)");
        assert_eq!(by_package(&[]), "nothing");
    }
}
