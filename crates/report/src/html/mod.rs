//! A report as one HTML file: no network, pictures inline, every number in a table.
//!
//! Each chart is there twice, for a page and for a telephone; the style sheet shows one. The script shows values under
//! the pointer and switches series; without it the page loses nothing else.

use crate::chart::{ChartError, ChartSpec};
use crate::markup::Markup;
use crate::palette;
use crate::report::{Report, Section, Tile};
use crate::svg::{self, Width};
use crate::table::Table;
use crate::verdict::{Outcome, Verdict};

/// How the page looks; colours come from [`palette`].
const STYLE: &str = include_str!("style.css");
/// What the page does.
const SCRIPT: &str = include_str!("script.js");

/// Nothing may be fetched, whatever a text in a report says.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Makes the page.
///
/// # Errors
/// The first chart that is refused.
pub fn render(report: &Report) -> Result<String, ChartError> {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n").open("html", &[("lang", "en")]).newline();
    head(&mut page, report);
    page.open("body", &[]).newline().open("main", &[]).newline();
    page.element("p", &[("class", "id")], &report.id).newline();
    page.element("h1", &[], &report.title).newline();
    verdict_counts(&mut page, &report.verdicts);
    tiles(&mut page, &report.tiles);
    text_block(&mut page, &report.opening.title, &report.opening.text);
    verdicts(&mut page, &report.verdicts);
    for chart in &report.charts {
        figure(&mut page, chart)?;
    }
    for part in &report.tables {
        page.element("h2", &[], &part.title).newline();
        table(&mut page, part);
    }
    for Section { title, text } in &report.sections {
        text_block(&mut page, title, text);
    }
    text_block(&mut page, "How it was run", &report.method);
    facts(&mut page, report);
    page.close().newline();
    page.element("div", &[("id", "tip"), ("role", "status"), ("hidden", "")], "").newline();
    page.open("script", &[]).raw("\n").raw(SCRIPT).close().newline();
    page.close().newline().close().newline();
    Ok(page.finish())
}

fn head(page: &mut Markup, report: &Report) {
    page.open("head", &[]).newline();
    page.raw("<meta charset=\"utf-8\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.raw(&format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"));
    page.element("title", &[], &format!("{} - {}", report.id, report.title)).newline();
    page.open("style", &[]).raw("\n").raw(&colours()).raw(STYLE).close().newline();
    page.close().newline();
}

/// The palette as variables, and the rules that put them in place of the pictures' own colours.
fn colours() -> String {
    let variables = |hues: &[&str]| {
        hues.iter().enumerate().map(|(index, hue)| format!("--h{index}:{hue};")).collect::<String>()
    };
    let light = variables(&palette::LIGHT);
    let dark = variables(&palette::DARK);
    let classes: String =
        (0..palette::LIGHT.len()).map(|index| format!(".h{index}{{color:var(--h{index})}}\n")).collect();
    format!(":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{classes}")
}

/// The numbers asked for most, side by side.
fn tiles(page: &mut Markup, tiles: &[Tile]) {
    if tiles.is_empty() {
        return;
    }
    page.open("ul", &[("class", "tiles")]).newline();
    for tile in tiles {
        page.open("li", &[]).element("span", &[("class", "label")], &tile.label).newline();
        page.element("b", &[], &tile.value).newline();
        page.element("span", &[("class", "numbers")], &tile.note).close().newline();
    }
    page.close().newline();
}

/// How many claims came out which way, for a reader in a hurry.
fn verdict_counts(page: &mut Markup, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    page.open("p", &[("class", "counts")]);
    for outcome in [Outcome::Holds, Outcome::Fails, Outcome::NotEvaluated] {
        let count = verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
        if count > 0 {
            page.element(
                "span",
                &[("class", badge(outcome))],
                &format!("{count} {}", plural(outcome, count)),
            );
            page.raw(" ");
        }
    }
    page.close().newline();
}

/// The word of a result behind a count.
fn plural(outcome: Outcome, count: usize) -> &'static str {
    match (outcome, count) {
        (Outcome::Holds, 2..) => "hold",
        (Outcome::Fails, 2..) => "fail",
        _ => outcome.word(),
    }
}

fn badge(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "badge holds",
        Outcome::Fails => "badge fails",
        Outcome::NotEvaluated => "badge open",
    }
}

fn verdicts(page: &mut Markup, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    page.element("h2", &[], "Verdicts").newline().open("ul", &[("class", "verdicts")]).newline();
    for verdict in verdicts {
        page.open("li", &[]).open("p", &[]);
        page.element("span", &[("class", badge(verdict.outcome))], verdict.outcome.word()).raw(" ");
        page.element("b", &[], &verdict.id).text(&format!(" {}", verdict.claim)).close();
        page.element("p", &[("class", "numbers")], &verdict.sentence);
        page.close().newline();
    }
    page.close().newline();
}

/// A heading with paragraphs; nothing when there is no text.
fn text_block(page: &mut Markup, title: &str, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    page.element("h2", &[], title).newline();
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        page.element("p", &[], paragraph.trim()).newline();
    }
}

fn facts(page: &mut Markup, report: &Report) {
    if report.header.is_empty() {
        return;
    }
    page.open("dl", &[]).newline();
    for fact in &report.header {
        page.element("dt", &[], &fact.name).element("dd", &[], &fact.value).newline();
    }
    page.close().newline();
}

fn figure(page: &mut Markup, chart: &ChartSpec) -> Result<(), ChartError> {
    page.open("figure", &[]).newline();
    for (width, class) in [(Width::Page, "wide"), (Width::Phone, "narrow")] {
        page.open("div", &[("class", class)]).raw(&svg::render(chart, width)?).close().newline();
    }
    page.open("details", &[]).element("summary", &[], "All numbers of this picture").newline();
    table(page, &Table::of_chart(chart));
    page.close().newline().close().newline();
    Ok(())
}

/// A table that scrolls by itself when it is wider than the page. Columns that are empty throughout are left out.
fn table(page: &mut Markup, table: &Table) {
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|&column| table.rows.is_empty() || table.rows.iter().any(|row| !row[column].is_empty()))
        .collect();
    page.open("div", &[("class", "scroll"), ("tabindex", "0")]).open("table", &[]).newline();
    page.open("thead", &[]).open("tr", &[]);
    for &column in &shown {
        page.element("th", &[("scope", "col")], &table.columns[column]);
    }
    page.close().close().newline().open("tbody", &[]).newline();
    for row in &table.rows {
        page.open("tr", &[]);
        for &column in &shown {
            let cell = &row[column];
            let class = if cell.parse::<f64>().is_ok() { "number" } else { "" };
            let attributes = [("class", class)];
            page.element("td", if class.is_empty() { &[] } else { &attributes }, cell);
        }
        page.close().newline();
    }
    page.close().close().close().newline();
}

#[cfg(test)]
mod tests;
