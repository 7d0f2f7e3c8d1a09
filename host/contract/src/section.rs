//! Custom sections of a component: where its manifest and its cases are kept.
//!
//! Only sections of the component itself count; modules and components nested in it have their
//! own, and none of them may supply the manifest. A section is appended at the end, so a
//! component built by any toolchain can be given one.

/// The name of the section that holds `skill.toml`.
pub const MANIFEST: &str = "checkrein:manifest";
/// The name of the section that holds `cases.toml`.
pub const CASES: &str = "checkrein:cases";

/// The first 8 bytes of a component.
pub const COMPONENT_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];
/// The first 8 bytes of a core module.
pub const MODULE_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 1, 0, 0, 0];

/// Why the sections of a component cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// It is something else than a component.
    #[error("not a component: its first 8 bytes are {0:02x?}")]
    NotAComponent(Vec<u8>),
    /// A section is longer than the file.
    #[error("the section at byte {at} ends past the end of the file")]
    Truncated {
        /// Where the section starts.
        at: usize,
    },
    /// Two sections have this name.
    #[error("two sections named `{0}`")]
    Twice(String),
}

/// The contents of the custom section `name` of the component itself, if it has one.
///
/// # Errors
///
/// If the bytes are not a component, a section is cut off, or two have this name.
pub fn find<'b>(component: &'b [u8], name: &str) -> Result<Option<&'b [u8]>, SectionError> {
    let mut found = None;
    for section in sections(component)? {
        let section = section?;
        if section.name == Some(name.as_bytes()) && found.replace(section.contents).is_some() {
            return Err(SectionError::Twice(name.to_owned()));
        }
    }
    Ok(found)
}

/// The component with the section `name` set to `contents`, in place of the one it may have had.
///
/// # Errors
///
/// As for [`find`].
pub fn embed(component: &[u8], name: &str, contents: &[u8]) -> Result<Vec<u8>, SectionError> {
    let mut out = COMPONENT_MAGIC.to_vec();
    for section in sections(component)? {
        let section = section?;
        if section.name != Some(name.as_bytes()) {
            out.extend_from_slice(section.whole);
        }
    }
    let mut body = Vec::new();
    leb128(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(contents);
    out.push(0);
    leb128(&mut out, body.len());
    out.extend_from_slice(&body);
    Ok(out)
}

/// One section of the outermost level.
struct RawSection<'b> {
    /// The name, if it is a custom section.
    name: Option<&'b [u8]>,
    contents: &'b [u8],
    whole: &'b [u8],
}

fn sections(
    component: &[u8],
) -> Result<impl Iterator<Item = Result<RawSection<'_>, SectionError>>, SectionError> {
    if component.get(..8) != Some(&COMPONENT_MAGIC) {
        return Err(SectionError::NotAComponent(component[..component.len().min(8)].to_vec()));
    }
    let mut at = 8;
    Ok(std::iter::from_fn(move || {
        if at >= component.len() {
            return None;
        }
        let section = read_section(component, at).ok_or(SectionError::Truncated { at });
        at = section.as_ref().map_or(component.len(), |section| at + section.whole.len());
        Some(section)
    }))
}

fn read_section(bytes: &[u8], at: usize) -> Option<RawSection<'_>> {
    let id = *bytes.get(at)?;
    let (size, start) = read_leb128(bytes, at + 1)?;
    let end = start.checked_add(size)?;
    let body = bytes.get(start..end)?;
    let whole = &bytes[at..end];
    if id != 0 {
        return Some(RawSection { name: None, contents: body, whole });
    }
    let (length, name_start) = read_leb128(body, 0)?;
    let name_end = name_start.checked_add(length)?;
    let name = body.get(name_start..name_end)?;
    Some(RawSection { name: Some(name), contents: &body[name_end..], whole })
}

fn leb128(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn read_leb128(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut number = 0usize;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_embedded_is_found(contents: Vec<u8>, again: Vec<u8>, other: Vec<u8>) {
            let empty = COMPONENT_MAGIC.to_vec();
            let one = embed(&empty, MANIFEST, &contents).unwrap();
            let two = embed(&one, CASES, &other).unwrap();
            let three = embed(&two, MANIFEST, &again).unwrap();
            prop_assert_eq!(find(&two, MANIFEST).unwrap(), Some(&contents[..]));
            prop_assert_eq!(find(&three, MANIFEST).unwrap(), Some(&again[..]));
            prop_assert_eq!(find(&three, CASES).unwrap(), Some(&other[..]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, cut in 0usize..64) {
            let mut component = COMPONENT_MAGIC.to_vec();
            component.extend(&bytes);
            drop(find(&component, MANIFEST));
            let whole = embed(&COMPONENT_MAGIC, MANIFEST, &bytes).unwrap();
            drop(find(&whole[..whole.len().saturating_sub(cut)], MANIFEST));
        }
    }

    #[test]
    fn a_nested_section_is_not_the_components_own() {
        // A core module (section 1 of a component) that holds a custom section of that name.
        let mut module = MODULE_MAGIC.to_vec();
        module.extend([0, 1 + MANIFEST.len() as u8 + 1, MANIFEST.len() as u8]);
        module.extend(MANIFEST.as_bytes());
        module.push(b'x');
        let mut component = COMPONENT_MAGIC.to_vec();
        component.push(1);
        leb128(&mut component, module.len());
        component.extend(&module);
        assert_eq!(find(&component, MANIFEST).unwrap(), None);
    }

    #[test]
    fn a_core_module_is_told_apart() {
        assert!(matches!(find(&MODULE_MAGIC, MANIFEST), Err(SectionError::NotAComponent(_))));
    }
}
