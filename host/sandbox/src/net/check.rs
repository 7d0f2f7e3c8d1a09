//! Whether a request may leave: one decision, without any side effect.

use std::net::IpAddr;

use checkrein_contract::network::{Host, Rule, Scheme, Target, is_special};
use checkrein_contract::record::Wall;

use super::{Clear, NoAnswer};
use crate::text::excerpt;

/// A request that is turned down: for the record, and for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) wall: Wall,
    /// What was tried, and why not.
    pub(super) what: String,
    /// The smallest grant that would allow it.
    pub(super) grant: Option<String>,
    /// What the guest is told.
    pub(super) told: NoAnswer,
}

/// The rule that allows this request.
pub(super) fn permit<'a>(rules: &'a [Rule], method: &str, target: &Target) -> Result<&'a Rule, Refusal> {
    if let Some(rule) = rules.iter().find(|rule| rule.allows(method, target)) {
        return Ok(rule);
    }
    let grant = grant_line(method, target);
    let what = format!("{}: {}", shown(method, target), nearest(rules, method, target));
    let told = NoAnswer::Denied(format!("{what}; the grant `{grant}` would allow it"));
    Err(Refusal { wall: Wall::Network, what, grant: Some(grant), told })
}

/// Whether a request may go without TLS, where it would: every hop of it for itself.
pub(super) fn in_the_clear(clear: Clear, method: &str, target: &Target) -> Result<(), Refusal> {
    let by_name = target.scheme == Scheme::Http && !matches!(target.host, Host::Address(_));
    if clear == Clear::ByRule || !by_name {
        return Ok(());
    }
    let what = format!("{}: only https, or an address that a rule names", shown(method, target));
    Err(Refusal { wall: Wall::Network, what: what.clone(), grant: None, told: NoAnswer::Denied(what) })
}

/// Those of the addresses that may be connected to: all of them, or none.
pub(super) fn reachable(
    rule: &Rule,
    method: &str,
    target: &Target,
    addresses: Vec<IpAddr>,
) -> Result<Vec<IpAddr>, Refusal> {
    let Some(special) = addresses.iter().find(|address| is_special(**address) && !rule.names(**address))
    else {
        return Ok(addresses);
    };
    let grant = grant_line(method, &Target { host: Host::Address(*special), ..target.clone() });
    let shown = shown(method, target);
    let what = format!(
        "{shown}: `{}` leads to {special}, which only a rule that names this address reaches",
        target.host
    );
    // Where a name leads inside of the network is for the record alone.
    let told = NoAnswer::Denied(format!("{shown}: `{}` leads to a private or special address", target.host));
    Err(Refusal { wall: Wall::Address, what, grant: Some(grant), told })
}

/// A request in a message: without its query, and not too long.
pub(super) fn shown(method: &str, target: &Target) -> String {
    let target = Target { query: None, ..target.clone() };
    format!("{method} {}", excerpt(&target.to_string()))
}

fn grant_line(method: &str, target: &Target) -> String {
    format!("network = [\"{}\"]", Rule::exactly(method, target))
}

fn nearest(rules: &[Rule], method: &str, target: &Target) -> String {
    let distance = |rule: &&Rule| {
        let differs = rule.differs(method, target);
        differs.len() + if differs.contains(&"host") { 5 } else { 0 }
    };
    match rules.iter().min_by_key(distance) {
        None => "nothing is granted".to_owned(),
        Some(rule) => {
            let differs = rule.differs(method, target).join(" and ");
            format!("no rule allows it; the nearest is `{rule}`, and the {differs} differs")
        }
    }
}
