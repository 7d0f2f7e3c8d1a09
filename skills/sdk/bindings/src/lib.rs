//! The world `described-skill` as Rust.
//!
//! A crate of its own, because export macros sit at a crate's root, and those of the world
//! `verifier` have the same names. Nothing but `checkrein-skill` uses it.

#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    reason = "generated: calls across the component boundary are unsafe by nature"
)]

wit_bindgen::generate!({
    path: "../../../wit",
    world: "described-skill",
    pub_export_macro: true,
    export_macro_name: "__export_checkrein_skill",
    default_bindings_module: "checkrein_skill_bindings",
});
