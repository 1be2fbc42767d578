//! `ocssd options`: every fio option and what is done with it.

use crate::table;
use ocssd_workload::job::{Class, option_table};
use serde_json::json;

/// Lists them.
pub fn options(as_json: bool) {
    let class = |class: &Class| match class {
        Class::Implemented => ("carried out", String::new()),
        Class::Noted(reason) => ("noted", (*reason).to_owned()),
        Class::Refused { reason, instead } => ("refused", format!("{reason}; {instead}")),
    };
    if as_json {
        let list: Vec<_> = option_table()
            .iter()
            .map(|row| {
                json!({ "name": row.name, "aliases": row.aliases, "class": class(&row.class).0,
                "reason": class(&row.class).1, "about": row.doc })
            })
            .collect();
        table::print_json(&json!(list));
        return;
    }
    let rows: Vec<Vec<String>> = option_table()
        .iter()
        .map(|row| vec![row.name.to_owned(), class(&row.class).0.to_owned(), row.doc.to_owned()])
        .collect();
    table::print(&["option", "class", "meaning"], &rows);
    table::line("\nNoted and refused options say why when they are used; docs/fio.md lists the reasons.");
}
