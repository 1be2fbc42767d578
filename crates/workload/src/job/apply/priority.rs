//! Priorities of I/Os.

use crate::job::draft::{Draft, Value};
use crate::job::list::parse_triple;
use crate::job::priority::{parse_class, parse_level, parse_percentage, parse_priority_split};
use crate::job::word::parse_bool;

type Done = Result<(), String>;

pub fn prio(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.priority.level = parse_level(value.text)?;
    Ok(())
}

pub fn prioclass(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.priority.class = parse_class(value.text)?;
    Ok(())
}

pub fn cmdprio(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.priority.command_level, parse_level)
}

pub fn cmdprio_class(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.priority.command_class, |text| parse_class(text).map(Some))
}

pub fn cmdprio_percentage(draft: &mut Draft, value: Value<'_>) -> Done {
    parse_triple(value.text, &mut draft.options.priority.shares, parse_percentage)
}

pub fn cmdprio_bssplit(draft: &mut Draft, value: Value<'_>) -> Done {
    let parse = |text: &str| parse_priority_split(text, value.kb_base);
    parse_triple(value.text, &mut draft.options.priority.shares, parse)
}

pub fn log_prio(draft: &mut Draft, value: Value<'_>) -> Done {
    draft.options.logs.priority = parse_bool(value.text)?;
    Ok(())
}
