//! A drive's settings as the text of a drive file.

use super::drive_spec::DriveSpec;
use super::fault::NamedFault;
use super::fields::FIELDS;
use std::fmt::Write as _;

/// Every setting that applies, table by table, then the explicit faults.
///
/// # Panics
/// If an explicit fault names a chunk the drive does not have.
pub(super) fn write(spec: &DriveSpec) -> String {
    let mut text = String::new();
    let mut table = "";
    for field in FIELDS {
        let Some(value) = field.show(&spec.config) else { continue };
        let (new_table, name) = field.key.split_once('.').unwrap_or(("", field.key));
        if new_table != table {
            table = new_table;
            writeln!(text, "\n[{table}]").expect("a string takes any text");
        }
        writeln!(text, "{name} = {value}").expect("a string takes any text");
    }
    for (index, fault) in spec.faults.iter().enumerate() {
        let named = NamedFault::of(fault, &spec.config.geometry, index, "");
        named.expect("explicit faults are checked when they are added").show(&mut text);
    }
    text
}
