//! The manifest of a component: what it is, what it needs, what it may state.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::{Document, Section};
use crate::grant::{Clock, Folder, Granted, SecretHeader, SecretUse};
use crate::id::{is_segment, is_subject_pattern};
use crate::limits::{LimitChanges, LimitKey};
use crate::network::{Rule, Target};
use crate::problem::Faults;

/// The `schema` that a manifest of this version states.
pub const SCHEMA: &str = "checkrein/skill@1";

/// Bytes of a manifest, at most.
pub const BYTES_MAX: usize = 256 << 10;

/// What a component is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All four parts.
    Skill,
    /// Verification only, bound by the operator to other people's skills.
    Verifier,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Skill => "skill",
            Kind::Verifier => "verifier",
        })
    }
}

/// What a call changes outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effects {
    /// Nothing.
    None,
    /// Safe to repeat with the same call id.
    Idempotent,
    /// Cannot be taken back.
    Irreversible,
}

impl Effects {
    /// The word for them.
    pub fn as_str(self) -> &'static str {
        match self {
            Effects::None => "none",
            Effects::Idempotent => "idempotent",
            Effects::Irreversible => "irreversible",
        }
    }

    /// The effects with this word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Effects::None),
            "idempotent" => Some(Effects::Idempotent),
            "irreversible" => Some(Effects::Irreversible),
            _ => None,
        }
    }
}

/// What a component asks for. It gets what is also granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Where its requests go.
    pub network: Vec<Rule>,
    /// Folders of the host.
    pub files: Vec<Folder>,
    /// Headers that the host sets with a secret of the operator.
    pub secrets: Vec<SecretHeader>,
    /// The clock it wants to see.
    pub clock: Clock,
    /// Other limits than the default ones.
    pub limits: LimitChanges,
}

impl Capabilities {
    /// What of a grant it gets: asked for and granted, both.
    #[must_use]
    pub fn and(&self, granted: &Granted) -> Granted {
        let asked_for = |secret: &&SecretUse| self.secrets.contains(&secret.at);
        Granted {
            network: meets(&self.network, &granted.network, Rule::and, Rule::covers),
            files: meets(&self.files, &granted.files, Folder::and, Folder::covers),
            secrets: granted.secrets.iter().filter(asked_for).cloned().collect(),
            clock: if self.clock == Clock::Real { granted.clock } else { Clock::Virtual },
        }
    }
}

/// What each of the one and each of the other both allow, without what another of them covers.
fn meets<T>(asked: &[T], granted: &[T], and: fn(&T, &T) -> Option<T>, covers: fn(&T, &T) -> bool) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for met in granted.iter().flat_map(|given| asked.iter().filter_map(move |wanted| and(wanted, given))) {
        if !all.iter().any(|known| covers(known, &met)) {
            all.retain(|known| !covers(&met, known));
            all.push(met);
        }
    }
    all
}

/// The manifest of a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Skill or verifier.
    pub kind: Kind,
    /// One segment, unique among the components that are loaded.
    pub name: String,
    /// Three numbers.
    pub version: String,
    /// For people and planners.
    pub description: String,
    /// What a call changes outside.
    pub effects: Effects,
    /// Patterns of the subjects that it writes.
    pub facts: Vec<String>,
    /// The kinds of evidence that it can bring.
    pub evidence: Vec<String>,
    /// Subjects that must be in scope before it is called.
    pub requires: Vec<String>,
    /// JSON Pointers of arguments that lock like parameters.
    pub locks: Vec<String>,
    /// Words that must occur in a goal before the trigger is asked; none: it is asked only by name.
    pub terms: Vec<String>,
    /// The JSON Schema of its arguments; `None` for verifiers.
    pub args: Option<Value>,
    /// What it asks for.
    pub capabilities: Capabilities,
}

impl Manifest {
    /// Reads a manifest, `skill.toml`.
    ///
    /// # Errors
    ///
    /// All faults of the text at once; `file` names it in each.
    pub fn parse(file: &str, text: &str) -> Result<Self, Faults> {
        let document = Document::parse_at_most(file, text, BYTES_MAX)?;
        let root = document.root();
        let manifest = read(&root);
        root.close();
        document.finish(manifest)
    }

    /// Whether a term occurs in `goal`, at the bounds of words and whatever the case.
    pub fn applies_to(&self, goal: &str) -> bool {
        self.terms.iter().any(|term| occurs(term, goal))
    }

    /// Whether it may write a fact on `subject`.
    pub fn may_write(&self, subject: &str) -> bool {
        self.facts.iter().any(|pattern| crate::id::covers(pattern, subject))
    }
}

