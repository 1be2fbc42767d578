//! The table of claims in `experiments/README.md`, made from kept rows, so that it cannot say what a report does not.
//!
//! Deliberately not here: the words around it.

use super::catalogue::ALL;
use super::keep;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::path::Path;

/// The lines before and after the table in a document.
const MARKS: [&str; 2] =
    ["<!-- claims: made by `ocssd experiment claims --write` -->\n", "<!-- end of claims -->\n"];

/// The table of everything kept in the folders of `folder`, as Markdown.
///
/// # Errors
/// A sentence, if the rows of an experiment are not there or cannot be judged.
pub fn table(folder: &Path) -> anyhow::Result<String> {
    let mut text = String::from("| figure | claim | verdict | by these numbers |\n|---|---|---|---|\n");
    let mut counts = String::from("| figure | what | numbers within 10 % of the paper's |\n|---|---|---|\n");
    for experiment in ALL {
        let (ours, provenance) = keep::read_run(&folder.join(experiment.id), experiment)?;
        let (report, comparison) = keep::make_report(experiment, ours, &provenance)?;
        for verdict in &report.verdicts {
            let verdict_id = &verdict.id;
            let (claim, sentence) = (cell(&verdict.claim), cell(&verdict.sentence));
            let outcome = match verdict.outcome.word() {
                "fails" => "**fails**",
                word => word,
            };
            writeln!(text, "| `{}` {verdict_id} | {claim} | {outcome} | {sentence} |", experiment.id)?;
        }
        writeln!(counts, "| `{}` | {} | {} |", experiment.id, experiment.title, comparison.count())?;
    }
    Ok(format!("{counts}\n{text}"))
}

/// A text that ends no cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}

/// The document with this table between its marks.
///
/// # Errors
/// A sentence, if the marks are not there.
pub fn within(document: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = MARKS;
    let found = document.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{begin}\n{table}\n{end}{after}"))
    });
    found.with_context(|| {
        format!("the table goes between the lines {}and {}put them there", MARKS[0], MARKS[1])
    })
}

/// Prints the table, or puts it into a document.
///
/// # Errors
/// As [`table`] and [`within`], or the document cannot be read or written.
pub fn claims(folder: &Path, write: Option<&Path>) -> anyhow::Result<()> {
    let table = table(folder)?;
    let Some(path) = write else {
        crate::table::line(&table);
        return Ok(());
    };
    let document =
        std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let document = within(&document, &table)?;
    if let Err(error) = std::fs::write(path, document) {
        bail!("{} cannot be written: {error}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_table_is_the_one_the_kept_rows_make() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let document = std::fs::read_to_string(folder.join("README.md")).expect("the document is kept");
        let made =
            within(&document, &table(&folder).expect("kept rows can be judged")).expect("it has the marks");
        assert!(
            made == document,
            "experiments/README.md does not say what the rows beside it do; run: \
             ocssd experiment claims --folder experiments --write experiments/README.md"
        );
    }

    #[test]
    fn a_document_without_marks_is_refused_and_what_is_between_them_replaced() {
        let error = within("# Claims\n", "| a |\n").expect_err("no marks").to_string();
        assert!(error.contains("put them there"), "{error}");
        let document = format!("before\n{}old\n{}after\n", MARKS[0], MARKS[1]);
        let made = within(&document, "| a |\n").expect("marks");
        assert_eq!(made, format!("before\n{}\n| a |\n\n{}after\n", MARKS[0], MARKS[1]));
        assert_eq!(within(&made, "| a |\n").expect("marks"), made);
    }
}
