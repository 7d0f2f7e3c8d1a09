//! What a component asks for, what it is granted, and what it therefore gets. A grant that can
//! never match is a fault with the likely correction; a request that is not granted is none.

use checkrein_contract::grant::{Clock, Folder, Granted, SecretHeader, SecretUse};
use checkrein_contract::id::covers;
use checkrein_contract::limits::{LimitKey, Limits};
use checkrein_contract::manifest::{Effects, Manifest};
use checkrein_contract::network::Rule;
use checkrein_contract::problem::Fault;
use checkrein_contract::task::Mode;
use checkrein_sandbox::{Protected, check_folder};

use crate::config::{Config, Grant};
use crate::error::fault;
use crate::operator::Operator;

/// What a component gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Network, folders, secrets and clock.
    pub reach: Granted,
    /// What a call changes outside.
    pub effects: Effects,
    /// The limits of its calls.
    pub limits: Limits,
    /// The subjects it may write.
    pub facts: Vec<String>,
}

/// What a component with this manifest gets in tasks of this mode.
pub fn effective(
    config: &Config,
    operator: &Operator,
    grant: &Grant,
    manifest: &Manifest,
    mode: Mode,
) -> Effective {
    let mut reach = manifest.capabilities.and(&grant.reach);
    if mode == Mode::ReadOnly {
        reach = reach.reading();
    }
    Effective {
        effects: effects(manifest.effects, grant.effects, &reach),
        reach,
        limits: limits(config, operator, grant, manifest),
        facts: grant.facts.clone().unwrap_or_else(|| manifest.facts.clone()),
    }
}

/// The stronger of what the manifest says and what the grants allow; `idempotent` is the
/// operator's word that both are safe to repeat.
pub(crate) fn effects(own: Effects, granted: Option<Effects>, reach: &Granted) -> Effects {
    let allowed = if reach.changes() { Effects::Irreversible } else { Effects::None };
    let stronger = own.max(allowed);
    match granted {
        Some(Effects::Idempotent) => stronger.min(Effects::Idempotent),
        Some(other) => stronger.max(other),
        None => stronger,
    }
}

/// Default limits, those of the configuration, and those of the grant; a component that asks for
/// less than it would get is held to what it asks for. Nothing is above the operator's ceiling.
fn limits(config: &Config, operator: &Operator, grant: &Grant, manifest: &Manifest) -> Limits {
    let mut limits = Limits::default().overlay(&config.limits);
    for (key, asked) in &manifest.capabilities.limits.0 {
        if *asked < limits.get(*key) {
            limits = limits.with(*key, *asked);
        }
    }
    limits = limits.overlay(&grant.limits);
    for key in LimitKey::ALL {
        limits = limits.clone().with(*key, limits.get(*key).min(operator.ceiling.get(*key)));
    }
    limits
}

/// What of a grant can never match this manifest, and the folders of it that no call is given.
pub fn faults(file: &str, grant: &Grant, manifest: &Manifest, protected: &[Protected]) -> Vec<Fault> {
    let check = Check { file, manifest };
    let mut faults: Vec<Fault> = Vec::new();
    faults.extend(grant.reach.network.iter().filter_map(|rule| check.rule(rule)));
    faults.extend(grant.reach.files.iter().filter_map(|folder| check.folder(folder)));
    let reach = manifest.capabilities.and(&grant.reach);
    faults.extend(folder_faults(file, grant, manifest, protected));
    faults.extend(grant.reach.secrets.iter().filter_map(|secret| check.secret(secret, &reach)));
    faults.extend(check.clock(grant));
    faults.extend(check.effects(grant, &reach));
    faults.extend(check.facts(grant));
    faults
}

/// The folders of a grant that no call is given, since this machine has none there or they reach what
/// is the operator's.
pub fn folder_faults(file: &str, grant: &Grant, manifest: &Manifest, protected: &[Protected]) -> Vec<Fault> {
    let check = Check { file, manifest };
    let reach = manifest.capabilities.and(&grant.reach);
    reach.files.iter().filter_map(|folder| check.given(folder, protected)).collect()
}

