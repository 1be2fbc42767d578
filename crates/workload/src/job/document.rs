//! The option tables as Markdown, for `docs/fio.md`.

use super::program::{ProgramClass, program_table};
use super::table::{Class, OptionRow, option_table};

/// The generated part of `docs/fio.md`: one table per class, then fio's program options.
#[must_use]
pub fn option_markdown() -> String {
    let mut text = String::new();
    let of = |wanted: fn(&Class) -> bool| option_table().iter().filter(move |row| wanted(&row.class));
    text.push_str("### Implemented\n\n| option | meaning |\n|---|---|\n");
    for row in of(|class| matches!(class, Class::Implemented)) {
        text.push_str(&format!("| {} | {} |\n", names(row), row.doc));
    }
    text.push_str("\n### Accepted with a printed note\n\n| option | meaning in fio | what happens here |\n|---|---|---|\n");
    for row in of(|class| matches!(class, Class::Noted(_))) {
        text.push_str(&format!("| {} | {} | {} |\n", names(row), row.doc, noted(row)));
    }
    text.push_str(
        "\n### Refused by name\n\n| option | meaning in fio | why | instead |\n|---|---|---|---|\n",
    );
    for row in of(|class| matches!(class, Class::Refused { .. })) {
        if let Class::Refused { reason, instead } = row.class {
            text.push_str(&format!("| {} | {} | {reason} | {instead} |\n", names(row), row.doc));
        }
    }
    text.push_str(
        "\n### Program options\n\n| option | meaning in fio | what happens here |\n|---|---|---|\n",
    );
    for row in program_table() {
        let what = match row.class {
            ProgramClass::Implemented => "implemented".to_owned(),
            ProgramClass::Noted(reason) => format!("noted: {reason}"),
            ProgramClass::Refused(reason) => format!("refused: {reason}"),
        };
        text.push_str(&format!("| `--{}` | {} | {what} |\n", row.name, row.doc));
    }
    text
}

fn names(row: &OptionRow) -> String {
    let all: Vec<String> =
        std::iter::once(&row.name).chain(row.aliases).map(|name| format!("`{name}`")).collect();
    all.join(", ")
}

fn noted(row: &OptionRow) -> String {
    match (row.class, row.shape) {
        (Class::Noted(reason), super::table::Shape::Only(values)) => {
            format!("only `{}`; {reason}", values.join("`, `"))
        }
        (Class::Noted(reason), _) => reason.to_owned(),
        (Class::Implemented | Class::Refused { .. }, _) => String::new(),
    }
}
