//! When a job starts and ends, in which group, and how fast it goes.

use super::place::bounded_u32;
use crate::job::draft::{Draft, Value};
use crate::job::list::parse_triple;
use crate::job::number::{TimeUnit, parse_integer, parse_time};
use crate::job::pattern::{ExitWhat, RateProcess, SubmitMode};
use crate::job::word::{choose, parse_bool};

type Done = Result<(), String>;

pub fn name(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.name = value.text.to_owned();
    Ok(())
}

pub fn description(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.description = Some(value.text.to_owned());
    Ok(())
}

pub fn runtime(draft: &mut Draft, value: Value<'_>) -> Done {
    // fio takes 0 as no limit.
    draft.options.runtime = Some(parse_time(value.text, TimeUnit::Seconds)?).filter(|time| time.0 > 0);
    Ok(())
}

pub fn time_based(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.time_based = parse_bool(value.text)?;
    Ok(())
}

pub fn ramp_time(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.ramp_time = parse_time(value.text, TimeUnit::Seconds)?;
    Ok(())
}

pub fn startdelay(draft: &mut Draft, value: Value<'_>) -> Done {
    if value.text.contains('-') && !value.text.starts_with('(') {
        return Err("a range of delays is not implemented yet; give one time".to_owned());
    }
    draft.options.startdelay = parse_time(value.text, TimeUnit::Seconds)?;
    Ok(())
}

pub fn loops(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.loops = bounded_u32(value, 1, u64::MAX)?;
    Ok(())
}

pub fn number_ios(draft: &mut Draft, value: Value<'_>) -> Done {
    // fio takes 0 as no limit.
    draft.options.number_ios = Some(parse_integer(value.text, value.kb_base)?).filter(|count| *count > 0);
    Ok(())
}

pub fn stonewall(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.stonewall = parse_bool(value.text)?;
    Ok(())
}

pub fn wait_for(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.wait_for = Some(value.text.to_owned());
    Ok(())
}

pub fn exitall(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.exit.all = parse_bool(value.text)?;
    Ok(())
}

pub fn exit_what(draft: &mut Draft, value: Value<'_>) -> Done {
    let words = [("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall), ("all", ExitWhat::All)];
    draft.options.exit.what = choose(value.text, &words)?;
    Ok(())
}

pub fn io_submit_mode(draft: &mut Draft, value: Value<'_>) -> Done {
    let words = [("inline", SubmitMode::Inline), ("offload", SubmitMode::Offload)];
    draft.options.submit_mode = choose(value.text, &words)?;
    Ok(())
}

pub fn group_reporting(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.group_reporting = parse_bool(value.text)?;
    Ok(())
}

pub fn new_group(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.new_group = parse_bool(value.text)?;
    Ok(())
}

/// A cap of 0 is no cap, as in fio.
pub fn cap(value: Value<'_>) -> Result<Option<u64>, String> {
    parse_integer(value.text, value.kb_base).map(|number| Some(number).filter(|number| *number > 0))
}

pub fn rate(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.rate, |text| cap(Value { text, ..value }))
}

pub fn rate_iops(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.rate_iops, |text| cap(Value { text, ..value }))
}

pub fn rate_process(draft: &mut Draft, value: Value<'_>) -> Done {
    let words = [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];
    draft.options.rate_process = choose(value.text, &words)?;
    Ok(())
}

pub fn thinktime(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.thinktime.pause = parse_time(value.text, TimeUnit::Micros)?;
    Ok(())
}

pub fn thinktime_blocks(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.thinktime.blocks = bounded_u32(value, 1, u64::MAX)?;
    Ok(())
}
