//! How a plot looks: an SVG with a background of its own, so that it is as legible on a dark page
//! as on a white one; colours of Okabe and Ito (2008) that the colour-blind tell apart; no script,
//! no style sheet, nothing from outside.

use std::fmt::Write as _;

use crate::labels::Area;
use crate::plot::{Class, FRAME, HEIGHT, LABEL_SIZE, Plot, WIDTH};
use crate::scale::Scale;

const INK: &str = "#1f2933";
const PALE: &str = "#52606d";
const GRID: &str = "#e8ecf0";
const LINE: &str = "#7b8794";

/// The classes from back to front: id, colour, size of a point in pixels.
pub(crate) const LAYERS: [(Class, &str, &str, f64); 3] = [
    (Class::Neither, "neither", "#b4bcc6", 3.4),
    (Class::Down, "down", "#0072b2", 5.4),
    (Class::Up, "up", "#d55e00", 5.4),
];

/// Draws it. The same plot gives the same bytes.
#[must_use]
pub fn render(plot: &Plot) -> String {
    let mut svg = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-labelledby=\"title desc\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif\" fill=\"{INK}\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"desc\">Volcano plot of {} genes: {} up, {} down.</desc>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"#ffffff\"/>\n",
        escape(&plot.title),
        plot.genes.len(),
        plot.up,
        plot.down,
    );
    heading(plot, &mut svg);
    axes(plot, &mut svg);
    points(plot, &mut svg);
    thresholds(plot, &mut svg);
    labels(plot, &mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// Text that is safe between tags and in attributes; what XML does not allow is left out.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// A number with one digit behind the point, or none where it is 0.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.to_owned() }
}

fn heading(plot: &Plot, svg: &mut String) {
    let rest = plot.genes.len() - plot.up - plot.down;
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"40\" font-size=\"21\" font-weight=\"600\">{}</text>",
        FRAME.left,
        escape(&plot.title)
    );
    let mut x = FRAME.left + 5.0;
    let condition = if plot.min_fold_change > 0.0 {
        format!("q < {}, at least {}-fold", plot.alpha, short_factor(plot.min_fold_change))
    } else {
        format!("q < {}", plot.alpha)
    };
    let entries = [
        ("#d55e00", "up", plot.up, true),
        ("#0072b2", "down", plot.down, true),
        ("#b4bcc6", "neither", rest, false),
    ];
    let _ = writeln!(svg, "<g id=\"legend\" font-size=\"14\">");
    for (colour, name, count, bold) in entries {
        let weight = if bold { "600" } else { "400" };
        let _ = writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"71\" r=\"5\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"76\"><tspan font-weight=\"{weight}\">{count}</tspan> {name}</text>",
            short(x),
            short(x + 11.0),
        );
        x += 11.0 + 8.0 * (count.to_string().len() + name.len() + 1) as f64 + 26.0;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"76\" text-anchor=\"end\" fill=\"{PALE}\">coloured: {}</text>\n</g>",
        FRAME.left + FRAME.width,
        escape(&condition)
    );
}

/// The factor of a log2 fold change, such as 2 for 1.
fn short_factor(change: f64) -> String {
    let text = format!("{:.2}", change.exp2());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn axes(plot: &Plot, svg: &mut String) {
    let (left, top) = (FRAME.left, FRAME.top);
    let (right, bottom) = (left + FRAME.width, top + FRAME.height);
    let _ = writeln!(svg, "<g id=\"x-axis\" font-size=\"13\" text-anchor=\"middle\">");
    for tick in &plot.x.ticks {
        let x = short(plot.x.place(*tick));
        let label = tick_label(&plot.x, *tick);
        let _ = writeln!(
            svg,
            "<path d=\"M{x} {top}V{bottom}\" stroke=\"{GRID}\"/><text x=\"{x}\" y=\"{}\">{label}</text>",
            bottom + 22.0
        );
    }
    let _ = writeln!(svg, "</g>\n<g id=\"y-axis\" font-size=\"13\" text-anchor=\"end\">");
    for tick in &plot.y.ticks {
        let y = plot.y.place(*tick);
        let label = tick_label(&plot.y, *tick);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {0}H{right}\" stroke=\"{GRID}\"/><text x=\"{1}\" y=\"{0}\" dy=\"4.5\">{label}</text>",
            short(y),
            left - 10.0
        );
    }
    let _ = writeln!(
        svg,
        "</g>\n<path d=\"M{left} {bottom}H{right}\" stroke=\"{LINE}\"/>\n\
         <g font-size=\"15\" text-anchor=\"middle\">\n\
         <text x=\"{}\" y=\"{}\">log<tspan dy=\"4\" font-size=\"11\">2</tspan><tspan dy=\"-4\"> fold change</tspan></text>\n\
         <text transform=\"translate(28 {}) rotate(-90)\">−log<tspan dy=\"4\" font-size=\"11\">10</tspan><tspan dy=\"-4\"> p</tspan></text>\n</g>",
        left + FRAME.width / 2.0,
        bottom + 50.0,
        top + FRAME.height / 2.0,
    );
}

