//! The names that this host gives and takes, and the versions in them.

/// The version of `checkrein:skill` that this host speaks.
pub(crate) const VERSION: &str = "0.1.0";
/// The optional export that says the schema of the arguments.
pub(crate) const SCHEMA: &str = "checkrein:skill/schema@0.1.0";
/// The track of WASI that is linked; any patch of it meets the host's.
const WASI_TRACK: &str = "0.2.";
/// The package of the interface.
pub(crate) const SKILL_PACKAGE: &str = "checkrein:skill/";

/// What a verifier exports.
pub(super) const VERIFIER_EXPORTS: &[&str] = &["checkrein:skill/verification@0.1.0"];
/// What a skill exports.
pub(super) const SKILL_EXPORTS: &[&str] = &[
    "checkrein:skill/trigger@0.1.0",
    "checkrein:skill/executor@0.1.0",
    "checkrein:skill/verification@0.1.0",
    "checkrein:skill/recovery@0.1.0",
];

/// What this host gives of `checkrein:skill`.
pub(crate) const OWN: &[&str] = &["types", "log", "progress", "http", "facts"];

/// What this host gives of WASI 0.2; a test holds it against the linker.
pub(crate) const WASI: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// Whether the host has an import of this name.
pub(super) fn is_given(name: &str) -> bool {
    let Some((interface, version)) = name.split_once('@') else { return false };
    match interface.strip_prefix(SKILL_PACKAGE) {
        Some(own) => version == VERSION && OWN.contains(&own),
        None => version.starts_with(WASI_TRACK) && WASI.contains(&interface),
    }
}

/// The version of `checkrein:skill` that a name was built for, if it is another than this host's.
/// The linker would let a later patch in, and fail only where something is missing.
pub(super) fn other_version(name: &str) -> Option<&str> {
    let (interface, version) = name.split_once('@')?;
    (interface.starts_with(SKILL_PACKAGE) && version != VERSION).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        assert!(is_given("checkrein:skill/log@0.1.0") && is_given("wasi:io/poll@0.2.3"));
        for missing in
            ["checkrein:skill/log@0.1.1", "wasi:io/poll@0.3.0", "wasi:http/types@0.3.0", "env", "a:b/c@0.2.0"]
        {
            assert!(!is_given(missing), "{missing}");
        }
        assert_eq!(other_version("checkrein:skill/log@0.3.0"), Some("0.3.0"));
        assert_eq!(other_version("checkrein:skill/log@0.1.0"), None);
    }

    #[test]
    fn the_linker_has_every_name() {
        let (engine, _) = crate::engine::build().unwrap();
        let mut linker = wasmtime::component::Linker::new(&engine);
        crate::imports::add_to_linker(&mut linker).unwrap();
        let own = OWN.iter().map(|name| format!("{SKILL_PACKAGE}{name}"));
        for name in own.chain(WASI.iter().map(|name| (*name).to_owned())) {
            assert!(crate::testing::has(&linker, &name), "{name}");
        }
        assert!(!crate::testing::has(&linker, "wasi:http/incoming-handler"));
    }
}
