//! Figures: what of an artifact may be drawn on a page, or lie beside a report as a file.
//!
//! A figure is a stranger's. In a page it stands as an image, where nothing in it runs; as a file it
//! may be opened by itself, so of an SVG only what is on a list of harmless elements and attributes
//! is kept: no script, no handlers, no foreign content, nothing from elsewhere.

use checkrein_contract::event::StoredArtifact;
use checkrein_contract::port::{Blobs, StorageError};

/// The largest figure that is put into a page, in bytes.
const FIGURE_MAX: u64 = 4 << 20;

/// The bytes of a figure that can be shown, or why it is not one.
///
/// # Errors
///
/// If the artifact cannot be read back.
pub(super) fn read(
    file: &StoredArtifact,
    blobs: &dyn Blobs,
) -> Result<Result<Vec<u8>, String>, StorageError> {
    if !is_figure(&file.media_type) {
        return Ok(Err(format!("`{}` is no kind of figure", file.media_type)));
    }
    if file.bytes > FIGURE_MAX {
        return Ok(Err(format!("it has {} bytes, and {FIGURE_MAX} are the most", file.bytes)));
    }
    let bytes = blobs.get(&file.digest)?;
    Ok(match file.media_type.as_str() {
        "image/png" if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Ok(bytes),
        "image/jpeg" if bytes.starts_with(b"\xff\xd8\xff") => Ok(bytes),
        "image/svg+xml" => harmless(&bytes),
        other => Err(format!("its content is not `{other}`")),
    })
}

/// Whether a page can show it.
pub(super) fn is_figure(media_type: &str) -> bool {
    matches!(media_type, "image/svg+xml" | "image/png" | "image/jpeg")
}

/// An SVG with what may be in one, and nothing else.
fn harmless(svg: &[u8]) -> Result<Vec<u8>, String> {
    let mut filter = svg_hush::Filter::new();
    filter.set_data_url_filter(svg_hush::data_url_filter::allow_standard_images);
    let mut out = Vec::with_capacity(svg.len());
    let filtered = filter.filter(&mut &*svg, &mut out);
    filtered.map(|()| out).map_err(|error| format!("its content is no SVG that can be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = r##"<?xml version="1.0"?>
<?xml-stylesheet href="https://evil.example/a.css"?>
<!DOCTYPE svg [<!ENTITY x "y"><!ENTITY f SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="10" height="10" onload="alert(1)">
<script>alert(1)</script><script href="https://evil.example/a.js"/>
<style>@import url(https://evil.example/b.css); rect { fill: url(https://evil.example/c.png) }</style>
<foreignObject width="10" height="10"><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="https://evil.example"/></body></foreignObject>
<image href="https://evil.example/d.png" xlink:href="file:///etc/passwd"/>
<a xlink:href="javascript:alert(1)"><text onclick="alert(1)">t</text></a>
<use href="https://evil.example/e.svg#x"/>
<set attributeName="onmouseover" to="alert(1)"/><animate attributeName="href" values="javascript:alert(1)"/>
<rect width="5" height="5" style="fill:url('https://evil.example/f')" fill="url(#g)"/>
</svg>"##;

    #[test]
    fn nothing_in_a_figure_runs_or_calls_elsewhere() {
        let shown = String::from_utf8(harmless(HOSTILE.as_bytes()).unwrap()).unwrap();
        // What is left of a style or an animation has nothing to act on.
        for gone in [
            "<script",
            "<!",
            "<?xml-stylesheet",
            "foreignObject",
            "iframe",
            "onload",
            "onclick",
            "onmouseover",
            "attributeName",
            "href=\"javascript",
            "\"https:",
            "url(https",
            "url('https",
            "passwd",
            "@import",
        ] {
            assert!(!shown.to_lowercase().contains(&gone.to_lowercase()), "{gone} in {shown}");
        }
        assert!(shown.contains("<rect") && shown.contains("<text"), "{shown}");
    }

    #[test]
    fn what_is_no_svg_is_no_figure() {
        for bad in [&b"<svg"[..], b"", b"\xff\xfe", b"<html><script>alert(1)</script></html>"] {
            let shown = harmless(bad).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&shown).contains("script"));
        }
    }
}
