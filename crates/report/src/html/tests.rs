//! What the page must be like whatever the report; a browser opens one from outside.

use super::*;
use crate::chart::{Axis, Panel, Point, Role, Series};

fn report(text: &str) -> Report {
    let panel =
        Panel::new(text).series(Series::new(text, Role::Ours, vec![Point::new(1.0, 2.0).noted(text)]));
    let mut table = Table::new(text, &[text]);
    table.push(vec![text.to_owned()]);
    Report::new(text, text)
        .claim(text)
        .method(text)
        .fact(text, text)
        .verdicts(vec![Verdict::decided(text, text, true, text), Verdict::not_evaluated(text, text, text)])
        .chart(ChartSpec::new(text, Axis::linear(text, text), Axis::linear(text, text)).panel(panel))
        .table(table)
        .section(text, text)
}

#[test]
fn texts_of_any_kind_stay_texts() {
    let page = render(&report("</style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'"));
    let page = page.expect("a valid report");
    assert_eq!(page.matches("<script>").count(), 1, "only our own");
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(!page.contains("<img"));
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = render(&report("t")).expect("a valid report");
    for found in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(found), "{found}");
    }
    let addresses = page.matches("http").count();
    // Names of the SVG namespace, one for each size, and the name of the policy's header.
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count() + 1);
}

#[test]
fn every_number_is_in_a_table_and_every_verdict_in_words() {
    let page = render(&report("t")).expect("a valid report");
    assert!(page.contains("<td class=\"number\">2</td>"), "{page}");
    assert!(page.contains("holds") && page.contains("1 not evaluated"));
    assert_eq!(page, render(&report("t")).expect("a valid report"), "the same bytes each time");
}

#[test]
fn reports_without_results_are_pages_too() {
    let page = render(&Report::new("id", "title")).expect("a valid report");
    assert!(!page.contains("Verdicts") && !page.contains("<h2>") && !page.contains("<dl>"));
}

#[test]
fn refused_charts_refuse_the_page() {
    let mut broken = report("t");
    broken.charts[0].panels.clear();
    assert!(render(&broken).is_err());
}

#[test]
fn a_report_begins_under_the_heading_it_names() {
    let found =
        render(&Report::new("t", "t").opening("What was found", "It is fast.")).expect("a valid report");
    assert!(found.contains("<h2>What was found</h2>") && !found.contains("Claim"), "{found}");
    let claim = render(&Report::new("t", "t").claim("It is fast.")).expect("a valid report");
    assert!(claim.contains("<h2>Claim</h2>"), "{claim}");
}

#[test]
fn the_numbers_asked_for_most_stand_before_everything_else() {
    let tile = Tile { label: "Latency".into(), value: "81.2 us".into(), note: "<b>".into() };
    let page = render(&Report::new("t", "t").opening("What was found", "It is fast.").tile(tile));
    let page = page.expect("a valid report");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing in {page}"));
    assert!(at("<b>81.2 µs</b>") < at("What was found"));
    assert!(page.contains("&lt;b&gt;"), "{page}");
    let without = render(&Report::new("t", "t")).expect("a valid report");
    assert!(!without.contains("class=\"tiles\""), "{without}");
}
