//! The smallest grant that would allow what was refused, ready to paste.

use std::collections::BTreeMap;

use checkrein_contract::document::{Document, Section};
use checkrein_contract::grant::{Clock, Folder, Granted, SecretUse};
use checkrein_contract::interface::LimitHit;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::{
    Capabilities, read_clock, read_folders, read_limits, read_rules, read_secret_at,
};
use checkrein_contract::network::Rule;
use checkrein_contract::record::{Denial, Record};

use crate::grants::{write_list, write_secret, write_text};

/// What the calls of one component would have needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    reach: Granted,
    limits: BTreeMap<LimitKey, u64>,
    /// What no grant would allow.
    never: Vec<String>,
}

impl Needs {
    /// Adds what a call was refused.
    pub fn add(&mut self, record: &Record) {
        for denial in &record.denials {
            self.add_denial(denial);
        }
    }

    fn add_denial(&mut self, denial: &Denial) {
        let read = denial.grant.as_deref().and_then(read);
        let Some((reach, limits)) = read else {
            let what = format!("{}: {}", denial.wall.as_str(), denial.what);
            if !self.never.contains(&what) {
                self.never.push(what);
            }
            return;
        };
        reach.network.into_iter().for_each(|rule| add(&mut self.reach.network, rule, Rule::covers));
        reach.files.into_iter().for_each(|folder| add(&mut self.reach.files, folder, Folder::covers));
        reach.secrets.into_iter().for_each(|secret| add(&mut self.reach.secrets, secret, PartialEq::eq));
        if reach.clock == Clock::Real {
            self.reach.clock = Clock::Real;
        }
        for (key, value) in limits {
            let most = self.limits.entry(key).or_insert(value);
            *most = value.max(*most);
        }
    }

    /// Adds a limit that ended a call. How much the call would have needed is not known: twice as
    /// much is the next thing to try.
    pub fn add_limit(&mut self, hit: &LimitHit) {
        let can_rise = |key: &LimitKey| {
            !key.is_fixed() && !key.is_most() && key.most().is_none_or(|most| hit.allowed < most)
        };
        match LimitKey::parse(&hit.limit).filter(can_rise) {
            Some(key) => {
                let more = hit.allowed.saturating_mul(2).max(hit.used).min(key.most().unwrap_or(u64::MAX));
                let most = self.limits.entry(key).or_insert(more);
                *most = more.max(*most);
            }
            None => {
                let what = format!("limit: more `{}` than the engine holds for every call", hit.limit);
                if !self.never.contains(&what) {
                    self.never.push(what);
                }
            }
        }
    }

    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        *self == Needs::default()
    }

    /// What no grant would allow.
    pub fn never(&self) -> &[String] {
        &self.never
    }

    /// What a grant would only allow if the manifest asked for it, as its `[capabilities]` say it.
    pub fn not_asked(&self, asked: &Capabilities) -> Vec<String> {
        let (_, left) = self.split(asked);
        lines(&left, &BTreeMap::new())
    }

    /// The lines of the grant for a component that asks for this and has that already; none if no
    /// grant would help. Keys that the grant has already are stated whole, to be put in their place.
    pub fn grant(&self, name: &str, asked: &Capabilities, has: &Granted, limits: &Limits) -> Vec<String> {
        let (mut reach, _) = self.split(asked);
        if !reach.network.is_empty() {
            has.network.iter().cloned().for_each(|rule| add(&mut reach.network, rule, Rule::covers));
        }
        if !reach.files.is_empty() {
            has.files.iter().cloned().for_each(|folder| add(&mut reach.files, folder, Folder::covers));
        }
        if !reach.secrets.is_empty() {
            has.secrets.iter().cloned().for_each(|secret| add(&mut reach.secrets, secret, PartialEq::eq));
        }
        let mut raised = self.limits.clone();
        if !raised.is_empty() {
            let above = LimitKey::ALL.iter().filter(|key| limits.get(**key) > key.default_value());
            above.for_each(|key| {
                raised.entry(*key).or_insert(limits.get(*key));
            });
        }
        let mut all = lines(&reach, &raised);
        if !all.is_empty() {
            all.insert(0, header(name));
        }
        all
    }

    /// What is asked for, and the rest.
    fn split(&self, asked: &Capabilities) -> (Granted, Granted) {
        let (network, other_network) =
            parted(&self.reach.network, |rule| asked.network.iter().any(|own| own.covers(rule)));
        let (files, other_files) =
            parted(&self.reach.files, |folder| asked.files.iter().any(|own| own.covers(folder)));
        let (secrets, other_secrets) =
            parted(&self.reach.secrets, |secret| asked.secrets.contains(&secret.at));
        let real = self.reach.clock == Clock::Real;
        let (clock, other_clock) = match (real, asked.clock) {
            (true, Clock::Real) => (Clock::Real, Clock::Virtual),
            (true, Clock::Virtual) => (Clock::Virtual, Clock::Real),
            (false, _) => (Clock::Virtual, Clock::Virtual),
        };
        (
            Granted { network, files, secrets, clock },
            Granted {
                network: other_network,
                files: other_files,
                secrets: other_secrets,
                clock: other_clock,
            },
        )
    }
}

fn parted<T: Clone>(all: &[T], asked: impl Fn(&T) -> bool) -> (Vec<T>, Vec<T>) {
    all.iter().cloned().partition(|item| asked(item))
}

/// Adds an item, unless another covers it; those that it covers go.
fn add<T>(all: &mut Vec<T>, item: T, covers: fn(&T, &T) -> bool) {
    if !all.iter().any(|known| covers(known, &item)) {
        all.retain(|known| !covers(&item, known));
        all.push(item);
    }
}

