//! Logs and percentiles.

use crate::job::draft::{Draft, Value};
use crate::job::list::parse_percentiles;
use crate::job::number::parse_integer;
use crate::job::word::parse_bool;

type Done = Result<(), String>;

pub fn write_bw_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.write_bw_log = Some(value.text.to_owned());
    Ok(())
}

pub fn write_iops_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.write_iops_log = Some(value.text.to_owned());
    Ok(())
}

pub fn write_lat_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.write_lat_log = Some(value.text.to_owned());
    Ok(())
}

pub fn log_avg_msec(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.log_avg_msec = parse_integer(value.text, value.kb_base)?;
    Ok(())
}

pub fn percentile_list(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.percentile_list = parse_percentiles(value.text)?;
    Ok(())
}

pub fn clat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.clat_percentiles = parse_bool(value.text)?;
    Ok(())
}

pub fn lat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.lat_percentiles = parse_bool(value.text)?;
    Ok(())
}

pub fn slat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.slat_percentiles = parse_bool(value.text)?;
    Ok(())
}