fn occurs(term: &str, goal: &str) -> bool {
    let (term, goal) = (term.to_lowercase(), goal.to_lowercase());
    goal.match_indices(&term).any(|(at, _)| {
        let before = goal[..at].chars().next_back();
        let after = goal[at + term.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

fn read(root: &Section<'_>) -> Option<Manifest> {
    root.need_exactly("schema", SCHEMA);
    let kind = read_kind(root);
    let name = root.need::<String>("name").filter(|name| check_name(root, name));
    let version = root.need::<String>("version").filter(|version| check_version(root, version));
    let description = root.need::<String>("description").filter(|text| check_description(root, text));
    let mut manifest = Manifest {
        kind: kind?,
        name: name.unwrap_or_default(),
        version: version.unwrap_or_default(),
        description: description.unwrap_or_default(),
        effects: Effects::None,
        facts: Vec::new(),
        evidence: Vec::new(),
        requires: Vec::new(),
        locks: Vec::new(),
        terms: Vec::new(),
        args: None,
        capabilities: root.section("capabilities").map(read_capabilities).unwrap_or_default(),
    };
    if manifest.kind == Kind::Skill {
        read_skill(root, &mut manifest);
    }
    Some(manifest)
}

fn read_kind(root: &Section<'_>) -> Option<Kind> {
    root.need::<String>("kind")?;
    root.parsed("kind", "\"skill\" or \"verifier\"", |word| match word {
        "skill" => Some(Kind::Skill),
        "verifier" => Some(Kind::Verifier),
        _ => None,
    })
}

fn read_skill(root: &Section<'_>, manifest: &mut Manifest) {
    let expected = "\"none\", \"idempotent\" or \"irreversible\"";
    root.need::<String>("effects");
    if let Some(effects) = root.parsed("effects", expected, Effects::parse) {
        manifest.effects = effects;
    }
    manifest.facts = root.get("facts").unwrap_or_else(|| vec![format!("{}/*", manifest.name)]);
    manifest.evidence = root.get("evidence").unwrap_or_default();
    manifest.requires = root.get("requires").unwrap_or_default();
    manifest.locks = root.get("locks").unwrap_or_default();
    if let Some(trigger) = root.section("trigger") {
        manifest.terms = trigger.get("terms").unwrap_or_default();
        if manifest.terms.iter().any(|term| term.trim().is_empty()) {
            trigger.fault("terms", "words that occur in a goal", "an empty term", "");
        }
        trigger.close();
    }
    manifest.args = root.section("args").map(|args| args.to_json());
    for pattern in manifest.facts.iter().filter(|pattern| !is_subject_pattern(pattern)) {
        let found = format!("{pattern:?}");
        root.fault("facts", "a subject, or a subject and `/*`", &found, "");
    }
    for pointer in manifest.locks.iter().filter(|pointer| !pointer.starts_with('/')) {
        root.fault("locks", "a JSON Pointer such as \"/alpha\"", &format!("{pointer:?}"), "");
    }
}

fn read_capabilities(section: Section<'_>) -> Capabilities {
    let network = read_rules(&section);
    let files = read_folders(&section);
    let secrets = section.sections("secrets").into_iter().filter_map(read_secret_header).collect();
    let clock = read_clock(&section);
    let limits = section.section("limits").map(read_limits).unwrap_or_default();
    section.close();
    Capabilities { network, files, secrets, clock, limits }
}

/// Reads `network = ["GET https://api.example.org/*"]`, of a manifest or a grant.
pub fn read_rules(section: &Section<'_>) -> Vec<Rule> {
    let texts: Vec<String> = section.get("network").unwrap_or_default();
    let mut rules = Vec::new();
    for text in texts {
        match Rule::parse(&text) {
            Ok(rule) => rules.push(rule),
            Err(fault) => section.fault("network", &fault.expected, &fault.found, &fault.mend),
        }
    }
    rules
}

/// Reads `files = ["ro /data/ref"]`, of a manifest or a grant.
pub fn read_folders(section: &Section<'_>) -> Vec<Folder> {
    let texts: Vec<String> = section.get("files").unwrap_or_default();
    let mut folders = Vec::new();
    for text in texts {
        match Folder::parse(&text) {
            Ok(folder) => folders.push(folder),
            Err(why) => {
                section.fault("files", "\"ro /folder\" or \"rw /folder\"", &format!("{text:?}: {why}"), "")
            }
        }
    }
    folders
}

/// Reads `clock = "real"`, of a manifest or a grant.
pub fn read_clock(section: &Section<'_>) -> Clock {
    let clock = section.parsed("clock", "\"virtual\" or \"real\"", |word| match word {
        "virtual" => Some(Clock::Virtual),
        "real" => Some(Clock::Real),
        _ => None,
    });
    clock.unwrap_or_default()
}

/// Reads host and header of a `secrets` entry, of a manifest or a grant; the section stays open.
pub fn read_secret_at(section: &Section<'_>) -> Option<SecretHeader> {
    let host = section.need::<String>("host");
    let header = section.need::<String>("header");
    let (host, header) = (host?, header?.to_ascii_lowercase());
    let named = Target::parse(&format!("https://{host}/"));
    let whole = named.as_ref().is_ok_and(|target| target.path == "/" && target.port == 443);
    if !whole || host.contains(['/', '?', '#', ':', '*']) {
        section.fault(
            "host",
            "the name of one host",
            &format!("{host:?}"),
            "a secret is set for one host alone",
        );
    }
    if header.is_empty()
        || !header.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        || is_reserved(&header)
    {
        section.fault(
            "header",
            "a header that a request may carry",
            &format!("{header:?}"),
            "such as \"authorization\"",
        );
    }
    Some(SecretHeader { host: named.ok()?.host.to_string(), header })
}

fn read_secret_header(section: Section<'_>) -> Option<SecretHeader> {
    let at = read_secret_at(&section);
    section.close();
    at
}

/// Headers that belong to the connection or the host, and that neither a guest nor a secret sets.
pub fn is_reserved(header: &str) -> bool {
    matches!(
        header.to_ascii_lowercase().as_str(),
        "host"
            | "connection"
            | "content-length"
            | "expect"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "http2-settings"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Reads a table of limits, `memory = "256 MiB"`.
pub fn read_limits(section: Section<'_>) -> LimitChanges {
    let mut changes = LimitChanges::default();
    for name in section.keys() {
        let Some(key) = LimitKey::parse(&name) else { continue };
        if let Some(value) = section.parsed(&name, key.expected(), |text| key.parse_value(text)) {
            changes.0.insert(key, value);
        }
    }
    // Asked for all of them, so that a slip is held against every key there is.
    for key in LimitKey::ALL.iter().filter(|key| !section.has(key.as_str())) {
        section.get::<Value>(key.as_str());
    }
    section.close();
    changes
}

fn check_name(root: &Section<'_>, name: &str) -> bool {
    let good = is_segment(name) && name.len() <= 64 && !matches!(name, "planner" | "gateway");
    if !good {
        let expected =
            "a name of letters, digits, `.`, `_`, `-`, at most 64 bytes, not `planner` or `gateway`";
        root.fault("name", expected, &format!("{name:?}"), "");
    }
    good
}

fn check_version(root: &Section<'_>, version: &str) -> bool {
    let good = version.split('.').count() == 3 && version.split('.').all(|part| part.parse::<u32>().is_ok());
    if !good {
        root.fault("version", "three numbers such as \"1.2.0\"", &format!("{version:?}"), "");
    }
    good
}

fn check_description(root: &Section<'_>, text: &str) -> bool {
    let good = !text.trim().is_empty() && text.len() <= 2000;
    if !good {
        root.fault("description", "1 to 2,000 bytes of text", &format!("{} bytes", text.len()), "");
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        schema = "checkrein/skill@1"
        kind = "skill"
        name = "differential-expression"
        version = "1.2.0"
        description = "d"
        effects = "none"
        facts = ["de/*"]
        [trigger]
        terms = ["differential expression"]
        [capabilities]
        limits = { memory = "256 MiB" }
    "#;

    #[test]
    fn a_good_manifest() {
        let manifest = Manifest::parse("skill.toml", GOOD).unwrap();
        assert!(manifest.may_write("de/summary") && !manifest.may_write("qc/x"));
        assert_eq!(manifest.capabilities.limits.0[&LimitKey::Memory], 256 << 20);
        assert!(manifest.applies_to("Test each gene for Differential Expression."));
        assert!(!manifest.applies_to("differential expressions"));
    }

    #[test]
    fn a_manifest_has_a_bound() {
        let long = format!("{GOOD}\n#{}", "x".repeat(BYTES_MAX));
        let faults = Manifest::parse("skill.toml", &long).unwrap_err().0;
        assert_eq!((faults.len(), faults[0].stage.as_str()), (1, "size"), "{faults:?}");
    }

    #[test]
    fn it_gets_what_it_asks_for_and_is_granted() {
        let rule = |text: &str| Rule::parse(text).unwrap();
        let at = |header: &str| SecretHeader { host: "a.example".to_owned(), header: header.to_owned() };
        let secret = |header: &str| SecretUse { name: "s".to_owned(), at: at(header) };
        let asked = Capabilities {
            network: vec![rule("GET,POST https://a.example/*"), rule("GET https://b.example/*")],
            files: vec![Folder::parse("ro /data").unwrap()],
            secrets: vec![at("x-key")],
            clock: Clock::Real,
            limits: LimitChanges::default(),
        };
        let granted = Granted {
            network: vec![
                rule("GET https://a.example/v1/x"),
                rule("GET https://a.example/v1/*"),
                rule("GET https://c.example/*"),
            ],
            files: vec![Folder::parse("rw /data/ref").unwrap()],
            secrets: vec![secret("x-key"), secret("authorization")],
            clock: Clock::Real,
        };
        let effective = asked.and(&granted);
        assert_eq!(effective.network, [rule("GET https://a.example/v1/*")]);
        assert_eq!(effective.files, [Folder::parse("ro /data/ref").unwrap()]);
        assert_eq!(effective.secrets, [secret("x-key")]);
        assert_eq!(effective.clock, Clock::Real);
        assert_eq!(Capabilities::default().and(&granted), Granted::default());
        assert_eq!(asked.and(&Granted::default()), Granted::default());
    }

    #[test]
    fn every_mistake_is_named() {
        let text = GOOD
            .replace("\"none\"", "\"nothing\"")
            .replace("1.2.0", "1.2")
            .replace("de/*", "de*")
            .replace("memory", "memry");
        let faults = Manifest::parse("skill.toml", &text).unwrap_err().0;
        let keys: Vec<&str> = faults.iter().filter_map(|fault| fault.place.split(' ').nth(1)).collect();
        assert_eq!(keys, ["version", "effects", "facts", "capabilities.limits.memry"]);
        assert!(faults[3].mend.contains("`memory`"));
    }

    #[test]
    fn what_a_component_may_ask_for_is_read_in_canonical_form() {
        let text = GOOD.to_owned()
            + r#"
        network = ["GET,POST https://API.example.org:443/v1/*"]
        files = ["ro /data/ref/"]
        clock = "real"
        secrets = [{ host = "API.example.org", header = "Authorization" }]
        "#;
        let asked = Manifest::parse("skill.toml", &text).unwrap().capabilities;
        assert_eq!(asked.network[0].to_string(), "GET,POST https://api.example.org/v1/*");
        assert_eq!(asked.files[0].to_string(), "ro /data/ref");
        assert_eq!(asked.clock, Clock::Real);
        assert_eq!(
            asked.secrets,
            [SecretHeader { host: "api.example.org".into(), header: "authorization".into() }]
        );
    }

    #[test]
    fn what_no_component_may_ask_for_is_a_fault() {
        for (asked, place) in [
            ("network = [\"*\"]", "capabilities.network"),
            ("network = [\"https://*\"]", "capabilities.network"),
            ("files = [\"rw /\"]", "capabilities.files"),
            ("files = [\"ro /in\"]", "capabilities.files"),
            ("clock = \"mine\"", "capabilities.clock"),
            ("secrets = [{ host = \"*.example.org\", header = \"a\" }]", "capabilities.secrets"),
            ("secrets = [{ host = \"a.org\", header = \"Host\" }]", "capabilities.secrets"),
            ("environment = [\"HOME\"]", "capabilities.environment"),
        ] {
            let faults = Manifest::parse("skill.toml", &format!("{GOOD}\n{asked}\n")).unwrap_err().0;
            assert!(faults.iter().any(|fault| fault.place.contains(place)), "{asked}: {faults:?}");
        }
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

            #[test]
            fn no_text_panics(text in "\\PC{0,200}") {
                let _ = Manifest::parse("skill.toml", &text);
            }

            /// A manifest with one character put elsewhere is read, or says where it is wrong; and
            /// what is read survives being stored.
            #[test]
            fn a_slip_is_found_or_harmless(at in 0..GOOD.len(), by in any::<char>()) {
                let at = GOOD.floor_char_boundary(at);
                let text = format!("{}{by}{}", &GOOD[..at], &GOOD[at..]);
                match Manifest::parse("skill.toml", &text) {
                    Ok(manifest) => {
                        let stored = serde_json::to_string(&manifest).unwrap();
                        prop_assert_eq!(serde_json::from_str::<Manifest>(&stored).unwrap(), manifest);
                    }
                    Err(faults) => prop_assert!(!faults.0.is_empty()),
                }
            }

            /// White space, the order of keys and the kind of quotes change nothing.
            #[test]
            fn spelling_changes_no_verdict(order in Just((0..5usize).collect::<Vec<_>>()).prop_shuffle(), space in "[ \t]{0,3}") {
                let lines: Vec<&str> = GOOD.lines().map(str::trim).collect();
                let head: Vec<String> = order.iter().map(|index| lines[index + 2].replace(" = ", &format!("{space}={space}"))).collect();
                let text = format!("{}\n{}\n{}", lines[1], head.join("\n"), lines[7..].join("\n"));
                let quoted = text.replace('"', "'");
                let plain = Manifest::parse("skill.toml", GOOD).unwrap();
                prop_assert_eq!(Manifest::parse("skill.toml", &text), Ok(plain.clone()));
                prop_assert_eq!(Manifest::parse("skill.toml", &quoted), Ok(plain));
            }
        }
    }
}