/// With a minus sign, not a hyphen.
fn tick_label(scale: &Scale, tick: f64) -> String {
    format!("{tick:.*}", scale.digits).replace('-', "−")
}

/// Each class is one path of points, lines of no length with round ends: a fifth of the size of as
/// many circles.
fn points(plot: &Plot, svg: &mut String) {
    for (class, id, colour, size) in LAYERS {
        let _ = write!(
            svg,
            "<path id=\"{id}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{size}\" stroke-linecap=\"round\" stroke-opacity=\"0.8\" d=\""
        );
        for (place, _) in plot.places.iter().zip(&plot.classes).filter(|(_, own)| **own == class) {
            let _ = write!(svg, "M{} {}h0", short(place[0]), short(place[1]));
        }
        svg.push_str("\"/>\n");
    }
}

fn thresholds(plot: &Plot, svg: &mut String) {
    let (left, top) = (FRAME.left, FRAME.top);
    let (right, bottom) = (left + FRAME.width, top + FRAME.height);
    let _ = writeln!(svg, "<g id=\"thresholds\" stroke=\"{PALE}\" stroke-dasharray=\"5 4\">");
    if plot.min_fold_change > 0.0 {
        for side in [-plot.min_fold_change, plot.min_fold_change] {
            let _ = writeln!(svg, "<path d=\"M{} {top}V{bottom}\"/>", short(plot.x.place(side)));
        }
    }
    if let Some(threshold) = plot.threshold {
        let y = plot.y.place(threshold);
        let _ = writeln!(svg, "<path d=\"M{left} {}H{right}\"/>", short(y));
    }
    svg.push_str("</g>\n");
    if let Some(threshold) = plot.threshold {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"{PALE}\" text-anchor=\"end\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">q = {}</text>",
            right - 4.0,
            short(plot.y.place(threshold) - 6.0),
            plot.alpha
        );
    }
}

fn labels(plot: &Plot, svg: &mut String) {
    let _ = writeln!(svg, "<g stroke=\"{LINE}\" stroke-width=\"1\">");
    for (at, area) in plot.labelled.iter().zip(&plot.areas) {
        leader(plot.places[*at], area, svg);
    }
    let _ = writeln!(
        svg,
        "</g>\n<g id=\"labels\" font-size=\"{LABEL_SIZE}\" text-anchor=\"middle\" stroke=\"#ffffff\" stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\">"
    );
    for (at, area) in plot.labelled.iter().zip(&plot.areas) {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            short(area.left + area.width / 2.0),
            short(area.top + area.height * 0.78),
            escape(&plot.genes[*at].id)
        );
    }
    svg.push_str("</g>\n");
}

/// A line from the point to its label, where they do not touch anyway.
fn leader(point: [f64; 2], area: &Area, svg: &mut String) {
    let [x, y] = area.nearest(point);
    if (x - point[0]).hypot(y - point[1]) > 10.0 {
        let _ = writeln!(
            svg,
            "<path d=\"M{} {}L{} {}\"/>",
            short(point[0]),
            short(point[1]),
            short(x),
            short(y)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_short() {
        assert_eq!(escape("<a href='x'>&\"\u{0}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ");
        assert_eq!(
            (short(1.04), short(-0.01), short(2.25)),
            ("1".into(), "0".into(), "2.2".into())
        );
        assert_eq!(short_factor(1.0), "2");
        assert_eq!(short_factor(0.5), "1.41");
    }
}
