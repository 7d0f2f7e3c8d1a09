//! The report as one page that opens from disk and needs nothing else: no script, no network,
//! no markup but ours.
//!
//! The page is made from the Markdown of [`super::compose`]. Of what its parser finds, only what is
//! listed here becomes markup: raw HTML is shown as text, links go to the web or into the page,
//! images are figures of the run. An SVG stands in an `img` only, where no script in it runs. The
//! content security policy says the same once more, to the browser.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use checkrein_contract::Digest;
use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::compose::{self, Target};
use super::course;
use super::escape;
use super::view::RunView;
use super::words::{self, many};

/// The one style of the page; the policy names its digest.
const STYLE: &str = include_str!("style.css");

/// The report as an HTML page.
pub fn html(view: &RunView) -> String {
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        STANDARD.encode(Digest::of(STYLE).as_bytes())
    );
    let title = escape::html(&view.task.report.title);
    let body = Page::new(view).render(&compose::body(view, Target::Html));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}<main>\n{body}</main>\n</body>\n</html>\n",
        header(view)
    )
}

fn header(view: &RunView) -> String {
    let kind = if view.is_done() { "good" } else { "bad" };
    let dry = if view.dry { format!("<p class=\"dry\">{}</p>\n", course::DRY) } else { String::new() };
    let counted = view.current_facts().filter(|fact| view.counts(fact)).count();
    let failed = view.calls().filter(|call| call.went_wrong()).count();
    let below = view.current_facts().count() - counted;
    let below = match below {
        0 => String::new(),
        below => format!("<span>{} not counted</span>", many(below, "fact")),
    };
    format!(
        "<header>\n{dry}<h1>{}</h1>\n<p class=\"goal\">{}</p>\n<div class=\"meta\"><span class=\"badge {kind}\">{}</span>\
         <span><b>{}</b></span>{below}<span>{}</span><span>{}</span><span>run <code>{}</code></span></div>\n</header>\n",
        escape::html(&view.task.report.title),
        escape::html(&view.task.goal),
        view.state_word(),
        many(counted, "verified fact"),
        many(failed, "failed call"),
        words::time(view.last).split('T').next().unwrap_or_default(),
        escape::html(view.run.as_str()),
    )
}

/// A page on its way from Markdown.
struct Page<'v> {
    view: &'v RunView,
    out: String,
    /// For each open link, whether it was let through.
    links: Vec<bool>,
    /// While inside an image.
    image: Option<Image>,
    /// Whether the caption of a figure is still open: a footnote right after it belongs there.
    caption: bool,
    table: TableState,
    /// Numbers of footnotes, in the order in which they are named.
    notes: HashMap<String, usize>,
    in_notes: bool,
}

struct Image {
    /// The place of the figure in the artifacts.
    place: Option<usize>,
    /// The text for it.
    title: String,
}

#[derive(Default)]
struct TableState {
    alignments: Vec<Alignment>,
    column: usize,
    head: bool,
}

impl<'v> Page<'v> {
    fn new(view: &'v RunView) -> Self {
        Page {
            view,
            out: String::new(),
            links: Vec::new(),
            image: None,
            caption: false,
            table: TableState::default(),
            notes: HashMap::new(),
            in_notes: false,
        }
    }

    fn render(mut self, markdown: &str) -> String {
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        for event in Parser::new_ext(markdown, options) {
            if self.caption && !matches!(event, Event::FootnoteReference(_)) {
                self.caption = false;
                self.out.push_str("</figcaption></figure>\n<p>");
            }
            match event {
                Event::Start(tag) => self.start(tag),
                Event::End(tag) => self.end(tag),
                Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
                Event::Code(text) => self.code(&text),
                Event::InlineMath(text) | Event::DisplayMath(text) => self.code(&text),
                Event::FootnoteReference(label) => self.reference(&label),
                Event::SoftBreak => self.text("\n"),
                Event::HardBreak => self.markup("<br>\n"),
                Event::Rule => self.markup("<hr>\n"),
                Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
            }
        }
        if self.in_notes {
            self.out.push_str("</section>\n");
        }
        // Paragraphs that held a figure and nothing else. Text cannot be it: its `<` is escaped.
        self.out.replace("<p></p>\n", "")
    }

