//! What a job must keep to, and when it has: least rates, a latency target, steady state, a share of a flow.

use super::pace::cap;
use super::place::bounded_u32;
use crate::job::draft::{Draft, Value};
use crate::job::list::parse_triple;
use crate::job::number::{TimeUnit, parse_time};
use crate::job::steady::parse_steadystate;
use crate::job::word::{parse_bool, parse_float};
use ocssd_base::Nanos;

type Done = Result<(), String>;

pub fn rate_min(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.rate_floor.bytes, |text| cap(Value { text, ..value }))
}

pub fn rate_iops_min(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.rate_floor.ios, |text| cap(Value { text, ..value }))
}

/// Milliseconds; of 0 fio measures no rate at all, which no job means.
pub fn rate_cycle(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.rate_floor.cycle = Nanos::from_millis(u64::from(bounded_u32(value, 1, u64::MAX)?));
    Ok(())
}

pub fn latency_target(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.latency.target = parse_time(value.text, TimeUnit::Micros)?;
    Ok(())
}

pub fn latency_window(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.latency.window = parse_time(value.text, TimeUnit::Micros)?;
    Ok(())
}

pub fn latency_percentile(draft: &mut Draft, value: Value<'_>) -> Done {
    let percentile = parse_float(value.text)?;
    if !(percentile > 0.0 && percentile <= 100.0) {
        return Err(format!("expected a percentage above 0 and at most 100, but it is {percentile}"));
    }
    draft.options.latency.percentile = percentile;
    Ok(())
}

pub fn latency_run(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.latency.run = parse_bool(value.text)?;
    Ok(())
}

pub fn steadystate(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.steady.criterion = parse_steadystate(value.text, value.kb_base)?;
    Ok(())
}

pub fn steadystate_duration(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.steady.duration = parse_time(value.text, TimeUnit::Seconds)?;
    Ok(())
}

pub fn steadystate_ramp_time(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.steady.ramp_time = parse_time(value.text, TimeUnit::Seconds)?;
    Ok(())
}

pub fn steadystate_check_interval(draft: &mut Draft, value: Value<'_>) -> Done {
    let interval = parse_time(value.text, TimeUnit::Seconds)?;
    if interval == Nanos::ZERO {
        return Err("expected a time above 0".to_owned());
    }
    draft.options.steady.check_interval = interval;
    Ok(())
}

/// fio's bound (`fio --cmdhelp=flow`).
const FLOW_MAX: u64 = 1000;

pub fn flow(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.flow.weight = bounded_u32(value, 0, FLOW_MAX)?;
    Ok(())
}

pub fn flow_id(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.flow.id = bounded_u32(value, 0, u64::MAX)?;
    Ok(())
}

/// Microseconds, 32 bits of them as in fio.
pub fn flow_sleep(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.flow.sleep = Nanos::from_micros(u64::from(bounded_u32(value, 0, u64::MAX)?));
    Ok(())
}
