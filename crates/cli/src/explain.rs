//! `ocssd explain`: a status in words.

use crate::table;
use anyhow::Context;
use ocssd_lightnvm::Status;
use serde_json::json;

/// Prints what a status means.
pub fn explain(text: &str, decimal: bool, as_json: bool) -> anyhow::Result<()> {
    let digits = text.trim().trim_start_matches("0x").trim_start_matches("0X").trim_end_matches(['h', 'H']);
    let base = if decimal { 10 } else { 16 };
    let bits = u16::from_str_radix(digits, base).with_context(|| {
        format!("a status is a number of up to 16 bits, such as 2F2h or 0x2f2, but \"{text}\" was given")
    })?;
    let status = Status::from_bits(bits);
    let (name, meaning) = (status.name(), status.meaning());
    if as_json {
        table::print_json(&json!({ "status": status.0, "type": status.0 >> 8, "code": status.0 & 0xFF,
            "name": name, "meaning": meaning, "do_not_retry": bits & 0x4000 != 0 }));
        return Ok(());
    }
    table::line(&format!("{:03X}h  {name}", status.0));
    table::line(&format!("      type {}, code {:02X}h", status.0 >> 8, status.0 & 0xFF));
    table::line(&format!("      {meaning}"));
    if bits & 0x4000 != 0 {
        table::line("      with the Do Not Retry bit (4000h), as Linux compares OCSSD 1.2 statuses");
    }
    Ok(())
}