/// A manifest with a grant that is held against it.
struct Check<'c> {
    file: &'c str,
    manifest: &'c Manifest,
}

impl Check<'_> {
    fn fault(&self, key: &str, expected: &str, found: &str, mend: &str) -> Fault {
        let place = format!("grant.{}.{key}", self.manifest.name);
        Fault { place, ..fault(self.file, "semantics", expected, found, mend) }
    }

    fn rule(&self, rule: &Rule) -> Option<Fault> {
        let asked = &self.manifest.capabilities.network;
        if asked.iter().any(|own| own.and(rule).is_some()) {
            return None;
        }
        let mend = asks("network", asked);
        Some(self.fault("network", "a rule that meets one of its manifest's", &format!("\"{rule}\""), &mend))
    }

    fn folder(&self, folder: &Folder) -> Option<Fault> {
        let asked = &self.manifest.capabilities.files;
        if asked.iter().any(|own| own.and(folder).is_some()) {
            return None;
        }
        let expected = "a folder that meets one of its manifest's";
        Some(self.fault("files", expected, &format!("\"{folder}\""), &asks("files", asked)))
    }

    /// A folder that it gets is held against this machine by the very check that each call makes.
    fn given(&self, folder: &Folder, protected: &[Protected]) -> Option<Fault> {
        let why = check_folder(folder, protected).err()?;
        let expected = "a folder of this machine, apart from what is the operator's";
        Some(self.fault("files", expected, &format!("\"{folder}\", which {why}"), ""))
    }

    fn secret(&self, secret: &SecretUse, reach: &Granted) -> Option<Fault> {
        let asked = &self.manifest.capabilities.secrets;
        if !asked.contains(&secret.at) {
            let each: Vec<String> = asked.iter().map(|at| write_secret(&secret.name, at)).collect();
            let mend = match each.is_empty() {
                true => "its manifest asks for no secrets; remove it".to_owned(),
                false => format!("its manifest asks for: secrets = [{}]", each.join(", ")),
            };
            let found = format!("`{}` of {}", secret.at.header, secret.at.host);
            return Some(self.fault("secrets", "a host and header of its manifest's", &found, &mend));
        }
        if !reach.network.iter().any(|rule| rule.is_about(&secret.at.host)) {
            let expected = format!("a network rule for {}, where it is set", secret.at.host);
            let mend = asks("network", &self.manifest.capabilities.network);
            return Some(self.fault("secrets", &expected, "none that it gets", &mend));
        }
        None
    }

    fn clock(&self, grant: &Grant) -> Option<Fault> {
        let idle = grant.reach.clock == Clock::Real && self.manifest.capabilities.clock == Clock::Virtual;
        let mend = "its manifest asks for no real clock; remove it";
        idle.then(|| self.fault("clock", "a clock that it asks for", "\"real\"", mend))
    }

    fn effects(&self, grant: &Grant, reach: &Granted) -> Option<Fault> {
        let stronger = effects(self.manifest.effects, None, reach);
        let idle =
            grant.effects.is_some_and(|own| effects(self.manifest.effects, Some(own), reach) == stronger);
        idle.then(|| {
            let found = "nothing that it would change";
            let mend = format!("its effects are `{}` without it; remove it", stronger.as_str());
            self.fault("effects", "effects to judge", found, &mend)
        })
    }

    fn facts(&self, grant: &Grant) -> Option<Fault> {
        let own = &self.manifest.facts;
        let wider =
            grant.facts.iter().flatten().find(|pattern| !own.iter().any(|own| covers(own, pattern)))?;
        let expected = format!("subjects within its manifest's ({})", own.join(", "));
        Some(self.fault("facts", &expected, &format!("{wider:?}"), ""))
    }
}

/// What a manifest asks for, as a grant would say it.
fn asks<T: ToString>(key: &str, asked: &[T]) -> String {
    if asked.is_empty() {
        return format!("its manifest asks for no {key}; remove it");
    }
    format!("its manifest asks for: {key} = {}", write_list(asked))
}

