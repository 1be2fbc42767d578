//! `docs/fio.md` says what the table says.

use crate::job::option_markdown;

const DOCUMENT: &str = include_str!("../../../../../docs/fio.md");
const START: &str = "<!-- generated from the option table: start -->\n";
const END: &str = "<!-- generated from the option table: end -->";

#[test]
fn the_documents_tables_are_the_generated_ones() {
    let (_, rest) = DOCUMENT.split_once(START).expect("docs/fio.md has the mark where the tables start");
    let (tables, _) = rest.split_once(END).expect("docs/fio.md has the mark where the tables end");
    let generated = format!("\n{}\n", option_markdown());
    assert!(tables == generated, "replace the text between the marks of docs/fio.md by this:\n{generated}");
}
