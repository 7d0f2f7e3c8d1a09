//! Whole reports over a made-up run: what they say, and what they let nobody do.

use std::fs;
use std::io::Write as _;

use checkrein_contract::Digest;
use checkrein_contract::event::{Assessed, Ended, Event, Logged};
use checkrein_contract::id::{CallId, Timestamp};
use checkrein_contract::interface::Level;
use checkrein_contract::record::{Exchange, Record, Wall};
use serde_json::json;

use super::sample::Sample;
use super::show::show_json;
use super::{check_template, event_line, figures, html, markdown, report_json, show, wall_lines, why};

mod asks;
mod course;
mod lines;

#[test]
fn the_report_says_what_was_found_and_what_was_not() {
    let view = Sample::default().view();
    let text = markdown(&view);
    for part in [
        "# What knocking down pasilla changes",
        "Of 7908[^e1] genes",
        "**623[^e1]** respond",
        "2.573[^e1] prior",
        "| FBgn0039155[^e1] | -4.528 | -34.27 | 1.39 × 10⁻⁹ | 1.06 × 10⁻⁵ |",
        "![Fold change and significance of 7,908 genes](<figures/de/volcano.svg>)[^e2]",
        "**⟦not reached: fact:go/summary\\#/terms⟧**",
        "The text asks for `fact:go/summary#/terms`: there is no fact on `go/summary`.",
        "no skill applies to it",
        "treated1fb",
        "Diagnosis: sample names of the annotation end in `fb`",
        "Remedy: try again with \\{\"suffix\":\"fb\"\\}",
        "Attempt 2 was accepted.",
        "largest relative difference 3.1e-12",
        "6 facts: `de/summary@1`",
        "statistics-recheck 1.0.0",
        "over `/in/pasilla_gene_counts.tsv`",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains(&format!("checkrein trace verify {} --head {}", view.run, view.head.hex())));
    assert_eq!(figures(&view)[0].0, "figures/de/volcano.svg");
}

#[test]
fn every_footnote_that_is_named_is_defined() {
    let view = Sample::default().view();
    let page = html(&view);
    for number in 1..=2 {
        assert!(page.contains(&format!("href=\"#note-{number}\"")), "{number}");
        assert!(page.contains(&format!("id=\"note-{number}\"")), "{number}");
    }
    assert!(page.contains("<figure><img src=\"data:image/svg+xml;base64,"));
    assert!(page.contains("of 7,908 genes<sup><a href=\"#note-2\">2</a></sup></figcaption>"));
    assert!(!page.contains("[^e"), "a footnote without its definition");
}

