//! Zones: of a drive, emulated, or strides over the region.

use super::place::bounded_u32;
use crate::job::draft::{Draft, Value};
use crate::job::number::parse_integer;
use crate::job::pattern::ZoneMode;
use crate::job::word::{choose, parse_bool, parse_float};

type Done = Result<(), String>;

/// fio's own bound for `max_open_zones` (`fio --cmdhelp=max_open_zones`).
const OPEN_ZONES_MAX: u64 = 4096;

pub fn zonemode(draft: &mut Draft, value: Value<'_>) -> Done {
    let words = [("none", ZoneMode::None), ("zbd", ZoneMode::Zbd), ("strided", ZoneMode::Strided)];
    draft.options.zonemode = choose(value.text, &words)?;
    Ok(())
}

/// fio takes a size of 0 as not given.
fn size(value: Value<'_>) -> Result<Option<u64>, String> {
    parse_integer(value.text, value.kb_base).map(|bytes| Some(bytes).filter(|bytes| *bytes > 0))
}

pub fn zonesize(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zonesize = size(value)?;
    Ok(())
}

pub fn zonecapacity(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zonecapacity = size(value)?;
    Ok(())
}

pub fn zonerange(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zonerange = size(value)?;
    Ok(())
}

pub fn zoneskip(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zoneskip = parse_integer(value.text, value.kb_base)?;
    Ok(())
}

pub fn max_open_zones(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.max_open_zones = bounded_u32(value, 0, OPEN_ZONES_MAX)?;
    Ok(())
}

pub fn job_max_open_zones(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.job_max_open_zones = bounded_u32(value, 0, OPEN_ZONES_MAX)?;
    Ok(())
}

pub fn read_beyond_wp(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.read_beyond_wp = parse_bool(value.text)?;
    Ok(())
}

/// A share from 0 to 1 (`fio --cmdhelp=zone_reset_threshold`).
fn share(value: Value<'_>) -> Result<f64, String> {
    let share = parse_float(value.text)?;
    let valid = (0.0..=1.0).contains(&share);
    valid.then_some(share).ok_or_else(|| format!("expected a number from 0 to 1, but it is {share}"))
}

pub fn zone_reset_threshold(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zone_reset.threshold = share(value)?;
    Ok(())
}

pub fn zone_reset_frequency(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.zone_reset.frequency = share(value)?;
    Ok(())
}
