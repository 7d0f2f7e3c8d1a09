//! A dry run: no component is linked with an import that has an effect, so nothing can leave,
//! whatever it was granted.
//!
//! What has one is never put into the linker ([`crate::imports::add_inert`]). A component that
//! imports it loads all the same: each function of such an interface is made for that component
//! alone, and is a trap. wasmtime's own way to that is not used: it goes by exact names, and would put
//! traps in the place of what is linked under another patch of WASI.

use wasmtime::Engine;
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{Component as Compiled, InstancePre, Linker, LinkerInstance, ResourceType};

use crate::imports::has_effect;
use crate::state::State;

/// Stands for what a guest can hold of an interface that is not there: nothing makes one.
struct Absent;

/// Links a component; what it imports of the interfaces with an effect traps when it is called.
pub(crate) fn link(linker: &Linker<State>, compiled: &Compiled) -> wasmtime::Result<InstancePre<State>> {
    let mut linker = linker.clone();
    let (component, engine) = (compiled.component_type(), linker.engine().clone());
    let mut known = Vec::new();
    for (name, import) in component.imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = import.ty else { continue };
        if has_effect(name) {
            absent(&mut linker.instance(name)?, name, &interface, &mut known, &engine)?;
        } else {
            known.extend(interface.exports(&engine).filter_map(|(_, item)| resource(&item.ty)));
        }
    }
    linker.instantiate_pre(compiled)
}

fn resource(item: &ComponentItem) -> Option<ResourceType> {
    match item {
        ComponentItem::Resource(type_) => Some(*type_),
        _ => None,
    }
}

/// Puts traps where the functions of an interface would be. `known` are the resources that the
/// component has from its imports so far.
fn absent(
    linker: &mut LinkerInstance<'_, State>,
    name: &str,
    interface: &ComponentInstance,
    known: &mut Vec<ResourceType>,
    engine: &Engine,
) -> wasmtime::Result<()> {
    for (item, export) in interface.exports(engine) {
        match export.ty {
            ComponentItem::ComponentFunc(_) => {
                let why = format!("a dry run has no `{name}`, of which `{item}` was called");
                linker.func_new(item, move |_, _, _, _| Err(wasmtime::Error::msg(why.clone())))?;
            }
            // One that another interface gives is used here under a name of its own.
            ComponentItem::Resource(type_) if !known.contains(&type_) => {
                known.push(type_);
                linker.resource(item, ResourceType::host::<Absent>(), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