#[test]
fn a_task_without_text_gets_all_facts_and_figures() {
    let view = Sample { text: None, ..Sample::default() }.view();
    let text = markdown(&view);
    for part in
        ["## test each gene", "| subject | kept | significant |", "| de/gene/FBgn0025111[^e1] |", "![Fold"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn facts_below_the_level_are_shown_and_not_counted() {
    let view = Sample { level: Level::SelfChecked, ..Sample::default() }.view();
    let text = markdown(&view);
    assert!(text.contains("623 (self-checked, not counted)[^e1]"), "{text}");
    assert!(text.contains("0 verified facts (6 facts below `independent`, not counted)"), "{text}");
}

const ATTACKS: &[&str] = &[
    "<script>alert(1)</script>",
    "]]><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "<https://evil.example>",
    "a | b | c",
    "`code` ``` \n```\n# heading",
    "\u{202e}gnp.exe\u{0}\u{1b}[31m",
    "[^e1] [^e1]: not ours",
    "{{fact:de/prior}}",
    "\"><style>*{display:none}</style>",
    "&lt;script&gt;",
    "</figcaption></figure><script>",
    "\n\n<div>\n\n</div>",
    "⟦not reached: everything",
];

/// What a guest asked for, in its own words, and was answered and refused.
fn walls(words: &str) -> Record {
    let exchange = Exchange {
        method: words.to_owned(),
        url: words.to_owned(),
        asked: Some(words.to_owned()),
        at: Timestamp(0),
        ms: 1,
        sent: Digest::of(b""),
        sent_bytes: 0,
        status: Some(200),
        headers: vec![(words.to_owned(), words.to_owned())],
        body: Some(Digest::of(b"x")),
        body_bytes: 1,
        error: Some(words.to_owned()),
    };
    let mut record = Record { exchanges: vec![exchange], ..Record::default() };
    record.deny(Wall::Network, words.to_owned(), Some(words.to_owned()));
    record
}

#[test]
fn what_a_trigger_and_a_recovery_were_refused_is_told() {
    let assessed =
        Assessed { skill: "de".into(), score: 1, reason: "r".into(), args: None, record: walls("u") };
    let run = Sample::default().view().run;
    let call = CallId::new(&run, &"de".into(), 1);
    let events = [
        Event::SkillsAssessed { subgoal: "de".into(), assessed: vec![assessed] },
        Event::RemedyGiven { call, diagnosis: "d".into(), remedy: None, record: walls("u") },
    ];
    for (event, who) in events.iter().zip(["de: ", ""]) {
        let lines = wall_lines(event);
        assert!(lines.iter().any(|line| line.trim() == format!("{who}refused, network: u")), "{lines:?}");
    }
}

#[test]
fn what_left_and_what_was_refused_is_shown() {
    let view = Sample { record: walls("https://a.example/x"), ..Sample::default() }.view();
    let markdown = markdown(&view);
    assert!(markdown.contains("## What was refused"), "{markdown}");
    assert!(markdown.contains("It asked `https://a.example/x https://a.example/x` (200 "), "{markdown}");
    assert!(markdown.contains("- Refused, network: "), "{markdown}");
    assert!(markdown.contains("- Refused, of its recovery: network: "), "{markdown}");
    assert!(show(&view).contains("✗ refused, network: https://a.example/x"), "{}", show(&view));
    let lines: Vec<String> = Sample { record: walls("u"), ..Sample::default() }
        .events()
        .0
        .iter()
        .flat_map(|logged| wall_lines(&logged.event))
        .collect();
    assert!(lines.iter().any(|line| line.trim() == "u u: 200, 1 B, u"), "{lines:?}");
    assert!(lines.iter().any(|line| line.trim() == "refused, network: u"), "{lines:?}");
    assert!(!self::markdown(&Sample::default().view()).contains("What was refused"));
}

#[test]
fn text_of_skills_is_text() {
    for attack in ATTACKS {
        let facts =
            vec![("de/x".to_owned(), json!({"v": attack, *attack: "v"})), ("de/y".to_owned(), json!(attack))];
        let attacked = || Sample {
            facts: facts.clone(),
            message: (*attack).to_owned(),
            figure_title: (*attack).to_owned(),
            note: (*attack).to_owned(),
            record: walls(attack),
            ..Sample::default()
        };
        let text = "{{fact:de/x#/v}} and\n\n{{table:de/* | columns a=$last, v=/v}}\n\n{{figure:de/volcano.svg}}\n\n{{artifact:de/volcano.svg}}";
        for text in [None, Some(text.to_owned())] {
            let view = Sample { text, ..attacked() }.view();
            check_page(&html(&view), attack);
            let markdown = markdown(&view);
            assert!(!markdown.contains(['\u{202e}', '\u{0}', '\u{1b}']), "{attack}");
            let terminal = show(&view) + &why(&view, "de/x#/v").unwrap().text();
            assert!(!terminal.contains(['\u{202e}', '\u{0}', '\u{1b}']), "{attack}");
            assert!(show_json(&view).is_object() && report_json(&view).is_object());
        }
    }
}

/// No element and no attribute on the page but those that this crate writes.
fn check_page(page: &str, attack: &str) {
    let body = page.split("<body>").nth(1).unwrap();
    let allowed = [
        "header",
        "main",
        "section",
        "div",
        "span",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "ul",
        "ol",
        "li",
        "a",
        "b",
        "em",
        "strong",
        "del",
        "sup",
        "sub",
        "code",
        "pre",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "figure",
        "img",
        "figcaption",
        "blockquote",
        "br",
        "hr",
        "mark",
        "body",
        "html",
    ];
    for tag in body.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        assert!(allowed.contains(&name), "{attack}: <{tag}>");
        for attribute in tag.split(' ').skip(1).filter(|part| part.contains("=\"")) {
            let name = attribute.split('=').next().unwrap();
            assert!(
                ["class", "href", "rel", "id", "scope", "src", "alt", "start"].contains(&name)
                    || tag.starts_with("img"),
                "{attack}: <{tag}>"
            );
        }
        if let Some(address) = tag.split("href=\"").nth(1) {
            assert!(
                address.starts_with("#note-") || address.starts_with("https://doi.org/"),
                "{attack}: <{tag}>"
            );
        }
        if let Some(address) = tag.split("src=\"").nth(1) {
            assert!(address.starts_with("data:image/svg+xml;base64,"), "{attack}: <{tag}>");
        }
    }
    assert!(!body.contains(['\u{202e}', '\u{0}', '\u{1b}']), "{attack}");
    for tag in ["mark", "a", "p", "div", "figure", "code", "table", "section", "li"] {
        let opened = body.matches(&format!("<{tag}>")).count() + body.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, body.matches(&format!("</{tag}>")).count(), "{attack}: <{tag}>");
    }
}

