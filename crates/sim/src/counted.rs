//! What targets say of themselves in numbers.
//!
//! Deliberately not here: what the numbers should be.

use ocssd_lightnvm::Target;
use ocssd_lightnvm::counter::CounterValue;

/// What a gauge of a target stands at; `None` if it has none of this name.
pub(crate) fn gauge<T: Target + ?Sized>(target: &T, name: &str) -> Option<u64> {
    let found = target.counters().into_iter().find(|counter| counter.name == name)?;
    if let CounterValue::Gauge(value) = found.value { Some(value) } else { None }
}

/// Resets by which wear may differ, of a target that says so and takes writes.
pub(crate) fn wear_spread<T: Target + ?Sized>(target: &T) -> Option<u32> {
    let spread = gauge(target, "wear_spread_bound").filter(|_| gauge(target, "read_only") == Some(0));
    spread.and_then(|spread| u32::try_from(spread).ok()).filter(|&spread| spread > 0)
}

/// What a target counted so far under one name; 0 if nothing.
pub(crate) fn count_of<T: Target + ?Sized>(target: &T, name: &str) -> u64 {
    counts(target).into_iter().find(|&(other, _)| other == name).map_or(0, |(_, count)| count)
}

/// What a target counted, name and count.
pub(crate) fn counts<T: Target + ?Sized>(target: &T) -> Vec<(&'static str, u64)> {
    let count = |value| if let CounterValue::Count(count) = value { Some(count) } else { None };
    target.counters().into_iter().filter_map(|counter| Some((counter.name, count(counter.value)?))).collect()
}
