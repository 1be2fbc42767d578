//! What SVG must be like whatever the chart; drawing real tables is tested from outside.

use super::*;
use crate::chart::{Axis, Panel, Point, Role, Series};

fn chart(role: Role, title: &str) -> ChartSpec {
    let points = vec![Point::new(1.0, 1.0).noted(title), Point::new(2.0, 3.0).between(2.0, 4.0)];
    let panel = Panel::new(title).series(Series::new(title, role, points)).rule(2.0, title).note(title);
    ChartSpec::new(title, Axis::linear(title, ""), Axis::linear("y", "us")).source(title).panel(panel)
}

#[test]
fn texts_of_any_kind_stay_texts() {
    let evil = "</text><script>alert('&amp;')</script>\"\u{1} \u{1f600} 한글";
    for width in [Width::Page, Width::Phone] {
        let text = render(&chart(Role::Ours, evil), width).expect("a valid chart");
        let document = roxmltree::Document::parse(&text).expect("valid XML");
        assert!(document.descendants().all(|node| !node.has_tag_name("script")));
    }
}

#[test]
fn the_papers_numbers_are_hollow_and_dashed_and_ours_are_not() {
    for (role, is_paper) in [(Role::Paper, true), (Role::Ours, false)] {
        let text = render(&chart(role, "t"), Width::Page).expect("a valid chart");
        assert_eq!(text.contains("class=\"hollow\""), is_paper, "{role:?}");
        assert_eq!(text.contains(&format!("stroke-dasharray=\"{}\"", painter::DASHES)), is_paper, "{role:?}");
    }
}

#[test]
fn both_sides_of_a_series_share_a_hue() {
    let mut spec = chart(Role::Ours, "a");
    let paper = Series::new("a", Role::Paper, vec![Point::new(1.0, 2.0)]);
    let other = Series::new("b", Role::Paper, vec![Point::new(1.0, 2.0)]);
    spec.panels[0].series.extend([other, paper]);
    let text = render(&spec, Width::Page).expect("a valid chart");
    for class in ["series h0 ours", "series h0 paper", "series h1 paper"] {
        assert_eq!(text.matches(&format!("class=\"{class}\"")).count(), 1, "{class}");
    }
}

#[test]
fn phones_get_one_panel_a_row() {
    let one = chart(Role::Ours, "a");
    let two = one.clone().panel(one.panels[0].clone());
    let height = |spec: &ChartSpec, width| {
        let text = render(spec, width).expect("a valid chart");
        let document = roxmltree::Document::parse(&text).expect("valid XML");
        let height = document.root_element().attribute("height").and_then(|text| text.parse::<f64>().ok());
        height.expect("the picture has a height")
    };
    assert!(height(&two, Width::Page) <= height(&one, Width::Page));
    assert!(height(&two, Width::Phone) > 1.5 * height(&one, Width::Phone));
}

#[test]
fn refused_charts_are_not_drawn() {
    let empty = ChartSpec { panels: vec![], ..chart(Role::Ours, "a") };
    assert!(render(&empty, Width::Page).is_err());
}

#[test]
fn extreme_numbers_are_drawn_inside_the_picture() {
    let numbers = [-1e18, -1.0, 0.0, 1e-18, 1e-9, 1.0, 1.000_000_000_1, 1e6, 1e18];
    for low in numbers {
        for high in numbers {
            for axis in [Axis::linear("a", ""), Axis::log2("a", ""), Axis::log10("a", "")] {
                let points = vec![Point::new(low, high), Point::new(high, low)];
                let panel =
                    Panel::new("").series(Series::new("s", Role::Ours, points).style(crate::Style::Steps));
                let spec = ChartSpec::new("t", axis.clone(), axis).panel(panel);
                match render(&spec, Width::Page) {
                    Ok(text) => {
                        assert!(!text.contains("NaN") && !text.contains("inf"), "{low} {high}: {text}")
                    }
                    Err(error) => assert!(low.min(high) <= 0.0, "{low} {high}: {error}"),
                }
            }
        }
    }
}
