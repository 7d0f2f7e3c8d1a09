//! `policy lint`: each grant is tried at what it must allow, and at what looks alike and must not
//! pass.

use checkrein_contract::grant::{Access, Folder, Granted, SecretUse};
use checkrein_contract::manifest::Manifest;
use checkrein_contract::network::{Rule, Target};
use checkrein_contract::problem::Fault;
use checkrein_contract::task::Mode;
use serde_json::{Value, json};

use crate::args::Global;
use crate::components::{grant_faults, manifests};
use crate::error::{CliError, exit};
use crate::grants;
use crate::operator::Operator;
use crate::output::{self, one_line};
use crate::standing;

pub(super) fn lint(global: &Global) -> Result<u8, CliError> {
    let (config, operator) = standing::files(global)?;
    let found = manifests(&config)?;
    let all: Vec<&Manifest> = found.iter().map(|(_, manifest)| manifest).collect();
    let protected = standing::protected(global, &config, &operator)?;
    let mut faults = grant_faults(&config, &all, &protected);
    faults.extend(standing::above_ceiling(&config, &operator));
    let mut rules = Vec::new();
    for manifest in all {
        let grant = config.grants.get(&manifest.name).cloned().unwrap_or_default();
        let gets = grants::effective(&config, &operator, &grant, manifest, Mode::ReadWrite);
        rules.extend(tried(&manifest.name, &gets.reach));
        for (index, secret) in grant.reach.secrets.iter().enumerate() {
            let place = format!("grant.{}.secrets[{index}]", manifest.name);
            faults.extend(operator.secret(&secret.name, &config.place(), &place).err().map(|fault| *fault));
        }
    }
    let holds = faults.is_empty() && rules.iter().all(Tried::holds);
    if global.json {
        let rules: Vec<Value> = rules.iter().map(Tried::json).collect();
        output::json(
            &json!({ "schema": "checkrein/lint@1", "holds": holds, "rules": rules, "faults": faults }),
        );
    } else {
        print(&rules, &faults, &operator);
    }
    Ok(if holds { exit::DONE } else { exit::DIFFERENCE })
}

/// One rule in force, and what came of trying it.
struct Tried {
    component: String,
    rule: String,
    tries: Vec<Try>,
}

struct Try {
    what: String,
    must_pass: bool,
    passes: bool,
    /// What differs from what the rule allows, for a near miss.
    differs: &'static str,
    /// Another rule of the same component that allows it.
    other: Option<String>,
}

impl Tried {
    fn holds(&self) -> bool {
        self.tries.iter().all(|one| one.must_pass == one.passes)
    }

    fn json(&self) -> Value {
        let tries: Vec<Value> = self
            .tries
            .iter()
            .map(|one| {
                json!({
                    "what": one.what, "expected": word(one.must_pass), "found": word(one.passes),
                    "differs": one.differs, "allowed_by": one.other,
                })
            })
            .collect();
        json!({ "component": self.component, "rule": self.rule, "holds": self.holds(), "tries": tries })
    }
}

fn word(passes: bool) -> &'static str {
    if passes { "allows" } else { "refuses" }
}

fn tried(component: &str, reach: &Granted) -> Vec<Tried> {
    let one = |rule: String, tries| Tried { component: component.to_owned(), rule, tries };
    let rules = reach.network.iter().map(|rule| one(rule.to_string(), try_rule(rule, &reach.network)));
    let folders = reach.files.iter().map(|folder| one(folder.to_string(), try_folder(folder, &reach.files)));
    let secrets = reach.secrets.iter().map(|secret| {
        let rule = format!("{} → {} {}", secret.name, secret.at.host, secret.at.header);
        one(rule, try_secret(secret, reach))
    });
    rules.chain(folders).chain(secrets).collect()
}

fn try_rule(rule: &Rule, all: &[Rule]) -> Vec<Try> {
    let passes = |rule: &Rule, method: &str, url: &str| {
        Target::parse(url).is_ok_and(|target| rule.allows(method, &target))
    };
    let (method, url) = rule.example();
    let hit = Try {
        passes: passes(rule, &method, &url),
        what: format!("{method} {url}"),
        must_pass: true,
        differs: "",
        other: None,
    };
    let misses = rule.near_misses().into_iter().map(|(method, url, differs)| {
        let others = all.iter().filter(|other| *other != rule);
        let other = others.into_iter().find(|other| passes(other, &method, &url)).map(ToString::to_string);
        let passes = passes(rule, &method, &url);
        Try { what: format!("{method} {url}"), must_pass: false, passes, differs, other }
    });
    [hit].into_iter().chain(misses).collect()
}