    /// Markup of ours; inside the text for an image there is none.
    fn markup(&mut self, markup: &str) {
        if self.image.is_none() {
            self.out.push_str(markup);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(image) = &mut self.image {
            image.title.push_str(text);
            return;
        }
        // Marks of placeholders that did not resolve stand out.
        let text = escape::html(text).replace('⟦', "<mark>").replace('⟧', "</mark>");
        self.out.push_str(&text);
    }

    fn code(&mut self, text: &str) {
        self.markup("<code>");
        self.text(text);
        self.markup("</code>");
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Link { dest_url, .. } => self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                let place = figure_place(&dest_url);
                self.image = Some(Image { place, title: String::new() });
            }
            Tag::FootnoteDefinition(label) => self.start_note(&label),
            Tag::Table(alignments) => {
                self.table = TableState { alignments, column: 0, head: false };
                self.markup("<div class=\"table\"><table>\n");
            }
            Tag::TableHead => {
                (self.table.head, self.table.column) = (true, 0);
                self.markup("<thead><tr>");
            }
            Tag::TableRow => {
                self.table.column = 0;
                self.markup("<tr>");
            }
            Tag::TableCell => self.start_cell(),
            Tag::List(Some(first)) => self.markup(&format!("<ol start=\"{first}\">\n")),
            Tag::List(None) => self.markup("<ul>\n"),
            Tag::Heading { level, .. } => self.markup(&format!("<{}>", heading(level))),
            other => self.markup(plain(&other.to_end()).0),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Link => {
                if self.links.pop() == Some(true) {
                    self.markup("</a>");
                }
            }
            TagEnd::Image => self.end_image(),
            TagEnd::FootnoteDefinition => self.markup("</div></div>\n"),
            TagEnd::Table => self.markup("</tbody></table></div>\n"),
            TagEnd::TableHead => {
                self.table.head = false;
                self.markup("</tr></thead>\n<tbody>\n");
            }
            TagEnd::TableCell => self.markup(if self.table.head { "</th>" } else { "</td>" }),
            TagEnd::List(true) => self.markup("</ol>\n"),
            TagEnd::List(false) => self.markup("</ul>\n"),
            TagEnd::Heading(level) => self.markup(&format!("</{}>\n", heading(level))),
            other => self.markup(plain(&other).1),
        }
    }

    fn start_link(&mut self, address: &str) {
        let allowed = is_allowed(address);
        self.links.push(allowed);
        if allowed {
            self.markup(&format!("<a href=\"{}\" rel=\"noreferrer\">", escape::html(address)));
        }
    }

    fn start_cell(&mut self) {
        let numeric = self.table.alignments.get(self.table.column) == Some(&Alignment::Right);
        self.table.column += 1;
        // A class and no `style`: the policy allows no style but the one block.
        self.markup(match (self.table.head, numeric) {
            (true, true) => "<th scope=\"col\" class=\"num\">",
            (true, false) => "<th scope=\"col\">",
            (false, true) => "<td class=\"num\">",
            (false, false) => "<td>",
        });
    }

    fn end_image(&mut self) {
        let Some(image) = self.image.take() else { return };
        let artifact = image.place.and_then(|place| self.view.artifacts.get(place));
        let Some((artifact, bytes)) =
            artifact.and_then(|artifact| Some((artifact, artifact.figure.as_ref().ok()?)))
        else {
            return self.text(&format!("[image not shown: {}]", image.title));
        };
        // A figure stands in a paragraph of the Markdown, where HTML allows none, so the paragraph
        // is closed before it. Writing to a String cannot fail.
        let _ = write!(
            self.out,
            "</p>\n<figure><img src=\"data:{};base64,{}\" alt=\"{title}\">\n<figcaption>{title}",
            media_type(&artifact.file.media_type),
            STANDARD.encode(bytes),
            title = escape::html(&image.title),
        );
        self.caption = true;
    }

    fn number(&mut self, label: &str) -> usize {
        let next = self.notes.len() + 1;
        *self.notes.entry(label.to_owned()).or_insert(next)
    }

    fn reference(&mut self, label: &CowStr<'_>) {
        let number = self.number(label);
        self.markup(&format!("<sup><a href=\"#note-{number}\">{number}</a></sup>"));
    }

    fn start_note(&mut self, label: &CowStr<'_>) {
        let number = self.number(label);
        if !self.in_notes {
            self.in_notes = true;
            self.out.push_str("<section class=\"notes\">\n");
        }
        self.markup(&format!("<div class=\"note\" id=\"note-{number}\"><span>{number}</span><div>"));
    }
}

/// The markup of a tag that has no attributes, before and after; nothing for what is not shown.
fn plain(tag: &TagEnd) -> (&'static str, &'static str) {
    match tag {
        TagEnd::Paragraph | TagEnd::HtmlBlock => ("<p>", "</p>\n"),
        TagEnd::BlockQuote(_) => ("<blockquote>\n", "</blockquote>\n"),
        TagEnd::CodeBlock => ("<pre><code>", "</code></pre>\n"),
        TagEnd::Item => ("<li>", "</li>\n"),
        TagEnd::TableRow => ("<tr>", "</tr>\n"),
        TagEnd::Emphasis => ("<em>", "</em>"),
        TagEnd::Strong => ("<strong>", "</strong>"),
        TagEnd::Strikethrough => ("<del>", "</del>"),
        TagEnd::Superscript => ("<sup>", "</sup>"),
        TagEnd::Subscript => ("<sub>", "</sub>"),
        TagEnd::DefinitionList
        | TagEnd::DefinitionListTitle
        | TagEnd::DefinitionListDefinition
        | TagEnd::MetadataBlock(_)
        | TagEnd::Heading(_)
        | TagEnd::List(_)
        | TagEnd::FootnoteDefinition
        | TagEnd::Table
        | TagEnd::TableHead
        | TagEnd::TableCell
        | TagEnd::Link
        | TagEnd::Image => ("", ""),
    }
}

fn heading(level: HeadingLevel) -> &'static str {
    match level {
        // The page has a title already.
        HeadingLevel::H1 | HeadingLevel::H2 => "h2",
        HeadingLevel::H3 => "h3",
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h4",
    }
}

/// Links go to the web or into the page; no other scheme, and nothing on this disk.
fn is_allowed(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    lower.starts_with("https://") || lower.starts_with("http://") || lower.starts_with('#')
}

fn figure_place(address: &str) -> Option<usize> {
    address.strip_prefix("figure:")?.parse().ok()
}

/// One of the three media types that are figures: nothing that a skill wrote goes into a `data:` address.
fn media_type(text: &str) -> &'static str {
    match text {
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        _ => "image/svg+xml",
    }
}