/// A list of texts, as a configuration writes it.
pub fn write_list<T: ToString>(items: &[T]) -> String {
    let each: Vec<String> = items.iter().map(|item| write_text(&item.to_string())).collect();
    format!("[{}]", each.join(", "))
}

/// A text, as a configuration writes it.
pub fn write_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The use of a secret, as a configuration writes it.
pub fn write_secret(name: &str, at: &SecretHeader) -> String {
    let [name, host, header] = [name, &at.host, &at.header].map(write_text);
    format!("{{ name = {name}, host = {host}, header = {header} }}")
}

#[cfg(test)]
mod tests {
    use checkrein_contract::problem::Faults;

    use super::*;

    fn manifest(effects: &str, capabilities: &str) -> Manifest {
        let text = format!(
            "schema = \"checkrein/skill@1\"\nkind = \"skill\"\nname = \"s\"\nversion = \"1.0.0\"\n\
             description = \"d\"\neffects = \"{effects}\"\n[capabilities]\n{capabilities}"
        );
        Manifest::parse("skill.toml", &text).unwrap()
    }

    fn grant(text: &str) -> Grant {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("checkrein.toml");
        std::fs::write(&file, format!("[grant.s]\n{text}")).unwrap();
        Config::read(&file).unwrap().grants.remove("s").unwrap()
    }

    fn gets(manifest: &Manifest, grant: &Grant, mode: Mode) -> Effective {
        effective(&Config::default(), &Operator::default(), grant, manifest, mode)
    }

    #[test]
    fn what_a_grant_allows_makes_a_call_irreversible_unless_the_operator_says_otherwise() {
        let asks = manifest("none", "network = [\"GET,POST https://a.example/*\"]");
        let of = |text: &str| gets(&asks, &grant(text), Mode::ReadWrite).effects;
        assert_eq!(of(""), Effects::None);
        assert_eq!(of("network = [\"https://a.example/*\"]"), Effects::None);
        assert_eq!(of("network = [\"POST https://a.example/*\"]"), Effects::Irreversible);
        let safe = "network = [\"POST https://a.example/*\"]\neffects = \"idempotent\"";
        assert_eq!(of(safe), Effects::Idempotent);
        assert_eq!(of("effects = \"irreversible\""), Effects::Irreversible);
        let writes = manifest("none", "files = [\"rw /tmp\"]");
        assert_eq!(
            gets(&writes, &grant("files = [\"rw /tmp\"]"), Mode::ReadWrite).effects,
            Effects::Irreversible
        );
        assert_eq!(gets(&writes, &grant("files = [\"ro /tmp\"]"), Mode::ReadWrite).effects, Effects::None);
    }

    #[test]
    fn a_read_only_task_drops_what_could_change_something() {
        let asks = manifest("none", "network = [\"GET,POST https://a.example/*\"]\nfiles = [\"rw /tmp\"]");
        let given = grant("network = [\"GET,POST https://a.example/*\"]\nfiles = [\"rw /tmp\"]");
        let got = gets(&asks, &given, Mode::ReadOnly);
        assert_eq!(got.effects, Effects::None);
        assert_eq!(got.reach.network, [Rule::parse("GET https://a.example/*").unwrap()]);
        assert_eq!(got.reach.files, [Folder::parse("ro /tmp").unwrap()]);
        // What the manifest itself says is not dropped: such a skill is refused in the task.
        let own = manifest("irreversible", "");
        assert_eq!(gets(&own, &Grant::default(), Mode::ReadOnly).effects, Effects::Irreversible);
    }

