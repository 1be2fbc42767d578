//! Charts drawn from real tables: valid XML, everything there, nothing outside the picture.
//!
//! The pictures stay in the target folder, to be looked at.

mod sample;
mod tables;

use ocssd_report::svg::{self, Width};
use ocssd_report::{ChartSpec, Report, png};
use resvg::usvg;
use std::path::Path;

fn charts() -> Vec<(&'static str, ChartSpec)> {
    let report = sample::report();
    ["ksc-writes", "fast-bars", "fast-reads", "steps"].into_iter().zip(report.charts).collect()
}

#[test]
fn every_series_and_point_is_drawn_once() {
    for (name, chart) in charts() {
        for width in [Width::Page, Width::Phone] {
            let text = svg::render(&chart, width).expect("the sample is valid");
            let document = roxmltree::Document::parse(&text).expect("our SVG is XML");
            let count = |class: &str| {
                let has = |node: &roxmltree::Node<'_, '_>| {
                    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|c| c == class))
                };
                document.descendants().filter(has).count()
            };
            let series: usize = chart.panels.iter().map(|panel| panel.series.len()).sum();
            let points: usize =
                chart.panels.iter().flat_map(|panel| &panel.series).map(|series| series.points.len()).sum();
            assert_eq!((count("series"), count("pt")), (series, points), "{name} {width:?}");
            assert_eq!(count("panel"), chart.panels.len(), "{name} {width:?}");
        }
    }
}

#[test]
fn texts_lie_inside_the_picture_and_apart_from_each_other() {
    for (name, chart) in charts() {
        for width in [Width::Page, Width::Phone] {
            let text = svg::render(&chart, width).expect("the sample is valid");
            let mut options =
                usvg::Options { font_family: "Noto Sans".to_owned(), ..usvg::Options::default() };
            for file in [notosans::REGULAR_TTF, notosans::BOLD_TTF] {
                options.fontdb_mut().load_font_data(file.to_vec());
            }
            let tree = usvg::Tree::from_str(&text, &options).expect("our SVG can be drawn");
            let mut boxes = Vec::new();
            collect_texts(tree.root(), &mut boxes);
            assert!(boxes.len() > 10, "{name}: texts are found");
            for (index, (words, area)) in boxes.iter().enumerate() {
                let is_inside = area.left() >= 0.0
                    && area.top() >= 0.0
                    && area.right() <= tree.size().width()
                    && area.bottom() <= tree.size().height();
                assert!(is_inside, "{name} {width:?}: `{words}` at {area:?} leaves {:?}", tree.size());
                for (other, place) in &boxes[..index] {
                    let is_apart = area.right() <= place.left()
                        || place.right() <= area.left()
                        || area.bottom() <= place.top()
                        || place.bottom() <= area.top();
                    assert!(
                        is_apart,
                        "{name} {width:?}: `{words}` at {area:?} lies on `{other}` at {place:?}"
                    );
                }
            }
        }
    }
}

/// The drawn area of every text below a group.
fn collect_texts(group: &usvg::Group, boxes: &mut Vec<(String, usvg::Rect)>) {
    for node in group.children() {
        match node {
            usvg::Node::Group(inner) => collect_texts(inner, boxes),
            usvg::Node::Text(text) => {
                let words = text.chunks().iter().map(usvg::TextChunk::text).collect::<String>();
                // The outlines: the box of the line would include room that no letter uses.
                boxes.push((words, text.flattened().abs_bounding_box()));
            }
            usvg::Node::Path(_) | usvg::Node::Image(_) => {}
        }
    }
}

#[test]
fn pictures_are_the_same_each_time_and_kept_for_looking() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, chart) in charts() {
        let first = svg::render(&chart, Width::Page).expect("the sample is valid");
        assert_eq!(first, svg::render(&chart, Width::Page).expect("the sample is valid"), "{name}");
        std::fs::write(folder.join(format!("{name}.svg")), &first).expect("the target folder can be written");
        let picture = png::render(&chart, 1.5).expect("the sample is valid");
        std::fs::write(folder.join(format!("{name}.png")), picture)
            .expect("the target folder can be written");
    }
}

#[test]
fn descriptions_survive_json() {
    let report = sample::report();
    let text = serde_json::to_string(&report).expect("a report is data");
    let back: Report = serde_json::from_str(&text).expect("our own JSON");
    assert_eq!(back, report);
    let wrong = text.replacen("\"title\"", "\"titel\"", 1);
    assert!(serde_json::from_str::<Report>(&wrong).is_err(), "unknown keys are refused");
}
