//! Replaying and recording I/O.

use super::place::{bounded_u32, names_of};
use crate::job::draft::{Draft, Value};
use crate::job::iolog::IologOp;
use crate::job::word::{choose, parse_bool};

type Done = Result<(), String>;

pub fn read_iolog(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.replay.names = names_of(value.text)?;
    Ok(())
}

pub fn write_iolog(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.iolog = Some(value.text.to_owned());
    Ok(())
}

pub fn replay_no_stall(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.replay.options.no_stall = parse_bool(value.text)?;
    Ok(())
}

pub fn replay_redirect(draft: &mut Draft, _: Value<'_>) -> Done {
    draft.options.replay.options.redirect = true;
    draft
        .note("replay_redirect", "puts all files of the log on the drive of the run, whatever name is given");
    Ok(())
}

pub fn replay_scale(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.replay.options.scale = bounded_u32(value, 1, u64::MAX)?;
    Ok(())
}

pub fn replay_align(draft: &mut Draft, value: Value<'_>) -> Done {
    let align = bounded_u32(value, 0, u64::MAX)?;
    if align != 0 && !align.is_power_of_two() {
        return Err("expected a power of two, as fio does".to_owned());
    }
    draft.options.replay.options.align = align;
    Ok(())
}

pub fn replay_time_scale(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.replay.options.time_scale = bounded_u32(value, 1, u64::MAX)?;
    Ok(())
}

pub fn replay_skip(draft: &mut Draft, value: Value<'_>) -> Done {
    let words = [
        ("read", IologOp::Read),
        ("write", IologOp::Write),
        ("trim", IologOp::Trim),
        ("sync", IologOp::Flush),
    ];
    let parts = value.text.split(',').map(|word| choose(word.trim(), &words));
    draft.options.replay.options.skip = parts.collect::<Result<_, _>>()?;
    Ok(())
}