    #[test]
    fn what_can_never_match_is_told_with_what_the_manifest_asks_for() {
        let asks = manifest(
            "none",
            "network = [\"GET https://a.example/v1/*\"]\nfiles = [\"ro /tmp\"]\nclock = \"virtual\"\n\
             secrets = [{ host = \"a.example\", header = \"x-key\" }]",
        );
        let given = grant(
            "network = [\"GET https://b.example/*\", \"POST https://a.example/v1/*\"]\n\
             files = [\"ro /var/lib\", \"ro /tmp/there-is-no-such-folder\"]\nclock = \"real\"\n\
             effects = \"idempotent\"\nsecrets = [{ name = \"k\", host = \"a.example\", header = \"authorization\" }, \
             { name = \"k\", host = \"a.example\", header = \"x-key\" }]",
        );
        let told = Faults(faults("checkrein.toml", &given, &asks, &[])).to_string();
        for what in [
            "found \"GET https://b.example/*\"; its manifest asks for: network = [\"GET https://a.example/v1/*\"]",
            "found \"POST https://a.example/v1/*\"",
            "found \"ro /var/lib\"; its manifest asks for: files = [\"ro /tmp\"]",
            "found \"ro /tmp/there-is-no-such-folder\", which is not there: make it",
            "its manifest asks for: secrets = [{ name = \"k\", host = \"a.example\", header = \"x-key\" }]",
            "expected a network rule for a.example, where it is set",
            "its manifest asks for no real clock",
            "its effects are `none` without it",
        ] {
            assert!(told.contains(what), "`{what}` is not in\n{told}");
        }
        assert_eq!(told.lines().count(), 8, "{told}");
        assert!(faults("", &Grant::default(), &asks, &[]).is_empty());
    }

    /// What is told of a grant of this folder, with everything in `project` that is protected.
    fn told_of(access: &str, folder: &std::path::Path, protected: &[Protected]) -> String {
        let files = format!("files = [\"{access} {}\"]", folder.display());
        Faults(faults("checkrein.toml", &grant(&files), &manifest("none", &files), protected)).to_string()
    }

    #[test]
    fn a_grant_of_a_link_is_told_before_a_call_runs() {
        let project = tempfile::tempdir().unwrap();
        let folder = project.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let link = project.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert_eq!(told_of("rw", &folder, &[]), "");
        let told = told_of("rw", &link, &[]);
        assert!(told.contains("which is no folder, or a link: name the folder itself"), "{told}");
    }

    #[test]
    fn a_grant_that_holds_what_is_the_operators_is_told() {
        let place = tempfile::tempdir().unwrap();
        let (project, own) = (place.path().join("project"), place.path().join("own"));
        let state = place.path().join("state");
        for folder in [&project.join("data"), &own, &state.join("blobs")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(project.join("checkrein.toml"), "").unwrap();
        std::fs::write(own.join("key"), "hush-hush").unwrap();
        std::os::unix::fs::symlink(own.join("key"), project.join("data/key")).unwrap();
        let protected = [
            Protected::Unwritten(project.join("checkrein.toml")),
            Protected::Unread(own.join("key")),
            Protected::Folder(state.clone()),
        ];
        let told = |access: &str, folder: &std::path::Path| told_of(access, folder, &protected);
        assert!(told("rw", &project).contains("checkrein.toml, which no component may write"));
        assert_eq!(told("ro", &project), "");
        assert_eq!(told("rw", &project.join("data")), "");
        for access in ["ro", "rw"] {
            assert!(told(access, &own).contains("key, which no component may read"));
            for folder in [&state, &state.join("blobs"), place.path()] {
                assert!(!told(access, folder).is_empty(), "{access} {}", folder.display());
            }
        }
        // Whoever can put another link in the place of this one says where it leads.
        let through = [Protected::Unwritten(project.join("data/key"))];
        for folder in [&project.join("data"), &own] {
            assert!(told_of("rw", folder, &through).contains("which no component may write"));
        }
        // What is not there yet could be made.
        let absent = [Protected::Unwritten(own.join("checkrein/operator.toml"))];
        assert!(told_of("rw", &own, &absent).contains("which no component may write"));
        assert_eq!(told_of("rw", &project, &absent), "");
    }

    #[test]
    fn nothing_is_above_the_ceiling() {
        let operator =
            Operator { ceiling: Limits::default().with(LimitKey::Memory, 1 << 20), ..Operator::default() };
        let asks = manifest("none", "limits = { fuel = 10, memory = \"1 GiB\" }");
        let got = effective(&Config::default(), &operator, &Grant::default(), &asks, Mode::ReadWrite).limits;
        assert_eq!((got.get(LimitKey::Fuel), got.get(LimitKey::Memory)), (10, 1 << 20));
    }
}
