//! Logs and percentiles.

use super::place::{bounded, bounded_u32};
use crate::job::draft::{Draft, Value};
use crate::job::list::parse_percentiles;
use crate::job::number::parse_integer;
use crate::job::word::parse_bool;

/// The coarsest logged histogram (HOWTO, `log_hist_coarseness`).
const COARSENESS_MAX: u64 = 6;
/// The longest interval: that of a 32-bit number of milliseconds, as in fio.
const MSEC_MAX: u64 = 4_294_967_295;

type Done = Result<(), String>;

pub fn write_bw_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.bw = Some(value.text.to_owned());
    Ok(())
}

pub fn write_iops_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.iops = Some(value.text.to_owned());
    Ok(())
}

pub fn write_lat_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.lat = Some(value.text.to_owned());
    Ok(())
}

pub fn log_avg_msec(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.avg_msec = parse_integer(value.text, value.kb_base)?;
    Ok(())
}

pub fn write_hist_log(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.hist = Some(value.text.to_owned());
    Ok(())
}

pub fn log_hist_msec(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.hist_msec = bounded(value, 0, MSEC_MAX)?;
    Ok(())
}

pub fn log_hist_coarseness(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.hist_coarseness = bounded_u32(value, 0, COARSENESS_MAX)?;
    Ok(())
}

pub fn per_job_logs(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.per_job = parse_bool(value.text)?;
    Ok(())
}

pub fn percentile_list(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.percentiles.list = parse_percentiles(value.text)?;
    Ok(())
}

pub fn clat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.percentiles.clat = parse_bool(value.text)?;
    Ok(())
}

pub fn lat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.percentiles.lat = parse_bool(value.text)?;
    Ok(())
}

pub fn slat_percentiles(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.percentiles.slat = parse_bool(value.text)?;
    Ok(())
}