/// Where a grant stands; a name with a dot in it is quoted, or it would be two.
pub fn header(name: &str) -> String {
    if name.contains('.') { format!("[grant.{}]", write_text(name)) } else { format!("[grant.{name}]") }
}

fn lines(reach: &Granted, limits: &BTreeMap<LimitKey, u64>) -> Vec<String> {
    let mut lines = Vec::new();
    if !reach.network.is_empty() {
        lines.push(format!("network = {}", write_list(&reach.network)));
    }
    if !reach.files.is_empty() {
        lines.push(format!("files = {}", write_list(&reach.files)));
    }
    if !reach.secrets.is_empty() {
        let each: Vec<String> =
            reach.secrets.iter().map(|secret| write_secret(&secret.name, &secret.at)).collect();
        lines.push(format!("secrets = [{}]", each.join(", ")));
    }
    if reach.clock == Clock::Real {
        lines.push("clock = \"real\"".to_owned());
    }
    if !limits.is_empty() {
        let each: Vec<String> =
            limits.iter().map(|(key, value)| format!("{key} = {}", key.write(*value))).collect();
        lines.push(format!("limits = {{ {} }}", each.join(", ")));
    }
    lines
}

/// What the line of a denial would grant; `None` if that is nothing, or not to be read.
fn read(text: &str) -> Option<(Granted, BTreeMap<LimitKey, u64>)> {
    let document = Document::parse("a denial", text);
    let root = document.root();
    let reach = Granted {
        network: read_rules(&root),
        files: read_folders(&root),
        secrets: root.sections("secrets").into_iter().filter_map(read_secret).collect(),
        clock: read_clock(&root),
    };
    let limits = root.section("limits").map(read_limits).unwrap_or_default();
    root.close();
    let read = document.finish(Some((reach, limits.0))).ok()?;
    (read != (Granted::default(), BTreeMap::new())).then_some(read)
}

fn read_secret(section: Section<'_>) -> Option<SecretUse> {
    let name = section.need::<String>("name");
    let at = read_secret_at(&section);
    section.close();
    Some(SecretUse { name: name?, at: at? })
}

#[cfg(test)]
mod tests {
    use checkrein_contract::record::Wall;

    use super::*;

    fn asked(network: &str) -> Capabilities {
        Capabilities { network: vec![Rule::parse(network).unwrap()], ..Capabilities::default() }
    }

    fn needs(denials: &[(Wall, &str, Option<&str>)]) -> Needs {
        let mut record = Record::default();
        for (wall, what, grant) in denials {
            record.deny(*wall, (*what).to_owned(), grant.map(str::to_owned));
        }
        let mut needs = Needs::default();
        needs.add(&record);
        needs
    }

    #[test]
    fn denials_are_merged_into_one_grant() {
        let mut needs = needs(&[
            (Wall::Network, "a", Some("network = [\"GET https://a.example/x\"]")),
            (Wall::Network, "b", Some("network = [\"GET https://a.example/y\"]")),
            (Wall::Network, "c", Some("network = [\"GET https://a.example/x\"]")),
            (Wall::Network, "d", Some("network = [\"GET https://b.example/x\"]")),
            (Wall::Quota, "e", Some("limits = { work-bytes = \"512 MiB\" }")),
            (Wall::Socket, "connect to 10.0.0.1:22", None),
        ]);
        needs.add_limit(&LimitHit { limit: "cpu".to_owned(), allowed: 10_000, used: 10_001 });
        needs.add_limit(&LimitHit { limit: "stack".to_owned(), allowed: 1, used: 1 });
        let asked = asked("GET https://a.example/*");
        let has = Granted {
            network: vec![Rule::parse("GET https://a.example/x/*").unwrap()],
            ..Granted::default()
        };
        let grant = needs.grant("s", &asked, &has, &Limits::default()).join("\n");
        assert_eq!(
            grant,
            "[grant.s]\nnetwork = [\"GET https://a.example/x\", \"GET https://a.example/y\", \"GET https://a.example/x/*\"]\n\
             limits = { cpu = \"20 s\", work-bytes = \"512 MiB\" }"
        );
        assert_eq!(needs.not_asked(&asked), ["network = [\"GET https://b.example/x\"]"]);
        assert_eq!(
            needs.never(),
            ["socket: connect to 10.0.0.1:22", "limit: more `stack` than the engine holds for every call"]
        );
    }

    #[test]
    fn a_line_that_grants_nothing_is_not_offered() {
        for line in ["", "network = [\"*\"]", "network = []", "x = 1", "no toml", "clock = \"virtual\""] {
            let needs = needs(&[(Wall::Network, "it", Some(line))]);
            assert_eq!(needs.never(), ["network: it"], "{line}");
            assert!(
                needs
                    .grant("s", &Capabilities::default(), &Granted::default(), &Limits::default())
                    .is_empty()
            );
        }
    }

    #[test]
    fn what_is_offered_is_read_back() {
        let needs = needs(&[
            (
                Wall::Secret,
                "a",
                Some("secrets = [{ name = \"k\", host = \"a.example\", header = \"x-key\" }]"),
            ),
            (Wall::File, "b", Some("files = [\"ro /data/a b\"]")),
        ]);
        let lines = lines(&needs.reach, &needs.limits);
        assert_eq!(read(&lines.join("\n")).unwrap().0, needs.reach);
        assert_eq!(header("a.b"), "[grant.\"a.b\"]");
    }
}