#[test]
fn a_tasks_own_markup_is_limited() {
    let text = "<b onclick=x>bold</b> [bad](javascript:x) [file](file:///etc/passwd) [good](https://doi.org/1) \
                ![remote](https://evil.example/x.png)\n\n<script>\nalert(1)\n</script>\n\nend";
    let view = Sample { text: Some(text.to_owned()), ..Sample::default() }.view();
    let page = html(&view);
    check_page(&page, text);
    assert!(page.contains("&lt;script&gt;") && page.contains("<a href=\"https://doi.org/1\""));
    assert!(page.contains("[image not shown: remote]"));
    assert!(markdown(&view).contains("\\<script>"));
}

#[test]
fn the_policy_names_the_style_that_stands_there() {
    use base64::Engine as _;
    let page = html(&Sample::default().view());
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let digest = checkrein_contract::Digest::of(style);
    let hash = base64::engine::general_purpose::STANDARD.encode(digest.as_bytes());
    assert!(page.contains(&format!("style-src 'sha256-{hash}'")));
    assert!(!page.contains("style=\"") && !page.contains("<script"));
    assert_eq!(page.matches("<style>").count(), 1);
}

#[test]
fn why_leads_back_to_the_inputs() {
    let view = Sample::default().view();
    let path = why(&view, "de/gene/FBgn0039155#/q").unwrap();
    let text = path.text();
    for part in [
        "de/gene/FBgn0039155@1",
        "independent",
        "statistics-recheck 1.0.0 sha256:",
        "recomputed: 7,908",
        "attempt 2",
        "/in/samples.csv sha256:",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(path.json()["value"], json!(1.0618633e-5));
    assert_eq!(path.json()["fact"]["verified_by"][2]["verifier"], "statistics-recheck");
    let error = why(&view, "de/gen/FBgn0039155").unwrap_err().to_string();
    assert!(error.contains("nearest: `de/gene/FBgn0039155`"), "{error}");
    let error = why(&view, "de/prior#/dff").unwrap_err().to_string();
    assert_eq!(error, "fact de/prior@1 has nothing at `/dff`; it has `#/df`, `#/variance`");
}

#[test]
fn a_fact_in_json_has_the_keys_of_the_design() {
    let report = report_json(&Sample::default().view());
    let fact = report["facts"][0].as_object().unwrap();
    let keys: Vec<&str> = fact.keys().map(String::as_str).collect();
    let design = "id subject version kind content source level skill component call verified_by";
    assert_eq!(keys.join(" "), design);
    let judge = fact["verified_by"][0].as_object().unwrap();
    assert_eq!(judge.keys().map(String::as_str).collect::<Vec<_>>().join(" "), "verifier component checks");
}

#[test]
fn the_tree_and_the_lines_tell_the_run() {
    let view = Sample::default().view();
    let tree = show(&view);
    for part in [
        "✓ stage analyse",
        "✗ stage enrich",
        "✗ attempt 1: differential-expression 1.0.0",
        "✓ attempt 2",
        "diagnosis:",
        "23 MiB",
    ] {
        assert!(tree.contains(part), "{part}\n{tree}");
    }
    let (events, _) = Sample::default().events();
    let lines: Vec<String> = events.iter().map(event_line).collect();
    assert!(lines[0].starts_with("    1  2026-"), "{}", lines[0]);
    assert!(lines.iter().all(|line| !line.contains('\n')));
    assert!(lines.iter().any(|line| line.contains("statistics-recheck accepts, 1 check")), "{lines:#?}");
}

#[test]
fn the_sample_text_is_a_good_template() {
    assert_eq!(check_template(include_str!("sample.md")), []);
}

#[test]
fn a_log_that_is_cut_or_without_its_start_is_an_error() {
    let (events, blobs) = Sample::default().events();
    assert!(super::RunView::fold(&[], &blobs).is_err());
    assert!(super::RunView::fold(&events[1..], &blobs).is_err());
    for end in 1..events.len() {
        let view = super::RunView::fold(&events[..end], &blobs).unwrap();
        assert!(markdown(&view).contains("The run has not ended: its process ended."));
        assert!(!html(&view).is_empty() && !show(&view).is_empty());
    }
    assert!(super::RunView::fold(&events, &super::sample::Memory::default()).is_err());
}

/// The events of the sample, with its one artifact and its subgoal under other names.
fn renamed(subgoal: &str, path: &str) -> (Vec<Logged>, super::sample::Memory) {
    let (mut events, blobs) = Sample::default().events();
    for logged in &mut events {
        match &mut logged.event {
            Event::RunStarted { setup } => {
                setup.task.stages[0].subgoals[0].id = subgoal.into();
            }
            Event::SubgoalOpened { subgoal: id, .. }
            | Event::CallIntended { subgoal: id, .. }
            | Event::CriteriaEvaluated { subgoal: id, .. }
            | Event::SubgoalClosed { subgoal: id, .. }
                if id.as_str() == "de" =>
            {
                *id = subgoal.into();
            }
            Event::OutcomeAccepted { artifacts, .. } => path.clone_into(&mut artifacts[0].path),
            _ => {}
        }
    }
    (events, blobs)
}

#[test]
fn a_strangers_log_names_no_place_outside_of_the_report() {
    let (events, blobs) = renamed("de", "volcano.svg");
    assert!(super::RunView::fold(&events, &blobs).is_ok());
    for (subgoal, path) in [
        ("de", "../../x"),
        ("de", "/etc/cron.d/x"),
        ("de", "a/../../x"),
        ("de", ""),
        ("..", "x"),
        ("../..", "x"),
        ("/etc", "x"),
        ("", "x"),
    ] {
        let (events, blobs) = renamed(subgoal, path);
        let error = super::RunView::fold(&events, &blobs).err().map(|error| format!("{error:#}"));
        let error = error.unwrap_or_else(|| panic!("`{path}` of `{subgoal}` is let through"));
        assert!(error.contains("`outcome-accepted`") && error.contains(&format!("{path:?}")), "{error}");
    }
}

#[test]
fn a_file_named_like_a_subject_is_not_checked_for_its_name() {
    let (mut events, blobs) = renamed("de", "de/summary");
    let view = super::RunView::fold(&events, &blobs).unwrap();
    assert_eq!(view.fact("de/summary").unwrap().verified_by.len(), 3);
    assert!(view.artifacts[0].verified_by.is_empty(), "{:?}", view.artifacts[0].verified_by);
    // Nor is a fact for the name of a file.
    for logged in &mut events {
        if let Event::CallEnded { ended: Ended::Outcome { drafts, .. }, .. } = &mut logged.event {
            drafts.retain(|draft| draft.subject != "de/summary");
        }
    }
    let view = super::RunView::fold(&events, &blobs).unwrap();
    assert!(view.fact("de/summary").unwrap().verified_by.is_empty());
    assert_eq!(view.artifacts[0].verified_by.len(), 3);
}

/// Not a test of anything: writes the sample's page for people to look at.
#[test]
#[ignore = "writes a file to look at"]
fn a_page_to_look_at() {
    let dir = std::env::temp_dir();
    let view = Sample::default().view();
    fs::write(dir.join("checkrein-sample.html"), html(&view)).unwrap();
    fs::write(dir.join("checkrein-sample.md"), markdown(&view)).unwrap();
    let lines: Vec<String> = Sample::default().events().0.iter().map(event_line).collect();
    let path = why(&view, "de/gene/FBgn0039155#/q").unwrap().text();
    fs::write(dir.join("checkrein-sample.txt"), format!("{}\n{path}\n{}\n", show(&view), lines.join("\n")))
        .unwrap();
}

/// A page that is attacked everywhere at once, opened in a browser: nothing runs, nothing is
/// fetched. Markdown and figures too, each opened by itself.
#[test]
#[ignore = "needs a Chromium: CHROMIUM=/path/to/it, or `chromium` on the path"]
fn a_browser_does_nothing_with_a_hostile_report() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    let fetched = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = fetched.clone();
    std::thread::spawn(move || {
        for stream in server.incoming().map_while(Result::ok) {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            drop((&stream).write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
        }
    });
    let act = format!("document.title='pwned';new Image().src='http://{at}/ran'");
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"9\" height=\"9\" onload=\"{act}\">\
         <script>{act}</script><style>@import url(http://{at}/css);</style><image href=\"http://{at}/image\"/>\
         <use href=\"http://{at}/use#x\"/><foreignObject width=\"9\" height=\"9\"><body xmlns=\"http://www.w3.org/1999/xhtml\">\
         <iframe src=\"http://{at}/frame\"/><script>{act}</script></body></foreignObject>\
         <animate attributeName=\"href\" values=\"javascript:{act}\"/><rect width=\"5\" height=\"5\" fill=\"url(http://{at}/fill)\"/></svg>"
    );
    let markup = format!(
        "<img src=x onerror=\"{act}\"><script>{act}</script><iframe src=\"http://{at}/f\"></iframe>\
         <link rel=stylesheet href=\"http://{at}/l\"><meta http-equiv=refresh content=\"0;url=http://{at}/m\">\
         ![x](http://{at}/md) [y](javascript:{act}) <svg onload=\"{act}\"></svg> \"><base href=\"http://{at}/\">"
    );
    let facts = vec![
        ("de/x".to_owned(), json!({ "v": markup, markup.clone(): "v" })),
        ("de/y".to_owned(), json!(markup)),
    ];
    let text = "{{fact:de/x#/v}} and\n\n{{table:de/* | columns a=$last, v=/v}}\n\n{{figure:de/volcano.svg}}\n\n{{artifact:de/volcano.svg}}";
    let sample = Sample {
        text: Some(text.to_owned()),
        facts,
        figure: svg.clone(),
        figure_title: markup.clone(),
        message: markup.clone(),
        note: markup,
        ..Sample::default()
    };
    let view = sample.view();
    let folder = tempfile::tempdir().unwrap();
    let figure = figures(&view)[0].1.to_vec();
    fs::write(folder.path().join("report.html"), html(&view)).unwrap();
    fs::write(folder.path().join("figure.svg"), figure).unwrap();
    // The attack works where nothing stands in its way, or this test would show nothing.
    fs::write(folder.path().join("raw.svg"), svg).unwrap();
    let visit = |file: &str| {
        let browser = std::env::var_os("CHROMIUM").unwrap_or_else(|| "chromium".into());
        let out = std::process::Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}", folder.path().join(file).display()))
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let fetched = fetched.swap(0, std::sync::atomic::Ordering::SeqCst);
        (String::from_utf8(out.stdout).unwrap(), fetched)
    };
    let (page, fetched) = visit("report.html");
    assert!(page.contains("<title>What knocking down pasilla changes</title>"), "{page:.400}");
    assert_eq!(fetched, 0, "the page fetched something");
    assert_eq!(visit("figure.svg").1, 0, "the figure fetched something");
    assert!(visit("raw.svg").1 > 0, "the attack is none");
}
