//! Reads the picture as a person would: numbers off the axes, points, labels, legend; and holds
//! them against the table. In the end the picture is drawn again and compared.

use checkrein_skill::prelude::*;

use crate::plot::{Class, Plot, height};
use crate::skill::{Args, FILE, SUBJECT, content, plot};
use crate::svg::{self, LAYERS};

/// Half of the last digit of a place, and as much again for that of the ticks, in pixels.
const PIXELS: f64 = 0.11;

pub(crate) fn verify(submission: &Submission<Args>) -> Result<Verdict, Failure> {
    let performed = submission.performed()?;
    let plot = plot(&performed.call.args)?;
    let mut verdict = Verdict::new();
    check_fact(&plot, &performed.call.args, &performed.outcome, &mut verdict);
    let paths: Vec<&str> =
        performed.outcome.artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    if verdict.equal("artifacts", "one artifact is expected", &vec![FILE], &paths, "/artifacts") {
        check_picture(&plot, &files::read_work(FILE)?, &mut verdict);
    }
    verdict.cap_findings(20);
    Ok(verdict)
}

fn check_fact(plot: &Plot, args: &Args, outcome: &Outcome, verdict: &mut Verdict) {
    let right = content(plot);
    verdict.equal(
        "content",
        "the content is not what the table says",
        &right,
        &outcome.content,
        "/content",
    );
    let [fact] = outcome.facts.as_slice() else {
        let message = "one fact is expected";
        verdict.finding(Finding::error("once", message, 1, outcome.facts.len()).at("/facts"));
        return;
    };
    let frame = [SUBJECT, "figure", args.table.as_str()];
    let found = [fact.subject.as_str(), fact.kind.as_str(), fact.source.as_str()];
    let framed =
        verdict.equal("fact", "another subject, kind or source", &frame, &found, "/facts/0");
    let message = "the fact is not what the table says";
    if verdict.equal("fact", message, &right, &fact.content, "/facts/0/content") && framed {
        let note = format!(
            "{} points, {} up and {} down, counted again",
            plot.genes.len(),
            plot.up,
            plot.down
        );
        verdict.check("fact", [SUBJECT], note);
    }
}

fn check_picture(plot: &Plot, picture: &str, verdict: &mut Verdict) {
    let before = verdict.findings.len();
    let farthest = check_points(plot, picture, verdict);
    check_labels(plot, picture, verdict);
    if picture != svg::render(plot) {
        let right = svg::render(plot);
        let line = right.lines().zip(picture.lines()).find(|(right, found)| right != found);
        let (right, found) = line.unwrap_or(("the whole picture", "a part of it, or more"));
        let cut = |text: &str| text.chars().take(200).collect::<String>();
        let finding =
            Finding::error("picture", "drawn again it looks different", cut(right), cut(found));
        verdict.finding(finding.at(FILE));
    }
    if verdict.findings.len() == before {
        let note = format!(
            "every point read off the axes, at most {farthest:.2} pixels away; {} labels are the top ones",
            plot.labelled.len()
        );
        verdict.check("picture", [FILE], note);
    }
}

/// The element with this id, from its tag to its end.
fn element<'a>(picture: &'a str, id: &str, end: &str) -> Option<&'a str> {
    let start = picture.find(&format!("id=\"{id}\""))?;
    let rest = &picture[start..];
    rest.find(end).map(|end| &rest[..end])
}

/// From a number to its place, as the first and the last tick of an axis have it.
struct Axis {
    ticks: [(f64, f64); 2],
}

impl Axis {
    fn read(picture: &str, id: &str, attribute: &str) -> Option<Self> {
        let mut ticks = element(picture, id, "</g>")?.split("<text ").skip(1).filter_map(|tick| {
            let place =
                tick.split_once(&format!("{attribute}=\""))?.1.split_once('"')?.0.parse().ok()?;
            let label = tick.split_once('>')?.1.split_once('<')?.0.replace('−', "-");
            Some((label.parse().ok()?, place))
        });
        let first = ticks.next()?;
        Some(Self { ticks: [first, ticks.last()?] })
    }

    fn place(&self, number: f64) -> f64 {
        let [(a, from), (b, to)] = self.ticks;
        from + (number - a) / (b - a) * (to - from)
    }
}

/// How far the farthest point is from where the axes say it should be, in pixels.
fn check_points(plot: &Plot, picture: &str, verdict: &mut Verdict) -> f64 {
    let axes = (Axis::read(picture, "x-axis", "x"), Axis::read(picture, "y-axis", "y"));
    let (Some(x), Some(y)) = axes else {
        let finding =
            Finding::error("axes", "the axes cannot be read", "two ticks or more an axis", "fewer");
        verdict.finding(finding.at(FILE));
        return f64::INFINITY;
    };
    let mut farthest: f64 = 0.0;
    for (class, id, _, _) in LAYERS {
        let drawn = drawn_points(picture, id);
        let genes: Vec<_> =
            plot.genes.iter().zip(&plot.classes).filter(|(_, own)| **own == class).collect();
        let message = format!("another number of points is drawn as `{id}`");
        verdict.equal("points", message, &genes.len(), &drawn.len(), FILE);
        for ((gene, _), [drawn_x, drawn_y]) in genes.into_iter().zip(drawn) {
            let right = [x.place(gene.change), y.place(height(gene.p))];
            let away = (right[0] - drawn_x).abs().max((right[1] - drawn_y).abs());
            farthest = farthest.max(away);
            if away.is_nan() || away > tolerance(class) {
                let message = format!("gene `{}` is drawn elsewhere", gene.id);
                verdict.finding(
                    Finding::error("position", message, right, [drawn_x, drawn_y]).at(FILE),
                );
            }
        }
    }
    farthest
}

/// The coloured points lie outermost, where the ticks' rounding is stretched most.
fn tolerance(class: Class) -> f64 {
    match class {
        Class::Neither => 2.0 * PIXELS,
        Class::Up | Class::Down => 3.0 * PIXELS,
    }
}

fn drawn_points(picture: &str, id: &str) -> Vec<[f64; 2]> {
    let path = element(picture, id, "/>")
        .and_then(|path| path.split_once(" d=\""))
        .map_or("", |(_, path)| path);
    let point = |point: &str| {
        let (x, y) = point.split_once("h0")?.0.split_once(' ')?;
        Some([x.parse().ok()?, y.parse().ok()?])
    };
    path.split('M').skip(1).filter_map(point).collect()
}

fn check_labels(plot: &Plot, picture: &str, verdict: &mut Verdict) {
    let right: Vec<String> =
        plot.labelled.iter().map(|at| svg::escape(&plot.genes[*at].id)).collect();
    let text = element(picture, "labels", "</g>").unwrap_or_default();
    let found: Vec<String> = text
        .split("<text ")
        .skip(1)
        .filter_map(|label| Some(label.split_once('>')?.1.split_once('<')?.0.to_owned()))
        .collect();
    verdict.equal("labels", "other genes are labelled than the top ones", &right, &found, FILE);
}