fn try_folder(folder: &Folder, all: &[Folder]) -> Vec<Try> {
    let path = &folder.path;
    let above = path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty());
    let mut tries = vec![(folder.access, format!("{path}/x"), true, "")];
    if folder.access == Access::ReadOnly {
        tries.push((Access::ReadWrite, format!("{path}/x"), false, "writing"));
    } else {
        tries.push((Access::ReadOnly, format!("{path}/x"), true, ""));
    }
    tries.push((Access::ReadOnly, format!("{path}x"), false, "a name that begins alike"));
    tries.push((Access::ReadOnly, format!("{path}.old/x"), false, "a folder that begins alike"));
    tries.push((Access::ReadOnly, "/etc/passwd".to_owned(), false, "another folder"));
    tries.push((Access::ReadOnly, "/usr/bin/env".to_owned(), false, "another folder"));
    tries.extend(above.map(|above| (Access::ReadOnly, above.to_owned(), false, "the folder above")));
    tries
        .retain(|(_, there, must_pass, differs)| *must_pass || *differs == "writing" || !inside(there, path));
    let of = |(access, path, must_pass, differs): (Access, String, bool, &'static str)| {
        let asked = Folder { access, path };
        let others = all.iter().filter(|other| *other != folder);
        let other = others.into_iter().find(|other| other.covers(&asked)).filter(|_| !must_pass);
        Try {
            passes: folder.covers(&asked),
            what: asked.to_string(),
            must_pass,
            differs,
            other: other.map(ToString::to_string),
        }
    };
    tries.into_iter().map(of).collect()
}

fn inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A secret goes to its host alone, and only where a rule lets the request out.
fn try_secret(secret: &SecretUse, reach: &Granted) -> Vec<Try> {
    let host = &secret.at.host;
    let goes = |host: &str| secret.at.host == host && reach.network.iter().any(|rule| rule.is_about(host));
    let one = |there: String, must_pass: bool, differs: &'static str| Try {
        passes: goes(&there),
        what: format!("{} to {there}", secret.at.header),
        must_pass,
        differs,
        other: None,
    };
    vec![
        one(host.clone(), true, ""),
        one(format!("www.{host}"), false, "a host below"),
        one(format!("{host}.evil.example"), false, "a host that begins alike"),
        one(format!("evil-{host}"), false, "a host that ends alike"),
    ]
}

fn print(rules: &[Tried], faults: &[Fault], operator: &Operator) {
    for tried in rules {
        output::line(&one_line(&format!("{}  {}", tried.component, tried.rule), 300));
        for one in &tried.tries {
            let mark = if one.must_pass == one.passes { "ok  " } else { "FAIL" };
            let differs = if one.differs.is_empty() { String::new() } else { format!("  ({})", one.differs) };
            let other = one
                .other
                .as_ref()
                .map_or_else(String::new, |other| format!("; another rule allows it: {other}"));
            let line = format!("  {mark}  {:7}  {}{differs}{other}", word(one.passes), one.what);
            output::line(&one_line(&line, 400));
        }
    }
    for fault in faults {
        output::line(&format!("FAIL  {}", one_line(&fault.to_string(), 2000)));
    }
    if rules.is_empty() && faults.is_empty() {
        output::line("nothing is granted beyond a call's own files: no network, no folder, no secret");
    }
    if !operator.process {
        output::message(
            "verifications run in the host's own process: [gateway] process = false in the operator's file",
        );
    }
}

#[cfg(test)]
mod tests {
    use checkrein_contract::grant::SecretHeader;

    use super::*;

    #[test]
    fn every_rule_holds_at_its_example_and_at_three_near_misses_at_least() {
        let rules = [
            "GET https://a.example/v1/*",
            "POST,GET http://127.0.0.1:8080/*",
            "https://*.a.example/x",
            "PUT https://a.example:65535/a/b",
            "http://[::1]/",
        ];
        let network: Vec<Rule> = rules.iter().map(|text| Rule::parse(text).unwrap()).collect();
        let files = ["ro /data/ref", "rw /data", "ro /etc"];
        let files: Vec<Folder> = files.iter().map(|text| Folder::parse(text).unwrap()).collect();
        let at = SecretHeader { host: "a.example".to_owned(), header: "x-key".to_owned() };
        let reach = Granted {
            network,
            files,
            secrets: vec![SecretUse { name: "k".to_owned(), at }],
            ..Granted::default()
        };
        let all = tried("s", &reach);
        assert_eq!(all.len(), 9);
        for one in &all {
            let misses = one.tries.iter().filter(|one| !one.must_pass).count();
            let told: Vec<&str> = one.tries.iter().map(|one| one.what.as_str()).collect();
            assert!(one.holds(), "{}: {told:?}", one.rule);
            assert!(misses >= 3, "{}: {told:?}", one.rule);
            assert!(one.tries[0].must_pass);
        }
        // What one rule refuses and another allows is told.
        let write = all.iter().find(|one| one.rule == "ro /data/ref").unwrap();
        assert!(write.tries.iter().any(|one| one.other.as_deref() == Some("rw /data")));
    }
}
