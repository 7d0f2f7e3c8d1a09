//! The bindings of the WIT package, generated once. `wit/` is the authority; nothing outside this
//! crate sees these types: [`crate::convert`] turns them into those of the contract.

#![allow(missing_docs, unreachable_pub, reason = "generated code; the WIT holds the documentation")]

/// The world of a complete skill: all host imports, the four exports.
pub mod skill {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "skill",
        imports: {
            "checkrein:skill/http.fetch": async | trappable,
            "checkrein:skill/progress.report": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        // What a verification says comes from a worker process.
        additional_derives: [serde::Serialize, serde::Deserialize],
        require_store_data_send: true,
    });
}

/// The world of a verifier. It shares every type with [`skill`], so one conversion serves both.
pub mod verifier {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "verifier",
        exports: { default: async },
        with: { "checkrein:skill": super::skill::checkrein::skill },
        require_store_data_send: true,
    });
}

pub use skill::checkrein::skill::{facts, http, log, progress, types};
pub use skill::exports::checkrein::skill::{recovery, trigger};
