//! The WIT package as Rust, each world generated once for all guests.
//!
//! Only `convert`, `glue` and the modules of host imports use it: skills see the types of this
//! crate, which carry parsed JSON instead of text.

#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    reason = "generated: calls across the component boundary are unsafe by nature"
)]

pub use checkrein_skill_bindings as skill;

/// The world `verifier`, with the imports of the other.
pub mod verifier {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "verifier",
        pub_export_macro: true,
        export_macro_name: "__export_checkrein_verifier",
        default_bindings_module: "checkrein_skill::macros::verifier_bindings",
        with: {
            "checkrein:skill/types@0.1.0": checkrein_skill_bindings::checkrein::skill::types,
            "checkrein:skill/log@0.1.0": checkrein_skill_bindings::checkrein::skill::log,
            "checkrein:skill/progress@0.1.0": checkrein_skill_bindings::checkrein::skill::progress,
            "checkrein:skill/http@0.1.0": checkrein_skill_bindings::checkrein::skill::http,
            "checkrein:skill/facts@0.1.0": checkrein_skill_bindings::checkrein::skill::facts,
        },
    });
}
